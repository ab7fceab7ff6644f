/**
 * A provider for OpenID Connect on this machine: its login page asks for an address, and `fault` makes it
 * answer wrongly.
 */
import { createHash, createSign, generateKeyPairSync, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export const CLIENT = { id: 'savoir-test', secret: 'a secret' }
/** It names no method for the secret, so that the default of the standard applies. */
const BASIC = `Basic ${Buffer.from(`${CLIENT.id}:${new URLSearchParams({ '': CLIENT.secret }).toString().slice(1)}`).toString('base64')}`

/** What the provider does wrong. */
export type Fault = 'nonce' | 'signature' | 'audience' | 'expired' | 'unverified' | 'no-signature' | 'issuer'

export interface Provider {
  url: string
  fault?: Fault
  /** How many tokens it gave. */
  tokens: number
  close: () => void
}

interface Login {
  subject: string
  email: string
  nonce: string
  challenge: string
  redirect: string
}

const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

export async function startProvider(): Promise<Provider> {
  const keys = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const others = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const logins = new Map<string, Login>()
  const provider: Provider = { url: '', tokens: 0, close: () => server.close() }

  function idToken(login: Login): string {
    const { fault, url } = provider
    const now = Math.floor(Date.now() / 1000)
    const header = { alg: fault === 'no-signature' ? 'none' : 'RS256', kid: 'key', typ: 'JWT' }
    const claims = {
      iss: fault === 'issuer' ? 'https://other.example' : url,
      aud: fault === 'audience' ? 'another-client' : CLIENT.id,
      sub: login.subject,
      exp: fault === 'expired' ? now - 3600 : now + 300,
      iat: now,
      nonce: fault === 'nonce' ? 'another' : login.nonce,
      email: login.email,
      email_verified: fault !== 'unverified',
    }
    const text = `${base64(header)}.${base64(claims)}`
    if (fault === 'no-signature') return `${text}.`
    const key = fault === 'signature' ? others.privateKey : keys.privateKey
    return `${text}.${createSign('RSA-SHA256').update(text).sign(key, 'base64url')}`
  }

  function json(answer: ServerResponse, body: unknown, status = 200): void {
    answer.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }

  async function respond(request: IncomingMessage, answer: ServerResponse): Promise<void> {
    const { url } = provider
    const asked = new URL(request.url ?? '/', url)
    const query = asked.searchParams
    if (asked.pathname === '/.well-known/openid-configuration') {
      json(answer, { issuer: url, authorization_endpoint: `${url}/authorize`, token_endpoint: `${url}/token`, jwks_uri: `${url}/keys` })
    } else if (asked.pathname === '/keys') {
      json(answer, { keys: [{ ...keys.publicKey.export({ format: 'jwk' }), kid: 'key', use: 'sig', alg: 'RS256' }] })
    } else if (asked.pathname === '/authorize') {
      const wrong = query.get('client_id') !== CLIENT.id || query.get('response_type') !== 'code' || query.get('code_challenge_method') !== 'S256'
      if (wrong) return void answer.writeHead(400).end('wrong request')
      const hidden = [...query].map(([name, value]) => `<input type="hidden" name="${name}" value="${value.replaceAll('"', '&quot;')}">`).join('')
      answer.writeHead(200, { 'content-type': 'text/html' }).end(
        `<!doctype html><title>Provider</title><form action="/allow">${hidden}<label>Address <input name="email"></label><button>Allow</button><button name="deny" value="1">Deny</button></form>`,
      )
    } else if (asked.pathname === '/allow') {
      const back = new URL(query.get('redirect_uri') ?? '')
      back.searchParams.set('state', query.get('state') ?? '')
      if (query.get('deny')) back.searchParams.set('error', 'access_denied')
      else {
        const code = randomUUID()
        const email = query.get('email') ?? ''
        logins.set(code, { subject: `id of ${email}`, email, nonce: query.get('nonce') ?? '', challenge: query.get('code_challenge') ?? '', redirect: query.get('redirect_uri') ?? '' })
        back.searchParams.set('code', code)
      }
      answer.writeHead(303, { location: back.href }).end()
    } else if (asked.pathname === '/token') {
      let body = ''
      for await (const part of request) body += String(part)
      const form = new URLSearchParams(body)
      const login = logins.get(form.get('code') ?? '')
      logins.delete(form.get('code') ?? '')
      const challenge = createHash('sha256').update(form.get('code_verifier') ?? '').digest('base64url')
      const right = login && request.headers.authorization === BASIC && challenge === login.challenge && form.get('redirect_uri') === login.redirect
      if (!right) return json(answer, { error: 'invalid_grant' }, 400)
      provider.tokens += 1
      json(answer, { token_type: 'Bearer', access_token: randomUUID(), expires_in: 300, id_token: idToken(login) })
    } else answer.writeHead(404).end()
  }

  const server = createServer((request, answer) => void respond(request, answer).catch((error: unknown) => answer.writeHead(500).end(String(error))))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  provider.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return provider
}
