// SPDX-License-Identifier: Apache-2.0
// Every page in a real browser: light and dark, wide and narrow. No console error, no request that
// leaves the origin, no finding of axe, breakdowns that add up. Pictures go to build/web-shots.
//   node tests/web/pages.mjs URL TOKEN RUN SESSION
import { readFileSync, readdirSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { accessible, api, base, check, done, launch, open as openIn, root, run, session, settle, shots, token, until } from './browser.mjs'

const browser = await launch(), open = (...how) => openIn(browser, ...how)
const { page: first, context: firstContext } = await open('light', 1440, 900)
const tools = (await api(first, `sessions/${session}/tools`)).tools.map(t => t.name).filter(n => n !== 'trace_viewer')
await firstContext.close()
const pages = [['runs', '/runs'], ...['overview', 'metrics', 'system', 'goodput', 'profiles', 'configs'].map(t => ['run-' + t, `/runs/${run}${t === 'overview' ? '' : '?tab=' + t}`]), ...['report', 'trace', 'files', 'tools', ...tools].map(t => ['session-' + t, `/sessions/${session}/${t}`]), ['nowhere', '/nowhere']]

async function look(theme) {
  const { page, noise, context } = await open(theme, 1440, 900)
  for (const [name, path] of pages) {
    const what = `${name} ${theme}`
    noise.length = 0
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.goto(base + path)
    await settle(page)
    await page.screenshot({ path: `${shots}${name}-${theme}-1440.png`, fullPage: true })
    check(await page.locator('[role=alert] h2').count() === 0, `no error shown: ${what}`)
    check(await page.evaluate(() => document.documentElement.dataset.theme) === theme, `theme: ${what}`)
    await accessible(page, what)
    await page.setViewportSize({ width: 390, height: 844 })
    await settle(page)
    await page.screenshot({ path: `${shots}${name}-${theme}-390.png`, fullPage: true })
    check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `fits 390 px: ${what}`)
    // Contrast was judged wide; narrow, the structure is.
    if (theme === 'light') await accessible(page, what + ' 390')
    check(noise.length === 0, `quiet: ${what}`, noise.slice(0, 3).join('; '))
  }
  await context.close()
}
await Promise.all([look('light'), look('dark')])

// From page to page by links, and back: nothing is asked for that is not there.
{
  const { page, noise, context } = await open('light', 1440, 900)
  await page.goto(base + '/runs'); await page.waitForSelector('tbody tr')
  await page.locator(`a[href="/runs/${run}"]`).first().click(); await page.waitForSelector('.kpis')
  await page.locator(`a[href^="/sessions/${session}"]`).first().click(); await page.waitForSelector('canvas'); await settle(page)
  await page.goBack(); await page.waitForSelector('.kpis'); await settle(page)
  check(noise.length === 0, 'quiet from page to page', noise.slice(0, 3).join('; '))
  await context.close()
}

