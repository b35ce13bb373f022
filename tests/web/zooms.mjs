// SPDX-License-Identifier: Apache-2.0
// 200 zooms and pans over a large profile: how many rectangles and bytes each frame takes, and that nothing vanishes:
// the events of each frame and of each tile are as many as begin there. The truth is a file of starts, or the tool that
// lists single events, which reads no levels.
//   node tests/web/zooms.mjs URL TOKEN RUN SESSION STARTS|- EVENTS
import { readFileSync } from 'node:fs'
import { api, base, check, done, launch, open, session, settle, shots } from './browser.mjs'

const [file, total] = [process.argv[6], Number(process.argv[7])], FRAMES = 200, TILE_BYTES = 65536
// So wide that the 2-D canvas's budget of rectangles is too small for the finest tiles.
const browser = await launch(), { page, noise, context } = await open(browser, 'light', 2400, 1200)
// The session's answer takes until the index is made when the profile is a large one.
await page.goto(`${base}/sessions/${session}/trace`); await page.waitForSelector('canvas.under', { timeout: 120e3 })
let trace = await api(page, `sessions/${session}/trace`)
const began = Date.now()
if (trace.partial) {
  await page.waitForSelector('.note'); await page.screenshot({ path: shots + 'zooms-partial.png' })
  console.log(`zooms: a part is shown: ${await page.locator('.note').innerText()}`)
  await page.waitForSelector('.note', { state: 'detached', timeout: 540e3 })
  console.log(`zooms: all of it after ${((Date.now() - began) / 1000).toFixed(0)} s`)
  trace = await api(page, `sessions/${session}/trace`)
}
const lines = trace.targets.flatMap(x => x.planes.flatMap(p => p.lines.map(l => ({ ...l, target: x.target, plane: p.name }))))
check(lines.reduce((n, l) => n + l.events, 0) === total, 'the lines hold all events', `${lines.reduce((n, l) => n + l.events, 0)} ${total}`)

// How many events begin in [a, b) of the session.
const starts = file === '-' ? null : new Float64Array(new Uint8Array(readFileSync(file)).buffer)
const shift = starts ? trace.start_ps - starts[0] : 0
const below = at => { let lo = 0, hi = starts.length; while (lo < hi) { const m = (lo + hi) >> 1; if (starts[m] + shift < at) lo = m + 1; else hi = m } return lo }
const truth = (a, b) => below(Math.max(a, b)) - below(a)

// Every tile that comes: its bytes on the wire, and its events.
const tiles = []
page.on('response', r => {
  if (!r.url().includes('/trace/tile') || !r.ok()) return
  const one = { url: r.url(), bytes: 0, events: 0, done: null }
  one.done = Promise.all([r.request().sizes().then(s => { one.bytes = s.responseBodySize }), r.json().then(t => {
    const from = t.position * 1024 * 2 ** t.level
    Object.assign(one, { from, to: from + 1024 * 2 ** t.level, bucket: t.bucket_ps, lines: t.lines.length, answer: t })
    for (const l of t.lines) one.events += l.events.filter(e => e[0] >= from).length + l.cells.reduce((n, c) => n + c[2], 0)
  })]).catch(() => {}) // taken back while it came
  tiles.push(one)
})
const canvas = page.locator('canvas.over-text'), box = await canvas.boundingBox()
/** A key, and the frame that shows all of where it leads. */
const press = key => page.evaluate(async key => {
  const c = document.querySelector('canvas.over-text'), u = document.querySelector('canvas.under'), next = () => new Promise(requestAnimationFrame), t0 = performance.now()
  c.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))
  await next(); await next()
  const first = performance.now() - t0
  for (let i = 0; i < 2000 && !u.dataset.frame?.endsWith(',1'); i++) await next()
  const [a, b, bucket, rects, touched, inside, complete] = u.dataset.frame.split(',').map(Number)
  return { a, b, bucket, rects, touched, inside, complete, first, whole: performance.now() - t0, kind: u.dataset.surface, wide: u.width, high: u.height }
}, key)

