/**
 * Starts the real server with a temporary folder and a scripted model, and a browser.
 *
 *   SAVOIR_BIN         the binary (default: `savoir` in ../target/debug)
 *   SAVOIR_UI_DIRECT=1 use the app inside the binary instead of ui/dist
 *   SAVOIR_UI_SERVICES=1 a database and a bucket of their own on the servers of scripts/services.sh, instead of a folder
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core'
// @ts-expect-error: a script without types
import { startShim } from '../scripts/shim.mjs'
import { startModel, type ScriptedModel } from './model.ts'

export const ADMIN = { email: 'ada@example.org', password: 'correct horse' }
const UI = fileURLToPath(new URL('..', import.meta.url))
const FLAGS = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
]

export interface App {
  /** The address of the app. */
  url: string
  /** The address of the server behind it. */
  server: string
  setupToken: string
  model: ScriptedModel
  /** A request to the API with the administrator's token. */
  call: (method: string, path: string, body?: unknown) => Promise<Response>
  /** Log of the server. */
  log: () => string
  close: () => Promise<void>
}

export function binary(): string {
  const found = [process.env.SAVOIR_BIN, join(UI, '../target/debug/savoir')].find((path) => path && existsSync(path))
  assert.ok(found, 'no savoir binary: build it with `cargo build`, or set SAVOIR_BIN')
  return found
}

export interface AppOptions {
  /** Without an administrator. */
  fresh?: boolean
  model?: boolean
  args?: string[]
  env?: Record<string, string>
  /** Always the app inside the binary: the address must be the one that the server knows. */
  direct?: boolean
}

