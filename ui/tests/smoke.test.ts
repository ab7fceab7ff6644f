/** A short test of the whole app, part of `make test`. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { ADMIN, checkAccessible, checkFits, openTab, startApp, stopBrowser, type App } from './helpers.ts'
import { routeOf, visit } from './crawl.ts'
import { routes } from './routes.ts'
import { fillWithSamples, type Sample } from './sample-data.ts'

describe('smoke', () => {
  let app: App
  let sample: Sample
  before(async () => {
    app = await startApp()
    sample = await fillWithSamples(app)
  })
  after(async () => {
    await app.close()
    await stopBrowser()
  })

  /** One page of each route. */
  function places(): string[] {
    const params: Record<string, string> = {
      '/skills/:name': '/skills/meeting-minutes', '/skills/:name/edit': '/skills/meeting-minutes/edit', '/runs/:id': `/runs/${sample.run}`, '/chat/:id': `/chat/${sample.chat}`,
      '/knowledge/:kb': `/knowledge/${sample.knowledge}`, '/workflows/:id': `/workflows/${sample.workflow}`, '/registry/publishers/:namespace': '/registry/publishers/acme',
      '/registry/skills/:first/:second': '/registry/skills/acme/invoice-reader', '/admin/:part': '/admin/usage',
    }
    return routes.filter((route) => !/^\/(login|setup|machine)/.test(route)).flatMap((route) => (/[:*]/.test(route) ? (params[route] ?? []) : route))
  }

  test('every_page_opens_without_an_error', async () => {
    const { page, context, problems } = await openTab(app)
    await page.goto(`${app.url}/skills`)
    await page.getByLabel('Email address').fill(ADMIN.email)
    await page.getByLabel('Password').fill(ADMIN.password)
    await page.getByRole('button', { name: 'Log in' }).click()
    await page.getByRole('navigation', { name: 'Sections' }).waitFor()
    const visited = places()
    assert.ok(visited.length >= 8, `${visited.length} pages`)
    for (const place of visited) {
      await visit(page, app.url + place)
      assert.ok(routeOf(place), place)
      assert.equal(await page.getByRole('main').getByText('Page not found').count(), 0, `${place} is there`)
      assert.ok((await page.locator('h1').count()) >= 1, `${place} has a heading`)
      // The page of the design shows an error as an example.
      if (place !== '/design') assert.deepEqual(await page.getByRole('main').getByRole('alert').allInnerTexts(), [], `errors of ${place}`)
      assert.deepEqual(problems, [], `problems of ${place}`)
    }
    await context.close()
  })

  test('main_pages_are_accessible_and_fit_a_phone', async () => {
    const { page, context } = await openTab(app, { theme: 'dark', width: 360, height: 800 })
    await context.request.post(`${app.url}/api/v1/auth/session`, { data: ADMIN, headers: { 'x-savoir-app': '1' } })
    for (const place of ['/', '/skills/meeting-minutes', `/chat/${sample.chat}`, '/admin']) {
      if (!routeOf(place)) continue
      await visit(page, app.url + place)
      await checkAccessible(page, place)
      await checkFits(page, place)
    }
    await context.close()
  })

  test('skill_runs_and_shows_its_answer', { skip: !routes.includes('/skills/:name') }, async () => {
    app.model.script = ['The launch moves to Friday.']
    const { page, context, problems } = await openTab(app)
    await context.request.post(`${app.url}/api/v1/auth/session`, { data: ADMIN, headers: { 'x-savoir-app': '1' } })
    await visit(page, `${app.url}/skills/meeting-minutes`)
    await page.getByRole('tab', { name: 'Run' }).click()
    await page.getByLabel(/notes/i).first().fill('Launch on Friday.')
    await page.getByRole('tabpanel').getByRole('button', { name: 'Run', exact: true }).click()
    await page.getByText('The launch moves to Friday.').first().waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })
})
