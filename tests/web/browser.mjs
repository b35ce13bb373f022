// SPDX-License-Identifier: Apache-2.0
// What the browser tests share: a browser, checks that are counted, pages that note every console error and
// every request that leaves the origin, axe, and pictures in build/web-shots.
import { createRequire } from 'node:module'
import { mkdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../../', import.meta.url))
const require = createRequire(root + 'web/package.json')
const { chromium } = require('playwright-core')
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')
export const [base, token, run, session] = process.argv.slice(2)
export const shots = root + 'build/web-shots/'
mkdirSync(shots, { recursive: true })

let passed = 0, failed = 0
export function check(ok, what, detail = '') {
  if (ok) passed++
  else { failed++; console.log(`FAIL ${what}${detail ? ': ' + detail : ''}`) }
}
export const api = (page, path) => page.evaluate(async p => (await fetch('/api/v1/' + p)).json(), path)

const QUIET = ['--no-sandbox', '--disable-quic', '--disable-background-networking', '--disable-component-update', '--no-first-run', '--disable-sync']
const GPU = { none: ['--disable-gpu', '--disable-3d-apis'], software: ['--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader'] }
/** A browser without WebGL, or with WebGL2 in software. */
export const launch = (gpu = 'none') => chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: [...QUIET, ...GPU[gpu]] })

export async function open(browser, theme, width, height, signIn = true) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme }), page = await context.newPage(), noise = []
  page.busy = new Set()
  page.on('console', m => { if (['error', 'warning'].includes(m.type())) noise.push(m.text()) })
  page.on('pageerror', e => noise.push(String(e)))
  page.on('request', r => { if (!r.url().endsWith('/stream')) page.busy.add(r); if (!r.url().startsWith(base + '/') && !/^(data|blob|about):/.test(r.url())) noise.push('left the origin: ' + r.url()) })
  for (const end of ['requestfinished', 'requestfailed']) page.on(end, r => page.busy.delete(r))
  page.on('framenavigated', () => page.busy.clear())
  if (signIn) { await page.goto(`${base}/runs#token=${token}`); await page.waitForSelector('tbody tr'); check(!page.url().includes('token'), 'the token is cleaned from the address') }
  return { page, noise, context }
}
/** Nothing asked for, no skeleton, for a tenth of a second. */
export async function settle(page) {
  let calm = 0
  for (let i = 0; calm < 2 && i < 100; i++) {
    await page.waitForTimeout(50)
    calm = page.busy.size === 0 && (await page.locator('.skeleton').count()) === 0 ? calm + 1 : 0
  }
  if (calm < 2) console.log(`never calm: ${page.url()}: ${[...page.busy].map(r => r.url()).join(' ') || 'a skeleton'}`)
}
export async function accessible(page, what) {
  // Through the debugger: the page itself may run no script but its own.
  const cdp = await page.context().newCDPSession(page)
  await cdp.send('Runtime.evaluate', { expression: axe })
  const r = await cdp.send('Runtime.evaluate', { expression: "axe.run(document,{resultTypes:['violations'],runOnly:['wcag2a','wcag2aa','wcag21a','wcag21aa','wcag22aa']}).then(r=>JSON.stringify(r.violations.map(v=>v.id+' '+v.nodes.slice(0,2).map(n=>n.html.slice(0,140)+' '+(n.any[0]?.message??'')).join(' | '))))", awaitPromise: true, returnByValue: true })
  const found = JSON.parse(r.result.value)
  check(found.length === 0, `axe: ${what}`, found.join('; '))
  await cdp.detach()
}
export function done() {
  console.log(`${passed} passed, ${failed} failed`)
  process.exit(failed ? 1 : 0)
}

// Until it holds, at most five seconds. Asked from here: the page's Content-Security-Policy lets no text be run as code.
export const until = async (page, holds) => { for (let i = 0; i < 100 && !await holds(); i++) await page.waitForTimeout(50) }
