/** The whole app against hostile content and hostile sites, in a real browser. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { BrowserContext, Page } from 'playwright-core'
import { build } from 'vite'
import { crawl, routeOf, visit } from './crawl.ts'
import { routes } from './routes.ts'
import { ADMIN, openLoggedIn, openTab, startApp, startBrowser, stopBrowser, until, type App } from './helpers.ts'
import { PAYLOADS } from './payloads.ts'

/** The compiler of the tests names functions with this helper, which pages do not have. */
const NAMES = 'globalThis.__name = (named) => named'

/** Notes everything that a payload could reach. */
async function watch(context: BrowserContext, page: Page, origin: string): Promise<string[]> {
  const found: string[] = []
  await context.addInitScript(NAMES)
  await context.exposeFunction('pwned', (what: unknown) => void found.push(`a script ran: ${String(what)} at ${page.url()}`))
  context.on('request', (request) => {
    const { protocol, origin: to } = new URL(request.url())
    if (/^(https?|wss?|ftp):$/.test(protocol) && to !== origin) found.push(`a request to ${request.url()} from ${page.url()}`)
  })
  context.on('page', (other) => found.push(`a window was opened: ${other.url()}`))
  page.on('dialog', (dialog) => {
    // Leaving an editor with changes asks; scripts that show a message do not.
    if (dialog.type() !== 'beforeunload') found.push(`a dialog: ${dialog.message()}`)
    void dialog.accept()
  })
  page.on('websocket', (socket) => found.push(`a socket: ${socket.url()}`))
  return found
}

/** Moves, focuses and toggles everything in the page, and lists addresses that run something. */
async function provoke(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const bad: string[] = []
    const seen = (root: ParentNode): void => {
      for (const element of root.querySelectorAll('*')) {
        if (element.shadowRoot) seen(element.shadowRoot)
        for (const name of ['mouseover', 'mouseenter', 'pointerenter', 'focusin', 'toggle', 'animationstart', 'error', 'load']) element.dispatchEvent(new Event(name))
        for (const { name, value } of element.attributes) {
          if (/^on/i.test(name)) bad.push(`${element.tagName} has ${name}=${value}`)
          // eslint-disable-next-line no-control-regex
          if (/^(xlink:)?href$|^(src|srcset|action|formaction|data|poster|ping|background|srcdoc)$/i.test(name) && /^[\s\u0000-\u0020]*(javascript|vbscript|data:text)/i.test(value.replace(/[\t\n\r]/g, ''))) bad.push(`${element.tagName} has ${name}=${value}`)
        }
        if (/^(IFRAME|OBJECT|EMBED|BASE|FRAME|APPLET)$/.test(element.tagName)) bad.push(`there is ${element.tagName}`)
        if (element.tagName === 'SCRIPT' && !/^\/(assets\/|theme\.js)/.test(element.getAttribute('src') ?? '')) bad.push('there is a foreign SCRIPT')
      }
    }
    seen(document)
    return bad
  })
}

const settle = (page: Page): Promise<void> => page.waitForTimeout(120)

/** A script that sets `cleaner` to the module that renders Markdown. */
async function bundleCleaner(): Promise<string> {
  const entry = fileURLToPath(new URL('../src/lib/markdown.ts', import.meta.url))
  const built = await build({ configFile: false, logLevel: 'silent', build: { write: false, lib: { entry, formats: ['iife'], name: 'cleaner' } } })
  const [result] = Array.isArray(built) ? built : [built]
  assert.ok(result && 'output' in result)
  return `${result.output[0].code}; globalThis.cleaner = cleaner`
}

