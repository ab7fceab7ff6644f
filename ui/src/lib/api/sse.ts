/** Server-sent events, from GET and from POST requests. */
import { ApiError, isAbort, send, type RequestOptions } from './client'
import { common } from '../strings/common'

export interface StreamEvent {
  event: string
  data: unknown
  id: string | undefined
}

export interface Stream {
  /** The id of the run, if the server sent one: the run can be followed again after a reload. */
  run: string | undefined
  events: AsyncGenerator<StreamEvent>
}

/** Opens a stream by a request with a body, for example a run. */
export async function openStream(method: 'GET' | 'POST', to: string, body?: unknown, options: RequestOptions = {}): Promise<Stream> {
  const headers = { accept: 'text/event-stream', ...options.headers }
  const answer = await send(method, to, body, { ...options, headers })
  return { run: answer.headers.get('x-savoir-run') ?? undefined, events: readEvents(answer) }
}

/**
 * Follows a stream that can be resumed: reconnects with the id of the last event until `done`
 * arrives, the caller aborts, or the server refuses.
 */
export async function* follow(to: string, options: RequestOptions = {}, onState: (live: boolean) => void = () => {}): AsyncGenerator<StreamEvent> {
  let last: string | undefined
  for (let failures = 0; ; failures += 1) {
    try {
      const headers = last === undefined ? options.headers : { ...options.headers, 'last-event-id': last }
      const stream = await openStream('GET', to, undefined, { ...options, headers })
      onState(true)
      for await (const event of stream.events) {
        failures = 0
        last = event.id ?? last
        yield event
        if (event.event === 'done') return
      }
    } catch (error) {
      if (isAbort(error)) return
      if (error instanceof ApiError && error.status >= 400 && error.status < 500) throw error
      if (failures >= 8) throw error
    }
    onState(false)
    if (!(await wait(Math.min(500 * 2 ** failures, 8000), options.signal))) return
  }
}

function wait(milliseconds: number, signal?: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve(false)
    const timer = setTimeout(() => resolve(true), milliseconds)
    signal?.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve(false)
    })
  })
}

async function* readEvents(answer: Response): AsyncGenerator<StreamEvent> {
  const reader = answer.body?.getReader()
  if (!reader) return
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      rest += decoder.decode(value, { stream: true })
      const blocks = rest.split(/\r?\n\r?\n/)
      rest = blocks.pop() ?? ''
      for (const block of blocks) {
        const event = parseBlock(block)
        if (event) yield event
      }
    }
  } catch (error) {
    if (isAbort(error)) throw error
    throw new ApiError(0, common.connectionLost)
  } finally {
    reader.cancel().catch(() => {})
  }
}

export function parseBlock(block: string): StreamEvent | undefined {
  let event = 'message'
  let id: string | undefined
  const data: string[] = []
  for (const line of block.split(/\r?\n/)) {
    if (line.startsWith(':')) continue
    const colon = line.indexOf(':')
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'event') event = value
    else if (field === 'id') id = value
    else if (field === 'data') data.push(value)
  }
  if (!data.length) return undefined
  return { event, id, data: parseData(data.join('\n')) }
}

function parseData(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
