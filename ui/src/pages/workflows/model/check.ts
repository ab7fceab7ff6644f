/** Finds what would make a run fail or surprise, before it starts. */
import { workflows as strings } from '$lib/strings/workflows'
import { checkCondition } from './condition'
import { exits } from './connect'
import { ancestors, isObject, isWord, record, text, type Graph, type Step } from './graph'
import { placeholders, references, templates, variables } from './values'

export interface Problem {
  severity: 'error' | 'warning'
  message: string
  hint: string
  node?: string
  edge?: string
  /** A change that solves it. */
  /** The page where it can be changed. */
  href?: string
  fix?: 'add-start' | 'add-end' | 'remove-edge' | 'remove-node'
}

/** The skills, models and so on that the server has. `undefined` means not known (yet), so it is not checked. */
export interface Offer {
  skills?: { name: string; inputs: { name: string; required: boolean }[] }[]
  bases?: { id: string; name: string }[]
  models?: { id: string; model: string }[]
  /** Why the models of a provider cannot be listed. */
  modelProblem?: string
  http?: boolean
  code?: boolean
  /** Whether the user is an administrator, who can switch features on. */
  admin?: boolean
}

const words = strings.problems

export function check(graph: Graph, offer: Offer): Problem[] {
  const problems: Problem[] = []
  const paths = simulate(graph)
  structure(graph, paths, problems)
  for (const step of graph.nodes) {
    settings(step, offer, problems)
    values(step, graph, paths, problems)
  }
  const rank = (problem: Problem): number => (problem.severity === 'error' ? 0 : 1)
  return problems.toSorted((a, b) => rank(a) - rank(b))
}

function structure(graph: Graph, paths: Paths, problems: Problem[]): void {
  const add = (problem: Problem): void => void problems.push(problem)
  if (!graph.nodes.some((step) => step.type === 'start')) add({ severity: 'error', ...words.noStart, fix: 'add-start' })
  else if (!graph.nodes.some((step) => step.type === 'end')) add({ severity: 'warning', ...words.noEnd, fix: 'add-end' })
  const cycle = findCycle(graph)
  if (cycle) add({ severity: 'error', ...words.cycle, node: cycle })
  for (const edge of graph.edges) {
    const source = graph.nodes.find((step) => step.id === edge.source)
    if (source?.type === 'end') add({ severity: 'warning', ...words.fromEnd, edge: edge.id, node: source.id, fix: 'remove-edge' })
    else if (source?.type === 'condition' && edge.sourceHandle && !exits(source).includes(edge.sourceHandle)) {
      add({ severity: 'warning', ...words.deadBranch(edge.sourceHandle), edge: edge.id, node: source.id, fix: 'remove-edge' })
    }
  }
  if (cycle) return
  for (const step of graph.nodes) {
    if (step.type === 'start') continue
    if (!paths.reachable.has(step.id)) add({ severity: 'warning', ...words.unreachable, node: step.id, fix: 'remove-node' })
    else if (paths.exact && !paths.orders.some((order) => order.includes(step.id))) add({ severity: 'warning', ...words.cutOff, node: step.id })
    if (step.type === 'condition' && paths.reachable.has(step.id)) oneBranch(graph, step, problems)
  }
}

function oneBranch(graph: Graph, step: Step, problems: Problem[]): void {
  const used = graph.edges.filter((edge) => edge.source === step.id).map((edge) => edge.sourceHandle ?? null)
  if (used.includes(null) || new Set(used).size !== 1) return
  problems.push({ severity: 'warning', ...words.oneBranch(used[0] === 'true' ? 'false' : 'true'), node: step.id })
}