/** Starts a server; unless `fresh`, with the administrator `ADMIN`. */
export async function startApp(options: AppOptions = {}): Promise<App> {
  const folder = mkdtempSync(join(tmpdir(), 'savoir-ui-'))
  const model = await startModel()
  const env: Record<string, string> = { PATH: process.env.PATH ?? '', HOME: folder, XDG_CONFIG_HOME: join(folder, 'config') }
  if (options.model !== false) Object.assign(env, { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'test', OPENAI_MODEL: 'scripted' })
  const storage = process.env.SAVOIR_UI_SERVICES ? await newStorage() : undefined
  Object.assign(env, storage?.env, options.env)
  const args = ['serve', '--address', '127.0.0.1:0', '--data', join(folder, 'data'), '--rate-limit', 'off', ...(storage?.args ?? []), ...(options.args ?? [])]
  const child = spawn(binary(), args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let log = ''
  child.stdout.on('data', (part) => (log += String(part)))
  child.stderr.on('data', (part) => (log += String(part)))
  const server = await until(() => / at (http:\/\/127\.0\.0\.1:\d+)/.exec(log)?.[1], () => `the server did not start:\n${log}`)
  const setupToken = await until(() => /setup#token=(\S+)/.exec(log)?.[1], () => `no setup link:\n${log}`)
  await until(async () => (await fetch(`${server}/api/v1/chat/models`).catch(() => undefined)) !== undefined)
  const shim = process.env.SAVOIR_UI_DIRECT || options.direct ? undefined : ((await startShim({ server })) as { url: string; close: () => void })

  let token = ''
  if (!options.fresh) {
    await createAdmin(server, setupToken)
    const login = await fetch(`${server}/api/v1/auth/login`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(ADMIN) })
    assert.equal(login.status, 200, 'log in as the administrator')
    token = ((await login.json()) as { token: string }).token
  }
  return {
    url: shim?.url ?? server,
    server,
    setupToken,
    model,
    log: () => log,
    call: (method, path, body) =>
      fetch(server + path, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(body instanceof FormData || body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        body: body instanceof FormData ? body : body === undefined ? undefined : JSON.stringify(body),
      }),
    close: async () => {
      shim?.close()
      model.close()
      await stop(child)
      storage?.remove()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

interface SharedStorage {
  args: string[]
  env: Record<string, string>
  remove: () => void
}

/** A new database on PostgreSQL and a new bucket on S3. */
async function newStorage(): Promise<SharedStorage> {
  const { SAVOIR_TEST_POSTGRES: postgres, SAVOIR_TEST_S3: s3 } = process.env
  assert.ok(postgres && s3, 'PostgreSQL and S3 must run: make test-web-services')
  const name = `web_${randomUUID().replaceAll('-', '')}`
  const sql = (statement: string): void => void execFileSync('psql', ['--quiet', '--dbname', postgres, '--command', statement], { stdio: ['ignore', 'ignore', 'inherit'] })
  sql(`CREATE DATABASE ${name}`)
  const bucket = name.replace('_', '-')
  const made = await fetch(`${s3}/${bucket}`, { method: 'PUT' })
  assert.equal(made.status, 200, 'create a bucket')
  return {
    args: ['--database', postgres.replace(/[^/]*$/, name), '--storage', `s3://${bucket}`],
    env: { AWS_ENDPOINT_URL: s3, AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test', AWS_REGION: 'us-east-1', NO_PROXY: '127.0.0.1' },
    remove: () => sql(`DROP DATABASE ${name} WITH (FORCE)`),
  }
}

/** Servers without the JSON setup have a form. */
async function createAdmin(server: string, token: string): Promise<void> {
  const headers = { 'content-type': 'application/json', 'x-savoir-app': '1' }
  const made = await fetch(`${server}/api/v1/setup`, { method: 'POST', headers, body: JSON.stringify({ token, ...ADMIN }) })
  if (made.ok) return
  const form = new URLSearchParams({ token, ...ADMIN, again: ADMIN.password })
  const posted = await fetch(`${server}/setup`, { method: 'POST', body: form })
  assert.ok(posted.ok, `create the administrator: ${made.status}, ${posted.status}`)
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), 5000)
  await ended
  clearTimeout(timer)
}

/** Waits until `check` returns something. */
export async function until<T>(check: () => T | Promise<T>, problem = () => 'timed out', limit = 20_000): Promise<NonNullable<T>> {
  const end = Date.now() + limit
  for (;;) {
    const value = await check()
    if (value) return value as NonNullable<T>
    if (Date.now() > end) throw new Error(problem())
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

let browser: Browser | undefined

/** A browser, one for all tests of a file. */
export async function startBrowser(): Promise<Browser> {
  browser ??= await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: FLAGS })
  return browser
}

export async function stopBrowser(): Promise<void> {
  await browser?.close()
  browser = undefined
}

export interface Tab {
  page: Page
  context: BrowserContext
  /** Errors of the console, policy violations and requests to other origins. */
  problems: string[]
}

export interface TabOptions {
  theme?: 'light' | 'dark'
  width?: number
  height?: number
  touch?: boolean
}

/** A new tab with its own cookies. Test that `problems` is empty at the end. */
export async function openTab(app: App, options: TabOptions = {}): Promise<Tab> {
  const context = await (await startBrowser()).newContext({
    viewport: { width: options.width ?? 1280, height: options.height ?? 800 },
    colorScheme: options.theme ?? 'light',
    hasTouch: options.touch ?? false,
    reducedMotion: 'reduce',
    permissions: ['clipboard-read', 'clipboard-write'],
  })
  const page = await context.newPage()
  page.setDefaultTimeout(10_000)
  const problems: string[] = []
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`))
  page.on('console', (message) => {
    // The browser logs each failed request; tests of errors expect those.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) problems.push(`console: ${message.text()}`)
  })
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url())
    if (origin !== new URL(app.url).origin && protocol.startsWith('http')) problems.push(`request to ${origin}`)
  })
  return { page, context, problems }
}

/** A tab that is logged in and shows `path`. */
export async function openLoggedIn(app: App, path = '/', options: TabOptions = {}): Promise<Tab> {
  const tab = await openTab(app, options)
  const answer = await tab.context.request.post(`${app.url}/api/v1/auth/session`, { data: ADMIN, headers: { 'x-savoir-app': '1' } })
  assert.equal(answer.status(), 200, 'log in')
  await tab.page.goto(app.url + path)
  await tab.page.locator('h1').first().waitFor()
  return tab
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Fails if axe finds a serious or critical problem. */
export async function checkAccessible(page: Page, what = page.url()): Promise<void> {
  // Evaluated in the page's world: a script element would be refused by the policy.
  await page.evaluate(axe)
  const found = await page.evaluate(async () => {
    const { violations } = await (window as unknown as { axe: { run: (where: Document, options: object) => Promise<{ violations: AxeViolation[] }> } }).axe.run(document, {
      resultTypes: ['violations'],
    })
    interface AxeViolation { id: string; impact: string; help: string; nodes: { target: string[]; failureSummary: string }[] }
    return violations
      .filter((violation) => violation.impact === 'serious' || violation.impact === 'critical')
      .map((violation) => `${violation.id}: ${violation.help}\n${violation.nodes.slice(0, 5).map((node) => `  ${node.target.join(' ')}\n    ${node.failureSummary.replaceAll('\n', '\n    ')}`).join('\n')}`)
  })
  assert.deepEqual(found, [], `accessibility of ${what}`)
}

/** Fails if the page can be scrolled sideways. */
export async function checkFits(page: Page, what = page.url()): Promise<void> {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
  assert.ok(over <= 0, `${what} is ${over} px too wide`)
}

/** Checks a page in both themes and at two widths, and keeps pictures in test-output/. */
export async function checkLooks(app: App, name: string, path: string, ready: (page: Page) => Promise<unknown>): Promise<void> {
  for (const theme of ['light', 'dark'] as const) {
    for (const width of [1280, 360]) {
      const { page, context, problems } = await openLoggedIn(app, path, { theme, width, height: 800 })
      await ready(page)
      await picture(page, `${name}-${theme}-${width}`)
      await checkAccessible(page, `${name}, ${theme}, ${width} px`)
      await checkFits(page, `${name}, ${width} px`)
      assert.deepEqual(problems, [], `problems of ${name}`)
      await context.close()
    }
  }
}

export async function picture(page: Page, name: string, fullPage = false): Promise<void> {
  const folder = join(UI, 'test-output')
  mkdirSync(folder, { recursive: true })
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage })
}
