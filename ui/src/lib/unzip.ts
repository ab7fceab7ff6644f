/** Reads the files of a zip in the browser. Only for display: servers check archives themselves. */
import { zip as texts } from './strings/zip'

export interface ZipFile {
  path: string
  size: number
  /** The checksum of the content, which shows whether two files differ. */
  crc: number
  bytes: () => Promise<Uint8Array<ArrayBuffer>>
}

const MAX_ENTRIES = 20_000
/** Larger files are listed but not unpacked. */
export const MAX_SHOWN_BYTES = 4 * 1024 * 1024

export class ZipError extends Error {}

export function readZip(buffer: ArrayBuffer): ZipFile[] {
  const view = new DataView(buffer)
  const end = findEnd(view)
  const count = Math.min(view.getUint16(end + 10, true), MAX_ENTRIES)
  let at = view.getUint32(end + 16, true)
  const files: ZipFile[] = []
  for (let index = 0; index < count; index += 1) {
    if (at + 46 > view.byteLength || view.getUint32(at, true) !== 0x02014b50) throw new ZipError(texts.damaged)
    const [nameLength, extraLength, commentLength] = [28, 30, 32].map((offset) => view.getUint16(at + offset, true)) as [number, number, number]
    const path = new TextDecoder().decode(new Uint8Array(buffer, at + 46, nameLength))
    const entry = {
      method: view.getUint16(at + 10, true),
      packed: view.getUint32(at + 20, true),
      size: view.getUint32(at + 24, true),
      offset: view.getUint32(at + 42, true),
    }
    if (!path.endsWith('/')) files.push({ path, size: entry.size, crc: view.getUint32(at + 16, true), bytes: () => unpack(buffer, entry) })
    at += 46 + nameLength + extraLength + commentLength
  }
  return files
}

/** The record at the end of a zip, which a comment may follow. */
function findEnd(view: DataView): number {
  const first = Math.max(0, view.byteLength - 22 - 0xffff)
  for (let at = view.byteLength - 22; at >= first; at -= 1) {
    if (view.getUint32(at, true) === 0x06054b50) return at
  }
  throw new ZipError(texts.none)
}

async function unpack(buffer: ArrayBuffer, entry: { method: number; packed: number; size: number; offset: number }): Promise<Uint8Array<ArrayBuffer>> {
  if (entry.size > MAX_SHOWN_BYTES) throw new ZipError(texts.tooLarge)
  const view = new DataView(buffer)
  const start = entry.offset + 30 + view.getUint16(entry.offset + 26, true) + view.getUint16(entry.offset + 28, true)
  const packed = new Uint8Array(buffer, start, entry.packed)
  if (entry.method === 0) return packed.slice()
  if (entry.method !== 8) throw new ZipError(texts.unknownMethod)
  const stream = new Blob([packed.slice()]).stream().pipeThrough(new DecompressionStream('deflate-raw'))
  return limited(stream)
}

/** Limits the unpacked size: the size in the header may be wrong, and a zip bomb would fill the memory. */
async function limited(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array<ArrayBuffer>[] = []
  let size = 0
  const reader = stream.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    size += value.length
    if (size > MAX_SHOWN_BYTES) {
      await reader.cancel()
      throw new ZipError(texts.tooLarge)
    }
    parts.push(value)
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer())
}

/** The text of a file; undefined for a picture or a program. */
export function asText(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** Removes the top folder from all paths if it contains all files, as registries do. */
export function withoutTopFolder<T extends { path: string }>(files: T[]): T[] {
  const first = files[0]?.path.split('/')[0]
  const common = first && files.every((file) => file.path.startsWith(`${first}/`))
  return common ? files.map((file) => ({ ...file, path: file.path.slice(first.length + 1) })) : files
}
