/** The theme and other view preferences, stored in the browser. */
export type Theme = 'system' | 'light' | 'dark'

const THEME = 'savoir.theme'

export function readPreference(key: string): string | undefined {
  try {
    return localStorage.getItem(key) ?? undefined
  } catch {
    return undefined
  }
}

export function writePreference(key: string, value: string | undefined): void {
  try {
    if (value === undefined) localStorage.removeItem(key)
    else localStorage.setItem(key, value)
  } catch {
    // Storage is blocked: the preference lasts until the page is closed.
  }
}

function stored(): Theme {
  const theme = readPreference(THEME)
  return theme === 'light' || theme === 'dark' ? theme : 'system'
}

class ThemeStore {
  value = $state<Theme>(stored())

  set(theme: Theme): void {
    this.value = theme
    writePreference(THEME, theme === 'system' ? undefined : theme)
    if (theme === 'system') delete document.documentElement.dataset.theme
    else document.documentElement.dataset.theme = theme
  }

  /** Whether the page is dark now. */
  get dark(): boolean {
    if (this.value !== 'system') return this.value === 'dark'
    return window.matchMedia('(prefers-color-scheme: dark)').matches
  }
}

export const theme = new ThemeStore()
