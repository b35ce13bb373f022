// SPDX-License-Identifier: Apache-2.0
// Every page in a real browser: light and dark, wide and narrow. No console error, no request that
// leaves the origin, no finding of axe, breakdowns that add up. Pictures go to build/web-shots.
//   node tests/web/pages.mjs URL TOKEN RUN SESSION [--all-states]
import { createRequire } from 'node:module'
import { mkdirSync, readFileSync, readdirSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url)), require = createRequire(root + 'web/package.json')
const { chromium } = require('playwright-core')
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')
const [base, token, run, session] = process.argv.slice(2)
const shots = root + 'build/web-shots/'
mkdirSync(shots, { recursive: true })
let passed = 0, failed = 0
function check(ok, what, detail = '') {
  if (ok) passed++
  else { failed++; console.log(`FAIL ${what}${detail ? ': ' + detail : ''}`) }
}
const api = async (page, path) => page.evaluate(async p => (await fetch('/api/v1/' + p)).json(), path)

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--no-first-run', '--disable-sync'] })
async function open(theme, width, height, signIn = true) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, bypassCSP: false }), page = await context.newPage(), noise = []
  page.on('console', m => { if (['error', 'warning'].includes(m.type())) noise.push(m.text()) })
  page.on('pageerror', e => noise.push(String(e)))
  page.on('request', r => { if (!r.url().startsWith(base) && !/^(data|blob|about):/.test(r.url())) noise.push('left the origin: ' + r.url()) })
  if (signIn) { await page.goto(`${base}/runs#token=${token}`); await page.waitForSelector('tbody tr') ; check(!page.url().includes('token'), 'the token is cleaned from the address') }
  return { page, noise, context }
}
async function accessible(page, what) {
  // Script injected by the test only: the page itself may run none.
  const result = await page.evaluate(source => { const f = new Function(source + '; return axe'); return f().run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }) }, axe).catch(async () => {
    const cdp = await page.context().newCDPSession(page)
    await cdp.send('Runtime.evaluate', { expression: axe })
    const r = await cdp.send('Runtime.evaluate', { expression: "axe.run(document,{runOnly:['wcag2a','wcag2aa','wcag21a','wcag21aa','wcag22aa']}).then(r=>JSON.stringify(r.violations.map(v=>({id:v.id,nodes:v.nodes.map(n=>({html:n.html,any:n.any.map(a=>a.message)}))}))))", awaitPromise: true, returnByValue: true })
    return { violations: JSON.parse(r.result.value) }
  })
  check(result.violations.length === 0, `axe: ${what}`, result.violations.map(v => `${v.id} ${v.nodes.slice(0, 2).map(n => n.html.slice(0, 140) + ' ' + (n.any?.[0]?.message ?? n.any?.[0] ?? '')).join(' | ')}`).join('; '))
}
const settle = page => page.waitForLoadState('networkidle', { timeout: 5000 }).catch(() => {}).then(() => page.waitForTimeout(250))

const { page: first, context: firstContext } = await open('light', 1440, 900)
const tools = (await api(first, `sessions/${session}/tools`)).tools.map(t => t.name).filter(n => n !== 'trace_viewer')
await firstContext.close()
const pages = [['runs', '/runs'], ...['overview', 'metrics', 'system', 'goodput', 'profiles', 'configs'].map(t => ['run-' + t, `/runs/${run}${t === 'overview' ? '' : '?tab=' + t}`]), ...['report', 'trace', 'files', ...tools].map(t => ['session-' + t, `/sessions/${session}/${t}`]), ['nowhere', '/nowhere']]

for (const theme of ['light', 'dark']) for (const [width, height] of [[1440, 900], [390, 844]]) {
  const { page, noise, context } = await open(theme, width, height)
  for (const [name, path] of pages) {
    const what = `${name} ${theme} ${width}`
    noise.length = 0
    await page.goto(base + path)
    await settle(page)
    await page.screenshot({ path: `${shots}${name}-${theme}-${width}.png`, fullPage: true })
    check(noise.length === 0, `quiet: ${what}`, noise.slice(0, 3).join('; '))
    check(await page.locator('[role=alert] h2').count() === 0, `no error shown: ${what}`)
    check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `fits the width: ${what}`)
    check(await page.evaluate(() => document.documentElement.dataset.theme) === theme, `theme: ${what}`)
    await accessible(page, what)
  }
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
  const ledger = await api(page, `runs/${run}/ledger`), text = await page.locator('.big').innerText()
  check(Math.abs(parseFloat(text) - ledger.goodput_percent) < 0.06, 'goodput equals the API', `${text} ${ledger.goodput_percent}`)

  // The list: filter, sort, keyboard; the address keeps it.
  await page.goto(base + '/runs'); await page.waitForSelector('tbody tr')
  const many = await page.locator('tbody tr').count()
  await page.keyboard.press('/'); await page.keyboard.type('no run has this name')
  await page.waitForSelector('.state')
  check(page.url().includes('q=no+run'), 'the filter is in the address')
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
  await page.goto(`${base}/sessions/${session}/trace`); await page.waitForSelector('.stage canvas'); await settle(page)
  const canvas = page.locator('.stage canvas'), label = () => canvas.getAttribute('aria-label')
  const ink = await page.evaluate(() => { const c = document.querySelector('.stage canvas'), d = c.getContext('2d').getImageData(160, 40, c.width - 160, c.height - 40).data, seen = new Set(); for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return seen.size })
  check(ink > 8, 'the trace draws events', String(ink))
  const before = await label()
  await canvas.focus(); await page.keyboard.press('w'); await page.waitForTimeout(500)
  check(await label() !== before && page.url().includes('z='), 'w zooms, and the address says so')
  const there = await label()
  await page.reload(); await page.waitForSelector('.stage canvas'); await settle(page)
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
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed ? 1 : 0)
