/** The workflow that is edited: what the canvas shows, and how to undo each change. */
import { MarkerType, type Edge, type Node } from '@xyflow/svelte'
import { workflows as strings } from '$lib/strings/workflows'
import { refusal, type Wanted } from './connect'
import { freshId, isKind, isObject, linkId, text, type Graph, type Kind, type Link, type Point, type Settings, type Step } from './graph'
import { snapPoint, STEP_HEIGHT, STEP_WIDTH, tidy } from './layout'
import { renameReferences } from './values'

export type CanvasNode = Node<{ step: Step }, 'step'>
export type CanvasEdge = Edge<{ link: Link }, 'link'>

interface Change {
  label: string
  graph: Graph
}

const MAX_CHANGES = 200
/** Changes of the same field within this time are one change. */
const TOGETHER = 1200

const ARROW = { type: MarkerType.ArrowClosed }
const did = strings.editor.did

export class FlowDocument {
  nodes = $state.raw<CanvasNode[]>([])
  edges = $state.raw<CanvasEdge[]>([])
  /** Grows with each change. */
  revision = $state(0)
  /** The revision that was loaded: it needs no saving. */
  clean = 0
  past = $state.raw<Change[]>([])
  future = $state.raw<Change[]>([])
  private extra: Record<string, unknown> = {}
  private last = { key: '', at: 0 }

  /** Shows a graph that is already stored; this cannot be undone. */
  load(graph: Graph): void {
    this.show(graph)
    this.past = []
    this.future = []
    this.last = { key: '', at: 0 }
    this.revision += 1
    this.clean = this.revision
  }

  get graph(): Graph {
    return { nodes: this.nodes.map(toStep), edges: this.edges.map(toLink), extra: this.extra }
  }

  step(id: string): Step | undefined {
    const node = this.nodes.find((one) => one.id === id)
    return node && toStep(node)
  }

  get selected(): CanvasNode[] {
    return this.nodes.filter((node) => node.selected)
  }

  get selectedEdges(): CanvasEdge[] {
    return this.edges.filter((edge) => edge.selected)
  }

  /** Changes the graph so that it can be undone. Changes with the same key are joined for a while. */
  change(label: string, edit: (graph: Graph) => Graph, key = ''): void {
    const before = this.graph
    const after = edit(before)
    if (after === before) return
    this.remember(label, before, key)
    this.show(after)
  }

  /** Records a change that the canvas has already made, such as dragging, so that it can be undone. */
  remember(label: string, before: Graph, key = ''): void {
    const now = Date.now()
    const joined = key !== '' && key === this.last.key && now - this.last.at < TOGETHER
    if (!joined) this.past = [...this.past.slice(1 - MAX_CHANGES), { label, graph: before }]
    this.last = { key, at: now }
    this.future = []
    this.revision += 1
  }

  /** Returns what was undone. */
  undo(): string | undefined {
    return this.travel('past', 'future')
  }

  redo(): string | undefined {
    return this.travel('future', 'past')
  }

  private travel(from: 'past' | 'future', to: 'past' | 'future'): string | undefined {
    const change = this[from].at(-1)
    if (!change) return undefined
    this[to] = [...this[to], { label: change.label, graph: this.graph }]
    this[from] = this[from].slice(0, -1)
    this.last = { key: '', at: 0 }
    this.show(change.graph)
    this.revision += 1
    return change.label
  }

  private show(graph: Graph): void {
    const nodes = new Map(this.nodes.map((node) => [node.id, node]))
    const edges = new Map(this.edges.map((edge) => [edge.id, edge]))
    this.extra = graph.extra
    this.nodes = graph.nodes.map((step) => toNode(step, nodes.get(step.id)))
    this.edges = graph.edges.map((link) => toEdge(link, edges.get(link.id)))
  }

  select(ids: Iterable<string>, edgeIds: Iterable<string> = []): void {
    const wanted = new Set(ids)
    const links = new Set(edgeIds)
    this.nodes = this.nodes.map((node) => ((node.selected ?? false) === wanted.has(node.id) ? node : { ...node, selected: wanted.has(node.id) }))
    this.edges = this.edges.map((edge) => ((edge.selected ?? false) === links.has(edge.id) ? edge : { ...edge, selected: links.has(edge.id) }))
  }

