/** Turns `[1]` in a rendered answer into a button that opens the source. */
export function linkCitations(root: HTMLElement, count: number, label: (number: number) => string): void {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT, {
    acceptNode: (node) => (node.parentElement?.closest('code, pre, a, button') ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT),
  })
  const texts: Text[] = []
  while (walker.nextNode()) if (/\[\d+\]/.test(walker.currentNode.nodeValue ?? '')) texts.push(walker.currentNode as Text)
  for (const text of texts) replace(text, count, label)
}

function replace(text: Text, count: number, label: (number: number) => string): void {
  const pieces = (text.nodeValue ?? '').split(/\[(\d+)\]/)
  const nodes = pieces.map((piece, index): Node => {
    const number = Number(piece)
    if (index % 2 === 0) return document.createTextNode(piece)
    if (number < 1 || number > count) return document.createTextNode(`[${piece}]`)
    const button = document.createElement('button')
    button.type = 'button'
    button.className = 'cite'
    button.dataset.source = String(number)
    // The name contains the number that is shown, so that speech control finds it.
    button.setAttribute('aria-label', label(number))
    button.textContent = piece
    return button
  })
  text.replaceWith(...nodes)
}