// Numbers: what is shown adds up to what is shown, and equals the API.
{
  const { page, context } = await open('light', 1440, 900)
  for (const path of [`/runs/${run}`, `/runs/${run}?tab=goodput`]) {
    await page.goto(base + path)
    await page.waitForSelector('table.breakdown')
    const seen = await page.evaluate(() => ({ parts: [...document.querySelectorAll('.breakdown tbody tr')].map(r => [Number(r.dataset.shown), Number(r.dataset.percent)]), total: Number(document.querySelector('.breakdown tfoot tr').dataset.total) }))
    check(seen.parts.length > 0 && seen.parts.reduce((n, p) => n + p[0], 0) === seen.total, `breakdown adds up: ${path}`, JSON.stringify(seen))
    check(Math.round(seen.parts.reduce((n, p) => n + p[1] * 10, 0)) === 1000, `shares add up: ${path}`)
  }
  await page.goto(`${base}/runs/${run}`); await page.waitForSelector('.kpis')
  const ledger = await api(page, `runs/${run}/ledger`), text = await page.locator('.big').innerText()
  const sum = ledger.ledger.reduce((n, p) => n + p.seconds, 0)
  check(Math.abs(sum - ledger.total_elapsed_s) < 1e-6, 'the ledger of the API sums to the wall time', `${sum} ${ledger.total_elapsed_s}`)
  const seconds = t => { const [v, u] = t.split(' '); return { s: 1, ms: 1e-3, 'µs': 1e-6 }[u] * parseFloat(v) }
  const kpi = async label => (await page.locator('.kpis .k', { hasText: label }).locator('.v').innerText())
  const p50 = await kpi('Step time')
  if (ledger.step_time.p50_s < 60) check(Math.abs(seconds(p50) / ledger.step_time.p50_s - 1) < 1e-3, 'step p50 equals the API', `${p50} ${ledger.step_time.p50_s}`)
  check(Number(await kpi('Attempts')) === ledger.attempts_list.length, 'attempts equal the API')
  const rows = page.locator('.breakdown tbody tr')
  for (const p of ledger.ledger.filter(p => p.seconds >= 0.001 && ledger.total_elapsed_s < 60)) {
    const shown = await page.evaluate(c => Number(document.querySelector(`.breakdown tr[data-category="${c}"]`)?.dataset.shown), p.category)
    check(Math.abs(shown / 1000 - p.seconds) <= 0.001, `breakdown equals the API: ${p.category}`, `${shown} ${p.seconds}`)
  }
  check(await rows.count() === ledger.ledger.filter(p => p.seconds > 0).length, 'each category that took time has its row')
  const table = (await api(page, `sessions/${session}/tools`)).tools.map(t => t.name).includes('hlo_stats') && await api(page, `sessions/${session}/tools/hlo_stats?format=json`)
  if (table && table.rows.length) {
    await page.goto(`${base}/sessions/${session}/hlo_stats`); await page.waitForSelector('table:not([role=treegrid]) tbody tr')
    const col = table.columns.findIndex(c => c.name === 'self_time_ps'), cell = page.locator('table:not([role=treegrid]) tbody tr').first().locator('td')
    check(await cell.nth(0).getAttribute('title') === table.rows[0][0] && await cell.nth(col).getAttribute('title') === String(table.rows[0][col]), 'the first row of a tool equals the API')
    check(Math.abs(seconds(await cell.nth(col).innerText()) / (table.rows[0][col] * 1e-12) - 1) < 1e-3, 'its time is shown in the right unit')
    await page.goto(`${base}/sessions/${session}/hlo_stats?q=${encodeURIComponent(table.rows[0][0])}&sort=-occurrences`); await page.waitForSelector('table:not([role=treegrid]) tbody tr')
    const names = await page.locator('tbody td:first-child').evaluateAll(c => c.map(x => x.title))
    check(names.length > 0 && names.length <= table.rows.length && await page.locator('th[aria-sort=descending]').count() === 1, 'a link filters and sorts a table', String(names.length))
  }
  // The operation profile as a tree: its rows are the tool's, its keys those of a treegrid.
  const profile = group => api(page, `sessions/${session}/tools/op_profile?format=json&group_by=${group}`)
  if (table && (await profile('category')).rows?.length > 1) for (const group of ['category', 'program']) {
    const tree = await profile(group), [n, depth, time] = ['name', 'depth', 'self_time_ps'].map(c => tree.columns.findIndex(x => x.name === c))
    await page.goto(`${base}/sessions/${session}/hlo_stats?by=${group}`); await page.waitForSelector('[role=treegrid] tbody tr'); await settle(page)
    check(await page.locator('.ops section.card').count() >= 2, 'the tree stands beside the operations')
    const rows = page.locator('[role=treegrid] tbody tr'), top = rows.first()
    await top.focus(); await page.keyboard.press('ArrowLeft')
    check(await rows.count() === 1 && await top.getAttribute('aria-expanded') === 'false', `the left arrow closes: ${group}`)
    await page.keyboard.press('ArrowRight'); await rows.nth(1).waitFor()
    // Whatever was open stays open: opened are all that are closed, until none is.
    for (let k = 0; k < 300; k++) { const closed = page.locator('[role=treegrid] tr[aria-expanded=false] .twist'); if (!await closed.count()) break; await closed.first().click() }
    const seen = await rows.evaluateAll(r => r.map(x => [Number(x.ariaLevel ?? x.getAttribute('aria-level')), x.querySelector('td').title]))
    const want = tree.rows.slice(0, 500).map(r => [r[depth] + 1, String(r[time])])
    check(JSON.stringify(seen) === JSON.stringify(want), `every row of the tree equals the API: ${group}`, `${seen.length} ${want.length}`)
    const end = tree.rows[Math.min(499, tree.rows.length - 1)][n], focused = () => document.activeElement?.querySelector('.name')?.title
    await top.focus(); await page.keyboard.press('End')
    await until(page, async () => await page.evaluate(focused) === end)
    const last = await page.evaluate(focused)
    check(last === end, `End goes to the last row: ${group}`, String(last))
    await accessible(page, `op_profile by ${group}, all open`)
    await page.screenshot({ path: `${shots}session-tree-${group}.png`, fullPage: true })
  }
  check(Math.abs(parseFloat(text) - ledger.goodput_percent) < 0.06, 'goodput equals the API', `${text} ${ledger.goodput_percent}`)

  // The list: filter, sort, keyboard; the address keeps it.
  await page.goto(base + '/runs'); await page.waitForSelector('tbody tr')
  const many = await page.locator('tbody tr').count()
  await page.keyboard.press('/'); await page.keyboard.type('no run has this name')
  await page.waitForSelector('.state')
  check(page.url().includes('q=no+run'), 'the filter is in the address')
  // The language of `tacho runs list`; a filter that is none says where, and the rows stay.
  const filtered = async text => { await page.goto(`${base}/runs?q=${encodeURIComponent(text)}`); await page.waitForSelector('tbody tr, .state'); await settle(page) }
  await filtered('goodput_percent>=0 hosts=1'); check(await page.locator('tbody tr').count() === (await api(page, 'runs?filter=' + encodeURIComponent('goodput_percent>=0 hosts=1'))).items.length, 'a filter by fields shows what the API has')
  await filtered('NOT hosts:*'); check(await page.locator('tbody tr').count() === 0 && await page.locator('.state').count() === 1, 'a negation that nothing fits')
  await filtered('state = '); check(/value is missing at column 9/.test(await page.locator('.state').innerText()), 'a link with a bad filter says what and where', await page.locator('.state').innerText())
  await page.goto(base + '/runs'); await page.waitForSelector('tbody tr')
  await page.fill('#filter', 'é bogus=3'); await page.waitForSelector('#filter[aria-invalid=true]')
  check(/No field 'bogus'.* at column 3/.test(await page.locator('#filter-help [role=alert]').innerText()) && await page.locator('tbody tr').count() === many, 'a bad filter keeps the rows')
  await accessible(page, 'a bad filter'); await page.screenshot({ path: shots + 'runs-badfilter.png' })
  await page.fill('#filter', 'no run has this name'); await page.waitForSelector('.state')
  await page.getByRole('button', { name: 'Clear the filter' }).click(); await page.waitForSelector('tbody tr')
  check(await page.locator('tbody tr').count() === many, 'clearing the filter brings the rows back')
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  const names = async () => page.locator('tbody td.name a').allInnerTexts(), down = await names()
  await page.reload(); await page.waitForSelector('tbody tr')
  check(JSON.stringify(await names()) === JSON.stringify(down), 'a reload keeps the order')
  await page.locator(`tr[data-run="${run}"] a`).focus(); await page.keyboard.press('Enter')
  await page.waitForSelector('.kpis'); check(page.url().includes('/runs/' + run), 'Enter opens the run')
  await page.goBack(); await page.waitForSelector('tbody tr'); check(new URL(page.url()).pathname === '/runs', 'back returns to the list')

  // A range by dragging over the ledger; f returns.
  await page.goto(`${base}/runs/${run}`); await page.waitForSelector('.strip canvas'); await settle(page)
  const strip = await page.locator('.strip').boundingBox()
  await page.mouse.move(strip.x + strip.width * 0.2, strip.y + 10); await page.mouse.down(); await page.mouse.move(strip.x + strip.width * 0.6, strip.y + 10, { steps: 4 }); await page.mouse.up()
  await page.waitForURL(/from=/); await settle(page)
  const part = await page.evaluate(() => [[...document.querySelectorAll('.breakdown tbody tr')].reduce((n, r) => n + Number(r.dataset.shown), 0), Number(document.querySelector('.breakdown tfoot tr').dataset.total)])
  check(part[0] === part[1] && part[0] > 0, 'the breakdown of a range adds up', part.join(' '))
  await page.screenshot({ path: shots + 'run-range.png', fullPage: true })
  await page.keyboard.press('f'); await page.waitForURL(u => !u.search.includes('from='))
  check(true, 'f returns to the whole run')
  await context.close()
}