describe('layers', () => {
  after(stopBrowser)

  test('there_are_at_least_40_payloads', () => {
    assert.ok(PAYLOADS.length >= 40)
    assert.equal(new Set(PAYLOADS).size, PAYLOADS.length)
  })

  test('markdown_is_clean_even_without_a_policy', async () => {
    const context = await (await startBrowser()).newContext()
    const page = await context.newPage()
    // An empty page that allows everything: only the cleaning protects it.
    await context.route('http://plain.test/', (route) => route.fulfill({ contentType: 'text/html', body: '<!doctype html><main></main>' }))
    const found = await watch(context, page, 'http://plain.test')
    await page.goto('http://plain.test/')
    await page.evaluate(await bundleCleaner())
    for (const payload of PAYLOADS) {
      for (const text of [payload, `Text ${payload} text`, `- item\n\n  ${payload}`, `| a |\n|---|\n| ${payload.replaceAll('\n', ' ')} |`, `# ${payload.replaceAll('\n', ' ')}`, `\`\`\`html\n${payload}\n\`\`\``]) {
        await page.evaluate((markdown) => {
          const { renderMarkdown } = (window as unknown as { cleaner: { renderMarkdown: (text: string) => string } }).cleaner
          const main = document.querySelector('main')
          if (!main) throw new Error('the page is damaged')
          main.innerHTML = renderMarkdown(markdown)
          for (const link of main.querySelectorAll<HTMLElement>('a:not([target]), button, summary')) link.click()
        }, text)
        assert.deepEqual(await provoke(page), [], payload)
      }
      assert.equal(page.url().replace(/#.*/, ''), 'http://plain.test/', `${payload} leaves the page`)
    }
    await settle(page)
    assert.deepEqual(found, [])
    await context.close()
  })

  test('links_in_markdown_tell_the_other_site_nothing', async () => {
    const page = await (await startBrowser()).newPage()
    await page.evaluate(await bundleCleaner())
    const html = await page.evaluate(() => (window as unknown as { cleaner: { renderMarkdown: (text: string) => string } }).cleaner.renderMarkdown('[a](https://example.org) [b](/admin) ![c](https://example.org/c.png)'))
    assert.match(html, /<a [^>]*href="https:\/\/example\.org"/)
    assert.match(html, /rel="noopener noreferrer nofollow"/)
    assert.match(html, /target="_blank"/)
    assert.ok(!html.includes('/admin'), 'links into the app are removed')
    assert.ok(!html.includes('<img'))
    await page.close()
  })
})

describe('app with hostile content', () => {
  let app: App
  /** Addresses of pages, found by following links. */
  let places: string[]

  before(async () => {
    app = await startApp()
    await seed(app)
    places = await crawl(app)
  })
  after(async () => {
    await app.close()
    await stopBrowser()
  })

  test('policy_alone_stops_every_payload', async () => {
    const { page, context } = await openLoggedIn(app, '/account')
    const found = await watch(context, page, new URL(app.url).origin)
    for (const payload of PAYLOADS.filter((payload) => payload.startsWith('<') && !/http-equiv|^<base/.test(payload))) {
      await page.evaluate((html) => {
        const box = document.createElement('div')
        document.body.append(box)
        box.innerHTML = html
        box.remove()
      }, payload)
    }
    await page.evaluate(() => {
      const script = document.createElement('script')
      script.textContent = 'pwned(2)'
      document.body.append(script)
      const link = document.createElement('a')
      link.href = 'javascript:pwned(3)'
      document.body.append(link)
      link.click()
      setTimeout('pwned(6)')
    })
    // Requests that the policy refuses are reported as failed, but never sent.
    await settle(page)
    assert.deepEqual(found.filter((line) => !line.startsWith('a request')), [])
    const sent = await page.evaluate(() => fetch('https://evil.example/').then(() => 'sent', () => 'refused'))
    assert.equal(sent, 'refused')
    await context.close()
  })

  test('stored_payloads_run_on_no_page', async () => {
    const { page, context } = await openLoggedIn(app, '/')
    const found = await watch(context, page, new URL(app.url).origin)
    for (const place of places) {
      await visit(page, app.url + place)
      assert.deepEqual(await provoke(page), [], place)
    }
    assert.deepEqual(found, [])
    await context.close()
  })

  test('skills_runs_and_chats_show_the_hostile_text_as_text', async () => {
    const { page, context } = await openLoggedIn(app, '/account')
    const wanted = ['/skills/:name', '/runs/:id', '/chat/:id'].filter((route) => routes.includes(route))
    for (const route of wanted) {
      const counts: number[] = []
      for (const place of places.filter((place) => routeOf(place) === route)) {
        await visit(page, app.url + place)
        const text = await page.locator('main').innerText()
        counts.push(PAYLOADS.filter((_, index) => text.includes(`marker-${index}.`)).length)
      }
      // Some payloads never end, and what follows them is removed with them.
      assert.ok(Math.max(...counts) >= 40, `pages of ${route} show the text after ${counts.join(', ')} payloads`)
    }
    for (const route of ['/knowledge/:kb', '/workflows/:id']) {
      if (routes.includes(route)) assert.ok(places.some((place) => routeOf(place) === route), `a page of ${route} was visited`)
    }
    await context.close()
  })

  test('hostile_answers_run_on_no_page', async () => {
    // Each text gets one payload; the second round gives it another one.
    for (const start of [0, 37]) {
      const { page, context } = await openLoggedIn(app, '/')
      const found = await watch(context, page, new URL(app.url).origin)
      let next = start
      const poison = (value: unknown, key = ''): unknown => {
        if (Array.isArray(value)) return value.map((item) => poison(item, key))
        if (value && typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, poison(item, name)]))
        return typeof value === 'string' && POISONED.test(key) ? `${value} ${PAYLOADS[next++ % PAYLOADS.length]}` : value
      }
      let changed = 0
      await page.route(/\/(api\/v1|registry\/api\/v1)\//, async (route) => {
        const answer = await route.fetch().catch(() => undefined)
        const isJson = answer?.headers()['content-type']?.includes('json')
        if (!answer || !isJson || route.request().url().includes('/auth/session')) return answer ? route.fulfill({ response: answer }) : route.abort()
        changed += 1
        return route.fulfill({ response: answer, body: JSON.stringify(poison(await answer.json())) })
      })
      for (const place of places) {
        await visit(page, app.url + place)
        assert.deepEqual(await provoke(page), [], place)
      }
      assert.ok(changed > places.length / 2, 'answers were changed')
      assert.deepEqual(found, [])
      await context.close()
    }
  })

  test('payloads_in_the_address_run_on_no_page', async () => {
    const { page, context } = await openLoggedIn(app, '/')
    const found = await watch(context, page, new URL(app.url).origin)
    const patterns = routes.filter((route) => /:|\*/.test(route) && !/setup|login/.test(route))
    for (const [index, payload] of PAYLOADS.filter((_, at) => at % 6 === 0).entries()) {
      const pattern = patterns[index % patterns.length] ?? '/admin/:part'
      const value = encodeURIComponent(payload)
      await visit(page, `${app.url}${pattern.replace(/[:*][a-z]+/gi, value)}?q=${value}&next=${value}#${value}`)
      assert.deepEqual(await provoke(page), [], payload)
    }
    for (const to of ['//evil.example/', 'https://evil.example/', 'javascript:pwned(4)', '/\\evil.example/']) {
      await visit(page, `${app.url}/login?next=${encodeURIComponent(to)}&return=${encodeURIComponent(to)}&to=${encodeURIComponent(to)}`)
      assert.equal(new URL(page.url()).origin, new URL(app.url).origin)
    }
    assert.deepEqual(found, [])
    await context.close()
  })
})

