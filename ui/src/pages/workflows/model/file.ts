/** Reads workflow files: an export, `{"name", "graph_data"}`, or only the graph. */
import { ApiError } from '$lib/api/client'
import { workflows } from '$lib/strings/workflows'
import { isObject, parseGraph, toJson } from './graph'
import { placed } from './templates'

const text = workflows.importDialog

export interface WorkflowFile {
  name: string
  description: string | null
  /** The graph, with a position for each step. */
  graph: Record<string, unknown>
  nodes: number
  edges: number
}

export function readFile(content: string): WorkflowFile {
  const value = parse(content)
  const workflow = isObject(value) && isObject(value.workflow) ? value.workflow : value
  const graph = isObject(workflow) && isObject(workflow.graph_data) ? workflow.graph_data : workflow
  if (!isObject(workflow) || !isObject(graph) || graph.nodes === undefined) throw new ApiError(-1, text.shape, { hint: text.shapeHint })
  const parsed = parseGraph(graph)
  const [problem] = parsed.problems
  if (problem) throw new ApiError(-1, `${problem.path.join('.')}: ${problem.message}`, { hint: text.shapeHint })
  const ready = placed(graph)
  const word = (name: string): string => (typeof workflow[name] === 'string' ? (workflow[name] as string) : '')
  return {
    name: word('name'), description: word('description') || null, graph: ready ? toJson(ready) : graph,
    nodes: ready?.nodes.length ?? 0, edges: ready?.edges.length ?? 0,
  }
}

function parse(content: string): unknown {
  try {
    return JSON.parse(content.replace(/^\uFEFF/, ''))
  } catch (error) {
    throw new ApiError(-1, text.notJson, { hint: text.notJsonHint(error instanceof Error ? error.message : String(error)) })
  }
}
