/** The state of a skill run while its events arrive: steps, answer, sources, result. */
import { api, ApiError, asApiError, isAbort, path } from '$lib/api/client'
import { skillApi } from '$lib/skills'
import { follow, openStream, type StreamEvent } from '$lib/api/sse'
import { explain } from '$lib/explain'
import { session } from '$lib/session.svelte'
import { strings } from '$lib/strings'
import { announcer } from '$lib/toast.svelte'
import { apply, type Answer } from '../chat/events'

export interface Step {
  topic: string
  status: string
  message: string
  started: number
  ended?: number
}

export interface Citation {
  doc_id: string
  chunk_index: number
  score: number
  text: string
}

const text = strings.skills.runPanel

export class SkillRun {
  state = $state<'idle' | 'running' | 'ok' | 'failed' | 'stopped'>('idle')
  answer = $state('')
  steps = $state<Step[]>([])
  citations = $state.raw<Citation[]>([])
  /** Questions whether the tool may run. */
  asked = $state<Answer>({ parts: [], sources: [] })
  error = $state.raw<ApiError>()
  id = $state<string>()
  /** Token usage, after the models have reported it. */
  tokens = $state<{ input: number; output: number }>()
  /** The model that answered. */
  model = $state<string>()
  connected = $state(true)
  startedAt = $state(0)
  endedAt = $state(0)
  private abort: AbortController | undefined
  /** Tokens that arrived since the last frame: the answer is rendered once per frame. */
  private pending = ''
  private frame = 0

  /** Starts a run of the instructions. */
  start(name: string, inputs: Record<string, string>, onid: (id: string) => void, owner?: string): Promise<void> {
    return this.open(skillApi(name, owner, '/run'), { inputs }, onid)
  }

  /** Starts a tool. */
  startTool(name: string, tool: string, args: Record<string, unknown>, onid: (id: string) => void, owner?: string): Promise<void> {
    return this.open(skillApi(name, owner, path`/tools/${tool}/run`), { arguments: args }, onid)
  }

  /** Starts a run and reads it to its end. If the connection is lost, the run is followed again. */
  private async open(to: string, body: unknown, onid: (id: string) => void): Promise<void> {
    const signal = this.begin()
    try {
      const stream = await openStream('POST', to, body, { signal })
      if (stream.run) {
        this.id = stream.run
        onid(stream.run)
      }
      try {
        for await (const event of stream.events) this.take(event)
      } catch (error) {
        if (!this.id || isAbort(error)) throw error
        await this.resume(signal)
      }
    } catch (error) {
      this.fail(error)
    } finally {
      this.end()
      await this.explain(signal)
    }
  }

  /** Follows a run that was started before, for example before a reload. */
  async attach(id: string): Promise<void> {
    const signal = this.begin()
    this.id = id
    try {
      await this.resume(signal)
    } catch (error) {
      this.fail(error)
    } finally {
      this.end()
      await this.explain(signal)
    }
  }

  /** Answers the question whether a tool may run. */
  async answerQuestion(question: string, choice: string): Promise<void> {
    await api.post(path`/api/v1/runs/${this.id ?? ''}/approvals/${question}`, { answer: choice })
  }

  async stop(): Promise<void> {
    const id = this.id
    this.state = 'stopped'
    if (id) await api.post(path`/api/v1/runs/${id}/stop`).catch(() => {})
    this.abort?.abort()
    announcer.say(text.stopped)
  }

  /** Disconnects from the run, which continues on the server. */
  detach(): void {
    this.abort?.abort()
    cancelAnimationFrame(this.frame)
  }

  private async resume(signal: AbortSignal): Promise<void> {
    const id = this.id ?? ''
    this.clear()
    for await (const event of follow(path`/api/v1/runs/${id}/events`, { signal }, (live) => (this.connected = live))) this.take(event)
  }

  private begin(): AbortSignal {
    this.abort?.abort()
    this.abort = new AbortController()
    this.state = 'running'
    this.answer = ''
    this.pending = ''
    this.steps = []
    this.citations = []
    this.asked = { parts: [], sources: [] }
    this.error = undefined
    this.id = undefined
    this.tokens = undefined
    this.model = undefined
    this.connected = true
    this.startedAt = Date.now()
    this.endedAt = 0
    return this.abort.signal
  }

