/** Finds the pages of the app by following its links. */
import type { Page } from 'playwright-core'
import { openLoggedIn, type App } from './helpers.ts'
import { routes } from './routes.ts'

const MAX_PAGES = 60
/** Pages that are visited of each route with parameters. */
const PLACES = 3

export async function visit(page: Page, url: string): Promise<void> {
  await page.goto(url)
  await page.locator('h1, [role=alert], main').first().waitFor()
  // Streams stay open on some pages, so that the network is never idle there.
  await page.waitForLoadState('networkidle', { timeout: 1500 }).catch(() => {})
}

/** Addresses of pages; calls `look` while each is open. */
export async function crawl(app: App, look: (page: Page, place: string) => Promise<void> = async () => {}): Promise<string[]> {
  const { page, context } = await openLoggedIn(app, '/account')
  const counts = new Map<string, number>()
  const waiting = routes.filter((route) => !/[:*]/.test(route) && !/^\/(login|setup)$/.test(route))
  const done: string[] = []
  const known = new Set(waiting)
  for (let place = waiting.shift(); place !== undefined && done.length < MAX_PAGES; place = waiting.shift()) {
    await visit(page, app.url + place)
    await look(page, place)
    done.push(place)
    const links = await page.evaluate(() => [...document.querySelectorAll('a[href^="/"]')].map((link) => new URL((link as HTMLAnchorElement).href).pathname))
    for (const link of links) {
      const route = routeOf(link)
      if (!route || known.has(link) || (counts.get(route) ?? 0) >= PLACES) continue
      known.add(link)
      counts.set(route, (counts.get(route) ?? 0) + 1)
      waiting.push(link)
    }
  }
  await context.close()
  return done
}

export function routeOf(path: string): string | undefined {
  return routes.find((route) => new RegExp(`^${route.replace(/\*[a-z]+/gi, '.+').replace(/:[a-z]+/gi, '[^/]+')}$`).test(path))
}
