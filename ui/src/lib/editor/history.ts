/** Undo and redo. The browser's own undo history is lost when a program sets the text of a textarea. */

export interface Selection {
  start: number
  end: number
}

/** One replaced range of the text. */
export interface Change {
  start: number
  removed: string
  inserted: string
}

interface Entry extends Change {
  before: Selection
  after: Selection
  time: number
}

/** Changes by typing within this time (milliseconds) are undone in one step. */
const PAUSE = 500
const MAX_ENTRIES = 500

export class History {
  #done: Entry[] = []
  #undone: Entry[] = []

  add(change: Change, before: Selection, after: Selection, time = Date.now()): void {
    const last = this.#done.at(-1)
    this.#undone = []
    if (last && time - last.time < PAUSE && continues(last, change)) {
      if (change.inserted) last.inserted = splice(last.inserted, change.start - last.start, 0, change.inserted)
      else {
        last.removed = change.removed + last.removed
        last.start = change.start
      }
      last.after = after
      last.time = time
      return
    }
    this.#done.push({ ...change, before, after, time })
    if (this.#done.length > MAX_ENTRIES) this.#done.shift()
  }

  undo(text: string): { text: string; selection: Selection } | undefined {
    const entry = this.#done.pop()
    if (!entry) return
    this.#undone.push(entry)
    return { text: splice(text, entry.start, entry.inserted.length, entry.removed), selection: entry.before }
  }

  redo(text: string): { text: string; selection: Selection } | undefined {
    const entry = this.#undone.pop()
    if (!entry) return
    this.#done.push({ ...entry, time: 0 })
    return { text: splice(text, entry.start, entry.removed.length, entry.inserted), selection: entry.after }
  }
}

/** Whether a change continues the typing or deleting of the last change. */
function continues(last: Entry, { start, removed, inserted }: Change): boolean {
  if (inserted.includes('\n') || last.inserted.endsWith('\n')) return false
  if (inserted && !removed) return !last.removed && last.inserted !== '' && start > last.start && start <= last.start + last.inserted.length
  return !inserted && !last.inserted && start + removed.length === last.start
}

function splice(text: string, start: number, length: number, insert: string): string {
  return text.slice(0, start) + insert + text.slice(start + length)
}

/** The smallest change that turns one text into another. */
export function changeBetween(before: string, after: string): Change {
  let start = 0
  const shortest = Math.min(before.length, after.length)
  while (start < shortest && before[start] === after[start]) start += 1
  let end = 0
  while (end < shortest - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1
  return { start, removed: before.slice(start, before.length - end), inserted: after.slice(start, after.length - end) }
}
