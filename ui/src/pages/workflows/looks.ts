/** The icon and colour of each kind of step. */
import type { IconName } from '$lib/icons'
import type { Kind } from './model/graph'

export const KIND_LOOKS: Record<Kind, { icon: IconName; colour: string }> = {
  start: { icon: 'play', colour: 'var(--ok)' },
  llm: { icon: 'bolt', colour: 'var(--series-1)' },
  skill: { icon: 'skills', colour: 'var(--series-4)' },
  knowledge: { icon: 'knowledge', colour: 'var(--series-2)' },
  condition: { icon: 'filter', colour: 'var(--series-3)' },
  http: { icon: 'globe', colour: 'var(--info)' },
  code: { icon: 'tool', colour: 'var(--series-5)' },
  end: { icon: 'stop', colour: 'var(--series-6)' },
}
