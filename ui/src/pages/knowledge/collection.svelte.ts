/** The documents of a knowledge base and the uploads to it. Uploads go on while other pages are open. */
import { ApiError, api, asApiError, isAbort, path, upload } from '$lib/api/client'
import { knowledge as text } from '$lib/strings/knowledge'
import { announcer } from '$lib/toast.svelte'
import type { Document, DocumentList, Task } from './types'

export const ACCEPT = '.txt,.md,.html,.htm,.docx,.pdf'
const MAX_BYTES = 5 << 20
const PARALLEL = 2
const PAUSES = [400, 800, 1500, 2500, 4000]

export class Upload {
  readonly id: number
  readonly file: File
  phase = $state<'waiting' | 'sending' | 'reading' | 'done' | 'failed' | 'cancelled'>('waiting')
  /** The part that is done in this phase, 0 to 1. */
  part = $state<number>()
  error = $state.raw<ApiError>()
  document = $state.raw<Document>()
  abort = new AbortController()

  constructor(id: number, file: File) {
    this.id = id
    this.file = file
  }
  get active(): boolean {
    return this.phase === 'waiting' || this.phase === 'sending' || this.phase === 'reading'
  }
}

export class Collection {
  documents = $state.raw<Document[]>()
  error = $state.raw<ApiError>()
  uploads = $state.raw<Upload[]>([])
  readonly kb: string
  private next = 1
  private sending = 0
  private timer: ReturnType<typeof setTimeout> | undefined
  private quiet = 0

  constructor(kb: string) {
    this.kb = kb
  }

  load = async (): Promise<void> => {
    try {
      const list = await api.get<DocumentList>(path`/api/v1/knowledge/${this.kb}/documents`)
      this.documents = list.documents
      this.error = undefined
      this.match()
    } catch (error) {
      this.error = asApiError(error)
    }
    this.watch()
  }

  add(files: File[]): Upload[] {
    const added = files.map((file) => new Upload(this.next++, file))
    this.uploads = [...this.uploads, ...added]
    for (const entry of added) check(entry)
    this.pump()
    return added
  }

  cancel(entry: Upload): void {
    entry.abort.abort()
    if (entry.phase === 'waiting') entry.phase = 'cancelled'
  }

  retry(entry: Upload): void {
    this.uploads = this.uploads.filter((other) => other !== entry)
    this.add([entry.file])
  }

  clear(): void {
    this.uploads = this.uploads.filter((entry) => entry.active)
  }

  private pump(): void {
    for (const entry of this.uploads) {
      if (this.sending >= PARALLEL) return
      if (entry.phase === 'waiting') void this.send(entry)
    }
  }

  private async send(entry: Upload): Promise<void> {
    this.sending += 1
    entry.phase = 'sending'
    const form = new FormData()
    form.append('file', entry.file, entry.file.name)
    try {
      const to = path`/api/v1/knowledge/${this.kb}/upload`
      entry.document = await upload<Document>(to, form, (part) => (entry.part = part), entry.abort.signal)
      entry.phase = 'reading'
      entry.part = undefined
      this.quiet = 0
      await this.load()
    } catch (error) {
      entry.phase = isAbort(error) ? 'cancelled' : 'failed'
      if (entry.phase === 'failed') entry.error = asApiError(error)
    } finally {
      this.sending -= 1
      this.pump()
      this.report()
    }
  }

  /** Copies the state of documents to their uploads. */
  private match(): void {
    const known = new Map(this.documents?.map((document) => [document.id, document]))
    for (const entry of this.uploads) {
      if (entry.phase !== 'reading' || !entry.document) continue
      const now = known.get(entry.document.id)
      if (now?.status === 'completed') entry.phase = 'done'
      else if (now?.status === 'failed') fail(entry, now.error ?? '')
    }
    this.report()
  }

  private report(): void {
    const ended = this.uploads.filter((entry) => !entry.active).length
    if (ended && ended === this.uploads.length) announcer.say(text.files.allDone(ended))
  }

  /** Asks again while documents are being read, less often the longer it takes. */
  private watch(): void {
    clearTimeout(this.timer)
    const busy = this.documents?.some((document) => document.status === 'pending' || document.status === 'processing')
    if (!busy) {
      this.quiet = 0
      return
    }
    const pause = PAUSES[Math.min(this.quiet, PAUSES.length - 1)]
    this.quiet += 1
    this.timer = setTimeout(() => void this.progress().then(this.load), pause)
  }

  /** The progress of one upload: asking for each of a hundred would exceed the rate limit. */
  private async progress(): Promise<void> {
    const entry = this.uploads.find((upload) => upload.phase === 'reading')
    const task = entry?.document?.task_id
    if (!entry || !task) return
    try {
      entry.part = (await api.get<Task>(path`/api/v1/knowledge/tasks/${task}`)).progress / 100
    } catch {
      // The list of documents says how it ends.
    }
  }
}

function check(entry: Upload): void {
  const name = entry.file.name.toLowerCase()
  const known = ACCEPT.split(',').some((ending) => name.endsWith(ending))
  if (!known) fail(entry, text.files.type, text.files.typeHint)
  else if (entry.file.size > MAX_BYTES) fail(entry, text.files.large(entry.file.size), text.files.largeHint)
}

function fail(entry: Upload, message: string, hint = ''): void {
  entry.phase = 'failed'
  entry.error = new ApiError(-1, message, { hint: hint || ' ' })
}

const collections = new Map<string, Collection>()

/** The documents of a knowledge base; the same object on every page. */
export function collection(kb: string): Collection {
  let found = collections.get(kb)
  if (!found) collections.set(kb, (found = new Collection(kb)))
  return found
}

/** Warns before the tab is closed while files are on their way. */
window.addEventListener('beforeunload', (event) => {
  const open = [...collections.values()].some((base) => base.uploads.some((entry) => entry.phase === 'sending' || entry.phase === 'waiting'))
  if (open) event.preventDefault()
})
