/** Helpers of the charts. */
export interface Series {
  key: string
  label: string
}

export interface Column {
  /** For the axis and the tooltip, for example a date. */
  label: string
  /** One value per series. */
  values: number[]
}

export const MAX_SERIES = 6

/** Round values for the axis, from 0 to at least `max`. */
export function ticks(max: number, count = 4): number[] {
  if (!(max > 0)) return [0, 1]
  const rough = max / count
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough) ?? 10 * power
  const last = Math.ceil(max / step)
  return Array.from({ length: last + 1 }, (_, index) => Number((index * step).toPrecision(12)))
}

/** The positions of the labels of the axis, so that they do not touch. */
export function labelled(count: number, width: number, room = 64): Set<number> {
  const fit = Math.max(1, Math.floor(width / room))
  const step = Math.max(1, Math.ceil(count / fit))
  const shown = new Set<number>()
  for (let index = count - 1; index >= 0; index -= step) shown.add(index)
  return shown
}
