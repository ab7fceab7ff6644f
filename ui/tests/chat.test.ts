import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { checkAccessible, checkFits, checkLooks, openLoggedIn, picture, startApp, stopBrowser, until, type App } from './helpers.ts'

const REFUNDS = `# Refunds\n\nYou can return a device within 30 days. ${'Keep the box and the receipt. '.repeat(8)}\n\nRefunds are paid within 14 days to the card that was charged.\n`

let app: App
let hasRuns = false
before(async () => {
  app = await startApp()
  hasRuns = (await app.call('GET', '/api/v1/runs')).ok
})
after(async () => {
  await app.close()
  await stopBrowser()
})

function script(...replies: App['model']['script']): void {
  app.model.script = replies
  app.model.pace = 5
}

async function say(page: Page, message: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message' }).fill(message)
  await page.keyboard.press('Enter')
}

const answers = (page: Page) => page.getByRole('article', { name: 'Savoir' })
const questions = (page: Page) => page.getByRole('article', { name: 'You' })

async function createBase(name: string, files: Record<string, string>): Promise<string> {
  const { id } = (await (await app.call('POST', '/api/v1/knowledge', { name })).json()) as { id: string }
  for (const [file, content] of Object.entries(files)) {
    const form = new FormData()
    form.append('file', new Blob([content]), file)
    assert.equal((await app.call('POST', `/api/v1/knowledge/${id}/upload`, form)).status, 200)
  }
  await until(async () => {
    const { documents } = (await (await app.call('GET', `/api/v1/knowledge/${id}/documents`)).json()) as { documents: { status: string }[] }
    return documents.every(({ status }) => status === 'completed')
  })
  return id
}