// The trace: zoom, select, range, search, table.
{
  const { page, noise, context } = await open('light', 1440, 900)
  await page.goto(`${base}/sessions/${session}/trace`); await page.waitForSelector('canvas.over-text'); await settle(page)
  const canvas = page.locator('canvas.over-text'), label = () => canvas.getAttribute('aria-label')
  const ink = await page.evaluate(() => { const c = document.querySelector('canvas.under'), d = c.getContext('2d').getImageData(160, 40, c.width - 160, c.height - 40).data, seen = new Set(); for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return seen.size })
  check(ink > 8, 'the trace draws events', String(ink))
  const before = await label()
  await canvas.focus(); await page.keyboard.press('w')
  await until(page, async () => await label() !== before && page.url().includes('z='))
  check(await label() !== before && page.url().includes('z='), 'w zooms, and the address says so')
  const there = await label()
  await page.reload(); await page.waitForSelector('canvas.over-text'); await settle(page)
  check(await label() === there, 'a reload shows the same instant')
  await page.getByRole('button', { name: 'Fit all' }).click(); await settle(page)
  await canvas.focus(); await page.keyboard.press('ArrowRight'); await settle(page)
  const picked = await page.locator('dl.event').count()
  check(picked === 1, 'an arrow key selects an event')
  await page.keyboard.press('Escape')
  const box = await canvas.boundingBox()
  await page.getByRole('button', { name: 'Device work' }).click(); await settle(page)
  await page.mouse.move(box.x + 300, box.y + box.height - 6); await page.mouse.down(); await page.mouse.move(box.x + 900, box.y + box.height - 6, { steps: 4 }); await page.mouse.up()
  await page.waitForSelector('table.range'); check(await page.locator('table.range tbody tr').count() > 0, 'a range gives totals by name')
  await page.keyboard.press('Escape')
  const word = (await api(page, `sessions/${session}/trace/search?q=e&limit=1`)).hits[0].name
  await page.keyboard.press('/'); await page.keyboard.type(word); await page.keyboard.press('Enter')
  await page.waitForSelector('dl.event'); check((await page.locator('.pane h3').innerText()) === word, 'search selects the first hit')
  await canvas.focus(); await page.keyboard.press('t'); await page.waitForSelector('table.visible tbody tr')
  check(true, 't shows the table behind the canvas')
  await accessible(page, 'trace with table and selection')
  await page.screenshot({ path: shots + 'trace-selected.png', fullPage: true })
  check(noise.length === 0, 'quiet: working in the trace', noise.slice(0, 3).join('; '))
  await context.close()
}

