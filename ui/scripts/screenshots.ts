/**
 * Writes pictures of eight pages in both themes into docs/images: npm run screenshots [name …]
 *
 * It starts the server with sample data and a scripted model. Pictures are 1280 pixels wide.
 */
import { mkdirSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { adminAnswers } from '../tests/admin-answers.ts'
import { openLoggedIn, startApp, stopBrowser } from '../tests/helpers.ts'
import { routes } from '../tests/routes.ts'
import { fillWithSamples, type Sample } from '../tests/sample-data.ts'

const FOLDER = fileURLToPath(new URL('../../docs/images/', import.meta.url))
const SIZE = { width: 1280, height: 800 }

interface Shot {
  name: string
  route: string
  path: (sample: Sample) => string
  /** Waits until the page shows its content. */
  ready: (page: Page) => Promise<unknown>
}

const shots: Shot[] = [
  { name: 'start', route: '/', path: () => '/', ready: (page) => page.getByText('meeting-minutes').first().waitFor() },
  { name: 'skill', route: '/skills/:name', path: () => '/skills/meeting-minutes', ready: (page) => page.getByRole('heading', { name: 'meeting-minutes' }).waitFor() },
  { name: 'run', route: '/runs/:id', path: ({ run }) => `/runs/${run}`, ready: (page) => page.getByText('Ask the legal team').first().waitFor() },
  { name: 'chat', route: '/chat/:id', path: ({ chat }) => `/chat/${chat}`, ready: (page) => page.getByText('repair it at a fixed price').waitFor() },
  { name: 'knowledge', route: '/knowledge/:kb', path: ({ knowledge }) => `/knowledge/${knowledge}`, ready: (page) => page.getByText('returns.md').first().waitFor() },
  { name: 'workflow', route: '/workflows/:id', path: ({ workflow }) => `/workflows/${workflow}`, ready: showCanvas },
  { name: 'registry', route: '/registry/skills/:first/:second', path: () => '/registry/skills/acme/invoice-reader', ready: (page) => page.getByText('What do we owe Nordwind?').first().waitFor() },
  { name: 'admin', route: '/admin/:part', path: () => '/admin/usage', ready: (page) => page.getByRole('group', { name: 'Tokens per day' }).waitFor() },
]

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !shots.some((shot) => shot.name === name))
if (unknown.length) {
  console.error(`error: no picture is called ${unknown.join(', ')}\nhint: choose from ${shots.map(({ name }) => name).join(', ')}`)
  process.exit(2)
}

const app = await startApp()
try {
  const sample = await fillWithSamples(app)
  mkdirSync(FOLDER, { recursive: true })
  for (const shot of shots.filter(({ name }) => !wanted.length || wanted.includes(name))) {
    if (!routes.includes(shot.route)) {
      console.log(`skipped ${shot.name}: the app has no page ${shot.route}`)
      continue
    }
    for (const theme of ['light', 'dark'] as const) await take(shot, theme, sample)
  }
} finally {
  await stopBrowser()
  await app.close()
}

async function take(shot: Shot, theme: 'light' | 'dark', sample: Sample): Promise<void> {
  const { page, context } = await openLoggedIn(app, '/account', { theme, ...SIZE })
  if (shot.name === 'admin') await showUsage(page)
  await page.goto(app.url + shot.path(sample))
  await shot.ready(page)
  await page.waitForLoadState('networkidle', { timeout: 3000 }).catch(() => {})
  // Nothing blinks and nothing has the focus in a picture.
  await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur())
  const path = `${FOLDER}${shot.name}-${theme}.png`
  await page.screenshot({ path, animations: 'disabled', caret: 'hide' })
  console.log(`${shot.name}-${theme}.png ${Math.round(statSync(path).size / 1024)} KiB`)
  await context.close()
}

/** The canvas without its panel, with all steps and connections in sight. */
async function showCanvas(page: Page): Promise<void> {
  await page.getByText('Draft a reply').first().waitFor()
  const close = page.getByRole('complementary', { name: 'Details' }).getByRole('button', { name: 'Close' })
  if (await close.isVisible()) await close.click()
  await page.locator('.svelte-flow__edge').nth(5).waitFor({ state: 'attached' })
  await page.getByRole('button', { name: 'Show everything' }).click()
}

/** A new server has no usage of the past weeks. */
async function showUsage(page: Page): Promise<void> {
  const answers = adminAnswers()
  await page.route('**/api/v1/observability/usage*', (route) => {
    const url = new URL(route.request().url())
    const found = answers.find('GET', url.pathname)
    return found ? route.fulfill({ contentType: found.type, body: found.handle({}, url.searchParams) }) : route.fallback()
  })
}
