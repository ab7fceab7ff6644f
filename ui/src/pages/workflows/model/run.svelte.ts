/** A run as the canvas shows it: the state, input and output of each step. */
import { SvelteMap } from 'svelte/reactivity'
import { api, ApiError, asApiError, isAbort, path } from '$lib/api/client'
import { explain } from '$lib/explain'
import { session } from '$lib/session.svelte'
import { follow, openStream, type StreamEvent } from '$lib/api/sse'
import { workflows as strings } from '$lib/strings/workflows'
import { SINGLE_STEP, type Workflow } from '../types'
import { withLiterals } from './condition'
import { before, isObject, record, text, type Graph, type Settings, type Step } from './graph'
import { asText, fill, find, mapped, placeholders, templates, type Values } from './values'

export type StepState = 'waiting' | 'running' | 'ok' | 'failed' | 'stopped'
export type RunState = 'idle' | 'running' | 'ok' | 'failed' | 'stopped'

export interface Passage {
  doc_id: string
  chunk_index: number
  score: number
  text: string
}

/** One step of a run. */
export class StepRun {
  state = $state<StepState>('waiting')
  /** What has arrived so far. */
  streamed = $state('')
  output = $state.raw<unknown>()
  error = $state('')
  status = $state<number>()
  branch = $state<'true' | 'false'>()
  passages = $state.raw<Passage[]>([])
  input = $state('')
  /** Fields of the step with placeholders replaced, as they were sent. */
  sent = $state.raw<{ field: string; value: string }[]>([])
  started = $state(0)
  ended = $state(0)
  /** Ran before the run was resumed. */
  earlier = $state(false)

  get shown(): string {
    return this.output === undefined ? this.streamed : typeof this.output === 'string' ? this.output : JSON.stringify(this.output, null, 2)
  }
}

export class FlowRun {
  state = $state<RunState>('idle')
  steps = new SvelteMap<string, StepRun>()
  order = $state<string[]>([])
  error = $state.raw<ApiError>()
  output = $state.raw<unknown>()
  input = $state('')
  execution = $state<string>()
  live = $state(true)
  private run: string | undefined
  private abort: AbortController | undefined
  private graph: Graph = { nodes: [], edges: [], extra: {} }
  private variables: Record<string, unknown> = {}

  get failedStep(): string | undefined {
    return [...this.steps].find(([, step]) => step.state === 'failed')?.[0]
  }

  /** Whether the run failed or was stopped, and can continue from there. */
  get resumable(): boolean {
    return this.execution !== undefined && (this.state === 'failed' || this.state === 'stopped')
  }

  get values(): Values {
    const outputs = Object.fromEntries([...this.steps].filter(([, step]) => step.output !== undefined).map(([id, step]) => [id, step.output]))
    return { input: this.input, outputs, variables: this.variables }
  }

  clear(): void {
    this.steps.clear()
    this.order = []
    this.state = 'idle'
    this.error = undefined
    this.output = undefined
    this.execution = undefined
    this.variables = {}
    this.run = undefined
  }

  async start(workflow: string, graph: Graph, input: string, model?: string): Promise<void> {
    this.clear()
    this.graph = graph
    this.input = input
    await this.listen((signal) => openStream('POST', path`/api/v1/workflows/${workflow}/execute`, { input, ...(model ? { model } : {}) }, { signal }))
  }

  async resume(graph: Graph): Promise<void> {
    const { execution } = this
    if (!execution) return
    this.graph = graph
    for (const [id, step] of this.steps) {
      if (step.state === 'ok') step.earlier = true
      else this.steps.delete(id)
    }
    this.order = this.order.filter((id) => this.steps.has(id))
    await this.listen((signal) => openStream('POST', path`/api/v1/workflows/executions/${execution}/resume`, undefined, { signal }))
  }

  /** Shows a run that was started elsewhere or before a reload, live if it still runs. */
  async attach(run: string, graph: Graph, input: string): Promise<void> {
    this.stopListening()
    this.clear()
    this.graph = graph
    this.input = input
    this.run = run
    await this.listen(async (signal) => ({ run, events: follow(path`/api/v1/runs/${run}/events`, { signal }, (live) => (this.live = live)) }))
  }

