/** Turns the texts of a form into the arguments of a tool. */
import { strings } from '$lib/strings'
import type { Parameter } from './types'

export function startValues(parameters: Parameter[]): Record<string, string> {
  return Object.fromEntries(parameters.map(({ name, type, default: value }) => [name, startValue(type, value)]))
}

function startValue(type: string, value: unknown): string {
  if (value === undefined || value === null) return type === 'boolean' ? 'false' : ''
  if (type === 'array' && Array.isArray(value)) return value.map(String).join('\n')
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Empty fields are left out, so that the tool uses its defaults. */
export function readArguments(parameters: Parameter[], values: Record<string, string>): { args: Record<string, unknown>; problems: Record<string, string> } {
  const args: Record<string, unknown> = {}
  const problems: Record<string, string> = {}
  const text = strings.skills.toolPanel.problems
  for (const { name, type } of parameters) {
    const given = values[name] ?? ''
    if (given.trim() === '') continue
    if (type === 'boolean') args[name] = given === 'true'
    else if (type === 'array') args[name] = given.split('\n').filter((line) => line.trim() !== '')
    else if (type === 'integer' || type === 'number') {
      const number = Number(given)
      if (Number.isFinite(number) && (type === 'number' || Number.isInteger(number))) args[name] = number
      else problems[name] = text[type]
    } else if (type === 'object') {
      const value = parse(given)
      if (value && typeof value === 'object' && !Array.isArray(value)) args[name] = value
      else problems[name] = text.object
    } else args[name] = given
  }
  return { args, problems }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
