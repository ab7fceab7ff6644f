/** A small router: real URLs through the History API, pages loaded when they are opened. */
import type { Component } from 'svelte'

export interface Page {
  /** A path such as `/skills/:name`; the last part may be `*rest`. */
  path: string
  title: string
  /** The entry of the sidebar that is highlighted, and linked once a page has its path. */
  section?: Section
  /** The page needs no session, such as the login page. */
  open?: boolean
  /** The page uses the whole width and height, as an editor or a canvas does. */
  wide?: boolean
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  load: () => Promise<{ default: Component<any> }>
}

export type Section =
  | 'start' | 'skills' | 'runs' | 'chat' | 'knowledge' | 'workflows' | 'registry' | 'catalog' | 'admin' | 'machine'

export interface Match {
  page: Page
  params: Record<string, string>
}

/** Where the app is now. Read `location.query` in a page to react to its filters. */
export const location = $state({ path: '/', query: new URLSearchParams(), hash: '' })

type Guard = (to: string) => boolean | Promise<boolean>
let guard: Guard | undefined
let shown = ''

function read(): void {
  location.path = decodePath(window.location.pathname)
  location.query = new URLSearchParams(window.location.search)
  location.hash = window.location.hash
  shown = window.location.href
}

function decodePath(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
}

/** Adds a guard that can prevent leaving the page, for example with unsaved changes. Returns a function that removes it. */
export function guardLeaving(ask: Guard): () => void {
  guard = ask
  return () => {
    if (guard === ask) guard = undefined
  }
}

/** Whether the page may hold text that is not saved. */
export function isGuarded(): boolean {
  return guard !== undefined
}

/** Opens a path of the app. */
export async function navigate(to: string, options: { replace?: boolean; force?: boolean } = {}): Promise<void> {
  const url = new URL(to, window.location.href)
  if (url.pathname !== window.location.pathname && !options.force && guard && !(await guard(to))) return
  if (options.replace || url.href === window.location.href) history.replaceState(null, '', url)
  else history.pushState(null, '', url)
  const other = url.pathname !== location.path
  read()
  if (other) window.scrollTo(0, 0)
}

/** Changes filters in the URL; empty values are removed. Does not add to the history. */
export function setQuery(changes: Record<string, string | undefined>): void {
  const url = new URL(window.location.href)
  for (const [key, value] of Object.entries(changes)) {
    if (value) url.searchParams.set(key, value)
    else url.searchParams.delete(key)
  }
  history.replaceState(null, '', url)
  read()
}

/** Finds the page of a path. */
export function match(pages: Page[], path: string): Match | undefined {
  for (const page of pages) {
    const params = matchPath(page.path, path)
    if (params) return { page, params }
  }
  return undefined
}

export function matchPath(pattern: string, path: string): Record<string, string> | undefined {
  const want = pattern.split('/')
  const have = path.split('/')
  const params: Record<string, string> = {}
  for (const [index, part] of want.entries()) {
    if (part.startsWith('*')) {
      params[part.slice(1)] = have.slice(index).map(decode).join('/')
      return have.length > index ? params : undefined
    }
    const value = have[index]
    if (value === undefined) return undefined
    if (part.startsWith(':') && value) params[part.slice(1)] = decode(value)
    else if (part !== value) return undefined
  }
  return want.length === have.length ? params : undefined
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** Follows clicks on links to the app itself without loading the document again. */
function follow(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0) return
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
  const link = (event.target as Element | null)?.closest?.('a')
  if (!link || link.target || link.hasAttribute('download') || link.origin !== window.location.origin) return
  const href = link.getAttribute('href') ?? ''
  if (!href.startsWith('/') || href.startsWith('/api/') || link.hasAttribute('data-external')) return
  event.preventDefault()
  void navigate(href)
}

async function back(): Promise<void> {
  if (guard && shown && new URL(shown).pathname !== window.location.pathname) {
    const to = window.location.href
    // The browser has already changed the URL: restore it, ask the guard, and navigate if the guard allows it.
    history.pushState(null, '', shown)
    if (!(await guard(to))) return
    guard = undefined
    history.pushState(null, '', to)
  }
  read()
}

/** Starts the router; called once. */
export function start(): void {
  read()
  window.addEventListener('popstate', () => void back())
  document.addEventListener('click', follow)
}
