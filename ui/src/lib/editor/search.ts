/** Finds and replaces in the text of an editor. */
import type { Selection } from './history'

export interface Query {
  find: string
  replace: string
  matchCase: boolean
  pattern: boolean
  word: boolean
}

const MAX_MATCHES = 5000

/** The pattern of a query; undefined if it is empty or cannot be read. */
function toPattern({ find, matchCase, pattern, word }: Query): RegExp | undefined {
  if (!find) return
  const source = pattern ? find : find.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  try {
    return new RegExp(word ? `(?<![\\p{L}\\p{N}_])(?:${source})(?![\\p{L}\\p{N}_])` : source, matchCase ? 'gmu' : 'gmiu')
  } catch {
    return
  }
}

export function isReadable(query: Query): boolean {
  return query.find === '' || toPattern(query) !== undefined
}

export function findAll(text: string, query: Query): Selection[] {
  const pattern = toPattern(query)
  const found: Selection[] = []
  if (!pattern) return found
  for (const match of text.matchAll(pattern)) {
    if (match[0]) found.push({ start: match.index, end: match.index + match[0].length })
    if (found.length >= MAX_MATCHES) break
  }
  return found
}

/** The match after or before the selection, round the end of the text. */
export function nextMatch(found: Selection[], { start, end }: Selection, direction: 1 | -1): Selection | undefined {
  if (direction > 0) return found.find((match) => match.start >= end) ?? found[0]
  return found.findLast((match) => match.end <= start) ?? found.at(-1)
}

/** The text that replaces a match; a pattern can name its groups as $1. */
export function replacement(text: string, match: Selection, query: Query): string {
  const pattern = toPattern(query)
  if (!query.pattern || !pattern) return query.replace
  return text.slice(match.start, match.end).replace(new RegExp(pattern.source, pattern.flags.replace('g', '')), query.replace)
}

/** Other places of a selected word. */
export function sameAsSelected(text: string, { start, end }: Selection): Selection[] {
  const selected = text.slice(start, end)
  if (!selected.trim() || selected.length > 200 || selected.includes('\n')) return []
  const found: Selection[] = []
  for (let at = text.indexOf(selected); at >= 0 && found.length < 100; at = text.indexOf(selected, at + selected.length)) {
    if (at !== start) found.push({ start: at, end: at + selected.length })
  }
  return found
}
