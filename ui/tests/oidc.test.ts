/** Logging in with an OpenID Connect provider, in the browser, against a provider on this machine. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { ADMIN, checkAccessible, checkFits, openTab, picture, startApp, stopBrowser, type App, type Tab } from './helpers.ts'
import { CLIENT, startProvider, type Fault, type Provider } from './oidc-provider.ts'

describe('login with a provider', () => {
  let app: App
  let provider: Provider
  before(async () => {
    provider = await startProvider()
    app = await startApp({
      args: ['--oidc-issuer', provider.url, '--oidc-client-id', CLIENT.id, '--oidc-name', 'Example ID'],
      env: { SAVOIR_OIDC_CLIENT_SECRET: CLIENT.secret },
      direct: true,
    })
  })
  after(async () => {
    await app.close()
    provider.close()
    await stopBrowser()
  })
  afterEach(() => (provider.fault = undefined))

  /** Starts at `path` and logs in at the provider. */
  async function logIn(email: string, path = '/login', button = 'Allow'): Promise<Tab> {
    const tab = await openTab(app)
    await tab.page.goto(app.url + path)
    await tab.page.getByRole('link', { name: 'Continue with Example ID' }).click()
    if (button === 'Allow') await tab.page.getByLabel('Address').fill(email)
    await tab.page.getByRole('button', { name: button }).click()
    await tab.page.waitForURL((url) => url.origin === new URL(app.url).origin)
    return tab
  }

  const ownProblems = ({ problems }: Tab): string[] => problems.filter((problem) => !problem.includes(provider.url))

  test('new_user_gets_an_account_and_lands_on_the_page_that_asked', async () => {
    const tab = await logIn('grace@example.org', '/runs?kind=chat')
    const { page, context } = tab
    await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor()
    assert.equal(new URL(page.url()).search, '?kind=chat')
    const { user } = (await (await context.request.get(`${app.url}/api/v1/auth/session`)).json()) as { user: { email: string; role: string } }
    assert.deepEqual([user.email, user.role], ['grace@example.org', 'user'])
    const cookies = await context.cookies()
    assert.deepEqual(cookies.map(({ name }) => name.replace(/_\d+$/, '')), ['savoir_session'], 'the cookie of the login is gone')
    assert.ok(cookies[0]?.httpOnly && cookies[0].sameSite === 'Strict')
    const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href]))
    assert.ok(!/code=|eyJ/.test(stored), stored)
    assert.deepEqual(ownProblems(tab), [])
    await context.close()
  })

  test('verified_address_finds_the_account_of_the_administrator_and_the_link_stays', async () => {
    for (const _ of [1, 2]) {
      const tab = await logIn(ADMIN.email)
      await tab.page.getByRole('heading', { level: 1 }).waitFor()
      const { user } = (await (await tab.context.request.get(`${app.url}/api/v1/auth/session`)).json()) as { user: { role: string } }
      assert.equal(user.role, 'admin')
      await tab.context.close()
    }
  })

  test('login_page_offers_the_provider_and_explains_a_cancelled_login', async () => {
    const tab = await logIn('', '/login', 'Deny')
    await tab.page.getByText('You cancelled the login.').waitFor()
    await tab.page.getByText('Try again, or log in with your password.').waitFor()
    await checkAccessible(tab.page, 'login with a provider')
    await picture(tab.page, 'login-provider-1280')
    await tab.page.setViewportSize({ width: 360, height: 800 })
    await checkFits(tab.page, 'login with a provider, 360 px')
    await picture(tab.page, 'login-provider-360')
    await tab.context.close()
  })

  const WRONG: [Fault, string][] = [
    ['nonce', 'The proof of the provider is not valid.'],
    ['signature', 'The proof of the provider is not valid.'],
    ['no-signature', 'The proof of the provider is not valid.'],
    ['audience', 'The proof of the provider is not valid.'],
    ['issuer', 'The proof of the provider is not valid.'],
    ['expired', 'The proof of the provider is not valid.'],
    ['unverified', 'The provider gives no verified email address.'],
  ]
  test('wrong_answers_of_the_provider_log_nobody_in', async () => {
    for (const [fault, message] of WRONG) {
      provider.fault = fault
      const before = provider.tokens
      const { page, context } = await logIn(`${fault}@example.org`)
      await page.getByText(message).waitFor()
      assert.equal(provider.tokens, before + 1, `${fault}: the provider was asked`)
      const { user } = (await (await context.request.get(`${app.url}/api/v1/auth/session`)).json()) as { user: unknown }
      assert.equal(user, null, fault)
      await context.close()
    }
    // The first login of the administrator with the provider ended the token of `app.call`.
    provider.fault = undefined
    const admin = await logIn(ADMIN.email)
    const { users } = (await (await admin.context.request.get(`${app.url}/api/v1/admin/users`)).json()) as { users: { email: string }[] }
    await admin.context.close()
    assert.deepEqual(users.filter(({ email }) => WRONG.some(([fault]) => email.startsWith(fault))), [])
  })

  test('login_that_another_browser_started_is_refused', async () => {
    // The attacker stops with the answer of the provider, and gives its address to the victim.
    const start = await fetch(`${app.url}/api/v1/auth/oidc/start`, { redirect: 'manual' })
    const toProvider = new URL(start.headers.get('location') ?? '')
    assert.equal(toProvider.origin, provider.url)
    toProvider.pathname = '/allow'
    toProvider.searchParams.set('email', 'attacker@example.org')
    const stolen = (await fetch(toProvider, { redirect: 'manual' })).headers.get('location') ?? ''
    assert.match(stolen, /code=.+/)
    const { page, context } = await openTab(app)
    await page.goto(stolen)
    await page.getByText('The login took too long, or was started in another browser.').waitFor()
    const { user } = (await (await context.request.get(`${app.url}/api/v1/auth/session`)).json()) as { user: unknown }
    assert.equal(user, null)
    await context.close()
  })

  test('next_leads_only_to_pages_of_the_app', async () => {
    const { page, context } = await openTab(app)
    await page.goto(`${app.url}/api/v1/auth/oidc/start?next=${encodeURIComponent('//evil.example/')}`)
    await page.getByLabel('Address').fill('grace@example.org')
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.waitForURL(`${app.url}/`)
    await context.close()
  })
})

describe('login with a provider where registration is closed', () => {
  test('only_those_with_an_account_log_in', async () => {
    const provider = await startProvider()
    const app = await startApp({
      args: ['--oidc-issuer', provider.url, '--oidc-client-id', CLIENT.id, '--registration', 'closed'],
      env: { SAVOIR_OIDC_CLIENT_SECRET: CLIENT.secret },
      direct: true,
    })
    const { page, context } = await openTab(app)
    for (const [email, seen] of [['nobody@example.org', 'You have no account here.'], [ADMIN.email, 'Skills']] as const) {
      await page.goto(`${app.url}/login`)
      await page.getByRole('link', { name: 'Continue with 127.0.0.1' }).click()
      await page.getByLabel('Address').fill(email)
      await page.getByRole('button', { name: 'Allow' }).click()
      await page.getByText(seen).first().waitFor()
    }
    await context.close()
    await app.close()
    provider.close()
    await stopBrowser()
  })
})
