/** Answers of addresses for administrators that not every server has, with realistic numbers. */
interface Answer {
  status: number
  type: string
  handle: (body: Record<string, unknown>, query: URLSearchParams) => string
}

export interface AdminAnswers {
  find: (method: string, path: string) => Answer | undefined
  /** Requests that change something. */
  sent: { method: string; path: string; body: unknown }[]
  testResult: { ok: boolean; model?: string; models?: number; answered?: boolean; error?: string; hint?: string }
}

const GIB = 2 ** 30
const DAY = 86_400_000

export function serverInfo() {
  return {
    version: '0.1.0', started_at: new Date(Date.now() - 9 * DAY).toISOString(), address: '127.0.0.1:7878', public_url: 'https://skills.example.org',
    database: { kind: 'postgres', bytes: 412 * 2 ** 20 }, storage: { kind: 's3', bytes: 3.2 * GIB }, registration: 'local',
    limits: { runs: 10, routes: 60, all: 1000 }, quotas: { skills: 2000, documents: 20000, versions: 20000, bytes: 20 * GIB },
    run_retention_days: 30, locked: ['quotas'],
  }
}

const MODELS: [string, number, number, number][] = [
  ['claude-sonnet', 3, 15, 1], ['gpt-4.1-mini', 0.4, 1.6, 0.8], ['llama3.1:8b', 0, 0, 0.5], ['claude-haiku', 0.8, 4, 0.35], ['text-embedding-3-small', 0.02, 0, 0.3],
  ['gpt-4.1', 2, 8, 0.2], ['mistral-small', 0.1, 0.3, 0.12], ['qwen3:4b', 0, 0, 0.08],
]
const PEOPLE = ['ada@example.org', 'grace@example.org', 'linus@example.org']

/** The same numbers at each call: tests and pictures stay equal. */
export function usageReport(days: number, by: string) {
  const names = by === 'user' ? PEOPLE : by === 'provider' ? ['anthropic', 'openai', 'ollama'] : MODELS.map(([name]) => name)
  const list = Array.from({ length: days }, (_, index) => {
    const at = new Date(Date.now() - (days - 1 - index) * DAY)
    const weekend = at.getUTCDay() % 6 === 0
    const groups = names.map((key, at) => {
      const [, input = 1, output = 3, weight = 1] = MODELS[at] ?? []
      const wave = 1 + 0.55 * Math.sin(index / 2.7 + at) + 0.25 * Math.sin(index * 1.9 + at * 2)
      const requests = Math.round(46 * weight * wave * (weekend ? 0.25 : 1))
      const tokens = { input_tokens: requests * (2100 + at * 170), output_tokens: requests * (390 + at * 25) }
      return { key, requests, ...tokens, cost_usd: (tokens.input_tokens * input + tokens.output_tokens * output) / 1e6 }
    })
    return { date: at.toISOString().slice(0, 10), groups: groups.filter(({ requests }) => requests > 0) }
  })
  const sum = (items: { input_tokens: number; output_tokens: number; requests: number; cost_usd: number }[]) => ({
    input_tokens: items.reduce((all, item) => all + item.input_tokens, 0),
    output_tokens: items.reduce((all, item) => all + item.output_tokens, 0),
    requests: items.reduce((all, item) => all + item.requests, 0),
    cost_usd: items.reduce((all, item) => all + item.cost_usd, 0),
  })
  const every = list.flatMap(({ groups }) => groups)
  return { days: list, groups: names.map((key) => ({ key, ...sum(every.filter((group) => group.key === key)) })), total: sum(every) }
}

