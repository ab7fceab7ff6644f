/** Short messages at the edge of the window, announced to screen readers. */
import { asApiError } from './api/client'

export interface Toast {
  id: number
  kind: 'ok' | 'bad' | 'info'
  text: string
  hint?: string
  action?: { label: string; run: () => void }
}

class Toasts {
  list = $state<Toast[]>([])
  private next = 1

  show(toast: Omit<Toast, 'id'>): void {
    const id = this.next++
    this.list.push({ ...toast, id })
    // Errors stay until the user closes them, because reading the hint takes time.
    if (toast.kind !== 'bad') setTimeout(() => this.close(id), toast.action ? 9000 : 5000)
  }
  ok(text: string, action?: Toast['action']): void {
    this.show({ kind: 'ok', text, action })
  }
  info(text: string): void {
    this.show({ kind: 'info', text })
  }
  error(error: unknown): void {
    const { message, hint } = asApiError(error)
    this.show({ kind: 'bad', text: message, hint })
  }
  close(id: number): void {
    this.list = this.list.filter((toast) => toast.id !== id)
  }
}

export const toasts = new Toasts()

class Announcer {
  text = $state('')
  /** Announces a text to screen readers without showing it. */
  say(text: string): void {
    this.text = ''
    setTimeout(() => (this.text = text), 50)
  }
}

export const announcer = new Announcer()
