/** A tool of a skill asks in the conversation before it runs; the real server runs it in the sandbox. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { checkAccessible, checkFits, openLoggedIn, picture, startApp, stopBrowser, type App } from './helpers.ts'

const DEMO = `---
name: demo
version: 1.0.0
description: Says hello. Use when greeting.
read_only: true
---

# Demo

### hello

Say hello.

#### Parameters

None.

#### Command

\`\`\`bash
echo "hello world"
\`\`\`
`

describe('approvals', () => {
  let app: App
  before(async () => {
    app = await startApp({ args: ['--chat-tools', '--skill-tools'] })
    const made = await app.call('POST', '/api/v1/skills', { name: 'demo', content: DEMO })
    assert.equal(made.status, 201, await made.text())
  })
  after(async () => {
    await app.close()
    await stopBrowser()
  })

  /** The model loads the skill, calls its tool, and repeats what the tool said. */
  function script(): void {
    app.model.script = [
      { tools: [{ name: 'use_skill', arguments: { name: 'demo' } }] },
      { tools: [{ name: 'demo__hello', arguments: {} }] },
      (body) => `The tool said: ${JSON.stringify(body.messages.at(-1)?.content ?? '').includes('hello world') ? 'HELLO' : 'NOTHING'}`,
    ]
    app.model.pace = 1
  }

  test('tool_waits_for_the_answer_in_the_conversation', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/chat')
    const question = page.getByRole('region', { name: 'Allow hello?' })
    for (const [button, said, shown] of [['Deny', 'NOTHING', 'Denied'], ['Allow once', 'HELLO', 'Allowed once']] as const) {
      script()
      await page.goto(`${app.url}/chat`)
      await page.getByRole('textbox', { name: 'Message' }).fill('Greet me')
      await page.keyboard.press('Enter')
      await question.getByRole('button', { name: button }).waitFor()
      await question.getByText('echo hello world').waitFor()
      await picture(page, 'approval-1280')
      await checkAccessible(page, 'a question about a tool')
      await page.setViewportSize({ width: 360, height: 800 })
      await checkFits(page, 'a question about a tool, 360 px')
      await picture(page, 'approval-360')
      await question.getByRole('button', { name: button }).click()
      await page.getByText(`The tool said: ${said}`).first().waitFor()
      await question.getByText(shown).waitFor()
      await page.setViewportSize({ width: 1280, height: 800 })
    }
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('question_survives_a_reload', async () => {
    script()
    const { page, context, problems } = await openLoggedIn(app, '/chat')
    await page.getByRole('textbox', { name: 'Message' }).fill('Greet me once more')
    await page.keyboard.press('Enter')
    await page.getByRole('region', { name: 'Allow hello?' }).waitFor()
    await page.reload()
    await page.getByRole('region', { name: 'Allow hello?' }).getByRole('button', { name: 'Allow once' }).click()
    await page.getByText('The tool said: HELLO').first().waitFor()
    // The run lists the question and what the tool did.
    const { runs } = (await (await app.call('GET', '/api/v1/runs?kind=chat')).json()) as { runs: { id: string }[] }
    await page.goto(`${app.url}/runs/${runs[0]?.id}`)
    await page.getByText('Approval').first().waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('single_tool_runs_from_the_page_of_its_skill', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/skills/demo?tab=run')
    await page.getByLabel('What to run').selectOption('The tool hello')
    await page.getByText('This tool takes no arguments.').waitFor()
    await picture(page, 'tool-1280')
    await page.getByRole('button', { name: 'Run the tool' }).click()
    const question = page.getByRole('region', { name: 'Allow hello?' })
    await question.getByRole('button', { name: 'Deny' }).click()
    await page.getByText(/declined to run this tool/).first().waitFor()
    await page.getByRole('button', { name: 'Run again' }).click()
    await question.getByRole('button', { name: 'Allow once' }).waitFor()
    // A reload does not end the run: the question is still there.
    await page.reload()
    await question.getByRole('button', { name: 'Allow once' }).click()
    await page.getByText('hello world').first().waitFor()
    await checkAccessible(page, 'a tool that ran')
    await page.setViewportSize({ width: 360, height: 800 })
    await checkFits(page, 'a tool that ran, 360 px')
    await picture(page, 'tool-360')
    await page.getByRole('link', { name: 'Open in Runs' }).click()
    await page.getByRole('heading', { name: 'demo: hello' }).waitFor()
    await page.getByText('hello world').first().waitFor()
    await page.getByRole('button', { name: 'Run again' }).waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })
})