  /** Adds a step, connected with the step before it if that is given, and selects it. */
  add(kind: Kind, at: Point, options: { after?: { source: string; handle: string | null }; data?: Settings } = {}): string {
    const id = freshId(kind, this.nodes.map((node) => node.id))
    this.change(did.add, (graph) => {
      const step: Step = { id, type: kind, position: free(graph, snapPoint(at)), data: { ...options.data } }
      const next = { ...graph, nodes: [...graph.nodes, step] }
      if (!options.after) return next
      const wanted = { source: options.after.source, target: id, sourceHandle: options.after.handle }
      return refusal(next, wanted) ? next : { ...next, edges: [...next.edges, newLink(next, wanted)] }
    })
    this.select([id])
    return id
  }

  /** Puts a step between two that are connected. */
  insert(edgeId: string, kind: Kind): string | undefined {
    const edge = this.edges.find((one) => one.id === edgeId)
    const source = edge && this.step(edge.source)
    const target = edge && this.step(edge.target)
    if (!edge || !source || !target || kind === 'start' || kind === 'end') return undefined
    const id = freshId(kind, this.nodes.map((node) => node.id))
    this.change(did.insert, (graph) => {
      const middle = { x: (source.position.x + target.position.x) / 2, y: (source.position.y + target.position.y) / 2 }
      const step: Step = { id, type: kind, position: free(graph, snapPoint(middle)), data: {} }
      const nodes = [...graph.nodes, step]
      const edges = graph.edges.filter((link) => link.id !== edgeId)
      const first = newLink({ ...graph, edges }, { source: edge.source, target: id, sourceHandle: edge.sourceHandle })
      const second = newLink({ ...graph, edges }, { source: id, target: edge.target, sourceHandle: kind === 'condition' ? 'true' : null })
      return { ...graph, nodes, edges: [...edges, first, second] }
    })
    this.select([id])
    return id
  }

  /** Returns how many elements were removed. */
  remove(ids: Iterable<string>, edgeIds: Iterable<string> = [], label = did.remove): number {
    const gone = new Set(ids)
    const links = new Set(edgeIds)
    if (!gone.size && !links.size) return 0
    this.change(label, (graph) => ({
      ...graph,
      nodes: graph.nodes.filter((step) => !gone.has(step.id)),
      edges: graph.edges.filter((link) => !links.has(link.id) && !gone.has(link.source) && !gone.has(link.target)),
    }))
    return gone.size + links.size
  }

  /** Connects two steps; returns the reason if that cannot work. */
  connect(wanted: Wanted): string | undefined {
    const reason = refusal(this.graph, wanted)
    if (!reason) this.change(did.connect, (graph) => ({ ...graph, edges: [...graph.edges, newLink(graph, wanted)] }))
    return reason
  }

  /** Changes settings of a step; `undefined` removes one. */
  set(id: string, changes: Settings): void {
    this.change(did.edit, (graph) => {
      const nodes = graph.nodes.map((step) => {
        if (step.id !== id) return step
        const data = { ...step.data, ...changes }
        for (const [name, value] of Object.entries(changes)) if (value === undefined) delete data[name]
        return JSON.stringify(data) === JSON.stringify(step.data) ? step : { ...step, data }
      })
      return nodes.every((step, index) => step === graph.nodes[index]) ? graph : { ...graph, nodes }
    }, `${id}.${Object.keys(changes).join()}`)
  }

  /** Gives a step another id, in the edges and in the texts of the other steps, too. */
  rename(from: string, to: string): void {
    if (from === to || this.nodes.some((node) => node.id === to)) return
    this.change(did.rename, (graph) => ({
      ...graph,
      nodes: graph.nodes.map((step) => renameReferences(step.id === from ? { ...step, id: to } : step, from, to)),
      edges: graph.edges.map((link) => ({ ...link, source: link.source === from ? to : link.source, target: link.target === from ? to : link.target })),
    }))
    this.select([to])
  }

  move(ids: Iterable<string>, by: Point): void {
    const moved = new Set(ids)
    this.change(did.move, (graph) => ({
      ...graph,
      nodes: graph.nodes.map((step) => (moved.has(step.id) ? { ...step, position: { x: step.position.x + by.x, y: step.position.y + by.y } } : step)),
    }), `move ${[...moved].join()}`)
  }

  tidy(): void {
    const heights = new Map(this.nodes.map((node) => [node.id, node.measured?.height ?? STEP_HEIGHT]))
    this.change(did.tidy, (graph) => {
      const positions = tidy(graph, heights)
      return { ...graph, nodes: graph.nodes.map((step) => ({ ...step, position: positions.get(step.id) ?? step.position })) }
    })
  }

  replace(graph: Graph, label: string, key = ''): void {
    this.change(label, () => graph, key)
  }

