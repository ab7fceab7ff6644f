import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { ADMIN, checkAccessible, checkFits, checkLooks, openLoggedIn, openTab, picture, startApp, stopBrowser, type App } from './helpers.ts'

describe('login and shell', () => {
  let app: App
  before(async () => {
    app = await startApp()
  })
  after(async () => {
    await app.close()
    await stopBrowser()
  })

  test('wrong_password_shows_the_error_and_right_one_opens_the_page_asked_for', async () => {
    const { page, context, problems } = await openTab(app)
    await page.goto(`${app.url}/`)
    await page.getByRole('heading', { name: 'Log in to Savoir' }).waitFor()
    await checkAccessible(page, 'login')
    await page.getByLabel('Email address').fill(ADMIN.email)
    await page.getByLabel('Password').fill('wrong password')
    await page.getByRole('button', { name: 'Log in' }).click()
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Password').fill(ADMIN.password)
    await page.getByRole('button', { name: 'Log in' }).click()
    await page.getByRole('navigation', { name: 'Sections' }).waitFor()
    const stored = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie)
    assert.ok(!/token|ey[A-Za-z0-9]{10}/.test(stored), `nothing secret is stored: ${stored}`)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('theme_is_kept_and_logging_out_shows_the_login', async () => {
    const { page, context, problems } = await openLoggedIn(app)
    await page.getByRole('button', { name: 'Theme' }).click()
    await page.getByRole('menuitemcheckbox', { name: 'Dark' }).click()
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark')
    await page.reload()
    await page.locator('h1').waitFor()
    assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme), 'dark')
    await page.getByRole('button', { name: 'Account' }).click()
    await page.getByText(ADMIN.email).waitFor()
    await page.getByRole('menuitem', { name: 'Log out' }).click()
    await page.getByRole('heading', { name: 'Log in to Savoir' }).waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('search_opens_with_the_keyboard_and_goes_to_a_page', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/design')
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Search' }).fill('star')
    await page.keyboard.press('Enter')
    await page.waitForURL(`${app.url}/`)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('search_finds_pages_settings_and_documents_of_all_kinds', async () => {
    await app.call('POST', '/api/v1/knowledge', { name: 'Travel handbook' })
    const { page, context, problems } = await openLoggedIn(app, '/design')
    await page.keyboard.press('Control+k')
    const field = page.getByRole('combobox', { name: 'Search' })
    const hits = page.getByRole('listbox').getByRole('option')
    await hits.filter({ hasText: 'Skills' }).first().waitFor()
    assert.equal(await hits.filter({ hasText: 'This machine' }).count(), 0, 'a server has no page about this machine')
    const icon = await page.getByRole('dialog').locator('.search svg').boundingBox()
    const box = await field.boundingBox()
    assert.ok(icon && box && icon.y > box.y && icon.y + icon.height < box.y + box.height, 'the icon is inside of the field')
    const first = await hits.first().boundingBox()
    assert.ok(first && box && first.y - (box.y + box.height) < 40, 'the results follow the field')
    await field.fill('travel')
    await hits.filter({ hasText: 'Travel handbook' }).waitFor()
    await field.fill('price')
    await hits.filter({ hasText: 'Models and keys' }).click()
    await page.waitForURL(`${app.url}/admin/models`)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('phone_has_a_drawer', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/design', { width: 360, height: 740, touch: true })
    await checkFits(page, 'design on a phone')
    await page.getByRole('button', { name: 'Open menu' }).click()
    await page.getByRole('dialog').getByRole('link', { name: 'Start' }).click()
    await page.waitForURL(`${app.url}/`)
    assert.equal(await page.getByRole('dialog').count(), 0)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('unknown_address_says_so', async () => {
    const { page, context } = await openLoggedIn(app)
    await page.goto(`${app.url}/nothing/here`)
    await page.getByRole('main').getByText('Page not found').waitFor()
    await context.close()
  })

  test('design_page_is_accessible_in_both_themes', async () => {
    await checkLooks(app, 'design', '/design', (page) => page.getByText('10,000 rows').waitFor())
  })
})

/** A key and an address typed for OpenAI are gone once another provider is chosen. */
async function sendsNoKeyToAnotherProvider(page: Page): Promise<void> {
  await page.getByLabel('Provider').selectOption('openai')
  await page.getByLabel('API key').fill('sk-only-for-openai')
  await page.getByLabel(/^Address/).fill('https://openai.example.org/v1')
  await page.getByLabel('Provider').selectOption('compatible')
  assert.equal(await page.getByLabel(/^API key/).inputValue(), '', 'the key field is there and empty')
  const address = page.getByLabel(/^Address/)
  assert.equal(await address.inputValue(), '')
  assert.equal(await address.getAttribute('placeholder'), 'http://127.0.0.1:8000/v1')
  assert.notEqual(await address.getAttribute('required'), null, 'there is no usual address')
  await address.fill('http://127.0.0.1:9/v1')
  const sent = page.waitForRequest(/\/admin\/providers\/compatible\/test$/)
  await page.getByRole('button', { name: 'Test the connection' }).click()
  assert.deepEqual((await sent).postDataJSON(), { base_url: 'http://127.0.0.1:9/v1' })
  await page.getByRole('alert').first().waitFor()
}

test('first_visit_creates_the_administrator', async () => {
  const app = await startApp({ fresh: true, model: false })
  try {
    const { page, problems } = await openTab(app)
    await page.goto(`${app.url}/setup#token=${app.setupToken}`)
    await page.getByLabel('Email address').fill(ADMIN.email)
    assert.ok(!page.url().includes('token'), 'the token leaves the address bar')
    await page.getByLabel('Password', { exact: true }).fill(ADMIN.password)
    await page.getByLabel('The same password again').fill('something else')
    await page.getByText('The passwords differ.').waitFor()
    await checkAccessible(page, 'setup')
    await page.getByLabel('The same password again').fill(ADMIN.password)
    await picture(page, 'setup')
    await page.getByRole('button', { name: 'Create account' }).click()
    await page.getByRole('heading', { name: 'Choose a model provider' }).waitFor()
    await page.getByRole('button', { name: 'Continue without a model' }).waitFor()
    await picture(page, 'setup-model')
    await checkAccessible(page, 'setup, step 2')
    await sendsNoKeyToAnotherProvider(page)
    await page.getByRole('button', { name: 'Continue without a model' }).click()
    await page.getByRole('navigation', { name: 'Sections' }).waitFor()
    assert.deepEqual(problems, [])
  } finally {
    await app.close()
    await stopBrowser()
  }
})
