/** Shapes of the API for administrators. */
import type { components } from '$lib/api/schema'

type Schemas = components['schemas']

export type Flag = Schemas['Switch']
export type Embedding = Schemas['Embedding']

export interface AccountItem extends Omit<Schemas['User'], 'role'> {
  role: string
  last_seen_at?: string | null
}

export interface Limits {
  runs: number
  routes: number
  all: number
}

export interface Quotas {
  skills: number | null
  documents: number | null
  versions: number | null
  bytes: number | null
}

export type Registration = 'local' | 'open' | 'closed'

/** `GET /api/v1/admin/server` */
export interface ServerInfo {
  version: string
  started_at: string
  address?: string
  public_url?: string
  database: { kind: string; bytes?: number | null }
  storage: { kind: string; bytes?: number | null }
  registration: Registration
  limits: Limits
  quotas: Quotas
  run_retention_days?: number
  /** Settings that an option of the server fixes. */
  locked?: string[]
}

export interface Check {
  name: string
  ok: boolean
  ms?: number
  detail?: string
  hint?: string
}

export interface Health {
  ready: boolean
  checks: Check[]
}

export interface Provider {
  id: string
  label: string
  needs_key: boolean
  has_key: boolean
  base_url?: string | null
  model?: string | null
  models?: string[]
  from?: 'environment' | 'settings' | null
}

/** The answer of a test of a provider. Older servers do not say how many models it lists. */
export interface ProviderTest {
  ok: boolean
  model?: string
  models?: number
  answered?: boolean
  error?: string
  hint?: string
}

export interface Price {
  model: string
  input_usd_per_million: number | null
  output_usd_per_million: number | null
  from: string
}

export interface Sums {
  input_tokens: number
  output_tokens: number
  requests: number
  cost_usd: number | null
}

export interface UsageGroup extends Sums {
  key: string
  label?: string
}

export interface UsageReport {
  /** Undefined if the server counts only sums. */
  days?: { date: string; groups: UsageGroup[] }[]
  groups: UsageGroup[]
  total: Sums
}

export interface LogLine {
  id: string | number
  at: string
  level: 'error' | 'warn' | 'info' | 'debug' | 'trace'
  target?: string
  message: string
  fields?: Record<string, unknown>
}
