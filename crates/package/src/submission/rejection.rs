//! Why something cannot be published.

use savoir_skill::{Diagnostic, Severity, Source, SourceError, version::VersionError};
use semver::Version;
use serde::Serialize;
use thiserror::Error;

use crate::{SummaryError, archive::ArchiveError, registry::NameError, trust::SignatureError};

/// Why something cannot be published: what, where, and the way out.
#[derive(Debug, Error)]
pub enum Rejection {
    /// The archive is refused.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The SKILL.md that was sent is not the one of the archive.
    #[error(
        "the SKILL.md that was sent is not the one in the archive; send the same bytes, or only the archive"
    )]
    SkillDiffers,
    /// SKILL.md is no text.
    #[error("{file}: {error}; {}", error.help())]
    Text { file: String, error: SourceError },
    /// A rule finds an error.
    #[error("{}", summary(rule, findings))]
    Check { rule: &'static str, findings: Vec<SubmissionFinding> },
    /// Nobody who installs it could use it.
    #[error("SKILL.md: {0}; fix it with `savoir check --fix`")]
    SkillSummary(#[from] SummaryError),
    /// It has no frontmatter.
    #[error(
        "SKILL.md has no frontmatter, so that it has neither a name nor a version; add it with `savoir convert`, or publish the text with `--namespace anon`; a file of its own, such as notes.md, goes into a namespace of yours as well"
    )]
    Prose,
    /// It has one, and is to be published as prose.
    #[error(
        "the namespace `anon` is for texts without frontmatter, and this SKILL.md has one; leave the namespace out, or use your own"
    )]
    NotProse,
    /// Nothing tells what it is called.
    #[error(
        "nothing tells what the skill is called; add `name` to the frontmatter; a text without frontmatter begins with a heading, or is named with `--name`"
    )]
    NoName,
    /// Its name cannot be that of a published skill.
    #[error(transparent)]
    Name(#[from] NameError),
    /// What was asked for cannot be a namespace.
    #[error(
        "`{}` cannot be a namespace; write lower-case letters, digits and single hyphens", .0.escape_debug()
    )]
    NoNamespace(String),
    /// It names another namespace.
    #[error(
        "the skill calls itself `{}`, which is not in the namespace `{}`; use one of them", written.escape_debug(), asked.escape_debug()
    )]
    Namespace { asked: String, written: String },
    /// It has no version.
    #[error(
        "SKILL.md has no version; publish it with `--version 1.0.0`, or add `version: 1.0.0`, or `metadata: {{version: \"1.0.0\"}}` in dialects without that field"
    )]
    NoVersion,
    /// It has another version than was asked for.
    #[error(
        "`version` is {asked}, and SKILL.md says {written}; write the version into SKILL.md, or leave `--version` out"
    )]
    VersionDiffers { asked: Version, written: Version },
    /// A version was asked for, and the registry counts it.
    #[error("the registry counts the versions of prose; leave `version` out")]
    CountedVersion,
    /// It does not say what it does.
    #[error(
        "SKILL.md:{line}: the description is empty; say what the skill does and when to use it, such as `description: Reads tables from PDF files. Use when a PDF has tables.`"
    )]
    NoDescription { line: usize },
    /// Its version is none.
    #[error("{0}; write three numbers in quotes or as they are, such as 1.0.0")]
    Version(VersionError),
    /// Its version says that there is none.
    #[error("version 0.0.0 means that there is none; begin with 0.1.0 or 1.0.0")]
    VersionZero,
    /// An index cannot hold it.
    #[error("{what} of the skill cannot be published: at most {most}; make it shorter")]
    TooMuch { what: &'static str, most: String },
    /// A text that is shown has control characters.
    #[error("{what} of the skill has control characters, which act on terminals; delete them")]
    Control { what: &'static str },
    /// A signature is wrong.
    #[error("{0}")]
    Signature(#[from] SignatureError),
}

impl Rejection {
    /// A stable word for programs: the same from `check`, `install` and `publish`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Archive(error) => error.code(),
            Self::SkillDiffers => "skill_differs",
            Self::Text { error, .. } => error.code(),
            Self::Check { rule, .. } => rule,
            Self::SkillSummary(error) => error.code(),
            Self::Prose => "no_frontmatter",
            Self::NotProse => "not_prose",
            Self::NoName => "no_name",
            Self::Name(error) => error.code(),
            Self::NoNamespace(_) => "invalid_namespace",
            Self::Namespace { .. } => "namespace_differs",
            Self::NoVersion => "no_version",
            Self::VersionDiffers { .. } | Self::CountedVersion => "version_mismatch",
            Self::NoDescription { .. } => "no_description",
            Self::Version(_) => "invalid_version",
            Self::VersionZero => "version_zero",
            Self::TooMuch { .. } => "too_much",
            Self::Control { .. } => "control-character",
            Self::Signature(error) => error.code(),
        }
    }

    /// The code of the registry's API.
    pub fn api_code(&self) -> &'static str {
        match self {
            Self::Archive(ArchiveError::TooLarge(_) | ArchiveError::TooManyFiles) => {
                "artifact_too_large"
            }
            Self::Archive(_) | Self::Signature(_) => "invalid_artifact",
            Self::SkillDiffers
            | Self::NotProse
            | Self::NoNamespace(_)
            | Self::Namespace { .. }
            | Self::VersionDiffers { .. }
            | Self::CountedVersion => "invalid_request",
            _ => "invalid_skill_manifest",
        }
    }

    /// What is wrong, and the way out.
    pub fn message(&self) -> String {
        self.to_string()
    }

    /// What the rules found, if they refused it.
    pub fn findings(&self) -> &[SubmissionFinding] {
        match self {
            Self::Check { findings, .. } => findings,
            _ => &[],
        }
    }
}

/// One finding of a rule at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SubmissionFinding {
    /// The code of the rule, as `savoir rules` explains it.
    pub rule: String,
    /// How much it matters.
    pub severity: Severity,
    /// The file.
    pub file: String,
    /// Its line, from one.
    pub line: usize,
    /// The character in the line, from one.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// The way out.
    pub fix: Option<String>,
}

impl SubmissionFinding {
    pub(super) fn new(file: &str, source: &Source, found: &Diagnostic) -> Self {
        let place = source.position(found.span.start);
        Self {
            rule: found.code.to_owned(),
            severity: found.severity,
            file: file.to_owned(),
            line: place.line,
            column: place.column,
            message: found.message.clone(),
            fix: found.help.clone(),
        }
    }
}

/// The finding that tells most, and how many more there are.
fn summary(rule: &str, findings: &[SubmissionFinding]) -> String {
    let Some(found) = findings.iter().find(|found| found.rule == rule) else {
        return format!("SKILL.md breaks the rule `{rule}`");
    };
    let SubmissionFinding { file, line, column, message, fix, .. } = found;
    let mut text = format!("{file}:{line}:{column}: {message}");
    if let Some(fix) = fix {
        text = format!("{text}; {fix}");
    }
    match findings.len() {
        1 => text,
        2 => format!("{text}; and 1 more error"),
        more => format!("{text}; and {} more errors", more - 1),
    }
}
