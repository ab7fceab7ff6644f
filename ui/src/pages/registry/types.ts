/** Types of the registry. Fields that newer servers add are optional. */
import type { components } from '$lib/api/schema'
import type { Permission } from '$lib/components/PermissionList.svelte'

type Schemas = components['schemas']

export type Tier = 'experimental' | 'community' | 'verified'

export interface Finding {
  rule: string
  severity: string
  confidence?: string
  blocks?: boolean
  file?: string | null
  line?: number | null
  message: string
  fix?: string | null
  /** Why it matters. */
  why?: string | null
  /** The text that was found. */
  excerpt?: string | null
  engine?: string
}

/** `POST /registry/api/v1/skills?dry_run=true` */
export type PublishReport = Omit<Schemas['RegistryPublishReport'], 'audit' | 'permissions'> & { audit: Audit; permissions: Permission[] }

export interface Audit {
  /** `ALLOW`, `REVIEW` or `BLOCK`. */
  verdict: string
  engine?: string | null
  audited_at?: string | null
  findings: Finding[]
  summary?: string
  judged?: { verdict: string; reason: string } | null
  cleared?: string | null
}

export type Summary = Schemas['RegistrySummary'] & { security_tier: string; downloads?: number; verdict?: string }
export type VersionSummary = Schemas['RegistryVersionSummary'] & { security_tier: string; downloads?: number; verdict?: string }
export type PackageDetail = Summary & {
  readme?: string | null
  deprecated?: string | null
  versions: VersionSummary[]
}

export type VersionDetail = Omit<Schemas['RegistryVersionDetail'], 'audit' | 'manifest'> & {
  security_tier: string
  audit?: Audit | null
  manifest: Record<string, unknown>
  permissions?: Permission[]
  agents?: { agent: string; label: string; reads: boolean; note?: string | null }[]
  downloads?: number
}

export interface FacetValue {
  value: string
  count: number
}

export interface Found {
  query: string
  items: Summary[]
  total?: number | null
  facets?: Partial<Record<'tier' | 'license' | 'permission' | 'agent' | 'tag', FacetValue[]>>
}

export interface SkillPage {
  items: Summary[]
  next_cursor?: string | null
  total?: number | null
}

/** A line of the index: what a resolver needs. */
export interface IndexLine {
  name: string
  version: string
  dependencies?: string[]
  permissions?: string[]
  tools?: string[]
  /** Tools of the agent that it may use without asking. */
  allowed_tools?: string[]
  yanked?: boolean
  signer?: string | null
  withdrawn?: boolean
  withdrawn_reason?: string
}

export type WhoAmI = Schemas['RegistryWhoAmI']
export type Member = Schemas['ListedMember']
export type Key = Schemas['ListedKey']
export type Signature = Schemas['ListedSignature']
export type Token = Schemas['RegistryToken']

export interface LogEntry {
  seq: number
  act: string
  at: string
  account?: string | number | null
  token?: string | null
  package?: string | null
  version?: string | null
  namespace?: string | null
  details: Record<string, unknown>
}

export interface LogPage {
  items: LogEntry[]
  next_cursor?: string | null
}

export interface Published {
  published: {
    name: string
    version: string
    security_tier: string
    audit?: Audit | null
    latest_version?: string | null
  }
}

export type Review = Schemas['RegistryReview']
export type Reviews = Schemas['RegistryReviews']

export type Attestation = Schemas['RegistryAttestation']
export type Attestations = Schemas['RegistryAttestations']
