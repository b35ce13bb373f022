// SPDX-License-Identifier: Apache-2.0
// A run that begins while the page is open: its row appears, the stream moves its page, and its end is shown.
//   node tests/web/live.mjs URL TOKEN RUN SESSION COMMAND…
import { spawn } from 'node:child_process'
import { base, check, done, launch, open, settle, shots } from './browser.mjs'

const [command, ...args] = process.argv.slice(6)
const browser = await launch(), { page, noise, context } = await open(browser, 'dark', 1440, 900)
// The page's own policy forbids to evaluate text in it: asked from here.
async function until(holds) {
  for (let i = 0; i < 150; i++) { if (await holds()) return true; await page.waitForTimeout(200) }
  return false
}
const before = await page.locator('tbody tr').count()
const work = spawn(command, args, { stdio: 'ignore' })
const ended = new Promise(resolve => work.on('exit', resolve))
try {
  const row = page.locator('tbody tr', { hasText: 'seen-live' })
  await row.waitFor({ timeout: 30000 })
  check(await page.locator('tbody tr').count() === before + 1, 'the row of a new run appears without a reload')
  check((await row.innerText()).includes('Active'), 'the new row is active')
  // Once steps are there; the list moves by itself.
  check(await until(async () => (await row.innerText()).includes('%')), 'its goodput comes by itself')
  let streams = 0
  page.on('request', r => { if (r.url().endsWith('/stream')) streams++ })
  await row.locator('a').first().click(); await page.waitForSelector('.kpis')
  await page.waitForSelector('.dot.on', { state: 'attached', timeout: 30000 })
  check(streams === 1, 'one stream is open', String(streams))
  const attempts = page.locator('.kpis .k', { hasText: 'Attempts' }), last = async () => Number((await attempts.innerText()).replace(/[\s\u2009]/g, ' ').match(/last step (\d+)/)?.[1] ?? -1)
  const first = await last()
  await until(async () => await last() > first)
  check(await last() > first, 'the last step moves', `${first} ${await last()}`)
  await page.screenshot({ path: shots + 'live.png', fullPage: true })
  check(await ended === 0, 'the workload ends well')
  await page.getByText('Completed').first().waitFor({ timeout: 30000 })
  check(true, 'the page says that the run completed')
  await settle(page)
  check(await page.locator('.dot.idle').count() === 1, 'and the stream is closed')
  await page.goto(base + '/runs'); await row.waitFor()
  check(noise.length === 0, 'quiet: live', noise.slice(0, 3).join('; '))
} finally {
  work.kill()
  await browser.close()
}
done()
