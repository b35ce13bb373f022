// SPDX-License-Identifier: Apache-2.0
// Axes of our own pictures: linear and logarithmic, with the ticks that fit.
export interface Scale { (v: number): number; ticks: number[] }

/** 0 … `top` onto from … to, with about `n` round ticks; in bytes they are round in powers of two. */
export function linear(top: number, from: number, to: number, n = 4, binary = false): Scale {
  const most = top > 0 ? top : 1, rough = most / n, base = binary ? 2 ** Math.floor(Math.log2(rough)) : 10 ** Math.floor(Math.log10(rough))
  const step = (binary ? [1, 2] : [1, 2, 5, 10]).find(s => s * base >= rough)! * base, ticks: number[] = []
  for (let i = 0; i * step <= most * 1.0001; i++) ticks.push(i * step)
  return Object.assign((v: number) => from + (v / most) * (to - from), { ticks })
}

/** lo … hi, both above 0, onto from … to: a tick a power of ten, fewer where they would not fit. */
export function logarithmic(lo: number, hi: number, from: number, to: number, n = 8): Scale {
  const a = Math.log10(lo), b = Math.max(Math.log10(hi), a + 1e-9), ticks: number[] = [], every = Math.max(1, Math.ceil((b - a) / n))
  for (let e = Math.ceil(a - 1e-9); e <= b + 1e-9; e += every) ticks.push(10 ** e)
  return Object.assign((v: number) => from + ((Math.log10(v) - a) / (b - a)) * (to - from), { ticks })
}