  private async listen(open: (signal: AbortSignal) => ReturnType<typeof openStream>): Promise<void> {
    const abort = new AbortController()
    this.abort = abort
    this.state = 'running'
    this.error = undefined
    this.output = undefined
    this.live = true
    try {
      const stream = await open(abort.signal)
      this.run = stream.run ?? this.run
      await this.read(stream.events, abort.signal)
    } catch (error) {
      if (!abort.signal.aborted && !isAbort(error)) this.fail(asApiError(error))
    }
  }

  /** A run with an id goes on without the connection, so it is followed again. */
  private async read(events: AsyncGenerator<StreamEvent>, signal: AbortSignal): Promise<void> {
    try {
      for await (const event of events) this.handle(event)
    } catch (error) {
      if (!this.run || signal.aborted || isAbort(error)) throw error
      this.live = false
      // The events come again from the start; steps of before a resumption are not among them.
      for (const [id, step] of this.steps) if (!step.earlier) this.steps.delete(id)
      this.order = this.order.filter((id) => this.steps.has(id))
      for await (const event of follow(path`/api/v1/runs/${this.run}/events`, { signal }, (live) => (this.live = live))) this.handle(event)
    }
    if (this.state === 'running' && !signal.aborted) this.fail(new ApiError(0, strings.run.lost))
  }

  async stop(): Promise<void> {
    if (this.state !== 'running') return
    this.stopListening()
    this.state = 'stopped'
    for (const step of this.steps.values()) if (step.state === 'running') step.state = 'stopped'
    // Without an id, the run ends with the connection.
    if (this.run) await api.post(path`/api/v1/runs/${this.run}/stop`).catch(() => {})
  }

  /** Ends the connection, for example when the page is left. */
  stopListening(): void {
    this.abort?.abort()
  }

  private fail(error: ApiError): void {
    this.error = error
    this.state = 'failed'
    for (const step of this.steps.values()) if (step.state === 'running') step.state = 'stopped'
  }

  private handle({ event, data }: StreamEvent): void {
    const given = isObject(data) ? data : {}
    const id = text(given, 'node_id')
    if (event === 'workflow_start') this.execution = text(given, 'execution_id') || undefined
    else if (event === 'node_start') this.begin(id)
    else if (event === 'token') {
      const step = this.steps.get(id)
      if (step) step.streamed += text(given, 'content')
    } else if (event === 'thought') this.think(id, given)
    else if (event === 'citation') this.cite(id, given)
    else if (event === 'node_complete') this.complete(id, given)
    else if (event === 'node_error') this.refuse(id, text(given, 'error'))
    else if (event === 'workflow_error') this.fail(new ApiError(-1, text(given, 'error'), { hint: this.hint(text(given, 'error')) }))
    else if (event === 'workflow_complete') {
      this.output = given.final_output ?? ''
      this.state = 'ok'
    } else if (event === 'error') this.fail(new ApiError(-1, text(given, 'message') || text(given, 'error'), { hint: strings.run.resumeHint }))
  }

  private hint(error: string): string {
    const found = /disabled by the administrator|cannot choose the host|blocked IP/i.test(error)
    return found ? explain(error, { kind: 'workflow', admin: session.admin }).hint : strings.run.resumeHint
  }

  private begin(id: string): void {
    const step = new StepRun()
    step.state = 'running'
    step.started = Date.now()
    const definition = this.graph.nodes.find((one) => one.id === id)
    if (definition) {
      step.input = asText(inputOf(definition, this.graph, this.values))
      step.sent = sentTexts(definition, this.values)
    }
    this.steps.set(id, step)
    if (!this.order.includes(id)) this.order.push(id)
  }

  private think(id: string, given: Settings): void {
    const step = this.steps.get(id)
    const branch = given.branch
    if (step && (branch === 'true' || branch === 'false')) step.branch = branch
  }

  private cite(id: string, given: Settings): void {
    const step = this.steps.get(id)
    if (step && Array.isArray(given.sources)) step.passages = given.sources as Passage[]
  }

