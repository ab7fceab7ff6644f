/** Fills a server with data as a small team has it, for pictures and for people who try the app. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { zip } from '../src/lib/zip.ts'
import { until, type App } from './helpers.ts'

const EXAMPLES = fileURLToPath(new URL('../../examples/', import.meta.url))

export interface Sample {
  /** Ids of what was made, for addresses of pages. */
  knowledge: string
  workflow: string
  run: string
  chat: string
}

const REPORT = `## Week 46

**Shipped**
- Search answers in under 100 ms for 10,000 documents.
- Skills can be installed from a zip file.

**In progress**
- Import from the old wiki: 240 of 310 pages.

**Blocked**
- The new invoice format waits for the tax office.`

const HANDBOOK = {
  'returns.md': '# Returns\n\nCustomers can return a device within 30 days. The box must be complete. Devices with water damage are not taken back.\n\n## Refunds\n\nRefunds are paid within 14 days to the card that was charged. A gift voucher is refunded as a voucher.\n',
  'shipping.md': '# Shipping\n\nParcels leave the warehouse on working days before 16:00. Delivery takes two days, to islands up to ten days.\n\n## Customs\n\nOutside the customs union the recipient pays duties.\n',
  'warranty.md': '# Warranty\n\nEvery device has a warranty of two years. Batteries have one year. Keep the invoice: it is the proof of purchase.\n',
  'support-hours.txt': 'Support answers on working days from 8:00 to 18:00. In December also on Saturdays.\n',
}

const TRIAGE = {
  nodes: [
    { id: 'start', type: 'start', position: { x: 0, y: 120 }, data: { label: 'Message', inputVariable: 'message' } },
    { id: 'search', type: 'knowledge', position: { x: 270, y: 120 }, data: { label: 'Find in the handbook', query: '{{message}}', topK: 3 } },
    { id: 'urgent', type: 'condition', position: { x: 540, y: 120 }, data: { label: 'Is it urgent?', expression: "{{message}} contains 'urgent'" } },
    { id: 'alert', type: 'llm', position: { x: 810, y: 20 }, data: { label: 'Write to the team', systemPrompt: 'Sum up for the team: {{message}}' } },
    { id: 'reply', type: 'llm', position: { x: 810, y: 220 }, data: { label: 'Draft a reply', systemPrompt: 'Reply to {{message}} with {{search.output}}' } },
    { id: 'end', type: 'end', position: { x: 1080, y: 120 }, data: { label: 'Done' } },
  ],
  edges: [
    { id: '1', source: 'start', target: 'search' }, { id: '2', source: 'search', target: 'urgent' },
    { id: '3', source: 'urgent', target: 'alert', sourceHandle: 'true' }, { id: '4', source: 'urgent', target: 'reply', sourceHandle: 'false' },
    { id: '5', source: 'alert', target: 'end' }, { id: '6', source: 'reply', target: 'end' },
  ],
}

export async function fillWithSamples(app: App): Promise<Sample> {
  app.model.pace = 0
  await addSkills(app)
  const knowledge = await addKnowledge(app)
  await addRuns(app)
  const chat = await addChat(app, knowledge)
  const graph = { ...TRIAGE, nodes: TRIAGE.nodes.map((node) => (node.type === 'knowledge' ? { ...node, data: { ...node.data, knowledgeBaseId: knowledge } } : node)) }
  const workflow = (await ask(app, 'POST', '/api/v1/workflows', { name: 'Sort incoming messages', description: 'Finds what the handbook says, and alerts the team if it is urgent.', graph_data: graph })) as { id: string }
  await ask(app, 'POST', '/api/v1/workflows', { name: 'Long or short', description: 'Sums up a text only if it is long.', graph_data: { nodes: TRIAGE.nodes.slice(0, 1), edges: [] } })
  await publish(app)
  const { runs } = (await ask(app, 'GET', '/api/v1/runs')) as { runs: { id: string; name: string; state: string }[] }
  const run = runs.find(({ name }) => name === 'meeting-minutes') ?? runs[0]
  assert.ok(run, 'there is a run')
  return { knowledge, workflow: workflow.id, run: run.id, chat }
}

async function addSkills(app: App): Promise<void> {
  for (const name of readdirSync(EXAMPLES)) {
    const file = `${EXAMPLES}${name}/SKILL.md`
    if (!existsSync(file)) continue
    const content = readFileSync(file, 'utf8')
    // Skills of other dialects with their own folders are installed, not stored as one text.
    const answer = await app.call('POST', '/api/v1/skills', { name, content })
    await answer.text()
  }
}

