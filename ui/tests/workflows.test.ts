import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { checkAccessible, checkFits, checkLooks, openLoggedIn, picture, startApp, stopBrowser, until, type App, type TabOptions } from './helpers.ts'

interface Stored {
  id: string
  name: string
  updated_at: string
  graph_data: { nodes: { id: string; type: string; position: { x: number; y: number }; data: Record<string, unknown> }[]; edges: { source: string; target: string; sourceHandle?: string }[] }
}

const ASK = {
  nodes: [
    { id: 'start', type: 'start', position: { x: 0, y: 0 }, data: { inputVariable: 'question' } },
    { id: 'answer', type: 'llm', position: { x: 288, y: 0 }, data: { label: 'Answer', systemPrompt: 'Answer {{question}}.' } },
    { id: 'end', type: 'end', position: { x: 576, y: 0 }, data: {} },
  ],
  edges: [{ id: '1', source: 'start', target: 'answer' }, { id: '2', source: 'answer', target: 'end' }],
}
const BRANCHES = {
  nodes: [
    { id: 'start', type: 'start', data: { inputVariable: 'message' } },
    { id: 'rate', type: 'llm', data: { label: 'Rate', systemPrompt: 'Is it urgent?' } },
    { id: 'urgent', type: 'condition', data: { label: 'Urgent', expression: "{{rate.output}} contains 'yes'" } },
    { id: 'alert', type: 'llm', data: { label: 'Alert', systemPrompt: 'Alert about {{message}}' } },
    { id: 'reply', type: 'llm', data: { label: 'Reply', systemPrompt: 'Reply to {{message}}' } },
    { id: 'end', type: 'end', data: {} },
  ],
  edges: [
    { source: 'start', target: 'rate' }, { source: 'rate', target: 'urgent' }, { source: 'urgent', target: 'alert', sourceHandle: 'true' },
    { source: 'urgent', target: 'reply', sourceHandle: 'false' }, { source: 'alert', target: 'end' }, { source: 'reply', target: 'end' },
  ],
}

let app: App
before(async () => {
  app = await startApp()
  await app.call('POST', '/api/v1/knowledge', { name: 'Plants' })
})
after(async () => {
  await app.close()
  await stopBrowser()
})
beforeEach(() => {
  app.model.script = ['Rain fell. It was wet.']
  app.model.pace = 5
})

async function make(name: string, graph: unknown = ASK): Promise<string> {
  const answer = await app.call('POST', '/api/v1/workflows', { name, graph_data: graph })
  assert.equal(answer.status, 201, await answer.clone().text())
  return ((await answer.json()) as Stored).id
}

const stored = async (id: string): Promise<Stored> => (await (await app.call('GET', `/api/v1/workflows/${id}`)).json()) as Stored
const step = (page: Page, id: string) => page.locator(`.svelte-flow__node[data-id="${id}"]`)
const edges = (page: Page) => page.locator('.svelte-flow__edge')
const panel = (page: Page) => page.getByRole('complementary', { name: 'Details' })
const canvas = (page: Page) => page.getByRole('application')
const saved = (page: Page) => page.locator('.save.saved').waitFor()

async function edit(id: string, options: TabOptions = {}) {
  const tab = await openLoggedIn(app, `/workflows/${id}`, options)
  await tab.page.locator('.svelte-flow__node').first().waitFor()
  return tab
}

/** Waits until the server has what the test expects. */
async function storedWhen(id: string, what: string, test: (graph: Stored['graph_data']) => boolean): Promise<Stored['graph_data']> {
  let last: Stored['graph_data'] | undefined
  await until(async () => {
    last = (await stored(id)).graph_data
    return test(last)
  }, () => `${what}: ${JSON.stringify(last)}`)
  assert.ok(last)
  return last
}

async function center(page: Page, locator: ReturnType<typeof step>): Promise<{ x: number; y: number }> {
  const box = await locator.boundingBox()
  assert.ok(box)
  return { x: box.x + box.width / 2, y: box.y + box.height / 2 }
}

async function dragHandle(page: Page, from: string, to: string): Promise<void> {
  const start = await center(page, page.locator(from))
  const end = await center(page, page.locator(to))
  await page.mouse.move(start.x, start.y)
  await page.mouse.down()
  await page.mouse.move((start.x + end.x) / 2, (start.y + end.y) / 2, { steps: 4 })
  await page.mouse.move(end.x, end.y, { steps: 4 })
  await page.mouse.up()
}

const out = (id: string, exit?: string): string => `.svelte-flow__node[data-id="${id}"] .svelte-flow__handle.source${exit ? `.exit-${exit}` : ''}`
const into = (id: string): string => `.svelte-flow__node[data-id="${id}"] .svelte-flow__handle.target`