let seed = 11
const draw = n => { seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0; return Math.floor(seed / 2 ** 32 * n) }
await canvas.focus(); await page.keyboard.press('Escape'); await page.getByRole('button', { name: 'Fit all' }).click(); await settle(page); await canvas.focus()
const all = await press('s')
if (starts) check(all.touched === total, 'zoomed out, every event is in the picture', `${all.touched} of ${total}`)
const depths = 64, frames = [], wrong = []
for (let i = 0; i < FRAMES; i++) {
  // In by a few thousand times, aside, and nearly out again: with the pointer anywhere.
  const k = i % 50, key = k < 23 ? 'w' : k < 27 || k > 46 ? 'ad'[draw(2)] : 's'
  await page.mouse.move(box.x + 160 + draw(box.width - 170), box.y + 12 + draw(8))
  const before = tiles.length, f = await press(key)
  f.asked = tiles.length - before; f.from = before
  frames.push(f)
  if (!f.complete) wrong.push(`frame ${i} never was complete`)
  if (starts && (f.inside > truth(f.a - f.bucket, f.b + f.bucket) || f.touched < truth(f.a + f.bucket, f.b - f.bucket))) wrong.push(`frame ${i} ${f.a} to ${f.b}: ${f.inside} to ${f.touched} events, ${truth(f.a, f.b)} begin there`)
}
const sorted = (list, at) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * at))]
await Promise.all(tiles.map(t => t.done))
check(wrong.length === 0, 'each frame has the events that begin in it', wrong.slice(0, 3).join('; '))
const most = { webgl2: 20000, '2d': 6000 }[frames[0].kind], crowded = frames.filter(f => f.rects > Math.min(most, 2 * f.wide * depths))
check(crowded.length === 0, 'rectangles are bounded by pixels', crowded.slice(0, 3).map(f => f.rects).join())
check(sorted(frames.map(f => f.rects), 0.5) > 30, 'half of the frames show more than a few events', String(sorted(frames.map(f => f.rects), 0.5)))
const came = tiles.filter(t => t.bytes > 0 && t.to)
check(came.length > 20, 'tiles came', String(came.length))
const large = came.filter(t => t.bytes > TILE_BYTES)
check(large.length === 0, 'no tile is over 64 kB', large.slice(0, 3).map(t => `${t.bytes} ${t.url}`).join('; '))
if (starts) {
  const off = came.filter(t => t.lines === lines.length && (t.events > truth(t.from - t.bucket, t.to + t.bucket) || t.events < truth(t.from + t.bucket, t.to - t.bucket)))
  check(off.length === 0 && came.some(t => t.lines === lines.length), 'each tile has the events that begin in it', off.slice(0, 3).map(t => `${t.events} of ${truth(t.from, t.to)}: ${t.url}`).join('; '))
} else {
  // Some lines of some tiles, from deep ones to wide ones, against the tool that lists events.
  const picked = [...came].sort((a, b) => a.bucket - b.bucket).filter((_, i) => i % Math.ceil(came.length / 12) === 0)
  for (const t of picked) {
    const target = new URL(t.url).searchParams.get('target'), one = t.answer.lines.map(l => ({ ...l, n: l.events.filter(e => e[0] >= t.from).length + l.cells.reduce((n, c) => n + c[2], 0) })).sort((a, b) => b.n - a.n)[0]
    const line = lines.find(l => l.line === one.line && l.target === target), same = lines.filter(l => l.plane === line.plane && l.name === line.name), exact = s => '^' + s.replace(/[^\w ]/g, c => `[${c}]`) + '$'
    const count = async (from, to) => to <= from ? 0 : Number((await api(page, `sessions/${session}/tools/list_xplane_events?` + new URLSearchParams({ format: 'json', plane_regex: exact(line.plane), line_regex: exact(line.name), start_time_ps: Math.max(0, from), end_time_ps: to, max_events: 1 }))).values.total_matched) / same.length
    const [least, greatest] = [await count(t.from + t.bucket, t.to - t.bucket), await count(t.from - t.bucket, t.to + t.bucket)]
    check(one.n >= least && one.n <= greatest, 'a line of a tile has the events that begin in it', `${one.n}, ${least} to ${greatest}: ${t.url}`)
  }
}
const perFrame = frames.map(f => tiles.slice(f.from, f.from + f.asked).reduce((n, t) => n + t.bytes, 0))
console.log(`zooms: ${total} events, ${frames.length} frames (${frames[0].kind}): rectangles median ${sorted(frames.map(f => f.rects), 0.5)}, at most ${sorted(frames.map(f => f.rects), 1)}; bytes a frame median ${sorted(perFrame, 0.5)}, at most ${sorted(perFrame, 1)}; ${came.length} tiles, the largest ${Math.max(...came.map(t => t.bytes))} bytes`)
console.log(`zooms: to the first picture median ${sorted(frames.map(f => f.first), 0.5).toFixed(0)} ms, p95 ${sorted(frames.map(f => f.first), 0.95).toFixed(0)} ms; to the whole one median ${sorted(frames.map(f => f.whole), 0.5).toFixed(0)} ms, p95 ${sorted(frames.map(f => f.whole), 0.95).toFixed(0)} ms (software)`)
check(Math.max(...perFrame) <= 12 * TILE_BYTES, 'a frame asks for twelve tiles at most at once', String(Math.max(...perFrame)))
const heap = await page.evaluate(() => performance.memory?.usedJSHeapSize ?? 0)
check(heap <= 150e6, 'the heap stays within 150 MB', String(heap))
await page.screenshot({ path: `${shots}zooms-${total}.png`, fullPage: true })
check(noise.length === 0, 'quiet: zooms', noise.slice(0, 3).join('; '))
await context.close(); await browser.close()
done()
