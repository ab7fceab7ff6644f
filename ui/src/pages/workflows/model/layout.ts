/** Arranges the steps in columns from left to right. */
import { before, type Graph, type Point } from './graph'

export const GRID = 16
export const COLUMN = 272
const GAP = 48
export const STEP_WIDTH = 208
export const STEP_HEIGHT = 80

export const snap = (value: number): number => Math.round(value / GRID) * GRID
export const snapPoint = ({ x, y }: Point): Point => ({ x: snap(x), y: snap(y) })

/** New positions of all steps. `heights` are the measured ones. */
export function tidy(graph: Graph, heights: ReadonlyMap<string, number> = new Map()): Map<string, Point> {
  const columns = order(graph, layers(graph))
  const height = (id: string): number => heights.get(id) ?? STEP_HEIGHT
  const positions = new Map<string, Point>()
  const tallest = Math.max(0, ...columns.map((ids) => ids.reduce((sum, id) => sum + height(id) + GAP, -GAP)))
  for (const [column, ids] of columns.entries()) {
    const total = ids.reduce((sum, id) => sum + height(id) + GAP, -GAP)
    let y = (tallest - total) / 2
    for (const id of ids) {
      positions.set(id, snapPoint({ x: column * COLUMN, y }))
      y += height(id) + GAP
    }
  }
  return positions
}

/** The column of each step: one behind the last step before it. Steps of a cycle keep what they have. */
function layers(graph: Graph): Map<string, number> {
  const sources = before(graph)
  const column = new Map<string, number>()
  const open = new Set<string>()
  const visit = (id: string): number => {
    const known = column.get(id)
    if (known !== undefined) return known
    if (open.has(id)) return 0
    open.add(id)
    const value = Math.max(-1, ...(sources.get(id) ?? []).map(visit)) + 1
    open.delete(id)
    column.set(id, value)
    return value
  }
  for (const step of graph.nodes) visit(step.id)
  return column
}

/** Sorts each column by the middle of the neighbours, which leaves few crossings. */
function order(graph: Graph, column: Map<string, number>): string[][] {
  const columns: string[][] = []
  for (const step of graph.nodes) (columns[column.get(step.id) ?? 0] ??= []).push(step.id)
  const next = new Map<string, string[]>()
  const previous = new Map<string, string[]>()
  for (const { source, target, sourceHandle } of graph.edges) {
    // The upper exit of a condition comes first.
    const list = next.get(source) ?? []
    next.set(source, sourceHandle === 'true' ? [target, ...list] : [...list, target])
    previous.set(target, [...(previous.get(target) ?? []), source])
  }
  const sweep = (ids: string[], neighbours: Map<string, string[]>): string[] => {
    const place = new Map<string, number>()
    for (const [index, id] of ids.entries()) {
      const around = (neighbours.get(id) ?? []).map((other) => rank.get(other) ?? 0)
      place.set(id, around.length ? around.reduce((sum, at) => sum + at, 0) / around.length + branchShift(graph, id) : index / Math.max(1, ids.length))
    }
    return ids.toSorted((a, b) => (place.get(a) ?? 0) - (place.get(b) ?? 0))
  }
  const rank = new Map<string, number>()
  const number = (): void => {
    for (const ids of columns) for (const [index, id] of ids.entries()) rank.set(id, index / Math.max(1, ids.length))
  }
  number()
  for (let round = 0; round < 4; round += 1) {
    for (const [index, ids] of columns.entries()) {
      columns[index] = sweep(ids, previous)
      number()
    }
    for (let index = columns.length - 2; index >= 0 && round < 3; index -= 1) {
      columns[index] = sweep(columns[index] ?? [], next)
      number()
    }
  }
  return columns
}

function branchShift(graph: Graph, id: string): number {
  const handle = graph.edges.find((edge) => edge.target === id)?.sourceHandle
  if (handle === 'true') return -0.001
  return handle === 'false' ? 0.001 : 0
}
