/** What the parts of the editor share. */
import { getContext, setContext } from 'svelte'
import { api } from '$lib/api/client'
import { sentence } from '$lib/format'
import { session } from '$lib/session.svelte'
import { listModels } from '$lib/models'
import { isForMe, listSkills } from '$lib/skills'
import type { Offer, Problem } from './model/check'
import { FlowDocument } from './model/document.svelte'
import { FlowRun } from './model/run.svelte'
import type { Base, Model, Skill } from './types'

const KEY = Symbol('flow')

/** One skill for each name, because a step names its skill: the user's own, then a shared one. */
function runnable(skills: Skill[]): Skill[] {
  const rank = ({ user_id: owner }: Skill): number => (owner === String(session.user?.id) ? 0 : owner ? 2 : 1)
  return [...new Map(skills.toSorted((a, b) => rank(b) - rank(a)).map((skill) => [skill.name, skill])).values()].toSorted((a, b) => a.name.localeCompare(b.name))
}

/** What the forms offer to choose from. */
export class Choices {
  skills = $state.raw<Skill[]>()
  /** Disabled skills, which cannot run. */
  disabled = $state.raw<ReadonlySet<string>>(new Set())
  bases = $state.raw<Base[]>()
  models = $state.raw<Model[]>()
  defaultModel = $state<string>()
  /** Why the models of a provider cannot be listed. */
  modelProblem = $state<string>()
  http = $state<boolean>()
  code = $state<boolean>()

  async load(signal: AbortSignal): Promise<void> {
    const quiet = async (part: Promise<void>): Promise<void> => part.catch(() => {})
    await Promise.all([
      quiet(api.get<{ skills: Skill[] }>('/api/v1/skills', { signal }).then(({ skills }) => void (this.skills = runnable(skills)))),
      quiet(listSkills(signal).then((skills) => {
        this.disabled = new Set(skills.filter((skill) => isForMe(skill) && !skill.enabled).map((skill) => skill.name))
      })),
      quiet(api.get<{ items: Base[] }>('/api/v1/knowledge', { signal }).then(({ items }) => void (this.bases = items))),
      quiet(this.loadModels(signal)),
      session.admin ? quiet(this.loadFlags(signal)) : undefined,
    ])
  }

  async loadModels(signal?: AbortSignal): Promise<void> {
    const { items, default_model, unavailable } = await listModels(signal)
    this.modelProblem = sentence(unavailable?.[0]?.message)
    this.models = items.filter((model) => model.enabled)
    this.defaultModel = default_model ?? undefined
  }

  private async loadFlags(signal: AbortSignal): Promise<void> {
    const { items } = await api.get<{ items: { key: string; enabled: boolean }[] }>('/api/v1/settings/feature-flags', { signal })
    const on = (key: string): boolean | undefined => items.find((item) => item.key === key)?.enabled
    this.http = on('ENABLE_HTTP_NODE')
    this.code = on('ENABLE_CODE_NODE')
  }

  get offer(): Offer {
    return {
      skills: this.skills?.map(({ name, inputs }) => ({ name, inputs: (inputs ?? []).map(({ name, required }) => ({ name, required })) })),
      bases: this.bases, models: this.models, modelProblem: this.modelProblem, http: this.http, code: this.code, admin: session.admin,
    }
  }
}

export class Flow {
  readonly document = new FlowDocument()
  readonly run = new FlowRun()
  readonly choices = new Choices()
  problems = $state.raw<Problem[]>([])
  /** Steps that the search found. */
  found = $state.raw<ReadonlySet<string>>(new Set())
  current = $state<string>()
  readonly problemsOf = $derived.by(() => {
    const map = new Map<string, Problem[]>()
    for (const problem of this.problems) if (problem.node) map.set(problem.node, [...(map.get(problem.node) ?? []), problem])
    return map
  })
  readonly errors = $derived(this.problems.filter((problem) => problem.severity === 'error').length)
}

export function setFlow(flow: Flow): Flow {
  return setContext(KEY, flow)
}

export function getFlow(): Flow {
  return getContext(KEY)
}

