// SPDX-License-Identifier: Apache-2.0
// The tiles of a session: asked for by view, kept up to 64 MB (estimated), stretched from a coarser
// level until the right one is here. A tile spans 1024 buckets of 2^level ps; times are ps.
import { enc, get, type Tile } from '../api'

const LIMIT = 64e6
export interface Entry { tile: Tile | null; byLine: Map<number, Tile['lines'][number]>; size: number }

export class Tiles {
  private kept = new Map<string, Entry>()
  private asked = new Map<string, AbortController>()
  private size = 0
  failed: unknown = null
  constructor(private session: string, private changed: () => void) {}

  static span = (level: number) => 1024 * 2 ** level
  static level = (psPerPixel: number) => Math.max(0, Math.min(52, Math.floor(Math.log2(Math.max(1, psPerPixel)))))
  private key = (target: string, group: string, level: number, position: number) => `${target}|${group}|${level}|${position}`

  /** The tile, or null while it is on its way. */
  find(target: string, group: string, level: number, position: number): Entry | null {
    const k = this.key(target, group, level, position), e = this.kept.get(k)
    if (e) { this.kept.delete(k); this.kept.set(k, e) }
    return e ?? null
  }
  /** Forgets all: the profile has become another. */
  clear() {
    for (const stop of this.asked.values()) stop.abort()
    this.asked.clear(); this.kept.clear(); this.size = 0; this.failed = null
  }
  /** Asks for the tiles wanted now, in order, and drops questions about others. */
  want(list: { target: string; group: string; level: number; position: number }[]) {
    const keys = new Set(list.map(w => this.key(w.target, w.group, w.level, w.position)))
    for (const [k, stop] of this.asked) if (!keys.has(k)) { stop.abort(); this.asked.delete(k) }
    for (const w of list) {
      const k = this.key(w.target, w.group, w.level, w.position)
      if (this.kept.has(k) || this.asked.has(k) || this.asked.size >= 12) continue
      const stop = new AbortController()
      this.asked.set(k, stop)
      get<Tile>(`sessions/${enc(this.session)}/trace/tile?target=${enc(w.target)}&lines=${w.group}&level=${w.level}&position=${w.position}`, stop.signal)
        .then(tile => { if (this.asked.get(k) !== stop) return; this.failed = null; this.keep(k, tile) })
        .catch(e => { if (e.name !== 'AbortError' && this.asked.get(k) === stop) { this.failed = e; this.keep(k, null) } })
        .finally(() => { if (this.asked.get(k) === stop) this.asked.delete(k); this.changed() })
    }
  }
  private keep(k: string, tile: Tile | null) {
    const size = 200 + (tile ? tile.lines.reduce((n, l) => n + (l.events.length + l.cells.length) * 96, 0) + tile.names.length * 60 : 0)
    this.kept.set(k, { tile, byLine: new Map(tile?.lines.map(l => [l.line, l])), size })
    this.size += size
    for (const [old, e] of this.kept) {
      if (this.size <= LIMIT) break
      if (old !== k) { this.kept.delete(old); this.size -= e.size }
    }
  }
}
