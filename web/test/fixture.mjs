// SPDX-License-Identifier: Apache-2.0
// A server of invented data in the shapes of docs/formats/api.md, for work on the UI alone:
//   node test/fixture.mjs [port]   then open http://127.0.0.1:PORT/#token=fixture
// It is no part of the product; the product's server is `tacho serve`.
import { createServer } from 'node:http'
import { readFileSync, existsSync } from 'node:fs'
import { extname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'

const dist = join(fileURLToPath(new URL('.', import.meta.url)), '../dist')
const CSP = "default-src 'self'; connect-src 'self'; frame-ancestors 'none'; object-src 'none'"
let seed = 7
const random = () => ((seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) / 2 ** 32)
const T0 = Date.UTC(2026, 10, 27, 6, 12)

function life(hours, active, plan) {
  const segments = [], steps = [], attempts = []
  let at = 0, step = 0
  const put = (category, s, extra = {}) => { segments.push({ from_ns: at, to_ns: at + s, category, step: null, attempt: attempts.length, ...extra }); at += s }
  for (const [share, lost] of plan) {
    const begin = at, first = step
    attempts.push({})
    put('initialization', 60); put('training_prep', 200); put('program_startup', 400)
    const until = begin + share * hours * 3600
    let since = 0
    while (at < until) {
      const n = 40, dur = 1.41 + random() * 0.05 + (random() < 0.03 ? 0.4 : 0)
      for (let i = 0; i < n; i += 10) steps.push({ step: step + i, from_ns: at + i * dur, duration_ns: Math.round(dur * 1e9), attempt: attempts.length, wasted: false })
      put('productive_step', n * dur, { step })
      step += n; since += n
      if (random() < 0.02) put('data_loading_sync', 20 + random() * 90)
      if (since > 1500) { put('checkpoint_save', 160); since = 0 }
      if (random() < 0.003) put('custom:EVAL', 400)
    }
    if (lost) put('wasted_progress', 1800 * lost)
    attempts[attempts.length - 1] = { number: attempts.length, from_ns: begin, to_ns: at, first_step: first, last_step: step - 1, reason: lost ? 'signal' : active ? null : 'exit', code: lost ? null : active ? null : 0, signal: lost ? 9 : null }
    if (lost) { segments.push({ from_ns: at, to_ns: at + 5400 * lost, category: 'infrastructure_recovery', step: null, attempt: 0 }); at += 5400 * lost }
  }
  return { segments, steps, attempts, step }
}
const iso = s => new Date(T0 + s * 1000).toISOString()
const ns = s => String(BigInt(T0) * 1000000n + BigInt(Math.round(s * 1e9)))
function totals(segments, from = -Infinity, to = Infinity) {
  const by = new Map()
  for (const s of segments) { const d = Math.min(to, s.to_ns) - Math.max(from, s.from_ns); if (d > 0) { const e = by.get(s.category) ?? [0, 0]; by.set(s.category, [e[0] + d, e[1] + 1]) } }
  const all = [...by.values()].reduce((n, e) => n + e[0], 0)
  return { all, parts: [...by].map(([category, [seconds, count]]) => ({ category, seconds, percent: (seconds / all) * 100, count })) }
}
const RUNS = [
  ['pretrain7b01', 'llm-7b-pretrain', 'pretrain', 'jax 0.8.1', 'ACTIVE', 54, [[0.34, 1], [0.4, 0.5], [0.2, 0]]],
  ['ropeablation', 'llm-7b-rope-ablation', 'pretrain', 'jax 0.8.1', 'COMPLETED', 30, [[0.9, 0]]],
  ['mixtralsft01', 'mixtral-8x7b-sft', 'sft', 'torch 2.9', 'FAILED', 20, [[0.5, 1], [0.3, 0.2]]],
  ['whisperserve', 'whisper-large-serve', 'serving', 'torch 2.9', 'ACTIVE', 40, []]
].map(([run, name, group, framework, phase, hours, plan]) => {
  const l = plan.length ? life(hours, phase === 'ACTIVE', plan) : { segments: [{ from_ns: 0, to_ns: hours * 3600, category: 'other', step: null, attempt: 1 }], steps: [], attempts: [{ number: 1, from_ns: 0, to_ns: hours * 3600, first_step: null, last_step: null, reason: null, code: null, signal: null }], step: null }
  const t = totals(l.segments), good = t.parts.find(p => p.category === 'productive_step')
  const durations = l.steps.map(s => s.duration_ns / 1e9).sort((a, b) => a - b)
  return { l, t, good, durations, run: { run, name, group, phase, reason: phase === 'FAILED' ? 'signal' : phase === 'ACTIVE' ? null : 'exit', health: 'ok', started: iso(0), ended: phase === 'ACTIVE' ? null : iso(t.all), last: iso(t.all), wall_s: t.all, goodput_percent: good ? good.percent : null, ledger: t.parts, step: l.step, step_time_p50_s: durations[durations.length >> 1] ?? null, attempts: l.attempts.length, hosts: 8, sessions: run === 'pretrain7b01' ? 1 : 0, framework, verdict: good ? 'Recovery after interruptions is the largest loss: checkpoint more often.' : null, live: phase === 'ACTIVE' } }
})
function ledger(r, q) {
  const bound = k => (q.get(k) ? (Date.parse(q.get(k)) - T0) / 1000 : k === 'from' ? 0 : r.t.all), from = bound('from'), to = bound('to')
  const t = totals(r.l.segments, from, to), good = t.parts.find(p => p.category === 'productive_step')?.seconds ?? null, d = r.durations
  return { run: r.run.run, lead_rank: 0, attempts: r.l.attempts.length, from: iso(from), to: iso(to), total_elapsed_s: t.all, goodput_percent: good === null ? null : (good / t.all) * 100, goodput_time_s: good, badput_time_s: good === null ? null : t.all - good, ledger: t.parts, disruptions: r.l.attempts.length - 1, max_productive_step: r.l.step,
    step_time: d.length ? { ideal_s: d[0], mean_s: d.reduce((a, b) => a + b) / d.length, p50_s: d[d.length >> 1], p99_s: d[Math.floor(d.length * 0.99)], deviation_s: d[d.length >> 1] - d[0] } : { ideal_s: null, mean_s: null, p50_s: null, p99_s: null, deviation_s: null },
    ranks: d.length ? [0, 1, 2, 3].map(rank => ({ rank, host: `host-0${rank}`, step_time_p50_s: 1.41 + rank * 0.004, slower_percent: rank * 0.3, straggler: rank === 3 })) : [], windows: [{ seconds: 3600, goodput_percent: 96.1, ledger: [] }], warnings: [],
    segments: r.l.segments.map(s => ({ ...s, from_ns: ns(s.from_ns), to_ns: ns(s.to_ns) })), attempts_list: r.l.attempts.map(a => ({ ...a, from_ns: ns(a.from_ns), to_ns: ns(a.to_ns) })) }
}
const METRICS = [['loss', '', 'metric'], ['learning_rate', '', 'metric'], ['tokens_per_second', 'tokens/s', 'metric'], ['cpu_percent', '%', 'system'], ['memory_used_bytes', 'bytes', 'system'], ['gpu_utilization_percent{device="0"}', '%', 'system'], ['gpu_utilization_percent{device="1"}', '%', 'system'], ['network_receive_bytes_per_s', 'bytes/s', 'system']]
function series(r, name) {
  const [, unit] = METRICS.find(m => m[0] === name), points = []
  for (let i = 0; i < 500; i++) {
    if (i > 190 && i < 215) continue
    const at = (r.t.all * i) / 500, noise = Math.sin(i * 12.9898) * 0.5 + 0.5
    const v = { loss: 2 + 6 * Math.exp(-i / 80) + noise * 0.1, learning_rate: 3e-4 * (1 - i / 520), tokens_per_second: 742e3 - noise * 9e3, cpu_percent: 30 + noise * 20, memory_used_bytes: 4e11 + i * 1e8, network_receive_bytes_per_s: 2e9 * noise }[name] ?? 88 + noise * 8
    points.push([ns(at), v * 0.97, v, v * 1.02, i * 200, 200])
  }
  return { name, unit, x: 'time', series: [{ rank: 0, host: 'host-00', points }], seconds_per_point: r.t.all / 500 }
}

// A capture of 7.97 s in which the device works for 34 ms.
const MS = 1e9, D0 = 1650 * MS, LINES = {}
const event = (line, name, start, dur, depth = 0) => { (LINES[line] ??= []).push({ name, start: Math.round(start), dur: Math.round(dur), depth }) }
event(3, 'start_trace', 0, 1630 * MS); event(3, 'stop_trace', 1690 * MS, 6270 * MS)
for (let i = 0; i < 10; i++) {
  const at = D0 + i * 3.47 * MS
  event(1, 'input_transpose_fusion', at + 1.9 * MS, 0.39 * MS); event(1, 'Cijk_Ailk_Bljk_BBS_BH_MT256x128', at + 2.3 * MS, 0.29 * MS); event(1, 'loop_transpose_fusion.1', at + 2.62 * MS, 0.02 * MS)
  for (let k = 0; k < 40; k++) event(2, 'MemcpyD2D', at + k * 0.06 * MS, 0.004 * MS)
  event(3, 'forward_3d_conv', at, 2.88 * MS); event(3, 'shard_args', at, 0.6 * MS, 1); event(3, 'PjRtCApiLoadedExecutable::Execute', at + 0.62 * MS, 2.2 * MS, 1); event(3, 'EnqueueExecution', at + 0.7 * MS, 1.9 * MS, 2)
}
for (const l of Object.values(LINES)) l.sort((a, b) => a.start - b.start)
const END = 7970 * MS
function tile(q) {
  const level = Number(q.get('level')), position = Number(q.get('position')), bucket = 2 ** level, from = position * 1024 * bucket, to = from + 1024 * bucket, names = [], at = new Map()
  const name = n => at.get(n) ?? (at.set(n, names.push(n) - 1), names.length - 1)
  return { level, position, bucket_ps: bucket, names, lines: q.get('lines').split(',').map(Number).map(line => {
    const events = [], cells = new Map()
    LINES[line].forEach((e, i) => {
      if (e.start + e.dur < from || e.start >= to) return
      if (e.dur >= bucket) return events.push([e.start, e.dur, name(e.name), e.depth, i])
      const b = Math.floor((e.start - from) / bucket), k = b + '/' + e.depth, c = cells.get(k) ?? [b, 0, 0, name(e.name), e.depth]
      c[1] = Math.min(255, c[1] + Math.ceil((e.dur / bucket) * 255)); c[2]++; cells.set(k, c)
    })
    return { line, events, cells: [...cells.values()].filter(c => c[0] >= 0) }
  }) }
}
function select(from, to) {
  const by = new Map()
  for (const l of Object.values(LINES)) for (const e of l) { const d = Math.min(to, e.start + e.dur) - Math.max(from, e.start); if (d > 0) { const r = by.get(e.name) ?? { name: e.name, count: 0, total_ps: 0, self_ps: 0, min_ps: Infinity, max_ps: 0 }; r.count++; r.total_ps += d; r.self_ps += d; r.min_ps = Math.min(r.min_ps, e.dur); r.max_ps = Math.max(r.max_ps, e.dur); by.set(e.name, r) } }
  return { rows: [...by.values()].sort((a, b) => b.self_ps - a.self_ps), busy_ps: (to - from) * 0.2, idle_ps: (to - from) * 0.8 }
}
const SESSION = { session: 's1', run: 'pretrain7b01', name: 's1', kind: 'programmatic', from: iso(9000), to: iso(9008), duration_s: 7.97, size_bytes: 289000, targets: [{ target: 'host-00', host: 'host-00', size_bytes: 289000, planes: 3, lines: 3, events: 542 }], status: 'complete', report_status: 'done', findings: 2, first_finding: 'The device waits for the host' }
const REPORT = { status: 'NEEDS_ATTENTION', summary: 'The program is bound by the host, not by the GPU. Of 7.97 s captured, 7.94 s is the profiler starting and stopping; the ten measured calls take 34.3 ms, and GPU 7 computes for 7.0 ms of them.', key_metrics: [{ name: 'device_busy', value: 20.4, unit: '%' }, { name: 'call_period', value: 3.47, unit: 'ms' }, { name: 'kernel_time', value: 0.7, unit: 'ms' }],
  findings: [{ priority: 'P0', id: 'launch-bound', title: 'The device waits for the host', confidence: 'high', what: 'GPU 7 is idle 79.6 % of its window. Each call of forward_3d_conv holds the Python thread for 2.88 ms and gives the device 0.70 ms of work.', evidence: [{ tool: 'summary', metric: 'calls', value: 10, unit: '', where: 'forward_3d_conv' }], impact: { metric: 'step_time', amount: 0.00277, unit: 's', percent: 79.6, bound: 'upper' }, explains: [], span: { from_ps: D0, to_ps: D0 + 34 * MS }, fix: ['Put several calls into one jitted lax.fori_loop.'], confirmed_by: [] },
    { priority: 'P1', id: 'layout', title: '55.7 % of kernel time is a layout change', confidence: 'medium', what: 'input_transpose_fusion rewrites the convolution result: 572 MB read, 572 MB written.', evidence: [{ tool: 'kernel_stats', metric: 'total', value: 3.9, unit: 'ms', where: 'input_transpose_fusion' }], impact: null, explains: [], fix: ['Ask for channels-last.'], confirmed_by: [] }], abstained: [{ id: 'straggler', missing: 'ranks: one host was captured' }] }
const OPS = { table: 'kernel_stats', title: 'Kernels', columns: [{ name: 'name', title: 'Name', unit: '', type: 'text' }, { name: 'occurrences', title: 'Count', unit: '', type: 'u64' }, { name: 'total_duration', title: 'Total', unit: 'ps', type: 'u64' }, { name: 'share', title: 'Share', unit: '%', type: 'f64' }], values: { kernels: 30 }, rows: Array.from({ length: 24 }, (_, i) => [`${['input_transpose_fusion', 'Cijk_Ailk', 'loop_transpose_fusion'][i % 3]}.${i}`, 10 + i, 4e9 / (i + 1), 40 / (i + 1)]), notes: [{ code: 'partial', message: 'Kernels were recorded on 1 of 8 devices', count: 1 }] }

// The index of s2 is made while one looks: the first two times its trace is asked for, a part is shown.
let asked = 0
const PART = session => ({ partial: session === 's2' && asked++ < 2 })
function answer(path, q) {
  const p = path.split('/').map(decodeURIComponent)
  if (p[0] === 'runs' && p.length === 1) return { items: RUNS.map(r => r.run).filter(r => (!q.get('filter') || JSON.stringify(r).includes(q.get('filter'))) && (!q.get('state') || r.phase === q.get('state'))), next_page_token: null }
  if (p[0] === 'runs') {
    const r = RUNS.find(r => r.run.run === p[1])
    if (!r) return
    if (p.length === 2) return { ...r.run, configs: { learning_rate: 3e-4, batch: 512, mesh: { data: 8, model: 8 } }, labels: { team: 'research' }, host_facts: { os: 'Linux', cpus: 96, memory_bytes: 2.1e12 }, argv: ['python', 'train.py', '--size=7b'] }
    return { report: () => ({ ...REPORT, findings: [] }), ledger: () => ledger(r, q), steps: () => ({ steps: r.l.steps.map(s => ({ ...s, from_ns: ns(s.from_ns) })) }), metrics: () => (q.get('name') ? series(r, q.get('name')) : { metrics: r.l.steps.length ? METRICS.map(([name, unit, kind]) => ({ name, unit, kind, rank: 0, count: 500, last: 1 })) : [] }), sessions: () => ({ items: r.run.sessions ? [{ ...SESSION, targets: 1 }] : [], next_page_token: null }) }[p[2]]?.()
  }
  if (p[0] === 'sessions' && ['s1', 's2'].includes(p[1])) {
    if (p.length === 2) return { ...SESSION, session: p[1], name: p[1] }
    if (p[2] === 'report') return REPORT
    if (p[2] === 'tools') return p[3] ? { kernel_stats: OPS, summary: { kind: 'xspace', planes: 3, events: 542, total_busy_ps: 7e9 } }[p[3]] : { tools: [{ name: 'summary', title: 'Summary' }, { name: 'kernel_stats', title: 'Kernels' }, { name: 'trace_viewer', title: 'Trace viewer' }] }
    if (p[2] === 'trace' && !p[3]) return { ...PART(p[1]), origin_ns: ns(9000), start_ps: 0, end_ps: END, device_start_ps: D0 + 1.9 * MS, device_end_ps: D0 + 34 * MS, targets: [{ target: 'host-00', host: 'host-00', planes: [{ name: '/host:CPU', kind: 'host', lines: [{ line: 3, name: 'python', events: LINES[3].length, max_depth: 2, busy_ps: 1, partial: p[1] === 's2' && asked <= 2 }] }, { name: '/device:GPU:7', kind: 'device', lines: [{ line: 1, name: 'Stream 1 kernels', events: LINES[1].length, max_depth: 0, busy_ps: 1 }] }, { name: '/device:GPU:0', kind: 'device', lines: [{ line: 2, name: 'Copy stream 7', events: LINES[2].length, max_depth: 0, busy_ps: 1 }] }], notes: [{ code: 'bad_event', message: 'events with impossible times were left out', count: 3 }, { code: 'profiler_warning', message: '2 events without an end were closed at byte 4096', count: 1 }, { code: 'line_far_away', message: 'a line is a day away from the others', count: 1 }] }] }
    if (p[3] === 'flows') return { flows: q.get('line') === '1' ? [{ kind: 'launch', begins_here: false, line: 3, index: 3, name: 'EnqueueExecution', start_ps: D0 + 0.7 * MS, dur_ps: 1.9 * MS, depth: 2 }] : [], total: q.get('line') === '1' ? 1 : 0 }
    if (p[3] === 'tile') return tile(q)
    if (p[3] === 'select') return select(Number(q.get('from_ps')), Number(q.get('to_ps')))
    if (p[3] === 'event') { const e = LINES[q.get('line')][q.get('index')]; return { name: e.name, start_ps: e.start, dur_ps: e.dur, depth: e.depth, stats: { correlation_id: 17, grid: '256,1,1' }, metadata: {} } }
    if (p[3] === 'search') { const hits = Object.entries(LINES).flatMap(([line, l]) => l.map((e, index) => ({ target: 'host-00', line: Number(line), index, name: e.name, start_ps: e.start, dur_ps: e.dur }))).filter(h => h.name.includes(q.get('q'))); return { hits: hits.slice(0, Number(q.get('limit'))), total: hits.length } }
  }
}
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.woff2': 'font/woff2' }
export const server = createServer((request, response) => {
  const url = new URL(request.url, 'http://x'), json = (status, body, headers = {}) => { response.writeHead(status, { 'Content-Type': status < 400 ? 'application/json' : 'application/problem+json', ...headers }); response.end(JSON.stringify(body)) }
  if (url.pathname === '/api/v1/login') {
    let text = ''
    request.on('data', d => { text += d }).on('end', () => (JSON.parse(text).token === 'fixture' ? json(200, {}, { 'Set-Cookie': 'tacho=fixture; HttpOnly; SameSite=Strict; Path=/' }) : json(401, { title: 'Unauthorized', status: 401, code: 'unauthorized' })))
    return
  }
  if (url.pathname.startsWith('/api/v1/')) {
    if (!/tacho=fixture/.test(request.headers.cookie ?? '')) return json(401, { title: 'Unauthorized', status: 401, code: 'unauthorized' })
    if (url.pathname.endsWith('/stream')) { response.writeHead(200, { 'Content-Type': 'text/event-stream' }); response.write(': hello\n\n'); return }
    const body = answer(url.pathname.slice(8), url.searchParams)
    return body ? json(200, body) : json(404, { title: 'Not found', status: 404, code: 'not_found', detail: 'No such thing here.' })
  }
  let file = normalize(join(dist, url.pathname))
  if (!file.startsWith(dist) || !extname(file) || !existsSync(file)) file = join(dist, 'index.html')
  response.writeHead(200, { 'Content-Type': TYPES[extname(file)] ?? 'application/octet-stream', 'Content-Security-Policy': CSP })
  response.end(readFileSync(file))
})
if (process.argv[1] === fileURLToPath(import.meta.url)) server.listen(Number(process.argv[2] ?? 7490), '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/#token=fixture`))
