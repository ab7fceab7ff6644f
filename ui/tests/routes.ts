/** The paths of all pages, read from the source: routes.ts imports files that only the bundler understands. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'

const source = readFileSync(new URL('../src/routes.ts', import.meta.url), 'utf8')

export const routes: string[] = [...source.matchAll(/\bpath: '([^']+)'/g)].map(([, path]) => path ?? '')

assert.ok(routes.includes('/') && routes.length > 3, 'routes.ts can be read')
