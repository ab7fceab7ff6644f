/** The version of the registry from which a skill was added. */
import { api, path } from '$lib/api/client'
import type { PackageDetail, VersionDetail } from '../registry/types'
import { skillApi } from '../registry/api'

export interface Origin {
  name: string
  version: string
}

/** Reads `name@version`; undefined for skills from elsewhere. */
export function originOf(item: { source: string; source_version?: string | null } | undefined | null): Origin | undefined {
  if (item?.source !== 'imported' || !item.source_version) return undefined
  const at = item.source_version.lastIndexOf('@')
  return at > 0 ? { name: item.source_version.slice(0, at), version: item.source_version.slice(at + 1) } : undefined
}

export function originPath({ name, version }: Origin): string {
  const [first = '', second] = name.split('/')
  const page = second === undefined ? path`/registry/skills/${first}` : path`/registry/skills/${first}/${second}`
  return `${page}?version=${encodeURIComponent(version)}`
}

/** What the registry says about the version now. */
export async function stateOf({ name, version }: Origin, signal: AbortSignal): Promise<{ yanked: boolean; reason?: string; newer?: string }> {
  const [detail, skill] = await Promise.all([
    api.get<VersionDetail>(skillApi(name, version), { signal }),
    api.get<PackageDetail>(skillApi(name), { signal }),
  ])
  const latest = skill.latest_version ?? undefined
  return { yanked: detail.yanked === true, reason: detail.yanked_reason ?? undefined, newer: latest === version ? undefined : latest }
}