function settings(step: Step, offer: Offer, problems: Problem[]): void {
  const { data, id } = step
  const error = (problem: { message: string; hint: string; href?: string }): void => void problems.push({ severity: 'error', ...problem, node: id })
  const skill = text(data, 'skillName').trim()
  if (step.type === 'llm') {
    if (offer.models && !offer.models.length) error(offer.modelProblem ? words.modelDown(offer.modelProblem, offer.admin) : words.noModel)
    const model = text(data, 'model').trim()
    if (model && offer.models?.length && !offer.models.some((one) => one.id === model || one.model === model)) error(words.unknownModel(model))
  }
  if (step.type === 'skill') {
    if (!skill) error(words.noSkill)
    else mappings(step, skill, offer, problems)
    if (offer.models && !offer.models.length) error(offer.modelProblem ? words.modelDown(offer.modelProblem, offer.admin) : words.noModel)
  }
  if (skill && (step.type === 'skill' || step.type === 'llm') && offer.skills && !offer.skills.some((one) => one.name === skill)) error(words.unknownSkill(skill))
  if (step.type === 'knowledge') {
    const base = text(data, 'knowledgeBaseId').trim()
    if (!base) error(words.noBase)
    else if (offer.bases && !offer.bases.some((one) => one.id === base || one.name === base)) error(words.unknownBase(base))
  }
  if (step.type === 'condition') {
    const wrong = data.expression === undefined || typeof data.expression === 'boolean' ? undefined : checkCondition(text(data, 'expression'))
    if (wrong) error(words.condition(wrong.message))
  }
  if (step.type === 'http') http(step, offer, error, (problem) => void problems.push({ severity: 'warning', ...problem, node: id }))
  if (step.type === 'code') {
    if (offer.code === false) error(words.codeOff(offer.admin))
    if (!text(data, 'code').trim()) error(words.noCode)
    for (const name of Object.keys(record(data, 'env'))) if (!isVariableName(name)) error(words.variableName(name))
  }
}

function mappings(step: Step, skill: string, offer: Offer, problems: Problem[]): void {
  const known = offer.skills?.find((one) => one.name === skill)
  const given = record(step.data, 'inputMappings')
  if (!known || !Object.keys(given).length) return
  for (const input of known.inputs) {
    if (input.required && !Object.hasOwn(given, input.name)) problems.push({ severity: 'error', ...words.unmapped(input.name), node: step.id })
  }
}

type Add = (problem: { message: string; hint: string; href?: string }) => void

function http(step: Step, offer: Offer, error: Add, warn: Add): void {
  const url = text(step.data, 'url').trim()
  if (offer.http === false) error(words.httpOff(offer.admin))
  if (!url) error(words.noUrl)
  else if (placeholders(origin(url)).length) error(words.valueHost)
  else if (!/^https?:\/\/[^/\\?#:]/i.test(url)) error(words.badUrl(url))
  else if (isPrivate(hostOf(url))) warn(words.privateHost(hostOf(url)))
  const method = text(step.data, 'method').trim().toUpperCase() || 'GET'
  if (!['GET', 'POST', 'PUT', 'DELETE'].includes(method)) error(words.badMethod(method))
  for (const name of Object.keys(record(step.data, 'headers'))) {
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name.trim())) error(words.headerName(name))
  }
}

