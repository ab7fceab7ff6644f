/** Asks a yes-or-no question in a dialog: `if (await confirm({…})) …`. */
export interface Question {
  title: string
  text?: string
  /** Further lines, such as what a scan found. */
  list?: string[]
  action: string
  danger?: boolean
  /** The text that the user must type to confirm an action that cannot be undone. */
  type?: string
  /** The label of the field for that text. */
  typeLabel?: string
}

class Confirmation {
  question = $state<Question>()
  private answer: ((yes: boolean) => void) | undefined

  ask(question: Question): Promise<boolean> {
    this.answer?.(false)
    this.question = question
    return new Promise((resolve) => (this.answer = resolve))
  }
  close(yes: boolean): void {
    this.question = undefined
    this.answer?.(yes)
    this.answer = undefined
  }
}

export const confirmation = new Confirmation()
export const confirm = (question: Question): Promise<boolean> => confirmation.ask(question)
