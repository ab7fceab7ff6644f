/** The keys of the editor. */
import { copyLines, deleteLines, indent, indentLines, moveLines, outdent, toggleComment, type Content } from './commands'
import type { Editor } from './editor.svelte'

/** A key with its modifiers, such as `ctrl+shift+k`. The command key counts as Ctrl. */
export function keyName(event: KeyboardEvent): string {
  const modifiers = [event.ctrlKey || event.metaKey ? 'ctrl' : '', event.altKey ? 'alt' : '', event.shiftKey ? 'shift' : '']
  return [...modifiers.filter(Boolean), event.key.toLowerCase()].join('+')
}

type Command = (content: Content) => Content | undefined

/** What a key does to the text; undefined for keys that the browser handles. */
export function editCommand(editor: Editor, key: string): Command | undefined {
  const commands: Record<string, Command> = {
    tab: indent,
    'shift+tab': outdent,
    'ctrl+]': indentLines,
    'ctrl+[': outdent,
    'ctrl+/': (content) => toggleComment(content, editor.language),
    'ctrl+shift+k': deleteLines,
    'alt+arrowup': (content) => moveLines(content, -1),
    'alt+arrowdown': (content) => moveLines(content, 1),
    'alt+shift+arrowup': (content) => copyLines(content, -1),
    'alt+shift+arrowdown': (content) => copyLines(content, 1),
  }
  return commands[key]
}