async function addKnowledge(app: App): Promise<string> {
  const { id } = (await ask(app, 'POST', '/api/v1/knowledge', { name: 'Shop handbook', description: 'Returns, shipping and warranty' })) as { id: string }
  for (const [name, content] of Object.entries(HANDBOOK)) {
    const form = new FormData()
    form.append('file', new Blob([content]), name)
    await ask(app, 'POST', `/api/v1/knowledge/${id}/upload`, form)
  }
  await until(async () => {
    const { documents } = (await ask(app, 'GET', `/api/v1/knowledge/${id}/documents`)) as { documents: { status: string }[] }
    return documents.length === Object.keys(HANDBOOK).length && documents.every(({ status }) => status === 'completed')
  })
  return id
}

async function addRuns(app: App): Promise<void> {
  const inputs: [string, Record<string, string>, string][] = [
    ['article-summary', { article: 'The council met on Monday and agreed on a new library.', tone: 'friendly' }, 'The council agreed on Monday to build a new library.'],
    ['plain-words', { text: 'Pursuant to section 4, remuneration is payable in arrears.', reader: 'a new colleague' }, 'You are paid at the end of the month (section 4).'],
    ['weekly-report', {}, REPORT],
    ['reply-draft', { message: 'Can you send the invoice again?', wish: 'yes, today' }, 'Of course – you will have it today.'],
    ['meeting-minutes', { notes: 'Launch moved to the 24th. Grace asks legal. Alan checks the numbers until Friday.' }, '## Decisions\n\n- The launch moves to 24 November.\n\n## Tasks\n\n| Who | What | Until |\n|---|---|---|\n| Grace | Ask the legal team about the contract | Thursday |\n| Alan | Check the numbers | Friday |'],
  ]
  for (const [name, values, answer] of inputs) {
    app.model.script = [answer]
    const ran = await app.call('POST', `/api/v1/skills/${name}/run`, { inputs: values })
    await ran.text()
  }
}

async function addChat(app: App, knowledge: string): Promise<string> {
  const turns: [string, string][] = [
    ['A customer dropped the phone into water after three weeks. May they return it?', 'No. The handbook allows returns **within 30 days**, but devices with water damage are not taken back [1].\n\nWhat you can offer:\n\n1. A repair at a fixed price.\n2. A check whether the warranty covers it: it lasts two years, but not for water.'],
    ['Write a short and kind reply.', 'Thank you for writing to us. We are sorry about your phone. We cannot take back devices with water damage, but we can **repair it at a fixed price**. Shall we send you a label for the parcel?'],
  ]
  for (const [message, answer] of turns) {
    app.model.script = [answer]
    const sent = await app.call('POST', '/api/v1/chat/completions', { session_id: 'water-damage', message, model: 'openai:scripted', kb_id: knowledge })
    assert.ok(sent.ok, `chat: ${sent.status} ${await sent.clone().text()}`)
    await sent.text()
  }
  return 'water-damage'
}

async function publish(app: App): Promise<void> {
  const packages: [string, string, string, string][] = [
    ['acme', 'invoice-reader', '1.2.0', 'Reads amounts and dates from invoices. Use when the user has a PDF invoice.'],
    ['acme', 'brand-voice', '2.0.1', 'Rewrites a text in the voice of the company. Use before something is published.'],
    ['acme', 'release-notes', '1.0.0', 'Turns merged changes into release notes. Use when the user prepares a release.'],
    ['data-team', 'sql-review', '0.9.0', 'Reviews SQL for slow or dangerous statements. Use before a migration is merged.'],
  ]
  for (const [namespace, name, version, description] of packages) {
    const text = `---\nname: ${name}\nversion: ${version}\ndescription: ${description}\nlicense: MIT\n---\n\n# ${name}\n\n1. Read the file that the user names.\n2. List what you found in a table with the columns *what*, *where* and *value*.\n3. Mark everything that you are not sure about with a question mark.\n\n## Example\n\n> “What do we owe Nordwind?”\n\n| what | where | value |\n|---|---|---|\n| amount | page 1 | 1,240.00 € |\n| due | page 2 | 30 November |\n`
    const form = new FormData()
    form.append('artifact', await zip([{ path: 'SKILL.md', file: new Blob([text]) }]), 'skill.zip')
    form.append('namespace', namespace)
    const answer = await app.call('POST', '/registry/api/v1/skills', form)
    assert.equal(answer.status, 201, `publish ${name}: ${await answer.text()}`)
  }
}

async function ask(app: App, method: string, path: string, body?: unknown): Promise<unknown> {
  const answer = await app.call(method, path, body)
  const text = await answer.text()
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text.slice(0, 300)}`)
  return text ? JSON.parse(text) : undefined
}
