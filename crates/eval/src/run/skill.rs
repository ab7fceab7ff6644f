//! The skill that is evaluated, as its files.

use std::path::Path;

use savoir_package::{Tree, TreeError};
use savoir_skill::digest::sha256_hex;

use crate::{formats::FOLDER, results::SkillRecord, trigger::Decoy};

/// A skill that is placed into workspaces.
#[derive(Clone, Debug)]
pub struct EvaluatedSkill {
    pub record: SkillRecord,
    /// The files that agents see: all but the evaluations, which contain the answers.
    shown: Tree,
    /// The digest of these files.
    digest: String,
}

impl EvaluatedSkill {
    /// Reads the skill in a folder.
    pub fn read(folder: &Path, name: &str, version: Option<&str>) -> Result<Self, TreeError> {
        let tree = Tree::read(folder)?;
        let record = SkillRecord {
            name: name.to_owned(),
            version: version.map(str::to_owned),
            integrity: tree.integrity(),
        };
        let mut shown = Tree::default();
        for (path, file) in tree.files() {
            let top = path.split('/').next().unwrap_or_default();
            let is_eval =
                [FOLDER, "eval", "evals.json"].contains(&top) || top.starts_with("trigger");
            if !is_eval {
                shown.add(path.to_owned(), file.clone())?;
            }
        }
        let digest = shown.integrity();
        Ok(Self { record, shown, digest })
    }

    /// A made-up skill.
    pub fn decoy(decoy: &Decoy) -> Result<Self, TreeError> {
        let Decoy { name, description } = decoy;
        let text = format!(
            "---\nname: {name}\ndescription: {description}\n---\n\nAsk the user for the file, then do it.\n"
        );
        let mut shown = Tree::default();
        let bytes = text.into_bytes();
        shown.add("SKILL.md".to_owned(), savoir_package::File { bytes, executable: false })?;
        let digest = shown.integrity();
        let record = SkillRecord { name: name.clone(), version: None, integrity: digest.clone() };
        Ok(Self { record, shown, digest })
    }

    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    /// Writes the files into a new folder.
    pub(super) fn place(&self, folder: &Path) -> Result<(), TreeError> {
        self.shown.write(folder)
    }
}

/// The digest of a catalogue: a change of any skill in it changes what the model sees.
pub(super) fn catalogue_digest(skills: &[EvaluatedSkill]) -> String {
    let lines: Vec<String> =
        skills.iter().map(|one| format!("{} {}", one.record.name, one.digest())).collect();
    sha256_hex(lines.join("\n").as_bytes())
}

impl EvaluatedSkill {
    /// The files as a folder in memory.
    pub(super) fn as_folder(&self) -> savoir_skill::Folder {
        self.shown.as_folder(Some(&self.record.name))
    }
}

impl EvaluatedSkill {
    /// The same files under another name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.record.name);
        self
    }
}
