//! Loads a skill from disk, with its origin and its signers ([`LoadedSkill`]).
//!
//! The verified bytes are the bytes that run: the parsed SKILL.md, the files that signatures cover
//! and the digest that an approval covers are read consistently, or loading fails; and a run
//! compares the digest once more before it starts.

mod content;
mod signers;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use savoir_package::{
    Tree, TreeError,
    trust::{self, SignatureError, TrustStore},
};
use savoir_skill::{
    Reading, Skill,
    permission::Tier,
    python::{self, TOOLS_FILE},
    skill::Runner,
};
use thiserror::Error;

use self::content::{Content, ExpectedContent};
pub use self::signers::Signers;
use crate::{approval::Trust, error::RunError};

/// Folders of version control. In the root of a skill they are not part of its content, and a run
/// does not see them.
pub(crate) const HISTORY_FOLDERS: [&str; 3] = [".git", ".hg", ".svn"];

/// A skill on disk, with its digest, origin and signers.
#[derive(Clone, Debug)]
pub struct LoadedSkill {
    /// The parsed SKILL.md.
    pub skill: Skill,
    /// The path of its SKILL.md.
    pub file: PathBuf,
    /// The folder of the skill; none if the skill is a single file.
    pub folder: Option<PathBuf>,
    /// SHA-256 over all files of the skill.
    pub digest: String,
    /// The files of the skill with the first digits of their SHA-256; empty if there are too many.
    pub files: BTreeMap<String, String>,
    pub trust: Trust,
    pub tier: Tier,
    /// The signers, and the files that their signatures do not cover.
    pub signers: Signers,
    /// Whether the Python tools match the declarations, checked without running them.
    pub source: Result<(), SourceError>,
}

/// Why a skill on disk cannot be used.
#[derive(Debug, Error)]
pub enum LoadSkillError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The SKILL.md is in a folder of version control, which is not part of the content.
    #[error("{} is in the history of version control", path.display())]
    History { path: PathBuf },
    /// The skill has more files or bytes than a user can review.
    #[error("{} has more than {what}, which is too much to approve", path.display())]
    TooLarge { path: PathBuf, what: String },
    /// The skill changed while it was read.
    #[error("{} changed while it was read", path.display())]
    Changed { path: PathBuf },
    /// The skill is signed, but its files are not a valid package.
    #[error("{}: {error}", path.display())]
    Unfit { path: PathBuf, error: TreeError },
    /// The skill is signed, and the signature is wrong.
    #[error("`{name}`: {error}")]
    Signature { name: String, path: PathBuf, error: Box<SignatureError> },
}

impl LoadSkillError {
    /// The stable identifier of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } | Self::History { .. } | Self::TooLarge { .. } => {
                "skill-unreadable"
            }
            Self::Changed { .. } => "skill-changed",
            Self::Unfit { error, .. } => error.code(),
            Self::Signature { error, .. } => error.code(),
        }
    }
}

impl LoadedSkill {
    /// Loads a skill whose SKILL.md was parsed, with the folder around the file if there is one.
    /// Signatures are used as far as their keys are trusted; a wrong signature is an error.
    pub fn new(
        reading: &Reading,
        file: &Path,
        folder: Option<&Path>,
        trust: Trust,
        store: &TrustStore,
    ) -> Result<Self, LoadSkillError> {
        let skill = reading.skill.clone();
        let unreadable = |source| LoadSkillError::Unreadable { path: file.to_owned(), source };
        let file = file.canonicalize().map_err(unreadable)?;
        let folder = folder.map(Path::canonicalize).transpose().map_err(unreadable)?;
        let in_history =
            |folder: &Path| HISTORY_FOLDERS.iter().any(|name| file.starts_with(folder.join(name)));
        if folder.as_deref().is_some_and(in_history) {
            return Err(LoadSkillError::History { path: file });
        }
        let tree = folder.as_deref().and_then(signed_files).transpose()?;
        let text = reading.document.source().text().as_bytes();
        let expected = ExpectedContent { file: &file, text, signed: tree.as_ref() };
        let root = folder.as_deref().unwrap_or(&file);
        let Content { digest, files, uncovered } = content::read(root, &expected)?;
        let signers = verify_signatures(&skill, root, tree.as_ref(), uncovered, store)?;
        let tier = signers.tier(&skill);
        let source = check_declared_tools(reading, folder.as_deref());
        Ok(Self { skill, file, folder, digest, files, trust, tier, signers, source })
    }

