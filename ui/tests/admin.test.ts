import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { measure, quantile } from '../src/pages/admin/metrics.ts'
import { labelled, ticks } from '../src/lib/components/charts/series.ts'
import { ADMIN, checkAccessible, checkFits, checkLooks, openLoggedIn, openTab, picture, startApp, stopBrowser, type App } from './helpers.ts'
import { adminAnswers, type AdminAnswers } from './admin-answers.ts'

/** Answers requests for addresses that not every server has. */
async function answer(page: Page, answers: AdminAnswers = adminAnswers()): Promise<AdminAnswers> {
  await page.route('**/api/v1/**', (route) => {
    const request = route.request()
    const { pathname } = new URL(request.url())
    const found = answers.find(request.method(), pathname)
    if (!found) return route.fallback()
    return route.fulfill({ status: found.status, contentType: found.type, body: found.handle(request.postDataJSON() as never, new URL(request.url()).searchParams) })
  })
  return answers
}

async function openAnswered(app: App, path: string): Promise<{ page: Page; answers: AdminAnswers; problems: string[]; close: () => Promise<void> }> {
  const { page, context, problems } = await openLoggedIn(app, '/account')
  const answers = await answer(page)
  await page.goto(app.url + path)
  return { page, answers, problems, close: () => context.close() }
}

describe('measurements', () => {
  const text = [
    'savoir_http_requests_total{method="GET",route="/a",status="200"} 8',
    'savoir_http_requests_total{method="GET",route="/a",status="500"} 2',
    'savoir_http_request_seconds_bucket{method="GET",route="/a",status="200",le="0.01"} 6',
    'savoir_http_request_seconds_bucket{method="GET",route="/a",status="200",le="1"} 9',
    'savoir_http_request_seconds_bucket{method="GET",route="/a",status="200",le="+Inf"} 10',
    'savoir_http_request_seconds_sum{method="GET",route="/a",status="200"} 0.5',
    'savoir_streams 3',
  ].join('\n')

  test('prometheus_text_becomes_sums_and_times', () => {
    const found = measure(text)
    assert.equal(found.requests, 10)
    assert.equal(found.failed, 2)
    assert.equal(found.streams, 3)
    assert.deepEqual(found.routes, [{ route: 'GET /a', count: 10, failed: 2, seconds: 0.5 }])
    assert.deepEqual(found.times, [{ bound: 0.01, count: 6 }, { bound: 1, count: 3 }, { bound: Infinity, count: 1 }])
    assert.equal(quantile(found.times, 0.5), 0.01)
    assert.equal(quantile(found.times, 0.95), Infinity)
  })

  test('axis_has_round_values_and_labels_that_fit', () => {
    assert.deepEqual(ticks(87), [0, 25, 50, 75, 100])
    assert.deepEqual(ticks(0), [0, 1])
    assert.deepEqual(ticks(0.3), [0, 0.1, 0.2, 0.3])
    assert.ok(labelled(90, 300).size <= 5)
    assert.ok(labelled(90, 300).has(89), 'the newest day is named')
  })
})

