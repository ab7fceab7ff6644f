/** Checks the syntax of a condition with the server's grammar, because the server treats invalid ones as false. */
import { workflows as strings } from '$lib/strings/workflows'
import { asText, find, type Values } from './values'

export interface ConditionProblem {
  at: number
  message: string
}

interface Token {
  kind: 'value' | 'or' | 'and' | 'not' | 'in' | 'contains' | 'includes' | '(' | ')' | 'compare' | 'sum' | 'product'
  at: number
  text: string
}

const PATH = /^\{\{[\p{L}\p{N}_-]+(?:\.[\p{L}\p{N}_-]+)*\}\}/u
const NUMBER = /^(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?(?![\p{L}\p{N}_])/u
const WORDS: Record<string, Token['kind']> = { or: 'or', and: 'and', not: 'not', in: 'in', contains: 'contains', None: 'value' }
const SYMBOLS: [string, Token['kind']][] = [
  ['===', 'compare'], ['!==', 'compare'], ['==', 'compare'], ['!=', 'compare'], ['<=', 'compare'], ['>=', 'compare'],
  ['&&', 'and'], ['||', 'or'], ['<', 'compare'], ['>', 'compare'], ['!', 'not'], ['(', '('], [')', ')'],
  ['+', 'sum'], ['-', 'sum'], ['*', 'product'], ['/', 'product'], ['%', 'product'],
]
const MAX_DEPTH = 64
const words = strings.condition

class Refused extends Error {
  constructor(readonly at: number, message: string) {
    super(message)
  }
}

export function checkCondition(expression: string): ConditionProblem | undefined {
  try {
    const all = tokens(expression)
    if (!all.length) throw new Refused(0, words.empty)
    new Parser(all, expression.length).whole()
    return undefined
  } catch (error) {
    if (error instanceof Refused) return { at: error.at, message: error.message }
    throw error
  }
}

function tokens(expression: string): Token[] {
  const found: Token[] = []
  let at = 0
  while (at < expression.length) {
    const rest = expression.slice(at)
    const blank = /^\s+/.exec(rest)
    if (blank) {
      at += blank[0].length
      continue
    }
    const token = next(rest, at)
    found.push(token)
    at += token.text.length
  }
  return found
}

function next(rest: string, at: number): Token {
  const first = rest[0] ?? ''
  const token = (kind: Token['kind'], length: number): Token => ({ kind, at, text: rest.slice(0, length) })
  if (first === '{') {
    const match = PATH.exec(rest)
    if (!match) throw new Refused(at, words.placeholder)
    return token('value', match[0].length)
  }
  if (first === "'" || first === '"') return token('value', quotedLength(rest, first, at))
  const includes = /^\.includes\s*\(/.exec(rest)
  if (includes) return token('includes', includes[0].length)
  const number = NUMBER.exec(rest)
  if (number) return token('value', number[0].length)
  const word = /^[A-Za-z_][\p{L}\p{N}_]*/u.exec(rest)
  if (word) {
    const kind = /^(true|false)$/i.test(word[0]) ? 'value' : WORDS[word[0]]
    if (!kind) throw new Refused(at, words.word(word[0]))
    return token(kind, word[0].length)
  }
  const symbol = SYMBOLS.find(([text]) => rest.startsWith(text))
  if (!symbol) throw new Refused(at, first === '=' ? words.equals : words.symbol(first))
  return token(symbol[1], symbol[0].length)
}

function quotedLength(rest: string, quote: string, at: number): number {
  for (let index = 1; index < rest.length; index += 1) {
    if (rest[index] === '\\') index += 1
    else if (rest[index] === quote) return index + 1
  }
  throw new Refused(at, words.quote)
}

class Parser {
  private place = 0
  private depth = 0

  constructor(private readonly all: Token[], private readonly end: number) {}

  whole(): void {
    this.or()
    const left = this.all[this.place]
    if (left) throw new Refused(left.at, words.operator(left.text))
  }

  private or(): void {
    do this.and()
    while (this.take('or'))
  }
  private and(): void {
    do this.not()
    while (this.take('and'))
  }
  private not(): void {
    if (this.take('not')) return this.nested(() => this.not())
    this.sum()
    for (;;) {
      if (this.take('compare') || this.take('in') || this.take('contains')) this.sum()
      else if (this.take('not')) {
        if (!this.take('in')) throw new Refused(this.at(), words.notIn)
        this.sum()
      } else return
    }
  }
  private sum(): void {
    do this.product()
    while (this.take('sum'))
  }
  private product(): void {
    do this.sign()
    while (this.take('product'))
  }
  private sign(): void {
    if (this.take('sum')) return this.nested(() => this.sign())
    this.primary()
    if (this.take('includes')) this.closed()
  }
  private primary(): void {
    if (this.take('value')) return
    if (this.take('(')) return this.closed()
    const now = this.all[this.place]
    throw new Refused(this.at(), now ? words.valueBefore(now.text) : words.valueAtEnd)
  }
  private closed(): void {
    this.nested(() => this.or())
    if (!this.take(')')) throw new Refused(this.at(), words.parenthesis)
  }
  private nested(inner: () => void): void {
    this.depth += 1
    if (this.depth > MAX_DEPTH) throw new Refused(this.at(), words.deep)
    inner()
    this.depth -= 1
  }
  private at(): number {
    return this.all[this.place]?.at ?? this.end
  }
  private take(kind: Token['kind']): boolean {
    if (this.all[this.place]?.kind !== kind) return false
    this.place += 1
    return true
  }
}

/** Replaces placeholders by literals, so that one step can be tried without the steps before it. */
export function withLiterals(expression: string, values: Values): string {
  let all: Token[]
  try {
    all = tokens(expression)
  } catch {
    return expression
  }
  let result = ''
  let last = 0
  for (const token of all) {
    result += expression.slice(last, token.at) + literalToken(token.text, values)
    last = token.at + token.text.length
  }
  return result + expression.slice(last)
}

function literalToken(token: string, values: Values): string {
  const quote = token[0]
  if (quote === '{') {
    const { found, value } = find(token.slice(2, -2), values)
    return found ? literal(value) : token
  }
  if (quote !== "'" && quote !== '"') return token
  return token.replace(/\{\{([^{}]+)\}\}/g, (whole, path: string) => {
    const { found, value } = find(path, values)
    return found ? escaped(asText(value), quote) : whole
  })
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return 'None'
  if (typeof value === 'boolean' || typeof value === 'number') return String(value)
  return `'${escaped(asText(value), "'")}'`
}

function escaped(text: string, quote: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll(quote, `\\${quote}`).replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('\t', '\\t')
}