  /** The selected steps with the edges between them, as a text for the clipboard. */
  copy(): string | undefined {
    const ids = new Set(this.selected.map((node) => node.id))
    if (!ids.size) return undefined
    const { nodes, edges } = this.graph
    return JSON.stringify({
      nodes: nodes.filter((step) => ids.has(step.id)),
      edges: edges.filter((link) => ids.has(link.source) && ids.has(link.target)),
    })
  }

  /** Adds copied steps under new ids and selects them; returns how many there are. */
  paste(content: string, at?: Point, label = did.paste): number {
    const copied = readCopied(content)
    if (!copied) return 0
    const taken = new Set(this.nodes.map((node) => node.id))
    const ids = new Map<string, string>()
    for (const step of copied.nodes) {
      const id = freshId(step.id, taken)
      taken.add(id)
      ids.set(step.id, id)
    }
    const left = Math.min(...copied.nodes.map((step) => step.position.x))
    const top = Math.min(...copied.nodes.map((step) => step.position.y))
    const shift = at ? { x: at.x - left, y: at.y - top } : { x: 32, y: 32 }
    this.change(label, (graph) => {
      const nodes = copied.nodes.map((step) => {
        let made: Step = { ...step, position: snapPoint({ x: step.position.x + shift.x, y: step.position.y + shift.y }) }
        for (const [from, to] of ids) if (from !== to) made = renameReferences(made, from, to)
        return { ...made, id: ids.get(step.id) ?? step.id }
      })
      const edges = copied.edges.map((link) => {
        const wanted = { ...link, source: ids.get(link.source) ?? link.source, target: ids.get(link.target) ?? link.target }
        return { ...wanted, id: linkId(wanted.source, wanted.target, wanted.sourceHandle) }
      })
      return { ...graph, nodes: [...graph.nodes, ...nodes], edges: [...graph.edges, ...edges] }
    })
    this.select(ids.values())
    return copied.nodes.length
  }
}

function readCopied(content: string): { nodes: Step[]; edges: Link[] } | undefined {
  let value: unknown
  try {
    value = JSON.parse(content)
  } catch {
    return undefined
  }
  if (!isObject(value) || !Array.isArray(value.nodes)) return undefined
  const isStep = (node: unknown): boolean =>
    isObject(node) && typeof node.id === 'string' && isKind(node.type) && isObject(node.position) && Number.isFinite(node.position.x) && Number.isFinite(node.position.y)
  const nodes = value.nodes.filter(isStep).map((node: Step) => ({ ...node, data: isObject(node.data) ? node.data : {} }))
  const ids = new Set(nodes.map((node) => node.id))
  const edges = (Array.isArray(value.edges) ? value.edges : []).filter((edge: unknown) => isObject(edge) && ids.has(String(edge.source)) && ids.has(String(edge.target)))
  return nodes.length ? { nodes, edges: edges as Link[] } : undefined
}

function newLink(graph: Graph, { source, target, sourceHandle }: Wanted): Link {
  const id = freshId(linkId(source, target, sourceHandle), graph.edges.map((link) => link.id))
  return { id, source, target, ...(sourceHandle ? { sourceHandle } : {}) }
}

/** The next place that no other step covers. */
function free(graph: Graph, wanted: Point): Point {
  const covers = (a: Point, b: Point): boolean => Math.abs(a.x - b.x) < STEP_WIDTH && Math.abs(a.y - b.y) < STEP_HEIGHT
  const place = { ...wanted }
  for (let tries = 0; tries < 60 && graph.nodes.some((step) => covers(step.position, place)); tries += 1) place.y += 112
  return place
}

export function stepName(step: Pick<Step, 'type' | 'data'>): string {
  return text(step.data, 'label').trim() || strings.kinds[step.type].name
}

function toStep({ id, position, data: { step } }: CanvasNode): Step {
  const same = step.id === id && step.position.x === position.x && step.position.y === position.y
  return same ? step : { ...step, id, position: { x: Math.round(position.x), y: Math.round(position.y) } }
}

function toLink({ data, source, target, id }: CanvasEdge): Link {
  return data?.link ?? { id, source, target }
}

function toNode(step: Step, old?: CanvasNode): CanvasNode {
  if (old && old.data.step === step && old.position.x === step.position.x && old.position.y === step.position.y) return old
  return {
    ...old, id: step.id, type: 'step', position: step.position, data: { step },
    ariaLabel: strings.editor.aria(stepName(step), strings.kinds[step.type].name, ''),
  }
}

function toEdge(link: Link, old?: CanvasEdge): CanvasEdge {
  if (old && old.data?.link === link) return old
  const { id, source, target, sourceHandle } = link
  return { ...old, id, type: 'link', source, target, sourceHandle: sourceHandle ?? null, targetHandle: null, data: { link }, markerEnd: ARROW }
}