/** Fields that people or other servers fill. */
const POISONED = /name|title|text|description|content|message|detail|label|email|error|hint|summary|body|output|instructions|model|provider|path|url|author|license|tags?|phrase|reason|note|query|question|answer|source|reasoning|scopes/i

/** Fills the server with payloads through its API. */
async function seed(app: App): Promise<void> {
  const body = PAYLOADS.map((payload, index) => `${payload}\n\nmarker-${index}.`).join('\n\n')
  const hostile = PAYLOADS[7] ?? ''
  const front = (name: string): string => `---\nname: ${name}\ndescription: ${JSON.stringify(`Use it when ${hostile} ${PAYLOADS[0]}`)}\n---\n`
  await must(app, 'POST', '/api/v1/skills', { name: 'hostile', content: front('hostile') + body })
  await must(app, 'POST', '/api/v1/skills', { name: 'asks', content: `${front('asks')}Answer the question.` })
  app.model.script = [body]
  app.model.pace = 0
  const ran = await must(app, 'POST', '/api/v1/skills/asks/run', { inputs: {} })
  assert.match(ran, /onerror/, 'the answer of the model arrives')
  for (const [index, part] of [PAYLOADS.slice(0, 30), PAYLOADS.slice(30)].entries()) {
    await must(app, 'POST', '/api/v1/chat/completions', { session_id: `hostile-${index}`, message: part.join('\n\n'), model: 'openai:scripted' })
  }
  const base = JSON.parse(await must(app, 'POST', '/api/v1/knowledge', { name: 'hostile', description: hostile })) as { id: string }
  const form = new FormData()
  form.append('file', new Blob([body], { type: 'text/markdown' }), 'hostile.md')
  await must(app, 'POST', `/api/v1/knowledge/${base.id}/upload`, form)
  await must(app, 'POST', '/api/v1/workflows', {
    name: 'Hostile', description: `${PAYLOADS[0]} ${hostile}`,
    graph_data: { nodes: [{ id: 'start', type: 'start', data: { label: hostile } }, { id: 'end', type: 'end', data: { label: PAYLOADS[11] } }], edges: [{ id: 'e', source: 'start', target: 'end' }] },
  })
  await must(app, 'POST', '/api/v1/auth/tokens', { name: hostile })
}

