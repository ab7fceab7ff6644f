//! Checks SKILL.md with the rules of `savoir check`.

use savoir_skill::{
    Diagnostic, Reading, Skill, Source,
    check::{self, Options},
    folder::is_skill_file,
    skill::Mode,
};
use serde_json::{Map, Value};

use super::{Rejection, SubmissionFinding, WrittenName};
use crate::{Tree, archive::ArchiveError};

/// YAML features that parsers interpret differently. `check` only warns, but published skills are
/// read by many parsers, and their permissions must not depend on the parser.
const REJECTED_YAML_RULES: [&str; 3] = ["yaml-alias", "yaml-merge-key", "yaml-tag"];

/// A SKILL.md without errors.
pub(super) struct CheckedManifest {
    pub(super) skill_md: Vec<u8>,
    /// The top-level folder of the archive.
    pub(super) folder: Option<String>,
    pub(super) reading: Reading,
    /// Findings that are not errors.
    pub(super) warnings: Vec<SubmissionFinding>,
}

impl CheckedManifest {
    /// Reads SKILL.md and checks the skill with all rules, ignoring user settings.
    pub(super) fn new(tree: &Tree, folder: Option<&str>) -> Result<Self, Rejection> {
        let (path, file) = tree.files().find(|(path, _)| is_skill_file(path)).ok_or_else(|| {
            ArchiveError::Layout("it has no SKILL.md at its root or in a folder there".to_owned())
        })?;
        let source = Source::from_bytes(file.bytes.clone())
            .map_err(|error| Rejection::Text { file: path.to_owned(), error })?;
        let checked = check::check(source, Some(&tree.as_folder(folder)), &Options::default());
        let source = checked.reading.document.source();
        let finding = |found: &Diagnostic| SubmissionFinding::new(path, source, found);
        let is_error =
            |found: &&Diagnostic| found.is_error() || REJECTED_YAML_RULES.contains(&found.code);
        let (errors, others): (Vec<_>, Vec<_>) = checked.diagnostics.iter().partition(is_error);
        let gravest =
            check::most_relevant_error(&checked.diagnostics).filter(|found| is_error(found));
        if let Some(gravest) = gravest.or(errors.first().copied()) {
            let findings = errors.iter().map(|found| finding(found)).collect();
            return Err(Rejection::Check { rule: gravest.code, findings });
        }
        let warnings = others.into_iter().map(finding).collect();
        Ok(Self {
            skill_md: file.bytes.clone(),
            folder: folder.map(str::to_owned),
            warnings,
            reading: checked.reading,
        })
    }

    pub(super) fn skill(&self) -> &Skill {
        &self.reading.skill
    }

    pub(super) fn is_prose(&self) -> bool {
        self.skill().mode == Mode::Prose
    }

    /// Returns the name and the version that signatures cover.
    pub(super) fn written(&self) -> WrittenName {
        let skill = self.skill();
        WrittenName { name: skill.name.clone(), version: skill.version.clone().unwrap_or_default() }
    }

    /// Returns the frontmatter as JSON.
    pub(super) fn manifest(&self) -> Value {
        let version = self.reading.detection.dialect.yaml();
        let fields = self.reading.document.fields().map(|fields| fields.to_value(version));
        fields.unwrap_or_else(|| Map::new().into())
    }

    /// Returns the line of the description, or 1 if there is none.
    pub(super) fn description_line(&self) -> usize {
        let mut lines = self.reading.document.text().lines();
        lines.position(|line| line.starts_with("description:")).map_or(1, |at| at + 1)
    }

    /// Returns the first heading of the text.
    pub(super) fn heading(&self) -> Option<&str> {
        let document = &self.reading.document;
        Some(document.outline().headings.first()?.title.slice(document.text()))
    }
}
