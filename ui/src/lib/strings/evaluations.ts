/** Texts about evaluations of skills. */
interface Range {
  mean: number
  lower: number
  upper: number
}
const signed = (value: number): string => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(1)}`
const percent = (range?: Range | null): string => (range ? `${(100 * range.mean).toFixed(0)} %` : 'not measured')

export const evaluations = {
  verdicts: { pass: 'Helps', fail: 'Does not help', underpowered: 'Too few trials' } as Record<string, string>,
  uplift: (range?: Range | null): string =>
    range ? `${signed(range.mean)} points [${signed(range.lower)}, ${signed(range.upper)}]` : 'Uplift not measured',
  measured: (model: string, host: string, version: string) => `${model} with ${host} ${version}`,
  trials: (each: number, all: number, invalid: number) =>
    `${each} trials of each case, ${all} in all${invalid ? `, ${invalid} invalid` : ''}.`,
  judge: (model: string) => `Judge: ${model}.`,
  trigger: (catalogue: number, precision?: Range | null, recall?: Range | null) =>
    `Among ${catalogue} skills: precision ${percent(precision)}, recall ${percent(recall)}.`,
  regressions: (cases: string[]) => `Makes these cases worse: ${cases.join(', ')}`,
  signer: 'Signed by',
  by: (key: string) => `Evaluation signed by ${key}`,
  disagree: {
    title: 'The evaluations disagree',
    text: 'They may have used other models or cases. Each one is shown by itself, and no mean is taken.',
  },
  none: 'Nobody has published an evaluation of this version.',
  publish: 'Everyone with an account can publish a signed evaluation. The signature counts, not the account:',
  local: {
    empty: { title: 'No evaluations yet', text: 'Run one in a terminal: savoir eval SKILL' },
    skill: 'Skill', verdict: 'Verdict', uplift: 'Uplift', model: 'Model', finished: 'Finished',
    report: 'The report with all transcripts is in this file:',
    cases: 'Cases', case: 'Case', withSkill: 'With the skill', withoutSkill: 'Without it',
    passed: (passed: number, valid: number, invalid: number) => `${passed} of ${valid}${invalid ? ` (${invalid} invalid)` : ''}`,
    notRun: 'not run', back: 'All evaluations',
    why: 'Why', flaky: 'Different results on the same input:',
  },
}
