/** A conversation: its messages, and the answer that is being written. Answers go on while other pages are open. */
import { ApiError, api, asApiError, isAbort, path } from '$lib/api/client'
import { follow, openStream, type StreamEvent } from '$lib/api/sse'
import { chat as text } from '$lib/strings/chat'
import { explain, isModelError } from '$lib/explain'
import { session } from '$lib/session.svelte'
import { announcer } from '$lib/toast.svelte'
import { unsupported } from '../knowledge/types'
import { addText, apply, words, type Answer, type Part, type Source } from './events'
import { isOwn, sessions } from './sessions.svelte'
import { newId, type Message, type RunItem, type SessionDetail } from './types'

/** Milliseconds between updates while an answer arrives: smooth to read, cheap to render. */
const FLUSH = 40
/** A number of a source in an answer. */
const CITES = /\[\d+\]/
/** The most answers whose sources are loaded with the conversation. The others load theirs on request. */
const MAX_COMPLETED = 20
/** The most milliseconds between a question and the start of its run. */
const MAX_START = 60_000
/** Conversations that stay in memory. */
const KEPT = 12

let nextKey = 1

export class Entry implements Answer {
  readonly key = nextKey++
  readonly role: 'user' | 'assistant'
  at: string
  state = $state<'done' | 'streaming' | 'failed' | 'stopped'>('done')
  parts = $state<Part[]>([])
  sources = $state.raw<Source[]>([])
  error = $state.raw<ApiError>()
  /** The run behind an answer, if the server keeps runs. */
  run = $state<string>()
  /** The model that answered. */
  model = $state<string>()
  /** Whether steps and sources are loaded, not only the text. */
  complete = $state(false)
  /** Stopped on this page, and not before it was loaded. */
  stoppedHere = $state(false)
  /** The connection broke and is being opened again. */
  lost = $state(false)
  /** The knowledge base that was searched. */
  kb: string | undefined
  question = ''
  /** Characters when it was stored. Not reactive: the layout of 5,000 messages reads it. */
  readonly length: number

  constructor(role: 'user' | 'assistant', content = '', at = new Date().toISOString()) {
    this.role = role
    this.at = at
    this.length = content.length
    if (content) this.parts = [{ kind: 'text', text: content }]
  }
  get text(): string {
    return words(this)
  }
}

export class Conversation {
  readonly id: string
  entries = $state.raw<Entry[]>([])
  loading = $state(false)
  error = $state.raw<ApiError>()
  /** Messages on the server, of which the newest are in `entries`. */
  total = $state(0)
  /** The position of the first entry in the whole conversation. */
  first = $state(0)
  loadingEarlier = $state(false)
  /** The server cannot return earlier messages. */
  limited = $state(false)
  kb = $state('')
  workflow = $state('')
  model = $state('')
  draft = $state('')
  /** The inputs of the skill that the draft calls, if it has several. */
  inputs = $state<Record<string, string>>({})
  editing = $state.raw<Entry>()
  started = $state(false)
  /** Another account owns it, which an administrator can only read: its email address, if it is known. */
  foreign = $state<{ email?: string }>()
  private abort: AbortController | undefined
  private stopping = false

  constructor(id: string) {
    this.id = id
  }

  get busy(): boolean {
    return this.entries.at(-1)?.state === 'streaming'
  }
  get title(): string {
    const named = sessions.list?.find((item) => item.session_id === this.id)?.title
    return named || (this.entries.find((entry) => entry.role === 'user')?.text ?? '')
  }

  /** Loads the messages, unless the newest ones are already loaded. */
  async load(): Promise<void> {
    if (this.busy) return
    this.loading = this.entries.length === 0
    try {
      const detail = await api.get<SessionDetail>(path`/api/v1/chat/sessions/${this.id}`)
      if (this.busy) return
      if (!this.started) {
        this.kb = detail.kb_id ?? ''
        this.workflow = detail.workflow_id ?? ''
      }
      this.started = true
      this.error = undefined
      this.foreign = isOwn(detail) ? undefined : { email: detail.user_email ?? undefined }
      if (detail.message_count !== this.total || !this.entries.length) this.replace(detail)
      void this.attach()
    } catch (error) {
      this.error = asApiError(error)
    } finally {
      this.loading = false
    }
  }

