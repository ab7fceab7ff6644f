/** The state of an editor: its text, its selection and what is shown in it. The textarea is its surface. */
import { deletePair, matchingBrackets, newLine, typePair, type Content } from './commands'
import { changeBetween, History, type Selection } from './history'
import type { Language } from './languages'
import { toLines, type Line, type Mark } from './lines'
import { findAll, sameAsSelected, type Query } from './search'

export interface Problem {
  start: number
  end: number
  severity: 'error' | 'warning' | 'info'
  message: string
  rule?: string
  fixes: { title: string; apply: () => void }[]
}

export interface TextEdit {
  start: number
  end: number
  text: string
}

export class Editor {
  text = $state('')
  selection = $state.raw<Selection>({ start: 0, end: 0 })
  problems = $state.raw<Problem[]>([])
  query = $state<Query>()
  area = $state.raw<HTMLTextAreaElement>()
  /** Shows a range; the view scrolls. */
  onshow: (range: Selection) => void = () => {}
  onchange: (text: string) => void = () => {}

  readonly matches = $derived(this.query ? findAll(this.text, this.query) : [])
  readonly lines = $derived.by(() => (this.#lines = toLines(this.language, this.text, this.#marks(), this.#lines)))
  #lines: Line[] = []
  #history = new History()
  /** Closing brackets that were added and are still right of the cursor. */
  #open = ''
  /** True while the editor itself changes the textarea, so that the input events can be ignored. */
  #writing = false

  constructor(
    readonly language: Language,
    text: string,
  ) {
    this.text = unify(text)
  }

  get content(): Content {
    return { text: this.text, ...this.selection }
  }

  /** The number of the line with the cursor, from 0. */
  get line(): number {
    return lineAt(this.text, this.selection.end)
  }

  /** Replaces the text; the cursor stays where it is. */
  replace(text: string): void {
    const next = unify(text)
    if (next === this.text) return
    const { start, removed, inserted } = changeBetween(this.text, next)
    this.edit([{ start, end: start + removed.length, text: inserted }])
  }

  /** Applies edits that are sorted and do not overlap, as one step of the history. */
  edit(edits: TextEdit[]): void {
    let { text } = this
    let { start, end } = this.selection
    for (const edit of edits.toReversed()) {
      text = text.slice(0, edit.start) + edit.text + text.slice(edit.end)
      start = moved(start, edit)
      end = moved(end, edit)
    }
    this.set({ text, start, end })
  }

  /** Shows a new text and selection, and remembers the change. */
  set(content: Content): void {
    const before = this.selection
    const change = changeBetween(this.text, content.text)
    if (content.text !== this.text) this.#history.add(change, before, content)
    this.#show(content)
  }

  /** Updates the state after the browser changed the textarea. */
  read(): void {
    if (!this.area || this.#writing) return
    const { value, selectionStart, selectionEnd } = this.area
    const after = { start: selectionStart, end: selectionEnd }
    if (value !== this.text) {
      this.#history.add(changeBetween(this.text, value), this.selection, after)
      this.text = value
      this.onchange(value)
    }
    if (after.start !== this.selection.start || after.end !== this.selection.end) this.selection = after
    if (!value.startsWith(this.#open, after.start)) this.#open = ''
  }

  undo(): void {
    this.#step(this.#history.undo(this.text))
  }

  redo(): void {
    this.#step(this.#history.redo(this.text))
  }

  /** Handles characters such as brackets and quotes. Returns false if the browser should insert the character. */
  type(typed: string): boolean {
    const result = typePair(this.content, typed, this.#open)
    if (!result) return false
    this.set(result.content)
    this.#open = result.open
    return true
  }

  newLine(): void {
    this.set(newLine(this.content))
    this.#open = ''
  }

  backspace(): boolean {
    const content = deletePair(this.content)
    if (content) this.set(content)
    return content !== undefined
  }

  goTo(start: number, end = start): void {
    const range = { start: Math.min(start, this.text.length), end: Math.min(end, this.text.length) }
    this.area?.focus({ preventScroll: true })
    this.area?.setSelectionRange(range.start, range.end)
    this.selection = range
    this.onshow(range)
  }

  #step(step: { text: string; selection: Selection } | undefined): void {
    if (!step) return
    this.#show({ text: step.text, ...step.selection })
    this.onshow(step.selection)
  }

  #show({ text, start, end }: Content): void {
    const changed = text !== this.text
    this.text = text
    this.selection = { start, end }
    this.sync()
    if (changed) this.onchange(text)
  }

  /** Updates the textarea. Sets its selection only if it has the focus, because some browsers would move the focus. */
  sync(): void {
    const { area, text } = this
    if (!area) return
    const focused = area.matches(':focus')
    this.#writing = true
    if (focused && area.value !== text) replaceTyped(area, text)
    this.#writing = false
    if (area.value !== text) area.value = text
    if (focused) area.setSelectionRange(this.selection.start, this.selection.end)
  }

  #marks(): Mark[] {
    const { text, selection, matches, problems } = this
    const marks: Mark[] = problems.map((problem) => ({ ...visible(problem, text), kind: `problem ${problem.severity}` }))
    if (this.query) for (const match of matches) marks.push({ ...match, kind: 'match' })
    else for (const same of sameAsSelected(text, selection)) marks.push({ ...same, kind: 'match' })
    const brackets = selection.start === selection.end ? matchingBrackets(text, selection.start) : undefined
    for (const start of brackets ?? []) marks.push({ start, end: start + 1, kind: 'bracket' })
    return marks
  }
}

/** Changes a textarea as typing does, which is faster: the browser does not lay out the whole text again. */
function replaceTyped(area: HTMLTextAreaElement, text: string): void {
  const { start, removed, inserted } = changeBetween(area.value, text)
  area.setSelectionRange(start, start + removed.length)
  document.execCommand(inserted ? 'insertText' : 'delete', false, inserted)
}

/** Converts all line ends to `\n`, as textareas do. */
function unify(text: string): string {
  return text.replace(/\r\n?/g, '\n')
}

/** A problem without a length is shown at the character beside it. */
function visible({ start, end }: Selection, text: string): Selection {
  if (start < end) return { start, end }
  const at = text[start] === undefined || text[start] === '\n' ? Math.max(0, start - 1) : start
  return { start: at, end: at + 1 }
}

function moved(at: number, { start, end, text }: TextEdit): number {
  if (at <= start) return at
  return at >= end ? at + text.length - (end - start) : start + text.length
}

export function lineAt(text: string, offset: number): number {
  let line = 0
  for (let at = text.indexOf('\n'); at >= 0 && at < offset; at = text.indexOf('\n', at + 1)) line += 1
  return line
}
