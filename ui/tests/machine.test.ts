/** `savoir ui`: the pages about the skills of this machine, with the real commands behind them. */
import assert from 'node:assert/strict'
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { after, before, describe, test } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import { binary, checkAccessible, checkFits, picture, startBrowser, stopBrowser, until } from './helpers.ts'

const skill = (name: string, description: string, body = 'Count the lines.'): string =>
  `---\nname: ${name}\ndescription: ${description}\nlicense: MIT\n---\n\n# ${name}\n\n${body}\n`

const DIST = fileURLToPath(new URL('../dist', import.meta.url))

/** Serves the app from dist/ instead of the copy inside the binary. */
async function serveDist(context: BrowserContext): Promise<void> {
  if (process.env.SAVOIR_UI_DIRECT) return
  await context.route('**/*', (route) => {
    const { pathname } = new URL(route.request().url())
    const file = join(DIST, pathname)
    if (pathname !== '/' && existsSync(file) && statSync(file).isFile()) return route.fulfill({ path: file })
    if (!route.request().isNavigationRequest() || pathname === '/enter' || pathname.startsWith('/api/')) return route.continue()
    return route.fulfill({ path: join(DIST, 'index.html') })
  })
}

interface Machine {
  folder: string
  project: string
  run: (...args: string[]) => string
  open: (path: string, options?: { width?: number; theme?: 'light' | 'dark' }) => Promise<{ page: Page; context: BrowserContext; problems: string[] }>
  close: () => Promise<void>
}

