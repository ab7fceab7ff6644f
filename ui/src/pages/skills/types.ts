/** What the pages about skills read from the API. */
import type { SkillDetail, SkillItem } from '$lib/api/types'
import type { Permission } from '$lib/components/PermissionList.svelte'
import type { Finding as ScanFinding } from '../registry/types'

export type { SkillDetail, SkillItem }
export type { ListedSkill } from '$lib/skills'

export interface Insight {
  dialect: string
  tokens: { description: number; body: number }
  agents: { agent: string; label: string; reads: boolean; cut: boolean; note?: string | null }[]
  permissions: Permission[]
  tools: Tool[]
  /** Whether the server lets tools of skills run. */
  can_run_tools?: boolean
  files: { path: string; size: number }[]
  provenance: { source: string; id?: string | null; url?: string | null; version?: string | null; installed_at?: string | null; signer?: string | null }
  history: { at: string; actor?: string | null; change: string }[]
  /** Placeholders in the instructions that are not declared as inputs. */
  undeclared_inputs?: string[]
  /** `allow`, `review` or `block` */
  verdict: string
  findings: ScanFinding[]
}

export interface Tool {
  name: string
  description: string
  inputs?: string[]
  parameters?: Parameter[]
}

export interface Parameter {
  name: string
  type: string
  required: boolean
  description: string
  default?: unknown
}

/** A text that the skill had, or has now. */
export interface SkillVersion {
  id: string
  saved_at: string
  user_email?: string | null
  current: boolean
}

export interface Finding {
  rule: string
  severity: 'error' | 'warning' | 'info'
  message: string
  hint?: string | null
  field?: string | null
  start: number
  end: number
  line: number
  column: number
  fixes: { title: string; safe: boolean; edits: { start: number; end: number; text: string }[] }[]
}

export interface Checked {
  dialect: string
  name: string
  diagnostics: Finding[]
}

export interface Converted {
  text: string
  lost: { field: string; message: string }[]
  files?: { path: string; text: string }[]
}

export interface DialectField {
  name: string
  type: string | null
  required: boolean
  description?: string | null
  choices?: unknown[] | null
}

export interface DialectInfo {
  id: string
  label: string
  fields: DialectField[]
}

/** Files that an interpreter or the system can run. */
export const SCRIPT = /\.(py|js|mjs|cjs|ts|sh|bash|zsh|fish|rb|pl|php|lua|ps1|psm1|bat|cmd|exe|dll|so|wasm|jar|applescript)$/i
