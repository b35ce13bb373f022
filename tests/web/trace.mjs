// SPDX-License-Identifier: Apache-2.0
// The trace view with WebGL2 and on a 2-D canvas: the same pixels, at every place of the picture, in three views.
//   node tests/web/trace.mjs URL TOKEN RUN SESSION
import { api, base, check, done, launch, open, session, settle, shots } from './browser.mjs'

const browser = await launch('software')
const { page, noise } = await open(browser, 'light', 1440, 900)
const trace = await api(page, `sessions/${session}/trace`)
// Decodes pictures: the page's own policy lets it load none, and a second page would take this one's frames.
const second = await launch(), reader = await second.newPage()
async function pixels(view, draw, theme) {
  await page.emulateMedia({ colorScheme: theme })
  await page.goto(`${base}/sessions/${session}/trace?z=${view}${draw ? '&draw=' + draw : ''}`)
  await page.waitForSelector('canvas.under'); await settle(page)
  const kind = await page.evaluate(() => document.querySelector('canvas.under').dataset.surface)
  // Only the rectangles: text and marks are on the canvas above.
  await page.evaluate(() => { document.querySelector('canvas.over-text').style.visibility = 'hidden' })
  return { kind, png: (await page.locator('.stage').screenshot({ path: `${shots}trace-${kind}-${theme}.png` })).toString('base64') }
}
const compare = (a, b) => reader.evaluate(async list => {
  const read = async text => {
    const image = new Image()
    image.src = 'data:image/png;base64,' + text
    await image.decode()
    const c = new OffscreenCanvas(image.width, image.height), x = c.getContext('2d')
    x.drawImage(image, 0, 0)
    return new Uint32Array(x.getImageData(0, 0, c.width, c.height).data.buffer)
  }
  const [p, q] = await Promise.all(list.map(read))
  return { of: p.length, same: p.length === q.length, other: p.reduce((n, v, k) => n + Number(v !== q[k]), 0), colors: new Set(p).size }
}, [a, b])
const device = trace.device_start_ps ?? trace.start_ps, end = trace.device_end_ps ?? trace.end_ps, span = Math.max(1, end - device)
const views = [`${trace.start_ps},${Math.max(1, trace.end_ps - trace.start_ps)}`, `${device},${span}`, `${Math.round(device + span / 3)},${Math.max(1, Math.round(span / 40))}`]
for (const [i, view] of views.entries()) {
  const theme = i === 1 ? 'dark' : 'light', gl = await pixels(view, '', theme), flat = await pixels(view, '2d', theme)
  check(gl.kind === 'webgl2' && flat.kind === '2d', 'one picture by each back end', `${gl.kind} ${flat.kind}`)
  const { of, same, other, colors } = await compare(gl.png, flat.png)
  check(same, 'both of one size')
  check(other === 0, `both back ends draw the same rectangles: view ${i}`, `${other} of ${of} pixels differ`)
  check(i === 2 || colors > 3, `there are rectangles: view ${i}`, String(colors))
}
// A link that searches.
{
  const hit = (await api(page, `sessions/${session}/trace/search?q=e&limit=1`)).hits[0]
  const view = `${Math.round(hit.start_ps - hit.dur_ps)},${hit.dur_ps * 3}`
  await page.goto(`${base}/sessions/${session}/trace?z=${view}&draw=2d&find=${encodeURIComponent(hit.name)}`)
  await page.waitForSelector('dl.event'); await settle(page)
  check((await page.locator('.pane h3').innerText()) === hit.name, 'a link with find= selects the event')
}
// The GPU may be taken away: the view goes on without it.
{
  await page.goto(`${base}/sessions/${session}/trace`); await page.waitForSelector('canvas.under[data-surface=webgl2]'); await settle(page)
  await page.evaluate(() => document.querySelector('canvas.under').getContext('webgl2').getExtension('WEBGL_lose_context').loseContext())
  await page.waitForSelector('canvas.under[data-surface="2d"]'); await settle(page)
  const colors = await page.evaluate(() => { const c = document.querySelector('canvas.under'); return new Set(new Uint32Array(c.getContext('2d').getImageData(160, 30, c.width - 160, c.height - 30).data.buffer)).size })
  check(colors > 3, 'a lost GPU: the 2-D canvas draws on', String(colors))
}
// What a pan draws: counted, so that it holds on any machine. Names of lines stay; texts are measured once; a frame is
// one draw, however many keys; at an end nothing is drawn. The tiles of where one was are not asked for again.
{
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, storageState: await page.context().storageState() }), p = await context.newPage()
  await p.addInitScript(() => {
    const n = { names: 0, text: 0, measured: 0, uploads: 0, bytes: 0 }
    globalThis.counted = n
    const wrap = (of, name, f) => { const was = of.prototype[name]; of.prototype[name] = function (...a) { f(this, a); return was.apply(this, a) } }
    wrap(CanvasRenderingContext2D, 'fillText', c => { c.canvas.className.includes('names') ? n.names++ : n.text++ })
    wrap(CanvasRenderingContext2D, 'measureText', () => { n.measured++ })
    wrap(WebGL2RenderingContext, 'bufferData', (_, a) => { n.uploads++; n.bytes = Math.max(n.bytes, a[1].byteLength) })
  })
  await p.goto(`${base}/sessions/${session}/trace?z=${views[1]}`); await p.waitForSelector('canvas.under[data-surface=webgl2]')
  let tiles = 0
  const calm = async () => { let last = -1; for (let i = 0; i < 60 && last !== tiles; i++) { last = tiles; await p.waitForTimeout(400) } }
  p.on('request', r => { if (r.url().includes('/trace/tile')) tiles++ })
  await calm(); await p.locator('canvas.over-text').focus()
  // Four keys in one frame, there and back.
  const walk = keys => p.evaluate(async list => {
    const c = document.querySelector('canvas.over-text'), n = globalThis.counted
    Object.assign(n, { names: 0, text: 0, measured: 0, uploads: 0, bytes: 0 })
    let frames = 0
    for (const key of list) {
      for (let i = 0; i < 4; i++) c.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))
      await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame); frames += 2
    }
    return { ...n, frames }
  }, keys)
  const keys = ['d', 'd', 'a', 'a']
  const first = await walk(keys); await calm(); tiles = 0
  const again = await walk(keys); await calm()
  console.log(`trace: a pan of ${again.frames} frames: ${again.uploads} draws of at most ${again.bytes} bytes, ${again.text} texts, ${again.measured} measured (${first.measured} at first), ${tiles} tiles`)
  check(again.uploads > 0 && again.uploads <= again.frames, 'a frame is drawn once', `${again.uploads} of ${again.frames}`)
  check(again.bytes > 0 && again.bytes % 12 === 0 && again.bytes <= 12 * 20000, 'a draw sends twelve bytes a rectangle, 20000 at most', String(again.bytes))
  check(again.names === 0, 'a pan leaves the names of the lines alone', String(again.names))
  check(again.text > 0 && again.measured === 0, 'no text is measured twice', `${again.measured} of ${again.text}`)
  check(tiles === 0, 'no tile is asked for twice', String(tiles))
  await walk(['s', 's', 's', 's', 's', 's', 's', 's']); await calm()
  const end = await walk(['s', 's'])
  check(end.uploads === 0, 'zooming out at the end draws nothing', String(end.uploads))
  await context.close()
}
// How long a frame's drawing takes, printed, never asserted.
{
  await page.goto(`${base}/sessions/${session}/trace?z=${views[1]}`); await page.waitForSelector('canvas.under'); await settle(page)
  await page.locator('canvas.over-text').focus()
  const frames = await page.evaluate(async () => {
    const out = []
    let last = performance.now()
    for (let i = 0; i < 60; i++) {
      document.querySelector('canvas.over-text').dispatchEvent(new KeyboardEvent('keydown', { key: i % 2 ? 'a' : 'd', bubbles: true }))
      await new Promise(requestAnimationFrame)
      const now = performance.now()
      out.push(now - last); last = now
    }
    return out.sort((a, b) => a - b)
  })
  console.log(`trace: a frame takes ${frames[30].toFixed(1)} ms at the median, ${frames[57].toFixed(1)} ms at p95 (software)`)
}
check(noise.filter(n => !/context lost|CONTEXT_LOST/i.test(n)).length === 0, 'quiet: the trace', noise.slice(0, 3).join('; '))
await Promise.all([browser.close(), second.close()])
done()