async function must(app: App, method: string, path: string, body: unknown): Promise<string> {
  const answer = await app.call(method, path, body)
  const text = await answer.text()
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text.slice(0, 300)}`)
  return text
}

describe('session and headers', () => {
  let app: App
  let foreign: { url: string; close: () => void }
  before(async () => {
    app = await startApp()
    foreign = await startForeign()
  })
  after(async () => {
    foreign.close()
    await app.close()
    await stopBrowser()
  })

  test('login_leaves_no_token_in_storage_or_address', async () => {
    const { page, context, problems } = await openTab(app)
    const bodies: Promise<string>[] = []
    page.on('response', (answer) => {
      if (/\/auth\/(session|password)/.test(answer.url())) bodies.push(answer.text().catch(() => ''))
    })
    await page.goto(`${app.url}/account`)
    await page.getByLabel('Email address').fill(ADMIN.email)
    await page.getByLabel('Password').fill(ADMIN.password)
    await page.getByRole('button', { name: 'Log in' }).click()
    await page.getByRole('heading', { name: 'Your account' }).waitFor()
    const cookies = await context.cookies()
    const session = cookies.find(({ name }) => /session|shim/.test(name))
    assert.ok(session, 'there is a session cookie')
    assert.ok(session.httpOnly, 'scripts cannot read it')
    assert.equal(session.sameSite, 'Strict')
    const kept = await page.evaluate(async () => JSON.stringify({
      local: { ...localStorage }, session: { ...sessionStorage }, cookie: document.cookie, name: window.name, state: history.state as unknown,
      databases: (await indexedDB.databases()).map(({ name }) => name), caches: 'caches' in window ? await caches.keys() : [], html: document.documentElement.outerHTML,
    }))
    assert.ok(!kept.includes(session.value), 'the page does not know the session')
    assert.ok(!/eyJ[A-Za-z0-9_-]{8}/.test(kept), 'no token is kept')
    assert.ok(!kept.includes(ADMIN.password), 'no password is kept')
    const parsed = JSON.parse(kept) as { local: Record<string, string>; session: Record<string, string>; cookie: string; databases: string[]; caches: string[] }
    assert.deepEqual([parsed.session, parsed.cookie, parsed.databases, parsed.caches], [{}, '', [], []])
    assert.ok(!/token|session|password/i.test(page.url()))
    for (const body of await Promise.all(bodies)) assert.ok(!/eyJ[A-Za-z0-9_-]{8}/.test(body), 'answers to the app have no token')
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('logging_out_ends_the_session_on_the_server', async () => {
    const { page, context } = await openLoggedIn(app, '/account')
    const before = await context.cookies()
    await page.getByRole('button', { name: 'Account', exact: true }).click()
    await page.getByRole('menuitem', { name: 'Log out' }).click()
    await page.getByRole('heading', { name: 'Log in to Savoir' }).waitFor()
    await context.clearCookies()
    await context.addCookies(before)
    const answer = await context.request.get(`${app.url}/api/v1/auth/tokens`)
    assert.equal(answer.status(), 401, 'a copied cookie is worthless')
    await context.close()
  })

  test('setup_token_leaves_the_address_and_the_history', async () => {
    const fresh = await startApp({ fresh: true, model: false })
    const { page, context } = await openTab(fresh)
    await page.goto(`${fresh.url}/setup#token=${fresh.setupToken}`)
    await page.getByLabel('Email address').waitFor()
    assert.ok(!page.url().includes(fresh.setupToken))
    await page.goto(`${fresh.url}/design`)
    await page.goBack()
    await page.locator('main').waitFor()
    assert.ok(!page.url().includes(fresh.setupToken))
    const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.referrer]))
    assert.ok(!kept.includes(fresh.setupToken))
    await context.close()
    await fresh.close()
  })

  test('pages_have_a_strict_policy_and_forbid_frames', async () => {
    // With the app in the binary, the headers of the server itself count.
    for (const base of new Set([app.url, ...(await isNative(app) ? [app.server] : [])])) {
      for (const path of ['/', '/login', '/admin/accounts', '/skills/x', '/nothing/here']) {
        const { headers } = await fetch(base + path, { headers: { accept: 'text/html' } })
        const policy = headers.get('content-security-policy') ?? ''
        const directive = (name: string): string | undefined => policy.split(';').map((part) => part.trim().split(' ')).find(([key]) => key === name)?.slice(1).join(' ')
        assert.equal(directive('script-src'), "'self'", `${base}${path}`)
        assert.equal(directive('style-src'), "'self'")
        assert.equal(directive('connect-src'), "'self'")
        assert.equal(directive('frame-ancestors'), "'none'")
        assert.equal(directive('object-src'), "'none'")
        assert.equal(directive('base-uri'), "'none'")
        assert.equal(directive('form-action'), "'self'")
        assert.ok(!/unsafe-eval|\*|https?:/.test(policy), policy)
        assert.ok(!(directive('img-src') ?? '').includes('http'))
        assert.equal(headers.get('x-frame-options'), 'DENY')
        assert.equal(headers.get('x-content-type-options'), 'nosniff')
        assert.equal(headers.get('referrer-policy'), 'no-referrer')
        assert.equal(headers.get('cross-origin-opener-policy'), 'same-origin')
      }
    }
  })

  test('other_site_cannot_frame_the_app', async () => {
    const { page, context } = await openLoggedIn(app, '/account')
    await page.goto(`${foreign.url}/frame?${encodeURIComponent(`${app.url}/admin`)}`)
    await page.waitForTimeout(500)
    const frame = page.frames().find((other) => other !== page.mainFrame())
    assert.ok(frame, 'there is a frame')
    assert.match(frame.url(), /^chrome-error:/, 'it does not show the app')
    await context.close()
  })

  test('other_site_cannot_act_or_read_with_the_session', async () => {
    const { page, context } = await openLoggedIn(app, '/account')
    // Another port of the same host gets SameSite cookies: the header has to protect the session.
    await page.addInitScript(NAMES)
    await page.goto(`${foreign.url}/empty`)
    const tried = await page.evaluate(async (url) => {
      const body = JSON.stringify({ name: 'stolen', scopes: ['admin'] })
      const attempt = (init: RequestInit, path = '/api/v1/auth/tokens'): Promise<string> =>
        fetch(url + path, { credentials: 'include', ...init }).then(async (answer) => `${answer.status} ${(await answer.text()).slice(0, 40)}`, () => 'refused')
      return {
        simple: await attempt({ method: 'POST', mode: 'no-cors', headers: { 'content-type': 'text/plain' }, body }),
        json: await attempt({ method: 'POST', headers: { 'content-type': 'application/json' }, body }),
        header: await attempt({ method: 'POST', headers: { 'content-type': 'application/json', 'x-savoir-app': '1' }, body }),
        remove: await attempt({ method: 'DELETE', headers: { 'x-savoir-app': '1' } }, '/api/v1/auth/session'),
        read: await attempt({}),
      }
    }, app.url)
    for (const name of ['json', 'header', 'remove', 'read'] as const) assert.equal(tried[name], 'refused', `${name}: ${tried[name]}`)
    // A form can send text without asking first.
    await page.goto(`${foreign.url}/form?${encodeURIComponent(`${app.url}/api/v1/auth/tokens`)}`)
    await page.waitForLoadState('networkidle').catch(() => {})
    const { tokens } = (await (await app.call('GET', '/api/v1/auth/tokens')).json()) as { tokens: { name: string }[] }
    assert.deepEqual(tokens.filter(({ name }) => name === 'stolen'), [], 'no token was created')
    await context.close()
  })

  test('cookie_without_the_header_changes_nothing', async () => {
    const { context } = await openLoggedIn(app, '/account')
    const made = await context.request.post(`${app.url}/api/v1/auth/tokens`, { data: { name: 'no header' } })
    assert.equal(made.status(), 403)
    const allowed = await context.request.post(`${app.url}/api/v1/auth/tokens`, { data: { name: 'with header' }, headers: { 'x-savoir-app': '1' } })
    assert.equal(allowed.status(), 201)
    await context.close()
  })

  test('downloads_have_types_that_browsers_do_not_run', async () => {
    const page = '<script>alert(1)</script>'
    await must(app, 'POST', '/api/v1/skills', { name: 'download', content: `---\nname: download\ndescription: Use it to download.\n---\n${page}` })
    const workflows = (await (await app.call('POST', '/api/v1/workflows', { name: 'w', graph_data: { nodes: [{ id: 'start', type: 'start', data: {} }], edges: [] } })).json()) as { id?: string }
    const paths = [
      '/api/v1/skills/download/export', '/api/v1/skills/download', '/api/v1/skills/download/file?path=SKILL.md', '/openapi.json', '/metrics', '/ready', '/api/v1/skills/catalog',
      `/api/v1/workflows/${workflows.id}/export`,
    ]
    let checked = 0
    for (const path of paths) {
      const answer = await app.call('GET', path)
      if (answer.status === 404) continue
      const type = answer.headers.get('content-type') ?? ''
      assert.ok(answer.ok, `${path}: ${answer.status}`)
      assert.match(type, /^(application\/(json|zip|octet-stream|gzip)|text\/(plain|markdown)|application\/vnd)/, `${path}: ${type}`)
      assert.equal(answer.headers.get('x-content-type-options'), 'nosniff', path)
      if (/zip|octet|gzip/.test(type)) assert.match(answer.headers.get('content-disposition') ?? '', /^attachment/, path)
      await answer.arrayBuffer()
      checked += 1
    }
    assert.ok(checked >= 5, `${checked} downloads were checked`)
    // Errors repeat what was asked for; they must not be pages.
    const error = await app.call('GET', `/api/v1/skills/${encodeURIComponent(page)}`)
    assert.match(error.headers.get('content-type') ?? '', /json/)
  })

  test('browser_saves_an_export_instead_of_showing_it', async () => {
    const { page, context } = await openLoggedIn(app, '/account')
    const saved = page.waitForEvent('download')
    await page.evaluate(() => {
      const link = document.createElement('a')
      link.href = '/api/v1/skills/download/export'
      document.body.append(link)
      link.click()
    })
    assert.match((await saved).suggestedFilename(), /\.(zip|md)$/)
    await context.close()
  })
})

async function isNative(app: App): Promise<boolean> {
  const answer = await fetch(app.server, { headers: { accept: 'text/html' } })
  return (answer.headers.get('content-type') ?? '').includes('html')
}

/** A site of somebody else, on another port. */
async function startForeign(): Promise<{ url: string; close: () => void }> {
  const server = createServer((request, response) => {
    const [path, query = ''] = (request.url ?? '').split('?')
    const target = decodeURIComponent(query)
    response.writeHead(200, { 'content-type': 'text/html' })
    if (path === '/frame') response.end(`<iframe src="${target}" width="800" height="600"></iframe>`)
    else if (path === '/form') {
      const value = '{"name":"stolen","scopes":["admin"],"x":"'
      response.end(`<form method="post" enctype="text/plain" action="${target}"><input name='${value}' value='"}'></form><script>document.forms[0].submit()</script>`)
    } else response.end('<p>empty</p>')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  await until(() => server.listening)
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
