/** The skills that the user sees. Administrators see those of all accounts, so each has its owner. */
import { api, path, url } from './api/client'
import type { SkillItem, SkillSummary, User } from './api/types'
import { session } from './session.svelte'

export interface ListedSkill extends Omit<SkillItem, 'owner'> {
  owner?: 'own' | 'shared'
  /** The value of `?owner=` that selects this skill. Without it, the name alone does. */
  owner_id?: string
  /** The email address of another account that owns the skill. */
  owned_by?: string
}

/** Lists skills; the most recently changed first. */
export async function listSkills(signal?: AbortSignal): Promise<ListedSkill[]> {
  const listed = api.get<{ skills: ListedSkill[] }>('/api/v1/personal-skills', { signal })
  if (!session.admin) return (await listed).skills
  const [{ skills }, all, accounts] = await Promise.all([
    listed,
    api.get<{ skills: SkillSummary[] }>('/api/v1/skills', { signal }),
    api.get<{ users: User[] }>('/api/v1/admin/users', { signal }).catch(() => ({ users: [] })),
  ])
  // Both lists have the same skills. Only this one names the owners.
  const owners = new Map(all.skills.map((skill) => [`${skill.name} ${skill.updated_at}`, skill.user_id ?? undefined]))
  const emails = new Map(accounts.users.map(({ id, email }) => [String(id), email]))
  const me = String(session.user?.id)
  const owned = skills.map((skill) => ({ skill, id: skill.owner === 'shared' ? undefined : owners.get(`${skill.name} ${skill.updated_at}`) }))
  const mine = new Set(owned.filter(({ id }) => id === me).map(({ skill }) => skill.name))
  return owned.map(({ skill, id }): ListedSkill => {
    if (id && id !== me) return { ...skill, owner_id: id, owned_by: emails.get(id) ?? id }
    return skill.owner === 'shared' && mine.has(skill.name) ? { ...skill, owner_id: 'shared' } : skill
  })
}

/** Whether the skill belongs to the user or to everybody, not to another account. */
export function isForMe(skill: ListedSkill): boolean {
  return !skill.owned_by
}

/** A key that is unique in a list with the skills of several accounts. */
export function skillKey(skill: { name: string; owner_id?: string }): string {
  return `${skill.owner_id ?? ''} ${skill.name}`
}

/** A path of the API below one skill. */
export function skillApi(name: string, owner?: string, rest = ''): string {
  return url(path`/api/v1/skills/${name}` + rest, { owner })
}

/** A page of one skill. */
export function skillPath(name: string, owner?: string, options: { rest?: string; tab?: string } = {}): string {
  return url(path`/skills/${name}` + (options.rest ?? ''), { owner, tab: options.tab })
}