  private complete(id: string, given: Settings): void {
    const step = this.steps.get(id)
    if (!step) return
    step.output = given.output ?? null
    step.state = 'ok'
    step.ended = Date.now()
    if (typeof given.status_code === 'number') step.status = given.status_code
    const definition = this.graph.nodes.find((one) => one.id === id)
    const variable = definition?.type === 'start' ? text(definition.data, 'inputVariable').trim() : ''
    if (variable) this.variables[variable] = step.output
  }

  private refuse(id: string, error: string): void {
    const step = this.steps.get(id)
    if (!step) return
    step.state = 'failed'
    step.error = error
    step.ended = Date.now()
  }
}

/** The input of a step: the output of the first step before it that ran, or the input of the run. */
export function inputOf(step: Step, graph: Graph, values: Values): unknown {
  if (step.type === 'start') return values.input
  const source = (before(graph).get(step.id) ?? []).find((id) => Object.hasOwn(values.outputs, id))
  return source === undefined ? values.input : values.outputs[source]
}

/** The texts of a step that contain placeholders, with the values. */
function sentTexts(step: Step, values: Values): { field: string; value: string }[] {
  if (step.type === 'skill') {
    return Object.entries(record(step.data, 'inputMappings')).map(([name, value]) => ({ field: name, value: mapped(value, values) }))
  }
  return templates(step)
    .filter(({ value }) => placeholders(value).length > 0)
    .map(({ field, value }) => ({ field, value: step.type === 'condition' ? withLiterals(value, values) : fill(value, values) }))
}

/** The placeholders of a step that have no value yet. */
export function missingValues(step: Step, values: Values): string[] {
  const paths = templates(step).flatMap(({ value }) => placeholders(value))
  return [...new Set(paths)].filter((one) => !find(one, values).found)
}

/**
 * Runs one step alone. The API runs whole workflows, so this makes one with a start and the step,
 * with the values of the last run in its texts, and deletes it afterwards.
 */
export async function runSingle(step: Step, name: string, input: string, values: Values, run: FlowRun, model?: string): Promise<void> {
  const start = step.id === 'start' ? 'single-step-start' : 'start'
  const alone: Step = { ...step, type: step.type, data: withValues(step, values) }
  const graph: Graph = {
    nodes: step.type === 'start' ? [alone] : [{ id: start, type: 'start', data: {}, position: { x: 0, y: 0 } }, alone],
    edges: step.type === 'start' ? [] : [{ id: 'single', source: start, target: step.id }],
    extra: {},
  }
  const body = { name: strings.run.testName(name).slice(0, 255), description: SINGLE_STEP, graph_data: { nodes: graph.nodes, edges: graph.edges } }
  const made = await api.post<Workflow>('/api/v1/workflows', body)
  try {
    await run.start(made.id, graph, input, model)
  } finally {
    await api.delete(path`/api/v1/workflows/${made.id}`).catch(() => {})
  }
}

function withValues(step: Step, values: Values): Settings {
  const { data } = step
  const all = (given: Record<string, unknown>, insert: (value: unknown) => unknown): Record<string, unknown> =>
    Object.fromEntries(Object.entries(given).map(([name, value]) => [name, insert(value)]))
  const filled = (value: unknown): unknown => (typeof value === 'string' ? fill(value, values) : value)
  switch (step.type) {
    case 'llm':
      return { ...data, ...(data.systemPrompt === undefined ? {} : { systemPrompt: filled(data.systemPrompt) }) }
    case 'condition':
      return typeof data.expression === 'string' ? { ...data, expression: withLiterals(data.expression, values) } : data
    case 'skill':
      return Object.keys(record(data, 'inputMappings')).length ? { ...data, inputMappings: all(record(data, 'inputMappings'), (value) => mapped(value, values)) } : data
    case 'http':
      return { ...data, url: filled(data.url), headers: all(record(data, 'headers'), filled), body: isObject(data.body) ? all(data.body, filled) : filled(data.body) }
    default:
      return data
  }
}