  private replace(detail: SessionDetail): void {
    this.entries = toEntries(detail.messages, this.kb)
    this.total = detail.message_count
    this.first = detail.message_count - detail.messages.length
  }

  /** Loads messages before the first one that is here. */
  async loadEarlier(): Promise<void> {
    if (this.first === 0 || this.loadingEarlier || this.limited) return
    this.loadingEarlier = true
    try {
      const query = { before: this.first, limit: 1000 }
      const { messages } = await api.get<{ messages: Message[] }>(path`/api/v1/chat/sessions/${this.id}/messages`, { query })
      this.entries = [...toEntries(messages, this.kb), ...this.entries]
      this.first = Math.max(0, this.first - messages.length)
      if (!messages.length) this.limited = true
    } catch (error) {
      if (!unsupported(error)) throw error
      this.limited = true
    } finally {
      this.loadingEarlier = false
    }
  }

  async loadAll(): Promise<void> {
    while (this.first > 0 && !this.limited) await this.loadEarlier()
  }

  /** Finds the runs of the answers, follows one that still runs, and completes the newest answer. */
  private async attach(): Promise<void> {
    let runs: RunItem[]
    try {
      runs = (await api.get<{ runs: RunItem[] }>('/api/v1/runs', { query: { kind: 'chat', skill: this.id, limit: 200 } })).runs
    } catch {
      // Without the history of runs, answers are shown as they are stored.
      return
    }
    if (this.busy) return
    match(this.entries, runs)
    const running = runs.find((run) => run.state === 'running')
    if (running) return this.resume(running.id)
    const last = this.entries.at(-1)
    const cited = this.entries.filter((entry) => entry === last || CITES.test(entry.text))
    for (const entry of cited.slice(-MAX_COMPLETED).reverse()) {
      if (entry.role === 'assistant' && entry.run && !entry.complete) await this.complete(entry).catch(() => {})
    }
  }

  private async resume(run: string): Promise<void> {
    const answer = this.begin(this.entries.at(-1)?.text ?? '')
    answer.run = run
    await this.receive(answer, follow(path`/api/v1/runs/${run}/events`, { signal: this.abort?.signal }, (live) => (answer.lost = !live)))
  }

  /** Loads the steps, tool calls and sources of an earlier answer. */
  async complete(entry: Entry): Promise<void> {
    if (!entry.run) return
    const whole = new Entry('assistant')
    const stream = await openStream('GET', path`/api/v1/runs/${entry.run}/events`)
    for await (const event of stream.events) if (apply(whole, event)) break
    entry.complete = true
    entry.sources = whole.sources
    // The stored events of a long run may lack the first ones; the stored text is always complete.
    if (whole.text.length >= entry.text.length) entry.parts = whole.parts
  }

  async send(message: string): Promise<void> {
    const edited = this.editing
    this.editing = undefined
    if (edited) await this.cutAt(edited)
    const said = new Entry('user', message)
    this.entries = [...this.entries, said]
    await this.answer(message)
  }

  /** Answers the last message of the user again. */
  async regenerate(): Promise<void> {
    const said = this.entries.findLast((entry) => entry.role === 'user')
    if (!said || this.busy) return
    const message = said.text
    await this.cutAt(said)
    this.entries = [...this.entries, new Entry('user', message)]
    await this.answer(message)
  }

  /** Removes a message of the user and all later ones, also on the server if it supports that. */
  private async cutAt(said: Entry): Promise<void> {
    const fromEnd = this.entries.slice(this.entries.indexOf(said)).filter((entry) => entry.role === 'user').length
    try {
      const detail = await api.get<SessionDetail>(path`/api/v1/chat/sessions/${this.id}`)
      const first = detail.message_count - detail.messages.length
      const asked = detail.messages.flatMap((message, index) => (message.role === 'user' ? [first + index] : []))
      const from = asked.at(-fromEnd)
      if (from !== undefined) await api.delete(path`/api/v1/chat/sessions/${this.id}/messages`, { query: { from } })
    } catch (error) {
      // The server cannot remove messages, so the question is sent again.
      if (unsupported(error)) return
      throw error
    }
    this.entries = this.entries.slice(0, this.entries.indexOf(said))
  }

