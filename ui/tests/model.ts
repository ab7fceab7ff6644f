/** A scripted model endpoint with the API of OpenAI, for tests. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** An answer: words, calls of tools, or an HTTP error. */
export type Reply = string | { text?: string; tools?: { name: string; arguments: object }[]; status?: number }

export interface ScriptedModel {
  url: string
  /** The answers, used in turn; the last one repeats. A function gets the request body. */
  script: (Reply | ((body: ChatRequest) => Reply))[]
  /** Milliseconds between the words of an answer. */
  pace: number
  requests: ChatRequest[]
  close: () => void
}

export interface ChatRequest {
  model: string
  stream?: boolean
  messages: { role: string; content: string }[]
}

export async function startModel(): Promise<ScriptedModel> {
  const model: ScriptedModel = { url: '', script: ['Rain fell. It was wet.'], pace: 5, requests: [], close: () => {} }
  const server = createServer((request, response) => void answer(model, request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  model.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  model.close = () => {
    server.closeAllConnections()
    server.close()
  }
  return model
}

async function answer(model: ScriptedModel, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'GET') return json(response, { object: 'list', data: [{ id: 'scripted', object: 'model' }] })
  let text = ''
  for await (const part of request) text += String(part)
  const body = JSON.parse(text) as ChatRequest
  model.requests.push(body)
  const next = model.script.length > 1 ? model.script.shift() : model.script[0]
  const reply = typeof next === 'function' ? next(body) : (next ?? '')
  const { text: content = '', tools = [], status } = typeof reply === 'string' ? { text: reply } : reply
  if (status) {
    response.writeHead(status, { 'content-type': 'application/json' })
    return void response.end(JSON.stringify({ error: { message: 'the scripted model fails' } }))
  }
  const usage = { prompt_tokens: 42, completion_tokens: content.split(' ').length, total_tokens: 50 }
  if (!body.stream) {
    return json(response, { id: 'c1', object: 'chat.completion', model: body.model, choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content } }], usage })
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const send = (choices: unknown[], extra = {}): void => {
    response.write(`data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', model: body.model, choices, ...extra })}\n\n`)
  }
  for (const word of content.split(/(?<= )/)) {
    if (response.destroyed) return
    send([{ index: 0, delta: { content: word }, finish_reason: null }])
    await new Promise((resolve) => setTimeout(resolve, model.pace))
  }
  const calls = tools.map((tool, index) => ({
    index, id: `call-${model.requests.length}-${index}`, type: 'function', function: { name: tool.name, arguments: JSON.stringify(tool.arguments) },
  }))
  if (calls.length) send([{ index: 0, delta: { tool_calls: calls }, finish_reason: null }])
  send([{ index: 0, delta: {}, finish_reason: calls.length ? 'tool_calls' : 'stop' }])
  send([], { usage })
  response.end('data: [DONE]\n\n')
}

function json(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}
