import type { components } from '$lib/api/schema'
import type { Permission } from '$lib/components/PermissionList.svelte'
import type { Finding } from '../registry/types'

type Schemas = components['schemas']

export type CatalogItem = Schemas['CatalogItem']
export type Listing = Schemas['CatalogListing']
export type Source = Schemas['SourceItem']
export type Item = Schemas['Item']

/** What an update would change, besides SKILL.md. */
export interface UpdateDifference {
  files: { path: string; change: string; before?: number | null; after?: number | null }[]
  permissions_added: Permission[]
  permissions_removed: Permission[]
}

/** `POST /api/v1/skills/catalog/preview` */
export interface Preview {
  name: string
  text: string
  files: { path: string; size: number }[]
  permissions?: Permission[]
  verdict?: string
  findings?: Finding[]
  installed?: { name: string; text: string; edited: boolean; difference: UpdateDifference } | null
}

/** What the review of a skill shows, before or after its installation. */
export interface ReviewState {
  phase: 'before' | 'after'
  update: boolean
  name: string
  /** The text from before an update. */
  old?: string
  difference?: UpdateDifference
  /** Whether the installed skill was edited; an update overwrites the edits. */
  edited?: boolean
  text: string
  files: string[]
  tools: string[]
  permissions?: Permission[]
  findings: Finding[]
  enabled: boolean
}