/** A chat answer with given events, for what the server cannot do yet. */
function events(list: [string, object][]): { contentType: string; body: string } {
  return { contentType: 'text/event-stream', body: list.map(([event, data]) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`).join('') }
}

interface Frames { cpu: number; median: number; p95: number }
const shown = ({ cpu, median, p95 }: Frames): string => `${cpu.toFixed(1)} ms CPU, median ${median.toFixed(1)} ms, 95 % ${p95.toFixed(1)} ms`

/** Scrolls the messages from the start and measures frames. CPU time does not depend on what else the machine does. */
async function scroll(page: Page, step: number, count: number): Promise<Frames> {
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  const busy = async (): Promise<number> => {
    const { metrics } = await session.send('Performance.getMetrics')
    return (metrics.find((metric) => metric.name === 'TaskDuration')?.value ?? 0) * 1000
  }
  const list = page.getByRole('list', { name: 'Messages' })
  await list.evaluate((element) => (element.scrollTop = 0))
  await page.waitForTimeout(500)
  const before = await busy()
  const times = await list.evaluate(async (element, [step, count]) => {
    const times: number[] = []
    let last = performance.now()
    for (let frame = 0; frame < count; frame += 1) {
      element.scrollTop += step
      await new Promise(requestAnimationFrame)
      const now = performance.now()
      times.push(now - last)
      last = now
    }
    return times.sort((a, b) => a - b)
  }, [step, count] as const)
  const cpu = ((await busy()) - before) / count
  await session.detach()
  return { cpu, median: times[Math.floor(count / 2)] ?? 0, p95: times[Math.floor(count * 0.95)] ?? 0 }
}

describe('chat', () => {
  test('question_is_answered_stored_and_still_there_after_a_reload', async () => {
    script('Rain **fell** on the hills.')
    const { page, context, problems } = await openLoggedIn(app, '/chat')
    await page.getByText('What do you want to know?').waitFor()
    await until(() => page.evaluate(() => document.activeElement?.tagName === 'TEXTAREA'), () => 'the field has the focus')
    await say(page, 'What is the weather?')
    await answers(page).getByText('fell', { exact: true }).waitFor()
    assert.match(page.url(), /\/chat\/[0-9a-f]{24}$/)
    assert.equal(await page.locator('h1').textContent(), 'What is the weather?')
    await page.getByRole('button', { name: 'Answer again' }).waitFor()
    const list = page.getByRole('list', { name: 'Conversations' })
    await list.getByText('What is the weather?').waitFor()
    await list.getByText('2 messages').waitFor()
    await page.reload()
    await answers(page).getByText('on the hills').waitFor()
    assert.equal(await questions(page).count(), 1)
    await say(page, 'And tomorrow?')
    await until(async () => (await answers(page).count()) === 2)
    await page.getByRole('button', { name: 'Answer again' }).waitFor()
    const last = app.model.requests.at(-1)
    assert.ok(last?.messages.some((message) => message.content === 'What is the weather?'), 'the model gets what was said before')
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('answer_goes_on_while_another_page_is_open', async () => {
    script('One two three four five six seven eight nine ten.')
    app.model.pace = 120
    const { page, context, problems } = await openLoggedIn(app, '/chat')
    await say(page, 'Count to ten')
    await answers(page).getByText('One two').waitFor()
    const url = page.url()
    await page.getByRole('link', { name: 'Knowledge' }).first().click()
    await page.getByRole('heading', { level: 1, name: 'Knowledge' }).waitFor()
    await page.goBack()
    assert.equal(page.url(), url)
    await answers(page).getByText('nine ten.').waitFor()
    assert.equal(await answers(page).count(), 1)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('reload_during_an_answer_follows_it_to_its_end', async (t) => {
    if (!hasRuns) return t.skip('the server has no history of runs')
    script('One two three four five six seven eight nine ten.')
    app.model.pace = 200
    const { page, context, problems } = await openLoggedIn(app, '/chat')
    await say(page, 'Count slowly')
    await answers(page).getByText('One two').waitFor()
    await page.reload()
    await answers(page).getByText('nine ten.').waitFor()
    assert.equal(await answers(page).count(), 1)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('stop_keeps_the_words_so_far', async () => {
    script('word '.repeat(300))
    app.model.pace = 30
    const { page, context, problems } = await openLoggedIn(app, '/chat')
    await say(page, 'Talk for a long time')
    await answers(page).getByText('word word').waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await answers(page).getByText('You stopped this answer.').waitFor()
    const kept = (await answers(page).textContent())?.match(/word/g)?.length ?? 0
    assert.ok(kept >= 2 && kept < 300, `${kept} words`)
    const id = page.url().split('/').at(-1)
    await until(async () => {
      const { messages } = (await (await app.call('GET', `/api/v1/chat/sessions/${id}`)).json()) as { messages: { content: string }[] }
      return messages[1]?.content.startsWith('word word')
    }, () => 'the words were not stored')
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('answer_again_asks_the_same_question', async () => {
    script('First try.', 'Second try.')
    const { page, context, problems } = await openLoggedIn(app, '/chat')
    await say(page, 'Try it')
    await answers(page).getByText('First try.').waitFor()
    await page.getByRole('button', { name: 'Answer again' }).click()
    await answers(page).getByText('Second try.').waitFor()
    assert.equal(app.model.requests.at(-1)?.messages.at(-1)?.content, 'Try it')
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('answer_again_replaces_the_answer_where_messages_can_be_removed', async () => {
    script('First try.', 'Second try.')
    const { page, context, problems } = await openLoggedIn(app, '/chat')
    let removed = ''
    await page.route('**/chat/sessions/*/messages?from=*', (route) => {
      removed = `${route.request().method()} ${new URL(route.request().url()).search}`
      return route.fulfill({ json: { message_count: 0 } })
    })
    await say(page, 'Try it')
    await answers(page).getByText('First try.').waitFor()
    await page.getByRole('button', { name: 'Answer again' }).click()
    await answers(page).getByText('Second try.').waitFor()
    assert.equal(removed, 'DELETE ?from=0')
    assert.equal(await answers(page).count(), 1)
    assert.equal(await questions(page).count(), 1)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('message_is_edited_and_sent_again', async () => {
    script('An answer.')
    const { page, context, problems } = await openLoggedIn(app, '/chat')
    await say(page, 'A quetsion')
    await answers(page).getByText('An answer.').waitFor()
    await questions(page).getByRole('button', { name: 'Edit and send again' }).click()
    const field = page.getByRole('textbox', { name: 'Message' })
    assert.equal(await field.inputValue(), 'A quetsion')
    await page.getByText('You edit a message.').waitFor()
    await field.fill('A question')
    await page.keyboard.press('Enter')
    await questions(page).getByText('A question', { exact: true }).waitFor()
    assert.equal(await page.getByText('You edit a message.').count(), 0)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('skill_is_chosen_with_the_keyboard_and_runs', async () => {
    script('Minutes of the meeting.')
    const { page, context, problems } = await openLoggedIn(app, '/chat')
    const field = page.getByRole('textbox', { name: 'Message' })
    await field.pressSequentially('@meet')
    const skills = page.getByRole('listbox', { name: 'Skills' })
    await skills.getByText('@meeting-minutes').waitFor()
    await checkAccessible(page, 'list of skills')
    await page.keyboard.press('Enter')
    assert.equal(await field.inputValue(), '@meeting-minutes ')
    await page.getByText('meeting-minutes needs:').waitFor()
    await field.pressSequentially('We met and decided nothing.')
    await page.getByText('Runs the skill meeting-minutes').waitFor()
    await page.keyboard.press('Enter')
    await answers(page).getByText('Minutes of the meeting.').waitFor()
    await answers(page).getByText('4 steps').click()
    await answers(page).getByText('Skill meeting-minutes').waitFor()
    await say(page, '@no-such-skill do it')
    await page.getByRole('alert').getByText(/not found/).first().waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('skill_without_its_input_is_not_sent', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/chat')
    const made = await app.call('POST', '/api/v1/skills', { name: 'needs-notes', content: '---\nname: needs-notes\ndescription: Sums up.\ninputs:\n  - name: notes\n    label: Notes\n    type: textarea\n    required: true\n---\n\nSum up {{notes}}\n' })
    assert.equal(made.status, 201, await made.text())
    await page.reload()
    const field = page.getByRole('textbox', { name: 'Message' })
    await field.fill('@needs-notes ')
    await page.getByText('needs-notes needs: Notes.').waitFor()
    assert.ok(await page.getByRole('button', { name: 'Send' }).isDisabled())
    await field.fill('@needs-notes Ship on friday.')
    assert.ok(await page.getByRole('button', { name: 'Send' }).isEnabled())
    await app.call('PATCH', '/api/v1/skills/needs-notes', { enabled: false })
    await page.reload()
    await field.fill('@needs-notes Ship on friday.')
    await page.getByText('needs-notes is disabled, so it cannot run.').waitFor()
    assert.ok(await page.getByRole('button', { name: 'Send' }).isDisabled())
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('knowledge_base_is_searched_and_a_citation_opens_its_passage', async () => {
    const kb = await createBase('Handbook', { 'refunds.md': REFUNDS })
    script('They are paid within 14 days [1], see also [7].')
    const { page, context, problems } = await openLoggedIn(app, '/chat')
    await page.getByRole('button', { name: 'Knowledge base', exact: true }).click()
    await page.getByRole('combobox', { name: 'Search: Knowledge base' }).fill('handb')
    await page.keyboard.press('Enter')
    await page.getByPlaceholder('Ask about Handbook').waitFor()
    await say(page, 'When are refunds paid?')
    await answers(page).getByText('Found 1 passage').waitFor()
    const cite = answers(page).getByRole('button', { name: 'Source 1: refunds.md' })
    await cite.waitFor()
    await answers(page).getByText('[7]').waitFor()
    await answers(page).getByRole('list', { name: 'Sources' }).getByRole('button', { name: 'Source 1 refunds.md passage 1' }).waitFor()
    await cite.click()
    const dialog = page.getByRole('dialog', { name: 'refunds.md' })
    await dialog.getByText('to the card that was charged').waitFor()
    assert.ok((await dialog.locator('mark').allTextContents()).includes('Refunds'))
    await checkAccessible(page, 'passage of a citation')
    await picture(page, 'chat-passage')
    const href = await dialog.getByRole('link', { name: 'Open in document' }).getAttribute('href')
    assert.ok(href?.startsWith(`/knowledge/${kb}/documents/`) && href.includes('passage=0'), href ?? '')
    await page.keyboard.press('Escape')
    assert.equal(await dialog.count(), 0)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('sources_of_all_answers_are_there_after_a_reload', async () => {
    await createBase('Shop', { 'refunds.md': REFUNDS })
    await app.call('POST', '/api/v1/skills', { name: 'tidy-text', content: '---\nname: tidy-text\ndescription: Tidies a text.\n---\n\nTidy the text.\n' })
    script('They are paid within 14 days [1].')
    const { page, context, problems } = await openLoggedIn(app, '/chat')
    await page.getByRole('button', { name: 'Knowledge base', exact: true }).click()
    await page.getByRole('combobox', { name: 'Search: Knowledge base' }).fill('shop')
    await page.keyboard.press('Enter')
    await page.getByPlaceholder('Ask about Shop').waitFor()
    await say(page, 'When are refunds paid?')
    await page.getByRole('list', { name: 'Sources' }).waitFor()
    script('The end.')
    await say(page, '@tidy-text teh end')
    await answers(page).last().getByText('The end.').waitFor()
    await page.reload()
    await answers(page).first().getByRole('list', { name: 'Sources' }).waitFor()
    await answers(page).first().getByRole('button', { name: 'Source 1: refunds.md' }).waitFor()
    await answers(page).last().getByText('openai:scripted').waitFor()
    await answers(page).last().getByText('4 steps').waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('workflow_answers_the_message', async () => {
    script('The workflow says hello.')
    const graph_data = {
      nodes: [
        { id: 'start', type: 'start', position: { x: 0, y: 0 }, data: {} },
        { id: 'writer', type: 'llm', position: { x: 200, y: 0 }, data: { prompt: 'Answer: {{input}}', systemPrompt: '', temperature: 0.2 } },
        { id: 'end', type: 'end', position: { x: 400, y: 0 }, data: {} },
      ],
      edges: [{ id: 'a', source: 'start', target: 'writer' }, { id: 'b', source: 'writer', target: 'end' }],
    }
    const made = await app.call('POST', '/api/v1/workflows', { name: 'Greeter', description: 'Says hello', graph_data })
    assert.ok(made.ok, await made.text())
    const { page, context, problems } = await openLoggedIn(app, '/chat')
    await page.getByRole('button', { name: 'Workflow', exact: true }).click()
    await page.getByRole('option', { name: /Greeter/ }).click()
    await page.getByPlaceholder('Message for Greeter').waitFor()
    await say(page, 'Hello')
    await answers(page).getByText('The workflow says hello.').waitFor()
    await answers(page).locator('summary').click()
    await answers(page).getByText('Workflow Greeter').waitFor()
    await answers(page).getByRole('listitem').getByText('writer (llm)').waitFor()
    await page.reload()
    await answers(page).getByText('The workflow says hello.').waitFor()
    await page.getByPlaceholder('Message for Greeter').waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('failure_of_the_model_shows_a_hint_and_can_be_tried_again', async () => {
    script({ status: 400 }, { status: 400 }, { status: 400 }, { status: 400 }, { status: 400 })
    const { page, context, problems } = await openLoggedIn(app, '/chat')
    await say(page, 'Will it work?')
    const note = answers(page).getByRole('alert')
    await note.getByText('The answer failed').waitFor()
    await checkAccessible(page, 'failed answer')
    script('Now it works.')
    await note.getByRole('button', { name: 'Try again' }).click()
    await answers(page).getByText('Now it works.').waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('attached_file_goes_to_a_new_knowledge_base_and_is_searched', async () => {
    script('It says 30 days [1].')
    const { page, context, problems } = await openLoggedIn(app, '/chat')
    await page.getByTestId('attach').setInputFiles([{ name: 'returns.md', mimeType: 'text/markdown', buffer: Buffer.from(REFUNDS) }])
    const dialog = page.getByRole('dialog', { name: 'Add files to which knowledge base?' })
    await dialog.getByRole('button', { name: 'New knowledge base' }).click()
    await dialog.getByLabel('Name').fill('My returns')
    await checkAccessible(page, 'attach dialog')
    await dialog.getByRole('button', { name: 'Add files' }).click()
    const files = page.getByRole('list', { name: 'Attached files' })
    await files.locator('li.done').getByText('returns.md').waitFor()
    await page.getByPlaceholder('Ask about My returns').waitFor()
    await page.getByTestId('attach').setInputFiles([{ name: 'photo.png', mimeType: 'image/png', buffer: Buffer.from('png') }])
    await files.getByText('Files of this type cannot be read.').waitFor()
    await picture(page, 'chat-attach')
    await say(page, 'How long can I return a device?')
    await answers(page).getByRole('button', { name: 'Source 1: returns.md' }).waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('conversation_is_exported_as_markdown_and_deleted', async () => {
    script('An *answer* with `code`.')
    const { page, context, problems } = await openLoggedIn(app, '/chat')
    await say(page, 'Ünique question?')
    await answers(page).getByText('answer', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Answer again' }).waitFor()
    const menu = page.getByRole('button', { name: 'Actions for this conversation' })
    await menu.click()
    const saving = page.waitForEvent('download')
    await page.getByRole('menuitem', { name: 'Export as Markdown' }).click()
    const saved = await saving
    assert.match(saved.suggestedFilename(), /^u.?nique-question\.md$/u)
    const text = readFileSync(await saved.path(), 'utf8')
    assert.match(text, /^# Ünique question\?\n\n## You, .+\n\nÜnique question\?\n\n## Savoir, .+\n\nAn \*answer\* with `code`\.\n$/)
    const id = page.url().split('/').at(-1)
    await menu.click()
    await page.getByRole('menuitem', { name: 'Delete conversation' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete conversation' }).click()
    await page.waitForURL(`${app.url}/chat`)
    await page.getByText('What do you want to know?').waitFor()
    assert.equal((await app.call('GET', `/api/v1/chat/sessions/${id}`)).status, 404)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('answer_cannot_run_script', async () => {
    const payloads = [
      '<img src=x onerror="window.hit=1">', '<svg onload="window.hit=1">', '[a](javascript:window.hit=1)', '<iframe srcdoc="<script>parent.hit=1</script>">',
      '<a href="javascript:window.hit=1">b</a>', '<details open ontoggle="window.hit=1">', '<style>*{display:none}</style>', '![x](https://other.example/x.png)',
    ]
    script('The start.\n\n' + payloads.join('\n\n'))
    const { page, context, problems } = await openLoggedIn(app, '/chat')
    await say(page, payloads.join('\n'))
    await answers(page).getByText('The start.').waitFor()
    await page.getByRole('button', { name: 'Answer again' }).waitFor()
    for (const link of await answers(page).locator('a').all()) await link.click({ timeout: 500 }).catch(() => {})
    assert.equal(await page.evaluate(() => (window as unknown as { hit?: number }).hit), undefined)
    const left = await answers(page).locator('.markdown').evaluate((root) =>
      [...root.querySelectorAll('*')].filter((node) => /^(img|svg|iframe|style|script)$/i.test(node.tagName) || node.getAttributeNames().some((name) => /^on|^srcdoc$/.test(name))).map((node) => node.outerHTML))
    assert.deepEqual(left, [])
    // The policy reports attributes that the sanitizer meets in its own inert document.
    assert.deepEqual(problems.filter((problem) => !problem.includes('inline event handler')), [])
    await context.close()
  })

  test('approval_question_is_shown_inline_and_answered', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/chat')
    let answer: unknown
    await page.route('**/api/v1/runs/run-1/approvals/q1', (route) => {
      answer = route.request().postDataJSON()
      return route.fulfill({ status: 204 })
    })
    const asked: [string, object][] = [
      ['thought', { type: 'tool', status: 'start', tool: 'fetch_page', call_id: 'c1', arguments: '{"url":"https://example.org"}' }],
      ['approval', {
        id: 'q1', call_id: 'c1', tool: 'fetch_page', skill: 'web-reader', choices: ['once', 'deny'],
        lines: [
          { role: 'warning', label: 'warning', text: 'It can send data to other computers.' },
          ...Array.from({ length: 40 }, () => ({ role: 'grave', label: 'permissions', text: 'send requests to example.org' })),
          ...Array.from({ length: 40 }, (_, at) => ({ role: 'fact', label: 'packages', text: `installs package-${at}` })),
        ],
      }],
    ]
    // A stream that stays open is not possible here: the app follows the run where it breaks off.
    await page.route('**/api/v1/chat/completions', (route) => {
      const { contentType, body } = events(asked)
      return route.fulfill({ contentType, body, headers: { 'x-savoir-run': 'run-1' } })
    })
    const done: [string, object][] = [
      ['approval', { id: 'q1', answer: 'once' }], ['thought', { type: 'tool', status: 'complete', tool: 'fetch_page', call_id: 'c1', duration_ms: 321 }],
      ['token', { content: 'The page says hello.' }], ['done', { status: 'success' }],
    ]
    await page.route('**/api/v1/runs/run-1/events', async (route) => {
      await until(() => answer !== undefined)
      return route.fulfill(events(done))
    })
    await say(page, 'Read the page')
    const question = page.getByRole('region', { name: 'Allow fetch_page?' })
    await question.getByText('permissions: send requests to example.org').first().waitFor()
    await question.getByText('installs package-39').waitFor()
    const details = await question.getByRole('region', { name: 'What would run' }).boundingBox()
    assert.ok(details && details.height <= (page.viewportSize()?.height ?? 0) / 2 + 1, 'many lines leave the buttons in sight')
    await question.getByText('It can send data to other computers.').waitFor()
    assert.equal(await question.getByRole('button', { name: 'Always allow' }).count(), 0, 'only what can be kept is offered')
    await picture(page, 'chat-approval')
    await checkAccessible(page, 'approval')
    await question.getByRole('button', { name: 'Allow once' }).click()
    await answers(page).getByText('The page says hello.').waitFor()
    assert.deepEqual(answer, { answer: 'once' })
    await question.getByText('Allowed once').waitFor()
    await page.getByRole('region', { name: 'Tool call fetch_page' }).getByText('321 ms').waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('chat_works_on_a_phone', async () => {
    script(`Here is a table:\n\n| a | b |\n|---|---|\n| ${'long '.repeat(30)} | x |\n\n\`\`\`\n${'wide '.repeat(60)}\n\`\`\``)
    const { page, context, problems } = await openLoggedIn(app, '/chat', { width: 360, height: 740, touch: true })
    await checkFits(page, 'empty chat at 360 px')
    await page.getByRole('textbox', { name: 'Message' }).fill('Show a table')
    await page.getByRole('button', { name: 'Send' }).tap()
    await answers(page).getByText('Here is a table').waitFor()
    await page.getByRole('button', { name: 'Answer again' }).waitFor()
    await checkFits(page, 'chat at 360 px')
    const box = await page.getByRole('textbox', { name: 'Message' }).boundingBox()
    assert.ok(box && box.y + box.height < 740, 'the field is visible')
    await page.getByRole('button', { name: 'Show conversations' }).tap()
    const drawer = page.getByRole('dialog', { name: 'Conversations' })
    await drawer.getByRole('link', { name: /Show a table/ }).waitFor()
    await picture(page, 'chat-phone-drawer')
    await checkAccessible(page, 'conversations on a phone')
    await drawer.getByRole('link', { name: 'New chat' }).tap()
    await page.getByText('What do you want to know?').waitFor()
    assert.equal(await drawer.count(), 0)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('five_thousand_messages_stay_smooth', async () => {
    const { page, context, problems } = await openLoggedIn(app)
    const line = (index: number): string => `Message ${index}. ${'Some **words** about `code` and [links](https://example.org). '.repeat(1 + (index % 12))}${index % 7 ? '' : '\n\n- one\n- two\n\n```\ncode\n```'}`
    const message = (index: number): object => ({ index, role: index % 2 ? 'assistant' : 'user', content: line(index), timestamp: new Date(1.7e12 + index * 1000).toISOString() })
    const newest = Array.from({ length: 1000 }, (_, at) => message(4000 + at))
    await page.route('**/api/v1/chat/sessions/big', (route) =>
      route.fulfill({ json: { session_id: 'big', messages: newest, created_at: '', updated_at: '', kb_id: null, workflow_id: null, user_id: '1', message_count: 5000 } }))
    await page.route('**/api/v1/chat/sessions/big/messages?*', (route) => {
      const before = Number(new URL(route.request().url()).searchParams.get('before'))
      return route.fulfill({ json: { messages: Array.from({ length: 1000 }, (_, at) => message(before - 1000 + at)), total: 5000 } })
    })
    const opened = Date.now()
    await page.goto(`${app.url}/chat/big`)
    await page.getByText('Message 4999.').waitFor()
    const took = Date.now() - opened
    const list = page.getByRole('list', { name: 'Messages' })
    assert.ok((await list.getByRole('listitem').count()) < 60, 'only visible messages are rendered')

    // Scroll to the start; earlier messages are loaded on the way without a jump.
    for (let at = 4000; at > 0; at -= 1000) {
      await list.evaluate((element) => (element.scrollTop = 0))
      await until(async () => (await list.getByRole('listitem').first().getAttribute('aria-setsize')) === String(5000 - at + 1000))
    }
    assert.equal(await list.getByRole('listitem').first().getAttribute('aria-setsize'), '5000')
    // A fast wheel, and a drag of the scroll bar over the whole conversation.
    const wheel = await scroll(page, 400, 200)
    const drag = await scroll(page, (await list.evaluate((element) => element.scrollHeight)) / 200, 200)
    console.log(`5,000 messages: opened in ${took} ms; per frame: wheel ${shown(wheel)}; scroll bar ${shown(drag)}`)
    assert.ok((await list.getByRole('listitem').count()) < 60)

    // What is read stays in place while rows above it are measured.
    await list.evaluate((element) => (element.scrollTop = element.scrollHeight / 2))
    await page.waitForTimeout(300)
    const place = (): Promise<[string, number]> => list.evaluate((element) => {
      const top = element.getBoundingClientRect().top
      const row = [...element.querySelectorAll<HTMLElement>('[data-row]')].find((other) => other.getBoundingClientRect().top >= top)
      return [row?.dataset.row ?? '', row ? row.getBoundingClientRect().top - top : 0]
    })
    const [row, y] = await place()
    await list.evaluate((element) => (element.scrollTop -= 30))
    await page.waitForTimeout(300)
    const moved = await list.evaluate((element, wanted) => {
      const found = element.querySelector(`[data-row="${wanted}"]`)
      return found ? found.getBoundingClientRect().top - element.getBoundingClientRect().top : NaN
    }, row)
    assert.ok(Math.abs(moved - y - 30) < 2, `moved by ${moved - y} px instead of 30`)
    await page.getByRole('button', { name: 'Go to the newest message' }).click()
    await page.getByText('Message 4999.').waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('pages_look_right_in_both_themes', async () => {
    const kb = await createBase('Returns', { 'refunds.md': REFUNDS })
    script('You have **30 days**. The money is back within 14 days [1].\n\n1. Pack the device with its box.\n2. Add the receipt.\n3. Send it to us.\n\n```sh\nsavoir run returns\n```')
    const turn = { session_id: 'looks', message: 'How do refunds work?', kb_id: kb }
    await (await app.call('POST', '/api/v1/chat/completions', turn)).text()
    await (await app.call('POST', '/api/v1/chat/completions', { ...turn, message: 'Can I keep the box? I would like to use it for something else.' })).text()
    await checkLooks(app, 'chat', '/chat/looks', (page) => answers(page).nth(1).waitFor())
    await checkLooks(app, 'chat-new', '/chat', (page) => page.getByText('What do you want to know?').waitFor())
  })
})

test('tool_calls_are_shown_inline', async () => {
  const other = await startApp({ args: ['--chat-tools'] })
  try {
    other.model.script = [
      { text: 'Let me look.', tools: [{ name: 'use_skill', arguments: { name: 'meeting-minutes' } }, { name: 'no_such_tool', arguments: { a: 1 } }] },
      'I used the skill.',
    ]
    const { page, problems } = await openLoggedIn(other, '/chat')
    await page.getByRole('textbox', { name: 'Message' }).fill('Write minutes')
    await page.keyboard.press('Enter')
    const call = page.getByRole('region', { name: 'Tool call use_skill' })
    await call.getByText('Done').waitFor()
    await call.getByText('Arguments').click()
    await call.getByText('"name": "meeting-minutes"').waitFor()
    await page.getByRole('region', { name: 'Tool call no_such_tool' }).getByText(/Not allowed|Failed/).waitFor()
    await answers(page).getByText('I used the skill.').waitFor()
    const order = await page.getByRole('article', { name: 'Savoir' }).innerText()
    assert.ok(order.indexOf('Let me look.') < order.indexOf('use_skill') && order.indexOf('use_skill') < order.indexOf('I used'), 'in the order in which they happened')
    await picture(page, 'chat-tools')
    await checkAccessible(page, 'tool calls')
    assert.deepEqual(problems, [])
  } finally {
    await other.close()
    await stopBrowser()
  }
})
