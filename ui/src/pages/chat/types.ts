import type { components } from '$lib/api/schema'

type Schemas = components['schemas']

export type SessionItem = Schemas['SessionItem']
export type SessionDetail = Schemas['SessionDetail']
export type Message = Schemas['MessageItem'] & { index?: number; run_id?: string }
export type { ModelList } from '$lib/models'
export type Workflow = Pick<Schemas['WorkflowItem'], 'id' | 'name' | 'description'>

/** What `GET /api/v1/runs` says about the runs of a conversation. */
export interface RunItem {
  id: string
  name: string
  state: string
  started_at: string
  model?: string | null
  error?: string | null
}

/** A random id. `crypto.randomUUID` is missing on pages without HTTPS. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12))
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}
