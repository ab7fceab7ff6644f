/** An administrator sees the skills of all accounts: each row and page is about the skill of one owner. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { checkAccessible, checkFits, openLoggedIn, picture, startApp, stopBrowser, until, type App } from './helpers.ts'

const BEN = { email: 'ben@example.org', password: 'correct horse' }
const skill = (name: string, line: string): string => `---\nname: ${name}\ndescription: ${line}\n---\n\n${line}\n`

describe('accounts', () => {
  let app: App
  let ben = ''
  let benId = 0

  const as = (token: string, method: string, path: string, body?: string): Promise<Response> =>
    fetch(app.server + path, {
      method, body,
      headers: { authorization: `Bearer ${token}`, 'content-type': method === 'POST' && path.endsWith('import') ? 'text/markdown' : 'application/json' },
    })
  const stored = async (path: string): Promise<{ enabled: boolean }[]> =>
    ((await (await as(ben, 'GET', path)).json()) as { skills: { name: string; enabled: boolean }[] }).skills.filter(({ name }) => name === 'release-notes')
  const own = async (): Promise<{ enabled: boolean; description: string }[]> =>
    ((await (await app.call('GET', '/api/v1/personal-skills')).json()) as { skills: { name: string; description: string; enabled: boolean }[] }).skills.filter(({ name }) => name === 'release-notes')

  before(async () => {
    app = await startApp()
    const made = await app.call('POST', '/api/v1/admin/users', { ...BEN, role: 'user' })
    benId = ((await made.json()) as { id: number }).id
    const login = await fetch(`${app.server}/api/v1/auth/login`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(BEN) })
    ben = ((await login.json()) as { token: string }).token
    const created = await app.call('POST', '/api/v1/skills', { name: 'release-notes', content: skill('release-notes', 'Notes of Ada.') })
    assert.equal(created.status, 201, await created.text())
    for (const name of ['release-notes', 'key-helper']) {
      const imported = await as(ben, 'POST', '/api/v1/skills/import', skill(name, 'Notes of Ben.'))
      assert.ok(imported.ok, await imported.text())
    }
    await as(ben, 'PATCH', '/api/v1/skills/key-helper', JSON.stringify({ enabled: false }))
  })
  after(async () => {
    await app.close()
    await stopBrowser()
  })

  test('rows_of_other_accounts_show_their_owner_and_change_only_their_own_skill', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/skills')
    const links = page.getByRole('link', { name: 'release-notes', exact: true })
    await links.nth(1).waitFor()
    const hrefs = (await links.evaluateAll((all) => all.map((link) => link.getAttribute('href')))).toSorted()
    assert.deepEqual(hrefs, ['/skills/release-notes', `/skills/release-notes?owner=${benId}`])
    await page.locator('.skill').getByText(BEN.email).first().waitFor()
    await checkAccessible(page, 'skills of several accounts')

    // The switch of the other account's row changes that skill alone.
    const row = page.locator('.skill').filter({ hasText: BEN.email }).filter({ hasText: 'release-notes' })
    await row.getByRole('switch').click()
    await until(async () => (await stored('/api/v1/personal-skills'))[0]?.enabled === false)
    assert.equal(await page.getByRole('switch', { name: `Offer release-notes of ${BEN.email} to agents`, checked: false }).count(), 1)
    assert.equal((await own()).find(({ description }) => description === 'Notes of Ada.')?.enabled, true)

    // "Select all" leaves out what belongs to others.
    await page.getByLabel('Select all').check()
    assert.equal(await row.getByRole('checkbox').isChecked(), false)

    await row.getByRole('link', { name: 'release-notes' }).click()
    await page.getByRole('heading', { name: 'release-notes' }).waitFor()
    await page.getByText('Notes of Ben.').first().waitFor()
    await page.getByText(BEN.email).first().waitFor()
    assert.equal(await page.getByText('Notes of Ada.').count(), 0)
    // What the server knows by the name alone may be about her own skill.
    await page.getByRole('tab', { name: /Safety/ }).click()
    await page.getByText('Several accounts have a skill of this name').waitFor()
    assert.equal(await page.getByRole('link', { name: 'Edit' }).getAttribute('href'), `/skills/release-notes/edit?owner=${benId}`)
    await page.setViewportSize({ width: 360, height: 800 })
    await checkFits(page, 'a skill of another account, 360 px')
    await picture(page, 'skill-of-another-account-360')
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('text_of_another_account_is_saved_for_that_account', async () => {
    const { page, context, problems } = await openLoggedIn(app, `/skills/release-notes/edit?owner=${benId}`)
    const editor = page.getByRole('textbox', { name: 'Text of the skill' })
    await until(async () => (await editor.inputValue()).includes('Notes of Ben.'))
    await editor.click()
    await page.keyboard.press('Control+End')
    await page.keyboard.insertText('Changed by an administrator.\n')
    await page.getByRole('button', { name: 'Review and save' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.waitForURL(`**/skills/release-notes?owner=${benId}`)
    await page.getByText('Changed by an administrator.').first().waitFor()
    const mine = (await (await app.call('GET', '/api/v1/skills/release-notes')).json()) as { raw_content: string }
    assert.ok(!mine.raw_content.includes('Changed by'), 'her own skill of the same name is unchanged')
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('start_counts_and_lists_only_own_skills', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/')
    await page.getByText('Needs attention').waitFor()
    await page.getByRole('link', { name: 'release-notes' }).first().waitFor()
    assert.equal(await page.getByText('key-helper waits for your review').count(), 0)
    assert.equal(await page.getByText('key-helper').count(), 0)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('search_finds_skills_of_the_same_name', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('release', { delay: 20 })
    const hits = page.getByRole('option').filter({ hasText: 'release-notes' })
    await hits.nth(1).waitFor()
    await hits.filter({ hasText: BEN.email }).click()
    await page.waitForURL(`**/skills/release-notes?owner=${benId}`)
    await page.keyboard.press('Control+k')
    await page.keyboard.type('release', { delay: 20 })
    await hits.filter({ hasNotText: BEN.email }).first().click()
    await page.getByText('Notes of Ada.').first().waitFor()
    assert.equal(new URL(page.url()).search, '')
    assert.deepEqual(problems, [])
    await context.close()
  })
})
