/** The graph of a workflow: its JSON, read and written without losing unknown fields. */
import { workflows as strings } from '$lib/strings/workflows'

export const KINDS = ['start', 'llm', 'skill', 'knowledge', 'condition', 'http', 'code', 'end'] as const
export type Kind = (typeof KINDS)[number]
export type Settings = Record<string, unknown>

export interface Point {
  x: number
  y: number
}

export interface Step {
  id: string
  type: Kind
  data: Settings
  position: Point
  [extra: string]: unknown
}

export interface Link {
  id: string
  source: string
  target: string
  /** The branch of a condition: `true` or `false`. */
  sourceHandle?: string | null
  [extra: string]: unknown
}

export interface Graph {
  nodes: Step[]
  edges: Link[]
  /** Other members of the object. */
  extra: Record<string, unknown>
}

/** A place in the JSON that the server would refuse. */
export interface ShapeProblem {
  path: (string | number)[]
  message: string
}

export type Parsed = { graph: Graph; problems: []; placed: boolean } | { graph: undefined; problems: ShapeProblem[]; placed: false }

export const MAX_NODES = 500
export const MAX_EDGES = 2000
const MAX_ID = 255
const { shape } = strings

export const emptyGraph = (): Graph => ({ nodes: [], edges: [], extra: {} })

export function isKind(value: unknown): value is Kind {
  return KINDS.includes(value as Kind)
}

/**
 * Reads a graph under the rules of the server. `placed` says whether each step has a position.
 * Edges to steps that do not exist have no effect in a run, so they are left out.
 */
export function parseGraph(value: unknown): Parsed {
  const problems: ShapeProblem[] = []
  if (!isObject(value)) return { graph: undefined, problems: [{ path: [], message: shape.object }], placed: false }
  const { nodes = [], edges = [], ...extra } = value
  const steps = list(nodes, 'nodes', MAX_NODES, problems).map((node, index) => parseStep(node, ['nodes', index], problems))
  const links = list(edges, 'edges', MAX_EDGES, problems).map((edge, index) => parseLink(edge, ['edges', index], problems))
  const ids = new Set<string>()
  for (const [index, step] of steps.entries()) {
    if (!step) continue
    if (ids.has(step.id)) problems.push({ path: ['nodes', index, 'id'], message: shape.sameId(step.id) })
    ids.add(step.id)
  }
  if (problems.length) return { graph: undefined, problems, placed: false }
  const kept = links.filter((link): link is Link => Boolean(link && ids.has(link.source) && ids.has(link.target)))
  const all = steps.filter((step) => step !== undefined)
  const placed = all.every((step) => isPoint(step.position))
  for (const step of all) if (!isPoint(step.position)) step.position = { x: 0, y: 0 }
  return { graph: { nodes: all, edges: uniqueIds(kept), extra }, problems: [], placed }
}

function list(value: unknown, name: string, most: number, problems: ShapeProblem[]): unknown[] {
  if (!Array.isArray(value)) problems.push({ path: [name], message: shape.list(name) })
  else if (value.length > most) problems.push({ path: [name], message: shape.tooMany(most, name) })
  else return value
  return []
}

function parseStep(value: unknown, path: (string | number)[], problems: ShapeProblem[]): Step | undefined {
  const fail = (at: (string | number)[], message: string) => void problems.push({ path: [...path, ...at], message })
  if (!isObject(value)) return fail([], shape.step) as undefined
  const { id, type, data, ...rest } = value
  if (typeof id !== 'string' || !id) return fail(['id'], shape.id) as undefined
  if ([...id].length > MAX_ID) return fail(['id'], shape.longId(MAX_ID)) as undefined
  if (!isKind(type)) return fail(['type'], shape.type(String(type), KINDS.join(', '))) as undefined
  if (data !== undefined && data !== null && !isObject(data)) return fail(['data'], shape.data) as undefined
  return { ...rest, id, type, data: data ?? {}, position: rest.position as Point }
}

function parseLink(value: unknown, path: (string | number)[], problems: ShapeProblem[]): Link | undefined {
  const fail = (at: (string | number)[], message: string) => void problems.push({ path: [...path, ...at], message })
  if (!isObject(value)) return fail([], shape.edge) as undefined
  const { id, source, target, sourceHandle } = value
  if (typeof source !== 'string') return fail(['source'], shape.source) as undefined
  if (typeof target !== 'string') return fail(['target'], shape.target) as undefined
  if (sourceHandle !== undefined && sourceHandle !== null && typeof sourceHandle !== 'string') {
    return fail(['sourceHandle'], shape.handle) as undefined
  }
  return { ...value, id: typeof id === 'string' ? id : '', source, target, sourceHandle }
}

/** Edges from elsewhere may have no id, or the same one twice. */
function uniqueIds(links: Link[]): Link[] {
  const taken = new Set<string>()
  return links.map((link) => {
    let id = link.id || linkId(link.source, link.target, link.sourceHandle)
    for (let count = 2; taken.has(id); count += 1) id = `${link.id || linkId(link.source, link.target, link.sourceHandle)}-${count}`
    taken.add(id)
    return link.id === id ? link : { ...link, id }
  })
}

export function linkId(source: string, target: string, handle?: string | null): string {
  return `${source}-${handle ? `${handle}-` : ''}${target}`
}

/** The JSON that the server stores. */
export function toJson(graph: Graph): Record<string, unknown> {
  return { ...graph.extra, nodes: graph.nodes.map(stepJson), edges: graph.edges.map(linkJson) }
}

function stepJson({ id, type, position, data, ...rest }: Step): Record<string, unknown> {
  return { id, type, position, data, ...rest }
}

function linkJson({ id, source, target, sourceHandle, ...rest }: Link): Record<string, unknown> {
  return { id, source, target, ...(sourceHandle ? { sourceHandle } : {}), ...rest }
}

/** An id that no other step has: `llm`, `llm-2`, … */
export function freshId(wanted: string, taken: Iterable<string>): string {
  const used = new Set(taken)
  const base = wanted.replace(/-\d+$/, '') || wanted
  if (!used.has(wanted)) return wanted
  for (let count = 2; ; count += 1) {
    if (!used.has(`${base}-${count}`)) return `${base}-${count}`
  }
}

/** Whether an id can stand in a placeholder such as `{{id.output}}`. */
export function isWord(text: string): boolean {
  return /^[\p{L}\p{N}_-]+$/u.test(text)
}

export function text(data: Settings, name: string): string {
  const value = data[name]
  return typeof value === 'string' ? value : ''
}

export function record(data: Settings, name: string): Record<string, unknown> {
  const value = data[name]
  return isObject(value) ? value : {}
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isPoint(value: unknown): value is Point {
  return isObject(value) && Number.isFinite(value.x) && Number.isFinite(value.y)
}

/** The steps before each step, in the order of the edges. */
export function before(graph: Pick<Graph, 'edges'>): Map<string, string[]> {
  const map = new Map<string, string[]>()
  for (const { source, target } of graph.edges) map.set(target, [...(map.get(target) ?? []), source])
  return map
}

/** All steps from which edges lead to a step, over any distance. */
export function ancestors(graph: Pick<Graph, 'edges'>, id: string): Set<string> {
  const sources = before(graph)
  const found = new Set<string>()
  const queue = [...(sources.get(id) ?? [])]
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    if (found.has(next)) continue
    found.add(next)
    queue.push(...(sources.get(next) ?? []))
  }
  return found
}
