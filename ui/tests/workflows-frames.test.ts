/** Measures a workflow of 300 steps: processor time per frame while panning, zooming, dragging and running. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { openLoggedIn, picture, startApp, stopBrowser, until, type App } from './helpers.ts'

const STEPS = 300
const ROWS = 12

/** A start, rows of model steps and conditions, an end. */
function largeGraph(): unknown {
  const nodes: unknown[] = [{ id: 'start', type: 'start', position: { x: 0, y: 500 }, data: {} }]
  const edges: unknown[] = []
  const columns = Math.floor((STEPS - 2) / ROWS)
  for (let row = 0; row < ROWS; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const id = `s-${row}-${column}`
      const type = column % 5 === 4 ? 'condition' : 'llm'
      nodes.push({ id, type, position: { x: 272 * (column + 1), y: row * 128 }, data: { label: `Step ${row}.${column}`, ...(type === 'llm' ? { systemPrompt: 'Answer {{input}}' } : { expression: 'true' }) } })
      const previous = column ? `s-${row}-${column - 1}` : 'start'
      edges.push({ id: `${previous}-${id}`, source: previous, target: id, ...((column - 1) % 5 === 4 ? { sourceHandle: 'true' } : {}) })
    }
  }
  while (nodes.length < STEPS - 1) nodes.push({ id: `x-${nodes.length}`, type: 'llm', position: { x: 272 * (nodes.length % 20), y: 1700 }, data: {} })
  nodes.push({ id: 'end', type: 'end', position: { x: 272 * (columns + 1), y: 500 }, data: {} })
  return { nodes, edges }
}

interface Frames {
  frames: number
  /** Time between two frames, in ms. A shared machine makes it long. */
  median: number
  /** Processor time of the page's main thread per frame, in ms, and its parts. */
  processor: number
  script: number
  style: number
  layout: number
}

/** Texts, because the page has no helpers of the compiler. */
const RECORD = `
  window.record = { times: [], last: performance.now(), on: true }
  window.tick = (now) => {
    window.record.times.push(now - window.record.last)
    window.record.last = now
    if (window.record.on) requestAnimationFrame(window.tick)
  }
  requestAnimationFrame(window.tick)`
const STOP = `(() => { window.record.on = false; return window.record.times })()`

type Measure = (action: () => Promise<unknown>) => Promise<Frames>

/** Records frames and processor time of a page. */
async function recorder(page: Page): Promise<Measure> {
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  const read = async (): Promise<Record<string, number>> => {
    const { metrics } = await session.send('Performance.getMetrics')
    return Object.fromEntries(metrics.map(({ name, value }) => [name, value * 1000]))
  }
  return async (action) => {
    await page.evaluate(RECORD)
    const before = await read()
    await action()
    const after = await read()
    const times = (await page.evaluate<number[]>(STOP)).slice(1).toSorted((a, b) => a - b)
    const round = (value: number): number => Math.round(value * 10) / 10
    const perFrame = (name: string): number => round(((after[name] ?? 0) - (before[name] ?? 0)) / Math.max(1, times.length))
    return {
      frames: times.length, median: round(times[Math.floor(times.length / 2)] ?? 0), processor: perFrame('TaskDuration'),
      script: perFrame('ScriptDuration'), style: perFrame('RecalcStyleDuration'), layout: perFrame('LayoutDuration'),
    }
  }
}

interface Box {
  x: number
  y: number
  width: number
  height: number
}

/** One move per frame: without it, the browser merges moves, and a frame has as much work as there is time. */
const nextFrame = (page: Page): Promise<unknown> => page.evaluate('new Promise((done) => requestAnimationFrame(done))')

async function pan(page: Page, box: Box): Promise<void> {
  const [x, y] = [box.x + box.width / 2, box.y + box.height - 80]
  await page.mouse.move(x, y)
  await page.mouse.down()
  for (let step = 0; step < 90; step += 1) {
    await page.mouse.move(x + 200 * Math.sin(step / 10), y - 100 + 100 * Math.cos(step / 10))
    await nextFrame(page)
  }
  await page.mouse.up()
}