  private end(): void {
    this.flush()
    if (this.state === 'running') this.state = 'ok'
    for (const part of this.asked.parts) if (part.kind === 'approval') part.approval.answer ??= 'expired'
    this.endedAt = Date.now()
    for (const step of this.steps) step.ended ??= this.endedAt
    if (this.state === 'ok') announcer.say(text.done)
    if (this.state === 'failed') announcer.say(text.failed)
  }

  /** The stored run names the model, and says why it failed, for example what the provider answered. */
  private async explain(signal: AbortSignal): Promise<void> {
    if (!this.id || signal.aborted) return
    const run = await api.get<{ kind?: string; error?: string | null; model?: string | null }>(path`/api/v1/runs/${this.id}`, { signal }).catch(() => undefined)
    if (signal.aborted) return
    this.model = run?.model ?? undefined
    if (run?.error && this.state === 'failed') this.error = new ApiError(-1, run.error, { hint: explain(run.error, { kind: run.kind ?? 'prompt', admin: session.admin }).hint })
  }

  private fail(error: unknown): void {
    if (isAbort(error)) {
      this.state = 'stopped'
      return
    }
    this.error = asApiError(error)
    this.state = 'failed'
  }

  private take(arrived: StreamEvent): void {
    const { event, data } = arrived
    const body = (data ?? {}) as Record<string, unknown>
    const message = typeof body.message === 'string' ? body.message : ''
    if (event === 'token') this.append(String(body.content ?? ''))
    else if (event === 'thought') this.step(String(body.type ?? body.type_detail ?? ''), String(body.status ?? ''), message || String(body.error ?? ''))
    else if (event === 'citation') this.citations = body.sources as Citation[]
    else if (event === 'error') this.error = this.failure(message, body.hint)
    else if (event === 'usage') this.count(Number(body.input_tokens ?? 0), Number(body.output_tokens ?? 0))
    else if (event === 'approval') apply(this.asked, arrived)
    else if (event === 'reset') this.clear()
    else if (event === 'done') this.finish(String(body.status ?? ''), message)
  }

  /** Resets the state, because after a reconnect the server sends all events again. */
  private clear(): void {
    this.steps = []
    this.asked = { parts: [], sources: [] }
    this.answer = ''
    this.pending = ''
    this.tokens = undefined
  }

  private count(input: number, output: number): void {
    this.tokens = { input: (this.tokens?.input ?? 0) + input, output: (this.tokens?.output ?? 0) + output }
  }

  private finish(status: string, message: string): void {
    if (this.state !== 'running') return
    if (status === 'stopped') this.state = 'stopped'
    else if (status === 'error') {
      this.error ??= this.failure(message)
      this.state = 'failed'
    } else this.state = 'ok'
  }

  /** Creates the error of a failed run. Its title is the message of the failed step, because the run's own message is generic. */
  private failure(message: string, hint?: unknown): ApiError {
    const cause = this.steps.findLast((step) => /^(error|warning|failed)$/.test(step.status) && step.message && step.message !== message)?.message
    return new ApiError(-1, cause ?? (message || text.failed), { hint: typeof hint === 'string' ? hint : explain(cause ?? message, { kind: 'prompt', admin: session.admin }).hint })
  }

  private step(topic: string, status: string, message: string): void {
    const now = Date.now()
    const open = this.steps.findLast((step) => step.topic === topic && !step.ended)
    if (open && status !== 'start') {
      open.status = status
      open.message = message || open.message
      if (status === 'complete' || status === 'error') open.ended = now
    } else {
      this.steps.push({ topic, status, message, started: now, ended: status === 'start' ? undefined : now })
    }
  }

  private append(content: string): void {
    this.pending += content
    this.frame ||= requestAnimationFrame(() => this.flush())
  }

  private flush(): void {
    cancelAnimationFrame(this.frame)
    this.frame = 0
    this.answer += this.pending
    this.pending = ''
  }
}
