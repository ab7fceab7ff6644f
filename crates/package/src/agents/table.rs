//! The table of supported agents.

use savoir_skill::Dialect;

use super::{Agent, Depth, FolderBase, Precedence, SharedFolder, UsageSign, UserFolder};

/// The folder of a project that all agents may read.
pub(super) const AGENTS: &str = ".agents/skills";

/// The folder in the home folder that all agents may read.
const SHARED: UserFolder = home(".agents/skills");

/// Whether a folder of a project shows which agent is in use.
pub(super) fn is_agent_specific(path: &str) -> bool {
    path != AGENTS && path.starts_with('.') && path.contains('/')
}

/// The environment variables that contain folders.
pub(super) fn variables() -> impl Iterator<Item = &'static str> {
    let signs = ALL.iter().flat_map(|agent| agent.signs).filter_map(|sign| match sign {
        UsageSign::User(folder) => Some(folder),
        UsageSign::Project(_) | UsageSign::Program(_) => None,
    });
    let folders = ALL.iter().flat_map(|agent| agent.user).chain(signs);
    folders.filter_map(|folder| match folder.base {
        FolderBase::Variable { name, .. } => Some(name),
        FolderBase::Home | FolderBase::Config | FolderBase::System => None,
    })
}

const fn home(path: &'static str) -> UserFolder {
    UserFolder { base: FolderBase::Home, path }
}

const fn config(path: &'static str) -> UserFolder {
    UserFolder { base: FolderBase::Config, path }
}

const fn system(path: &'static str) -> UserFolder {
    UserFolder { base: FolderBase::System, path }
}

const fn variable(name: &'static str, otherwise: &'static str, path: &'static str) -> UserFolder {
    UserFolder { base: FolderBase::Variable { name, otherwise }, path }
}

/// An agent with the most common settings.
const fn agent(
    id: &'static str,
    title: &'static str,
    project: &'static [&'static str],
    user: &'static [UserFolder],
) -> Agent {
    Agent {
        id,
        aliases: &[],
        title,
        project,
        user,
        former: &[],
        also_reads: &[],
        dialect: Dialect::AGENTSKILLS,
        precedence: Precedence::ProjectFirst,
        signs: &[],
        depth: Depth::One,
    }
}

