/** A skill and a chat with a real, small language model, if scripts/services.sh runs one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openLoggedIn, startApp, stopBrowser } from './helpers.ts'

const url = process.env.SAVOIR_TEST_MODEL
const CONTENT = '---\nname: sea-poem\ndescription: Writes about the sea.\nmodel:\n  temperature: 0\n  max_tokens: 40\n---\n\nWrite one short sentence about the sea.\n'

test('skill_and_chat_get_answers_of_a_real_model', { skip: url ? false : 'there is no real model: run scripts/services.sh' }, async () => {
  const app = await startApp({ env: { OPENAI_BASE_URL: url ?? '', OPENAI_API_KEY: 'any', OPENAI_MODEL: 'smollm2' } })
  const made = await app.call('POST', '/api/v1/skills', { name: 'sea-poem', content: CONTENT })
  assert.equal(made.status, 201, await made.text())
  const { page, context, problems } = await openLoggedIn(app, '/skills/sea-poem?tab=run')
  page.setDefaultTimeout(120_000)
  await page.getByRole('main').getByRole('button', { name: 'Run', exact: true }).last().click()
  await page.getByRole('link', { name: 'Open in Runs' }).click()
  await page.getByRole('heading', { name: 'sea-poem' }).waitFor()
  const { runs } = (await (await app.call('GET', '/api/v1/runs?kind=prompt')).json()) as { runs: { id: string; state: string; output_tokens: number; model: string }[] }
  const [run] = runs
  assert.ok(run && run.state === 'ok' && run.output_tokens > 0, JSON.stringify(run))
  const { output } = (await (await app.call('GET', `/api/v1/runs/${run.id}`)).json()) as { output: string }
  assert.ok(/[a-z]{3}/i.test(output), output)

  await page.goto(`${app.url}/chat`)
  await page.getByRole('textbox', { name: 'Message' }).fill('Say hello.')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Answer again' }).first().waitFor()
  const { sessions } = (await (await app.call('GET', '/api/v1/chat/sessions')).json()) as { sessions: { id?: string; session_id?: string; message_count?: number }[] }
  assert.equal(sessions[0]?.message_count, 2)
  assert.deepEqual(problems, [])
  await context.close()
  await app.close()
  await stopBrowser()
})
