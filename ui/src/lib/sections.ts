/** The entries of the sidebar, in their order. */
import type { Section } from './router.svelte'
import type { IconName } from './icons'
import { shell } from './strings/shell'

export interface SectionEntry {
  id: Section
  path: string
  icon: IconName
  /** Only for administrators. */
  admin?: boolean
  /** Only in `savoir ui`, which shows nothing else. */
  machine?: boolean
}

export const groups: { label: string; sections: SectionEntry[] }[] = [
  {
    label: shell.groups.work,
    sections: [
      { id: 'start', path: '/', icon: 'start' },
      { id: 'skills', path: '/skills', icon: 'skills' },
      { id: 'runs', path: '/runs', icon: 'runs' },
      { id: 'chat', path: '/chat', icon: 'chat' },
      { id: 'knowledge', path: '/knowledge', icon: 'knowledge' },
      { id: 'workflows', path: '/workflows', icon: 'workflows' },
    ],
  },
  {
    label: shell.groups.share,
    sections: [
      { id: 'registry', path: '/registry', icon: 'registry' },
      { id: 'catalog', path: '/catalog', icon: 'catalog' },
    ],
  },
  { label: shell.groups.machine, sections: [{ id: 'machine', path: '/machine', icon: 'system', machine: true }] },
  { label: shell.groups.manage, sections: [{ id: 'admin', path: '/admin', icon: 'admin', admin: true }] },
]
