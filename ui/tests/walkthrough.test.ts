/** What people ran into when they used the app for the first time, across its pages. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { checkAccessible, openLoggedIn, startApp, stopBrowser, until, ADMIN, type App } from './helpers.ts'
import { pack, publish, skill } from './packages.ts'

const BOB = { email: 'bob@example.org', password: 'battery staple' }
const TWO = `---
name: two-req
description: Translates.
inputs:
  - {name: language, label: Language, type: text, required: true}
  - {name: text, label: Text, type: textarea, required: true}
---

Translate to {{language}}: {{text}}
`
const GREET = '---\nname: greet\ndescription: Greets.\ninputs:\n  - {name: who, label: Who, type: text, required: true}\n---\n\nGreet {{who}}.\n'

let app: App
let bob = ''
before(async () => {
  app = await startApp()
  const made = await app.call('POST', '/api/v1/admin/users', { ...BOB, role: 'user' })
  assert.ok(made.ok, await made.text())
  const login = await fetch(`${app.server}/api/v1/auth/login`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(BOB) })
  bob = ((await login.json()) as { token: string }).token
  for (const [name, content] of [['two-req', TWO], ['greet', GREET]]) {
    const created = await app.call('POST', '/api/v1/skills', { name, content })
    assert.equal(created.status, 201, await created.text())
  }
})
after(async () => {
  await app.close()
  await stopBrowser()
})
beforeEach(() => {
  app.model.script = ['Rain fell. It was wet.']
  app.model.pace = 5
})

const asBob = (method: string, path: string, body: unknown): Promise<Response> =>
  fetch(app.server + path, { method, headers: { authorization: `Bearer ${bob}`, 'content-type': 'application/json' }, body: JSON.stringify(body) })
const answers = (page: Page) => page.getByRole('article', { name: 'Savoir' })
const message = (page: Page) => page.getByRole('textbox', { name: 'Message', exact: true })
const long = (words: number): string => Array.from({ length: words }, (_, at) => `word${at} `).join('')

describe('conversations of others', () => {
  test('administrator_reads_them_with_their_owner_but_cannot_write', async () => {
    const said = await asBob('POST', '/api/v1/chat/completions', { session_id: 'of-bob', message: 'A question of Bob' })
    await said.text()
    assert.equal(said.status, 200)
    const refused = await app.call('POST', '/api/v1/chat/completions', { session_id: 'of-bob', message: 'hello' })
    assert.equal(refused.status, 403)

    const { page, context, problems } = await openLoggedIn(app, '/chat')
    await page.getByText('Everyone’s').click()
    const row = page.getByRole('list', { name: 'Conversations' }).getByRole('link', { name: /A question of Bob/ })
    await row.getByText(BOB.email).waitFor()
    await row.click()
    await page.getByText(`This conversation belongs to ${BOB.email}`).waitFor()
    await page.getByRole('article', { name: BOB.email }).getByText('A question of Bob').waitFor()
    assert.equal(await message(page).count(), 0)
    assert.equal(await page.getByRole('button', { name: 'Answer again' }).count(), 0)
    await checkAccessible(page, 'a conversation of another account')
    assert.deepEqual(problems, [])
    await context.close()
  })
})

describe('a stopped answer', () => {
  test('says_so_after_a_reload_and_in_the_export_and_its_tokens_are_an_estimate', async () => {
    app.model.script = [long(400)]
    app.model.pace = 30
    const { page, context, problems } = await openLoggedIn(app, '/chat')
    await message(page).fill('Tell me everything')
    await page.keyboard.press('Enter')
    await answers(page).getByText('word5').waitFor()
    await page.getByRole('button', { name: 'Stop', exact: true }).click()
    await page.getByText('You stopped this answer.').waitFor()
    assert.equal(await page.evaluate(() => document.activeElement?.tagName), 'TEXTAREA', 'the focus is not lost')
    await page.reload()
    await answers(page).getByText('This answer was stopped before its end.').waitFor()
    await page.getByRole('button', { name: 'Actions for this conversation' }).click()
    const [saved] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name: 'Export as Markdown' }).click()])
    const stream = await saved.createReadStream()
    let text = ''
    for await (const part of stream) text += String(part)
    assert.match(text, /This answer was stopped before its end/)

    await page.goto(`${app.url}/runs?state=stopped`)
    await page.getByRole('link', { name: /Tell me everything/ }).getByText(/^≈ \d/).first().waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })
})

describe('a session that ends', () => {
  for (const path of ['/skills/new', '/skills/greet/edit']) {
    test(`keeps_the_text_of_the_editor_at_${path}`, async () => {
      const { page, context, problems } = await openLoggedIn(app, path)
      const editor = page.getByRole('textbox', { name: 'Text of the skill' })
      await editor.waitFor()
      await editor.click()
      await page.keyboard.press('Control+End')
      await page.keyboard.type('Typed before the session ended.')
      await page.keyboard.press('Control+s')
      await page.getByRole('dialog').getByText('Typed before the session ended.').first().waitFor()
      await context.clearCookies()
      // A check of the text may find out first that the session has ended.
      await page.getByRole('dialog').getByRole('button', { name: /^(Save|Create)/ }).click({ timeout: 3000 }).catch(() => {})
      await page.getByText('Log in to continue where you were').waitFor()
      await page.getByLabel('Email').fill(ADMIN.email)
      await page.getByLabel('Password').fill(ADMIN.password)
      await page.getByRole('button', { name: 'Log in', exact: true }).click()
      await page.getByText('Log in to continue where you were').waitFor({ state: 'detached' })
      await page.getByRole('dialog').getByText('Typed before the session ended.').first().waitFor()
      assert.deepEqual(problems.filter((problem) => !problem.includes('401')), [])
      await context.close()
    })
  }
})

describe('a skill with several inputs', () => {
  test('has_a_field_for_each_in_chat', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/chat?skill=two-req')
    const inputs = page.getByRole('group', { name: 'Inputs of two-req' })
    await inputs.getByLabel('Language').fill('French')
    const send = page.getByRole('button', { name: 'Send' })
    assert.equal(await send.isDisabled(), true)
    await page.getByText('two-req needs: Text. Fill in the fields above.').waitFor()
    await inputs.getByLabel('Text').fill('Good morning\nlanguage: is not this')
    await checkAccessible(page, 'inputs of a skill in chat')
    await send.click()
    await answers(page).getByText('Rain fell').waitFor()
    const asked = app.model.requests.at(-1)?.messages.at(-1)?.content ?? ''
    assert.match(asked, /^Translate to French: Good morning\nlanguage: is not this\s*$/)
    // The values return into their fields when the message is edited.
    await page.getByRole('button', { name: 'Edit and send again' }).click()
    await until(async () => (await inputs.getByLabel('Language').inputValue()) === 'French')
    assert.equal(await inputs.getByLabel('Text').inputValue(), 'Good morning\nlanguage: is not this')
    assert.deepEqual(problems, [])
    await context.close()
  })
})

describe('a model that cannot be reached', () => {
  let down: App
  before(async () => {
    // Nothing listens at this port, and no model is named: it must be looked up.
    down = await startApp({ model: false, env: { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', OPENAI_API_KEY: 'test' } })
    await down.call('POST', '/api/v1/skills', { name: 'greet', content: GREET })
  })
  after(() => down.close())

  test('is_the_reason_in_the_run_the_chat_and_on_start', async () => {
    const { page, context, problems } = await openLoggedIn(down, '/skills/greet?tab=run')
    await page.getByLabel('Who').fill('Ada')
    await page.getByRole('button', { name: 'Run', exact: true }).last().click()
    await page.getByRole('alert').getByText(/openai cannot be reached/i).waitFor({ timeout: 30_000 })
    await page.getByRole('link', { name: 'Open in Runs' }).click()
    await page.getByRole('alert').getByText(/openai cannot be reached/i).waitFor()
    await page.getByRole('link', { name: 'Open Administration' }).waitFor()
    await page.getByText('Model call').first().waitFor()
    // The inputs of the failed run can be changed.
    await page.getByRole('link', { name: 'Change inputs and run' }).click()
    await until(async () => (await page.getByLabel('Who').inputValue()) === 'Ada')
    await page.goto(`${down.url}/chat`)
    await page.getByText('The models cannot be reached').waitFor({ timeout: 30_000 })
    await message(page).fill('Hello?')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').getByText(/openai cannot be reached/i).waitFor({ timeout: 30_000 })
    assert.equal(await page.getByText('Chat generation failed').count(), 0)
    await page.goto(down.url)
    await page.getByText(/openai cannot be reached/i).first().waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('is_said_at_once_when_a_workflow_is_run', async () => {
    const graph = {
      nodes: [
        { id: 'start', type: 'start', position: { x: 0, y: 0 }, data: {} },
        { id: 'ask', type: 'llm', position: { x: 288, y: 0 }, data: { label: 'Ask', systemPrompt: 'Answer.' } },
        { id: 'end', type: 'end', position: { x: 576, y: 0 }, data: {} },
      ],
      edges: [{ id: '1', source: 'start', target: 'ask' }, { id: '2', source: 'ask', target: 'end' }],
    }
    const made = await down.call('POST', '/api/v1/workflows', { name: 'Ask', graph_data: graph })
    const { id } = (await made.json()) as { id: string }
    const { page, context, problems } = await openLoggedIn(down, `/workflows/${id}`)
    await page.getByRole('button', { name: 'Run', exact: true }).first().click()
    await page.getByLabel('Input', { exact: true }).fill('x')
    await page.keyboard.press('Control+Enter')
    await page.getByText('Checking the models…').waitFor({ timeout: 2000 })
    await page.getByText(/The models cannot be listed\. openai cannot be reached/i).first().waitFor({ timeout: 30_000 })
    assert.deepEqual(problems.filter((problem) => !problem.includes('shortcut')), [])
    await context.close()
  })
})

describe('a yanked version', () => {
  test('is_marked_asks_before_it_is_added_and_the_skill_remembers_it', async () => {
    for (const version of ['1.0.0', '1.0.1']) await publish(app, skill({ name: 'letter', version }))
    const yanked = await app.call('POST', '/registry/api/v1/skills/acme/letter/1.0.1/yank', { yanked: true, reason: 'Wrong greeting.' })
    assert.ok(yanked.ok, await yanked.text())
    const { page, context, problems } = await openLoggedIn(app, '/registry/skills/acme/letter?version=1.0.1')
    assert.match((await page.getByLabel('Version', { exact: true }).textContent()) ?? '', /1\.0\.1 · yanked/)
    await page.getByText('Wrong greeting. Existing installs keep working.').waitFor()
    const add = page.getByRole('button', { name: 'Add to my skills' })
    await add.click()
    await page.getByRole('dialog').getByText('Wrong greeting').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await until(() => add.evaluate((button) => document.activeElement === button), () => 'the button has the focus again')
    await add.click()
    await page.getByRole('button', { name: 'Add anyway' }).click()
    await page.getByRole('link', { name: 'Open it' }).click()
    await page.getByRole('link', { name: 'acme/letter 1.0.1' }).waitFor()
    await page.getByText('Version 1.0.1 was yanked in the registry').waitFor()
    await page.getByText('Open version 1.0.0 in the registry').waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })
})

describe('a skill with a script', () => {
  test('says_that_the_script_does_not_run_and_unknown_skills_have_no_actions', async () => {
    const form = new FormData()
    form.append('file', await pack({ 'SKILL.md': '---\nname: word-count\ndescription: Counts words.\n---\n\nRun scripts/count.py with the text.\n', 'scripts/count.py': 'import sys\nprint(len(sys.argv))\n' }), 'word-count.zip')
    const imported = await app.call('POST', '/api/v1/skills/import', form)
    assert.ok(imported.ok, await imported.text())
    const { page, context, problems } = await openLoggedIn(app, '/skills/word-count?tab=run')
    await page.getByText('The script scripts/count.py does not run here').waitFor()
    await page.goto(`${app.url}/skills/doesnotexist`)
    await page.getByRole('alert').waitFor()
    assert.equal(await page.getByRole('button', { name: /^(Run|More actions)/ }).count(), 0)
    assert.deepEqual(problems, [])
    await context.close()
  })
})
