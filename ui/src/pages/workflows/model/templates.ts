/** Workflows to start from. Their positions come from the layout. */
import { workflows as strings } from '$lib/strings/workflows'
import { parseGraph, toJson, type Graph } from './graph'
import { tidy } from './layout'

export interface Template {
  id: keyof typeof strings.templates.list
  graph: unknown
}

const line = (...ids: string[]): { source: string; target: string }[] => ids.slice(1).map((target, index) => ({ source: ids[index] ?? '', target }))

export const templates: Template[] = [
  {
    id: 'empty',
    graph: { nodes: [{ id: 'start', type: 'start', data: {} }, { id: 'end', type: 'end', data: {} }], edges: [] },
  },
  {
    id: 'ask',
    graph: {
      nodes: [
        { id: 'start', type: 'start', data: { inputVariable: 'question' } },
        { id: 'answer', type: 'llm', data: { label: 'Answer', systemPrompt: 'Answer in at most three sentences. Say so if you do not know.', temperature: 0.3 } },
        { id: 'end', type: 'end', data: {} },
      ],
      edges: line('start', 'answer', 'end'),
    },
  },
  {
    id: 'search',
    graph: {
      nodes: [
        { id: 'start', type: 'start', data: { inputVariable: 'question' } },
        { id: 'search', type: 'knowledge', data: { label: 'Search' } },
        {
          id: 'summary',
          type: 'llm',
          data: { label: 'Summarise', systemPrompt: 'Answer the question "{{question}}" from the passages that the user sends. Name the numbers of the passages you used. Say so if they do not contain the answer.', temperature: 0.2 },
        },
        { id: 'end', type: 'end', data: {} },
      ],
      edges: line('start', 'search', 'summary', 'end'),
    },
  },
  {
    id: 'triage',
    graph: {
      nodes: [
        { id: 'start', type: 'start', data: { inputVariable: 'message' } },
        { id: 'rate', type: 'llm', data: { label: 'Is it urgent?', systemPrompt: 'Is this message urgent? Answer with one word: yes or no.', temperature: 0 } },
        { id: 'urgent', type: 'condition', data: { label: 'Urgent', expression: "{{rate.output}} contains 'yes' or {{rate.output}} contains 'Yes'" } },
        { id: 'escalate', type: 'llm', data: { label: 'Alert', systemPrompt: 'Write an alert of one line for the person on call about this message:\n\n{{message}}' } },
        { id: 'reply', type: 'llm', data: { label: 'Reply', systemPrompt: 'Write a short and friendly reply to this message:\n\n{{message}}' } },
        { id: 'end', type: 'end', data: {} },
      ],
      edges: [
        ...line('start', 'rate', 'urgent'),
        { source: 'urgent', target: 'escalate', sourceHandle: 'true' },
        { source: 'urgent', target: 'reply', sourceHandle: 'false' },
        { source: 'escalate', target: 'end' },
        { source: 'reply', target: 'end' },
      ],
    },
  },
  {
    id: 'review',
    graph: {
      nodes: [
        { id: 'start', type: 'start', data: { inputVariable: 'topic' } },
        { id: 'draft', type: 'llm', data: { label: 'Draft', systemPrompt: 'Write a paragraph about the topic.', temperature: 0.8 } },
        { id: 'critique', type: 'llm', data: { label: 'Critique', systemPrompt: 'List the three weakest points of this text, each in one sentence.', temperature: 0.3 } },
        { id: 'final', type: 'llm', data: { label: 'Improve', systemPrompt: 'Improve this text about {{topic}} by the points that the user sends. Return only the text.\n\n{{draft.output}}', temperature: 0.5 } },
        { id: 'end', type: 'end', data: {} },
      ],
      edges: line('start', 'draft', 'critique', 'final', 'end'),
    },
  },
  {
    id: 'fetch',
    graph: {
      nodes: [
        { id: 'start', type: 'start', data: { inputVariable: 'question' } },
        // A value cannot choose the host: the author of the workflow writes the address.
        { id: 'page', type: 'http', data: { label: 'Fetch', method: 'GET', url: 'https://example.com/', timeoutSeconds: 10 } },
        { id: 'summary', type: 'llm', data: { label: 'Summarise', systemPrompt: 'Summarise what this server returned in five points. If there is a question, answer it first: {{question}}', temperature: 0.2 } },
        { id: 'end', type: 'end', data: {} },
      ],
      edges: line('start', 'page', 'summary', 'end'),
    },
  },
]

/** A graph in which each step has a position. */
export function placed(value: unknown): Graph | undefined {
  const parsed = parseGraph(value)
  if (!parsed.graph || parsed.placed) return parsed.graph
  const positions = tidy(parsed.graph)
  return { ...parsed.graph, nodes: parsed.graph.nodes.map((step) => ({ ...step, position: positions.get(step.id) ?? step.position })) }
}

export function templateGraph(template: Template): Record<string, unknown> {
  const graph = placed(template.graph)
  return graph ? toJson(graph) : {}
}
