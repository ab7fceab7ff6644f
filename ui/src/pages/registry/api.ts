/** Addresses and requests of the registry. */
import { ApiError, api, fromBody, path, send } from '$lib/api/client'
import type { Finding, IndexLine, WhoAmI } from './types'
import { common } from '$lib/strings/common'

export const BASE = '/registry/api/v1'

function encode(name: string): string {
  return name.split('/').map(encodeURIComponent).join('/')
}

/** The API of a skill, such as `acme/greeter`, or of one of its versions. */
export function skillApi(name: string, version?: string): string {
  return `${BASE}/skills/${encode(name)}${version ? `/${encodeURIComponent(version)}` : ''}`
}

/** The API of a team: of a namespace, or of a skill without one, which is written `_/name`. */
export function teamApi(scope: string): string {
  const name = skillOf(scope)
  return name === undefined ? path`/registry/api/v1/namespaces/${scope}` : skillApi(name)
}

/** The skill of a scope `_/name`. */
export function skillOf(scope: string): string | undefined {
  return scope.startsWith('_/') ? scope.slice(2) : undefined
}

export function skillPage(name: string, query: Record<string, string> = {}): string {
  const search = new URLSearchParams(query)
  return `/registry/skills/${encode(name)}${search.size ? `?${search}` : ''}`
}

export function publisherPage(namespace: string): string {
  return path`/registry/publishers/${namespace}`
}

/** The page of a scope: of its namespace, or of its skill. */
export function scopePage(scope: string): string {
  const name = skillOf(scope)
  return name === undefined ? publisherPage(scope) : skillPage(name, { tab: 'team' })
}

/** The namespace of a skill, if it is in one. */
export function namespaceOf(name: string): string | undefined {
  return name.includes('/') ? name.split('/')[0] : undefined
}

/** Who manages a skill: its namespace, or the team of the skill. */
export function scopeOf(name: string): string {
  return namespaceOf(name) ?? `_/${name}`
}

export function zipAddress(name: string, version: string): string {
  return `/registry/${encode(name)}/${encodeURIComponent(version)}/skill.zip`
}

export async function archive(name: string, version: string, signal?: AbortSignal): Promise<ArrayBuffer> {
  const answer = await send('GET', zipAddress(name, version), undefined, { signal, headers: { accept: '*/*' } })
  return answer.arrayBuffer()
}

/** The versions of skills and of everything that they depend on. */
export async function closure(names: string[], signal?: AbortSignal): Promise<IndexLine[]> {
  if (names.length === 0) return []
  const search = new URLSearchParams(names.map((name) => ['name', name]))
  const text = await api.text(`/registry/index/v1/closure?${search}`, { signal })
  return text.split('\n').filter(Boolean).map((line) => JSON.parse(line) as IndexLine)
}

export function whoami(signal?: AbortSignal): Promise<WhoAmI> {
  return api.get<WhoAmI>(`${BASE}/whoami`, { signal })
}

/** A refusal that lists what was found. */
export class RefusedError extends ApiError {
  readonly findings: Finding[]

  constructor(from: ApiError, findings: Finding[]) {
    super(from.status, from.message, { code: from.code, hint: from.hint, field: from.field })
    this.findings = findings
  }

  /** The digest of the refused archive, which an appeal names. */
  get sha256(): string | undefined {
    return /\b[0-9a-f]{64}\b/.exec(this.message)?.[0]
  }
}

/** Sends a form or JSON; an error holds the findings of the scan, if there are some. */
export function submit<T>(to: string, body: FormData | object, onProgress?: (part: number) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open('POST', to)
    request.setRequestHeader('accept', 'application/json')
    request.setRequestHeader('x-savoir-app', '1')
    request.upload.onprogress = (event) => onProgress?.(event.total ? event.loaded / event.total : 0)
    request.onerror = () => reject(new ApiError(0, common.offline))
    request.onload = () => {
      const answer = parse(request.responseText)
      if (request.status < 300) resolve(answer as T)
      else reject(new RefusedError(fromBody(request.status, answer, request.statusText), findingsOf(answer)))
    }
    if (body instanceof FormData) return request.send(body)
    request.setRequestHeader('content-type', 'application/json')
    request.send(JSON.stringify(body))
  })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

interface ErrorBody {
  findings?: RawFinding[]
  error?: { findings?: RawFinding[] }
  detail?: { findings?: RawFinding[] }
}
type RawFinding = Finding & { path?: string }

function findingsOf(answer: unknown): Finding[] {
  const body = (answer ?? {}) as ErrorBody
  const found = body.error?.findings ?? body.detail?.findings ?? body.findings ?? []
  return found.map((finding) => ({ ...finding, severity: finding.severity ?? 'high', file: finding.file ?? finding.path }))
}

/** Whether the server does not have an address yet. */
export function isMissing(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 404 || error.status === 405)
}

/** Orders versions such as 1.2.0 and 1.10.0-rc.1; a pre-release is lower than its release. */
export function compareVersions(a: string, b: string): number {
  const [mainA = '', preA = ''] = a.split('+')[0]?.split(/-(.*)/s) ?? []
  const [mainB = '', preB = ''] = b.split('+')[0]?.split(/-(.*)/s) ?? []
  const numeric = mainA.localeCompare(mainB, 'en', { numeric: true })
  if (numeric !== 0 || preA === preB) return numeric
  if (!preA || !preB) return preA ? -1 : 1
  return preA.localeCompare(preB, 'en', { numeric: true })
}
