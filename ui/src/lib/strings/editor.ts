/** Texts of the text editor. */
export const editor = {
  keys: 'Tab indents. To leave the text, press Escape, then Tab.',
  find: 'Find',
  replace: 'Replace',
  next: 'Next match',
  previous: 'Previous match',
  replaceOne: 'Replace',
  replaceAll: 'Replace all',
  matchCase: 'Match case',
  pattern: 'Regular expression',
  word: 'Whole word',
  matches: (count: number) => (count === 1 ? '1 match' : `${count} matches`),
  unreadable: 'The expression cannot be read.',
  replaced: (count: number) => (count === 1 ? 'Replaced 1 match' : `Replaced ${count} matches`),
  completions: 'Completions',
}
