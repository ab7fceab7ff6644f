/** What the pages about runs read from the API. */
export interface RunItem {
  id: string
  kind: string
  name: string
  /** The skill, workflow or conversation. */
  target?: string
  state: string
  started_at: string
  ended_at?: string | null
  duration_ms?: number | null
  model?: string | null
  input_tokens?: number | null
  output_tokens?: number | null
  cost_usd?: number | null
  error?: string | null
  user_email?: string | null
}

export interface Span {
  id: number
  parent?: number | null
  kind: string
  name: string
  state: string
  start_ms: number
  duration_ms?: number | null
  detail?: Record<string, unknown> | null
}

/** The accesses of a run's tools, as recorded by the sandbox. */
export interface Access {
  read: string[]
  written: string[]
  denied: string[]
  programs: string[]
  hosts: string[]
  denied_hosts: string[]
  more: number
}

const LISTS = ['read', 'written', 'denied', 'programs', 'hosts', 'denied_hosts'] as const

/** Joins what the tool calls of a run accessed; undefined if no tool ran in the sandbox. */
export function accessOf(spans: Span[]): Access | undefined {
  const parts = spans.flatMap(({ detail }) => (detail?.access ? [detail.access as Partial<Access>] : []))
  if (!parts.length) return undefined
  const joined: Access = { read: [], written: [], denied: [], programs: [], hosts: [], denied_hosts: [], more: 0 }
  for (const part of parts) {
    for (const list of LISTS) joined[list] = [...new Set([...joined[list], ...(part[list] ?? [])])].toSorted()
    joined.more += part.more ?? 0
  }
  return joined
}

export interface RunDetail extends RunItem {
  inputs?: Record<string, unknown> | null
  output?: string | null
  spans?: Span[]
  log?: { at_ms: number; level: string; message: string }[]
  citations?: { doc_id: string; chunk_index: number; text: string; score: number }[]
  rerun?: { path: string; body: unknown } | null
}

export interface RunPage {
  runs: RunItem[]
  total: number
  next?: string | null
}

export function tokens(run: RunItem): number | undefined {
  if (run.input_tokens == null && run.output_tokens == null) return undefined
  return (run.input_tokens ?? 0) + (run.output_tokens ?? 0)
}

/** The page of the skill, workflow or conversation that ran, where it can be run again. */
export function subjectPath(run: RunItem): string | undefined {
  if (run.kind === 'prompt' || run.kind === 'tool') return `/skills/${encodeURIComponent((run.target ?? run.name).split('/')[0] ?? '')}`
  if (run.kind === 'workflow' && run.target) return `/workflows/${encodeURIComponent(run.target)}`
  return undefined
}

/** Marks an estimate: the provider of a stopped run has not reported its tokens. An unknown value is not 0. */
export function about(run: Pick<RunItem, 'state' | 'input_tokens' | 'output_tokens'>, value: string): string {
  if (run.state !== 'stopped') return value
  return (run.input_tokens ?? 0) + (run.output_tokens ?? 0) > 0 && value !== '–' ? `≈ ${value}` : '–'
}
