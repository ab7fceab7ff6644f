//! Reasons why a package cannot be published.

use savoir_skill::{Diagnostic, Severity, Source, SourceError, version::VersionError};
use semver::Version;
use serde::Serialize;
use thiserror::Error;

use crate::{SummaryError, archive::ArchiveError, registry::NameError, trust::SignatureError};

/// Why a package cannot be published. The messages include a hint.
#[derive(Debug, Error)]
pub enum Rejection {
    /// The archive is invalid.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error(
        "the SKILL.md that was sent is not the one in the archive; send the same bytes, or only the archive"
    )]
    SkillDiffers,
    /// SKILL.md is not valid text.
    #[error("{file}: {error}; {}", error.help())]
    Text { file: String, error: SourceError },
    /// A rule found an error.
    #[error("{}", summary(rule, findings))]
    Check { rule: &'static str, findings: Vec<SubmissionFinding> },
    /// Installers could not use the skill.
    #[error("SKILL.md: {0}; fix it with `savoir check --fix`")]
    SkillSummary(#[from] SummaryError),
    #[error(
        "SKILL.md has no frontmatter, so that it has neither a name nor a version; add it with `savoir convert`, or publish the text with `--namespace anon`; a file of its own, such as notes.md, goes into a namespace of yours as well"
    )]
    Prose,
    /// A SKILL.md with frontmatter cannot be published in `anon`.
    #[error(
        "the namespace `anon` is for texts without frontmatter, and this SKILL.md has one; leave the namespace out, or use your own"
    )]
    NotProse,
    /// No name was found.
    #[error(
        "the skill has no name; add `name` to the frontmatter; a text without frontmatter begins with a heading, or is named with `--name`"
    )]
    NoName,
    /// The name is not a valid registry name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The requested namespace is not valid.
    #[error(
        "`{}` cannot be a namespace; write lower-case letters, digits and single hyphens", .0.escape_debug()
    )]
    NoNamespace(String),
    /// The skill's own namespace differs from the requested one.
    #[error(
        "the skill calls itself `{}`, which is not in the namespace `{}`; use one of them", written.escape_debug(), asked.escape_debug()
    )]
    Namespace { asked: String, written: String },
    #[error(
        "SKILL.md has no version; publish it with `--version 1.0.0`, or add `version: 1.0.0`, or `metadata: {{version: \"1.0.0\"}}` in dialects without that field"
    )]
    NoVersion,
    /// The version of SKILL.md differs from the requested one.
    #[error(
        "`version` is {asked}, and SKILL.md says {written}; write the version into SKILL.md, or leave `--version` out"
    )]
    VersionDiffers { asked: Version, written: Version },
    /// A version was requested, but the registry assigns it.
    #[error("the registry counts the versions of prose; leave `version` out")]
    CountedVersion,
    /// The description is empty.
    #[error(
        "SKILL.md:{line}: the description is empty; say what the skill does and when to use it, such as `description: Reads tables from PDF files. Use when a PDF has tables.`"
    )]
    NoDescription { line: usize },
    /// The version is not valid.
    #[error("{0}; write three numbers in quotes or as they are, such as 1.0.0")]
    Version(VersionError),
    /// The version is 0.0.0, which means no version.
    #[error("version 0.0.0 means that there is none; begin with 0.1.0 or 1.0.0")]
    VersionZero,
    /// A limit of the index is exceeded.
    #[error("{what} of the skill cannot be published: at most {most}; make it shorter")]
    TooMuch { what: &'static str, most: String },
    /// A displayed text has control characters.
    #[error("{what} of the skill has control characters, which act on terminals; delete them")]
    Control { what: &'static str },
    /// A signature is invalid.
    #[error("{0}")]
    Signature(#[from] SignatureError),
}

impl Rejection {
    /// A stable code for programs; the same in `check`, `install` and `publish`.
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

    /// The error code of the registry API.
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

    /// The message with its hint.
    pub fn message(&self) -> String {
        self.to_string()
    }

    /// The findings of rules that caused the rejection.
    pub fn findings(&self) -> &[SubmissionFinding] {
        match self {
            Self::Check { findings, .. } => findings,
            _ => &[],
        }
    }
}

/// A finding of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SubmissionFinding {
    /// The code of the rule; `savoir rules` explains it.
    pub rule: String,
    pub severity: Severity,
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    pub message: String,
    /// How to fix it.
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

/// Formats the most important finding and the number of others.
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
