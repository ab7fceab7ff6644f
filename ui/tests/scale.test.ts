/** Long lists stay smooth: the rows that are not visible are not rendered. Times are printed, because a busy machine makes them long. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { openLoggedIn, startApp, stopBrowser, type App } from './helpers.ts'

const SKILLS = 10_000
const RUNS = 1_000

/**
 * Scrolls a list by 300 px per frame, as a fast flick does, then jumps to places far apart, where
 * every row is new. Returns the frame times in milliseconds.
 */
async function measureScroll(page: Page, label: string): Promise<{ median: number; slow: number; jump: number; rows: number }> {
  return page.getByRole('list', { name: label, exact: true }).evaluate(async (list) => {
    const frames: number[] = []
    const jumps: number[] = []
    let last = performance.now()
    for (let index = 0; index < 160; index += 1) {
      list.scrollTop = index < 120 ? index * 300 : ((index - 119) / 41) * list.scrollHeight
      await new Promise(requestAnimationFrame)
      const now = performance.now()
      ;(index < 120 ? frames : jumps).push(now - last)
      last = now
    }
    frames.sort((a, b) => a - b)
    jumps.sort((a, b) => a - b)
    return { median: frames[60] ?? 0, slow: frames[114] ?? 0, jump: jumps[20] ?? 0, rows: list.querySelectorAll('[role=listitem]').length }
  })
}

describe('scale', () => {
  let app: App
  before(async () => {
    app = await startApp()
  })
  after(async () => {
    await app.close()
    await stopBrowser()
  })

  test('ten_thousand_skills_scroll_and_search_smoothly', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/design')
    // The list of a server with so many skills, without storing them.
    const skills = Array.from({ length: SKILLS }, (_, index) => ({
      id: `s${index}`, name: `skill-${index}`, description: `Does thing number ${index} for somebody.`, allowed_tools: [], context_fork: false,
      enabled: index % 3 > 0, pinned: false, lifecycle_state: 'active', source: 'authored', resources: [], last_used_at: null,
    }))
    await page.route('**/api/v1/personal-skills', (route) => route.fulfill({ json: { skills, total: SKILLS } }))
    await page.goto(`${app.url}/skills`)
    await page.getByRole('link', { name: 'skill-0', exact: true }).waitFor()
    const frames = await measureScroll(page, 'Skills')
    console.log(`# skills: median ${frames.median.toFixed(1)} ms, 95th ${frames.slow.toFixed(1)} ms, jump ${frames.jump.toFixed(1)} ms, ${frames.rows} rows`)
    assert.ok(frames.rows < 60, `${frames.rows} rows are rendered`)
    await page.getByLabel('Search skills').fill('number 9999')
    await page.getByRole('link', { name: 'skill-9999' }).waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('a_thousand_runs_scroll_smoothly', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/design')
    const runs = Array.from({ length: RUNS }, (_, index) => ({
      id: `r${index}`, kind: 'prompt', name: `skill-${index}`, state: index % 7 ? 'ok' : 'failed', started_at: new Date(Date.now() - index * 60_000).toISOString(),
      duration_ms: index * 3, input_tokens: index, output_tokens: 5,
    }))
    await page.route('**/api/v1/runs?*', (route) => route.fulfill({ json: { runs, total: RUNS } }))
    await page.goto(`${app.url}/runs`)
    await page.getByRole('link', { name: /skill-0/ }).waitFor()
    const frames = await measureScroll(page, 'Runs')
    console.log(`# runs: median ${frames.median.toFixed(1)} ms, 95th ${frames.slow.toFixed(1)} ms, jump ${frames.jump.toFixed(1)} ms, ${frames.rows} rows`)
    assert.ok(frames.rows < 60, `${frames.rows} rows are rendered`)
    await page.getByRole('list', { name: 'Runs', exact: true }).focus()
    await page.keyboard.press('End')
    await page.getByRole('link', { name: /skill-999/ }).waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })
})
