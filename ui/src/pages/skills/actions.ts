/** Actions on skills that the list and the detail share. */
import { api, path, send } from '$lib/api/client'
import { download } from '$lib/clipboard'
import { confirm } from '$lib/confirm.svelte'
import { strings } from '$lib/strings'
import { toasts } from '$lib/toast.svelte'
import { session } from '$lib/session.svelte'
import type { Insight, ListedSkill, SkillItem } from './types'

const text = strings.skills

export function change(name: string, changes: { enabled?: boolean; pinned?: boolean }): Promise<SkillItem> {
  return api.patch<SkillItem>(path`/api/v1/skills/${name}`, changes)
}

/** The most findings that the question before enabling lists. */
const MAX_LISTED = 6

/** Asks before a skill in which the scan found something is enabled. */
export async function confirmEnable(name: string, verdict: string, findings: { message: string; file?: string | null; line?: number | null }[]): Promise<boolean> {
  const shown = findings.slice(0, MAX_LISTED).map(({ message, file, line }) => (file ? text.detail.findingAt(message, file, line ?? undefined) : message))
  const more = findings.length - shown.length
  const blocked = verdict === 'block'
  return confirm({
    title: text.detail.enableTitle(name),
    text: `${text.detail.verdicts[verdict] ?? ''} ${text.detail.enableAnyway}`.trim(),
    list: more > 0 ? [...shown, text.detail.moreFindings(more)] : shown,
    action: text.detail.enable,
    danger: blocked,
    ...(blocked && { type: name, typeLabel: text.detail.typeName(name) }),
  })
}

/** Asks for what the scan found in a skill, then whether to enable it. */
export async function askEnable(skill: ListedSkill): Promise<boolean> {
  if (!skill.verdict) return true
  const { findings } = await api.get<Insight>(path`/api/v1/skills/${skill.name}/insight`)
  return confirmEnable(skill.name, skill.verdict, findings)
}

export function skillPath(name: string): string {
  return path`/skills/${name}`
}

/** A skill as one file: its SKILL.md, or a zip if it has other files. */
export async function exportedFile(name: string): Promise<File> {
  const answer = await send('GET', path`/api/v1/skills/${name}/export`, undefined, { headers: { accept: '*/*' } })
  const blob = await answer.blob()
  return new File([blob], blob.type.includes('zip') ? `${name}.zip` : `${name}.SKILL.md`, { type: blob.type })
}

/** Downloads a skill. */
export async function exportSkill(name: string): Promise<void> {
  const file = await exportedFile(name)
  download(file.name, file)
}

/** Whether the user may change a skill: their own, or as an administrator any. */
export function mayChange(skill: ListedSkill | null | undefined): boolean {
  return session.admin || (Boolean(skill) && skill?.owner !== 'shared')
}

/** Deletes a skill after a confirmation. Returns whether it was deleted. */
export async function deleteSkill(name: string): Promise<boolean> {
  const yes = await confirm({ title: text.deleteTitle(name), text: text.deleteText, action: text.delete, danger: true })
  if (!yes) return false
  try {
    await api.delete(path`/api/v1/skills/${name}`)
    toasts.ok(text.deleted(name))
    return true
  } catch (error) {
    toasts.error(error)
    return false
  }
}

/** Runs an action and shows its error. */
export async function attempt(action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action()
    return true
  } catch (error) {
    toasts.error(error)
    return false
  }
}

export type StateFilter = 'all' | 'enabled' | 'disabled' | 'stale' | 'archived'

export function hasState(skill: ListedSkill, state: StateFilter): boolean {
  if (state === 'all') return true
  if (state === 'enabled') return skill.enabled
  if (state === 'disabled') return !skill.enabled
  return skill.lifecycle_state === state
}

export function hasSource(skill: ListedSkill, source: string): boolean {
  return !source || skill.source === source || skill.owner === source
}
