/** Positions of rows with different heights, of which only some have been measured. */

/** The start of each row, and the end of the last one. */
export function offsetsOf<T>(items: readonly T[], height: (item: T) => number): Float64Array {
  const offsets = new Float64Array(items.length + 1)
  let sum = 0
  for (const [index, item] of items.entries()) {
    offsets[index] = sum
    sum += height(item)
  }
  offsets[items.length] = sum
  return offsets
}

/** The row at a position: the last one that starts at or before it. */
export function rowAt(offsets: Float64Array, position: number): number {
  let low = 0
  let high = Math.max(0, offsets.length - 2)
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((offsets[middle] ?? 0) <= position) low = middle
    else high = middle - 1
  }
  return low
}
