/** Syntax highlighting: splits each line into tokens, given the state at the end of the line before. */

export type Language = 'skill' | 'json' | 'text'

/** A piece of a line with the name of its colour. */
export interface Token {
  start: number
  end: number
  kind: string
}

/** The state at the end of a line, for example inside a code fence. Equal strings are equal states. */
export type LineState = string

/** Reads a line from left to right. */
class Reader {
  at = 0

  constructor(readonly line: string) {}

  get atStart(): boolean {
    return this.at === 0
  }

  get atEnd(): boolean {
    return this.at >= this.line.length
  }

  /** Consumes the match of a sticky pattern (flag `y`) at the current position. */
  take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.line)
    if (found) this.at += found[0].length
    return found
  }

  rest(): void {
    this.at = this.line.length
  }
}

type Rule = readonly [pattern: RegExp, kind: string]

/** Consumes the match of the first rule that matches and returns its kind; otherwise one plain character. */
function first(reader: Reader, rules: readonly Rule[]): string {
  for (const [pattern, kind] of rules) if (reader.take(pattern)?.[0]) return kind
  reader.at += 1
  return ''
}

const JSON_RULES: Rule[] = [
  [/"(?:[^"\\]|\\.)*"(?=\s*:)/y, 'key'],
  [/"(?:[^"\\]|\\.)*"?/y, 'string'],
  [/-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true\b|false\b|null\b/y, 'number'],
  [/[[\]{},:]+/y, 'faint'],
  [/\s+|[a-zA-Z]+/y, ''],
]

const YAML_KEYS: Rule[] = [
  [/-(?=\s|$)/y, 'list'],
  [/[\w.$@-]+(?=\s*:(\s|$))|("[^"]*"|'[^']*')(?=\s*:(\s|$))/y, 'key'],
]

const YAML_VALUES: Rule[] = [
  [/"(?:[^"\\]|\\.)*"?|'(?:[^']|'')*'?/y, 'string'],
  [/(?:true|false|null|~)(?=\s|$)|-?\d+(?:\.\d+)?(?=\s|$|,|\])/y, 'number'],
  [/[[\]{},|>]/y, 'faint'],
  [/[^\s,[\]{}#:]+/y, 'string'],
]

const MARKDOWN_STARTS: Rule[] = [
  [/#{1,6}\s.*/y, 'heading'],
  [/>.*/y, 'comment'],
  [/\s*(?:[-*+]|\d+[.)])(?=\s)/y, 'list'],
]

const MARKDOWN: Rule[] = [
  [/\{\{[^}]*\}\}|\$(?:\{[^}]*\}|[A-Za-z_]\w*)/y, 'variable'],
  [/`[^`]*`/y, 'string'],
  [/\*\*[^*]+\*\*/y, 'strong'],
  [/_[^_]+_(?=\W|$)|\*[^*\s][^*]*\*/y, 'emphasis'],
  [/\[[^\]]*\]\([^)]*\)|https?:\/\/\S+/y, 'link'],
  [/[a-z]+|\s+/iy, ''],
]

/** Colours one line; returns its pieces and the state of the next line. */
export function highlight(language: Language, line: string, state: LineState): { tokens: Token[]; next: LineState } {
  if (language === 'json') return { tokens: read(line, (reader) => first(reader, JSON_RULES)), next: '' }
  if (language === 'text') return { tokens: [], next: '' }
  return skill(line, state)
}

function read(line: string, step: (reader: Reader) => string): Token[] {
  const reader = new Reader(line)
  const tokens: Token[] = []
  while (!reader.atEnd) {
    const start = reader.at
    const kind = step(reader)
    if (kind) tokens.push({ start, end: reader.at, kind })
  }
  return tokens
}

const whole = (line: string, kind: string): Token[] => [{ start: 0, end: line.length, kind }]

/** A SKILL.md: YAML between two lines of dashes, then Markdown with placeholders. */
function skill(line: string, state: LineState): { tokens: Token[]; next: LineState } {
  const inYaml = state === 'yaml'
  if ((state === '' || inYaml) && /^---\s*$/.test(line)) return { tokens: whole(line, 'faint'), next: inYaml ? 'markdown' : 'yaml' }
  if (inYaml) return { tokens: yaml(line), next: 'yaml' }
  const fence = /^\s*(?:```+|~~~+)/.test(line)
  const fenced = state === 'fence'
  if (fence) return { tokens: whole(line, 'faint'), next: fenced ? 'markdown' : 'fence' }
  if (fenced) return { tokens: whole(line, 'string'), next: 'fence' }
  const tokens = read(line, (reader) => first(reader, reader.atStart ? [...MARKDOWN_STARTS, ...MARKDOWN] : MARKDOWN))
  return { tokens, next: 'markdown' }
}

function yaml(line: string): Token[] {
  let inValue = false
  return read(line, (reader) => {
    if (reader.take(/\s+/y)) return ''
    if (reader.take(/#.*/y)) return 'comment'
    if (!inValue && reader.take(/:(?=\s|$)/y)) {
      inValue = true
      return 'faint'
    }
    return first(reader, inValue ? YAML_VALUES : [...YAML_KEYS, ...YAML_VALUES])
  })
}
