// SPDX-License-Identifier: Apache-2.0
// The trace view's search in its three modes, its walk over hits, and its walk along flows: against the API.
//   node tests/web/find.mjs URL TOKEN RUN SESSION
import { accessible, api, base, check, done, launch, open, session, settle, shots, until } from './browser.mjs'

const browser = await launch(), { page, noise, context } = await open(browser, 'light', 1440, 900)
const search = q => api(page, `sessions/${session}/trace/search?` + new URLSearchParams(q))
await page.addInitScript(() => {
  globalThis.curves = 0
  const was = CanvasRenderingContext2D.prototype.bezierCurveTo, clear = CanvasRenderingContext2D.prototype.clearRect
  CanvasRenderingContext2D.prototype.bezierCurveTo = function (...a) { globalThis.curves++; return was.apply(this, a) }
  CanvasRenderingContext2D.prototype.clearRect = function (...a) { globalThis.curves = 0; return clear.apply(this, a) } // a frame begins
})
await page.goto(`${base}/sessions/${session}/trace`); await page.waitForSelector('canvas.over-text'); await settle(page)
const found = page.locator('#trace-found'), box = page.locator('#trace-find'), mode = page.getByLabel('How names are compared'), least = page.getByLabel('Least duration')
const digits = text => (text.match(/^([\d\u2009]+) of ([\d\u2009]+)/) ?? []).slice(1).map(x => Number(x.replace(/\D/g, '')))
const shown = async () => digits(await found.innerText())

// A name of the profile, and what each mode makes of it.
const any = (await search({ q: 'e', limit: 1 })).hits[0], word = any.name.slice(0, Math.min(6, any.name.length))
const long = (await search({ q: 'e', limit: 1000 })).hits.map(h => h.dur_ps).sort((a, b) => a - b).at(-1)
for (const [how, text, q] of [['substring', word.slice(1), { q: word.slice(1) }], ['prefix', word, { q: word, mode: 'prefix' }], ['regex', '^' + word[0].replace(/\W/g, '.') + '.*', { q: '^' + word[0].replace(/\W/g, '.') + '.*', mode: 'regex' }]]) {
  await box.fill(text); await mode.selectOption(how); await box.press('Enter')
  const total = (await search({ ...q, limit: 1 })).total
  await until(page, async () => (await shown())[1] === total && (await shown())[0] >= 1)
  check((await shown())[1] === total && total > 0, `as many hits as the API has: ${how}`, `${await found.innerText()} ${total}`)
}
await mode.selectOption('substring'); await box.fill('e'); await least.fill(`${long} ps`); await box.press('Enter')
const few = (await search({ q: 'e', min_dur_ps: long, limit: 1000 }))
await until(page, async () => (await shown())[1] === few.total)
check((await shown())[1] === few.total && few.total > 0, 'a least duration leaves the long ones', `${await found.innerText()} ${few.total}`)
check(new URL(page.url()).searchParams.get('least') === `${long} ps`, 'what was asked for is in the address', page.url())
await least.fill('ten'); await least.press('Enter'); await page.waitForSelector('#trace-found [role=alert]')
check(/“ten” is no duration/.test(await found.innerText()), 'a bad duration says so', await found.innerText())

// A bad expression: one line, and the page goes on.
await least.fill(''); await mode.selectOption('regex'); await box.fill('('); await box.press('Enter')
await until(page, async () => /regular expression/.test(await found.innerText()))
check(/regular expression/.test(await found.innerText()) && (await found.boundingBox()).height < 24 && await page.locator('[role=alert] h2').count() === 0, 'a bad expression is said in one line', await found.innerText())
await accessible(page, 'a bad expression'); await page.screenshot({ path: shots + 'trace-bad-expression.png' })
noise.length = 0 // the browser notes the 400

// Enter walks on, Shift+Enter back, and n goes on outside of the box.
await mode.selectOption('substring'); await box.fill('e'); await box.press('Enter')
const hits = await search({ q: 'e', limit: 1000 }), selected = () => page.locator('.pane h3').innerText()
await until(page, async () => (await shown())[0] === 1)
for (const [press, want] of [['Enter', 2], ['Enter', 3], ['Shift+Enter', 2]]) {
  await box.press(press)
  await until(page, async () => (await shown())[0] === want)
  check((await shown())[0] === want && await selected() === hits.hits[want - 1].name, `${press} walks to hit ${want}`, `${await found.innerText()} ${await selected()}`)
}
await page.locator('canvas.over-text').focus(); await page.keyboard.press('n')
await until(page, async () => (await shown())[0] === 3)
check((await shown())[0] === 3, 'n walks on', await found.innerText())

// Flows: an event that has some; its arrows, and the walk along them.
const flowsOf = h => api(page, `sessions/${session}/trace/flows?target=${encodeURIComponent(h.target)}&line=${h.line}&index=${h.index}`)
let from = null, flows = null
for (const h of (await search({ q: 'a', limit: 1000 })).hits.slice(0, 400)) { flows = await flowsOf(h); if (flows.flows.length) { from = h; break } }
check(from !== null, 'an event has flows')
if (from) {
  const view = `${Math.round(from.start_ps - from.dur_ps)},${Math.max(100, from.dur_ps * 3)}`
  await page.goto(`${base}/sessions/${session}/trace?z=${view}&mode=prefix&find=${encodeURIComponent(from.name)}`); await page.waitForSelector('dl.event'); await settle(page)
  // The first event of that name, which is the one whose flows were asked for when no other comes before it.
  const first = (await search({ q: from.name, mode: 'prefix', limit: 1 })).hits[0], ends = (await flowsOf(first)).flows
  await page.waitForSelector('ul.flows'); await until(page, () => page.evaluate(n => globalThis.curves >= n, ends.length))
  check(await page.evaluate(() => globalThis.curves) === ends.length, 'an arrow for each flow', `${await page.evaluate(() => globalThis.curves)} ${ends.length}`)
  check(await page.locator('ul.flows li').count() === Math.min(20, ends.length), 'each flow is a line of the pane')
  await accessible(page, 'flows of an event'); await page.screenshot({ path: shots + 'trace-flows.png', fullPage: true })
  const back = !ends.some(f => f.begins_here), side = ends.filter(f => f.begins_here !== back).sort((a, b) => (back ? b.start_ps - a.start_ps : a.start_ps - b.start_ps))
  await page.locator('canvas.over-text').focus(); await page.keyboard.press(back ? '[' : ']')
  await until(page, async () => await selected() === side[0].name)
  check(await selected() === side[0].name, 'a bracket walks to the next event of the flow', `${await selected()} ${side[0].name}`)
  // From there the same flow leads back.
  await settle(page); await page.waitForSelector('ul.flows')
  const there = (await flowsOf({ ...first, line: side[0].line, index: side[0].index })).flows.filter(f => f.begins_here === back).sort((a, b) => (back ? a.start_ps - b.start_ps : b.start_ps - a.start_ps))
  await page.keyboard.press(back ? ']' : '[')
  await until(page, async () => await selected() === there[0].name)
  check(await selected() === there[0].name, 'and the other bracket leads on from there', `${await selected()} ${there[0]?.name}`)
}
check(noise.length === 0, 'quiet: search and flows', noise.slice(0, 3).join('; '))
await context.close(); await browser.close()
done()
