/** Checks a text while it is edited: waits for a pause in typing, and ignores outdated responses. */
import { api, ApiError, isAbort } from '$lib/api/client'
import type { Checked, Finding } from './types'

const PAUSE = 350

export class Checker {
  findings = $state.raw<Finding[]>([])
  dialect = $state<string>()
  name = $state<string>()
  busy = $state(false)
  /** The server has no check. */
  missing = $state(false)
  /** The text that the findings are about. */
  text = ''
  private timer: ReturnType<typeof setTimeout> | undefined
  private abort: AbortController | undefined

  check(text: string): void {
    if (this.missing) return
    clearTimeout(this.timer)
    this.abort?.abort()
    this.busy = true
    this.timer = setTimeout(() => void this.send(text), this.text === '' ? 0 : PAUSE)
  }

  stop(): void {
    clearTimeout(this.timer)
    this.abort?.abort()
  }

  private async send(text: string): Promise<void> {
    const abort = new AbortController()
    this.abort = abort
    try {
      const found = await api.post<Checked>('/api/v1/check', { text }, { signal: abort.signal })
      this.text = text
      this.findings = found.diagnostics
      this.dialect = found.dialect
      this.name = found.name
      this.busy = false
    } catch (error) {
      if (isAbort(error)) return
      this.busy = false
      // Ignore a single failed check; the next one may succeed.
      if (error instanceof ApiError && (error.status === 404 || error.status === 405)) this.missing = true
    }
  }
}
