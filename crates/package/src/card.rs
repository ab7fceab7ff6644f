//! What a skill's files say about it.

use savoir_skill::{
    Dialect, Folder, Reading, Source, SourceError,
    folder::{self, is_skill_file},
    permission::{Permission, Tier},
    read,
    version::{SkillRef, parse_version},
};
use semver::Version;
use thiserror::Error;

use crate::{Tree, manifest::check_name};

/// What a skill's files say about it.
#[derive(Clone, Debug)]
pub struct Card {
    /// Its name, which is that of its folder, too.
    pub name: String,
    /// Its version; 0.0.0 where it has none.
    pub version: Version,
    /// How it is written.
    pub dialect: Dialect,
    /// What it does.
    pub description: String,
    /// The tier that it claims.
    pub claimed: Option<Tier>,
    /// What it asks for.
    pub permissions: Vec<Permission>,
    /// The tools that it brings, and those of the host that it uses.
    pub tools: Vec<String>,
    /// The skills that it needs.
    pub needs: Vec<SkillRef>,
    pub(crate) reading: Reading,
    pub(crate) folder: Folder,
}

/// Why files are no skill that can be installed.
#[derive(Debug, Error)]
pub enum CardError {
    /// There is no SKILL.md.
    #[error("there is no SKILL.md")]
    Missing,
    /// SKILL.md is no text.
    #[error("SKILL.md: {0}")]
    Source(#[from] SourceError),
    /// SKILL.md has an error.
    #[error("SKILL.md:{line}: {message}")]
    Invalid {
        /// What is wrong.
        message: String,
        /// Where.
        line: usize,
    },
    /// It has no name that a folder can have.
    #[error("`{name}` cannot be the name of a skill: {why}")]
    Name {
        /// The name.
        name: String,
        /// Why not.
        why: String,
    },
    /// A skill that it needs is named wrongly.
    #[error("it needs `{text}`, which names no skill: {why}")]
    Need {
        /// As it is written.
        text: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Card {
    /// Reads SKILL.md. `called` is the name of its folder, if it has one.
    pub fn read(tree: &Tree, called: Option<&str>) -> Result<Self, CardError> {
        let file = tree.files().find(|(path, _)| is_skill_file(path)).ok_or(CardError::Missing)?.1;
        let source = Source::from_bytes(file.bytes.clone().into())?;
        let folder = listed(tree, called.unwrap_or_default());
        let reading = read(source, Some(&folder));
        if !reading.is_usable() {
            return Err(invalid(&reading));
        }
        let skill = &reading.skill;
        let name = if skill.name.is_empty() { called.unwrap_or_default() } else { &skill.name };
        check_name(name)
            .map_err(|why| CardError::Name { name: name.to_owned(), why: why.into() })?;
        let needs: Result<Vec<SkillRef>, CardError> =
            skill.requirements.skills.iter().map(need).collect();
        Ok(Self {
            name: name.to_owned(),
            version: version(skill.version.as_deref()),
            dialect: skill.dialect,
            description: skill.description.clone(),
            claimed: skill.policy.tier,
            permissions: skill.permissions.clone(),
            tools: tools(&reading),
            needs: needs?,
            folder,
            reading,
        })
    }
}

/// The files of a tree, as the readers of dialects want them.
fn listed(tree: &Tree, name: &str) -> Folder {
    let file = |path: &str| folder::File { path: path.to_owned(), link: false };
    Folder::from_parts(name.into(), tree.files().map(|(path, _)| file(path)).collect())
}

fn invalid(reading: &Reading) -> CardError {
    let Some(error) = reading.error() else {
        return CardError::Invalid { message: "it does not read".to_owned(), line: 1 };
    };
    let line = reading.document.source().position(error.span.start).line;
    CardError::Invalid { message: error.message.clone(), line }
}

/// Dialects that do not care write all sorts of versions; what is none is as good as missing.
fn version(text: Option<&str>) -> Version {
    let version = text.and_then(|text| parse_version(text).ok());
    version.unwrap_or_else(|| Version::new(0, 0, 0))
}

fn need(text: &String) -> Result<SkillRef, CardError> {
    SkillRef::parse(text)
        .map_err(|why| CardError::Need { text: text.clone(), why: why.to_string() })
}

fn tools(reading: &Reading) -> Vec<String> {
    let skill = &reading.skill;
    let own = skill.tools.iter().map(|tool| tool.name.clone());
    let granted = skill.policy.allowed_tools.iter().flatten().map(ToString::to_string);
    let mut tools: Vec<String> =
        own.chain(skill.requirements.host_tools.iter().cloned()).chain(granted).collect();
    tools.sort_unstable();
    tools.dedup();
    tools
}
