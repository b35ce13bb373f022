// SPDX-License-Identifier: Apache-2.0
// What every page shares: the address, the theme and the state of the live stream.
const prefix = new URL(document.baseURI).pathname.replace(/\/$/, '')
const read = () => ({ path: decodeURI(location.pathname.slice(prefix.length)) || '/', query: new URLSearchParams(location.search) })

export const route = $state(read())
addEventListener('popstate', () => Object.assign(route, read()))

export const href = (path: string) => prefix + path
export function go(path: string, replace = false) {
  history[replace ? 'replaceState' : 'pushState'](null, '', href(path))
  Object.assign(route, read())
  if (!replace) scrollTo(0, 0)
}
/** Sets keys of the query; null removes. Filters and selections replace, tabs push. */
export function setQuery(values: Record<string, string | null>, push = false) {
  const q = new URLSearchParams(location.search)
  for (const [k, v] of Object.entries(values)) if (v === null || v === '') q.delete(k)
  else q.set(k, v)
  const text = q.toString()
  history[push ? 'pushState' : 'replaceState'](null, '', location.pathname + (text ? '?' + text : ''))
  Object.assign(route, read())
}
/** Follows links of the app without loading the page anew. */
export function follow(e: MouseEvent) {
  const a = (e.target as Element).closest?.('a')
  if (!a || e.defaultPrevented || e.button || e.metaKey || e.ctrlKey || e.shiftKey || a.target || a.hasAttribute('download')) return
  const url = new URL(a.href, document.baseURI)
  if (url.origin !== location.origin || url.pathname.startsWith(prefix + '/api/')) return
  e.preventDefault()
  go(url.pathname.slice(prefix.length) + url.search)
}

export type Theme = 'system' | 'light' | 'dark'
const wanted = matchMedia('(prefers-color-scheme: dark)')
const asked = () => (['light', 'dark'].includes(localStorage.getItem('theme') ?? '') ? (localStorage.getItem('theme') as Theme) : 'system')
export const theme = $state({ choice: asked() as Theme, dark: false })
export function applyTheme(choice: Theme) {
  theme.choice = choice
  if (choice === 'system') localStorage.removeItem('theme')
  else localStorage.setItem('theme', choice)
  theme.dark = choice === 'dark' || (choice === 'system' && wanted.matches)
  document.documentElement.dataset.theme = theme.dark ? 'dark' : 'light'
}
wanted.addEventListener('change', () => applyTheme(theme.choice))
applyTheme(theme.choice)

export const live = $state({ state: 'idle' as 'on' | 'retry' | 'idle' | 'off' })
export const cssColor = (name: string) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim()