/** A home folder with many skills of Claude Code, and one that Savoir installed. */
function prepare(): Machine {
  const folder = mkdtempSync(join(tmpdir(), 'savoir-machine-'))
  const [home, project] = [join(folder, 'home'), join(folder, 'project')]
  for (const path of [home, project]) mkdirSync(path, { recursive: true })
  for (let number = 0; number < 40; number += 1) {
    const name = `helper-${String(number).padStart(2, '0')}`
    mkdirSync(join(home, '.claude/skills', name), { recursive: true })
    writeFileSync(join(home, '.claude/skills', name, 'SKILL.md'), skill(name, `Helps with matter ${number}. ${'Use it when somebody asks for help. '.repeat(8)}`))
  }
  const env = { PATH: process.env.PATH ?? '', HOME: home, XDG_CONFIG_HOME: join(home, '.config'), XDG_DATA_HOME: join(home, '.local/share') }
  const children: ChildProcess[] = []

  /** Every start prints a link that works once. */
  async function link(): Promise<string> {
    const child = spawn(binary(), ['ui', '--no-open'], { cwd: project, env, stdio: ['ignore', 'pipe', 'pipe'] })
    children.push(child)
    let printed = ''
    child.stdout.on('data', (part) => (printed += String(part)))
    child.stderr.on('data', (part) => (printed += String(part)))
    return until(() => /(http:\/\/127\.0\.0\.1:\d+\/enter\?token=\S+)/.exec(printed)?.[1], () => `savoir ui did not start:\n${printed}`)
  }

  return {
    folder,
    project,
    run: (...args) => execFileSync(binary(), args, { cwd: project, env, encoding: 'utf8' }),
    open: async (path, options = {}) => {
      const context = await (await startBrowser()).newContext({
        viewport: { width: options.width ?? 1280, height: 800 }, colorScheme: options.theme ?? 'light', reducedMotion: 'reduce',
      })
      await serveDist(context)
      const page = await context.newPage()
      page.setDefaultTimeout(20_000)
      const problems: string[] = []
      page.on('pageerror', (error) => problems.push(`error: ${error.message}`))
      page.on('console', (message) => {
        if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) problems.push(`console: ${message.text()}`)
      })
      const entrance = await link()
      // The redirect is followed by hand, because the browser would not ask `serveDist` for its target.
      const entered = await context.request.get(entrance, { maxRedirects: 0 })
      await page.goto(new URL(entered.headers().location ?? '', entrance).href)
      await page.getByRole('heading', { name: 'This machine' }).waitFor()
      assert.ok(!page.url().includes('token') && !page.url().includes('key='), 'no secret stays in the address')
      if (path !== '/machine') await page.goto(new URL(path, entrance).href)
      return { page, context, problems }
    },
    close: async () => {
      for (const child of children) child.kill('SIGTERM')
      await Promise.all(children.map((child) => (child.exitCode === null ? new Promise((resolve) => child.once('exit', resolve)) : undefined)))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

describe('machine', () => {
  let machine: Machine
  before(() => {
    machine = prepare()
    mkdirSync(join(machine.folder, 'source'))
    writeFileSync(join(machine.folder, 'source/SKILL.md'), skill('line-count', 'Counts lines. Use when somebody asks how long a text is.'))
    machine.run('install', '../source', '--agent', 'claude-code', '-y')
  })
  after(async () => {
    await machine.close()
    await stopBrowser()
  })

  test('pages_are_accessible_and_fit_in_both_themes', async () => {
    for (const theme of ['light', 'dark'] as const) {
      const { page, context, problems } = await machine.open('/machine', { theme })
      for (const width of [1280, 360]) {
        await page.setViewportSize({ width, height: 800 })
        for (const [tab, ready] of [
          ['Skills', 'line-count'], ['Context', 'tokens are used'], ['Approvals', 'Nothing is approved'], ['Secrets', 'No secrets'], ['Runs', 'No tool ran yet'],
        ] as const) {
          await page.getByRole('tab', { name: tab }).click()
          await page.getByText(ready).first().waitFor()
          await picture(page, `machine-${tab.toLowerCase()}-${theme}-${width}`)
          await checkAccessible(page, `machine, ${tab}, ${theme}, ${width} px`)
          await checkFits(page, `machine, ${tab}, ${width} px`)
        }
      }
      assert.deepEqual(problems, [])
      await context.close()
    }
  })

  test('context_shows_what_changes_without_some_skills', async () => {
    const { page, context, problems } = await machine.open('/machine?show=context')
    await page.getByText('Disable skills that you do not need').waitFor()
    const rows = page.getByRole('list', { name: 'Skills' }).getByRole('listitem')
    for (let number = 0; number < 3; number += 1) {
      await rows.filter({ hasText: `helper-0${number}` }).first().getByLabel('Leave out').check()
      await page.getByText(number ? `Without these ${number + 1} skills` : 'Without this skill').waitFor()
    }
    await page.getByText(/→ whole/).first().waitFor()
    await picture(page, 'machine-context-without')
    await checkAccessible(page, 'context without some skills')
    await page.getByRole('button', { name: 'Reset' }).click()
    await page.getByText('Disable skills that you do not need').waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('modified_source_is_shown_as_a_difference_and_updated', async () => {
    const changed = skill('line-count', 'Counts lines. Use when somebody asks how long a text is.', 'Count the lines and the words.')
    writeFileSync(join(machine.folder, 'source/SKILL.md'), changed)
    const { page, context, problems } = await machine.open('/machine/skills/line-count')
    await page.getByRole('button', { name: 'Look for an update' }).click()
    await page.getByText('+Count the lines and the words.').waitFor()
    await picture(page, 'machine-update')
    await checkAccessible(page, 'an update of a skill')
    await page.setViewportSize({ width: 360, height: 800 })
    await checkFits(page, 'an update of a skill, 360 px')
    await page.getByRole('button', { name: 'Update', exact: true }).click()
    await page.getByText('Updated.').waitFor()
    await page.getByRole('button', { name: 'Look for an update' }).click()
    await page.getByText('This is the newest version.').waitFor()
    await page.getByRole('button', { name: 'Scan now' }).click()
    await page.getByText('Nothing suspicious was found.').waitFor()
    assert.deepEqual(problems, [])
    await context.close()
  })

  test('shadowed_skill_with_another_text_is_listed_with_its_copies', async () => {
    for (const [folder, words] of [['home', 'untidy'], ['project', 'messy']] as const) {
      mkdirSync(join(machine.folder, folder, '.claude/skills/tidy-text'), { recursive: true })
      writeFileSync(join(machine.folder, folder, '.claude/skills/tidy-text/SKILL.md'), skill('tidy-text', `Tidies text. Use when a text is ${words}.`))
    }
    const { page, context, problems } = await machine.open('/machine')
    await page.getByText('Skills with the same name: tidy-text').first().waitFor()
    await page.getByText(/claude-code uses the first one/).waitFor()
    assert.equal(await page.getByRole('link', { name: /^tidy-text/ }).count(), 1)
    await checkAccessible(page, 'a shadowed skill')
    assert.deepEqual(problems, [])
    await context.close()
  })
})