export function logLines() {
  const kinds: [string, string, string, Record<string, unknown>][] = [
    ['info', 'savoir_server::middleware', 'request', { method: 'GET', path: '/api/v1/personal-skills', status: 200, ms: 4 }],
    ['info', 'savoir_server::run_history', 'a run ended', { skill: 'weekly-report', state: 'ok', ms: 2214 }],
    ['warn', 'savoir_server::limits', 'quota almost used', { user: 3, what: 'documents', part: 0.92 }],
    ['info', 'savoir_server::middleware', 'request', { method: 'POST', path: '/api/v1/check', status: 200, ms: 11 }],
    ['error', 'savoir_agent::turn', 'a run failed', { skill: 'invoice-reader', error: 'the provider answered 429 Too Many Requests' }],
    ['debug', 'savoir_store::sql', 'statement', { ms: 1, rows: 24 }],
  ]
  return Array.from({ length: 120 }, (_, index) => {
    const [level, target, message, fields] = kinds[index === 60 ? 2 : index % 6 === 2 ? 0 : index % 6]!
    return { id: index + 1, at: new Date(Date.now() - (120 - index) * 2700).toISOString(), level, target, message, fields }
  })
}

export function adminAnswers(): AdminAnswers {
  let server = serverInfo()
  const providers = [
    { id: 'anthropic', label: 'Anthropic', needs_key: true, has_key: false, base_url: 'https://api.anthropic.com', models: ['claude-sonnet', 'claude-haiku'], from: null as string | null },
    { id: 'openai', label: 'OpenAI', needs_key: true, has_key: true, base_url: 'https://api.openai.com/v1', models: ['gpt-4.1'], from: 'environment' as string | null },
    { id: 'ollama', label: 'Ollama', needs_key: false, has_key: false, base_url: 'http://127.0.0.1:11434', models: [], from: 'settings' as string | null },
  ]
  const prices = MODELS.slice(0, 4).map(([model, input, output]) => ({ model, input_usd_per_million: input, output_usd_per_million: output, from: 'built-in' }))
  const answers: AdminAnswers = { find: () => undefined, sent: [], testResult: { ok: true, model: 'claude-sonnet', models: 2, answered: true } }
  const json = (handle: (body: Record<string, unknown>, query: URLSearchParams) => unknown, status = 200): Answer => ({
    status, type: 'application/json', handle: (body, query) => JSON.stringify(handle(body, query)),
  })
  const note = (method: string, path: string, answer: Answer): Answer => ({
    ...answer,
    handle: (body, query) => {
      answers.sent.push({ method, path, body })
      return answer.handle(body, query)
    },
  })
  answers.find = (method, path) => {
    const change = (answer: Answer): Answer => note(method, path, answer)
    const id = path.split('/').at(-1)
    switch (`${method} ${path}`) {
      case 'GET /api/v1/admin/server': return json(() => server)
      case 'PATCH /api/v1/admin/server': return change(json((body) => (server = { ...server, ...body } as typeof server)))
      case 'POST /api/v1/admin/users': return change(json((body) => ({ id: 99, is_active: true, created_at: new Date().toISOString(), ...body, password: undefined }), 201))
      case 'GET /api/v1/admin/providers': return json(() => ({ providers }))
      case 'POST /api/v1/admin/providers/anthropic/test': return json(() => answers.testResult)
      case 'GET /api/v1/admin/prices': return json(() => ({ prices }))
      case 'GET /api/v1/observability/usage': return json((_, query) => usageReport(Number(query.get('days')), query.get('by') ?? 'model'))
      case 'GET /api/v1/admin/log': return json((_, query) => ({ lines: logLines().filter(({ level }) => query.get('level') === 'debug' || level !== 'debug') }))
      case 'GET /api/v1/admin/log/stream': {
        const line = { id: 500, at: new Date().toISOString(), level: 'info', target: 'savoir', message: 'a line that came later', fields: {} }
        return { status: 200, type: 'text/event-stream', handle: () => `id: 500\nevent: line\ndata: ${JSON.stringify(line)}\n\n` }
      }
    }
    if (method === 'PATCH' && /^\/api\/v1\/admin\/users\/\d+$/.test(path)) return change(json((body) => ({ id: Number(id), ...body })))
    if (method === 'PUT' && path.startsWith('/api/v1/admin/providers/')) {
      return change(json(() => {
        const found = providers.find((provider) => provider.id === id)
        if (found) Object.assign(found, { has_key: true, from: 'settings' })
        return found
      }))
    }
    return undefined
  }
  return answers
}
