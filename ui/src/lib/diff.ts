/** Differences between two texts by lines (the greedy algorithm of Myers). */
export interface DiffLine {
  kind: 'same' | 'added' | 'removed'
  text: string
  /** Line numbers, from 1. */
  old?: number
  new?: number
}

const MAX_EDITS = 4000

export function diffLines(before: string, after: string): DiffLine[] {
  const a = before === '' ? [] : before.split('\n')
  const b = after === '' ? [] : after.split('\n')
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1
  let endA = a.length
  let endB = b.length
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) {
    endA -= 1
    endB -= 1
  }
  const lines: DiffLine[] = []
  const same = (oldIndex: number, newIndex: number): void => {
    lines.push({ kind: 'same', text: a[oldIndex] ?? '', old: oldIndex + 1, new: newIndex + 1 })
  }
  for (let index = 0; index < start; index += 1) same(index, index)
  for (const step of middle(a.slice(start, endA), b.slice(start, endB))) {
    if (step.kind === 'same') same(start + step.a, start + step.b)
    else if (step.kind === 'removed') lines.push({ kind: 'removed', text: a[start + step.a] ?? '', old: start + step.a + 1 })
    else lines.push({ kind: 'added', text: b[start + step.b] ?? '', new: start + step.b + 1 })
  }
  for (let index = 0; index < a.length - endA; index += 1) same(endA + index, endB + index)
  return lines
}

interface Step {
  kind: DiffLine['kind']
  a: number
  b: number
}

function middle(a: string[], b: string[]): Step[] {
  const most = Math.min(a.length + b.length, MAX_EDITS)
  const reach = new Map<number, number>([[1, 0]])
  const trace: Map<number, number>[] = []
  for (let edits = 0; edits <= most; edits += 1) {
    trace.push(new Map(reach))
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1))
      let x = down ? (reach.get(k + 1) ?? 0) : (reach.get(k - 1) ?? 0) + 1
      let y = x - k
      while (x < a.length && y < b.length && a[x] === b[y]) {
        x += 1
        y += 1
      }
      reach.set(k, x)
      if (x >= a.length && y >= b.length) return backtrack(trace, a.length, b.length)
    }
  }
  // Too different to be worth the time: everything was replaced.
  return [
    ...a.map((_, index): Step => ({ kind: 'removed', a: index, b: 0 })),
    ...b.map((_, index): Step => ({ kind: 'added', a: 0, b: index })),
  ]
}

function backtrack(trace: Map<number, number>[], lengthA: number, lengthB: number): Step[] {
  const steps: Step[] = []
  let x = lengthA
  let y = lengthB
  for (let edits = trace.length - 1; edits >= 0; edits -= 1) {
    const reach = trace[edits] ?? new Map<number, number>()
    const k = x - y
    const down = k === -edits || (k !== edits && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1))
    const before = down ? k + 1 : k - 1
    const fromX = reach.get(before) ?? 0
    const fromY = fromX - before
    while (x > fromX && y > fromY && x > 0 && y > 0) {
      x -= 1
      y -= 1
      steps.push({ kind: 'same', a: x, b: y })
    }
    if (edits === 0) break
    if (down) steps.push({ kind: 'added', a: x, b: fromY })
    else steps.push({ kind: 'removed', a: fromX, b: y })
    x = fromX
    y = fromY
  }
  return steps.reverse()
}

/** Parts of a difference to show: changes with a few lines around them. */
export function hunks(lines: DiffLine[], around = 3): DiffLine[][] {
  const parts: DiffLine[][] = []
  let end = 0
  for (const [index, line] of lines.entries()) {
    if (line.kind === 'same') continue
    const from = Math.max(end, index - around)
    const to = Math.min(lines.length, index + around + 1)
    const last = parts.at(-1)
    if (last && from <= end) last.push(...lines.slice(end, to))
    else parts.push(lines.slice(from, to))
    end = to
  }
  return parts
}
