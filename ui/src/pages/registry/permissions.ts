/** Describes permissions such as `network:read:api.example.org` as sentences, for servers that send no description. */
import type { Permission } from '$lib/components/PermissionList.svelte'
import { registry } from '$lib/strings/registry'
import type { IndexLine, VersionDetail } from './types'

const t = registry.phrases
type Level = NonNullable<Permission['level']>

const INTERPRETERS = new Set(['sh', 'bash', 'zsh', 'fish', 'dash', 'python', 'python3', 'node', 'deno', 'bun', 'ruby', 'perl', 'php', 'pwsh', 'env', 'xargs', 'sudo'])
const SECRET_NAME = /(key|token|secret|passw|credential)/i
const SECRET_FILE = /(^|\/)(\.ssh|\.aws|\.gnupg|\.kube|\.netrc|\.npmrc|\.git-credentials|\.env[^/]*|id_[^/]*|credentials)(\/|$)|\.(pem|key|p12|pfx|kdbx)$/

export function describe(permission: string): Permission | undefined {
  const [domain, level, scope] = partsOf(permission)
  if (level === 'none') return undefined
  const [phrase, weight] = phraseOf(domain, level, scope)
  return { permission, phrase, level: weight }
}

const LEVELS = new Set(['read', 'write', 'none', 'execute', 'control', 'connect'])

/** Domain, level and scope. A part that is not a level is the scope: `network:api.example.org`. */
function partsOf(permission: string): [domain: string, level: string, scope: string] {
  const [domain = '', level = '', ...rest] = permission.split(':')
  return !level || LEVELS.has(level) ? [domain, level, rest.join(':')] : [domain, '', [level, ...rest].join(':')]
}

function phraseOf(domain: string, level: string, scope: string): [string, Level] {
  const writes = level === 'write'
  switch (domain) {
    case 'shell':
      return programs(scope)
    case 'filesystem':
      return files(writes, scope)
    case 'network':
      return [writes ? t.send(scope || t.anyHost) : t.fetch(scope || t.anyHost), writes || !scope ? 'high' : 'low']
    case 'desktop':
      return [t.desktop, 'high']
    case 'mcp':
      return scope ? [t.mcp(scope), 'medium'] : [t.anyMcp, 'high']
    case 'env':
      return scope ? variable(scope) : [t.anyVariable, 'high']
    case 'database':
      return [writes ? t.writeDatabase(scope || t.anyDatabase) : t.readDatabase(scope || t.anyDatabase), writes ? 'medium' : 'low']
    default:
      return [[domain, level, scope].filter(Boolean).join(':'), 'medium']
  }
}

function programs(scope: string): [string, Level] {
  if (!scope) return [t.programs, 'high']
  const names = scope.split(',').map((name) => name.trim())
  const free = names.find((name) => INTERPRETERS.has(name))
  return free ? [t.interpreter(scope), 'high'] : [t.program(scope), 'medium']
}

function files(writes: boolean, scope: string): [string, Level] {
  const where = scope.endsWith('/**') ? t.below(scope.slice(0, -3)) : scope
  const phrase = writes ? t.writeFiles(where || t.anyWrite) : t.readFiles(where || t.anyRead)
  const outside = !scope || /^(\/|~|\.\.)/.test(scope) || SECRET_FILE.test(scope)
  return [phrase, outside ? 'high' : writes ? 'medium' : 'low']
}

function variable(name: string): [string, Level] {
  return SECRET_NAME.test(name) ? [t.secret(name), 'high'] : [t.variable(name), 'low']
}

const ORDER = { high: 0, medium: 1, low: 2 }

export function describeAll(permissions: string[]): Permission[] {
  const known = permissions.map(describe).filter((entry) => entry !== undefined)
  return known.toSorted((a, b) => ORDER[a.level ?? 'low'] - ORDER[b.level ?? 'low'])
}

/** The permissions of a version, from the server's response, or else from the index and the manifest. */
export function permissionsOf(version: VersionDetail, line?: IndexLine): Permission[] {
  const declared = version.permissions ?? describeAll(line?.permissions ?? strings(version.manifest.permissions))
  // A secret that is declared and required is one permission.
  const known = new Set(declared.map((entry) => entry.permission))
  const all = new Map([...declared, ...secrets(version.manifest).filter((entry) => !known.has(entry.permission))].map((entry) => [entry.permission, entry]))
  return [...all.values()].toSorted((a, b) => ORDER[a.level ?? 'low'] - ORDER[b.level ?? 'low'])
}

function secrets(manifest: Record<string, unknown>): Permission[] {
  const needs = manifest.requirements as { env_vars?: unknown } | undefined
  return strings(needs?.env_vars).map((name) => ({
    permission: `env:read:${name}`, phrase: registry.safety.secrets(name), reason: registry.safety.secretReason, level: 'high' as const,
  }))
}

export function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : []
}

/** The kinds of permissions, such as network and files. */
export function domainsOf(permissions: string[] = []): string[] {
  return [...new Set(permissions.filter((text) => text.split(':')[1] !== 'none').map((text) => text.split(':')[0] ?? ''))]
}

export interface RightsChange {
  added: Permission[]
  removed: Permission[]
}

export function compareRights(before: Permission[], after: Permission[]): RightsChange {
  const has = (list: Permission[], one: Permission): boolean => list.some((other) => other.permission === one.permission)
  return { added: after.filter((one) => !has(before, one)), removed: before.filter((one) => !has(after, one)) }
}

export interface FileChange {
  path: string
  kind: 'added' | 'removed' | 'changed'
  before?: number
  after?: number
}

interface FileFact {
  path: string
  sha256: string
  size: number
}

export function compareFiles(before: FileFact[], after: FileFact[]): FileChange[] {
  const old = new Map(before.map((file) => [file.path, file]))
  const changes: FileChange[] = []
  for (const file of after) {
    const was = old.get(file.path)
    if (!was) changes.push({ path: file.path, kind: 'added', after: file.size })
    else if (was.sha256 !== file.sha256) changes.push({ path: file.path, kind: 'changed', before: was.size, after: file.size })
    old.delete(file.path)
  }
  for (const file of old.values()) changes.push({ path: file.path, kind: 'removed', before: file.size })
  return changes.toSorted((a, b) => a.path.localeCompare(b.path))
}
