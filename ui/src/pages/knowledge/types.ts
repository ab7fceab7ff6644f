import { ApiError } from '$lib/api/client'
import { strings } from '$lib/strings'
import type { components } from '$lib/api/schema'

type Schemas = components['schemas']

export type Base = Schemas['BaseItem']
export type BaseList = Schemas['BaseList']
export type BaseInfo = Schemas['BaseInfo']
export type Task = Schemas['TaskItem']
export type Found = Schemas['Found']
export type Passage = Schemas['FoundPassage'] & { metadata: { filename?: string } }
export type Document = Schemas['DocumentItem'] & { progress?: number; passages?: number }
export type DocumentList = { documents: Document[]; total: number }

/** `GET /api/v1/knowledge/{kb}` */
export interface BaseDetail extends Base {
  may_change: boolean
  passage_count: number
  search: string
  settings: { chunk_tokens: number; chunk_overlap: number }
  embedding_model: string | null
  stale: boolean
}

export interface Chunk {
  chunk_id: string
  chunk_index: number
  text: string
  tokens?: number
}
export interface ChunkList {
  chunks: Chunk[]
  total: number
}

/** How many of the found passages a model reads. */
export const SHOWN_TO_MODEL = 3

/** Whether the server does not know the request at all, in contrast to a thing that is missing. */
export function unsupported(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 405 || (error.status === 404 && error.message === 'Not Found'))
}

/** Reasons of the server start in lower case. */
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** Why a document cannot be read, without the words of the library that read it. */
export function reason(document: { error?: string | null; filename: string }): string {
  const given = document.error ?? ''
  const { damaged, encrypted } = strings.knowledge.document
  if (/encrypted|password/i.test(given)) return encrypted
  if (/Word document cannot be read|EOCD|ZIP/i.test(given)) return damaged('Word')
  if (/\.pdf$/i.test(document.filename) && /damaged|invalid|cannot be read|broke off|xref|trailer|parse/i.test(given)) return damaged('PDF')
  return sentence(given)
}
