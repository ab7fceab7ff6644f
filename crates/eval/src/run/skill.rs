//! The skill that is evaluated, as its files.

use std::path::Path;

use savoir_engine::call::ToolNames;
use savoir_package::{Tree, TreeError};
use savoir_skill::{Folder, Skill, Source, digest::sha256_hex, folder::is_skill_file};

use crate::{formats::FOLDER, results::SkillRecord, trigger::Decoy};

/// A skill that is placed into workspaces.
#[derive(Clone, Debug)]
pub struct EvaluatedSkill {
    pub record: SkillRecord,
    /// The files that agents see: all but the evaluations, which contain the answers.
    shown: Tree,
    /// The digest of these files.
    digest: String,
    /// The names by which its own tools are called.
    pub(super) tools: Vec<String>,
}

impl EvaluatedSkill {
    /// Reads the skill in a folder.
    pub fn read(folder: &Path, name: &str, version: Option<&str>) -> Result<Self, TreeError> {
        let tree = Tree::read(folder)?;
        let mut record = SkillRecord {
            name: name.to_owned(),
            version: version.map(str::to_owned),
            integrity: tree.integrity(),
            description: String::new(),
        };
        let mut shown = Tree::default();
        for (path, file) in tree.files() {
            let top = path.split('/').next().unwrap_or_default();
            let is_eval = [FOLDER, "eval", "evals.json", ".savoir"].contains(&top)
                || top.starts_with("trigger");
            if !is_eval {
                shown.add(path.to_owned(), file.clone())?;
            }
        }
        let digest = shown.integrity();
        let skill = parse(&shown.as_folder(Some(name)));
        let tools = skill.iter().flat_map(tool_names).collect();
        record.description = skill.map(|skill| skill.description).unwrap_or_default();
        Ok(Self { record, shown, digest, tools })
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
        let (name, integrity) = (name.clone(), digest.clone());
        let record =
            SkillRecord { name, version: None, integrity, description: description.clone() };
        Ok(Self { record, shown, digest, tools: Vec::new() })
    }

    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    /// Writes the files into a new folder.
    pub(super) fn place(&self, folder: &Path) -> Result<(), TreeError> {
        self.shown.write(folder)
    }
}

/// Reads the SKILL.md of a folder.
fn parse(folder: &Folder) -> Option<Skill> {
    let file = folder.files().iter().find(|file| is_skill_file(&file.path))?;
    let source = Source::from_bytes(folder.read(&file.path).ok()?).ok()?;
    Some(savoir_skill::read(source, Some(folder)).skill)
}

/// The names of the tools, as the skill and as a model calls them.
fn tool_names(skill: &Skill) -> Vec<String> {
    let own = skill.tools.iter().map(|tool| tool.name.clone());
    let called = ToolNames::new([skill]);
    own.chain(called.iter().map(|name| name.api.clone())).collect()
}

/// The digest of a catalog: a change of any skill in it changes what the model sees.
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
