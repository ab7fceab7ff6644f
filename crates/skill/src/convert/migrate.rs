//! Migrates a skill from OpenClaw or Hermes to GAIA.
//!
//! The requirements of the skill become permissions and requirements of GAIA, its actions become
//! tools, and its trust tier is reset.
//!
//! [`convert`](super::convert) writes the fields that the other system supports and stores the
//! original for converting back. A migration is one-way: it expands the coarse permissions of
//! OpenClaw, fills in the fields that GAIA requires, and lists the points that a person must
//! review. Fields without a meaning in GAIA stay unchanged.
//!
//! ```
//! use savoir_skill::{Source, convert::migrate::{MigrationRequest, migrate}, read};
//!
//! let text = "---\nname: Shots\ndescription: Takes screenshots.\n\
//!             metadata: {openclaw: {requires: {bins: [shot]}}}\n---\nRun `shot`.\n";
//! let reading = read(Source::from_bytes(text.into())?, None);
//! let migration = migrate(&reading, None, &MigrationRequest::default()).expect("no blocker");
//! assert_eq!(migration.name, "shots");
//! assert_eq!(migration.permissions[0].to_string(), "shell:execute:shot");
//! # Ok::<(), savoir_skill::SourceError>(())
//! ```

mod plan;
mod python_names;
mod text;

#[cfg(test)]
mod tests;

use plan::MigrationPlan;
use savoir_lint::Source;
use serde::Serialize;
use thiserror::Error;

use super::{Fields, repair_source};
use crate::{
    dialect::{
        Clues, Dialect, Strength,
        gaia::{ManifestShape, write_as},
        openclaw::HERMES,
    },
    document::State,
    folder::Folder,
    name::NameProblem,
    permission::Permission,
    reading::{Reading, read_as},
    skill::{Skill, Tool},
};

/// The system that the migrated skill was written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Vendor {
    /// OpenClaw and ClawHub.
    OpenClaw,
    /// Hermes, which has the same requirements under another name.
    Hermes,
}

/// Limits the permissions of the migrated skill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PermissionBreadth {
    /// Any permission is allowed, because the sandbox enforces them.
    #[default]
    Any,
    /// Permissions for a whole domain of this machine are rejected, as the shipped product does.
    Scoped,
}

/// The options of a migration.
#[derive(Clone, Copy, Debug)]
pub struct MigrationRequest<'a> {
    /// The system of the source; detected if `None`.
    pub from: Option<Vendor>,
    /// Where the migrated file stores the fields of GAIA.
    pub shape: ManifestShape,
    /// A new name for the skill, instead of its current one.
    pub name: Option<&'a str>,
    /// Which permissions the result may have.
    pub breadth: PermissionBreadth,
}

impl Default for MigrationRequest<'_> {
    fn default() -> Self {
        Self {
            from: None,
            shape: ManifestShape::Nested,
            name: None,
            breadth: PermissionBreadth::Any,
        }
    }
}

/// The result of a migration.
#[derive(Clone, Debug)]
pub struct Migration {
    /// The system of the source.
    pub vendor: Vendor,
    /// The name of the migrated skill.
    pub name: String,
    /// The text of the migrated SKILL.md.
    pub text: String,
    /// The tier that the source claims; the result is always experimental.
    pub claimed_tier: Option<String>,
    /// The permissions of the migrated skill.
    pub permissions: Vec<Permission>,
    /// The tools, which `tools.py` must implement.
    pub tools: Vec<MigratedTool>,
    /// Messages for the user, including points to review.
    pub notes: Vec<MigrationNote>,
    /// The fields that were mapped to other fields.
    pub mapped: Vec<MappedField>,
}

/// A tool that was an action in the source.
#[derive(Clone, Debug, PartialEq)]
pub struct MigratedTool {
    /// The tool as declared. Its name and its parameter names are valid Python names.
    pub tool: Tool,
    /// The name of the action in the source.
    pub action: String,
    /// The handler of the action as written.
    pub handler: String,
    /// The names that the handler uses for the parameters, in the order of the tool's parameters.
    pub arguments: Vec<String>,
}

/// A message about a migration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MigrationNote {
    /// The field or the file that the message is about.
    pub field: String,
    /// The message text.
    pub message: String,
    /// Whether a person must review this point before the skill is used.
    pub review: bool,
}

impl MigrationNote {
    /// Makes an informational note.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into(), review: false }
    }

    /// Makes a note that a person must review.
    pub fn review(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { review: true, ..Self::new(field, message) }
    }
}

/// A field of the source that became another field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MappedField {
    /// Dotted path in the source.
    pub from: String,
    /// Dotted path in the result.
    pub to: String,
}

/// Why a skill was not migrated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MigrationBlocker {
    /// The file has no frontmatter to migrate.
    #[error("it has no frontmatter")]
    NoFrontmatter,
    /// The frontmatter has errors, so its meaning is uncertain.
    #[error("its frontmatter does not read: {0}")]
    Unreadable(String),
    /// The skill was written for another system.
    #[error("it is written for {}: {why}", dialect.title())]
    OtherDialect {
        /// The detected dialect.
        dialect: Dialect,
        /// The reason for the detection.
        why: String,
    },
    /// The skill is already a GAIA skill.
    #[error("it is a skill of GAIA already")]
    AlreadyGaia,
    /// The request names Hermes, but the skill is not a Hermes skill.
    #[error("it has no `metadata.hermes`")]
    NotHermes,
    /// No valid name can be derived from the name of the source.
    #[error("`{0}` cannot become a GAIA name")]
    NoName(String),
    /// The requested name is invalid.
    #[error("`{name}` is not a valid name for GAIA: {problem}")]
    InvalidName {
        /// The requested name.
        name: String,
        /// Why the name is invalid.
        problem: NameProblem,
    },
    /// The skill has no description, and none can be derived from its text.
    #[error("it has no description")]
    NoDescription,
    /// The description is longer than GAIA accepts.
    #[error("its description has {chars} characters, GAIA allows {limit}")]
    LongDescription {
        /// The length of the description in characters.
        chars: usize,
        /// The maximum length in the requested shape.
        limit: usize,
    },
    /// The flat shape requires tools, and the skill has none.
    #[error("it has no actions, but the flat layout needs a tool")]
    NoTools,
    /// A permission is wider than the request allows.
    #[error("`{0}` has no scope")]
    Unscoped(Permission),
    /// GAIA would read different values from the result, so there is no result.
    #[error("GAIA would not read `{0}` as it was")]
    Unfaithful(String),
    /// The result would not be valid.
    #[error("the result would not be valid: {0}")]
    Invalid(String),
}

