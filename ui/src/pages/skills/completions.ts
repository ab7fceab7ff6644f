/** Completes the names of fields in the frontmatter, and values that a dialect allows. */
import type { Completion, CompletionContext, Completions } from '$lib/editor/completion'
import { readFrontmatter } from '$lib/frontmatter'
import type { DialectField } from './types'

export function complete({ text, at, explicit }: CompletionContext, fields: DialectField[]): Completions | undefined {
  const front = readFrontmatter(text)
  if (!front || at > front.end) return
  const start = text.lastIndexOf('\n', at - 1) + 1
  const before = text.slice(start, at)
  const value = /^([A-Za-z_][\w.-]*):[ \t]*(\S*)$/.exec(before)
  if (value) return choices(fields.find((field) => field.name === value[1]), at - (value[2]?.length ?? 0))
  const key = /^[A-Za-z_][\w.-]*$/.exec(before)
  if (!key && !(explicit && before === '')) return
  const used = new Set(front.fields.map((field) => field.key))
  const options = fields
    .filter((field) => !used.has(field.name) || field.name === before)
    .toSorted((a, b) => Number(b.required ?? false) - Number(a.required ?? false) || a.name.localeCompare(b.name))
    .map((field): Completion => ({ label: field.name, insert: `${field.name}: `, detail: field.type ?? undefined, info: field.description ?? undefined }))
  return { start, options }
}

function choices(field: DialectField | undefined, start: number): Completions | undefined {
  const values = field?.choices ?? (field?.type === 'boolean' ? [true, false] : [])
  if (values.length) return { start, options: values.map((value) => ({ label: String(value) })) }
}
