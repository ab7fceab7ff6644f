/** The highlighted lines of a text. Unchanged lines stay the same objects, so that only changed lines are rendered. */
import { highlight, type Language, type LineState, type Token } from './languages'

/** A range of the text with a style of its own: a problem, a match of the search, a bracket. */
export interface Mark {
  start: number
  end: number
  kind: string
}

export interface Piece {
  text: string
  kind: string
}

export interface Line {
  text: string
  pieces: Piece[]
  /** The highlighting state before the line, which also determines how the line looks. */
  state: LineState
  next: LineState
  marks: Mark[]
}

/** Returns the lines of a text and reuses as many of the previous lines as possible. */
export function toLines(language: Language, text: string, marks: readonly Mark[], before: readonly Line[]): Line[] {
  const texts = text.split('\n')
  const shift = before.length - texts.length
  const lines: Line[] = []
  let [state, offset] = ['', 0]
  const sorted = marks.filter(({ start, end }) => start < end).toSorted((a, b) => a.start - b.start)
  // Look at the line after the last one that was found, and at the same place from the end and the start.
  let used = -1
  for (const line of texts) {
    const own = marksOf(sorted, offset, line.length)
    const index = lines.length
    const known = [used + 1, index + shift, index].find((at) => at > used && same(before[at], line, state, own))
    const now = (known === undefined ? undefined : before[known]) ?? draw(language, line, state, own)
    used = known ?? used
    lines.push(now)
    state = now.next
    offset += line.length + 1
  }
  return lines
}

function marksOf(sorted: Mark[], offset: number, length: number): Mark[] {
  const own: Mark[] = []
  for (const { start, end, kind } of sorted) {
    if (start > offset + length) break
    if (end > offset && start < offset + length) own.push({ start: Math.max(0, start - offset), end: Math.min(length, end - offset), kind })
  }
  return own
}

function same(line: Line | undefined, text: string, state: LineState, marks: Mark[]): boolean {
  return (
    line !== undefined && line.text === text && line.state === state && line.marks.length === marks.length &&
    marks.every((mark, index) => {
      const other = line.marks[index]
      return other?.start === mark.start && other.end === mark.end && other.kind === mark.kind
    })
  )
}

function draw(language: Language, text: string, state: LineState, marks: Mark[]): Line {
  const { tokens, next } = highlight(language, text, state)
  return { text, state, next, marks, pieces: split(text, tokens, marks) }
}

/** Cuts a line where a colour or a mark starts or ends. */
function split(text: string, tokens: Token[], marks: Mark[]): Piece[] {
  const ranges = [...tokens, ...marks]
  const cuts = [...new Set([0, text.length, ...ranges.flatMap(({ start, end }) => [start, end])])].sort((a, b) => a - b)
  const pieces: Piece[] = []
  for (let index = 1; index < cuts.length; index += 1) {
    const [start, end] = [cuts[index - 1] ?? 0, cuts[index] ?? 0]
    const kinds = ranges.filter((range) => range.start <= start && range.end >= end).map(({ kind }) => kind)
    pieces.push({ text: text.slice(start, end), kind: kinds.join(' ') })
  }
  return pieces
}
