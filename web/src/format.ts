// SPDX-License-Identifier: Apache-2.0
// Every number the UI shows is made here. Unknown is '–', never 0. Thin spaces group thousands.
const THIN = '\u2009'
export const UNKNOWN = '–'
type N = number | null | undefined

const known = (v: N): v is number => typeof v === 'number' && Number.isFinite(v)
const group = (text: string) => text.replace(/^(-?)(\d{4,})/, (_, sign, digits) => sign + digits.replace(/\B(?=(\d{3})+$)/g, THIN))

/** Whole number with grouped thousands. */
export const count = (v: N) => (known(v) ? group(String(Math.round(v))) : UNKNOWN)

/** Up to four significant digits. */
export function number(v: N): string {
  if (!known(v)) return UNKNOWN
  if (v === 0) return '0'
  const size = Math.abs(v)
  if (size >= 1e9 || size < 1e-4) return v.toExponential(2)
  if (Number.isInteger(v)) return group(String(v))
  return group(v.toFixed(Math.max(0, 3 - Math.floor(Math.log10(size)))))
}

/** A share in per cent, one decimal; 100.0 only when exact. */
export function percent(v: N): string {
  if (!known(v)) return UNKNOWN
  const capped = v < 100 && v >= 99.95 ? 99.9 : v
  return `${capped.toFixed(1)} %`
}

/** Seconds: two units from a minute on, one below. */
export function duration(s: N): string {
  if (!known(s)) return UNKNOWN
  if (s < 0) return '-' + duration(-s)
  const two = (n: number) => String(n).padStart(2, '0')
  if (s >= 59.9995) {
    const all = Math.round(s)
    const d = Math.floor(all / 86400), h = Math.floor((all % 86400) / 3600), m = Math.floor((all % 3600) / 60)
    if (d) return `${count(d)} d ${two(h)} h`
    if (h) return `${h} h ${two(m)} m`
    return `${m} m ${two(all % 60)} s`
  }
  if (s === 0) return '0 s'
  for (const [unit, size] of [['s', 1], ['ms', 1e-3], ['µs', 1e-6], ['ns', 1e-9]] as const)
    if (s >= size) return `${four(s / size)} ${unit}`
  return `${four(s * 1e12)} ps`
}
const four = (v: number) => (v >= 1000 ? count(v) : v.toFixed(Math.min(3, Math.max(0, 3 - Math.floor(Math.log10(v || 1))))))
export const ps = (v: N) => duration(known(v) ? v / 1e12 : null)

/** Bytes held: IEC. */
export function bytes(v: N): string {
  if (!known(v)) return UNKNOWN
  let i = 0, x = v
  while (Math.abs(x) >= 1024 && i < 5) { x /= 1024; i++ }
  return i ? `${four(x)} ${['', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'][i]}` : `${count(v)} B`
}

/** A rate or a count with an SI prefix. */
export function si(v: N, unit: string): string {
  if (!known(v)) return UNKNOWN
  let i = 0, x = v
  while (Math.abs(x) >= 1000 && i < 6) { x /= 1000; i++ }
  return `${number(Number(x.toPrecision(4)))} ${['', 'k', 'M', 'G', 'T', 'P', 'E'][i]}${unit}`.trim()
}

/** Any value by the unit of its column. */
export function byUnit(v: unknown, unit = ''): string {
  if (v === null || v === undefined) return UNKNOWN
  if (typeof v === 'boolean') return v ? 'yes' : 'no'
  if (typeof v !== 'number') return String(v)
  const seconds: Record<string, number> = { s: 1, ms: 1e-3, us: 1e-6, 'µs': 1e-6, ns: 1e-9, ps: 1e-12 }
  if (unit in seconds) return duration(v * seconds[unit])
  if (unit === '%') return percent(v)
  if (unit === 'bytes') return bytes(v)
  if (/\/s$/.test(unit)) return si(v, unit === 'bytes/s' ? 'B/s' : unit)
  return unit ? `${number(v)} ${unit}` : number(v)
}

const clock = (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat('en-GB', options)
const DAY = clock({ day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' })
const HOUR = clock({ hour: '2-digit', minute: '2-digit' })
const FINE = clock({ hour: '2-digit', minute: '2-digit', second: '2-digit' })
const DATE = clock({ day: 'numeric', month: 'short' })
export const day = (ms: number) => DATE.format(ms)
export const when = (ms: N) => (known(ms) ? DAY.format(ms).replace(',', '') : UNKNOWN)
const MILLI = clock({ minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 })
/** A tick of a time axis that is `span` long with a tick every `every` (ms): as fine as it must be to differ. */
export const clockTick = (ms: number, span: number, every: number) => (span > 864e5 ? when(ms) : every < 1000 ? MILLI.format(ms) : every < 60e3 ? FINE.format(ms) : HOUR.format(ms))
export const timeOfDay = (ms: number) => FINE.format(ms)
export const rfc = (text: string | null | undefined) => (text ? Date.parse(text) : null)

/** Rounds parts to `digits` decimals so that they add up to the rounded total (largest remainder). */
export function roundParts(parts: number[], digits: number, total = parts.reduce((a, b) => a + b, 0)): number[] {
  const scale = 10 ** digits, floors = parts.map(p => Math.floor(p * scale + 1e-9))
  let missing = Math.round(total * scale) - floors.reduce((a, b) => a + b, 0)
  const order = parts.map((p, i) => [p * scale - floors[i], i] as const).sort((a, b) => b[0] - a[0])
  for (const [, i] of order) { if (missing <= 0) break; floors[i]++; missing-- }
  return floors.map(f => f / scale)
}
