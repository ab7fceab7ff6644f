import { ApiError, api, path } from '$lib/api/client'
import { strings } from '$lib/strings'
import { unsupported, type Base, type BaseDetail, type BaseList } from './types'

/** A knowledge base; `detail` if the server has settings for it. */
export interface Loaded {
  base: Base
  detail: BaseDetail | undefined
}

export async function loadBase(kb: string, signal?: AbortSignal): Promise<Loaded> {
  try {
    const detail = await api.get<BaseDetail>(path`/api/v1/knowledge/${kb}`, { signal })
    return { base: detail, detail }
  } catch (error) {
    if (!unsupported(error)) throw error
  }
  const { items } = await api.get<BaseList>('/api/v1/knowledge', { signal })
  const base = items.find((item) => item.id === kb || item.name === kb)
  if (!base) throw new ApiError(404, strings.knowledge.base.missing, { hint: strings.knowledge.base.missingText })
  return { base, detail: undefined }
}
