/** Markdown of skills is untrusted: it is rendered by marked and then cleaned by DOMPurify. */
import DOMPurify from 'dompurify'
import { Marked } from 'marked'

const marked = new Marked({ gfm: true, breaks: false, async: false })

const TAGS = [
  'a', 'b', 'blockquote', 'br', 'code', 'del', 'details', 'div', 'em', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'i', 'img',
  'input', 'kbd', 'li', 'ol', 'p', 'pre', 's', 'span', 'strong', 'sub', 'summary', 'sup', 'table', 'tbody', 'td', 'th',
  'thead', 'tr', 'ul',
]
const ATTRIBUTES = ['align', 'alt', 'checked', 'colspan', 'disabled', 'href', 'rowspan', 'src', 'start', 'title', 'type']

const purify = DOMPurify(window)

purify.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName === 'A') guardLink(node)
  if (node.tagName === 'IMG') guardImage(node)
  if (node.tagName === 'INPUT' && (node.getAttribute('type') !== 'checkbox' || !node.hasAttribute('disabled'))) node.remove()
})

/** Links open in a new tab and send no referrer. */
function guardLink(link: Element): void {
  const href = link.getAttribute('href')
  if (href === null) return
  if (/^(https?:|mailto:)/i.test(href)) {
    link.setAttribute('target', '_blank')
    link.setAttribute('rel', 'noopener noreferrer nofollow')
  } else if (!href.startsWith('#')) {
    // A relative path refers to the skill's folder; as a link it would open a wrong page of the app.
    link.removeAttribute('href')
  }
}

/** Shows only the description of external images, because loading them would reveal the reader's IP address. */
function guardImage(image: Element): void {
  const alt = image.getAttribute('alt')
  const text = document.createElement('span')
  text.textContent = alt ? `[${alt}]` : ''
  image.replaceWith(text)
}

/** Markdown as safe HTML. */
export function renderMarkdown(text: string): string {
  return sanitize(marked.parse(text) as string)
}

export function sanitize(html: string): string {
  return purify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|#|[^:]*$)/i,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
  })
}
