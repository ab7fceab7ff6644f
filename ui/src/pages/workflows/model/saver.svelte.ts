/** Saves a workflow automatically, and detects that another user has changed it. */
import { api, ApiError, asApiError, path } from '$lib/api/client'
import type { Workflow } from '../types'
import { toJson, type Graph } from './graph'

export type SaveState = 'saved' | 'unsaved' | 'saving' | 'conflict' | 'failed' | 'readonly'

export interface SavedVersion {
  at: string
  graph: Graph
}

const PAUSE = 900
/** The server counts requests per minute. */
const LEAST_INTERVAL = 2500
const RETRY = 10_000
const MAX_VERSIONS = 50

export class Saver {
  state = $state<SaveState>('saved')
  error = $state.raw<ApiError>()
  /** The stored workflow, if another user has changed it. */
  theirs = $state.raw<Workflow>()
  workflow = $state.raw<Workflow>()
  /** The saves since the page was opened, the newest first. */
  versions = $state.raw<SavedVersion[]>([])
  private etag: string | undefined
  private timer: ReturnType<typeof setTimeout> | undefined
  private lastSave = 0
  private saving: Promise<void> | undefined
  private changed = false

  constructor(private readonly id: string, private readonly graph: () => Graph) {}

  async load(signal?: AbortSignal): Promise<Workflow> {
    const { value, etag } = await api.getTagged<Workflow>(path`/api/v1/workflows/${this.id}`, { signal })
    this.accept(value, etag)
    return value
  }

  private accept(workflow: Workflow, etag?: string): void {
    this.workflow = workflow
    this.etag = etag
    this.theirs = undefined
    this.error = undefined
    this.changed = false
    this.state = 'saved'
  }

  /** Adds the current state to the list of versions. */
  keep(at: string, graph: Graph): void {
    this.versions = [{ at, graph }, ...this.versions].slice(0, MAX_VERSIONS)
  }

  /** Something changed: saves after a short pause. */
  touch(): void {
    this.changed = true
    if (this.state === 'conflict' || this.state === 'readonly') return
    if (this.state !== 'saving') this.state = 'unsaved'
    this.schedule(Math.max(PAUSE, this.lastSave + LEAST_INTERVAL - Date.now()))
  }

  private schedule(delay: number): void {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => void this.flush(), delay)
  }

  /** Saves now. Returns whether everything is stored. */
  async flush(): Promise<boolean> {
    clearTimeout(this.timer)
    while (this.changed && this.state !== 'conflict' && this.state !== 'readonly') {
      this.saving ??= this.save().finally(() => (this.saving = undefined))
      await this.saving
      if (this.state === 'failed') return false
    }
    return this.state === 'saved'
  }

  private async save(): Promise<void> {
    this.state = 'saving'
    this.changed = false
    const graph = this.graph()
    try {
      if (await this.changedElsewhere()) return
      const workflow = await this.put({ graph_data: toJson(graph) })
      this.lastSave = Date.now()
      this.workflow = workflow
      this.keep(workflow.updated_at, graph)
      this.error = undefined
      this.state = this.changed ? 'unsaved' : 'saved'
    } catch (error) {
      this.failed(asApiError(error))
    }
  }

  private async put(change: Record<string, unknown>): Promise<Workflow> {
    const headers: Record<string, string> = this.etag ? { 'if-match': this.etag } : {}
    const to = path`/api/v1/workflows/${this.id}`
    const workflow = await api.put<Workflow>(to, change, { headers })
    // `api.put` does not return the ETag, so request it for the next save.
    if (this.etag) this.etag = (await api.getTagged<Workflow>(to)).etag
    return workflow
  }

  /** Whether another user has changed the workflow. Without ETags, compares the time of the last change. */
  private async changedElsewhere(): Promise<boolean> {
    if (this.etag) return false
    const theirs = await api.get<Workflow>(path`/api/v1/workflows/${this.id}`)
    if (theirs.updated_at === this.workflow?.updated_at) return false
    this.conflict(theirs)
    return true
  }

  private conflict(theirs: Workflow): void {
    this.theirs = theirs
    this.changed = true
    this.state = 'conflict'
  }

  private async failed(error: ApiError): Promise<void> {
    this.changed = true
    this.error = error
    if (error.status === 412 || (error.status === 409 && this.etag)) {
      try {
        this.conflict(await api.get<Workflow>(path`/api/v1/workflows/${this.id}`))
        return
      } catch (other) {
        this.error = asApiError(other)
      }
    }
    this.state = error.status === 403 ? 'readonly' : 'failed'
    const passing = error.status === 0 || error.status === 429 || error.status >= 500
    if (this.state === 'failed' && passing) this.schedule(RETRY)
  }

  /** Overwrites the changes of the other user. */
  async keepMine(): Promise<void> {
    if (!this.theirs) return
    const { etag, value } = await api.getTagged<Workflow>(path`/api/v1/workflows/${this.id}`)
    this.accept(value, etag)
    this.changed = true
    await this.flush()
  }

  async takeTheirs(): Promise<Workflow> {
    clearTimeout(this.timer)
    return this.load()
  }

  async rename(name: string, description: string): Promise<void> {
    await this.flush()
    const workflow = await this.put({ name, description })
    this.workflow = workflow
  }

  get pending(): boolean {
    return this.changed || this.state === 'saving'
  }

  stop(): void {
    clearTimeout(this.timer)
  }
}
