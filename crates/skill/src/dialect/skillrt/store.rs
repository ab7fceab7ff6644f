//! Implements how skillrt names and lists installed skills.

use std::fmt;

use thiserror::Error;

use crate::{
    digest,
    name::is_unsafe_path_name,
    skill::{Mode, Skill},
};

/// The place of an installed skill below the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstallId {
    /// A structured skill, `name@version`.
    Named {
        /// Its name, which is safe as a part of a path.
        name: String,
        /// Its version.
        version: String,
    },
    /// Prose, `anon/<sha256 of the file>`.
    Anonymous {
        /// The digest in hexadecimal digits.
        sha256: String,
    },
}

impl fmt::Display for InstallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named { name, version } => write!(f, "{name}@{version}"),
            Self::Anonymous { sha256 } => write!(f, "anon/{sha256}"),
        }
    }
}

/// A name that would leave the store or hide in it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` cannot be the name of a folder: it contains `/`, `\\`, `..` or NUL, or starts with a dot"
)]
pub struct UnsafeName(pub String);

impl UnsafeName {
    /// The stable identifier of the error.
    pub fn code(&self) -> &'static str {
        "unsafe-name"
    }
}

/// Where a skill that was read from `text` is installed.
pub fn install_id(skill: &Skill, text: &str) -> Result<InstallId, UnsafeName> {
    if skill.mode == Mode::Prose {
        return Ok(InstallId::Anonymous { sha256: digest::sha256_hex(text.as_bytes()) });
    }
    if is_unsafe_path_name(&skill.name) {
        return Err(UnsafeName(skill.name.clone()));
    }
    let version = skill.version.clone().unwrap_or_else(|| "0.0.0".to_owned());
    Ok(InstallId::Named { name: skill.name.clone(), version })
}

/// The entry of an installed skill in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledSkill {
    /// What it is called.
    pub id: InstallId,
    /// What it does; empty for prose.
    pub description: String,
}

/// The output of `skill list`.
pub fn listing(skills: &[InstalledSkill]) -> String {
    if skills.is_empty() {
        return "(no skills installed; try `skill install <path>`)\n".to_owned();
    }
    let line = |skill: &InstalledSkill| {
        format!("{}  {}", skill.id, skill.description).trim_end().to_owned()
    };
    skills.iter().map(|skill| line(skill) + "\n").collect()
}