describe('list', () => {
  test('empty_list_teaches_and_template_creates_a_workflow', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/workflows')
    await page.getByText('Build your first workflow').waitFor()
    await checkAccessible(page, 'empty list')
    await picture(page, 'workflows-empty')
    await page.getByRole('main').getByRole('button', { name: 'New workflow' }).first().click()
    await page.getByLabel('Name').fill('Search plants')
    await page.getByText('Search and summarise', { exact: true }).click()
    await picture(page, 'workflows-create')
    await checkAccessible(page, 'create dialog')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { level: 1, name: 'Search plants' }).waitFor()
    await step(page, 'search').waitFor()
    assert.equal(await page.locator('.svelte-flow__node').count(), 4)
    await page.getByRole('button', { name: /Checklist: 1 error/ }).waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('template_that_calls_a_server_has_an_address_and_says_where_to_enable_it', async () => {
    const { page, context, problems } = await openLoggedIn(app, '/workflows')
    await page.getByRole('main').getByRole('button', { name: 'New workflow' }).first().click()
    await page.getByLabel('Name').fill('Read a page')
    await page.getByText('Fetch and summarise', { exact: true }).click()
    await page.getByRole('button', { name: 'Create' }).click()
    await step(page, 'page').getByText('https://example.com/').waitFor()
    await page.getByRole('button', { name: /Checklist: 1 error/ }).click()
    await panel(page).getByText('Switch on “HTTP requests in workflows” under Administration, Limits and features.').waitFor()
    assert.equal(await panel(page).getByRole('link', { name: 'Open Limits and features' }).getAttribute('href'), '/admin/limits')
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('list_of_models_that_is_empty_once_is_loaded_again', async () => {
    const id = await make('Asks a model')
    const { page, context, problems } = await openLoggedIn(app)
    let asked = 0
    await page.route('**/api/v1/chat/models', (route) => ((asked += 1) === 1 ? route.fulfill({ json: { items: [], total: 0, default_model: null } }) : route.fallback()))
    await page.goto(`${app.url}/workflows/${id}`)
    await step(page, 'start').waitFor()
    await until(() => asked === 2)
    await page.getByRole('button', { name: /Checklist: No problems found/ }).waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('workflow_is_exported_imported_duplicated_and_deleted', async () => {
    const id = await make('Travels far')
    const { page, context, problems } = await openLoggedIn(app, '/workflows')
    const row = page.getByRole('row', { name: /^Travels far/ })
    await row.getByRole('button', { name: 'Actions' }).click()
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name: 'Export' }).click()])
    assert.equal(download.suggestedFilename(), 'travels-far.json')
    const file = await download.path()
    await page.getByRole('button', { name: 'Import' }).click()
    await page.getByTestId('file').setInputFiles({ name: 'wrong.json', mimeType: 'application/json', buffer: Buffer.from('{"nodes": [{"id": "a", "type": "lm"}]}') })
    await page.getByRole('alert').getByText('Unknown type').waitFor()
    await page.getByTestId('file').setInputFiles(file)
    await page.getByText('This file holds 3 steps, 2 connections.').waitFor()
    await page.getByLabel('Another name').fill('Came back')
    await checkAccessible(page, 'import dialog')
    await page.getByRole('dialog').getByRole('button', { name: 'Import' }).click()
    await page.getByRole('heading', { level: 1, name: 'Came back' }).waitFor()
    await step(page, 'answer').waitFor()
    await page.goto(`${app.url}/workflows?q=travels`)
    await row.getByRole('button', { name: 'Actions' }).click()
    await page.getByRole('menuitem', { name: 'Duplicate' }).click()
    await page.getByRole('row', { name: /^Travels far \(copy\)/ }).waitFor()
    await page.getByRole('row', { name: /^Travels far (?!\(copy)/ }).getByRole('button', { name: 'Actions' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete workflow' }).click()
    await until(async () => (await app.call('GET', `/api/v1/workflows/${id}`)).status === 404)
    assert.deepEqual(problems, [])
    await context.close()
  })
})

describe('canvas', () => {
  test('steps_are_added_connected_and_saved_by_mouse', async () => {
    const id = await make('By mouse', { nodes: ASK.nodes.slice(0, 1), edges: [] })
    const { page, context, problems } = await edit(id)
    await page.getByRole('navigation', { name: 'Steps' }).getByRole('button', { name: 'Model' }).dragTo(canvas(page), { targetPosition: { x: 500, y: 300 } })
    await step(page, 'llm').waitFor()
    await dragHandle(page, out('start'), into('llm'))
    await until(async () => (await edges(page).count()) === 1)
    // A line that ends on the canvas asks for the next step.
    const from = await center(page, page.locator(out('llm')))
    await page.mouse.move(from.x, from.y)
    await page.mouse.down()
    await page.mouse.move(from.x + 60, from.y + 120, { steps: 5 })
    await page.mouse.up()
    await page.getByRole('dialog').getByRole('option', { name: /^End/ }).click()
    await step(page, 'end').waitFor()
    const graph = await storedWhen(id, 'three steps in a row', (now) => now.nodes.length === 3 && now.edges.length === 2)
    assert.deepEqual(graph.edges.map(({ source, target }) => [source, target]), [['start', 'llm'], ['llm', 'end']])
    await saved(page)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('connections_that_cannot_work_are_refused_with_a_reason', async () => {
    const id = await make('Refused', BRANCHES)
    const { page, context, problems } = await edit(id)
    const count = await edges(page).count()
    await dragHandle(page, out('alert'), into('rate'))
    await page.getByText('This would make a circle.').waitFor()
    await picture(page, 'workflows-refused')
    await dragHandle(page, out('urgent', 'false'), into('alert'))
    await page.getByText('Both branches would lead to the same step').waitFor()
    assert.equal(await edges(page).count(), count)
    assert.equal(await step(page, 'start').locator('.svelte-flow__handle.target').count(), 0, 'nothing leads to a start')
    assert.equal(await step(page, 'end').locator('.svelte-flow__handle.source').count(), 0, 'nothing follows an end')
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('everything_works_with_the_keyboard', async () => {
    const id = await make('By keyboard', { nodes: [], edges: [] })
    const { page, context, problems } = await openLoggedIn(app, `/workflows/${id}`)
    await canvas(page).focus()
    await page.keyboard.press('n')
    await page.keyboard.type('start')
    await page.keyboard.press('Enter')
    await until(() => page.evaluate(() => document.activeElement?.getAttribute('data-id') === 'start'))
    await page.keyboard.press('n')
    await page.keyboard.type('condition')
    await page.keyboard.press('Enter')
    await until(() => page.evaluate(() => document.activeElement?.getAttribute('data-id') === 'condition'))
    await page.keyboard.press('n')
    await page.keyboard.type('model')
    await page.keyboard.press('Enter')
    await until(() => page.evaluate(() => document.activeElement?.getAttribute('data-id') === 'llm'))
    await page.keyboard.press('n')
    await page.keyboard.type('end')
    await page.keyboard.press('Enter')
    await until(() => page.evaluate(() => document.activeElement?.getAttribute('data-id') === 'end'))
    // The other branch leads to the end, too.
    await page.keyboard.press('Alt+ArrowLeft')
    await page.keyboard.press('Alt+ArrowLeft')
    await until(() => page.evaluate(() => document.activeElement?.getAttribute('data-id') === 'condition'))
    await page.keyboard.press('c')
    await page.getByRole('dialog').getByText('Connect Condition to').waitFor()
    await page.keyboard.type('end')
    await page.keyboard.press('Enter')
    let graph = await storedWhen(id, 'four edges', (now) => now.edges.length === 4)
    assert.deepEqual(graph.edges.filter((edge) => edge.source === 'condition').map((edge) => [edge.sourceHandle, edge.target]), [['true', 'llm'], ['false', 'end']])
    // Edit: Enter goes into the form, Escape returns.
    await page.keyboard.press('Enter')
    await until(() => page.evaluate(() => document.activeElement?.id === document.querySelector('fieldset.form input')?.id))
    await page.keyboard.type('Short?')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Shift+Tab')
    await page.getByRole('textbox', { name: 'Condition' }).fill("{{input}} == 'x'")
    await page.keyboard.press('Escape')
    await until(() => page.evaluate(() => document.activeElement?.getAttribute('data-id') === 'condition'))
    // Move, duplicate, remove, undo.
    const before = (await storedWhen(id, 'the condition', (now) => now.nodes.some((one) => one.data.label === 'Short?'))).nodes.find((one) => one.id === 'condition')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Shift+ArrowRight')
    graph = await storedWhen(id, 'moved', (now) => now.nodes.find((one) => one.id === 'condition')?.position.y === (before?.position.y ?? 0) + 32)
    assert.equal(graph.nodes.find((one) => one.id === 'condition')?.position.x, (before?.position.x ?? 0) + 80)
    await page.keyboard.press('Control+d')
    await step(page, 'condition-2').waitFor()
    await page.keyboard.press('Delete')
    await step(page, 'condition-2').waitFor({ state: 'detached' })
    await page.keyboard.press('Control+a')
    assert.equal(await page.locator('.svelte-flow__node.selected').count(), 4)
    await page.keyboard.press('Delete')
    assert.equal(await page.locator('.svelte-flow__node').count(), 0)
    await page.keyboard.press('Control+z')
    assert.equal(await page.locator('.svelte-flow__node').count(), 4)
    assert.equal(await edges(page).count(), 4)
    await page.keyboard.press('Control+Shift+z')
    assert.equal(await page.locator('.svelte-flow__node').count(), 0)
    await page.keyboard.press('Control+z')
    // Select several with the space bar.
    await step(page, 'start').focus()
    await page.keyboard.press('Escape')
    await page.keyboard.press(' ')
    await step(page, 'end').focus()
    await page.keyboard.press(' ')
    assert.equal(await page.locator('.svelte-flow__node.selected').count(), 2)
    // The menu and the list of keys.
    await page.keyboard.press('Shift+F10')
    await page.getByRole('menuitem', { name: 'Duplicate' }).waitFor()
    await page.keyboard.press('Escape')
    await step(page, 'start').focus()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys of the canvas' }).waitFor()
    await picture(page, 'workflows-keys')
    await page.keyboard.press('Escape')
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('copy_paste_keeps_connections_and_references', async () => {
    const id = await make('Copies', BRANCHES)
    const { page, context, problems } = await edit(id)
    await step(page, 'rate').focus()
    await page.keyboard.press(' ')
    await step(page, 'urgent').focus()
    await page.keyboard.press(' ')
    await page.keyboard.press('Control+c')
    await page.keyboard.press('Control+v')
    await step(page, 'urgent-2').waitFor()
    const graph = await storedWhen(id, 'two more steps', (now) => now.nodes.length === 8)
    assert.equal(graph.nodes.find((one) => one.id === 'urgent-2')?.data.expression, "{{rate-2.output}} contains 'yes'")
    assert.ok(graph.edges.some((edge) => edge.source === 'rate-2' && edge.target === 'urgent-2'))
    // The context menu of the mouse, and inserting into a connection.
    await step(page, 'rate-2').click({ button: 'right' })
    await page.getByRole('menuitem', { name: 'Remove', exact: true }).click()
    await step(page, 'rate-2').waitFor({ state: 'detached' })
    await page.locator('.svelte-flow__edge[data-id="start-rate"]').focus()
    await page.keyboard.press('Shift+F10')
    await page.getByRole('menuitem', { name: 'Insert a step' }).click()
    await page.keyboard.type('code')
    await page.keyboard.press('Enter')
    const inserted = await storedWhen(id, 'a step in between', (now) => now.edges.some((edge) => edge.source === 'code' && edge.target === 'rate'))
    assert.ok(!inserted.edges.some((edge) => edge.source === 'start' && edge.target === 'rate'))
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('box_selection_drag_snap_and_tidy_up', async () => {
    const id = await make('Moves', ASK)
    const { page, context, problems } = await edit(id)
    const box = await canvas(page).boundingBox()
    assert.ok(box)
    await page.keyboard.down('Shift')
    await page.mouse.move(box.x + 10, box.y + 10)
    await page.mouse.down()
    await page.mouse.move(box.x + box.width - 10, box.y + box.height - 60, { steps: 5 })
    await page.mouse.up()
    await page.keyboard.up('Shift')
    assert.equal(await page.locator('.svelte-flow__node.selected').count(), 3)
    await page.mouse.click(box.x + 30, box.y + 30)
    assert.equal(await page.locator('.svelte-flow__node.selected').count(), 0)
    const at = await center(page, step(page, 'answer'))
    await page.mouse.move(at.x, at.y)
    await page.mouse.down()
    await page.mouse.move(at.x + 37, at.y + 91, { steps: 6 })
    await page.mouse.up()
    const moved = await storedWhen(id, 'moved', (now) => now.nodes[1]?.position.y !== 0)
    assert.equal((moved.nodes[1]?.position.y ?? 1) % 16, 0, 'snapped to the grid')
    await page.getByRole('toolbar', { name: 'View' }).getByRole('button', { name: 'Tidy up' }).click()
    await storedWhen(id, 'tidy', (now) => new Set(now.nodes.map((one) => one.position.y)).size === 1)
    await page.getByRole('button', { name: 'Undo' }).click()
    await storedWhen(id, 'undone', (now) => now.nodes[1]?.position.y === moved.nodes[1]?.position.y)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('search_finds_steps_by_any_text', async () => {
    const id = await make('Search', BRANCHES)
    const { page, context, problems } = await edit(id)
    await step(page, 'start').focus()
    await page.keyboard.press('Control+f')
    await page.getByRole('searchbox', { name: /Find a step/ }).fill('{{message}}')
    await page.getByText('1 of 2').waitFor()
    assert.equal(await page.locator('.step.found').count(), 2)
    await page.keyboard.press('Enter')
    await page.keyboard.press('Enter')
    await page.getByText('2 of 2').waitFor()
    await checkAccessible(page, 'search')
    await page.keyboard.press('Escape')
    await until(() => page.evaluate(() => document.activeElement?.getAttribute('data-id') === 'reply'))
    assert.deepEqual(problems, [])
    await context.close()
  })
})

describe('forms', () => {
  test('all_kinds_have_a_form_that_writes_their_settings', async () => {
    const kinds = ['start', 'llm', 'skill', 'knowledge', 'condition', 'http', 'code', 'end']
    const id = await make('All kinds', { nodes: kinds.map((type) => ({ id: type, type, data: {} })), edges: [['start', 'llm'], ['llm', 'skill'], ['skill', 'knowledge'], ['knowledge', 'http'], ['http', 'code'], ['code', 'end']].map(([source, target]) => ({ source, target })) })
    const { page, context, problems } = await edit(id, { width: 2600 })
    const form = panel(page)
    const choose = async (one: string): Promise<void> => {
      await step(page, one).click()
      await form.getByLabel('Name in placeholders').waitFor()
      await checkAccessible(page, `form of ${one}`)
    }
    await choose('start')
    await form.getByLabel('Variable').fill('topic')
    await choose('llm')
    await form.getByLabel('System prompt').fill('About ')
    await form.getByLabel('System prompt').press('End')
    await form.getByRole('button', { name: 'Insert value: System prompt' }).click()
    await page.getByRole('menuitem', { name: /{{topic}}/ }).click()
    await form.getByLabel('Temperature').fill('0.2')
    await form.getByLabel('Model', { exact: true }).selectOption('openai:scripted')
    await form.getByLabel('Give it the earlier messages').check()
    await choose('skill')
    await form.getByLabel('Skill', { exact: true }).selectOption('plain-words')
    await form.getByLabel('Text *').fill('{{llm.output}}')
    await choose('knowledge')
    await form.getByLabel('Knowledge base').selectOption({ label: 'Plants' })
    await choose('condition')
    await form.getByLabel('Condition', { exact: true }).fill('{{input}} = 1')
    await form.getByText('Compare with ==.').first().waitFor()
    await form.getByRole('button', { name: "{{input}} contains 'urgent'" }).click()
    await choose('http')
    await form.getByLabel('Method').selectOption('POST')
    await form.getByLabel('Address').fill('https://example.org/{{topic}}')
    await form.getByRole('button', { name: 'Add header' }).click()
    await form.getByLabel('Header').fill('X-Test')
    await form.getByLabel('Value: X-Test').fill('1')
    await form.getByRole('button', { name: 'Fields' }).click()
    await form.getByRole('button', { name: 'Add field' }).click()
    await form.getByLabel('Field', { exact: true }).fill('q')
    await form.getByLabel('Value: q').fill('{{input}}')
    await form.getByLabel('Part of the answer').fill('items.0')
    await form.getByLabel('Time limit').fill('5')
    await picture(page, 'workflows-form-http')
    await choose('code')
    await form.getByRole('textbox', { name: 'Python' }).click()
    await page.keyboard.type('print(1)')
    await form.getByLabel('Memory in MiB').fill('128')
    await form.getByRole('button', { name: 'Add variable' }).click()
    await form.getByLabel('Variable', { exact: true }).fill('limit')
    await form.getByLabel('Value: limit').fill('50')
    const graph = await storedWhen(id, 'all settings', (now) => {
      const code = now.nodes.find((one) => one.type === 'code')?.data
      return JSON.stringify(code?.env) === '{"limit":"50"}' && code?.memoryLimitMb === 128
    })
    const data = Object.fromEntries(graph.nodes.map((one) => [one.id, one.data]))
    assert.deepEqual(data.start, { inputVariable: 'topic' })
    assert.deepEqual(data.llm, { systemPrompt: 'About {{topic}}', temperature: 0.2, model: 'openai:scripted', inheritChatHistory: true })
    assert.deepEqual(data.skill, { skillName: 'plain-words', inputMappings: { text: '{{llm.output}}' } })
    assert.ok(data.knowledge?.knowledgeBaseId)
    assert.equal(data.condition?.expression, "{{input}} contains 'urgent'")
    assert.deepEqual(data.http, { method: 'POST', url: 'https://example.org/{{topic}}', headers: { 'X-Test': '1' }, body: { q: '{{input}}' }, responsePath: 'items.0', timeoutSeconds: 5 })
    assert.equal(data.code?.code, 'print(1)')
    // Renaming a step renames it where it is used.
    await step(page, 'llm').click()
    await form.getByLabel('Name in placeholders').fill('draft')
    await form.getByLabel('Name in placeholders').press('Enter')
    const renamed = await storedWhen(id, 'renamed', (now) => now.nodes.some((one) => one.id === 'draft'))
    assert.deepEqual(renamed.nodes.find((one) => one.id === 'skill')?.data.inputMappings, { text: '{{draft.output}}' })
    assert.ok(renamed.edges.some((edge) => edge.source === 'draft' && edge.target === 'skill'))
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('checklist_explains_and_fixes_problems', async () => {
    const id = await make('Problems', { nodes: [{ id: 'a', type: 'skill', data: {} }], edges: [] })
    const { page, context, problems } = await edit(id)
    await page.getByRole('button', { name: /Checklist: 2 errors/ }).click()
    await panel(page).getByText('The workflow has no start.').waitFor()
    await checkAccessible(page, 'checklist')
    await picture(page, 'workflows-checklist')
    await panel(page).getByRole('button', { name: 'Add a start' }).click()
    await step(page, 'start').waitFor()
    await panel(page).getByText('The workflow has no start.').waitFor({ state: 'detached' })
    await panel(page).getByText('No path leads from a start to this step.').waitFor()
    // A run is held back, but can be forced.
    await page.getByRole('tab', { name: 'Run' }).click()
    await panel(page).getByRole('button', { name: 'Run', exact: true }).click()
    await panel(page).getByText('This run will fail').waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })
})

describe('saving', () => {
  test('change_elsewhere_is_noticed_and_either_side_can_win', async () => {
    const id = await make('Shared')
    const { page, context, problems } = await edit(id)
    await step(page, 'answer').click()
    await panel(page).getByLabel('Label').fill('Mine')
    await storedWhen(id, 'mine', (now) => now.nodes[1]?.data.label === 'Mine')
    await saved(page)
    const theirs = await stored(id)
    const changed = theirs.graph_data.nodes.map((one) => (one.id === 'answer' ? { ...one, data: { ...one.data, label: 'Theirs' } } : one))
    await app.call('PUT', `/api/v1/workflows/${id}`, { graph_data: { ...theirs.graph_data, nodes: changed } })
    await panel(page).getByLabel('Label').fill('Mine again')
    await page.getByText('Somebody changed this workflow since you opened it.').waitFor()
    assert.equal((await stored(id)).graph_data.nodes[1]?.data.label, 'Theirs', 'nothing is overwritten')
    await checkAccessible(page, 'conflict')
    await page.getByRole('button', { name: 'Compare' }).click()
    await page.getByRole('dialog').getByText('Theirs', { exact: false }).first().waitFor()
    await picture(page, 'workflows-conflict')
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Keep mine' }).click()
    await storedWhen(id, 'mine wins', (now) => now.nodes[1]?.data.label === 'Mine again')
    await saved(page)
    const again = await stored(id)
    await app.call('PUT', `/api/v1/workflows/${id}`, { graph_data: { ...again.graph_data, nodes: changed } })
    await panel(page).getByLabel('Label').fill('Lost')
    await page.getByRole('button', { name: 'Load theirs' }).click()
    await step(page, 'answer').getByText('Theirs').waitFor()
    await saved(page)
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('failed_save_is_shown_and_repeated', async () => {
    const id = await make('Offline')
    const { page, context } = await edit(id)
    await page.route('**/api/v1/workflows/*', (route) => route.abort())
    await step(page, 'answer').click()
    await panel(page).getByLabel('Label').fill('Later')
    await page.getByRole('alert').getByText('The server cannot be reached.').waitFor()
    await page.unroute('**/api/v1/workflows/*')
    await page.getByRole('button', { name: 'Save again' }).click()
    await storedWhen(id, 'saved later', (now) => now.nodes[1]?.data.label === 'Later')
    await context.close()
  })

  test('versions_are_compared_and_restored', async () => {
    const id = await make('Versions')
    const { page, context, problems } = await edit(id)
    await step(page, 'answer').click()
    await panel(page).getByLabel('Label').fill('Second')
    await storedWhen(id, 'second', (now) => now.nodes[1]?.data.label === 'Second')
    await saved(page)
    await page.getByRole('tab', { name: 'Versions' }).click()
    await panel(page).getByRole('button', { name: 'Compare with now' }).last().click()
    await page.getByRole('dialog').getByText('Second').first().waitFor()
    await picture(page, 'workflows-versions')
    await page.keyboard.press('Escape')
    await panel(page).getByRole('button', { name: 'Restore' }).last().click()
    await storedWhen(id, 'restored', (now) => now.nodes[1]?.data.label === 'Answer')
    await page.getByRole('button', { name: 'Undo' }).click()
    await storedWhen(id, 'not restored', (now) => now.nodes[1]?.data.label === 'Second')
    await checkAccessible(page, 'versions')
    assert.deepEqual(problems, [])
    await context.close()
  })
})

describe('text view', () => {
  test('text_and_canvas_stay_equal', async () => {
    const id = await make('Text')
    const { page, context, problems } = await edit(id)
    await page.getByRole('button', { name: 'Both' }).click()
    const editor = page.getByRole('textbox', { name: 'JSON of the workflow' })
    const shows = (part: string): Promise<unknown> => until(async () => (await editor.inputValue()).includes(part), () => `the text does not have ${part}`)
    await shows('"Answer"')
    // Canvas to text.
    await step(page, 'answer').click()
    await panel(page).getByLabel('Label').fill('Reply')
    await shows('"Reply"')
    await picture(page, 'workflows-both')
    // Text to canvas.
    await editor.click()
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText(JSON.stringify({ ...ASK, nodes: ASK.nodes.map((one) => (one.id === 'answer' ? { ...one, data: { label: 'From text' } } : one)) }))
    await step(page, 'answer').getByText('From text').waitFor()
    await storedWhen(id, 'from text', (now) => now.nodes[1]?.data.label === 'From text')
    // Errors keep the canvas.
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText('{"nodes": [{"id": "x", "type": "lm"}]}')
    await page.getByText('The text has errors.').waitFor()
    await step(page, 'answer').getByText('From text').waitFor()
    await checkAccessible(page, 'text view')
    // Chromium itself writes styles when a coloured selection is replaced; the policy refuses them.
    assert.deepEqual(problems.filter((problem) => !problem.includes('Applying inline style')), [])
    await context.close()
  })
})

describe('runs', () => {
  test('run_is_live_on_the_canvas_with_inputs_and_outputs', async () => {
    app.model.script = ['yes, it is as urgent as can be', 'The house is on fire.']
    app.model.pace = 250
    const id = await make('Live', BRANCHES)
    const { page, context, problems } = await edit(id)
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await panel(page).getByLabel('Input').fill('Fire!')
    await page.keyboard.press('Control+Enter')
    await page.locator('.svelte-flow__node[data-id="rate"] [data-state="running"]').waitFor()
    await picture(page, 'workflows-running')
    await page.locator('.svelte-flow__node[data-id="alert"] [data-state="ok"]').waitFor()
    await panel(page).getByRole('region', { name: 'Result' }).getByText('The house is on fire.').waitFor()
    await page.locator('.svelte-flow__node[data-id="reply"] [data-state="skipped"]').waitFor()
    assert.equal(await page.locator('.svelte-flow__edge-path.taken').count(), 4, 'the path that was taken')
    await picture(page, 'workflows-ran')
    await checkAccessible(page, 'after a run')
    await panel(page).getByRole('region', { name: 'Steps' }).getByRole('button', { name: /^Alert/ }).click()
    await panel(page).getByText('Alert about Fire!').waitFor()
    await panel(page).getByRole('region', { name: 'Input' }).or(panel(page).getByText('yes, it is')).first().waitFor()
    await picture(page, 'workflows-step-data')
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('failed_run_is_resumed_from_the_failed_step', async () => {
    const id = await make('Resume', {
      nodes: [...ASK.nodes.slice(0, 2), { id: 'find', type: 'knowledge', position: { x: 576, y: 0 }, data: { knowledgeBaseId: 'gone' } }, { id: 'end', type: 'end', position: { x: 864, y: 0 }, data: {} }],
      edges: [{ source: 'start', target: 'answer' }, { source: 'answer', target: 'find' }, { source: 'find', target: 'end' }],
    })
    const { page, context, problems } = await edit(id)
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await panel(page).getByLabel('Input').fill('Tell me')
    await page.keyboard.press('Control+Enter')
    await panel(page).getByRole('button', { name: 'Run anyway' }).click()
    await page.locator('.svelte-flow__node[data-id="find"] [data-state="failed"]').waitFor()
    await panel(page).getByRole('alert').getByText('The workflow failed.').waitFor()
    await picture(page, 'workflows-failed')
    await checkAccessible(page, 'failed run')
    const asked = app.model.requests.length
    await step(page, 'find').click()
    await panel(page).getByLabel('Knowledge base').selectOption({ label: 'Plants' })
    await page.getByRole('tab', { name: 'Run' }).click()
    await panel(page).getByRole('button', { name: 'Resume from the failed step' }).click()
    await page.locator('.svelte-flow__node[data-id="end"] [data-state="ok"]').waitFor()
    await page.locator('.svelte-flow__node[data-id="answer"] [data-state="ok"]').waitFor()
    assert.equal(app.model.requests.length, asked, 'the model is not asked again')
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('single_step_runs_with_the_values_of_the_last_run', async () => {
    app.model.script = ['no', 'Dear friend']
    const id = await make('Single', BRANCHES)
    const { page, context, problems } = await edit(id)
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await panel(page).getByLabel('Input').fill('Hello there')
    await page.keyboard.press('Control+Enter')
    await page.locator('.svelte-flow__node[data-id="end"] [data-state="ok"]').waitFor()
    app.model.script = ['Only this step']
    await step(page, 'alert').focus()
    await page.keyboard.press('Shift+Enter')
    await panel(page).getByLabel('Input of the step').fill('Given by hand')
    await panel(page).getByRole('button', { name: 'Run step' }).click()
    await page.getByTestId('single-result').getByText('Only this step').waitFor()
    const request = app.model.requests.at(-1)
    assert.equal(request?.messages[0]?.content, 'Alert about Hello there')
    assert.equal(request?.messages.at(-1)?.content, 'Given by hand')
    await until(async () => {
      const { items } = (await (await app.call('GET', '/api/v1/workflows')).json()) as { items: Stored[] }
      return !items.some((item) => item.name.startsWith('Single step'))
    }, () => 'the workflow of the single step is left')
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('run_is_stopped', async () => {
    app.model.script = ['word '.repeat(400)]
    app.model.pace = 50
    const id = await make('Stop')
    const { page, context, problems } = await edit(id)
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await panel(page).getByLabel('Input').fill('x')
    await page.keyboard.press('Control+Enter')
    await page.locator('.svelte-flow__node[data-id="answer"] [data-state="running"]').waitFor()
    await panel(page).getByRole('button', { name: 'Stop' }).click()
    await panel(page).getByText('You stopped the run.').waitFor()
    await page.locator('.svelte-flow__node[data-id="answer"] [data-state="stopped"]').waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('run_goes_on_after_a_reload', async (t) => {
    if ((await app.call('GET', '/api/v1/runs')).status === 404) return t.skip('this server has no history of runs')
    app.model.script = ['word '.repeat(50) + 'nine ten']
    app.model.pace = 300
    const id = await make('Reload')
    const { page, context, problems } = await edit(id)
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await panel(page).getByLabel('Input').fill('count')
    await page.keyboard.press('Control+Enter')
    await page.locator('.svelte-flow__node[data-id="answer"] [data-state="running"]').waitFor()
    await page.reload()
    await page.locator('.svelte-flow__node[data-id="answer"] [data-state="running"]').waitFor()
    await panel(page).getByRole('region', { name: 'Result' }).getByText('nine ten').waitFor({ timeout: 40_000 })
    assert.equal(app.model.requests.filter((request) => request.messages.at(-1)?.content === 'count').length, 1)
    assert.deepEqual(problems, [])
    await context.close()
  })
})

describe('looks', () => {
  test('list_and_editor_are_accessible_in_both_themes_and_widths', async () => {
    const id = await make('Decide what is urgent', BRANCHES)
    await checkLooks(app, 'workflows-list', '/workflows', (page) => page.getByRole('link', { name: /Decide what is urgent/ }).waitFor())
    await checkLooks(app, 'workflows-editor', `/workflows/${id}`, async (page) => {
      await step(page, 'rate').waitFor()
      await step(page, 'rate').click()
      await panel(page).getByLabel('Label').waitFor()
    })
  })

  test('phone_shows_canvas_and_panels', async () => {
    const id = await make('On a phone', BRANCHES)
    const { page, context, problems } = await edit(id, { width: 360, height: 740, touch: true })
    await picture(page, 'workflows-phone')
    await checkFits(page, 'editor on a phone')
    await step(page, 'urgent').tap()
    await panel(page).getByLabel('Condition', { exact: true }).waitFor()
    await picture(page, 'workflows-phone-step')
    await checkAccessible(page, 'phone')
    await panel(page).getByRole('button', { name: 'Close details' }).click()
    await page.getByRole('navigation', { name: 'Steps' }).getByRole('button', { name: 'Code' }).tap()
    await step(page, 'code').waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })
})
