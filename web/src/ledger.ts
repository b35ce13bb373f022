// SPDX-License-Identifier: Apache-2.0
// Categories, their families and order: the same list as src/model/categories.def.
import { t, has } from './i18n'
import { duration, roundParts } from './format'
import type { Ledger, Part } from './api'

const FAMILY: Record<string, string> = {
  productive_step: 'productive', in_progress_step: 'productive', initialization: 'startup', training_prep: 'startup', program_startup: 'startup',
  data_loading_sync: 'input', checkpoint_save: 'checkpoint', checkpoint_restore: 'checkpoint', wasted_progress: 'lost', infrastructure_recovery: 'recovery',
  elastic_wait: 'recovery', elastic_reinit: 'recovery', hang: 'hang', custom: 'custom', idle: 'idle', other: 'other'
}
export const FAMILIES = ['productive', 'startup', 'input', 'checkpoint', 'lost', 'recovery', 'hang', 'custom', 'idle', 'other']
const ORDER = Object.keys(FAMILY)
const head = (category: string) => category.split(':')[0]

export const family = (category: string) => FAMILY[head(category)] ?? 'other'
export const rank = (category: string) => { const i = ORDER.indexOf(head(category)); return i < 0 ? ORDER.length : i }
export function title(category: string): string {
  const [first, detail] = category.split(':')
  if (first === 'custom' && detail) return detail.charAt(0) + detail.slice(1).toLowerCase().replace(/_/g, ' ')
  const name = has('cat.' + first) ? t('cat.' + first) : category
  return detail ? `${name} (${detail.replace(/_/g, ' ')})` : name
}

export interface Line { category: string; seconds: number; shown: number; text: string; percent: number; count?: number }
/** The rows of a breakdown. What is shown adds up to what is shown as the total, in time and in share. */
export function breakdown(parts: Part[], total: number): { lines: Line[]; total: string; shownTotal: number } {
  const rows = parts.filter(p => p.seconds > 0).sort((a, b) => rank(a.category) - rank(b.category))
  const unit = total < 60 ? 0.001 : total < 86400 ? 1 : 60
  const steps = roundParts(rows.map(p => p.seconds / unit), 0, total / unit)
  const shares = roundParts(rows.map(p => (total > 0 ? (p.seconds / total) * 100 : 0)), 1, rows.length ? 100 : 0)
  const text = (n: number) => (unit === 0.001 ? `${(n / 1000).toFixed(3)} s` : unit === 60 ? minutes(n) : clock(n))
  const whole = Math.round(total / unit)
  return {
    lines: rows.map((p, i) => ({ category: p.category, seconds: p.seconds, shown: steps[i], text: text(steps[i]), percent: shares[i], count: p.count })),
    total: text(whole), shownTotal: whole
  }
}
const clock = (s: number) => {
  const h = Math.floor(s / 3600), m = Math.floor((s % 3600) / 60), two = (n: number) => String(n).padStart(2, '0')
  return h ? `${h} h ${two(m)} m ${two(s % 60)} s` : m ? `${m} m ${two(s % 60)} s` : `${s} s`
}
const minutes = (m: number) => {
  const d = Math.floor(m / 1440), h = Math.floor((m % 1440) / 60), two = (n: number) => String(n).padStart(2, '0')
  return d ? `${d} d ${two(h)} h ${two(m % 60)} m` : h ? `${h} h ${two(m % 60)} m` : `${m} m`
}
export const losses = (parts: Part[]) => parts.filter(p => family(p.category) !== 'productive' && p.seconds > 0).sort((a, b) => b.seconds - a.seconds)
export const summary = (parts: Part[]) => parts.map(p => `${title(p.category)} ${duration(p.seconds)}`).join(', ')

/** Fills a rectangle in a family's colour; the three that must never be mistaken are hatched. */
export function paint(c: CanvasRenderingContext2D, name: string, color: string, card: string, x: number, w: number, h: number) {
  c.fillStyle = color
  c.fillRect(x, 0, w, h)
  if (!['lost', 'hang', 'other'].includes(name) || w < 3) return
  c.save()
  c.beginPath(); c.rect(x, 0, w, h); c.clip()
  c.strokeStyle = card; c.globalAlpha = 0.55; c.lineWidth = 1.5
  c.beginPath()
  const from = Math.floor((x - h) / 6) * 6
  for (let at = from; at < x + w + h; at += 6) name === 'lost' ? (c.moveTo(at, h), c.lineTo(at + h, 0)) : (c.moveTo(at, 0), c.lineTo(at + h, h))
  c.stroke(); c.restore()
}

/** Whether the run said anything about steps; when not, goodput is unknown. */
export const stepsKnown = (l: Ledger) => l.goodput_percent !== null && (l.goodput_percent > 0 || (l.max_productive_step ?? -1) >= 0 || l.ledger.some(p => ['productive_step', 'in_progress_step', 'wasted_progress', 'hang'].includes(p.category) && p.seconds > 0))
