/** Actions on skills that the list and the detail share. */
import { api, send } from '$lib/api/client'
import { download } from '$lib/clipboard'
import { confirm } from '$lib/confirm.svelte'
import { strings } from '$lib/strings'
import { toasts } from '$lib/toast.svelte'
import { location } from '$lib/router.svelte'
import { session } from '$lib/session.svelte'
import { skillApi, skillPath } from '$lib/skills'
import type { Insight, ListedSkill, SkillItem } from './types'

export { skillPath }

const text = strings.skills

/** The owner in the address of the page that is open, for administrators who look at a skill of another account. */
export function openOwner(): string | undefined {
  return location.query.get('owner') ?? undefined
}

export function change(name: string, changes: { enabled?: boolean; pinned?: boolean }, owner?: string): Promise<SkillItem> {
  return api.patch<SkillItem>(skillApi(name, owner), changes)
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
  const { findings } = await api.get<Insight>(skillApi(skill.name, skill.owner_id, '/insight'))
  return confirmEnable(skill.name, skill.verdict, findings)
}

/** A skill as one file: its SKILL.md, or a zip if it has other files. */
export async function exportedFile(name: string, owner?: string): Promise<File> {
  const answer = await send('GET', skillApi(name, owner, '/export'), undefined, { headers: { accept: '*/*' } })
  const blob = await answer.blob()
  return new File([blob], blob.type.includes('zip') ? `${name}.zip` : `${name}.SKILL.md`, { type: blob.type })
}

/** Downloads a skill. */
export async function exportSkill(name: string, owner?: string): Promise<void> {
  const file = await exportedFile(name, owner)
  download(file.name, file)
}

/** Whether the user may change a skill: their own, or as an administrator any. */
export function mayChange(skill: ListedSkill | null | undefined): boolean {
  return session.admin || (Boolean(skill) && skill?.owner !== 'shared')
}

/** Deletes a skill after a confirmation. Returns whether it was deleted. */
export async function deleteSkill(name: string, owner?: string, ownedBy?: string): Promise<boolean> {
  const yes = await confirm({ title: text.deleteTitle(name), text: ownedBy ? text.deleteOtherText(ownedBy) : text.deleteText, action: text.delete, danger: true })
  if (!yes) return false
  try {
    await api.delete(skillApi(name, owner))
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
  return !source || skill.source === source || (skill.owned_by ?? skill.owner) === source
}