    /// Fails if the files changed since loading: the user approved, or the author signed, other
    /// bytes.
    pub(crate) fn refuse_changed(&self) -> Result<(), RunError> {
        match content::digest(self.path()) {
            Ok(digest) if digest == self.digest => Ok(()),
            Ok(_) => Err(LoadSkillError::Changed { path: self.path().to_owned() }.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// The folder, or the file of a skill without a folder.
    pub fn path(&self) -> &Path {
        self.folder.as_deref().unwrap_or(&self.file)
    }
}

/// Reads all files of a signed skill once; none if the skill is unsigned.
fn signed_files(folder: &Path) -> Option<Result<Tree, LoadSkillError>> {
    let unfit = |error| LoadSkillError::Unfit { path: folder.to_owned(), error };
    trust::is_signed(folder).then(|| Tree::read(folder).map_err(unfit))
}

/// Verifies the signatures among the files.
fn verify_signatures(
    skill: &Skill,
    folder: &Path,
    tree: Option<&Tree>,
    uncovered: Vec<String>,
    store: &TrustStore,
) -> Result<Signers, LoadSkillError> {
    let Some(tree) = tree else { return Ok(Signers::default()) };
    let version = skill.version.as_deref().unwrap_or_default();
    let folder_name = folder.file_name().unwrap_or_default().to_string_lossy();
    let name = if skill.name.is_empty() { &folder_name } else { skill.name.as_str() };
    let attestation = trust::attest(tree, name, version, store).map_err(|error| {
        let (name, path) = (skill.name.clone(), folder.to_owned());
        LoadSkillError::Signature { name, path, error: Box::new(error) }
    })?;
    Ok(Signers { attestation, uncovered })
}

/// The differences between the Python tools of a skill and its declarations.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", .0.join("; "))]
pub struct SourceError(pub Vec<String>);

/// Compares the declarations with `tools.py`. Each difference names both places.
fn check_declared_tools(reading: &Reading, folder: Option<&Path>) -> Result<(), SourceError> {
    let is_python = |tool: &savoir_skill::skill::Tool| matches!(tool.runner, Runner::Python { .. });
    if !reading.skill.tools.iter().any(is_python) {
        return Ok(());
    }
    let wrong = |text: String| SourceError(vec![text]);
    let folder = folder.ok_or_else(|| wrong(format!("there is no {TOOLS_FILE} beside it")))?;
    let bytes = fs::read(folder.join(TOOLS_FILE))
        .map_err(|error| wrong(format!("{TOOLS_FILE} cannot be read: {error}")))?;
    let module = python::parse_bytes(&bytes).map_err(|error| {
        let place = line_and_column(&String::from_utf8_lossy(&bytes), error.span.start);
        wrong(format!("{TOOLS_FILE}:{place}: {error}"))
    })?;
    let text = String::from_utf8_lossy(&bytes);
    let differences = python::compare_tools(&python::declarations(reading), &module);
    let described = differences.iter().map(|mismatch| {
        let declared = mismatch.declared.map(|span| {
            let at = reading.document.source().position(span.start);
            format!("SKILL.md:{}:{}", at.line, at.column)
        });
        let source = mismatch
            .source
            .map(|span| format!("{TOOLS_FILE}:{}", line_and_column(&text, span.start)));
        let places: Vec<String> = declared.into_iter().chain(source).collect();
        format!("{mismatch} ({})", places.join(", "))
    });
    let described: Vec<String> = described.collect();
    if described.is_empty() { Ok(()) } else { Err(SourceError(described)) }
}

/// Line and column of an offset.
fn line_and_column(text: &str, offset: usize) -> String {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    format!("{line}:{column}")
}
