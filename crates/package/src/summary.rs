//! Summary of a skill, read from its files.

mod declared_tools;

use std::sync::Arc;

use savoir_skill::{
    Diagnostic, Dialect, Folder, Hint, Reading, Source, SourceError,
    check::{self, Options},
    folder::is_skill_file,
    permission::{Permission, Tier},
    read,
    version::{SkillRef, parse_version},
};
use semver::Version;
use thiserror::Error;

use self::declared_tools::declared_tools;
use crate::{Tree, manifest::check_name};

/// The only file beside SKILL.md that is read to understand it.
const SIDE_FILE: &str = "agents/openai.yaml";

/// What a skill's files say about it.
#[derive(Clone, Debug)]
pub struct SkillSummary {
    /// Its name, which is that of its folder, too: as it calls itself, where a folder can be called so.
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
    /// Errors that agents read past: the skill is installed all the same.
    pub warnings: Vec<SummaryWarning>,
    pub(crate) reading: Arc<Reading>,
}

/// An error of SKILL.md that does not keep agents from loading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryWarning {
    /// The rule that it breaks.
    pub rule: &'static str,
    /// What is wrong.
    pub message: String,
    /// The line in SKILL.md.
    pub line: usize,
}

/// Why files are no skill that can be installed.
#[derive(Debug, Error)]
pub enum SummaryError {
    /// There is no SKILL.md.
    #[error("there is no SKILL.md")]
    Missing,
    /// SKILL.md is no text.
    #[error("SKILL.md: {0}")]
    Source(#[from] SourceError),
    /// SKILL.md has an error.
    #[error("SKILL.md:{line}: {message}")]
    Invalid { rule: &'static str, message: String, line: usize },
    /// It has no name that a folder can have.
    #[error("{0}")]
    Name(String),
    /// A skill that it needs is named wrongly.
    #[error("it needs `{text}`, which names no skill: {why}")]
    Need { text: String, why: String },
}

impl SummaryError {
    /// A stable word for programs: where a rule is broken, its code, which `check` tells, too.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing => "no_skill_file",
            Self::Source(error) => error.code(),
            Self::Invalid { rule, .. } => rule,
            Self::Name(_) => "invalid_name",
            Self::Need { .. } => "invalid_dependency",
        }
    }
}

impl SkillSummary {
    /// Reads SKILL.md. `called` is the name of its folder, or of the offer that it came from.
    pub fn read(tree: &Tree, called: &str) -> Result<Self, SummaryError> {
        Self::read_at(tree, called, None)
    }

    /// Reads SKILL.md of a skill whose place, or the agent that it is for, says something about its
    /// dialect: see [`hint_of_path`](crate::agents::hint_of_path) and [`Agent::hint`](crate::Agent::hint).
    pub fn read_at(tree: &Tree, called: &str, hint: Option<Hint>) -> Result<Self, SummaryError> {
        let (_, file) =
            tree.files().find(|(path, _)| is_skill_file(path)).ok_or(SummaryError::Missing)?;
        let source = Source::from_bytes(file.bytes.clone())?;
        let folder = tree.as_folder(Some(called)).with_hint(hint);
        let reading = read(source, Some(&folder));
        if !reading.is_usable() {
            return Err(invalid(&reading, &folder));
        }
        let skill = &reading.skill;
        let name = name(&skill.name, called)?;
        let needs: Result<Vec<SkillRef>, SummaryError> =
            skill.requirements.skills.iter().map(|text| need(text)).collect();
        Ok(Self {
            name,
            version: version(skill.version.as_deref()),
            dialect: skill.dialect,
            description: skill.description.clone(),
            claimed: skill.policy.tier,
            permissions: skill.permissions.clone(),
            tools: declared_tools(&reading, tree),
            needs: needs?,
            warnings: warnings(&reading),
            reading: Arc::new(reading),
        })
    }

    /// Refuses a skill whose head looks different from what it says. One that lies here already can
    /// still be looked at and removed.
    pub(crate) fn reject_disguised(self) -> Result<Self, SummaryError> {
        match check::find_disguise(&self.reading) {
            Some(found) => Err(broken(&self.reading, &found)),
            None => Ok(self),
        }
    }

    /// The text that a model reads.
    pub fn text(&self) -> &str {
        &self.reading.skill.body
    }

    /// Fields by which a host does something by itself, such as `hooks`, with what they say.
    pub fn obeyed_fields(&self) -> Vec<(String, String)> {
        declared_tools::obeyed_fields(&self.reading.document)
    }

    /// The name that signatures are for: the one in SKILL.md, else the one of the skill.
    pub(crate) fn signed_name(&self) -> &str {
        let written = &self.reading.skill.name;
        if written.is_empty() { &self.name } else { written }
    }

    /// The version as SKILL.md has it, which is what is signed.
    pub fn written_version(&self) -> &str {
        self.reading.skill.version.as_deref().unwrap_or_default()
    }
}

fn warnings(reading: &Reading) -> Vec<SummaryWarning> {
    let errors = reading.diagnostics.iter().filter(|found| found.is_error());
    let warning = |found: &Diagnostic| SummaryWarning {
        rule: found.code,
        message: found.message.clone(),
        line: reading.document.source().position(found.span.start).line,
    };
    errors.map(warning).collect()
}

/// What is wrong, as everybody names it.
fn invalid(reading: &Reading, folder: &Folder) -> SummaryError {
    let source = reading.document.source().clone();
    let checked = check::check(source, Some(folder), &Options::default());
    if let Some(found) = check::most_relevant_error(&checked.diagnostics).or(reading.error()) {
        return broken(reading, found);
    }
    SummaryError::Invalid { rule: "invalid-yaml", message: "it does not read".to_owned(), line: 1 }
}

fn broken(reading: &Reading, found: &Diagnostic) -> SummaryError {
    let line = reading.document.source().position(found.span.start).line;
    SummaryError::Invalid { rule: found.code, message: found.message.clone(), line }
}

/// Some skills call themselves by a title, such as `Site Shots`; then the name of their folder counts.
fn name(written: &str, called: &str) -> Result<String, SummaryError> {
    let written = if written.is_empty() { called } else { written };
    let is_path =
        written.starts_with(['/', '\\']) || written.split(['/', '\\']).any(|part| part == "..");
    match check_name(written) {
        Err(why) if is_path => Err(SummaryError::Name(why)),
        Ok(()) => Ok(written.to_owned()),
        Err(_) if check_name(called).is_ok() => Ok(called.to_owned()),
        Err(why) => Err(SummaryError::Name(why)),
    }
}

/// Dialects that do not care write all sorts of versions; what is none is as good as missing.
fn version(text: Option<&str>) -> Version {
    let version = text.and_then(|text| parse_version(text).ok());
    version.unwrap_or_else(|| Version::new(0, 0, 0))
}

fn need(text: &str) -> Result<SkillRef, SummaryError> {
    SkillRef::parse(text)
        .map_err(|why| SummaryError::Need { text: text.to_owned(), why: why.to_string() })
}
