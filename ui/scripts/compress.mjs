// Writes a .gz and a .br file beside each text file of dist/ that is larger than 1 KiB.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const TEXT = /\.(js|css|html|svg|json|txt|webmanifest)$/
const dist = new URL('../dist/', import.meta.url).pathname

for (const name of readdirSync(dist, { recursive: true }).map(String).sort()) {
  if (!TEXT.test(name)) continue
  const file = join(dist, name)
  const content = readFileSync(file)
  if (content.length <= 1024) continue
  const gzip = gzipSync(content, { level: 9 })
  // The tenth byte names the system that compressed; a fixed value gives the same file everywhere.
  gzip[9] = 255
  writeFileSync(`${file}.gz`, gzip)
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: content.length }
  writeFileSync(`${file}.br`, brotliCompressSync(content, { params }))
}