/** The part of an address in which the server inserts no values. */
function origin(url: string): string {
  const after = url.indexOf('://')
  const end = url.slice(after < 0 ? 0 : after + 3).search(/[/?#]/)
  return end < 0 ? url : url.slice(0, end + (after < 0 ? 0 : after + 3))
}

function hostOf(url: string): string {
  try {
    return new URL(origin(url)).hostname
  } catch {
    return ''
  }
}

/** Hosts of this machine and of private networks, which the server does not call unless its operator lets it. */
function isPrivate(host: string): boolean {
  return /^(localhost|.+\.localhost|0\.0\.0\.0|127\.\d+\.\d+\.\d+|10\.\d+\.\d+\.\d+|192\.168\.\d+\.\d+|169\.254\.\d+\.\d+|172\.(1[6-9]|2\d|3[01])\.\d+\.\d+|\[::1?\]|\[f[cd].*\]|\[fe80.*\])$/i.test(host)
}

/** Names that the server passes to Python. */
export function isVariableName(name: string): boolean {
  const upper = name.toUpperCase()
  return /^[A-Z_][A-Z0-9_]{0,127}$/.test(upper) && !['PATH', 'WORKFLOW_INPUT', 'USER_ID'].includes(upper) && !/^(LD_|PYTHON|GLIBC_|MALLOC_)/.test(upper)
}

/** Placeholders that have no value when the step runs. */
function values(step: Step, graph: Graph, paths: Paths, problems: Problem[]): void {
  const ids = new Set(graph.nodes.map((one) => one.id))
  const known = new Set([...variables(graph), 'input'])
  const warn = (problem: { message: string; hint: string }): void => void problems.push({ severity: 'warning', ...problem, node: step.id })
  for (const id of references(step, ids)) {
    if (known.has(id)) continue
    if (!ids.has(id)) warn(words.noSuchStep(id))
    else if (!isWord(id)) warn(words.idNotWord(id))
    else late(step.id, id, graph, paths, warn)
  }
  for (const { value } of templates(step)) {
    for (const path of placeholders(value)) {
      const [first = '', second] = path.split('.')
      if (second !== 'output' && !known.has(first)) warn(ids.has(first) ? words.needsOutput(first) : words.noSuchValue(path))
    }
    if (!isObject(value) && /\{\{\s+[\w.-]+\s*\}\}|\{\{[\w.-]+\s+\}\}/.test(value)) warn(words.blanks)
  }
}

function late(step: string, id: string, graph: Graph, paths: Paths, warn: (problem: { message: string; hint: string }) => void): void {
  const orders = paths.orders.filter((order) => order.includes(step))
  if (!orders.length) return
  const good = orders.filter((order) => order.includes(id) && order.indexOf(id) < order.indexOf(step)).length
  if (good === orders.length) return
  if (!good && (paths.exact || !ancestors(graph, step).has(id))) warn(words.laterStep(id))
  else warn(words.sometimesMissing(id))
}

export interface Paths {
  /** The order in which steps run, for each combination of condition results. */
  orders: string[][]
  /** Whether all combinations were tried. */
  exact: boolean
  reachable: Set<string>
}

const MAX_WAYS = 64

/** Walks through the graph as a run does: breadth first, each step once, until an end is reached. */
export function simulate(graph: Graph): Paths {
  const kinds = new Map(graph.nodes.map((step) => [step.id, step.type]))
  const next = new Map<string, { target: string; handle: string | null }[]>()
  for (const { source, target, sourceHandle } of graph.edges) {
    const list = next.get(source) ?? []
    list.push({ target, handle: sourceHandle ?? null })
    next.set(source, list)
  }
  const starts = graph.nodes.filter((step) => step.type === 'start').map((step) => step.id)
  const conditions = graph.nodes.filter((step) => step.type === 'condition').map((step) => step.id)
  const exact = 2 ** conditions.length <= MAX_WAYS
  const ways = exact ? 2 ** conditions.length : MAX_WAYS
  const orders: string[][] = []
  for (let way = 0; way < ways; way += 1) {
    const branch = new Map(conditions.map((id, index) => [id, exact ? (way >> index) & 1 : hash(way, index)]))
    const order: string[] = []
    const queue = [...starts]
    const queued = new Set(queue)
    for (let id = queue.shift(); id !== undefined; id = queue.shift()) {
      order.push(id)
      if (kinds.get(id) === 'end') break
      const taken = branch.get(id)
      for (const { target, handle } of next.get(id) ?? []) {
        if (taken !== undefined && handle !== null && handle !== (taken ? 'true' : 'false')) continue
        if (queued.has(target)) continue
        queued.add(target)
        queue.push(target)
      }
    }
    orders.push(order)
  }
  const reachable = new Set(starts)
  const open = [...starts]
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (kinds.get(id) === 'end') continue
    for (const { target } of next.get(id) ?? []) {
      if (reachable.has(target)) continue
      reachable.add(target)
      open.push(target)
    }
  }
  return { orders, exact, reachable }
}

/** A pseudorandom bit for a combination, always the same for the same graph. */
function hash(way: number, index: number): number {
  return (Math.imul(way + 1, 2654435761) >>> (index % 29)) & 1
}

/** A step of a cycle. */
function findCycle(graph: Graph): string | undefined {
  const incoming = new Map(graph.nodes.map((step) => [step.id, 0]))
  const next = new Map<string, string[]>()
  for (const { source, target } of graph.edges) {
    incoming.set(target, (incoming.get(target) ?? 0) + 1)
    next.set(source, [...(next.get(source) ?? []), target])
  }
  const free = [...incoming].filter(([, count]) => count === 0).map(([id]) => id)
  for (let id = free.pop(); id !== undefined; id = free.pop()) {
    incoming.delete(id)
    for (const target of next.get(id) ?? []) {
      const left = (incoming.get(target) ?? 0) - 1
      incoming.set(target, left)
      if (left === 0) free.push(target)
    }
  }
  return [...incoming.keys()][0]
}
