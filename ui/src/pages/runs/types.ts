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

export interface RunDetail extends RunItem {
  inputs?: Record<string, unknown> | null
  output?: string | null
  spans?: Span[]
  log?: { at_ms: number; level: string; message: string }[]
  citations?: { title?: string; doc_id?: string; text: string; score?: number }[]
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

/** Where the thing that ran can be opened and run again. */
export function subjectPath(run: RunItem): string | undefined {
  if (run.kind === 'prompt' || run.kind === 'tool') return `/skills/${encodeURIComponent((run.target ?? run.name).split('/')[0] ?? '')}`
  if (run.kind === 'workflow' && run.target) return `/workflows/${encodeURIComponent(run.target)}`
  return undefined
}
