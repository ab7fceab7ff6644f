//! Migrates a skill from OpenClaw to GAIA. Its needs become permissions and requirements, its
//! actions become tools, and its trust tier is reset.
//!
//! [`convert`](super::convert) writes what the other system can say and remembers the way back;
//! a migration goes one way. It expands what OpenClaw says coarsely, makes up what GAIA insists on,
//! and tells a person what to look at. Fields without a meaning in GAIA stay where they were.
//!
//! ```
//! use savoir_skill::{Source, convert::migrate::{MigrationRequest, migrate}, read};
//!
//! let text = "---\nname: Shots\ndescription: Takes screenshots.\n\
//!             metadata: {openclaw: {requires: {bins: [shot]}}}\n---\nRun `shot`.\n";
//! let reading = read(Source::from_bytes(text.into())?, None);
//! let migration = migrate(&reading, None, &MigrationRequest::default()).expect("nothing stands in the way");
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

/// Whose skill is migrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Vendor {
    /// OpenClaw and ClawHub.
    OpenClaw,
    /// Hermes, which has the same requirements under another name.
    Hermes,
}

/// Which permissions a result may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PermissionBreadth {
    /// Any: the result is held by the sandbox.
    #[default]
    Any,
    /// None for a whole domain of this machine, as the shipped product has it.
    Scoped,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct MigrationRequest<'a> {
    /// Whose skill it is; found out when nobody says.
    pub from: Option<Vendor>,
    /// Where the result keeps its fields.
    pub shape: ManifestShape,
    /// The name of the result, instead of the one it has.
    pub name: Option<&'a str>,
    /// Which permissions it may have.
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

/// A migrated skill.
#[derive(Clone, Debug)]
pub struct Migration {
    /// Whose skill it was.
    pub vendor: Vendor,
    /// Its name.
    pub name: String,
    /// SKILL.md.
    pub text: String,
    /// The tier that the source claims; the result is experimental.
    pub claimed_tier: Option<String>,
    /// What it may do.
    pub permissions: Vec<Permission>,
    /// Its tools, which `tools.py` must bring.
    pub tools: Vec<MigratedTool>,
    /// What a person should know or look at.
    pub notes: Vec<MigrationNote>,
    /// Which field became which.
    pub mapped: Vec<MappedField>,
}

/// A tool that was an action.
#[derive(Clone, Debug, PartialEq)]
pub struct MigratedTool {
    /// As it is declared. Its name and those of its parameters are names in Python.
    pub tool: Tool,
    /// The name of the action.
    pub action: String,
    /// The handler, as written.
    pub handler: String,
    /// What the handler calls each parameter, in the order of the tool's.
    pub arguments: Vec<String>,
}

/// Something about a migration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MigrationNote {
    /// The field or the file that it is about.
    pub field: String,
    /// In words.
    pub message: String,
    /// Whether a person must look at it before the skill is used.
    pub review: bool,
}

impl MigrationNote {
    /// Something to know.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into(), review: false }
    }

    /// Something that a person must look at.
    pub fn review(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { review: true, ..Self::new(field, message) }
    }
}

/// A field that became another.
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
    /// There is nothing to migrate.
    #[error("it has no frontmatter")]
    NoFrontmatter,
    /// The frontmatter cannot be read for sure.
    #[error("its frontmatter does not read: {0}")]
    Unreadable(String),
    /// It is a skill of another system.
    #[error("it is written for {}: {why}", dialect.title())]
    OtherDialect {
        /// Which one.
        dialect: Dialect,
        /// How that shows.
        why: String,
    },
    /// There is nothing to do.
    #[error("it is a skill of GAIA already")]
    AlreadyGaia,
    /// It is not a skill of the vendor that was named.
    #[error("it has no `metadata.hermes`")]
    NotHermes,
    /// No name can be made of what it has.
    #[error("`{0}` gives no name for GAIA")]
    NoName(String),
    /// The name that was asked for is no good.
    #[error("`{name}` is not a valid name for GAIA: {problem}")]
    InvalidName {
        /// Which one.
        name: String,
        /// Why.
        problem: NameProblem,
    },
    /// Nothing says what it does.
    #[error("it has no description")]
    NoDescription,
    /// GAIA would refuse the description.
    #[error("its description has {chars} characters, GAIA allows {limit}")]
    LongDescription {
        /// What it has.
        chars: usize,
        /// What the shape allows.
        limit: usize,
    },
    /// The flat shape exists only with tools.
    #[error("it has no actions, and the flat shape needs a tool")]
    NoTools,
    /// A permission reaches further than was asked for.
    #[error("`{0}` has no scope")]
    Unscoped(Permission),
    /// GAIA would not read the result as it is meant, so there is none.
    #[error("GAIA would not read `{0}` as it was")]
    Unfaithful(String),
    /// The result would not be valid.
    #[error("the result would not be valid: {0}")]
    Invalid(String),
}

impl MigrationBlocker {
    /// A stable word for programs.
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

/// Makes a skill of GAIA from one of OpenClaw or Hermes, or says everything that stands in the way.
/// The result has been read again.
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
    let reading = repair_source(&reading, folder)
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

/// Whose skill it is. Files that fit every system are OpenClaw's, too.
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

/// Whether a file is for another system, and neither for OpenClaw nor for Hermes.
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

/// Reads a result again, and gives the permissions that GAIA sees in it.
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
