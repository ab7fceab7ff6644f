/** Archives of versions that were read, so that each is downloaded once. */
import { asText, readZip, type ZipFile } from '$lib/unzip'
import { archive } from './api'

const MAX_KEPT = 6
const kept = new Map<string, Promise<ZipFile[]>>()

export function filesOf(name: string, version: string): Promise<ZipFile[]> {
  const key = `${name}@${version}`
  const known = kept.get(key)
  if (known) return known
  const loading = archive(name, version).then(readZip)
  loading.catch(() => kept.delete(key))
  kept.set(key, loading)
  const oldest = kept.keys().next().value
  if (kept.size > MAX_KEPT && oldest) kept.delete(oldest)
  return loading
}

/** The text of a file of a version; undefined if it is not text. */
export async function textOf(name: string, version: string, path: string): Promise<string | undefined> {
  const file = (await filesOf(name, version)).find((one) => one.path === path)
  return file ? asText(await file.bytes()) : undefined
}
