/** All texts of the app. Each page has its own file in `strings/`; add a line here for it. */
import { chat } from './strings/chat'
import { account } from './strings/account'
import { admin } from './strings/admin'
import { common } from './strings/common'
import { design } from './strings/design'
import { machine } from './strings/machine'
import { runs } from './strings/runs'
import { knowledge } from './strings/knowledge'
import { shell } from './strings/shell'
import { skills } from './strings/skills'
import { start } from './strings/start'

export const strings = { common, shell, design, start, skills, runs, chat, knowledge, account, admin, machine }
