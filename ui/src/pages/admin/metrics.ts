/** Reads the measurements of the server, which have the text format of Prometheus. */
export interface Sample {
  name: string
  labels: Record<string, string>
  value: number
}

export interface RouteStats {
  route: string
  count: number
  failed: number
  seconds: number
}

export interface Measurements {
  requests: number
  failed: number
  streams: number
  indexed: number
  routes: RouteStats[]
  /** Requests by response time; the bound is in seconds, the last one is infinite. */
  times: { bound: number; count: number }[]
}

export function parseSamples(text: string): Sample[] {
  const samples: Sample[] = []
  for (const line of text.split('\n')) {
    const found = /^([a-z_]+)(?:\{(.*)\})? ([0-9.eE+-]+)$/.exec(line)
    if (!found) continue
    const labels: Record<string, string> = {}
    for (const [, key, value] of (found[2] ?? '').matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)) labels[key!] = value!.replace(/\\(.)/g, '$1')
    samples.push({ name: found[1]!, labels, value: Number(found[3]) })
  }
  return samples
}

export function measure(text: string): Measurements {
  const routes = new Map<string, RouteStats>()
  const bounds = new Map<number, number>()
  const result: Measurements = { requests: 0, failed: 0, streams: 0, indexed: 0, routes: [], times: [] }
  for (const { name, labels, value } of parseSamples(text)) {
    if (name === 'savoir_streams') result.streams = value
    else if (name === 'savoir_registry_search_skills') result.indexed = value
    else if (name === 'savoir_http_request_seconds_bucket') {
      const bound = labels.le === '+Inf' ? Infinity : Number(labels.le)
      bounds.set(bound, (bounds.get(bound) ?? 0) + value)
    } else if (name === 'savoir_http_requests_total' || name === 'savoir_http_request_seconds_sum') {
      const key = `${labels.method} ${labels.route}`
      const route = routes.get(key) ?? { route: key, count: 0, failed: 0, seconds: 0 }
      if (name.endsWith('_sum')) route.seconds += value
      else {
        route.count += value
        if (Number(labels.status) >= 500) route.failed += value
      }
      routes.set(key, route)
    }
  }
  result.routes = [...routes.values()].sort((a, b) => b.count - a.count)
  for (const route of result.routes) {
    result.requests += route.count
    result.failed += route.failed
  }
  // The counts of Prometheus include those of all smaller bounds.
  let before = 0
  for (const [bound, count] of [...bounds].sort(([a], [b]) => a - b)) {
    result.times.push({ bound, count: count - before })
    before = count
  }
  return result
}

/** The smallest bound that the given part of the requests does not exceed. */
export function quantile(times: Measurements['times'], part: number): number {
  const all = times.reduce((sum, { count }) => sum + count, 0)
  let seen = 0
  for (const { bound, count } of times) {
    seen += count
    if (seen >= all * part) return bound
  }
  return Infinity
}