async function zoom(page: Page, box: Box): Promise<void> {
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2)
  for (let step = 0; step < 40; step += 1) {
    await page.mouse.wheel(0, step < 20 ? -60 : 60)
    await nextFrame(page)
  }
}

/** Opens a workflow and measures panning and zooming. */
async function openAndMeasure(app: App, name: string, graph: unknown): Promise<{ page: Page; problems: string[]; measure: Measure; pan: Frames; near: Frames; zoom: Frames }> {
  const made = (await (await app.call('POST', '/api/v1/workflows', { name, graph_data: graph })).json()) as { id: string }
  const { page, problems } = await openLoggedIn(app, `/workflows/${made.id}`, { width: 1600, height: 900 })
  await page.getByRole('application').waitFor()
  await page.waitForTimeout(1000)
  await picture(page, `workflows-${name.toLowerCase().replaceAll(' ', '-')}`)
  const box = await page.getByRole('application').boundingBox()
  assert.ok(box)
  const measure = await recorder(page)
  const [far, zoomed] = [await measure(() => pan(page, box)), await measure(() => zoom(page, box))]
  // At the size in which steps are edited.
  for (let step = 0; step < 6; step += 1) await page.getByRole('button', { name: 'Zoom in' }).click()
  await page.waitForTimeout(300)
  const near = await measure(() => pan(page, box))
  await page.getByRole('button', { name: 'Show everything' }).click()
  return { page, problems, measure, pan: far, near, zoom: zoomed }
}

test('workflow_of_300_steps_can_be_moved_edited_and_run', async (t) => {
  const app = await startApp()
  try {
    const empty = await openAndMeasure(app, 'Empty', { nodes: [], edges: [] })
    await empty.page.context().close()
    const large = await openAndMeasure(app, 'Three hundred', largeGraph())
    const { page, measure, problems } = large
    const step = page.locator('.svelte-flow__node[data-id="s-5-10"]')
    await step.waitFor()
    const at = await step.boundingBox()
    assert.ok(at)
    const drag = await measure(async () => {
      await page.mouse.move(at.x + at.width / 2, at.y + at.height / 2)
      await page.mouse.down()
      for (let count = 0; count < 80; count += 1) {
        await page.mouse.move(at.x + 150 * Math.sin(count / 12), at.y + 100 * Math.sin(count / 9))
        await nextFrame(page)
      }
      await page.mouse.up()
    })
    await page.getByRole('button', { name: 'Show everything' }).click()
    await page.waitForTimeout(300)
    const all = await measure(async () => {
      await page.locator('.svelte-flow__node').first().focus()
      await page.keyboard.press('Control+a')
      for (let count = 0; count < 20; count += 1) await page.keyboard.press('ArrowDown')
    })
    const run = await measure(async () => {
      await page.keyboard.press('Escape')
      await page.getByRole('button', { name: 'Run', exact: true }).click()
      await page.getByRole('complementary', { name: 'Details' }).getByLabel('Input').fill('go')
      await page.keyboard.press('Control+Enter')
      await until(() => page.locator('[data-state="ok"]').count().then((count) => count > 20), () => 'nothing ran', 180_000)
    })
    const results = {
      'pan, empty': empty.pan, 'zoom, empty': empty.zoom, 'pan, all steps': large.pan, 'pan, near': large.near, 'zoom': large.zoom, drag, 'move all': all, run,
    }
    // Measurements are printed, not asserted: they depend on the machine.
    for (const [name, value] of Object.entries(results)) {
      t.diagnostic(`${name}: ${value.processor} ms processor time per frame (script ${value.script}, style ${value.style}, layout ${value.layout}), ${value.frames} frames, ${value.median} ms apart`)
    }
    assert.deepEqual(problems, [])
  } finally {
    await app.close()
    await stopBrowser()
  }
})
