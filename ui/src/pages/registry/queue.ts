/** Versions and archives that wait for a decision of an administrator, read from the audit log. */
import { ApiError, api } from '$lib/api/client'
import { BASE, skillApi } from './api'
import type { Finding, LogEntry, LogPage, VersionDetail } from './types'

export interface Waiting {
  kind: 'appeal' | 'review' | 'audit'
  key: string
  package: string
  version: string
  at: string
  sha256?: string
  account?: string | number | null
  message?: string
  findings: Finding[]
  /** The version is published; else the registry refused the archive. */
  published: boolean
}

export interface ClearedArchive {
  package: string
  sha256: string
  at: string
}

export interface Queue {
  appeals: Waiting[]
  flagged: Waiting[]
  /** Versions whose publishers ask for an audit. */
  audits: Waiting[]
  cleared: ClearedArchive[]
}

const ACTS = ['appealed', 'audit_requested', 'cleared', 'uncleared', 'judged', 'published', 'scanned', 'withdrawn']
/** Entries that are read at most. */
const MAX_PAGES = 10

export async function loadQueue(signal: AbortSignal): Promise<Queue> {
  return fromLog(await entries(ACTS, signal), signal)
}

async function entries(acts: string[], signal: AbortSignal): Promise<LogEntry[]> {
  const all: LogEntry[] = []
  let cursor: string | null | undefined
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const search = new URLSearchParams([...acts.map((act): [string, string] => ['act', act]), ['limit', '100']])
    if (cursor) search.set('cursor', cursor)
    const found = await api.get<LogPage>(`${BASE}/audit-log?${search}`, { signal })
    all.push(...found.items)
    cursor = found.next_cursor
    if (!cursor) break
  }
  return all
}

async function fromLog(log: LogEntry[], signal: AbortSignal): Promise<Queue> {
  const seen = new Set<string>()
  /** Versions whose newest request for an audit is known or decided. */
  const answered = new Set<string>()
  const open: Omit<Waiting, 'key' | 'published'>[] = []
  // The log is sorted newest first: the first entry about a version is its present state.
  for (const entry of log) {
    const { package: name, version } = entry
    if (!name) continue
    const sha256 = text(entry.details.sha256)
    const keys = [version ? `${name}@${version}` : '', sha256 ? `${name}#${sha256}` : ''].filter(Boolean)
    if (entry.act === 'audit_requested') {
      const key = `${name}@${version}`
      if (version && !answered.has(key)) open.push({ kind: 'audit', package: name, version, at: entry.at, sha256, account: entry.account, message: text(entry.details.message), findings: [] })
      answered.add(key)
      continue
    }
    if (entry.act === 'judged' || entry.act === 'withdrawn') keys.forEach((key) => answered.add(key))
    const decided = keys.some((key) => seen.has(key))
    const verdict = text(entry.details.verdict)
    const waits = entry.act === 'appealed' ? 'appeal' : isScan(entry) && verdict === 'review' ? 'review' : undefined
    if (entry.act !== 'uncleared') keys.forEach((key) => seen.add(key))
    if (decided || !waits || !version) continue
    open.push({ kind: waits, package: name, version, at: entry.at, sha256, account: entry.account, message: text(entry.details.message), findings: findings(entry) })
  }
  const all = await Promise.all(open.map((item) => complete(item, signal)))
  return {
    appeals: all.filter((item) => item.kind === 'appeal'),
    flagged: all.filter((item) => item.kind === 'review' && item.published),
    audits: all.filter((item) => item.kind === 'audit' && item.published),
    cleared: clearedIn(log),
  }
}

function isScan(entry: LogEntry): boolean {
  return entry.act === 'published' || entry.act === 'scanned'
}

/** Adds the present findings of a version, if it is published. */
async function complete(item: Omit<Waiting, 'key' | 'published'>, signal: AbortSignal): Promise<Waiting> {
  const key = `${item.kind} ${item.package}@${item.version} ${item.sha256 ?? ''}`
  try {
    const version = await api.get<VersionDetail>(skillApi(item.package, item.version), { signal })
    const same = !item.sha256 || item.sha256 === version.artifact.sha256
    return { ...item, key, published: same, findings: same ? (version.audit?.findings ?? item.findings) : item.findings }
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return { ...item, key, published: false }
    throw error
  }
}

function clearedIn(log: LogEntry[]): ClearedArchive[] {
  const done = new Set<string>()
  const found: ClearedArchive[] = []
  for (const entry of log) {
    const sha256 = text(entry.details.sha256)
    if (!sha256 || !entry.package || !['cleared', 'uncleared'].includes(entry.act)) continue
    const key = `${entry.package} ${sha256}`
    if (!done.has(key) && entry.act === 'cleared') found.push({ package: entry.package, sha256, at: entry.at })
    done.add(key)
  }
  return found
}

function findings(entry: LogEntry): Finding[] {
  return Array.isArray(entry.details.findings) ? (entry.details.findings as Finding[]) : []
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value ? value : undefined
}