  private begin(question: string): Entry {
    const answer = new Entry('assistant')
    answer.state = 'streaming'
    answer.complete = true
    answer.kb = this.kb
    answer.question = question
    this.entries = [...this.entries, answer]
    this.abort = new AbortController()
    this.stopping = false
    return answer
  }

  private async answer(message: string): Promise<void> {
    this.started = true
    const answer = this.begin(message)
    const body = {
      session_id: this.id, message, kb_id: this.kb || undefined, workflow_id: this.workflow || undefined, model: this.model || undefined,
    }
    const signal = this.abort?.signal
    try {
      const stream = await openStream('POST', '/api/v1/chat/completions', body, { signal })
      answer.run = stream.run
      void sessions.load()
      await this.receive(answer, this.resumable(stream.events, answer))
    } catch (error) {
      this.finish(answer, error)
    }
  }

  /** Goes on with the events of the run when the connection breaks. */
  private async *resumable(events: AsyncGenerator<StreamEvent>, answer: Entry): AsyncGenerator<StreamEvent> {
    let last: string | undefined
    try {
      for await (const event of events) {
        last = event.id ?? last
        yield event
        if (event.event === 'done') return
      }
    } catch (error) {
      if (isAbort(error) || !answer.run) throw error
    }
    if (!answer.run) throw new ApiError(0, text.failed)
    answer.lost = true
    const headers = last === undefined ? undefined : { 'last-event-id': last }
    yield* follow(path`/api/v1/runs/${answer.run}/events`, { signal: this.abort?.signal, headers }, (live) => (answer.lost = !live))
  }

  private async receive(answer: Entry, events: AsyncGenerator<StreamEvent>): Promise<void> {
    let waiting = ''
    let timer: ReturnType<typeof setTimeout> | undefined
    const flush = (): void => {
      clearTimeout(timer)
      timer = undefined
      addText(answer, waiting)
      waiting = ''
    }
    try {
      for await (const event of events) {
        if (event.event === 'token') {
          waiting += String((event.data as { content?: unknown }).content ?? '')
          timer ??= setTimeout(flush, FLUSH)
          continue
        }
        flush()
        const end = apply(answer, event)
        if (end) return this.finish(answer, end.ok ? undefined : failure(answer, end.message))
      }
      flush()
      this.finish(answer, this.stopping ? undefined : new ApiError(0, text.failed))
    } catch (error) {
      flush()
      this.finish(answer, error)
    }
  }

  private finish(answer: Entry, error: unknown): void {
    if (answer.state !== 'streaming') return
    answer.lost = false
    if (this.stopping) {
      answer.state = 'stopped'
      answer.stoppedHere = true
    }
    else if (error !== undefined) {
      answer.state = 'failed'
      answer.error = asApiError(error)
    } else answer.state = 'done'
    for (const part of answer.parts) {
      if (part.kind === 'tool' && part.call.state === 'running') part.call.state = 'stopped'
      if (part.kind === 'steps') for (const step of part.steps) if (step.state === 'running') step.state = 'stopped'
    }
    // The reason of a failure comes with the stored run.
    void this.describe(answer).then(() => {
      announcer.say(answer.error?.message ?? (answer.state === 'stopped' ? text.stopped : text.answered(answer.text.slice(0, 400))))
    })
    void sessions.load().then(() => {
      this.total = sessions.list?.find((item) => item.session_id === this.id)?.message_count ?? this.total
    })
  }

