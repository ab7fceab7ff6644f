/** Placeholders: which there are, where they stand, and their values in a run. Mirrors the server. */
import { isObject, record, text, type Graph, type Settings, type Step } from './graph'

const PLACEHOLDER = /\{\{([\p{L}\p{N}_-]+(?:\.[\p{L}\p{N}_-]+)*)\}\}/gu

export interface Values {
  /** The input of the workflow. */
  input: string
  outputs: Record<string, unknown>
  variables: Record<string, unknown>
}

/** The paths of all placeholders in a text. */
export function placeholders(value: string): string[] {
  return [...value.matchAll(PLACEHOLDER)].map((match) => match[1] ?? '')
}

/** The value of a path; `found` is false if there is none. */
export function find(path: string, values: Values): { found: boolean; value?: unknown } {
  const [first = '', ...rest] = path.split('.')
  if (Object.hasOwn(values.variables, first)) {
    const value = member(values.variables[first], rest)
    if (value.found) return value
  }
  if (path === 'input') return { found: true, value: values.input }
  if (rest[0] !== 'output' || !Object.hasOwn(values.outputs, first)) return { found: false }
  return member(values.outputs[first], rest.slice(1))
}

function member(value: unknown, names: string[]): { found: boolean; value?: unknown } {
  let now = value
  for (const name of names) {
    if (!isObject(now) || !Object.hasOwn(now, name)) return { found: false }
    now = now[name]
  }
  return { found: true, value: now }
}

/** A value as text: strings unchanged, null as an empty text, other values as JSON. */
export function asText(value: unknown): string {
  if (value === null || value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Inserts values; placeholders without a value stay. */
export function fill(template: string, values: Values): string {
  return template.replace(PLACEHOLDER, (whole, path: string) => {
    const { found, value } = find(path, values)
    return found ? asText(value) : whole
  })
}

/** The value of an input of a skill: an output, a text with placeholders, a path, or the text itself. */
export function mapped(value: unknown, values: Values): string {
  if (typeof value !== 'string') return asText(value)
  if (Object.hasOwn(values.outputs, value)) return asText(values.outputs[value])
  if (value.includes('{{')) return fill(value, values)
  const path = find(value, values)
  return path.found ? asText(path.value) : value
}

/** The texts of a step in which placeholders are replaced, with their field. */
export function templates(step: Step): { field: string; value: string }[] {
  const { data } = step
  const found: { field: string; value: string }[] = []
  const add = (field: string, value: unknown) => {
    if (typeof value === 'string' && value) found.push({ field, value })
  }
  if (step.type === 'llm' && !text(data, 'skillName').trim()) add('systemPrompt', data.systemPrompt)
  if (step.type === 'condition') add('expression', data.expression)
  if (step.type === 'skill') for (const [name, value] of Object.entries(record(data, 'inputMappings'))) add(`inputMappings.${name}`, value)
  if (step.type === 'http') {
    add('url', data.url)
    for (const [name, value] of Object.entries(record(data, 'headers'))) add(`headers.${name}`, value)
    if (isObject(data.body)) for (const [name, value] of Object.entries(data.body)) add(`body.${name}`, value)
    else add('body', data.body)
  }
  return found
}

/** The steps that a step refers to in its texts. */
export function references(step: Step, ids: ReadonlySet<string>): string[] {
  const found = new Set<string>()
  for (const { field, value } of templates(step)) {
    for (const path of placeholders(value)) {
      const [id = '', output] = path.split('.')
      if (output === 'output') found.add(id)
    }
    if (field.startsWith('inputMappings.') && ids.has(value)) found.add(value)
  }
  return [...found]
}

export function variables(graph: Graph): string[] {
  const names = graph.nodes.filter((step) => step.type === 'start').map((step) => text(step.data, 'inputVariable').trim())
  return [...new Set(names.filter(Boolean))]
}

/** Writes a new id into all texts of a step that refer to a step. */
export function renameReferences(step: Step, from: string, to: string): Step {
  const pattern = new RegExp(`\\{\\{${from.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?=\\.output\\b)`, 'gu')
  const swap = (value: string): string => value.replace(pattern, `{{${to}`)
  const swapAll = (given: Record<string, unknown>, whole = false): Record<string, unknown> =>
    Object.fromEntries(Object.entries(given).map(([name, value]) => [name, typeof value !== 'string' ? value : whole && value === from ? to : swap(value)]))
  const data: Settings = { ...step.data }
  for (const name of ['systemPrompt', 'expression', 'url', 'body']) if (typeof data[name] === 'string') data[name] = swap(data[name])
  for (const name of ['headers', 'body']) if (isObject(data[name])) data[name] = swapAll(data[name])
  if (isObject(data.inputMappings)) data.inputMappings = swapAll(data.inputMappings, true)
  return JSON.stringify(data) === JSON.stringify(step.data) ? step : { ...step, data }
}
