/** The text editor without a browser: what keys do, how lines are coloured, undo and search. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as commands from '../src/lib/editor/commands.ts'
import { matching } from '../src/lib/editor/completion.ts'
import { changeBetween, History } from '../src/lib/editor/history.ts'
import { highlight } from '../src/lib/editor/languages.ts'
import { toLines } from '../src/lib/editor/lines.ts'
import { findAll, nextMatch, replacement, sameAsSelected } from '../src/lib/editor/search.ts'

/** A text with its selection: `a[b]c`, or `a|c` for a cursor. */
function content(marked: string): commands.Content {
  const start = marked.search(/[|«]/)
  const text = marked.replace(/[|«»]/g, '')
  return { text, start, end: marked.includes('»') ? marked.indexOf('»') - 1 : start }
}

function marked(now: commands.Content | undefined): string | undefined {
  if (!now) return
  const { text, start, end } = now
  return start === end ? `${text.slice(0, start)}|${text.slice(start)}` : `${text.slice(0, start)}«${text.slice(start, end)}»${text.slice(end)}`
}

describe('editor commands', () => {
  test('tab_indents_lines_of_a_selection_and_shift_tab_undoes_it', () => {
    assert.equal(marked(commands.indent(content('a|b'))), 'a  |b')
    const indented = commands.indent(content('x\n«a\n\nb»\ny'))
    assert.equal(indented.text, 'x\n  a\n\n  b\ny')
    assert.equal(commands.outdent(indented).text, 'x\na\n\nb\ny')
  })

  test('comment_is_added_to_all_lines_and_removed_again', () => {
    const added = commands.toggleComment(content('«a: 1\n  b: 2»'), 'skill')
    assert.equal(added?.text, '# a: 1\n  # b: 2')
    assert.equal(added && commands.toggleComment(added, 'skill')?.text, 'a: 1\n  b: 2')
    assert.equal(commands.toggleComment(content('|{}'), 'json'), undefined)
  })

  test('lines_move_copy_and_go_with_the_cursor', () => {
    assert.equal(marked(commands.moveLines(content('a\nb|\nc'), 1)), 'a\nc\nb|')
    assert.equal(marked(commands.moveLines(content('a\nb|\nc'), -1)), 'b|\na\nc')
    assert.equal(commands.moveLines(content('|a\nb'), -1), undefined)
    assert.equal(marked(commands.copyLines(content('a|\nb'), 1)), 'a\na|\nb')
    assert.equal(marked(commands.deleteLines(content('a\nb|\nc'))), 'a\n|c')
    assert.equal(marked(commands.deleteLines(content('a\nb|'))), 'a|')
  })

  test('enter_keeps_the_indentation_and_opens_brackets', () => {
    assert.equal(marked(commands.newLine(content('  a|b'))), '  a\n  |b')
    assert.equal(marked(commands.newLine(content('{|}'))), '{\n  |\n}')
    assert.equal(marked(commands.newLine(content('  [|'))), '  [\n    |')
  })

  test('brackets_get_a_partner_that_typing_steps_over', () => {
    const opened = commands.typePair(content('f|'), '(', '')
    assert.equal(marked(opened?.content), 'f(|)')
    assert.equal(opened?.open, ')')
    const closed = opened && commands.typePair(opened.content, ')', opened.open)
    assert.equal(marked(closed?.content), 'f()|')
    assert.equal(marked(commands.typePair(content('«x»'), '"', '')?.content), '"«x»"')
    assert.equal(commands.typePair(content('don|'), "'", ''), undefined, 'an apostrophe')
    assert.equal(commands.typePair(content('|word'), '(', ''), undefined, 'before a word')
    assert.equal(commands.typePair(content('f()|)'), ')', ''), undefined, 'a bracket that was not added')
    assert.equal(marked(commands.deletePair(content('f(|)'))), 'f|')
  })

  test('bracket_at_the_cursor_finds_its_partner', () => {
    assert.deepEqual(commands.matchingBrackets('{a: [1, {}]}', 0), [0, 11])
    assert.deepEqual(commands.matchingBrackets('{a: [1, {}]}', 12), [11, 0])
    assert.equal(commands.matchingBrackets('(', 1), undefined)
  })
})

describe('editor history', () => {
  test('typing_is_undone_together_and_a_pause_starts_a_new_step', () => {
    const history = new History()
    const at = (start: number): { start: number; end: number } => ({ start, end: start })
    history.add({ start: 0, removed: '', inserted: 'a' }, at(0), at(1), 0)
    history.add({ start: 1, removed: '', inserted: 'b' }, at(1), at(2), 100)
    history.add({ start: 2, removed: '', inserted: 'c' }, at(2), at(3), 2000)
    assert.deepEqual(history.undo('abc'), { text: 'ab', selection: at(2) })
    assert.deepEqual(history.undo('ab'), { text: '', selection: at(0) })
    assert.equal(history.undo(''), undefined)
    assert.deepEqual(history.redo(''), { text: 'ab', selection: at(2) })
    assert.deepEqual(history.redo('ab')?.text, 'abc')
  })

  test('change_between_two_texts_is_the_smallest', () => {
    assert.deepEqual(changeBetween('abc', 'abXc'), { start: 2, removed: '', inserted: 'X' })
    assert.deepEqual(changeBetween('aaa', 'aa'), { start: 2, removed: 'a', inserted: '' })
    assert.deepEqual(changeBetween('same', 'same'), { start: 4, removed: '', inserted: '' })
  })
})

