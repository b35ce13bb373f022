// SPDX-License-Identifier: Apache-2.0
import en from './i18n/en.json'

const strings = en as Record<string, string>
/** The string of a key with {names} replaced. An unknown key shows itself. */
export function t(key: string, values: Record<string, string | number> = {}): string {
  return (strings[key] ?? key).replace(/\{(\w+)\}/g, (all, name) => String(values[name] ?? all))
}
export const has = (key: string) => key in strings