  /** The stored run names the model, and says why the answer failed. */
  private async describe(answer: Entry): Promise<void> {
    if (!answer.run) return
    const run = await api.get<RunItem>(path`/api/v1/runs/${answer.run}`).catch(() => undefined)
    if (!run) return
    answer.model = run.model ?? undefined
    if (answer.state !== 'failed' || !run.error) return
    const { error } = run
    answer.error = failure(answer, error)
    // The warning says the same as the error.
    answer.parts = answer.parts.filter((part) => part.kind !== 'warning' || !error.startsWith(part.message.split(';')[0] ?? ''))
  }

  /** Stops the answer; the words so far are kept. */
  async stop(): Promise<void> {
    const answer = this.entries.at(-1)
    if (!answer || answer.state !== 'streaming') return
    this.stopping = true
    if (answer.run) {
      try {
        await api.post(path`/api/v1/runs/${answer.run}/stop`)
        return
      } catch {
        // If the request fails, closing the connection stops the answer, too.
      }
    }
    this.abort?.abort()
    this.finish(answer, undefined)
  }

  async approve(answer: Entry, approval: string, choice: string): Promise<void> {
    await api.post(path`/api/v1/runs/${answer.run ?? ''}/approvals/${approval}`, { answer: choice })
  }
}

function toEntries(messages: Message[], kb: string): Entry[] {
  let question = ''
  return messages.map((message) => {
    const entry = new Entry(message.role === 'user' ? 'user' : 'assistant', message.content, message.timestamp)
    if (entry.role === 'user') question = message.content
    entry.question = question
    entry.kb = kb || undefined
    entry.run = message.run_id
    if (message.stopped) entry.state = 'stopped'
    return entry
  })
}

/** The error of an answer. Another model does not help if the skill itself cannot be used. */
function failure(answer: Entry, message: string): ApiError {
  const skill = answer.parts.some((part) => part.kind === 'steps' && part.steps.some((step) => step.id.startsWith('skill:') && step.state === 'failed'))
  const hint = (): string => {
    if (skill) return text.skillHint
    if (/^Missing required input/.test(message)) return text.inputHint
    return isModelError(message) ? explain(message, { kind: 'chat', admin: session.admin }).hint : text.failedHint
  }
  return new ApiError(-1, message || text.failed, { hint: hint() })
}

/** Connects answers with their runs: a run starts when its question is stored. */
function match(entries: Entry[], runs: RunItem[]): void {
  for (const [index, entry] of entries.entries()) {
    // A question whose answer failed without a word has no answer behind it.
    const isUnanswered = entry.role === 'user' && entries[index + 1]?.role !== 'assistant'
    const said = isUnanswered ? entry : entries[index - 1]
    if ((entry.role !== 'assistant' && !isUnanswered) || entry.model || said?.role !== 'user') continue
    const at = Date.parse(said.at)
    const distance = (run: RunItem): number => Math.abs(Date.parse(run.started_at) - at)
    const asked = (run: RunItem): boolean => distance(run) < MAX_START && said.text.startsWith(run.name.replace(/…$/, '').slice(0, 60))
    const found = runs.filter((run) => (entry.run ? run.id === entry.run : asked(run))).toSorted((a, b) => distance(a) - distance(b))[0]
    if (isUnanswered) {
      if (found?.state === 'failed' && found.error) entry.error = new ApiError(-1, found.error)
      continue
    }
    entry.run ??= found?.id
    entry.model = found?.model ?? undefined
  }
}

const known = new Map<string, Conversation>()

/** The conversation with an id; the same object each time while it is in memory. */
export function conversation(id: string): Conversation {
  let found = known.get(id)
  if (!found) found = new Conversation(id)
  known.delete(id)
  known.set(id, found)
  for (const [other, entry] of known) if (known.size > KEPT && other !== id && !entry.busy) known.delete(other)
  return found
}

export function forget(id: string): void {
  void known.get(id)?.stop()
  known.delete(id)
}

let fresh = new Conversation(newId())

/** A conversation without messages. What was typed there is kept until it is sent. */
export function freshConversation(): Conversation {
  if (fresh.started) {
    const { kb, workflow, model } = fresh
    fresh = new Conversation(newId())
    Object.assign(fresh, { kb, workflow, model })
  }
  known.set(fresh.id, fresh)
  return fresh
}
