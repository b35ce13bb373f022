// SPDX-License-Identifier: Apache-2.0
// The pictures of tools: their geometry against the tables of the API, from which it is computed here once more.
//   node tests/web/pictures.mjs URL TOKEN RUN SESSION
import { accessible, api, base, check, done, launch, open, session, settle, until } from './browser.mjs'

const browser = await launch(), { page, noise, context } = await open(browser, 'light', 1440, 900)
const tool = async name => { const d = await api(page, `sessions/${session}/tools/${name}?format=json`); return d.tables ?? [d] }
const to = async name => { await page.goto(`${base}/sessions/${session}/${name}`); await page.waitForSelector('table tbody tr, .state'); await settle(page) }
const objects = x => x.rows.map(r => Object.fromEntries(x.columns.map((c, i) => [c.name, r[i]])))
/** The largest distance of points (x, y) from the straight line through them, in y. */
const bent = points => {
  const n = points.length, mx = points.reduce((s, p) => s + p[0], 0) / n, my = points.reduce((s, p) => s + p[1], 0) / n
  const slope = points.reduce((s, p) => s + (p[0] - mx) * (p[1] - my), 0) / points.reduce((s, p) => s + (p[0] - mx) ** 2, 0)
  return Math.max(...points.map(p => Math.abs(p[1] - my - slope * (p[0] - mx))))
}

// Steps: a bar each, as high as what it is made of; the slowest complete one is marked and leads into the trace.
const steps = objects((await tool('step_budget')).find(x => x.table === 'steps'))
if (steps.length) {
  await to('step_budget')
  const mine = steps.filter(s => s.host === steps[0].host && s.device === steps[0].device), PARTS = ['compute_ps', 'comm_exposed_ps', 'copy_exposed_ps', 'launch_starved_ps', 'blocked_ps', 'launch_latency_ps', 'unknown_ps']
  const bars = await page.locator('.picture svg a').evaluateAll(list => list.map(a => ({ href: a.getAttribute('href'), said: a.getAttribute('aria-label'), mark: a.querySelectorAll('.mark').length, high: [...a.querySelectorAll('rect[fill^="var"]')].map(r => Number(r.getAttribute('height'))) })))
  check(bars.length === mine.length, 'a bar for each step', `${bars.length} ${mine.length}`)
  const sums = mine.map(s => PARTS.reduce((n, p) => n + (s[p] ?? 0), 0)), scale = bars[0].high.reduce((a, b) => a + b, 0) / sums[0]
  check(bars.every((b, i) => Math.abs(b.high.reduce((x, y) => x + y, 0) - scale * sums[i]) < 1), 'bars are as high as their parts', JSON.stringify(bars.map(b => b.high)))
  check(bars.every((b, i) => b.high.length === PARTS.filter(p => mine[i][p]).length), 'a rectangle for each part that is')
  const whole = mine.filter(s => s.complete), slow = whole.length ? Math.max(...whole.map(s => s.duration_ps)) : 0, marked = bars.findIndex(b => b.mark)
  check(whole.length < 2 || mine[marked].duration_ps === slow, 'the slowest complete step is marked', String(marked))
  check(bars.every((b, i) => b.href.endsWith(`/trace?z=${mine[i].start_ps},${mine[i].duration_ps}`)), 'a bar leads to its step')
  const others = [...new Set(steps.map(s => `${s.host} ${s.device}`))]
  if (others.length > 1) {
    await page.getByLabel('Device').selectOption(others[1]); await settle(page)
    check(new URL(page.url()).searchParams.get('of') === others[1], 'the device is in the address')
    await page.reload(); await page.waitForSelector('.picture svg a')
    check(await page.getByLabel('Device').inputValue() === others[1], 'and a reload keeps it')
  }
  await page.locator('.picture svg a').first().focus(); await page.keyboard.press('ArrowRight')
  check(await page.evaluate(() => document.activeElement.getAttribute('aria-label')) === await page.locator('.picture svg a').nth(1).getAttribute('aria-label'), 'the right arrow goes to the next bar')
  await page.keyboard.press('Enter'); await page.waitForSelector('canvas.under')
  check(/\/trace\?z=/.test(page.url()), 'Enter opens the trace', page.url())
}

