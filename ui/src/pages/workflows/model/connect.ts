/** Checks whether two steps can be connected, and gives the user a reason if not. */
import { workflows as strings } from '$lib/strings/workflows'
import { ancestors, type Graph, type Link, type Step } from './graph'

export interface Wanted {
  source: string
  target: string
  sourceHandle?: string | null
}

/** The exits of a step: a condition has one for each branch, an end none. */
export function exits(step: Pick<Step, 'type'>): (string | null)[] {
  if (step.type === 'end') return []
  return step.type === 'condition' ? ['true', 'false'] : [null]
}

export function hasEntry(step: Pick<Step, 'type'>): boolean {
  return step.type !== 'start'
}

/** The reason why a connection is not allowed; undefined if it is allowed. */
export function refusal(graph: Graph, wanted: Wanted): string | undefined {
  const text = strings.connect
  const source = graph.nodes.find((step) => step.id === wanted.source)
  const target = graph.nodes.find((step) => step.id === wanted.target)
  if (!source || !target) return text.missing
  if (source.id === target.id) return text.self
  if (!hasEntry(target)) return text.intoStart
  const open = exits(source)
  if (!open.length) return text.fromEnd
  const handle = wanted.sourceHandle ?? null
  if (!open.includes(handle)) return source.type === 'condition' ? text.chooseBranch : text.noBranch
  const same = (link: Link): boolean => link.source === source.id && link.target === target.id
  if (graph.edges.some((link) => same(link) && (link.sourceHandle ?? null) === handle)) return text.twice
  if (source.type === 'condition' && graph.edges.some(same)) return text.bothBranches
  if (ancestors(graph, source.id).has(target.id)) return text.cycle
  return undefined
}

/** The steps that a step can be connected to, for the keyboard. */
export function targets(graph: Graph, source: string, sourceHandle: string | null): Step[] {
  return graph.nodes.filter((step) => !refusal(graph, { source, target: step.id, sourceHandle }))
}
