/** The account that is logged in. The session itself is an HttpOnly cookie that scripts cannot read. */
import { tick } from 'svelte'
import { api, whenExpired } from './api/client'
import type { SessionInfo, User } from './api/types'
import { isGuarded } from './router.svelte'

class Session {
  info = $state<SessionInfo>()
  /** The session ended while the app was open. */
  expired = $state(false)
  /** It ended on a page with text that is not saved: the page stays below the login. */
  held = $state(false)

  get user(): User | null {
    return this.info?.user ?? null
  }
  get admin(): boolean {
    return this.user?.role === 'admin'
  }

  /** Whether this is `savoir ui`, which has one user (the one who started it) and no accounts. */
  get machine(): boolean {
    return this.info?.machine === true
  }

  async load(): Promise<void> {
    this.info = await api.get<SessionInfo>('/api/v1/auth/session')
  }

  async login(email: string, password: string): Promise<void> {
    const before = this.user?.id
    await api.post('/api/v1/auth/session', { email, password })
    this.expired = false
    const info = await api.get<SessionInfo>('/api/v1/auth/session')
    // The page of one account is not shown to another one.
    if (this.held && info.user?.id !== before && this.info) {
      this.info.user = null
      await tick()
    }
    this.held = false
    this.info = info
  }

  async register(email: string, password: string): Promise<void> {
    await api.post('/api/v1/auth/register', { email, password })
    await this.login(email, password)
  }

  async setup(token: string, email: string, password: string): Promise<void> {
    await api.post('/api/v1/setup', { token, email, password })
    await this.load()
  }

  async logout(): Promise<void> {
    await api.delete('/api/v1/auth/session')
    this.expired = false
    this.held = false
    if (this.info) this.info.user = null
  }

  expire(): void {
    if (!this.info?.user) return
    this.expired = true
    if (isGuarded()) this.held = true
    else this.info.user = null
  }
}

export const session = new Session()
whenExpired(() => session.expire())
