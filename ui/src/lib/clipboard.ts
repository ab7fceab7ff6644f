import { common } from './strings/common'
import { announcer, toasts } from './toast.svelte'

export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    toasts.ok(common.copied)
    announcer.say(common.copied)
  } catch {
    toasts.show({ kind: 'bad', text: common.notCopied, hint: common.hints.copy })
  }
}

/** Saves a text as a file. */
export function download(name: string, content: string | Blob, type = 'text/plain'): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }))
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 1000)
}
