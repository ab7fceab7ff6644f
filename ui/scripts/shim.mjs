// Serves dist/ in front of a running server, so that the app can be tried without compiling it in.
//
//   node scripts/shim.mjs [--port 7879] [--server http://127.0.0.1:7878]
//
// Cookie sessions are passed through. A server without them gets them here: the shim logs in with
// the token API and keeps the token, so that the browser never sees it.
import { createReadStream, existsSync, statSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { randomBytes } from 'node:crypto'
import { extname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'

const DIST = fileURLToPath(new URL('../dist/', import.meta.url))
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' }
/** The headers of the pages, as the server sends them. */
export const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self' data: blob:; " +
  "font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; " +
  "object-src 'none'; frame-ancestors 'none'"
/** Paths that are never pages, even below a path that the app and the API share. */
const API = /^\/(api|openapi\.json|mcp|\.well-known|healthz|metrics|registry\/(api|artifacts|index|\.well-known)\b)|\/(SKILL\.md|skill\.zip)$/

export async function startShim({ server, port = 0, native }) {
  const sessions = new Map()
  native ??= await hasSessions(server)
  const listener = createServer((req, res) => {
    handle(req, res, { server, sessions, native }).catch((error) => send(res, 502, { detail: String(error) }))
  })
  await new Promise((resolve) => listener.listen(port, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${listener.address().port}`, close: () => { listener.closeAllConnections(); listener.close() } }
}

async function hasSessions(server) {
  const answer = await fetch(`${server}/api/v1/auth/session`)
  return answer.ok
}

/** Without a token, the form of the first visit answers 403 while there is no administrator. */
async function hasAdmin(server) {
  const answer = await fetch(`${server}/setup`, { headers: { accept: 'text/html' } })
  return answer.status !== 403
}

async function handle(req, res, context) {
  const { pathname } = new URL(req.url, context.server)
  const file = join(DIST, normalize(pathname))
  if (req.method === 'GET' && pathname !== '/' && file.startsWith(DIST) && existsSync(file) && statSync(file).isFile()) return sendFile(res, file)
  const page = req.method === 'GET' && req.headers.accept?.includes('text/html') && !API.test(pathname)
  if (page) return sendFile(res, join(DIST, 'index.html'))
  if (!context.native && (await emulate(req, res, pathname, context))) return
  proxy(req, res, context)
}

function sendFile(res, file) {
  res.writeHead(200, {
    'content-type': TYPES[extname(file)] ?? 'application/octet-stream',
    'content-security-policy': POLICY, 'x-content-type-options': 'nosniff', 'cache-control': 'no-cache',
    'x-frame-options': 'DENY', 'referrer-policy': 'no-referrer', 'cross-origin-opener-policy': 'same-origin',
  })
  createReadStream(file).pipe(res)
}

function proxy(req, res, { server, sessions, native }) {
  const headers = { ...req.headers, host: new URL(server).host }
  const token = native ? undefined : sessions.get(cookie(req))?.token
  if (token) headers.authorization = `Bearer ${token}`
  if (!native) delete headers.origin
  else if (headers.origin) headers.origin = server
  const forward = request(new URL(req.url, server), { method: req.method, headers }, (answer) => {
    res.writeHead(answer.statusCode, answer.headers)
    answer.pipe(res)
  })
  forward.on('error', (error) => (res.headersSent ? res.end() : send(res, 502, { detail: String(error) })))
  res.on('close', () => forward.destroy())
  req.pipe(forward)
}

/** Sessions for servers that have only tokens. Returns whether the request was answered. */
async function emulate(req, res, pathname, { server, sessions }) {
  if (pathname === '/api/v1/auth/session') {
    if (req.method === 'GET') {
      send(res, 200, { user: sessions.get(cookie(req))?.user ?? null, setup: !(await hasAdmin(server)), registration: 'local', providers: [] })
    } else if (req.method === 'POST') {
      const answer = await fetch(`${server}/api/v1/auth/login`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: await read(req) })
      open(res, sessions, answer.status, await answer.json())
    } else {
      sessions.delete(cookie(req))
      send(res, 204)
    }
    return true
  }
  if (pathname === '/api/v1/setup' && req.method === 'POST') {
    const { token, email, password } = JSON.parse(await read(req))
    const form = new URLSearchParams({ token, email, password, again: password })
    const made = await fetch(`${server}/setup`, { method: 'POST', body: form })
    if (!made.ok) return send(res, made.status, { detail: 'The link is not valid.' }), true
    const answer = await fetch(`${server}/api/v1/auth/login`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ email, password }) })
    open(res, sessions, answer.status, await answer.json())
    return true
  }
  if (pathname === '/api/v1/auth/password' && req.method === 'POST') {
    const session = sessions.get(cookie(req))
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${session?.token}` }
    const answer = await fetch(`${server}${pathname}`, { method: 'POST', headers, body: await read(req) })
    const body = await answer.json()
    if (answer.ok && session) session.token = body.token
    send(res, answer.status, answer.ok ? { success: true } : body)
    return true
  }
  return false
}

function open(res, sessions, status, body) {
  if (status !== 200) return send(res, status, body)
  const id = randomBytes(16).toString('hex')
  sessions.set(id, body)
  send(res, 200, { user: body.user }, { 'set-cookie': `shim=${id}; HttpOnly; SameSite=Strict; Path=/` })
}

function cookie(req) {
  return /(?:^|; )shim=([0-9a-f]+)/.exec(req.headers.cookie ?? '')?.[1]
}

async function read(req) {
  let text = ''
  for await (const part of req) text += part
  return text
}

function send(res, status, body, headers = {}) {
  res.writeHead(status, { 'content-type': 'application/json', ...headers })
  res.end(body === undefined ? undefined : JSON.stringify(body))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const option = (name, fallback) => { const at = process.argv.indexOf(name); return at < 0 ? fallback : process.argv[at + 1] }
  const shim = await startShim({ port: Number(option('--port', '7879')), server: option('--server', 'http://127.0.0.1:7878') })
  console.log(shim.url)
}
