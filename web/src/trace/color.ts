// SPDX-License-Identifier: Apache-2.0
// One colour per op name, the same in trace and tables: a hue by class, then five lightness steps by
// FNV-1a of the name without its ".N" suffix.
import type { Rgb } from './surface'
const CLASSES: [RegExp, string][] = [
  [/all-?reduce|all-?gather|reduce-?scatter|all-?to-?all|collective|nccl|rccl|rendezvous/i, 'checkpoint'],
  [/compil|\bLLVM\b|lower(ing)?_|trace_to_jaxpr|xla_computation/i, 'startup'],
  [/infeed|outfeed|dataset|prefetch|iterator|next_batch|data_?load/i, 'input'],
  [/memcpy|copy|transfer|transpose|host_to_device|device_to_host|d2d|h2d|d2h/i, 'recovery'],
  [/launch|enqueue|execute|dispatch/i, 'lost']
]
export const family = (name: string, device: boolean) => CLASSES.find(([r]) => r.test(name))?.[1] ?? (device ? 'productive' : 'other')

export function fnv1a(text: string): number {
  let h = 0x811c9dc5
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193) >>> 0
  return h
}
/** #rgb or #rrggbb. */
export function parse(hex: string): Rgb {
  const n = hex.length === 4 ? [...hex.slice(1)].map(c => c + c) : [1, 3, 5].map(i => hex.slice(i, i + 2))
  return n.map(v => parseInt(v, 16)) as unknown as Rgb
}
/** `share` of a colour over a background. */
export const mixed = (a: Rgb, b: Rgb, share: number): Rgb => [0, 1, 2].map(i => Math.round(a[i] * share + b[i] * (1 - share))) as unknown as Rgb
const light = (c: Rgb) => c.map(v => { const x = v / 255; return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4 }).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0)

export class Palette {
  private cache = new Map<string, { rgb: Rgb; ink: string }>()
  readonly back: Rgb
  constructor(private hues: Record<string, string>, card: string) { this.back = parse(card) }
  of(name: string, device: boolean) {
    const stem = name.replace(/\.\d+$/, ''), key = (device ? 'd' : 'h') + stem
    let c = this.cache.get(key)
    if (!c) {
      const rgb = mixed(parse(this.hues[family(stem, device)]), this.back, 1 - (fnv1a(stem) % 5) * 0.11), l = light(rgb)
      c = { rgb, ink: (l + 0.05) / 0.056 > 1.05 / (l + 0.05) ? '#0d1115' : '#ffffff' }
      this.cache.set(key, c)
    }
    return c
  }
}
