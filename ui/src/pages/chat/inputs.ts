/** The inputs of a skill in a message: one line `name: value` for each. Further lines of a value are indented. */
import type { SkillInput } from '$lib/api/types'

export type Values = Record<string, string>

/** The message that calls a skill with inputs. Empty ones are left out. */
export function toMessage(skill: string, inputs: SkillInput[], valueOf: (input: SkillInput) => string): string {
  const lines = inputs.flatMap((input) => {
    const value = valueOf(input).trim()
    return value ? [`${input.name}: ${value.replaceAll('\n', '\n  ')}`] : []
  })
  return [`@${skill}`, ...lines].join('\n')
}

/** The inputs that a text names, as the server reads them; undefined if the text is one value. */
export function fromText(inputs: SkillInput[], text: string): Values | undefined {
  const values: Values = {}
  let last = ''
  for (const line of text.trim().split('\n')) {
    const at = line.indexOf(':')
    const name = at < 0 ? '' : line.slice(0, at).trimEnd()
    if (inputs.some((input) => input.name === name) && !Object.hasOwn(values, name)) {
      values[name] = line.slice(at + 1).trim()
      last = name
    } else if (!last) return undefined
    else values[last] = [...(values[last] ? [values[last]] : []), line.replace(/^ {2}/, '')].join('\n')
  }
  return values
}
