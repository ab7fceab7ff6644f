/** What a person can do about the error of a run. */
import { explain as text } from './strings/explain'

export interface Explanation {
  hint: string
  /** The page where it can be changed. */
  href?: string
  /** The sandbox denied the network to a tool. */
  network?: boolean
}

/** What programs report when the sandbox gives them no network, or not this host. */
const NETWORK = /\[Errno (13|-2|-3|-5|101|111)\]|EAI_AGAIN|ENOTFOUND|ENETUNREACH|Network is unreachable|Name or service not known|Temporary failure in name resolution|Could not resolve host|Tunnel connection failed: 403/i
const URL_ERROR = /urlopen|http|socket|connect|resolve|resolution|host|network|EAI_AGAIN|ENOTFOUND|ENETUNREACH/i

/** Whether a model failed, or could not be reached. */
export function isModelError(error: string): boolean {
  return /\b(model|provider|answered 4\d\d|answered 5\d\d|cannot be reached;|API key|server answered|OpenAI|Anthropic|Ollama)/i.test(error)
}

export function explain(error: string, run: { kind: string; tools?: boolean; admin?: boolean }): Explanation {
  if (/disabled by the administrator/i.test(error)) return run.admin ? { hint: text.disabledAdmin, href: '/admin/limits' } : { hint: text.disabled }
  if (/cannot choose the host/i.test(error)) return { hint: text.valueHost }
  if (/resolves to blocked IP/i.test(error)) return { hint: text.privateHost }
  if ((run.kind === 'tool' || run.tools) && NETWORK.test(error) && URL_ERROR.test(error)) return { hint: text.network, network: true }
  if (/nobody answered|not approved|was denied|refused by|approval/i.test(error)) return { hint: text.approval }
  if (/\banswered 5\d\d\b/i.test(error)) return { hint: text.modelBusy }
  if (isModelError(error)) {
    return run.admin ? { hint: text.modelAdmin, href: '/admin/models' } : { hint: text.model }
  }
  return { hint: run.kind === 'tool' ? text.tool : text.other }
}
