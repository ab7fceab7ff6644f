/** The rules of workflows without a browser: what connects, what is a problem, where steps go. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { check, simulate } from '../src/pages/workflows/model/check.ts'
import { checkCondition, withLiterals } from '../src/pages/workflows/model/condition.ts'
import { refusal, targets } from '../src/pages/workflows/model/connect.ts'
import { readFile } from '../src/pages/workflows/model/file.ts'
import { parseGraph, toJson, type Graph } from '../src/pages/workflows/model/graph.ts'
import { tidy } from '../src/pages/workflows/model/layout.ts'
import { placed, templates } from '../src/pages/workflows/model/templates.ts'
import { lineOf, readGraph } from '../src/pages/workflows/model/text.ts'
import { fill, mapped, placeholders, renameReferences } from '../src/pages/workflows/model/values.ts'

/** `graph('start llm c:condition end', 'start>llm c:true>end')` */
function graph(nodes: string, edges = '', data: Record<string, Record<string, unknown>> = {}): Graph {
  const made = placed({
    nodes: nodes.split(' ').map((word) => {
      const [id = '', type = id] = word.split(':')
      return { id, type, data: data[id] ?? {} }
    }),
    edges: edges.split(' ').filter(Boolean).map((word) => {
      const [from = '', target] = word.split('>')
      const [source, sourceHandle] = from.split(':')
      return { source, target, ...(sourceHandle ? { sourceHandle } : {}) }
    }),
  })
  assert.ok(made)
  return made
}

const messages = (made: Graph, offer = {}): string[] => check(made, offer).map((problem) => `${problem.severity} ${problem.node ?? '-'}: ${problem.message}`)

describe('connections', () => {
  const made = graph('start a:llm b:llm c:condition end', 'start>a a>b c:true>b')
  const cases: [string, string, string | null, string | undefined][] = [
    ['b', 'end', null, undefined],
    ['c', 'end', 'true', undefined],
    ['c', 'end', 'false', undefined],
    ['a', 'start', null, 'Nothing can lead to a start'],
    ['end', 'a', null, 'Nothing can follow an end'],
    ['a', 'a', null, 'itself'],
    ['a', 'b', null, 'connected already'],
    ['b', 'a', null, 'circle'],
    ['b', 'end', 'true', 'Only a condition'],
    ['c', 'end', null, 'Choose the branch'],
    ['c', 'b', 'false', 'decide nothing'],
    ['c', 'nowhere', 'true', 'Choose two steps'],
  ]
  for (const [source, target, sourceHandle, expected] of cases) {
    test(`${source}_${sourceHandle ?? 'out'}_to_${target}_is_${expected ? 'refused' : 'allowed'}`, () => {
      const reason = refusal(made, { source, target, sourceHandle })
      if (expected) assert.match(reason ?? '', new RegExp(expected))
      else assert.equal(reason, undefined)
    })
  }
  test('targets_are_the_steps_that_work', () => {
    assert.deepEqual(targets(made, 'b', null).map((step) => step.id), ['end'])
  })
})

