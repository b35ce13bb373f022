// SPDX-License-Identifier: Apache-2.0
// What only invented data has: days of a run with losses, and a session's findings whose evidence leads on.
//   node tests/web/states.mjs URL TOKEN RUN SESSION
import { accessible, api, base, check, done, launch, open, run, session, settle, shots, until } from './browser.mjs'

const browser = await launch()
for (const theme of ['light', 'dark']) {
  const { page, noise, context } = await open(browser, theme, 1440, 900)
  for (const path of ['/runs', `/runs/${run}`, `/sessions/${session}/report`]) {
    await page.goto(base + path); await settle(page)
    await accessible(page, `${path} ${theme}`)
    await page.screenshot({ path: `${shots}states${path.replace(/\W+/g, '-')}-${theme}.png`, fullPage: true })
    check(await page.locator('[role=alert] h2').count() === 0, `no error shown: ${path} ${theme}`)
  }
  check(noise.length === 0, `quiet: states ${theme}`, noise.slice(0, 3).join('; '))
  await context.close()
}
const { page } = await open(browser, 'light', 1440, 900), report = await api(page, `sessions/${session}/report`)
await page.goto(`${base}/sessions/${session}/report`); await page.waitForSelector('.findings li'); await settle(page)
check(await page.locator('.findings li').count() === report.findings.length, 'each finding is shown')
const tools = (await api(page, `sessions/${session}/tools`)).tools.map(t => t.name)
for (const [i, f] of report.findings.entries()) for (const [k, e] of f.evidence.entries()) {
  const link = page.locator('.findings li').nth(i).locator('.ev').nth(k), to = await link.getAttribute('href')
  check(tools.includes(e.tool) ? to.includes('/' + e.tool) : true, `evidence leads to its tool: ${e.tool}`, String(to))
}
const spanned = report.findings.findIndex(f => f.span)
check(spanned >= 0, 'a finding has a span')
const s = report.findings[spanned].span, want = `${s.from_ps},${s.to_ps - s.from_ps}`
await page.locator('.findings li').nth(spanned).locator('button').click()
const zoom = () => new URL(page.url()).searchParams.get('z')
await until(page, async () => zoom() === want)
const z = zoom()
check(z === want, 'a finding zooms the trace to its span', z)
// A part is shown, and said to be one, until the index is made; then it is asked for anew.
{
  let tiles = 0
  page.on('request', r => { if (r.url().includes('/s2/trace/tile')) tiles++ })
  await page.goto(`${base}/sessions/s2/trace`); await page.waitForSelector('.note')
  check(/Indexing: 2 of 3 lines/.test(await page.locator('.note').innerText()), 'a part says that it is one', await page.locator('.note').innerText())
  await settle(page); await accessible(page, 'a part of a trace'); await page.screenshot({ path: shots + 'states-partial.png', fullPage: true })
  const before = tiles
  await page.waitForSelector('.note', { state: 'detached', timeout: 15000 }); await settle(page)
  check(tiles > before && before > 0, 'the tiles of a part are forgotten', `${before} ${tiles}`)
}
// What was repaired: one line, all of it behind it.
{
  const line = page.locator('details.repairs summary'), text = await line.innerText()
  check(/impossible times were left out \(3\)/.test(text) && /at byte 4096/.test(text) && /and 1 more/.test(text), 'what was repaired is one line', text)
  await line.click()
  check(await page.locator('details.repairs li').count() === 3, 'opened, all of it')
  await accessible(page, 'repairs, open'); await page.screenshot({ path: shots + 'states-repairs.png' })
}
await browser.close()
done()
