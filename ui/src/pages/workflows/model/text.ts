/** Reads the JSON that somebody types, with the place of each problem. */
import { workflows } from '$lib/strings/workflows'
import { parseGraph, type Graph } from './graph'
import { placed } from './templates'

export interface PlacedProblem {
  start: number
  end: number
  message: string
}

export function readGraph(content: string): { graph?: Graph; problems: PlacedProblem[] } {
  let value: unknown
  try {
    value = JSON.parse(content)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const start = errorPlace(message, content)
    return { problems: [{ start, end: Math.min(start + 1, content.length), message: workflows.importDialog.notJsonHint(message) }] }
  }
  const parsed = parseGraph(value)
  if (!parsed.graph) return { problems: parsed.problems.map(({ path, message }) => ({ ...find(content, path), message })) }
  return { graph: placed(value), problems: [] }
}

/** Browsers name the place as a position, or as a line and a column. */
function errorPlace(message: string, content: string): number {
  const position = /position (\d+)/.exec(message)
  if (position) return Math.min(Number(position[1]), content.length)
  const line = /line (\d+) column (\d+)/.exec(message)
  if (!line) return Math.max(0, content.trimEnd().length - 1)
  const before = content.split('\n').slice(0, Number(line[1]) - 1).join('\n').length
  return Math.min(before + Number(line[2]), content.length)
}

/** The place of a value in correct JSON; what is missing is shown at its parent. */
function find(content: string, path: (string | number)[]): { start: number; end: number } {
  let at = skip(content, 0)
  let found = { start: at, end: at + 1 }
  for (const part of path) {
    const next = typeof part === 'number' ? element(content, at, part) : member(content, at, part)
    if (next === undefined) break
    at = next
    found = { start: at, end: valueEnd(content, at) }
  }
  return found
}

function skip(content: string, at: number): number {
  while (/[\s,:]/.test(content[at] ?? '')) at += 1
  return at
}

function valueEnd(content: string, at: number): number {
  const first = content[at]
  if (first === '"') {
    for (let end = at + 1; end < content.length; end += 1) {
      if (content[end] === '\\') end += 1
      else if (content[end] === '"') return end + 1
    }
    return content.length
  }
  if (first !== '{' && first !== '[') return at + (/^[^\s,\]}]+/.exec(content.slice(at, at + 400))?.[0].length ?? 1)
  let place = skip(content, at + 1)
  while (place < content.length && content[place] !== '}' && content[place] !== ']') place = skip(content, valueEnd(content, place))
  return place + 1
}

function element(content: string, at: number, index: number): number | undefined {
  if (content[at] !== '[') return undefined
  let place = skip(content, at + 1)
  for (let count = 0; content[place] !== ']' && place < content.length; count += 1) {
    if (count === index) return place
    place = skip(content, valueEnd(content, place))
  }
  return undefined
}

function member(content: string, at: number, name: string): number | undefined {
  if (content[at] !== '{') return undefined
  let place = skip(content, at + 1)
  while (content[place] === '"') {
    const end = valueEnd(content, place)
    const key = content.slice(place + 1, end - 1)
    const value = skip(content, end)
    if (key === name) return value
    place = skip(content, valueEnd(content, value))
  }
  return undefined
}

export function lineOf(content: string, at: number): number {
  return content.slice(0, at).split('\n').length
}
