// Writes the types of the API from the document of a running server: SAVOIR_URL=http://127.0.0.1:7878 npm run types
import { execFileSync } from 'node:child_process'

const from = process.argv[2] ?? `${process.env.SAVOIR_URL ?? 'http://127.0.0.1:7878'}/openapi.json`
execFileSync('npx', ['openapi-typescript', from, '-o', 'src/lib/api/schema.d.ts'], { stdio: 'inherit' })
