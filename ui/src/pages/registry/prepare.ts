/** Reads a dropped zip, folder or SKILL.md, so that a person sees what would be published. */
import { ApiError } from '$lib/api/client'
import { readFrontmatter } from '$lib/frontmatter'
import { registry } from '$lib/strings/registry'
import { asText, readZip, withoutTopFolder, ZipError, type ZipFile } from '$lib/unzip'
import { zip } from '$lib/zip'

const t = registry.publish

export interface Prepared {
  archive: Blob
  filename: string
  files: ZipFile[]
  /** Hidden files of a folder, such as `.git`, which are left out. */
  hidden: number
  text: string
  name: string
  version: string
  description: string
  permissions: string[]
  dependencies: string[]
}

export interface Dropped {
  path: string
  file: File
}

export async function prepare(dropped: Dropped[]): Promise<Prepared> {
  const only = dropped.length === 1 ? dropped[0] : undefined
  if (only && /\.zip$/i.test(only.path)) return read(only.file, only.file.name, 0)
  if (only && /\.md$/i.test(only.path)) return read(await zip([{ path: 'SKILL.md', file: only.file }]), 'skill.zip', 0)
  const shown = dropped.filter(({ path }) => !path.split('/').some((part) => part.startsWith('.')))
  const folder = shown[0]?.path.split('/')[0] ?? 'skill'
  return read(await zip(shown), `${folder}.zip`, dropped.length - shown.length)
}

async function read(archive: Blob, filename: string, hidden: number): Promise<Prepared> {
  const files = withoutTopFolder(unpack(await archive.arrayBuffer()))
  const text = await skillText(files)
  const front = readFrontmatter(text)
  const value = (key: string): string => front?.fields.find((field) => field.key === key)?.value ?? ''
  return {
    archive, filename, files, hidden, text,
    name: value('name'), version: value('version'), description: value('description'),
    permissions: listField(text, 'permissions'),
    dependencies: listField(text, 'dependencies'),
  }
}

function unpack(buffer: ArrayBuffer): ZipFile[] {
  try {
    return readZip(buffer)
  } catch (error) {
    if (error instanceof ZipError || error instanceof RangeError) throw new ApiError(-1, t.unreadable, { hint: t.unreadableHint })
    throw error
  }
}

async function skillText(files: ZipFile[]): Promise<string> {
  const found = files.find((file) => file.path.toLowerCase() === 'skill.md')
  if (!found) {
    const nested = files.filter((file) => /\/skill\.md$/i.test(file.path))
    if (nested.length > 1) throw new ApiError(-1, t.several, { hint: t.severalHint })
    throw new ApiError(-1, t.noSkill, { hint: t.noSkillHint })
  }
  const text = asText(await found.bytes())
  if (text === undefined) throw new ApiError(-1, t.unreadable, { hint: t.unreadableHint })
  return text
}

/** The entries of a list of texts in the frontmatter, in one line or in several. */
export function listField(text: string, key: string): string[] {
  const field = readFrontmatter(text)?.fields.find((one) => one.key === key)
  if (!field || field.style !== 'nested') return []
  const raw = text.slice(field.valueStart, field.end).trim()
  const items = raw.startsWith('[') ? raw.replace(/^\[|\]\s*(#.*)?$/g, '').split(',') : [...raw.matchAll(/^\s*-\s+(.*)$/gm)].map((found) => found[1] ?? '')
  return items.map(unquote).filter((item) => item && !/^[{[]|:\s/.test(item))
}

function unquote(item: string): string {
  const text = item.trim().replace(/\s+#.*$/, '')
  return /^(["']).*\1$/.test(text) ? text.slice(1, -1) : text
}

/** Files as the difference of versions compares them. */
export function facts(files: ZipFile[]): { path: string; size: number; sha256: string }[] {
  return files.map((file) => ({ path: file.path, size: file.size, sha256: `${file.size}:${file.crc}` }))
}
