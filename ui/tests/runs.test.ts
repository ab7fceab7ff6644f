import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { checkAccessible, checkLooks, openLoggedIn, startApp, stopBrowser, until, type App } from './helpers.ts'

describe('runs', () => {
  let app: App
  before(async () => {
    app = await startApp()
  })
  after(async () => {
    await app.close()
    await stopBrowser()
  })

  const runSkill = async (inputs: Record<string, string>): Promise<string> => {
    const answer = await app.call('POST', '/api/v1/skills/article-summary/run', { inputs, detached: true })
    await answer.text()
    const id = answer.headers.get('x-savoir-run')
    assert.ok(id, 'the run has an id')
    return id
  }

  test('empty_history_teaches', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/runs')
    await page.getByText('Nothing ran yet').waitFor()
    await page.getByRole('link', { name: 'Open skills' }).click()
    await page.waitForURL(`${app.url}/skills`)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('history_lists_runs_and_detail_shows_steps_inputs_and_output', async () => {
    app.model.script = ['It **rained** all day.']
    const id = await runSkill({ article: 'Rain fell from dawn.', tone: 'calm' })
    const { page, context, problems } = await openLoggedIn(app, '/runs')
    await page.getByRole('link', { name: /article-summary/ }).first().click()
    await page.waitForURL(`${app.url}/runs/${id}`)
    await page.locator('.markdown').getByText('rained').waitFor()
    await page.getByRole('region', { name: 'article' }).getByText('Rain fell from dawn.').waitFor()
    const spans = page.locator('ol button[aria-expanded]')
    assert.ok((await spans.count()) >= 2, 'the timeline has steps')
    await spans.first().click()
    await page.getByText('starts_at_ms').waitFor()
    await page.getByText('ada@example.org').waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('filters_narrow_the_history', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/runs')
    await page.getByRole('link', { name: /article-summary/ }).first().waitFor()
    await page.getByRole('button', { name: 'Failed' }).click()
    await page.getByText('No run matches').waitFor()
    assert.match(page.url(), /state=failed/)
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await page.getByLabel('Kind').selectOption('prompt')
    await page.getByRole('link', { name: /article-summary/ }).first().waitFor()
    await page.getByLabel('Search runs').fill('no-such-skill')
    await page.getByText('No run matches').waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('run_is_live_can_be_stopped_and_run_again', async () => {
    app.model.pace = 120
    app.model.script = ['drop '.repeat(300)]
    void runSkill({ article: 'A long story.' }).catch(() => {})
    const { page, context, problems } = await openLoggedIn(app, '/runs')
    await page.getByRole('link', { name: /article-summary.*Running/s }).first().click()
    await page.locator('.markdown').getByText('drop drop drop').waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByRole('main').getByText('Stopped', { exact: true }).waitFor()
    app.model.pace = 5
    app.model.script = ['A short answer.']
    const before = page.url()
    await page.getByRole('button', { name: 'Run again' }).click()
    await page.waitForURL((url) => url.href !== before && url.pathname.startsWith('/runs/'))
    await page.locator('.markdown').getByText('A short answer.').waitFor()
    await page.getByRole('main').getByText('Succeeded').waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('stopped_run_is_not_called_a_failure', async () => {
    const { runs } = (await (await app.call('GET', '/api/v1/runs?state=stopped')).json()) as { runs: { id: string }[] }
    const { page, context, problems } = await openLoggedIn(app, `/runs/${runs[0]?.id ?? ''}`)
    await page.getByText('The run was stopped before its end.').waitFor()
    assert.equal(await page.getByText('Why it failed').count(), 0)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('failed_workflow_names_its_steps_and_says_where_the_feature_is', async () => {
    const graph_data = {
      nodes: [{ id: 'start', type: 'start', data: {} }, { id: 'page', type: 'http', data: { label: 'Fetch the page', url: 'https://example.com/' } }, { id: 'end', type: 'end', data: {} }],
      edges: [{ id: 'a', source: 'start', target: 'page' }, { id: 'b', source: 'page', target: 'end' }],
    }
    const made = (await (await app.call('POST', '/api/v1/workflows', { name: 'Fetcher', graph_data })).json()) as { id: string }
    const answer = await app.call('POST', `/api/v1/workflows/${made.id}/execute`, { input: 'x' })
    await answer.text()
    const { page, context, problems } = await openLoggedIn(app, `/runs/${answer.headers.get('x-savoir-run')}`)
    await page.getByText('Switch it on under Administration, Limits and features, then run it again.').waitFor()
    assert.equal(await page.getByRole('link', { name: 'Open Administration' }).getAttribute('href'), '/admin/limits')
    await page.locator('ol button[aria-expanded]').getByText('Fetch the page').waitFor()
    await page.getByRole('log').getByText(/Fetch the page: /).first().waitFor()
    assert.equal(await page.getByText('check the models').count(), 0)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('denied_network_of_a_tool_is_explained', async () => {
    const id = await runSkill({ article: 'x' })
    const { page, context, problems } = await openLoggedIn(app)
    await page.route(`**/api/v1/runs/${id}`, async (route) => {
      const response = await route.fetch()
      const error = 'URLError: <urlopen error [Errno 13] Permission denied> (tools.py:8)'
      await route.fulfill({ response, json: { ...((await response.json()) as object), kind: 'tool', state: 'failed', error, log: [{ at_ms: 3, level: 'info', message: error }] } })
    })
    await page.goto(`${app.url}/runs/${id}`)
    await page.getByText('The sandbox gives this tool no access to this host').waitFor()
    await page.getByText('network:read:api.example.com').waitFor()
    await page.locator('[role=log] p.error').waitFor()
    await checkAccessible(page, 'a denied network')
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('deleting_a_run_removes_it', async () => {
    app.model.script = ['Gone soon.']
    const id = await runSkill({ article: 'x' })
    const { page, context, problems } = await openLoggedIn(app, `/runs/${id}`)
    await page.locator('.markdown').getByText('Gone soon.').waitFor()
    await page.getByRole('button', { name: 'More' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.waitForURL(`${app.url}/runs`)
    await until(async () => (await app.call('GET', `/api/v1/runs/${id}`)).status === 404)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('start_shows_recent_runs_and_what_failed', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/')
    await page.getByRole('heading', { name: 'Welcome, ada' }).waitFor()
    await page.getByRole('link', { name: /article-summary.*Prompt/s }).first().waitFor()
    await page.getByRole('heading', { name: 'Needs attention' }).waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('pages_are_accessible_and_fit_in_both_themes', async () => {
    app.model.script = ['# Summary\n\n- It rained.\n- It was **wet**.']
    const id = await runSkill({ article: 'Rain fell from dawn to dusk.', tone: 'calm' })
    await checkLooks(app, 'start', '/', (page) => page.getByRole('link', { name: /article-summary/ }).first().waitFor())
    await checkLooks(app, 'runs', '/runs', (page) => page.getByRole('link', { name: /article-summary/ }).first().waitFor())
    await checkLooks(app, 'run', `/runs/${id}`, (page) => page.locator('.markdown').getByText('It rained.').waitFor())
  })
})
