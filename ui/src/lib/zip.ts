/** Writes a zip without compression, so that a dropped folder can be imported as one file. */
const TABLE = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1
  return value >>> 0
})

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) crc = (crc >>> 8) ^ (TABLE[(crc ^ byte) & 0xff] ?? 0)
  return (crc ^ 0xffffffff) >>> 0
}

/** The numbers of a header, each with its width in bytes. */
function header(...fields: [value: number, width: 2 | 4][]): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(fields.reduce((sum, [, width]) => sum + width, 0)))
  let at = 0
  for (const [value, width] of fields) {
    if (width === 2) view.setUint16(at, value, true)
    else view.setUint32(at, value, true)
    at += width
  }
  return new Uint8Array(view.buffer)
}

export async function zip(files: { path: string; file: Blob }[]): Promise<Blob> {
  const parts: Uint8Array<ArrayBuffer>[] = []
  const directory: Uint8Array<ArrayBuffer>[] = []
  const sum = (chunks: Uint8Array[]): number => chunks.reduce((total, chunk) => total + chunk.length, 0)
  for (const { path, file } of files) {
    const name = new TextEncoder().encode(path)
    const bytes = new Uint8Array(await file.arrayBuffer())
    const offset = sum(parts)
    // Version 2.0, names in UTF-8, stored, no time; then checksum, sizes and the length of the name.
    const common: [number, 2 | 4][] = [
      [20, 2], [0x0800, 2], [0, 2], [0, 2], [0x21, 2], [crc32(bytes), 4], [bytes.length, 4], [bytes.length, 4], [name.length, 2], [0, 2],
    ]
    parts.push(header([0x04034b50, 4], ...common), name, bytes)
    directory.push(header([0x02014b50, 4], [20, 2], ...common, [0, 2], [0, 2], [0, 2], [0, 4], [offset, 4]), name)
  }
  const start = sum(parts)
  const end = header([0x06054b50, 4], [0, 2], [0, 2], [files.length, 2], [files.length, 2], [sum(directory), 4], [start, 4], [0, 2])
  return new Blob([...parts, ...directory, end], { type: 'application/zip' })
}
