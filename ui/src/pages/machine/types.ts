/** Responses of the commands of `savoir ui`. */
export interface MachineSkill {
  name: string
  path: string
  scopes: string[]
  agents: string[]
  in_use: string[]
  version: string | null
  description: string
  source: string | null
  state: string
  why: string | null
  update: unknown
  advice: string | null
  permissions?: string[]
  tools?: string[]
}
export interface Clash {
  name: string
  /** The folders in the order in which the agents look at them. */
  paths: string[]
  agents?: string[]
  identical: boolean
}
export interface Status {
  skills: MachineSkill[]
  clashes: Clash[]
}
export interface Outdated {
  skills: { name: string; state: string }[]
}
export interface Finding {
  rule: string
  severity: string
  blocks?: boolean
  message: string
  path?: string
  line?: number
  fix?: string
}
export interface Scan {
  verdict: 'allow' | 'review' | 'block'
  reason?: { message?: string; file?: string; line?: number } | null
  findings?: Finding[]
  skills?: Scan[]
}
export interface Changes {
  changes: { change: string; name: string; text: string }[]
  /** The difference of the files, as a terminal shows it. */
  diff?: string | null
  wants_more: { capability?: string; text?: string }[] | string[]
}
export interface Context {
  agent: string
  context: number
  budget: number
  tokens: number
  skills: { name: string; path: string; visible: boolean; description?: 'whole' | 'cut' | 'dropped'; characters?: number; line?: string; why?: string }[]
  /** What would change without some skills. */
  difference?: { without: string[]; tokens_before: number; tokens_after: number; changes: { name: string; path: string; before: string; after: string }[] }
  rules: { says: string; source: string; certainty: string }[]
}
export interface Approvals {
  approvals: { fingerprint: string; path: string; skill: string; permissions: string[]; programs: { name: string }[]; approved_at: string }[]
}
export interface Secrets {
  secrets: (string | { name: string })[]
}
export interface MachineRuns {
  runs: { id?: string; skill?: string; tool?: string; started?: string; started_at?: string; end?: unknown; exit_code?: number }[]
}
export interface EvalRange {
  mean: number
  lower: number
  upper: number
}
/** A stored evaluation in the list. */
export interface EvaluationSummary {
  id: string
  report: string
  skill: string
  version: string | null
  verdict: string
  /** In percentage points. */
  uplift: EvalRange | null
  trials: number
  all_trials: number
  invalid_trials: number
  host: { name: string; version: string; model: string }
  finished: string
}
export interface MachineEvaluations {
  evaluations: EvaluationSummary[]
}
export interface EvalCase {
  id: string
  arms: Record<string, { outcome: string }[]>
}
export interface EvalResults {
  cases: EvalCase[]
  conclusion: { reasons: string[]; flaky: { case: string }[] }
  triggers?: { catalogue: number; precision: EvalRange | null; recall: EvalRange | null }[]
}
