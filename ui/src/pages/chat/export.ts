/** A conversation as a Markdown file. */
import { date } from '$lib/format'
import { chat as text } from '$lib/strings/chat'
import type { Conversation, Entry } from './conversation.svelte'

export function toMarkdown(conversation: Conversation, names: Map<string, string>): string {
  const title = conversation.title.replace(/\s+/g, ' ').slice(0, 120) || text.fresh
  const body = conversation.entries.map((entry) => section(entry, names, conversation.foreign?.email))
  return [`# ${title}`, ...body].join('\n\n') + '\n'
}

function section(entry: Entry, names: Map<string, string>, owner?: string): string {
  const who = entry.role === 'user' ? (owner ?? text.you) : text.assistant
  const lines = [`## ${who}, ${date(entry.at)}`, entry.text || (entry.error?.message ?? '')]
  if (entry.state === 'stopped') lines.push(`*${text.stoppedStored}*`)
  const calls = entry.parts.flatMap((part) => (part.kind === 'tool' ? [part.call] : []))
  if (calls.length) lines.push(calls.map((call) => `- \`${call.tool}\`: ${text.tool.states[call.state]}`).join('\n'))
  if (entry.sources.length) {
    const sources = entry.sources.map((source, index) => {
      const name = source.filename ?? names.get(source.doc_id) ?? text.sources.unknown
      return `${index + 1}. ${name}, ${text.sources.passage(source.chunk_index)}`
    })
    lines.push(`### ${text.sources.label}`, sources.join('\n'))
  }
  return lines.filter(Boolean).join('\n\n')
}

/** A name for the file that every system takes. */
export function fileName(title: string): string {
  const plain = title.toLowerCase().normalize('NFKD').replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-+|-+$/g, '').slice(0, 60)
  return `${plain || 'conversation'}.md`
}
