// Prints the gzip size of what the first page needs and of all files, and fails over the budgets.
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

const KIB = 1024
const BUDGETS = { shell: 100 * KIB, all: 450 * KIB }
const dist = new URL('../dist/', import.meta.url).pathname

const size = (name) => {
  const file = join(dist, name)
  return statSync(existsSync(`${file}.gz`) ? `${file}.gz` : file).size
}
const index = readFileSync(join(dist, 'index.html'), 'utf8')
const first = [...index.matchAll(/(?:src|href)="\/(assets\/[^"]+|theme\.js|favicon\.svg)"/g)].map((found) => found[1])
const all = readdirSync(dist, { recursive: true }).map(String).filter((name) => /\.(js|css|svg|html)$/.test(name))
const sums = {
  shell: ['index.html', ...new Set(first)].reduce((sum, name) => sum + size(name), 0),
  all: all.reduce((sum, name) => sum + size(name), 0),
}
let failed = false
for (const [name, sum] of Object.entries(sums)) {
  const over = sum > BUDGETS[name]
  failed ||= over
  console.log(`${name}: ${(sum / KIB).toFixed(1)} KiB gzip of ${BUDGETS[name] / KIB}${over ? ' - over the budget' : ''}`)
}
if (process.argv.includes('--files')) {
  for (const name of all.sort((a, b) => size(b) - size(a)).slice(0, 25)) console.log(`${(size(name) / KIB).toFixed(1).padStart(7)}  ${name}`)
}
process.exitCode = failed ? 1 : 0
