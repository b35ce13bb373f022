// SPDX-License-Identifier: Apache-2.0
// The shapes of docs/formats/api.md and the one way to fetch them.
export type Maybe<T> = T | null
export interface Part { category: string; seconds: number; percent: number; count?: number }
export interface Run {
  run: string; name: string; group: Maybe<string>; phase: string; reason: Maybe<string>; health: Maybe<string>
  started: Maybe<string>; ended: Maybe<string>; last: Maybe<string>; wall_s: Maybe<number>; goodput_percent: Maybe<number>
  ledger: Maybe<Part[]>; step: Maybe<number>; step_time_p50_s: Maybe<number>; attempts: Maybe<number>; hosts: Maybe<number>
  sessions: Maybe<number>; framework: Maybe<string>; verdict: Maybe<string>; live: Maybe<boolean>
  configs?: Record<string, unknown>; labels?: Record<string, unknown>; host_facts?: Record<string, unknown>; argv?: string[]
}
export interface Segment { from_ns: string; to_ns: string; category: string; step: Maybe<number>; attempt: number }
export interface Attempt { number: number; from_ns: string; to_ns: string; first_step: Maybe<number>; last_step: Maybe<number>; reason: Maybe<string>; code: Maybe<number>; signal: Maybe<number> }
export interface Ledger {
  run: string; from: Maybe<string>; to: Maybe<string>; total_elapsed_s: number; goodput_percent: Maybe<number>; goodput_time_s: Maybe<number>; badput_time_s: Maybe<number>
  ledger: Part[]; disruptions: Maybe<number>; max_productive_step: Maybe<number>; attempts: Maybe<number>
  step_time: Maybe<{ ideal_s: Maybe<number>; mean_s: Maybe<number>; p50_s: Maybe<number>; p99_s: Maybe<number>; deviation_s: Maybe<number> }>
  ranks: { rank: number; host: string; step_time_p50_s: Maybe<number>; slower_percent: Maybe<number>; straggler: boolean }[]
  windows: { seconds: number; goodput_percent: Maybe<number>; ledger: Part[] }[]
  warnings: { code: string; message: string; count: number }[]
  segments: Segment[]; attempts_list: Attempt[]
}
export interface Step { step: number; from_ns: string; duration_ns: number; attempt: number; wasted: boolean }
export interface Metric { name: string; unit: string; kind: 'metric' | 'system'; rank: Maybe<number>; host: Maybe<string>; pid: number; attempt: Maybe<number>; journal: string; count: number; last: Maybe<number> }
export type Point = [string, Maybe<number>, Maybe<number>, Maybe<number>, Maybe<number>, Maybe<number>]
export interface Series { name: string; unit: string; series: { rank: Maybe<number>; host: Maybe<string>; pid: number; attempt: Maybe<number>; journal: string; points: Point[] }[]; seconds_per_point: Maybe<number> }
export interface Session {
  session: string; run: Maybe<string>; name: Maybe<string>; kind: Maybe<string>; from: Maybe<string>; to: Maybe<string>; duration_s: Maybe<number>
  size_bytes: Maybe<number>; targets: number | Target[]; status: Maybe<string>; report_status: Maybe<string>; findings: Maybe<number>; first_finding: Maybe<string>; report_error?: Maybe<string>
}
export interface Target { target: string; host: Maybe<string>; size_bytes: Maybe<number>; planes: Maybe<number>; lines: Maybe<number>; events: Maybe<number> }
export interface Finding {
  priority: string; id: string; title: string; confidence: string; what: string
  evidence: { tool: string; metric: string; value: unknown; unit: string; where: string }[]
  impact: Maybe<{ metric: string; amount: Maybe<number>; unit: string; percent: Maybe<number>; bound: string }>
  explains?: string[]; fix?: string[]; span?: { from_ps: number; to_ps: number }
}
export interface Report { status: string; summary: string; key_metrics?: { name: string; value: unknown; unit: string }[]; findings: Finding[]; abstained?: { id: string; missing: string }[]; warnings?: Note[] }
export interface Column { name: string; title: string; unit: string; type: string }
export interface ToolTable { table?: string; title?: string; columns: Column[]; values?: Record<string, unknown>; rows: unknown[][]; notes?: Note[] }
export interface TraceLine { line: number; name: string; events: number; max_depth: number; busy_ps: Maybe<number>; partial?: boolean }
export interface Note { code: string; message: string; count: number }
export interface Trace {
  origin_ns: string; start_ps: number; end_ps: number; device_start_ps: Maybe<number>; device_end_ps: Maybe<number>; partial?: boolean
  targets: { target: string; host: Maybe<string>; planes: { name: string; kind: string; lines: TraceLine[] }[]; notes?: Note[] }[]
}
export interface Tile { level: number; position: number; bucket_ps: number; names: string[]; lines: { line: number; events: number[][]; cells: number[][] }[] }

export class Problem extends Error {
  constructor(public status: number, message: string, public code = '', public hint = '') { super(message) }
}

const base = new URL('api/v1/', document.baseURI)
export const address = (path: string) => new URL(path.replace(/^\//, ''), base).href
export const enc = encodeURIComponent

let onUnauthorized: () => void = () => {}
export const whenUnauthorized = (f: () => void) => { onUnauthorized = f }

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  let answer: Response
  try {
    answer = await fetch(address(path), { credentials: 'same-origin', signal, headers: { Accept: 'application/json' } })
  } catch (e) {
    if ((e as Error).name === 'AbortError') throw e
    throw new Problem(0, '', 'network')
  }
  if (answer.status === 401) onUnauthorized()
  if (!answer.ok) {
    const p = await answer.json().catch(() => ({}))
    throw new Problem(answer.status, p.detail || p.title || answer.statusText, p.code, p.hint)
  }
  return answer.json()
}

export async function login(token: string): Promise<boolean> {
  const answer = await fetch(address('login'), { method: 'POST', credentials: 'same-origin', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ token }) })
  return answer.ok
}
/** Wall nanoseconds (text, they exceed 2^53) as milliseconds. */
export const ms = (ns: string) => Number(ns) / 1e6