describe('editor colours', () => {
  const kinds = (language: 'skill' | 'json', line: string, state = ''): string[] =>
    highlight(language, line, state).tokens.map(({ start, end, kind }) => `${kind}:${line.slice(start, end)}`)

  test('frontmatter_markdown_and_json_are_coloured', () => {
    assert.deepEqual(kinds('skill', 'name: "x" # why', 'yaml'), ['key:name', 'faint::', 'string:"x"', 'comment:# why'])
    assert.deepEqual(kinds('skill', 'Ask {{who}} in `code`', 'markdown'), ['variable:{{who}}', 'string:`code`'])
    assert.deepEqual(kinds('skill', '## Title', 'markdown'), ['heading:## Title'])
    assert.deepEqual(kinds('json', '{"a": [1, "b"]}'), ['faint:{', 'key:"a"', 'faint::', 'faint:[', 'number:1', 'faint:,', 'string:"b"', 'faint:]}'])
  })

  test('states_follow_the_dashes_and_fences', () => {
    const lines = toLines('skill', '---\na: 1\n---\n```\nx\n```\n# y', [], [])
    assert.deepEqual(lines.map(({ state }) => state), ['', 'yaml', 'yaml', 'markdown', 'fence', 'fence', 'markdown'])
  })

  test('lines_that_did_not_change_stay_the_same_objects', () => {
    const before = toLines('json', 'a\nb\nb\nc', [], [])
    const added = toLines('json', 'a\nnew\nb\nb\nc', [], before)
    assert.deepEqual(added.map((line) => before.indexOf(line)), [0, -1, 1, 2, 3])
    assert.equal(new Set(toLines('json', 'b\nb\nb\nb\nb', [], toLines('json', 'b\nb', [], []))).size, 5, 'each object once')
    const removed = toLines('json', 'a\nc', [], before)
    assert.deepEqual(removed.map((line) => before.indexOf(line)), [0, 3])
  })

  test('marks_cut_the_pieces_of_each_line_they_touch', () => {
    const [first, second] = toLines('text', 'abcd\nefgh', [{ start: 2, end: 7, kind: 'problem' }], [])
    assert.deepEqual(first?.pieces, [{ text: 'ab', kind: '' }, { text: 'cd', kind: 'problem' }])
    assert.deepEqual(second?.pieces, [{ text: 'ef', kind: 'problem' }, { text: 'gh', kind: '' }])
  })
})

describe('editor search', () => {
  const query = { find: '', replace: '', matchCase: false, pattern: false, word: false }

  test('finds_text_words_and_patterns', () => {
    const found = (text: string, wanted: object): string[] => findAll(text, { ...query, ...wanted }).map(({ start, end }) => text.slice(start, end))
    assert.deepEqual(found('Cat cat concat', { find: 'cat' }), ['Cat', 'cat', 'cat'])
    assert.deepEqual(found('Cat cat concat', { find: 'cat', matchCase: true, word: true }), ['cat'])
    assert.deepEqual(found('a.b axb', { find: 'a.b' }), ['a.b'])
    assert.deepEqual(found('a.b axb', { find: 'a.b', pattern: true }), ['a.b', 'axb'])
    assert.deepEqual(found('a', { find: '(', pattern: true }), [])
  })

  test('goes_round_the_end_and_replaces_groups', () => {
    const found = findAll('x1 x2', { ...query, find: 'x' })
    assert.deepEqual(nextMatch(found, { start: 3, end: 4 }, 1), { start: 0, end: 1 })
    assert.deepEqual(nextMatch(found, { start: 0, end: 1 }, -1), { start: 3, end: 4 })
    assert.equal(replacement('x1', { start: 0, end: 2 }, { ...query, find: 'x(\\d)', replace: '$1y', pattern: true }), '1y')
    assert.equal(replacement('x1', { start: 0, end: 2 }, { ...query, find: 'x1', replace: '$1y' }), '$1y')
  })

  test('other_places_of_a_selected_word_are_marked', () => {
    assert.deepEqual(sameAsSelected('ab ab ab', { start: 3, end: 5 }), [{ start: 0, end: 2 }, { start: 6, end: 8 }])
    assert.deepEqual(sameAsSelected('a b', { start: 1, end: 2 }), [], 'a space')
  })

  test('completions_that_start_with_the_typed_text_come_first', () => {
    const options = ['allowed-tools', 'metadata', 'model', 'name'].map((label) => ({ label }))
    assert.deepEqual(matching(options, 'm').map(({ label }) => label), ['metadata', 'model', 'name'])
    assert.deepEqual(matching(options, 'mdl').map(({ label }) => label), ['model'])
  })
})