describe('administration', () => {
  let app: App
  before(async () => {
    app = await startApp()
    for (const email of ['grace@example.org', 'alan@example.org', 'linus@example.org']) {
      const made = await fetch(`${app.server}/api/v1/auth/register`, {
        method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ email, password: 'long enough' }),
      })
      assert.equal(made.status, 200)
    }
  })
  after(async () => {
    await app.close()
    await stopBrowser()
  })

  test('overview_shows_health_and_measurements_of_the_server', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/admin')
    await page.getByText('Ready', { exact: true }).waitFor()
    await page.getByText('Busiest routes').waitFor()
    assert.ok((await page.getByRole('table', { name: 'Busiest routes' }).getByRole('row').count()) > 2)
    const chart = page.getByRole('group', { name: 'Number of requests by response time' })
    await chart.focus()
    await page.keyboard.press('Home')
    await page.keyboard.press('ArrowRight')
    await page.getByText(/^≤ 2 ms: /).first().waitFor({ state: 'attached' })
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('account_is_disabled_enabled_and_deleted', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/admin/accounts')
    await page.getByRole('button', { name: 'Actions for alan@example.org' }).click()
    await page.getByRole('menuitem', { name: 'Disable' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click()
    await page.getByText('Disabled alan@example.org.').waitFor()
    const login = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ email: 'alan@example.org', password: 'long enough' }) }
    assert.equal((await fetch(`${app.server}/api/v1/auth/login`, login)).status, 403)
    await page.getByRole('button', { name: 'Disabled', exact: true }).click()
    assert.match(page.url(), /show=disabled/)
    assert.equal(await page.getByRole('table', { name: 'Accounts' }).getByRole('row').count(), 2)
    await page.getByRole('button', { name: 'Actions for alan@example.org' }).click()
    await page.getByRole('menuitem', { name: 'Enable' }).click()
    await page.getByText('Enabled alan@example.org.').waitFor()
    assert.equal((await fetch(`${app.server}/api/v1/auth/login`, login)).status, 200)
    await page.getByRole('button', { name: 'All' }).click()
    await page.getByRole('button', { name: 'Actions for alan@example.org' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    const action = page.getByRole('dialog').getByRole('button', { name: 'Delete' })
    assert.ok(await action.isDisabled(), 'the address has to be typed first')
    await page.getByRole('dialog').getByRole('textbox').fill('alan@example.org')
    await action.click()
    await page.getByText('Deleted alan@example.org.').waitFor()
    assert.equal((await fetch(`${app.server}/api/v1/auth/login`, login)).status, 401)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('own_account_cannot_be_removed', async () => {
    const { page, context } = await openLoggedIn(app, '/admin/accounts')
    await page.getByRole('button', { name: `Actions for ${ADMIN.email}` }).click()
    for (const name of ['Disable', 'Delete', 'Make member']) {
      assert.equal(await page.getByRole('menuitem', { name }).getAttribute('aria-disabled'), 'true', `${name} is off`)
    }
    await context.close()
  })

  test('members_cannot_open_administration', async () => {
    const { page, context, problems } = await openTab(app)
    await context.request.post(`${app.url}/api/v1/auth/session`, { data: { email: 'grace@example.org', password: 'long enough' }, headers: { 'x-savoir-app': '1' } })
    await page.goto(`${app.url}/admin/accounts`)
    await page.getByText('Only administrators can open this page').waitFor()
    assert.equal(await page.getByRole('link', { name: 'Administration' }).count(), 0)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('feature_is_turned_on_after_a_question_and_off_without', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/admin/limits')
    const flag = page.getByRole('switch', { name: 'HTTP requests in workflows' })
    await flag.click()
    await page.getByRole('dialog').getByRole('button', { name: 'Turn on' }).click()
    await page.getByText('Turned on: HTTP requests in workflows.').waitFor()
    const flags = async () => ((await (await app.call('GET', '/api/v1/settings/feature-flags')).json()) as { items: { key: string; enabled: boolean }[] }).items
    assert.ok((await flags()).find(({ key }) => key === 'ENABLE_HTTP_NODE')?.enabled)
    await flag.click()
    await page.getByText('Turned off: HTTP requests in workflows.').waitFor()
    assert.ok((await flags()).every(({ enabled }) => !enabled))
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('usage_counts_what_was_asked', async () => {
    const asked = await app.call('POST', '/api/v1/chat/completions', { session_id: 'usage', message: 'Hello', model: 'openai:scripted' })
    assert.equal(asked.status, 200, await asked.clone().text())
    await asked.text()
    const { page, context, problems } = await openLoggedIn(app, '/admin/usage')
    await page.getByRole('list', { name: 'By model' }).getByText('scripted').waitFor()
    const row = page.getByRole('table', { name: 'Usage' }).getByRole('row').nth(1)
    assert.match(await row.innerText(), /scripted[^]*42/)
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download as CSV' }).click()
    const file = await saved
    assert.match(file.suggestedFilename(), /^usage-model-30-days\.csv$/)
    assert.match(readFileSync((await file.path()) ?? '', 'utf8'), /"scripted","42"/)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('account_is_created_promoted_and_gets_a_password', async () => {
    const { page, answers, problems, close } = await openAnswered(app, '/admin/accounts')
    await page.getByRole('button', { name: 'Add account' }).click()
    await page.getByLabel('Email address').fill('new@example.org')
    await page.getByRole('button', { name: 'Generate' }).click()
    const password = await page.getByLabel('Password', { exact: true }).inputValue()
    assert.match(password, /^[A-Za-z2-9]{16}$/)
    await checkAccessible(page, 'dialog for an account')
    await picture(page, 'admin-account-dialog')
    await page.getByRole('button', { name: 'Create account' }).click()
    await page.getByText('Created the account new@example.org.').waitFor()
    assert.deepEqual(answers.sent.at(-1), { method: 'POST', path: '/api/v1/admin/users', body: { email: 'new@example.org', password, role: 'user' } })
    await page.getByRole('button', { name: 'Actions for linus@example.org' }).click()
    await page.getByRole('menuitem', { name: 'Make administrator' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Make administrator' }).click()
    await page.getByText('linus@example.org is now: administrator.').waitFor()
    assert.deepEqual(answers.sent.at(-1)?.body, { role: 'admin' })
    await page.getByLabel('Nobody').check()
    await page.getByText('Changed who may create an account.').waitFor()
    assert.deepEqual(answers.sent.at(-1)?.body, { registration: 'closed' })
    assert.deepEqual(problems, [])
    await close()
  })

  test('server_without_an_address_names_the_command', async () => {
    const { page, context } = await openLoggedIn(app, '/admin/accounts')
    await page.route('**/api/v1/admin/users', (route) => (route.request().method() === 'POST' ? route.fulfill({ status: 405, json: { detail: 'Method Not Allowed' } }) : route.fallback()))
    await page.getByRole('button', { name: 'Add account' }).click()
    await page.getByLabel('Email address').fill('new@example.org')
    await page.getByLabel('Password', { exact: true }).fill('long enough')
    await page.getByRole('button', { name: 'Create account' }).click()
    await page.getByText('savoir admin create new@example.org --role user').waitFor()
    await context.close()
  })

  test('key_is_sent_once_and_never_shown', async () => {
    const { page, answers, problems, close } = await openAnswered(app, '/admin/models')
    await page.getByRole('button', { name: 'Configure: Anthropic' }).click()
    const key = page.getByLabel('API key')
    assert.equal(await key.getAttribute('type'), 'password')
    await key.fill('sk-very-secret')
    await page.getByRole('button', { name: 'Test the connection' }).click()
    await page.getByText('claude-sonnet answered a test question.').waitFor()
    answers.testResult = { ok: true, model: 'claude-sonnet', models: 2, answered: false }
    await page.getByRole('button', { name: 'Test the connection' }).click()
    await page.getByText('Anthropic can be reached; 2 models found. The first one is the default').waitFor()
    await checkAccessible(page, 'dialog for a provider')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('Saved Anthropic.').waitFor()
    assert.deepEqual(answers.sent.at(-1)?.body, { api_key: 'sk-very-secret', base_url: 'https://api.anthropic.com', model: '' })
    await page.getByRole('button', { name: 'Replace key: Anthropic' }).click()
    assert.equal(await page.getByLabel('API key').inputValue(), '')
    assert.ok(!(await page.content()).includes('sk-very-secret'))
    const stored = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }))
    assert.ok(!stored.includes('sk-very-secret'))
    assert.deepEqual(problems, [])
    await close()
  })

  test('failed_test_of_a_key_shows_the_hint', async () => {
    const { page, answers, close } = await openAnswered(app, '/admin/models')
    answers.testResult = { ok: false, error: 'The provider refused the key.', hint: 'Copy the key again from its console.' }
    await page.getByRole('button', { name: 'Configure: Anthropic' }).click()
    await page.getByLabel('API key').fill('wrong')
    await page.getByRole('button', { name: 'Test the connection' }).click()
    await page.getByText('Copy the key again from its console.').waitFor()
    await close()
  })

  test('limits_are_checked_saved_and_guarded', async () => {
    const { page, answers, problems, close } = await openAnswered(app, '/admin/limits')
    const runs = page.getByLabel('Runs and chat turns')
    await runs.fill('ten')
    await page.getByText('Enter a whole number, 0 or more.').waitFor()
    assert.ok(await page.getByRole('button', { name: 'Save changes' }).isDisabled())
    await runs.fill('25')
    await page.getByRole('link', { name: 'Log', exact: true }).click()
    await page.getByRole('dialog').getByText('Discard your changes?').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByText('The settings were saved.').waitFor()
    assert.deepEqual(answers.sent.at(-1)?.body, { limits: { runs: 25, routes: 60, all: 1000 } })
    assert.ok(await page.getByLabel('Documents').isDisabled(), 'options of the server cannot be changed here')
    await page.getByText(/^savoir serve --quota skills=/).waitFor()
    assert.deepEqual(problems, [])
    await close()
  })

  test('log_is_shown_searched_and_followed', async () => {
    const { page, problems, close } = await openAnswered(app, '/admin/log')
    await page.getByText('a run failed').first().waitFor()
    await page.getByText('a line that came later').first().waitFor()
    await page.getByRole('searchbox', { name: 'Find in the log' }).fill('quota')
    await page.waitForFunction(() => document.querySelectorAll('[role=listitem]').length === 1)
    await page.getByRole('listitem').getByRole('button').click()
    await page.getByRole('dialog').getByText('documents').waitFor()
    await page.keyboard.press('Escape')
    assert.match(page.url(), /q=quota/)
    assert.deepEqual(problems, [])
    await close()
  })

  test('missing_parts_teach_the_command', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/account')
    await page.route(/\/api\/v1\/admin\/(log|server|providers)/, (route) => route.fulfill({ status: 404, json: { detail: 'Not Found' } }))
    for (const [path, command] of [['log', 'journalctl --unit savoir'], ['backup', 'savoir registry backup'], ['limits', 'savoir serve --rate-limit'], ['models', 'OPENAI_API_KEY'], ['accounts', 'savoir serve --registration']] as const) {
      await page.goto(`${app.url}/admin/${path}`)
      await page.getByText(command).first().waitFor()
    }
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('parts_are_accessible_in_both_themes', async () => {
    const ready: Record<string, string> = {
      '': 'Busiest routes', accounts: 'grace@example.org', models: 'Anthropic', limits: 'Storage per account', usage: 'Usage', log: 'a run failed', backup: 'On the machine of the server',
    }
    for (const theme of ['light', 'dark'] as const) {
      for (const width of [1280, 360]) {
        const { page, context, problems } = await openLoggedIn(app, '/account', { theme, width, height: 900 })
        await answer(page)
        for (const [part, text] of Object.entries(ready)) {
          await page.goto(`${app.url}/admin/${part}`.replace(/\/$/, ''))
          await page.getByText(text).first().waitFor()
          await page.waitForLoadState('networkidle').catch(() => {})
          await picture(page, `admin-${part || 'overview'}-${theme}-${width}`, true)
          await checkAccessible(page, `admin ${part}, ${theme}, ${width} px`)
          await checkFits(page, `admin ${part}, ${width} px`)
        }
        assert.deepEqual(problems, [])
        await context.close()
      }
    }
  })
})

describe('account', () => {
  let app: App
  before(async () => {
    app = await startApp()
  })
  after(async () => {
    await app.close()
    await stopBrowser()
  })

  test('token_is_shown_once_works_and_is_revoked', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/account')
    await page.getByText('No tokens yet').waitFor()
    await page.getByRole('button', { name: 'Create token' }).click()
    await page.getByLabel('What is it for?').fill('Coding agent')
    await checkAccessible(page, 'dialog for a token')
    await picture(page, 'account-token-dialog')
    await page.getByRole('dialog').getByRole('button', { name: 'Create token' }).click()
    await page.getByText('Copy it now. It is not shown again.').waitFor()
    const token = await page.getByRole('region', { name: 'Token', exact: true }).innerText()
    const read = (path: string) => fetch(app.server + path, { headers: { authorization: `Bearer ${token}` } })
    assert.equal((await read('/api/v1/skills')).status, 200)
    assert.equal((await read('/api/v1/admin/users')).status, 403)
    await page.getByRole('button', { name: 'Done' }).click()
    assert.ok(!(await page.content()).includes(token), 'the secret is gone')
    await page.reload()
    await page.getByText('skills:draft').waitFor()
    await page.getByRole('button', { name: 'Revoke Coding agent' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await page.getByText('Revoked the token “Coding agent”.').waitFor()
    assert.equal((await read('/api/v1/skills')).status, 401)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('account_page_is_accessible_in_both_themes', async () => {
    await app.call('POST', '/api/v1/auth/tokens', { name: 'Nightly job', scopes: ['skills:read', 'skills:run', 'workflows:run'], expires_in_days: 30 })
    await app.call('POST', '/api/v1/auth/tokens', { name: 'Laptop' })
    await checkLooks(app, 'account', '/account', (page) => page.getByText('Nightly job').waitFor())
  })

  test('password_is_changed_and_the_session_stays', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/account')
    await page.getByLabel('Present password').fill('not the password')
    await page.getByLabel('New password').fill('better password')
    await page.getByLabel('The same password again').fill('other password')
    await page.getByText('The passwords differ.').waitFor()
    await page.getByLabel('The same password again').fill('better password')
    await page.getByRole('button', { name: 'Change password' }).click()
    await page.getByText('Current password is incorrect').waitFor()
    await page.getByLabel('Present password').fill(ADMIN.password)
    await page.getByRole('button', { name: 'Change password' }).click()
    await page.getByText('The password was changed.').waitFor()
    await page.reload()
    await page.getByRole('heading', { name: 'Your account' }).waitFor()
    const login = (password: string) =>
      fetch(`${app.server}/api/v1/auth/login`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ email: ADMIN.email, password }) })
    assert.equal((await login(ADMIN.password)).status, 401)
    assert.equal((await login('better password')).status, 200)
    assert.deepEqual(problems, [])
    await context.close()
  })
})
