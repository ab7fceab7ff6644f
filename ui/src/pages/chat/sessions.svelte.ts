/** The list of conversations. */
import { api, asApiError, path, type ApiError } from '$lib/api/client'
import { session } from '$lib/session.svelte'
import type { SessionItem } from './types'

class Sessions {
  list = $state.raw<SessionItem[]>()
  error = $state.raw<ApiError>()

  load = async (): Promise<void> => {
    try {
      const { sessions } = await api.get<{ sessions: SessionItem[] }>('/api/v1/chat/sessions')
      this.list = sessions.sort((a, b) => b.updated_at.localeCompare(a.updated_at))
      this.error = undefined
    } catch (error) {
      this.error = asApiError(error)
    }
  }

  async remove(id: string): Promise<void> {
    await api.delete(path`/api/v1/chat/sessions/${id}`)
    this.list = this.list?.filter((item) => item.session_id !== id)
  }

  async rename(id: string, title: string): Promise<void> {
    await api.patch(path`/api/v1/chat/sessions/${id}`, { title })
    this.list = this.list?.map((item) => (item.session_id === id ? { ...item, title } : item))
  }
}

/** Whether a conversation belongs to the user, not to another account that an administrator looks at. */
export function isOwn(item: Pick<SessionItem, 'user_id'>): boolean {
  return !item.user_id || item.user_id === String(session.user?.id)
}

export const sessions = new Sessions()
