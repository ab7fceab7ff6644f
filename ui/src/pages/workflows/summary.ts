/** The second line of a step on the canvas. */
import { workflows } from '$lib/strings/workflows'
import type { Choices } from './flow.svelte'
import { text, type Step } from './model/graph'

const words = workflows.summary

export function summary(step: Step, choices: Choices): string {
  const { data } = step
  const skill = text(data, 'skillName').trim()
  switch (step.type) {
    case 'start':
      return words.start(text(data, 'inputVariable').trim())
    case 'llm':
      return skill || text(data, 'model').trim() || firstLine(text(data, 'systemPrompt')) || words.llm
    case 'skill':
      return skill || words.noSkill
    case 'knowledge': {
      const base = text(data, 'knowledgeBaseId').trim()
      return choices.bases?.find((one) => one.id === base)?.name ?? (base || words.noBase)
    }
    case 'condition':
      return data.expression === undefined ? words.always : String(data.expression)
    case 'http':
      return text(data, 'url').trim() ? `${text(data, 'method').trim() || 'GET'} ${text(data, 'url').trim()}` : words.noUrl
    case 'code': {
      const lines = text(data, 'code').split('\n').filter((line) => line.trim()).length
      return lines ? words.lines(lines) : words.noCode
    }
    case 'end':
      return words.end
  }
}

function firstLine(value: string): string {
  return value.trim().split('\n', 1)[0] ?? ''
}