impl MigrationBlocker {
    /// A stable identifier for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoFrontmatter => "no_frontmatter",
            Self::Unreadable(_) => "unreadable",
            Self::OtherDialect { .. } | Self::NotHermes => "other_dialect",
            Self::AlreadyGaia => "already_gaia",
            Self::NoName(_) | Self::InvalidName { .. } => "no_name",
            Self::NoDescription => "no_description",
            Self::LongDescription { .. } => "long_description",
            Self::NoTools => "no_tools",
            Self::Unscoped(_) => "unscoped_permission",
            Self::Unfaithful(_) => "unfaithful",
            Self::Invalid(_) => "invalid_result",
        }
    }
}

/// Migrates a skill of OpenClaw or Hermes to GAIA, or returns all reasons why it cannot. The result
/// is verified by reading it again.
pub fn migrate(
    reading: &Reading,
    folder: Option<&Folder>,
    request: &MigrationRequest<'_>,
) -> Result<Migration, Vec<MigrationBlocker>> {
    if reading.document.state() == State::Absent {
        return Err(vec![MigrationBlocker::NoFrontmatter]);
    }
    let vendor = detect_vendor(reading, request.from).map_err(|blocker| vec![blocker])?;
    let source = reading.document.source().clone();
    let reading = read_as(source, Dialect::OPENCLAW, folder);
    let (reading, _) = repair_source(&reading, folder)
        .map_err(|error| vec![MigrationBlocker::Unreadable(error.to_string())])?;
    let mut plan = MigrationPlan::new(&reading, request);
    let blockers = plan.fill();
    if !blockers.is_empty() {
        return Err(blockers);
    }
    let fields = write_fields(&plan.skill, request.shape);
    let text = text::write(&mut plan, &fields.written);
    let permissions =
        verify_result(&text, &fields, request.shape).map_err(|blocker| vec![blocker])?;
    Ok(Migration {
        vendor,
        name: plan.skill.name,
        text,
        claimed_tier: plan.claimed_tier,
        permissions,
        tools: plan.tools,
        notes: plan.notes,
        mapped: plan.mapped,
    })
}

/// Returns the system of the source. Files that are valid in every system count as OpenClaw.
fn detect_vendor(reading: &Reading, asked: Option<Vendor>) -> Result<Vendor, MigrationBlocker> {
    let block = format!("metadata.{HERMES}");
    let fields = reading.document.fields();
    let hermes = fields.and_then(|fields| fields.path(&block)).is_some();
    let found = &reading.detection;
    match asked {
        Some(Vendor::Hermes) if !hermes => Err(MigrationBlocker::NotHermes),
        Some(vendor) => Ok(vendor),
        None if found.dialect == Dialect::GAIA => Err(MigrationBlocker::AlreadyGaia),
        None if is_other(reading, hermes) => {
            Err(MigrationBlocker::OtherDialect { dialect: found.dialect, why: found.why.clone() })
        }
        None if hermes && found.dialect != Dialect::OPENCLAW => Ok(Vendor::Hermes),
        None => Ok(Vendor::OpenClaw),
    }
}

/// Whether a file was written for a system other than OpenClaw and Hermes.
fn is_other(reading: &Reading, hermes: bool) -> bool {
    let (found, document) = (&reading.detection, &reading.document);
    let language = Dialect::OPENCLAW.language();
    let claw = language.evidence(&Clues { document }).is_some();
    let base = found.dialect == Dialect::AGENTSKILLS || found.strength != Strength::Strong;
    // Claude Code and OpenClaw share some fields beyond the base format.
    let known = |key: &str| language.fields(None).iter().any(|field| field.key == key);
    let fits = document.entries().iter().all(|entry| known(&entry.key));
    !(claw || hermes || base || fits)
}

/// Reads a result again and returns the permissions that GAIA finds in it.
fn verify_result(
    text: &str,
    fields: &Fields,
    shape: ManifestShape,
) -> Result<Vec<Permission>, MigrationBlocker> {
    let result = read_as(Source::new(text.to_owned()), Dialect::GAIA, None);
    let problem = result.document.problems().iter().find(|problem| problem.is_error());
    if let Some(problem) = problem.or_else(|| result.error()) {
        return Err(MigrationBlocker::Invalid(problem.message.clone()));
    }
    let again = write_fields(&result.skill, shape);
    let same = |path: &str| {
        let value = |fields: &Fields| {
            fields.written.iter().find(|one| one.path == path).map(|one| one.value.clone())
        };
        value(&again) == value(fields)
    };
    match fields.written.iter().find(|written| !same(&written.path)) {
        Some(lost) => Err(MigrationBlocker::Unfaithful(lost.path.clone())),
        None => Ok(result.skill.permissions),
    }
}

fn write_fields(skill: &Skill, shape: ManifestShape) -> Fields {
    let mut fields = Fields::default();
    write_as(skill, shape, &mut fields);
    fields
}