// Roofline: a dot for each operation that has both numbers, where its logarithms are.
const roof = (await tool('roofline_model')).find(x => x.table === 'roofline_model'), ops = objects(roof)
if (ops.length) {
  await to('roofline_model')
  const at = o => (o.bound_by === 'Compute' && o.hbm_bytes_per_s > 0 ? o.flops_per_s / o.hbm_bytes_per_s : o.bound_intensity_flops_per_byte)
  const want = ops.filter(o => o.flops_per_s > 0 && at(o) > 0).sort((a, b) => b.self_time_ps - a.self_time_ps)
  const dots = await page.locator('.picture svg a').evaluateAll(list => list.map(a => ({ name: a.getAttribute('aria-label').split(': ')[0], x: Number(a.querySelector('circle').getAttribute('cx')), y: Number(a.querySelector('circle').getAttribute('cy')), r: Number(a.querySelector('circle').getAttribute('r')) })))
  check(dots.length === Math.min(400, want.length) && dots.every((d, i) => d.name === want[i].operation), 'a dot for each operation of known cost', `${dots.length} ${want.length}`)
  if (want.length > 2) {
    check(bent(want.map((o, i) => [Math.log10(o.flops_per_s), dots[i].y])) < 0.5, 'a dot stands at its FLOP rate')
    check(bent(want.map((o, i) => [Math.log10(at(o)), dots[i].x])) < 0.5, 'and at its intensity')
    check(bent(want.filter((_, i) => dots[i].r > 2.6).map((o, i) => [Math.sqrt(o.self_time_ps), dots[i].r])) < 0.1, 'its area is its time')
  }
  const rates = new Set(Object.keys(roof.values).filter(k => /^peak_.+_bytes_per_s$/.test(k) && roof.values[k]).map(k => roof.values[k]))
  check(await page.locator('.picture path.roof').count() === rates.size, 'a roof for each rate of a memory')
  await accessible(page, 'roofline')
}

// Memory: as many corners as the table has rows, and a dot at each allocator's peak.
const memory = await tool('memory_profile'), rows = objects(memory.find(x => x.table === 'timeline')), allocators = objects(memory.find(x => x.table === 'allocators'))
if (rows.length) {
  await to('memory_profile')
  const paths = await page.locator('.body svg path').evaluateAll(list => list.map(p => p.getAttribute('d')))
  check(paths.reduce((n, d) => n + d.match(/[MV]/g).length, 0) === rows.length, 'every moment of the table is drawn', `${paths.length} paths`)
  const peaks = await page.locator('.body svg circle').evaluateAll(list => list.map(c => Number(c.getAttribute('cy'))))
  const sorted = allocators.map(a => a.peak_bytes).sort((a, b) => b - a)
  check(peaks.length === sorted.length && peaks.every((y, i) => !i || (y >= peaks[i - 1])), 'a dot at each peak, the largest on top', peaks.join())
  const tops = paths.map(d => Math.min(...[...d.matchAll(/V([\d.]+)/g)].map(m => Number(m[1]))))
  check(tops.every((y, i) => y >= peaks[i] - 0.1), 'no line is above its peak', `${tops} ${peaks}`)
}

// The list of tools: all of them, each a link; a filter by what they say.
{
  const tools = (await api(page, `sessions/${session}/tools`)).tools.filter(x => !/^trace_viewer/.test(x.name))
  await to('tools')
  const links = await page.locator('tbody a').evaluateAll(list => list.map(a => a.getAttribute('href').split('/').at(-1)))
  check(JSON.stringify(links.map(decodeURIComponent)) === JSON.stringify(tools.map(x => x.name)), 'every tool is in the list')
  await page.getByLabel('Filter tools').fill('collective'); await until(page, async () => await page.locator('tbody tr').count() < tools.length)
  check(await page.locator('tbody tr').count() === tools.filter(x => /collective/i.test(`${x.name} ${x.title} ${x.help}`)).length, 'the filter reads what tools say')
}
check(noise.length === 0, 'quiet: pictures', noise.slice(0, 3).join('; '))
await context.close(); await browser.close()
done()
