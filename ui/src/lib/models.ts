/** The models of the server. */
import { api, isAbort } from './api/client'
import type { ModelItem } from './api/types'

export interface ModelList {
  items: ModelItem[]
  default_model?: string | null
}

/** Milliseconds before the second try. */
const PAUSE = 400

/**
 * Lists the models. A provider that does not answer once is left out of the list, so that a request
 * that fails, or an empty list, is repeated once.
 */
export async function listModels(signal?: AbortSignal): Promise<ModelList> {
  const list = (): Promise<ModelList> => api.get<ModelList>('/api/v1/chat/models', { signal })
  const first = await list().catch((error: unknown) => {
    if (isAbort(error)) throw error
    return undefined
  })
  if (first?.items.length) return first
  await new Promise((resolve) => setTimeout(resolve, PAUSE))
  return list()
}
