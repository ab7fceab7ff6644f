/** The search of the registry: hits, facets and further pages. */
import { api } from '$lib/api/client'
import { BASE, closure } from './api'
import { domainsOf } from './permissions'
import type { FacetValue, Found, Summary } from './types'

export const FILTERS = ['tier', 'tag', 'license', 'permission', 'agent'] as const
export type Filter = (typeof FILTERS)[number]
export type Filters = { q: string } & Record<Filter, string>

/** The value of skills without a licence or without permissions. */
export const NONE = '(none)'
/** The domain of skills that may use tools of the agent without asking. */
const AGENT_TOOLS = 'agent'
const PAGE_SIZE = 50
/** Pages that are read at most to find enough hits for a filter that the server does not know. */
const MAX_PAGES = 6
const ENOUGH = 25

export interface Hits {
  items: Summary[]
  /** Permissions of the newest version by name. */
  permissions: Map<string, string[]>
  facets: Record<Filter, FacetValue[]>
  nextPage: number | undefined
  /** The server counted over all hits; else the loaded ones are counted. */
  complete: boolean
}

interface Loaded {
  items: Summary[]
  permissions: Map<string, string[]>
}

export async function search(filters: Filters, before: Hits | undefined, signal?: AbortSignal): Promise<Hits> {
  const all: Loaded = { items: [...(before?.items ?? [])], permissions: new Map(before?.permissions) }
  let page: number | undefined = before?.nextPage ?? 1
  let served: Found['facets']
  const wanted = all.items.length + ENOUGH
  for (let read = 0; page !== undefined && read < MAX_PAGES; read += 1) {
    const found = await fetchPage(filters, page, signal)
    served = found.facets
    const loaded = await withPermissions(found.items, signal)
    for (const [name, permissions] of loaded.permissions) all.permissions.set(name, permissions)
    const known = new Set(all.items.map((item) => item.name))
    const fresh = loaded.items.filter((item) => !known.has(item.name))
    all.items.push(...(served ? fresh : fresh.filter((item) => matches(item, loaded.permissions, filters))))
    page = found.items.length === PAGE_SIZE && (found.total ?? undefined) === undefined ? page + 1 : undefined
    if (served || all.items.length >= wanted) break
  }
  return { ...all, facets: served ? fill(served) : countFacets(all), nextPage: page, complete: served !== undefined }
}

function fetchPage(filters: Filters, page: number, signal?: AbortSignal): Promise<Found> {
  const { q, ...rest } = filters
  const query = { q, page, limit: PAGE_SIZE, facets: true, ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value)) }
  return api.get<Found>(`${BASE}/search`, { query, signal })
}

async function withPermissions(items: Summary[], signal?: AbortSignal): Promise<Loaded> {
  const permissions = new Map<string, string[]>()
  try {
    for (const line of await closure(items.map((item) => item.name), signal)) {
      const newest = items.find((item) => item.name === line.name)?.latest_version
      if (line.version === newest) permissions.set(line.name, [...(line.permissions ?? []), ...(line.allowed_tools ?? []).map((tool) => `${AGENT_TOOLS}:use:${tool}`)])
    }
  } catch (error) {
    // Skills with very many dependencies: the hits are shown without their permissions.
    if (signal?.aborted) throw error
  }
  return { items, permissions }
}

/** Filters that servers without facets ignore. */
function matches(item: Summary, permissions: Map<string, string[]>, filters: Filters): boolean {
  const known = permissions.get(item.name)
  const domains = domainsOf(known)
  const permission = filters.permission === NONE ? known !== undefined && domains.length === 0 : domains.includes(filters.permission)
  return (!filters.license || (item.license ?? NONE) === filters.license) && (!filters.permission || permission)
}

function countFacets({ items, permissions }: Loaded): Hits['facets'] {
  const domains = (item: Summary): string[] => {
    const known = permissions.get(item.name)
    // Permissions that are not known yet are counted nowhere: they are not "none".
    if (!known) return []
    const found = domainsOf(known)
    return found.length ? found : [NONE]
  }
  return {
    tier: tally(items.map((item) => item.security_tier)),
    tag: tally(items.flatMap((item) => item.tags ?? [])),
    license: tally(items.map((item) => item.license ?? NONE)),
    permission: tally(items.flatMap(domains)),
    agent: [],
  }
}

function tally(values: string[]): FacetValue[] {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return [...counts].map(([value, count]) => ({ value, count })).toSorted((a, b) => b.count - a.count || a.value.localeCompare(b.value))
}

function fill(served: NonNullable<Found['facets']>): Hits['facets'] {
  return { tier: [], tag: [], license: [], permission: [], agent: [], ...served }
}