pub(super) const ALL: &[Agent] = &[
    agent("aider-desk", "AiderDesk", &[".aider-desk/skills"], &[home(".aider-desk/skills")]),
    Agent {
        also_reads: &[
            SharedFolder::Project(".claude/skills"),
            SharedFolder::User(home(".claude/skills")),
        ],
        signs: &[UsageSign::User(config("amp")), UsageSign::Program("amp")],
        ..agent("amp", "Amp", &[AGENTS], &[config("agents/skills")])
    },
    Agent {
        signs: &[UsageSign::User(home(".gemini/antigravity"))],
        ..agent(
            "antigravity",
            "Antigravity",
            &[AGENTS],
            &[home(".gemini/config/skills"), home(".gemini/antigravity/skills")],
        )
    },
    Agent {
        signs: &[
            UsageSign::User(home(".gemini/antigravity-cli")),
            UsageSign::User(home(".antigravity")),
            UsageSign::Program("agy"),
        ],
        ..agent(
            "antigravity-cli",
            "Antigravity CLI",
            &[AGENTS],
            &[
                home(".gemini/config/skills"),
                home(".gemini/antigravity-cli/skills"),
                home(".antigravity/skills"),
            ],
        )
    },
    Agent {
        signs: &[UsageSign::Project("data/skills"), UsageSign::User(home(".astrbot"))],
        ..agent("astrbot", "AstrBot", &["data/skills"], &[home(".astrbot/data/skills")])
    },
    Agent {
        aliases: &["autohand"],
        ..agent(
            "autohand-code",
            "Autohand Code CLI",
            &[".autohand/skills"],
            &[variable("AUTOHAND_HOME", ".autohand", "skills")],
        )
    },
    agent("augment", "Augment", &[".augment/skills"], &[home(".augment/skills")]),
    agent("bob", "IBM Bob", &[".bob/skills"], &[home(".bob/skills")]),
    Agent {
        aliases: &["claude"],
        dialect: Dialect::CLAUDE_CODE,
        precedence: Precedence::UserFirst,
        signs: &[
            UsageSign::User(variable("CLAUDE_CONFIG_DIR", ".claude", "")),
            UsageSign::Project(".claude"),
            UsageSign::Program("claude"),
        ],
        ..agent(
            "claude-code",
            "Claude Code",
            &[".claude/skills"],
            &[variable("CLAUDE_CONFIG_DIR", ".claude", "skills")],
        )
    },
    Agent {
        aliases: &["clawdbot", "moltbot"],
        former: &[home(".clawdbot/skills"), home(".moltbot/skills")],
        also_reads: &[
            SharedFolder::User(SHARED),
            SharedFolder::User(home(".openclaw/workspace/skills")),
        ],
        dialect: Dialect::OPENCLAW,
        precedence: Precedence::SharedFirst,
        signs: &[
            UsageSign::User(home(".openclaw")),
            UsageSign::User(home(".clawdbot")),
            UsageSign::User(home(".moltbot")),
            UsageSign::Program("openclaw"),
        ],
        ..agent("openclaw", "OpenClaw", &["skills", AGENTS], &[home(".openclaw/skills")])
    },
    Agent {
        signs: &[UsageSign::User(home(".cline")), UsageSign::Project(".cline")],
        ..agent("cline", "Cline", &[AGENTS, ".cline/skills"], &[SHARED, home(".cline/skills")])
    },
    agent(
        "codearts-agent",
        "CodeArts Agent",
        &[".codeartsdoer/skills"],
        &[home(".codeartsdoer/skills")],
    ),
    agent("codebuddy", "CodeBuddy", &[".codebuddy/skills"], &[home(".codebuddy/skills")]),
    agent("codemaker", "Codemaker", &[".codemaker/skills"], &[home(".codemaker/skills")]),
    agent("codestudio", "Code Studio", &[".codestudio/skills"], &[home(".codestudio/skills")]),
    agent(
        "codewhale",
        "CodeWhale",
        &[".codewhale/skills"],
        &[variable("CODEWHALE_HOME", ".codewhale", "skills")],
    ),
    Agent {
        aliases: &["codex-cli"],
        also_reads: &[
            SharedFolder::User(variable("CODEX_HOME", ".codex", "skills/.system")),
            SharedFolder::User(system("etc/codex/skills")),
        ],
        dialect: Dialect::CODEX,
        precedence: Precedence::Both,
        signs: &[
            UsageSign::User(variable("CODEX_HOME", ".codex", "")),
            UsageSign::Project(".codex"),
            UsageSign::User(system("etc/codex")),
            UsageSign::Program("codex"),
        ],
        ..agent(
            "codex",
            "Codex",
            &[AGENTS, ".codex/skills"],
            &[SHARED, variable("CODEX_HOME", ".codex", "skills")],
        )
    },
    agent("command-code", "Command Code", &[".commandcode/skills"], &[home(".commandcode/skills")]),
    agent("continue", "Continue", &[".continue/skills"], &[home(".continue/skills")]),
    agent("cortex", "Cortex Code", &[".cortex/skills"], &[home(".snowflake/cortex/skills")]),
    agent("crush", "Crush", &[".crush/skills"], &[home(".config/crush/skills")]),
    Agent {
        aliases: &["cursor-cli", "cursor-agent"],
        also_reads: &[
            SharedFolder::Project(".claude/skills"),
            SharedFolder::Project(".codex/skills"),
            SharedFolder::User(SHARED),
            SharedFolder::User(home(".claude/skills")),
            SharedFolder::User(home(".codex/skills")),
        ],
        signs: &[
            UsageSign::User(home(".cursor")),
            UsageSign::Project(".cursor"),
            UsageSign::Program("cursor-agent"),
        ],
        ..agent("cursor", "Cursor", &[AGENTS, ".cursor/skills"], &[home(".cursor/skills")])
    },
    Agent {
        signs: &[UsageSign::User(home(".deepagents")), UsageSign::Project(".deepagents")],
        ..agent(
            "deepagents",
            "Deep Agents",
            &[AGENTS, ".deepagents/skills"],
            &[home(".deepagents/agent/skills")],
        )
    },
    agent("devin", "Devin for Terminal", &[".devin/skills"], &[config("devin/skills")]),
    Agent {
        signs: &[UsageSign::User(home(".dexto"))],
        ..agent("dexto", "Dexto", &[AGENTS], &[SHARED])
    },
    Agent {
        aliases: &["factory"],
        signs: &[
            UsageSign::User(home(".factory")),
            UsageSign::Project(".factory"),
            UsageSign::Program("droid"),
        ],
        ..agent("droid", "Droid", &[AGENTS, ".factory/skills"], &[home(".factory/skills")])
    },
    Agent {
        signs: &[UsageSign::Project("agent/skills")],
        ..agent("eve", "Eve", &["agent/skills"], &[])
    },
    agent("firebender", "Firebender", &[AGENTS], &[home(".firebender/skills")]),
    agent("forgecode", "ForgeCode", &[".forge/skills"], &[home(".forge/skills")]),
    Agent {
        also_reads: &[SharedFolder::Project(".agents/skills"), SharedFolder::User(SHARED)],
        ..agent("fx", "fx", &[".fx/skills"], &[home(".fx/skills")])
    },
    Agent {
        dialect: Dialect::GAIA,
        // Its key files are in a folder beside its skills that is not a skill.
        depth: Depth::Nested,
        signs: &[
            UsageSign::User(home(".gaia")),
            UsageSign::Project(".gaia"),
            UsageSign::Program("gaia"),
        ],
        ..agent("gaia", "AMD GAIA", &[".gaia/skills"], &[home(".gaia/skills")])
    },
    Agent {
        aliases: &["gemini"],
        also_reads: &[SharedFolder::User(SHARED)],
        signs: &[
            UsageSign::User(home(".gemini")),
            UsageSign::Project(".gemini"),
            UsageSign::Program("gemini"),
        ],
        ..agent("gemini-cli", "Gemini CLI", &[AGENTS, ".gemini/skills"], &[home(".gemini/skills")])
    },
    Agent {
        aliases: &["gibb.eri.sh"],
        dialect: Dialect::GIBBERISH,
        // Only its program shows that it is in use: most skills are no command-line tools, so its
        // folder alone must not make it a target of every install.
        signs: &[UsageSign::Program("gibberish")],
        ..agent("gibberish", "gibb.eri.sh", &[], &[config("gibberish/skills")])
    },
    Agent {
        aliases: &["copilot", "vscode", "vs-code"],
        also_reads: &[
            SharedFolder::Project(".claude/skills"),
            SharedFolder::User(SHARED),
            SharedFolder::User(home(".claude/skills")),
        ],
        signs: &[
            UsageSign::User(home(".copilot")),
            UsageSign::Project(".github/skills"),
            UsageSign::Project(".github/copilot-instructions.md"),
            UsageSign::Program("copilot"),
        ],
        ..agent(
            "github-copilot",
            "GitHub Copilot",
            &[AGENTS, ".github/skills"],
            &[home(".copilot/skills")],
        )
    },
    Agent {
        also_reads: &[
            SharedFolder::Project(AGENTS),
            SharedFolder::Project(".claude/skills"),
            SharedFolder::User(SHARED),
            SharedFolder::User(home(".claude/skills")),
            SharedFolder::User(config("agents/skills")),
        ],
        signs: &[
            UsageSign::User(config("goose")),
            UsageSign::Project(".goose"),
            UsageSign::Program("goose"),
        ],
        ..agent("goose", "Goose", &[".goose/skills"], &[config("goose/skills")])
    },
    agent("grok", "Grok Build", &[".grok/skills"], &[variable("GROK_HOME", ".grok", "skills")]),
    Agent {
        aliases: &["hermes"],
        depth: Depth::Nested,
        ..agent(
            "hermes-agent",
            "Hermes Agent",
            &[".hermes/skills"],
            &[variable("HERMES_HOME", ".hermes", "skills")],
        )
    },
    agent("inference-sh", "inference.sh", &[".inferencesh/skills"], &[home(".inferencesh/skills")]),
    agent("jazz", "Jazz", &[".jazz/skills"], &[home(".jazz/skills")]),
    agent("junie", "Junie", &[".junie/skills"], &[home(".junie/skills")]),
    Agent {
        aliases: &["iflow"],
        ..agent("iflow-cli", "iFlow CLI", &[".iflow/skills"], &[home(".iflow/skills")])
    },
    Agent {
        aliases: &["kilocode", "kilo-code"],
        former: &[home(".kilocode/skills")],
        signs: &[
            UsageSign::User(home(".kilo")),
            UsageSign::User(home(".kilocode")),
            UsageSign::Project(".kilocode"),
        ],
        ..agent("kilo", "Kilo Code", &[AGENTS, ".kilocode/skills"], &[home(".kilo/skills")])
    },
    agent("kimchi", "Kimchi", &[".kimchi/skills"], &[home(".config/kimchi/harness/skills")]),
    Agent {
        aliases: &["kimi-cli", "kimi"],
        signs: &[
            UsageSign::User(home(".kimi-code")),
            UsageSign::User(home(".kimi")),
            UsageSign::Program("kimi"),
        ],
        ..agent("kimi-code-cli", "Kimi Code CLI", &[AGENTS], &[SHARED, config("agents/skills")])
    },
    Agent {
        aliases: &["kiro"],
        ..agent("kiro-cli", "Kiro CLI", &[".kiro/skills"], &[home(".kiro/skills")])
    },
    agent("kode", "Kode", &[".kode/skills"], &[home(".kode/skills")]),
    agent("lingma", "Lingma", &[".lingma/skills"], &[home(".lingma/skills")]),
    Agent {
        signs: &[UsageSign::User(home(".loaf"))],
        ..agent("loaf", "Loaf", &[AGENTS], &[SHARED])
    },
    agent("mcpjam", "MCPJam", &[".mcpjam/skills"], &[home(".mcpjam/skills")]),
    agent("minimax-code", "MiniMax Code", &[".minimax/skills"], &[home(".minimax/skills")]),
    Agent {
        aliases: &["vibe"],
        ..agent(
            "mistral-vibe",
            "Mistral Vibe",
            &[".vibe/skills"],
            &[variable("VIBE_HOME", ".vibe", "skills")],
        )
    },
    agent("moxby", "Moxby", &[".moxby/skills"], &[home(".moxby/skills")]),
    agent("mux", "Mux", &[".mux/skills"], &[home(".mux/skills")]),
    agent("neovate", "Neovate", &[".neovate/skills"], &[home(".neovate/skills")]),
    agent("ona", "Ona", &[".ona/skills"], &[home(".ona/skills")]),
    Agent {
        also_reads: &[
            SharedFolder::Project(".claude/skills"),
            SharedFolder::User(home(".claude/skills")),
            SharedFolder::User(SHARED),
        ],
        signs: &[
            UsageSign::User(config("opencode")),
            UsageSign::Project(".opencode"),
            UsageSign::Program("opencode"),
        ],
        ..agent("opencode", "OpenCode", &[AGENTS, ".opencode/skills"], &[config("opencode/skills")])
    },
    agent("openhands", "OpenHands", &[".openhands/skills"], &[home(".openhands/skills")]),
    agent("pi", "Pi", &[".pi/skills"], &[home(".pi/agent/skills")]),
    agent("pochi", "Pochi", &[".pochi/skills"], &[home(".pochi/skills")]),
    Agent {
        former: &[home(".positai/assistant/skills")],
        ..agent(
            "posit-assistant",
            "Posit Assistant",
            &[".posit/assistant/skills"],
            &[home(".posit/assistant/skills")],
        )
    },
    Agent {
        signs: &[UsageSign::Project(".promptscript"), UsageSign::Project("promptscript.yaml")],
        ..agent("promptscript", "PromptScript", &[AGENTS], &[])
    },
    agent("qoder", "Qoder", &[".qoder/skills"], &[home(".qoder/skills")]),
    Agent {
        signs: &[UsageSign::User(home(".qoder-cn"))],
        ..agent("qoder-cn", "Qoder CN", &[".qoder/skills"], &[home(".qoder-cn/skills")])
    },
    Agent {
        aliases: &["qwen"],
        also_reads: &[SharedFolder::Project(AGENTS), SharedFolder::User(SHARED)],
        ..agent("qwen-code", "Qwen Code", &[".qwen/skills"], &[home(".qwen/skills")])
    },
    agent("reasonix", "Reasonix", &[".reasonix/skills"], &[home(".reasonix/skills")]),
    Agent {
        signs: &[UsageSign::Project(".replit")],
        ..agent("replit", "Replit", &[AGENTS], &[config("agents/skills")])
    },
    Agent {
        aliases: &["roo-code"],
        ..agent("roo", "Roo Code", &[".roo/skills", AGENTS], &[home(".roo/skills")])
    },
    Agent {
        aliases: &["rovo-dev"],
        ..agent("rovodev", "Rovo Dev", &[".rovodev/skills"], &[home(".rovodev/skills")])
    },
    Agent {
        signs: &[
            UsageSign::User(variable("SARVAM_HOME", ".sarvam", "")),
            UsageSign::Program("sarvam-code"),
        ],
        ..agent("sarvam-code", "Sarvam Code", &[AGENTS], &[SHARED])
    },
    Agent {
        aliases: &["tabnine"],
        ..agent(
            "tabnine-cli",
            "Tabnine CLI",
            &[".tabnine/agent/skills"],
            &[home(".tabnine/agent/skills")],
        )
    },
    agent("terramind", "Terramind", &[".terramind/skills"], &[home(".terramind/skills")]),
    agent("tinycloud", "Tinycloud", &[".tinycloud/skills"], &[home(".tinycloud/skills")]),
    agent("trae", "Trae", &[".trae/skills"], &[home(".trae/skills")]),
    Agent {
        signs: &[UsageSign::User(home(".trae-cn"))],
        ..agent("trae-cn", "Trae CN", &[".trae/skills"], &[home(".trae-cn/skills")])
    },
    agent("universal", "Universal", &[AGENTS], &[SHARED, config("agents/skills")]),
    Agent {
        signs: &[UsageSign::User(home(".warp"))],
        ..agent("warp", "Warp", &[AGENTS], &[SHARED])
    },
    agent("windsurf", "Windsurf", &[".windsurf/skills"], &[home(".codeium/windsurf/skills")]),
    agent("zcode", "ZCode", &[".zcode/skills"], &[home(".zcode/skills")]),
    Agent {
        signs: &[
            UsageSign::User(config("zed")),
            UsageSign::Project(".zed"),
            UsageSign::Program("zed"),
        ],
        ..agent("zed", "Zed", &[AGENTS], &[SHARED])
    },
    Agent {
        aliases: &["zenflow"],
        ..agent("zencoder", "Zencoder", &[".zencoder/skills"], &[home(".zencoder/skills")])
    },
    agent("adal", "AdaL", &[".adal/skills"], &[home(".adal/skills")]),
    agent("letta", "Letta", &[".skills"], &[home(".letta/skills")]),
    Agent {
        dialect: Dialect::CLAUDE_CODE,
        precedence: Precedence::UserFirst,
        signs: &[UsageSign::User(home(
            "Library/Developer/Xcode/CodingAssistant/ClaudeAgentConfig",
        ))],
        ..agent(
            "xcode-claude",
            "Claude in Xcode",
            &[".claude/skills"],
            &[home("Library/Developer/Xcode/CodingAssistant/ClaudeAgentConfig/skills")],
        )
    },
    Agent {
        dialect: Dialect::CODEX,
        precedence: Precedence::Both,
        signs: &[UsageSign::User(home("Library/Developer/Xcode/CodingAssistant/codex"))],
        ..agent(
            "xcode-codex",
            "Codex in Xcode",
            &[".codex/skills"],
            &[home("Library/Developer/Xcode/CodingAssistant/codex/skills")],
        )
    },
    agent("verdent", "Verdent", &[".verdent/skills"], &[home(".verdent/skills")]),
    agent("comate", "Comate", &[".comate/skills"], &[home(".comate/skills")]),
];
