// Builds the app into a temporary folder and fails if dist/ differs from it: npm run check-dist
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { build } from 'vite'

const ui = fileURLToPath(new URL('..', import.meta.url))
const dist = join(ui, 'dist')
const fresh = mkdtempSync(join(tmpdir(), 'savoir-dist-'))
const problems = []

/** The files of a folder without the compressed copies, whose bytes depend on the version of node. */
function list(folder) {
  const names = readdirSync(folder, { recursive: true }).map(String)
  return new Set(names.filter((name) => !/\.(br|gz)$/.test(name) && statSync(join(folder, name)).isFile()))
}

function checkCopy(name, extension, decompress) {
  try {
    if (!decompress(readFileSync(join(dist, name + extension))).equals(readFileSync(join(dist, name)))) problems.push(`${name}${extension} holds something else than ${name}`)
  } catch (error) {
    if (error.code !== 'ENOENT') problems.push(`${name}${extension} cannot be read: ${error.message}`)
    else if (/\.(js|css)$/.test(name) && statSync(join(dist, name)).size > 1024) problems.push(`${name}${extension} is missing`)
  }
}

try {
  await build({ root: ui, logLevel: 'error', build: { outDir: fresh, emptyOutDir: true } })
  const [have, want] = [list(dist), list(fresh)]
  for (const name of want) {
    if (!have.has(name)) problems.push(`${name} is missing`)
    else if (!readFileSync(join(dist, name)).equals(readFileSync(join(fresh, name)))) problems.push(`${name} differs`)
  }
  for (const name of have) {
    if (!want.has(name)) problems.push(`${name} is left over`)
    checkCopy(name, '.gz', gunzipSync)
    checkCopy(name, '.br', brotliDecompressSync)
  }
} finally {
  rmSync(fresh, { recursive: true, force: true })
}

if (problems.length) {
  console.error(`error: ui/dist is not what the sources build:\n${problems.slice(0, 20).map((line) => `  ${line}`).join('\n')}`)
  console.error('hint: run `npm ci && npm run build` in ui/ and commit ui/dist')
  process.exit(1)
}
console.log('ui/dist equals a fresh build')
