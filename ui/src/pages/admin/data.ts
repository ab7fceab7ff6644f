/** Requests of Administration. */
import { api, ApiError, send } from '$lib/api/client'
import type { TokenUsage } from '$lib/api/types'
import { strings } from '$lib/strings'
import type { Check, Health, ServerInfo, Sums, UsageGroup, UsageReport } from './types'

/** Whether the server does not have the endpoint, because it is older or configured differently. */
export function isMissing(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 404 || error.status === 405)
}

/** The response, or null if this server does not have the endpoint. */
export async function optional<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

/** Replaces the error for a missing endpoint by one that names the command to use instead. */
export function withCommand(error: unknown, command: string): unknown {
  if (!isMissing(error)) return error
  const text = strings.admin.accounts
  return new ApiError(501, text.missing, { hint: text.missingHint(command) })
}

export const loadServer = (signal?: AbortSignal): Promise<ServerInfo | null> =>
  optional(api.get<ServerInfo>('/api/v1/admin/server', { signal }))

interface Ready {
  status: string
  database?: string
  storage?: string
  checks?: Check[]
}

/** The state of the server. It answers 503 with the same body while it is not ready. */
export async function loadHealth(signal?: AbortSignal): Promise<Health> {
  const answer = await fetch('/ready', { headers: { accept: 'application/json' }, signal })
  const body = (await answer.json()) as Ready
  const named: Check[] = (['database', 'storage'] as const)
    .filter((name) => body[name] !== undefined)
    .map((name) => ({ name, ok: body[name] === 'ok', detail: body[name] === 'ok' ? undefined : body[name] }))
  return { ready: answer.ok, checks: body.checks ?? named }
}

/** Measurements, or null where only the machine of the server may read them. */
export async function loadMetrics(signal?: AbortSignal): Promise<string | null> {
  try {
    return await (await send('GET', '/metrics', undefined, { signal, headers: { accept: 'text/plain' } })).text()
  } catch (error) {
    if (error instanceof ApiError && (error.status === 403 || isMissing(error))) return null
    throw error
  }
}

/** Usage by day, or sums alone where the server counts no days. */
export async function loadUsage(days: number, by: string, signal?: AbortSignal): Promise<UsageReport> {
  const daily = await optional(api.get<UsageReport>('/api/v1/observability/usage', { signal, query: { days, by } }))
  if (daily) return daily
  const hours = Math.min(days, 30) * 24
  const sums = await api.get<TokenUsage>('/api/v1/observability/token-usage', { signal, query: { hours } })
  const groups = Object.entries(by === 'provider' ? sums.by_provider : sums.by_model)
  return {
    groups: groups.map(([key, group]): UsageGroup => ({ key, ...group, cost_usd: null })),
    total: {
      input_tokens: sums.total_input_tokens, output_tokens: sums.total_output_tokens, requests: sums.total_requests, cost_usd: null,
    },
  }
}

export const tokensOf = (sums: Sums): number => sums.input_tokens + sums.output_tokens
