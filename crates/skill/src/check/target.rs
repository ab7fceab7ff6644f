//! Hosts whose limits a skill can be checked against.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// A host that reads skills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The base format, as its reference validator sees it.
    AgentSkills,
    /// Claude Code.
    ClaudeCode,
    /// claude.ai upload and the Skills API.
    ClaudeAi,
    /// Codex.
    Codex,
    /// OpenClaw.
    OpenClaw,
}

impl Target {
    /// Every target.
    pub const ALL: [Self; 5] =
        [Self::AgentSkills, Self::ClaudeCode, Self::ClaudeAi, Self::Codex, Self::OpenClaw];

    /// The word that users type.
    pub fn id(self) -> &'static str {
        match self {
            Self::AgentSkills => "agentskills",
            Self::ClaudeCode => "claude-code",
            Self::ClaudeAi => "claude-ai",
            Self::Codex => "codex",
            Self::OpenClaw => "openclaw",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// A word that names no target.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown target `{0}`; expected one of {known}", known = Target::ALL.map(Target::id).join(", "))]
pub struct UnknownTarget(String);

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(word: &str) -> Result<Self, UnknownTarget> {
        let found = Self::ALL.into_iter().find(|target| target.id() == word);
        found.ok_or_else(|| UnknownTarget(word.to_owned()))
    }
}
