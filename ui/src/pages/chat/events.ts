/** Turns the events of an answer into what is shown: text, steps, tool calls, questions, sources. */
import { chat } from '$lib/strings/chat'
import type { StreamEvent } from '$lib/api/sse'

/** `empty`: a search that found nothing. */
export type StepState = 'running' | 'ok' | 'failed' | 'stopped' | 'empty'

export interface Step {
  id: string
  label: string
  state: StepState
  detail?: string
}

export interface ToolCall {
  id: string
  tool: string
  skill?: string
  arguments?: string
  state: Exclude<StepState, 'empty'> | 'refused'
  message?: string
  ms?: number
}

/** A line of a question; what is dangerous comes first. */
export interface QuestionLine {
  role: 'warning' | 'grave' | 'reason' | 'fact'
  label: string
  text: string
}

export interface Approval {
  id: string
  tool: string
  skill?: string
  /** The program and its arguments. */
  command: string[]
  lines: QuestionLine[]
  choices: string[]
  answer?: string
}

export type Part =
  | { kind: 'text'; text: string }
  | { kind: 'steps'; steps: Step[] }
  | { kind: 'tool'; call: ToolCall }
  | { kind: 'approval'; approval: Approval }
  | { kind: 'warning'; message: string }

export interface Source {
  doc_id: string
  chunk_index: number
  score: number
  text: string
  kb_id?: string
  filename?: string
}

export interface Answer {
  parts: Part[]
  sources: Source[]
}

/** How an answer ended. */
export interface End {
  ok: boolean
  message: string
}

type Data = Record<string, unknown>

/** Adds an event; returns the end when it is the last one. */
export function apply(answer: Answer, { event, data }: StreamEvent): End | undefined {
  const given = (data && typeof data === 'object' ? data : {}) as Data
  if (event === 'token') addText(answer, text(given.content))
  else if (event === 'citation') answer.sources = [...answer.sources, ...((given.sources as Source[] | undefined) ?? [])]
  else if (event === 'warning') answer.parts.push({ kind: 'warning', message: text(given.message) })
  else if (event === 'approval') addApproval(answer, given)
  else if (event === 'thought' && (given.type ?? given.type_detail) === 'tool') addTool(answer, given)
  else if (event === 'thought') addStep(answer, given)
  else if (event === 'done') return end(answer, given)
  return undefined
}

export function addText(answer: Answer, more: string): void {
  if (!more) return
  const last = answer.parts.at(-1)
  if (last?.kind === 'text') last.text += more
  else answer.parts.push({ kind: 'text', text: more })
}

/** The text of an answer, without steps and tool calls. */
export function words(answer: { parts: Part[] }): string {
  return answer.parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n\n')
}

function addTool(answer: Answer, given: Data): void {
  const id = text(given.call_id)
  const status = text(given.status)
  let call = findCall(answer, id)
  if (!call) {
    answer.parts.push({ kind: 'tool', call: { id, tool: text(given.tool), state: 'running' } })
    call = findCall(answer, id)
  }
  if (!call) return
  if (given.skill_name) call.skill = text(given.skill_name)
  if (given.arguments) call.arguments = text(given.arguments)
  if (given.message) call.message = text(given.message)
  if (typeof given.duration_ms === 'number') call.ms = given.duration_ms
  call.state = status === 'complete' ? 'ok' : status === 'error' ? 'failed' : status === 'refused' ? 'refused' : 'running'
}

function findCall(answer: Answer, id: string): ToolCall | undefined {
  // The newest first: some models number the calls of each reply from 0.
  for (const part of answer.parts.toReversed()) if (part.kind === 'tool' && part.call.id === id) return part.call
  return undefined
}

function addApproval(answer: Answer, given: Data): void {
  const id = text(given.id)
  const known = answer.parts.find((part) => part.kind === 'approval' && part.approval.id === id)
  if (known?.kind === 'approval') {
    known.approval.answer = text(given.answer) || known.approval.answer
    return
  }
  const approval: Approval = {
    id, tool: text(given.tool), skill: text(given.skill) || undefined, command: list(given.command), lines: (given.lines as QuestionLine[] | undefined) ?? [],
    choices: given.choices ? list(given.choices) : ['once', 'deny'], answer: text(given.answer) || undefined,
  }
  answer.parts.push({ kind: 'approval', approval })
}

function addStep(answer: Answer, given: Data): void {
  const type = text(given.type ?? given.type_detail)
  const id = `${type}:${text(given.node_id)}`
  const status = text(given.status)
  const step = { id, ...describe(type, status, given) }
  const group = answer.parts.at(-1)
  if (group?.kind !== 'steps') {
    // A step that goes on after some text keeps its place.
    const earlier = answer.parts.flatMap((part) => (part.kind === 'steps' ? part.steps : [])).findLast((other) => other.id === id)
    if (earlier && type === 'node' && !given.node_type) step.label = earlier.label
    if (earlier && earlier.state === 'running') Object.assign(earlier, step)
    else answer.parts.push({ kind: 'steps', steps: [step] })
    return
  }
  const known = group.steps.findLast((other) => other.id === id)
  // The end of a node does not repeat its type.
  if (known && type === 'node' && !given.node_type) step.label = known.label
  if (known && (known.state === 'running' || status !== 'start')) Object.assign(known, step)
  else group.steps.push(step)
}

function describe(type: string, status: string, given: Data): Omit<Step, 'id'> {
  const words = chat.steps
  const state: StepState = status === 'error' ? 'failed' : ['complete', 'loaded', ''].includes(status) ? 'ok' : 'running'
  const detail = text(given.error) || text(given.message) || undefined
  const name = text(given.skill_name) || text(given.workflow_name)
  if (type === 'retrieval') {
    if (state === 'failed') return { label: words.searchFailed, state, detail }
    if (state !== 'ok') return { label: words.searching, state }
    const found = Number(given.results_count ?? 0)
    return { label: words.found(found), state: found ? 'ok' : 'empty' }
  }
  if (type === 'skill') {
    if (state === 'failed') return { label: words.skillFailed, state, detail }
    return { label: state === 'ok' ? words.skill(name) : words.loadSkill(name), state, detail: text(given.description) || undefined }
  }
  // A workflow has no event for its own end in a conversation.
  if (type === 'workflow') return { label: words.workflow(name), state: state === 'failed' ? state : 'ok', detail }
  if (type === 'node') return { label: words.node(text(given.node_id), text(given.node_type)), state, detail }
  if (type === 'validation' || type === 'substitution' || type === 'generation') return { label: state === 'ok' ? words.done[type] : words[type], state, detail: state === 'failed' ? detail : undefined }
  return { label: words.other(type), state, detail }
}

function end(answer: Answer, given: Data): End {
  const ok = given.status !== 'error'
  const left = ok ? 'ok' : 'stopped'
  for (const part of answer.parts) {
    if (part.kind === 'steps') for (const step of part.steps) if (step.state === 'running') finish(step, left)
    if (part.kind === 'tool' && part.call.state === 'running') part.call.state = left
    if (part.kind === 'approval') part.approval.answer ??= 'expired'
  }
  return { ok, message: text(given.message) }
}

/** The server sends no event for the end of the last step. */
function finish(step: Step, state: StepState): void {
  step.state = state
  const type = step.id.split(':')[0]
  if (state === 'ok' && (type === 'validation' || type === 'substitution' || type === 'generation')) step.label = chat.steps.done[type]
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function list(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : []
}
