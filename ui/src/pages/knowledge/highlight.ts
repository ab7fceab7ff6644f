/** Finds the words of a question in a text. */
export interface Piece {
  text: string
  hit: boolean
}

/** Stop words, which are not highlighted. */
const COMMON = new Set('a an and are as at be by can do does for from has have how i in is it of often on or that the this to was what when where which who why will with you your'.split(' '))

export function wordsOf(query: string): string[] {
  const words = query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
  const telling = words.filter((word) => !COMMON.has(word))
  return [...new Set(telling.length ? telling : words)]
}

/** Splits a text at the words of a question; `refunds` also finds `refund`. */
export function highlight(text: string, query: string): Piece[] {
  const words = wordsOf(query).map((word) => (word.length > 4 ? word.replace(/(e?s|ing|ed)$/, '') : word))
  if (!words.length) return [{ text, hit: false }]
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(?:${words.map((word) => (word.length > 3 ? `${word}[\\p{L}\\p{N}]{0,4}` : word)).join('|')})(?![\\p{L}\\p{N}])`, 'giu')
  const pieces: Piece[] = []
  let end = 0
  for (const match of text.matchAll(pattern)) {
    if (match.index > end) pieces.push({ text: text.slice(end, match.index), hit: false })
    pieces.push({ text: match[0], hit: true })
    end = match.index + match[0].length
  }
  if (end < text.length) pieces.push({ text: text.slice(end), hit: false })
  return pieces
}
