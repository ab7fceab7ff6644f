/** Texts that a new skill can start from. */
export const templates = {
  prompt: `---
name: my-skill
description: Summarises a text in the tone that you choose.
inputs:
  - name: text
    label: Text
    type: textarea
    required: true
  - name: tone
    label: Tone
    type: text
    default: matter-of-fact
---

Summarise the text below in a {{tone}} tone.

- Give three to five points, one sentence each.
- Keep numbers and names exactly as they are.

{{text}}
`,
  agent: `---
name: my-skill
description: Writes release notes from the commits since the last tag. Use it when somebody asks for release notes.
---

# Write release notes

1. Read the commits since the last tag.
2. Group them by what users notice: new, changed, fixed.
3. Write one line per change, in plain words.
`,
  empty: `---
name: my-skill
description: 
---

`,
}
