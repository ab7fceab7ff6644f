/** What keys do to a text and its selection. Each returns the new text, or undefined to let the browser act. */
import type { Language } from './languages'
import type { Selection } from './history'

export interface Content extends Selection {
  text: string
}

const INDENT = '  '
const PAIRS: Record<string, string> = { '(': ')', '[': ']', '{': '}', '"': '"', "'": "'" }
const BRACKETS = '()[]{}'
const MAX_DISTANCE = 10_000

/** The lines of the selection: where the first starts and the last ends. */
function lineRange({ text, start, end }: Content): Selection {
  const from = text.lastIndexOf('\n', start - 1) + 1
  // A selection that ends at the start of a line does not touch it.
  const last = end > start && text[end - 1] === '\n' ? end - 1 : end
  const to = text.indexOf('\n', last)
  return { start: from, end: to < 0 ? text.length : to }
}

/** Changes each line of the selection; the selection keeps its characters. */
function mapLines(content: Content, change: (line: string) => string): Content {
  const range = lineRange(content)
  const lines = content.text.slice(range.start, range.end).split('\n')
  const changed = lines.map(change)
  const text = content.text.slice(0, range.start) + changed.join('\n') + content.text.slice(range.end)
  const first = (changed[0]?.length ?? 0) - (lines[0]?.length ?? 0)
  const all = text.length - content.text.length
  const start = Math.max(range.start, content.start + first)
  return { text, start, end: content.start === content.end ? start : Math.max(start, content.end + all) }
}

export function indent(content: Content): Content {
  if (content.start === content.end) return insert(content, INDENT)
  return mapLines(content, (line) => (line ? INDENT + line : line))
}

export function indentLines(content: Content): Content {
  return mapLines(content, (line) => (line ? INDENT + line : line))
}

export function outdent(content: Content): Content {
  return mapLines(content, (line) => line.replace(/^(?: {1,2}|\t)/, ''))
}

/** Adds or removes the sign of a comment. JSON has none. */
export function toggleComment(content: Content, language: Language): Content | undefined {
  if (language === 'json') return
  const { start, end } = lineRange(content)
  const lines = content.text.slice(start, end).split('\n').filter((line) => line.trim())
  const off = lines.length > 0 && lines.every((line) => /^\s*#/.test(line))
  return mapLines(content, (line) => (off ? line.replace(/^(\s*)# ?/, '$1') : line.trim() ? line.replace(/^(\s*)/, '$1# ') : line))
}

export function moveLines(content: Content, direction: 1 | -1): Content | undefined {
  const { start, end } = lineRange(content)
  const { text } = content
  if (direction < 0 ? start === 0 : end === text.length) return
  const block = text.slice(start, end)
  const other = direction < 0 ? lineRange({ text, start: start - 1, end: start - 1 }) : lineRange({ text, start: end + 1, end: end + 1 })
  const line = text.slice(other.start, other.end)
  const shift = direction * (line.length + 1)
  const moved = direction < 0 ? text.slice(0, other.start) + block + '\n' + line + text.slice(end) : text.slice(0, start) + line + '\n' + block + text.slice(other.end)
  return { text: moved, start: content.start + shift, end: content.end + shift }
}

export function copyLines(content: Content, direction: 1 | -1): Content {
  const { start, end } = lineRange(content)
  const block = content.text.slice(start, end)
  const text = content.text.slice(0, end) + '\n' + block + content.text.slice(end)
  const shift = direction > 0 ? block.length + 1 : 0
  return { text, start: content.start + shift, end: content.end + shift }
}

export function deleteLines(content: Content): Content {
  const { start, end } = lineRange(content)
  const text = end < content.text.length ? content.text.slice(0, start) + content.text.slice(end + 1) : content.text.slice(0, Math.max(0, start - 1))
  const at = Math.min(start, text.length)
  return { text, start: at, end: at }
}

/** A new line with the indentation of this one; a closing bracket moves to a line of its own. */
export function newLine(content: Content): Content {
  const { text, start, end } = content
  const line = text.slice(text.lastIndexOf('\n', start - 1) + 1, start)
  const own = /^[ \t]*/.exec(line)?.[0] ?? ''
  const opened = /[[{(]\s*$/.exec(line) !== null
  const inside = opened ? own + INDENT : own
  const closes = opened && /^[ \t]*[\]})]/.test(text.slice(end))
  const after = closes ? `\n${own}` : ''
  const at = start + 1 + inside.length
  return { text: `${text.slice(0, start)}\n${inside}${after}${text.slice(closes ? end + (/^[ \t]*/.exec(text.slice(end))?.[0].length ?? 0) : end)}`, start: at, end: at }
}

export function insert({ text, start, end }: Content, added: string): Content {
  const at = start + added.length
  return { text: text.slice(0, start) + added + text.slice(end), start: at, end: at }
}

/**
 * Types a bracket or a quote: a selection is wrapped, an opening one gets its partner, and a closing one
 * steps over the partner that was added. `open` holds the added partners that are still right of the cursor.
 */
export function typePair(content: Content, typed: string, open: string): { content: Content; open: string } | undefined {
  const { text, start, end } = content
  const partner = PAIRS[typed]
  if (start === end && open.startsWith(typed) && text.startsWith(open, start)) {
    return { content: { text, start: start + 1, end: start + 1 }, open: open.slice(1) }
  }
  if (!partner) return
  if (start !== end) {
    const selected = text.slice(start, end)
    return { content: { text: text.slice(0, start) + typed + selected + partner + text.slice(end), start: start + 1, end: end + 1 }, open: '' }
  }
  const next = text[start] ?? ''
  const previous = text[start - 1] ?? ''
  if (next && !/[\s)\]}:;>]/.test(next)) return
  if (typed === partner && (/\w/.test(previous) || previous === typed)) return
  const known = text.startsWith(open, start) ? open : ''
  return { content: { text: text.slice(0, start) + typed + partner + text.slice(start), start: start + 1, end: start + 1 }, open: partner + known }
}

/** Backspace between two partners removes both. */
export function deletePair({ text, start, end }: Content): Content | undefined {
  const partner = PAIRS[text[start - 1] ?? '']
  if (start !== end || !partner || text[start] !== partner) return
  return { text: text.slice(0, start - 1) + text.slice(start + 1), start: start - 1, end: start - 1 }
}

/** The bracket at the cursor and its partner. */
export function matchingBrackets(text: string, at: number): [number, number] | undefined {
  for (const place of [at - 1, at]) {
    const index = BRACKETS.indexOf(text[place] || ' ')
    if (index < 0) continue
    const other = partnerOf(text, place, index)
    if (other !== undefined) return [place, other]
  }
}

function partnerOf(text: string, place: number, index: number): number | undefined {
  const step = index % 2 === 0 ? 1 : -1
  const [own, partner] = [BRACKETS[index], BRACKETS[index + step]]
  let depth = 0
  for (let at = place; at >= 0 && at < text.length && Math.abs(at - place) < MAX_DISTANCE; at += step) {
    if (text[at] === own) depth += 1
    else if (text[at] === partner && (depth -= 1) === 0) return at
  }
}