describe('checklist', () => {
  test('good_workflow_has_no_problems', () => {
    assert.deepEqual(messages(graph('start llm end', 'start>llm llm>end', { llm: { systemPrompt: '{{input}}' } })), [])
  })
  test('structure_problems_are_found', () => {
    assert.match(messages(graph('llm end', 'llm>end')).join('\n'), /error -: The workflow has no start/)
    assert.match(messages(graph('start llm', 'start>llm')).join('\n'), /warning -: The workflow has no end/)
    assert.match(messages(graph('start a:llm b:llm end', 'start>a a>b b>a b>end')).join('\n'), /error \w: The steps form a circle/)
    assert.match(messages(graph('start llm x:llm end', 'start>llm llm>end')).join('\n'), /warning x: No path leads/)
    assert.match(messages(graph('start c:condition end', 'start>c c:true>end')).join('\n'), /The branch “no” leads nowhere/)
    assert.match(messages(graph('start c:condition end', 'start>c c:maybe>end')).join('\n'), /the branch “maybe”/)
  })
  test('step_behind_a_shorter_path_to_the_end_is_reported', () => {
    const found = messages(graph('start a:llm b:llm c:llm end', 'start>a start>end a>b b>c'))
    assert.ok(found.some((message) => message.startsWith('warning b: This step never runs')), found.join('\n'))
  })
  test('settings_are_checked', () => {
    const offer = { skills: [{ name: 'sum', inputs: [{ name: 'text', required: true }] }], bases: [{ id: '1', name: 'Plants' }], models: [], http: false, code: false }
    const found = messages(graph('start k:knowledge s:skill h:http c:code q:condition l:llm end', 'start>k k>s s>h h>c c>q q:true>l q:false>end l>end', {
      k: { knowledgeBaseId: 'gone' }, s: { skillName: 'sum', inputMappings: { other: 'x' } }, h: { url: 'ftp://x' }, c: { code: ' ', env: { 'a b': '1' } }, q: { expression: '{{input}} is good' }, l: { skillName: 'none' },
    }), offer).join('\n')
    for (const part of ['no knowledge base “gone”', 'needs the input “text”', 'HTTP steps are disabled', '“ftp://x” is not an address', 'Code steps are disabled', 'There is no code', '“a b” cannot be the name', 'condition cannot be read', 'no model', 'no skill “none”']) {
      assert.ok(found.includes(part), `${part}\n${found}`)
    }
    const named = graph('start k:knowledge end', 'start>k k>end', { k: { knowledgeBaseId: 'Plants' } })
    assert.deepEqual(messages(named, offer), [])
  })
  test('placeholders_without_a_value_are_reported', () => {
    const prompt = (systemPrompt: string): string => messages(graph('start a:llm c:condition x:llm y:llm z:llm end', 'start>a a>c c:true>x c:false>y x>z y>z z>end', { start: { inputVariable: 'topic' }, z: { systemPrompt } })).join('\n')
    assert.equal(prompt('{{topic}} {{input}} {{a.output}} {{c.output.x}}'), '')
    assert.match(prompt('{{x.output}}'), /“x” has not run on every path/)
    assert.match(prompt('{{gone.output}}'), /step “gone”, which does not exist/)
    assert.match(prompt('{{other}}'), /no value {{other}}/)
    assert.match(prompt('{{a}}'), /Write|{{a}} is no value/)
    assert.match(prompt('{{ input }}'), /blanks/)
    const late = messages(graph('start a:llm b:llm d:llm j:llm end', 'start>a start>b b>d a>j d>j j>end', { j: { systemPrompt: '{{d.output}}' } })).join('\n')
    assert.match(late, /“d” has not run when this step runs/)
  })
  test('addresses_that_the_server_refuses_are_found', () => {
    const of = (url: string, admin = false, http = true): string => check(graph('start h:http end', 'start>h h>end', { h: { url } }), { http, admin }).map(({ severity, message, hint, href }) => `${severity}: ${message} ${hint} ${href ?? ''}`).join('\n')
    assert.match(of('{{input}}'), /error: A value cannot choose the host/)
    assert.match(of('https://{{input}}/page'), /error: A value cannot choose the host/)
    assert.match(of('https://example.com:{{input}}'), /error: A value cannot choose the host/)
    assert.equal(of('https://example.com/{{input}}?q={{input}}'), '')
    for (const url of ['http://127.0.0.1:8000/x', 'http://localhost/', 'https://192.168.2.1', 'http://[::1]/']) assert.match(of(url), /warning: .* is in a private network.*--workflow-private/, url)
    assert.match(of('https://example.com/', true, false), /Switch on “HTTP requests in workflows” under Administration, Limits and features\. \/admin\/limits/)
    assert.match(of('https://example.com/', false, false), /An administrator can switch on “HTTP requests in workflows”/)
  })
  test('order_is_that_of_a_run', () => {
    const { orders, exact } = simulate(graph('start c:condition a:llm b:llm end', 'start>c c:true>a c:false>b a>end b>end'))
    assert.ok(exact)
    assert.deepEqual(orders.map((order) => order.join(' ')).toSorted(), ['start c a end', 'start c b end'])
  })
})