// Signing in by hand, a wrong token, and a run that is not there.
{
  const { page, context } = await open('light', 1440, 900, false)
  await page.goto(base + '/runs'); await page.waitForSelector('#token')
  await accessible(page, 'sign in')
  await page.screenshot({ path: shots + 'login.png' })
  await page.fill('#token', 'wrong'); await page.keyboard.press('Enter'); await page.waitForSelector('#login-error:not(:empty)')
  check(true, 'a wrong token is refused in place')
  await page.fill('#token', token); await page.keyboard.press('Enter'); await page.waitForSelector('tbody tr'); check(true, 'the token form signs in')
  await page.goto(base + '/runs/nosuchrun00'); await page.waitForSelector('[role=alert]')
  await accessible(page, 'error state'); await page.screenshot({ path: shots + 'error.png' })
  check(await page.getByRole('button', { name: 'Retry' }).count() === 1, 'an error offers Retry')
  await context.close()
}

// Budgets.
{
  const dir = root + 'web/dist/assets/', js = readdirSync(dir).filter(f => f.endsWith('.js')), size = f => gzipSync(readFileSync(dir + f), { level: 9 }).length
  const entry = js.filter(f => readFileSync(root + 'web/dist/index.html', 'utf8').includes(f)).reduce((n, f) => n + size(f), 0), all = js.reduce((n, f) => n + size(f), 0)
  check(entry > 0 && entry <= 90e3, 'entry within 90 kB gzip', String(entry)); check(all <= 250e3, 'all JavaScript within 250 kB gzip', String(all))
  check(!/<script(?![^>]*src=)/.test(readFileSync(root + 'web/dist/index.html', 'utf8')), 'no inline script')
}
await browser.close()
done()
