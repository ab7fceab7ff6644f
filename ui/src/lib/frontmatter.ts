/**
 * Reads and changes single fields of the frontmatter of a SKILL.md, so that a form and the text
 * edit the same bytes: everything else, comments included, stays as it is.
 */
export interface Edit {
  start: number
  end: number
  text: string
}

export interface FrontField {
  key: string
  /** The position of the key. */
  start: number
  /** The end of the value, without the line break. */
  end: number
  valueStart: number
  /** The value of a text, number or switch; undefined for lists and maps. */
  value: string | undefined
  style: 'plain' | 'single' | 'double' | 'block' | 'nested' | 'empty'
}

export interface Frontmatter {
  /** Where a new field is inserted. */
  end: number
  fields: FrontField[]
  bodyStart: number
}

const KEY = /^([A-Za-z_][\w.-]*)[ \t]*:(?=[ \t\r]|$)[ \t]*/

export function readFrontmatter(text: string): Frontmatter | undefined {
  const opening = /^\uFEFF?---[ \t]*\r?\n/.exec(text)
  if (!opening) return undefined
  const lines = splitLines(text, opening[0].length)
  const closing = lines.findIndex((line) => /^(---|\.\.\.)[ \t]*$/.test(line.text))
  if (closing < 0) return undefined
  const fields: FrontField[] = []
  for (let index = 0; index < closing; index += 1) {
    const line = lines[index]
    const found = line && KEY.exec(line.text)
    if (!line || !found?.[1]) continue
    let last = index
    while (last + 1 < closing && isContinuation(lines[last + 1]?.text ?? '')) last += 1
    while (last > index && !lines[last]?.text.trim()) last -= 1
    const valueStart = line.start + found[0].length
    const end = lines[last]?.end ?? line.end
    fields.push({ key: found[1], start: line.start, end, valueStart, ...readValue(text.slice(valueStart, end)) })
    index = last
  }
  const close = lines[closing]
  return { end: close?.start ?? text.length, fields, bodyStart: Math.min(text.length, (close?.end ?? 0) + 1) }
}

interface Line {
  text: string
  start: number
  end: number
}

function splitLines(text: string, from: number): Line[] {
  const lines: Line[] = []
  let start = from
  while (start <= text.length) {
    const next = text.indexOf('\n', start)
    const stop = next < 0 ? text.length : next
    const end = stop > start && text[stop - 1] === '\r' ? stop - 1 : stop
    lines.push({ text: text.slice(start, end), start, end })
    if (next < 0) break
    start = next + 1
  }
  return lines
}

/** Lines of a value: indented, empty, or the entries of a list. */
function isContinuation(line: string): boolean {
  return /^([ \t]|-[ \t]|-$|$|[\]}])/.test(line)
}

function readValue(raw: string): Pick<FrontField, 'value' | 'style'> {
  const text = raw.trim()
  if (!text) return { value: '', style: 'empty' }
  const block = /^([|>])([+-]?)\d?[+-]?[ \t]*(#.*)?\r?\n([\s\S]*)$/.exec(raw)
  if (block) return { value: unblock(block[4] ?? '', block[1] === '>'), style: 'block' }
  if (text.startsWith('"')) return readDouble(text)
  if (text.startsWith("'")) {
    const found = /^'((?:[^']|'')*)'[ \t]*(#.*)?$/.exec(text)
    return found ? { value: fold((found[1] ?? '').replaceAll("''", "'")), style: 'single' } : { value: undefined, style: 'nested' }
  }
  if (/^[[{&*!]/.test(text) || /^\s*(#.*)?\r?\n/.test(raw) || /(^|\n)\s*-\s/.test(raw)) return { value: undefined, style: 'nested' }
  return { value: fold(text.replace(/[ \t]+#.*$/m, '')), style: 'plain' }
}

function readDouble(text: string): Pick<FrontField, 'value' | 'style'> {
  const found = /^("(?:[^"\\]|\\[\s\S])*")[ \t]*(#.*)?$/.exec(text)
  try {
    if (found?.[1]) return { value: JSON.parse(found[1].replace(/\s*\r?\n\s*/g, ' ')) as string, style: 'double' }
  } catch {
    // An escape that JSON does not have: the text editor is the place to change it.
  }
  return { value: undefined, style: 'nested' }
}

function fold(text: string): string {
  return text.replace(/[ \t]*\r?\n[ \t]*/g, ' ')
}

function unblock(text: string, folded: boolean): string {
  const lines = text.split(/\r?\n/)
  const indent = Math.min(...lines.filter((line) => line.trim()).map((line) => /^[ ]*/.exec(line)?.[0].length ?? 0))
  const content = lines.map((line) => line.slice(Number.isFinite(indent) ? indent : 0)).join('\n').trimEnd()
  return folded ? content.replace(/([^\n])\n(?=[^\n])/g, '$1 ') : content
}

/** The edits that give a field a value; an empty value removes the field. */
export function setField(text: string, key: string, value: string): Edit[] {
  const front = readFrontmatter(text)
  if (!front) return value ? [{ start: 0, end: 0, text: `---\n${key}: ${write(value, 'plain')}\n---\n\n` }] : []
  const field = front.fields.find((found) => found.key === key)
  if (!field) return value ? [{ start: front.end, end: front.end, text: `${key}: ${write(value, 'plain')}\n` }] : []
  if (field.value === value) return []
  if (!value) {
    const lineEnd = text.indexOf('\n', field.end)
    return [{ start: field.start, end: lineEnd < 0 ? field.end : lineEnd + 1, text: '' }]
  }
  const space = text[field.valueStart - 1] === ':' ? ' ' : ''
  return [{ start: field.valueStart, end: field.end, text: space + write(value, field.style) }]
}

/** The edits that add a field with a value that is YAML already, such as the start of a list. */
export function addRaw(text: string, key: string, yaml: string): Edit[] {
  const at = readFrontmatter(text)?.end
  return at === undefined ? [{ start: 0, end: 0, text: `---\n${key}:${yaml}\n---\n\n` }] : [{ start: at, end: at, text: `${key}:${yaml}\n` }]
}

/** A value as YAML, in the style that it had if that can express it. */
function write(value: string, style: FrontField['style']): string {
  if (value.includes('\n') || style === 'block') {
    return `|-\n${value.split('\n').map((line) => (line ? `  ${line}` : '')).join('\n')}`
  }
  if (style === 'single' && !/[\u0000-\u001f]/.test(value)) return `'${value.replaceAll("'", "''")}'`
  if (style === 'double' || !isPlain(value)) return JSON.stringify(value)
  return value
}

function isPlain(value: string): boolean {
  if (value !== value.trim() || /[\u0000-\u001f]/.test(value)) return false
  if (/^[-?:,[\]{}#&*!|>'"%@`]/.test(value) && !/^-?\d/.test(value)) return false
  return !/: |:$| #/.test(value)
}

export function applyEdits(text: string, edits: Edit[]): string {
  let done = text
  for (const edit of edits.toSorted((a, b) => b.start - a.start)) done = done.slice(0, edit.start) + edit.text + done.slice(edit.end)
  return done
}
