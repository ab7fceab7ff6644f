/** Completions that an editor offers at the cursor. */
export interface CompletionContext {
  text: string
  at: number
  /** Whether the user pressed the key for completions, as opposed to typing. */
  explicit: boolean
}

export interface Completion {
  label: string
  /** The text that is inserted, if it is not the label. */
  insert?: string
  detail?: string
  info?: string
}

export interface Completions {
  /** Where the text starts that a completion replaces. */
  start: number
  options: Completion[]
}

export type CompletionSource = (context: CompletionContext) => Completions | undefined

/** The options that fit what is typed: those that start with it first, then those that have its letters in order. */
export function matching(options: Completion[], typed: string): Completion[] {
  const wanted = typed.toLowerCase()
  const starts = options.filter(({ label }) => label.toLowerCase().startsWith(wanted))
  const others = options.filter((option) => !starts.includes(option) && hasLetters(option.label.toLowerCase(), wanted))
  return [...starts, ...others]
}

function hasLetters(label: string, wanted: string): boolean {
  let at = -1
  return [...wanted].every((letter) => (at = label.indexOf(letter, at + 1)) >= 0)
}