describe('conditions', () => {
  test('expressions_of_the_server_are_accepted', () => {
    for (const good of ["{{n-1.output}} == 'risk'", "{{x.output}}.includes('ris')", '1 === 1', '-7 % 3 == 2', 'not ({{a.output}} contains "z")', "'x' not in {{a.output}}", '!!1', '1 < 2 < 3', 'True + 1 == 2', '.5', '1e3', "'it\\'s' == \"it's\"", '{{a.output}}>5&&{{a.output}}<9', 'None == None', '0 or \'x\'']) {
      assert.equal(checkCondition(good), undefined, good)
    }
  })
  test('wrong_expressions_say_why', () => {
    for (const [wrong, why] of [["{{input}} = 'x'", /==/], ['{{ input }}', /blanks/], ["'x", /quote/], ['(1', /parenthesis/], ['1 +', /at the end/], ['hello', /quotes/], ['1 2', /operator/], ['1 not 2', /“in”/], ['', /Write a condition/], ['1 #', /“#”/]] as [string, RegExp][]) {
      assert.match(checkCondition(wrong)?.message ?? '', why, wrong)
    }
  })
  test('values_become_literals', () => {
    const values = { input: "it's", outputs: { n: 7, t: 'a"b' }, variables: { v: null } }
    assert.equal(withLiterals("{{input}} == '{{n.output}}' and {{v}} == {{gone.output}}", values), "'it\\'s' == '7' and None == {{gone.output}}")
  })
})

describe('values', () => {
  const values = { input: 'IN', outputs: { a: { k: [1] }, b: 'text' }, variables: { topic: 'cats' } }
  test('placeholders_are_filled_as_on_the_server', () => {
    assert.equal(fill('{{input}} {{b.output}} {{a.output.k}} {{topic}} {{gone}} {{ input }}', values), 'IN text [1] cats {{gone}} {{ input }}')
    assert.deepEqual(['b', 'topic', 'plain', '{{topic}}!', 'input'].map((value) => mapped(value, values)), ['text', 'cats', 'plain', 'cats!', 'IN'])
    assert.deepEqual(placeholders('{{a.output}} {{a..b}} {{thème}}'), ['a.output', 'thème'])
  })
  test('renaming_a_step_changes_all_references', () => {
    const step = { id: 'x', type: 'skill' as const, position: { x: 0, y: 0 }, data: { inputMappings: { one: 'old', two: '{{old.output}} {{older.output}}' } } }
    assert.deepEqual(renameReferences(step, 'old', 'new').data, { inputMappings: { one: 'new', two: '{{new.output}} {{older.output}}' } })
  })
})

describe('files and text', () => {
  test('unknown_fields_survive', () => {
    const given = { viewport: { x: 1 }, nodes: [{ id: 'a', type: 'start', position: { x: 1, y: 2 }, data: { colour: 'red' }, width: 5 }], edges: [] }
    const { graph: read } = parseGraph(given)
    assert.ok(read)
    assert.deepEqual(toJson(read), given)
  })
  test('problems_have_their_line', () => {
    const content = '{\n  "nodes": [\n    {"id": "a", "type": "start"},\n    {"id": "a", "type": "lm"}\n  ]\n}'
    const [problem] = readGraph(content).problems
    assert.ok(problem)
    assert.equal(lineOf(content, problem.start), 4)
    assert.equal(content.slice(problem.start, problem.end), '"lm"')
    assert.equal(readGraph('{"nodes": [}').problems.length, 1)
  })
  test('all_file_formats_are_read', () => {
    const inner = { nodes: [{ id: 's', type: 'start' }, { id: 'e', type: 'end' }], edges: [{ source: 's', target: 'e' }] }
    assert.equal(readFile(JSON.stringify(inner)).nodes, 2)
    assert.equal(readFile(JSON.stringify({ name: 'n', graph_data: inner })).name, 'n')
    assert.equal(readFile(JSON.stringify({ version: 1, workflow: { name: 'w', description: 'd', graph_data: inner } })).description, 'd')
    assert.throws(() => readFile('{}'), /no workflow/)
    assert.throws(() => readFile('nodes: []'), /not JSON/)
    assert.throws(() => readFile('{"nodes": [{"id": "x", "type": "y"}]}'), /nodes\.0\.type/)
  })
})

describe('layout', () => {
  test('steps_go_from_left_to_right_without_overlap', () => {
    const made = graph('start c:condition a:llm b:llm end', 'start>c c:true>a c:false>b a>end b>end')
    const place = tidy(made)
    const at = (id: string) => place.get(id) ?? { x: 0, y: 0 }
    for (const { source, target } of made.edges) assert.ok(at(source).x + 224 <= at(target).x, `${source} is left of ${target}`)
    assert.ok(at('a').y + 80 <= at('b').y, 'yes is above no')
  })
  test('templates_are_ready', () => {
    for (const template of templates) {
      const made = placed(template.graph)
      assert.ok(made)
      const errors = check(made, {}).filter((problem) => problem.severity === 'error')
      assert.ok(errors.every((problem) => problem.message.includes('knowledge base')), `${template.id}: ${errors.map((problem) => problem.message).join()}`)
    }
  })
})
