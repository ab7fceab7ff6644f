//! Reads the summary of a skill from its files.

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

/// The only file besides SKILL.md that is read.
const SIDE_FILE: &str = "agents/openai.yaml";

/// The metadata of a skill.
#[derive(Clone, Debug)]
pub struct SkillSummary {
    /// The name, which is also the name of its folder: the one in SKILL.md if it is a valid folder
    /// name.
    pub name: String,
    /// The version; 0.0.0 if there is none.
    pub version: Version,
    pub dialect: Dialect,
    pub description: String,
    /// The tier that it claims.
    pub claimed: Option<Tier>,
    /// The requested permissions.
    pub permissions: Vec<Permission>,
    /// The tools that it provides, and the tools of the host that it uses.
    pub tools: Vec<String>,
    /// The dependencies.
    pub needs: Vec<SkillRef>,
    /// Errors that do not prevent agents from loading the skill.
    pub warnings: Vec<SummaryWarning>,
    pub(crate) reading: Arc<Reading>,
}

/// An error of SKILL.md that does not prevent agents from loading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryWarning {
    /// The code of the rule.
    pub rule: &'static str,
    pub message: String,
    /// The line in SKILL.md.
    pub line: usize,
}

/// Why files are not a skill that can be installed.
#[derive(Debug, Error)]
pub enum SummaryError {
    /// There is no SKILL.md.
    #[error("there is no SKILL.md")]
    Missing,
    /// SKILL.md is not valid text.
    #[error("SKILL.md: {0}")]
    Source(#[from] SourceError),
    /// SKILL.md has an error.
    #[error("SKILL.md:{line}: {message}")]
    Invalid { rule: &'static str, message: String, line: usize },
    /// It has no name that is a valid folder name.
    #[error("{0}")]
    Name(String),
    /// The name of a dependency is invalid.
    #[error("it needs `{text}`, which names no skill: {why}")]
    Need { text: String, why: String },
}

impl SummaryError {
    /// A stable code for programs; for a broken rule, the code of the rule, as in `check`.
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
    /// Reads SKILL.md. `called` is the name of its folder, or the name in its source.
    pub fn read(tree: &Tree, called: &str) -> Result<Self, SummaryError> {
        Self::read_at(tree, called, None)
    }

    /// Reads SKILL.md with a hint about its dialect from its path or its agent: see
    /// [`hint_of_path`](crate::agents::hint_of_path) and [`Agent::hint`](crate::Agent::hint).
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

    /// Rejects a skill whose frontmatter looks different from what parsers read. Only for new
    /// skills: an installed one must stay readable, so that it can be removed.
    pub(crate) fn reject_disguised(self) -> Result<Self, SummaryError> {
        match check::find_disguise(&self.reading) {
            Some(found) => Err(broken(&self.reading, &found)),
            None => Ok(self),
        }
    }

    /// Rejects a skill whose name is a path. Only for new skills, too.
    pub(crate) fn reject_unsafe_name(self) -> Result<Self, SummaryError> {
        match check::find_unsafe_name(&self.reading) {
            Some(found) => Err(broken(&self.reading, &found)),
            None => Ok(self),
        }
    }

    /// The text that a model reads.
    pub fn text(&self) -> &str {
        &self.reading.skill.body
    }

    /// Returns the fields on which hosts act automatically, such as `hooks`, with their values.
    pub fn obeyed_fields(&self) -> Vec<(String, String)> {
        declared_tools::obeyed_fields(&self.reading.document)
    }

    /// Returns the name that signatures cover: the one in SKILL.md, else that of the folder.
    pub(crate) fn signed_name(&self) -> &str {
        let written = &self.reading.skill.name;
        if written.is_empty() { &self.name } else { written }
    }

    /// Returns the version as written in SKILL.md, which signatures cover.
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

/// Returns the error that `check` would report first.
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

/// Returns the folder name. Some skills have a title as their name, such as `Site Shots`; then the
/// name of their folder is used.
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

/// Parses a version. Some dialects allow any text; an invalid version counts as missing.
fn version(text: Option<&str>) -> Version {
    let version = text.and_then(|text| parse_version(text).ok());
    version.unwrap_or_else(|| Version::new(0, 0, 0))
}

fn need(text: &str) -> Result<SkillRef, SummaryError> {
    SkillRef::parse(text)
        .map_err(|why| SummaryError::Need { text: text.to_owned(), why: why.to_string() })
}
