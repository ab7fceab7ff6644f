import type { components } from '$lib/api/schema'
import type { Point } from './model/graph'

type Schemas = components['schemas']

/** The server returns the graph as it was stored: its rules are checked again by `parseGraph`. */
export interface Workflow extends Omit<Schemas['WorkflowItem'], 'graph_data'> {
  graph_data: unknown
}

export interface WorkflowList {
  items: Workflow[]
  total: number
}

export type Skill = Schemas['SkillSummary']
export type Base = Schemas['BaseItem']
export type Model = Schemas['ModelItem']

/** `GET /api/v1/runs` */
export interface RunItem {
  id: string
  name: string
  state: 'running' | 'ok' | 'failed' | 'stopped'
  started_at: string
  duration_ms?: number | null
  error?: string | null
}

/** `GET /api/v1/workflows/{id}/versions` */
export interface VersionItem {
  id: string
  created_at: string
  user_email?: string | null
  nodes: number
  edges: number
}

/** Marks workflows that the app makes to run one step, and deletes afterwards. */
export const SINGLE_STEP = 'savoir: single step, deleted after the run'

/** Where a new step goes. */
export interface AddRequest {
  at?: Point
  after?: { source: string; handle: string | null }
  /** The edge into which it is put. */
  edge?: string
}
