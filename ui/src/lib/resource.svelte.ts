/** Data of a page with its state: loading, error, value. */
import { untrack } from 'svelte'
import { asApiError, isAbort, type ApiError } from './api/client'

export class Resource<T> {
  value = $state.raw<T>()
  error = $state.raw<ApiError>()
  loading = $state(true)
  private abort: AbortController | undefined
  private readonly fetcher: (signal: AbortSignal) => Promise<T>

  constructor(fetcher: (signal: AbortSignal) => Promise<T>) {
    this.fetcher = fetcher
  }

  /** Loads again. The old value stays visible until the new one has arrived. */
  reload = async (): Promise<void> => {
    this.abort?.abort()
    const abort = new AbortController()
    this.abort = abort
    this.loading = true
    try {
      const value = await this.fetcher(abort.signal)
      if (abort.signal.aborted) return
      this.value = value
      this.error = undefined
    } catch (error) {
      if (isAbort(error) || abort.signal.aborted) return
      this.error = asApiError(error)
    } finally {
      if (this.abort === abort) this.loading = false
    }
  }

  /** Changes the value in place, for example after a switch was toggled. */
  set(value: T): void {
    this.value = value
  }

  cancel(): void {
    this.abort?.abort()
  }
}

/**
 * Loads data when the page opens, and again when what `fetcher` reads before its first `await`
 * changes. Call it while a component is initialised.
 */
export function resource<T>(fetcher: (signal: AbortSignal) => Promise<T>): Resource<T> {
  let tracked: Promise<T> | undefined
  const made = new Resource<T>((signal) => {
    const first = tracked
    tracked = undefined
    return first ?? fetcher(signal)
  })
  $effect(() => {
    const abort = new AbortController()
    tracked = fetcher(abort.signal)
    tracked.catch(() => {})
    untrack(() => void made.reload())
    return () => {
      abort.abort()
      made.cancel()
    }
  })
  return made
}
