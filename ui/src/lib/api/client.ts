/** Requests to the server: same origin, session cookie, errors with a hint. */
import { common } from '../strings/common'

export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly hint: string
  /** The field of a form that the error is about. */
  readonly field: string | undefined
  /** Seconds after which a limit of the server is over. */
  readonly wait: number | undefined

  constructor(status: number, message: string, options: { code?: string; hint?: string; field?: string; wait?: number } = {}) {
    super(message)
    this.name = 'ApiError'
    this.status = status
    this.code = options.code ?? String(status)
    this.wait = options.wait
    this.hint = options.hint || (status === 429 && options.wait ? common.hints.rateIn(options.wait) : hintFor(status))
    this.field = options.field
  }
}

/** A hint for error responses without one, for example from proxies. */
function hintFor(status: number): string {
  if (status === 0) return common.hints.offline
  if (status === 401) return common.hints.login
  if (status === 403) return common.hints.forbidden
  if (status === 404) return common.hints.missing
  if (status === 409 || status === 412) return common.hints.conflict
  if (status === 413) return common.hints.large
  if (status === 422 || status === 400) return common.hints.invalid
  if (status === 429) return common.hints.rate
  return common.hints.server
}

export type Query = Record<string, string | number | boolean | undefined | null>

export interface RequestOptions {
  query?: Query
  signal?: AbortSignal
  headers?: Record<string, string>
}

const KEY = 'savoir-key'
/** The key from the fragment of the link that `savoir ui` prints. Storage is separate for each port of a host. */
const key = takeKey()

function takeKey(): string | null {
  // Unit tests import this file without a browser.
  if (typeof window === 'undefined') return null
  const given = /^#key=([0-9a-f]+)$/.exec(window.location.hash)?.[1]
  if (given) window.history.replaceState(window.history.state, '', window.location.pathname + window.location.search)
  try {
    if (given) window.localStorage.setItem(KEY, given)
    return given ?? window.localStorage.getItem(KEY)
  } catch {
    return given ?? null
  }
}

/** Called when the session ended; set by the session store. */
let onExpired: () => void = () => {}
export function whenExpired(action: () => void): void {
  onExpired = action
}

export function url(path: string, query?: Query): string {
  const search = new URLSearchParams()
  for (const [key, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== null && value !== '') search.set(key, String(value))
  }
  return search.size ? `${path}?${search}` : path
}

/** Builds a path from parts that may hold any character: path`/api/v1/skills/${name}`. */
export function path(parts: TemplateStringsArray, ...values: (string | number)[]): string {
  return parts.reduce((done, part, index) => done + encodeURIComponent(String(values[index - 1] ?? '')) + part)
}

/** Sends a request and returns the answer, or throws an `ApiError`. */
export async function send(
  method: string,
  to: string,
  body?: unknown,
  options: RequestOptions = {},
): Promise<Response> {
  const headers: Record<string, string> = { accept: 'application/json', 'x-savoir-app': '1', ...(key && { 'x-savoir-key': key }), ...options.headers }
  let payload: BodyInit | undefined
  if (body instanceof FormData || body instanceof Blob) payload = body
  else if (body !== undefined) {
    headers['content-type'] = 'application/json'
    payload = JSON.stringify(body)
  }
  let answer: Response
  try {
    answer = await fetch(url(to, options.query), {
      method, headers, body: payload, signal: options.signal, credentials: 'same-origin',
    })
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new ApiError(0, common.offline)
  }
  if (!answer.ok) {
    const error = await toError(answer)
    if (error.status !== 401 || to.startsWith('/api/v1/auth/')) throw error
    onExpired()
    throw new ApiError(401, common.sessionEnded)
  }
  return answer
}

async function json<T>(answer: Promise<Response>): Promise<T> {
  const response = await answer
  if (response.status === 204) return undefined as T
  const text = await response.text()
  return (text ? JSON.parse(text) : undefined) as T
}

export const api = {
  get: <T>(to: string, options?: RequestOptions) => json<T>(send('GET', to, undefined, options)),
  post: <T>(to: string, body?: unknown, options?: RequestOptions) => json<T>(send('POST', to, body, options)),
  put: <T>(to: string, body?: unknown, options?: RequestOptions) => json<T>(send('PUT', to, body, options)),
  patch: <T>(to: string, body?: unknown, options?: RequestOptions) => json<T>(send('PATCH', to, body, options)),
  delete: <T = void>(to: string, options?: RequestOptions) => json<T>(send('DELETE', to, undefined, options)),
  /** The answer with its ETag. */
  async getTagged<T>(to: string, options?: RequestOptions): Promise<{ value: T; etag: string | undefined }> {
    const response = await send('GET', to, undefined, options)
    return { value: (await response.json()) as T, etag: response.headers.get('etag') ?? undefined }
  },
  text: async (to: string, options?: RequestOptions) =>
    (await send('GET', to, undefined, { ...options, headers: { accept: '*/*', ...options?.headers } })).text(),
}

/** Sends a form and reports its progress, which fetch cannot do. */
export function upload<T>(to: string, form: FormData, onProgress: (part: number) => void, signal?: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open('POST', to)
    request.setRequestHeader('accept', 'application/json')
    request.setRequestHeader('x-savoir-app', '1')
    request.upload.onprogress = (event) => onProgress(event.total ? event.loaded / event.total : 0)
    request.onerror = () => reject(new ApiError(0, common.offline))
    request.onabort = () => reject(new DOMException('aborted', 'AbortError'))
    request.onload = () => {
      const body = parse(request.responseText)
      if (request.status < 300) resolve(body as T)
      else reject(fromBody(request.status, body, request.statusText))
    }
    signal?.addEventListener('abort', () => request.abort())
    request.send(form)
  })
}

export async function toError(answer: Response): Promise<ApiError> {
  const error = fromBody(answer.status, parse(await answer.text().catch(() => '')), answer.statusText)
  const wait = Math.ceil(Number(answer.headers.get('retry-after')))
  if (answer.status !== 429 || !(wait > 0)) return error
  return new ApiError(429, error.message, { code: error.code, field: error.field, wait })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Reads all error formats of the API: a text, a field, a list of fields, a limit, a registry problem. */
export function fromBody(status: number, body: unknown, fallback: string): ApiError {
  const given = record(body)
  const hint = text(given.hint)
  const code = text(given.code)
  const inner = record(given.detail ?? given.error)
  if (Array.isArray(given.detail)) return fromFields(status, given.detail, hint)
  if (text(inner.message)) {
    return new ApiError(status, text(inner.message), {
      code: text(inner.code) || code, hint: text(inner.hint) || hint, field: text(inner.field) || undefined,
    })
  }
  const message =
    text(given.detail) || text(given.error) || text(given.message) || text(given.title) || fallback || common.failed(status)
  return new ApiError(status, message, { code, hint })
}

function fromFields(status: number, detail: unknown[], hint: string): ApiError {
  const problems = detail.map(record)
  const first = problems[0]
  const names = problems.map((problem) => fieldName(problem.loc))
  const message = problems.map((problem, index) => [names[index], text(problem.msg)].filter(Boolean).join(': ')).join('; ')
  return new ApiError(status, message || common.failed(status), { hint, field: first && names[0] ? names[0] : undefined })
}

function fieldName(loc: unknown): string {
  return Array.isArray(loc) ? loc.filter((part) => part !== 'body').join('.') : ''
}

function record(value: unknown): Record<string, unknown> {
  return value && typeof value === 'object' && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Turns anything that was thrown into an `ApiError`. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  return new ApiError(-1, error instanceof Error ? error.message : String(error), { hint: common.hints.reload })
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError'
}
