/** Numbers, times and sizes as text. */
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })
const dateTime = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' })
const whole = new Intl.NumberFormat('en')
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000], ['month', 2_592_000], ['week', 604_800], ['day', 86_400], ['hour', 3600], ['minute', 60],
]

/** `3 hr. ago` */
export function ago(time: string | undefined | null, now = Date.now()): string {
  if (!time) return ''
  const seconds = (Date.parse(time) - now) / 1000
  for (const [unit, size] of STEPS) {
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit)
  }
  return 'just now'
}

export function date(time: string | undefined | null): string {
  return time ? dateTime.format(new Date(time)) : ''
}

export function number(value: number | undefined | null): string {
  return value === undefined || value === null ? '–' : whole.format(value)
}

/** `12.3K` */
export function compact(value: number | undefined | null): string {
  return value === undefined || value === null ? '–' : short.format(value)
}

export function duration(milliseconds: number | undefined | null): string {
  if (milliseconds === undefined || milliseconds === null) return '–'
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`
  const seconds = milliseconds / 1000
  if (seconds < 60) return `${seconds.toFixed(1)} s`
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`
}

export function bytes(size: number | undefined | null): string {
  if (size === undefined || size === null) return '–'
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let value = size
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit += 1
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`
}

export function cost(dollars: number | undefined | null): string {
  if (dollars === undefined || dollars === null) return '–'
  return dollars > 0 && dollars < 0.01 ? `$${dollars.toFixed(4)}` : `$${dollars.toFixed(2)}`
}

/** Messages of the server start in lower case. Names in them, such as `a_b` or `x:y`, stay as they are. */
export function sentence<T extends string | undefined>(message: T): T {
  return (message && /^[a-z]+[ ,]/.test(message) ? message.charAt(0).toUpperCase() + message.slice(1) : message) as T
}

/** `1 skill`, `2 skills` */
export function count(value: number, one: string, many = `${one}s`): string {
  return `${number(value)} ${value === 1 ? one : many}`
}
