/** The models of the server. */
import { api, ApiError, isAbort } from './api/client'
import type { ModelItem } from './api/types'
import { common } from './strings/common'

export interface ModelList {
  items: ModelItem[]
  default_model?: string | null
  /** Providers whose models cannot be listed. */
  unavailable?: { provider: string; message: string }[]
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
  // The server has repeated its request to a provider that it cannot reach.
  if (first?.items.length || first?.unavailable?.length) return first
  await new Promise((resolve) => setTimeout(resolve, PAUSE))
  return list()
}

/** Fails if the address of a provider is not one, in words for its field. The server names its settings file. */
export function checkAddress(address: string): void {
  const { message, hint } = common.address
  if (address.trim() && !/^https?:\/\/[^/\s]/i.test(address.trim())) throw new ApiError(400, message, { hint, field: 'base_url' })
}
