/** Installs and updates skills of the catalogue. */
import { api, path } from '$lib/api/client'
import type { Permission } from '$lib/components/PermissionList.svelte'
import { isMissing, submit } from '../registry/api'
import type { CatalogItem, Item, Preview, ReviewState } from './types'

interface Detail {
  raw_content: string
}

async function textOf(name: string): Promise<string | undefined> {
  try {
    return (await api.get<Detail>(path`/api/v1/skills/${name}`)).raw_content
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

async function permissionsOf(name: string): Promise<Permission[] | undefined> {
  try {
    return (await api.get<{ permissions: Permission[] }>(path`/api/v1/skills/${name}/insight`)).permissions
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** A preview of the skill for the review; undefined if the server has no previews. */
export async function preview(item: CatalogItem): Promise<ReviewState | undefined> {
  try {
    const found = await submit<Preview>('/api/v1/skills/catalog/preview', { source_id: item.source_id, folder: item.folder })
    return {
      phase: 'before', update: item.installed, name: item.installed_as ?? found.name, old: found.installed?.text, difference: found.installed?.difference,
      edited: found.installed?.edited, text: found.text,
      files: found.files.map((file) => file.path), tools: [], permissions: found.permissions, findings: found.findings ?? [], enabled: false,
    }
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** Installs or updates a skill and returns its review. */
export async function install(item: CatalogItem, overwrite = false): Promise<ReviewState> {
  const old = item.installed_as ? await textOf(item.installed_as) : undefined
  const made = await submit<Item>('/api/v1/skills/catalog/install', { source_id: item.source_id, folder: item.folder, overwrite })
  const [text, permissions] = await Promise.all([textOf(made.name), permissionsOf(made.name)])
  return {
    phase: 'after', update: item.installed, name: made.name, old, text: text ?? '', files: made.resources ?? [],
    tools: made.allowed_tools ?? [], permissions, findings: [], enabled: made.enabled,
  }
}

export async function enable(name: string): Promise<void> {
  await api.patch(path`/api/v1/skills/${name}`, { enabled: true })
}

/** The review of a skill that is installed already. */
export async function reviewOf(item: CatalogItem): Promise<ReviewState> {
  const name = item.installed_as ?? item.name
  const [text, permissions, own] = await Promise.all([
    textOf(name), permissionsOf(name), api.get<{ skills: Item[] }>('/api/v1/personal-skills'),
  ])
  const found = own.skills.find((skill) => skill.name === name)
  return {
    phase: 'after', update: false, name, text: text ?? '', files: found?.resources ?? [], tools: found?.allowed_tools ?? [],
    permissions, findings: [], enabled: found?.enabled ?? false,
  }
}
