//! `AGENT.yaml`: an agent that is assembled from skills.
//!
//! ```yaml
//! name: gaia-agent
//! version: 0.24.0
//! skills:
//!   - rag-search
//!   - {name: web-search, version: ">=1.0.0", required: false}
//! model: {default: Qwen3.5-35B, minimum: ">=7B", context: ">=32K"}
//! ```
//!
//! `gaia-agent.yaml` can also define sets of skills, of which one is active.
//!
//! [`assemble`] assembles an agent from [`LocalSkills`], and reports problems with the result.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use savoir_lint::words;
use savoir_skill::{
    version::{SkillRef, VersionRange, parse_version},
    yaml::{Node, Tree, YamlNoteKind, YamlVersion},
};
use semver::Version;
use thiserror::Error;

use crate::{
    limits::MAX_MANIFEST_BYTES,
    manifest::check_name,
    resolve::{Necessity, Root, RootRequest},
    text_file::{self, ContentError, FileError, FilePosition, Text},
};

mod assembly;
mod available_skills;
mod composition;
mod minimum;
mod model;

pub use assembly::{
    Assembly, AssemblyFinding, AssemblyMember, AssemblyRequest, FindingLevel, Grant, Role,
    ToolName, assemble,
};
pub use available_skills::{LocalSkill, LocalSkills, SkillLocationKind, UnusableSkill};
pub use composition::{ComposedSkill, Composition};
pub use minimum::{Minimum, MinimumError};
pub use model::{Constraint, Model, Quantity, Status};

/// The accepted file names, the usual one first.
pub const FILES: [&str; 2] = ["AGENT.yaml", "gaia-agent.yaml"];

/// GAIA reads its files with PyYAML.
const YAML: YamlVersion = YamlVersion::V1_1;

const KEYS: [&str; 7] =
    ["name", "version", "description", "skills", "skill_sets", "default_skill_set", "model"];
const SKILL_KEYS: [&str; 3] = ["name", "version", "required"];
const MODEL_KEYS: [&str; 3] = ["default", "minimum", "context"];

/// The content of an agent file.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentFile {
    /// The path of the file, as shown to users.
    pub file: String,
    pub name: String,
    pub version: Option<Version>,
    pub description: Option<String>,
    /// Skills that the agent always has.
    pub skills: Vec<AgentSkill>,
    /// Sets of skills, of which one is active.
    pub sets: BTreeMap<String, Vec<AgentSkill>>,
    /// The set that is active unless another one is requested.
    pub default_set: Option<String>,
    pub model: RequestedModel,
    /// Problems that are not errors, such as misspelled keys.
    pub warnings: Vec<ContentError>,
}

/// A skill that an agent file requests.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentSkill {
    /// The name and the accepted versions.
    pub skill: SkillRef,
    /// Whether the agent requires the skill.
    pub need: Necessity,
    /// The position in the file.
    pub place: FilePosition,
}

/// The model that an agent requests. Unmet requirements are only reported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestedModel {
    /// The model that the agent was made for.
    pub default: Option<String>,
    /// Minimum number of parameters.
    pub minimum: Option<Minimum>,
    /// Minimum context size, in tokens.
    pub context: Option<Minimum>,
}

/// The reason why no set of skills is active.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SetError {
    #[error("{file} has no set of skills `{name}`{}", list_sets(sets))]
    Unknown { file: String, name: String, sets: Vec<String> },
    /// There are several sets, and none was chosen.
    #[error("{file} has several sets of skills and no `default_skill_set`{}", list_sets(sets))]
    Ambiguous { file: String, sets: Vec<String> },
}

fn list_sets(sets: &[String]) -> String {
    let sets: Vec<String> = sets.iter().map(|set| format!("`{set}`")).collect();
    if sets.is_empty() { String::new() } else { format!(": choose {}", words::or(&sets)) }
}

/// Returns the path of the agent file in a folder, if there is one.
pub fn find(folder: &Path) -> Option<PathBuf> {
    FILES.iter().map(|name| folder.join(name)).find(|path| path.is_file())
}

impl AgentFile {
    /// Reads the file; returns `None` if it does not exist.
    pub fn read(path: &Path) -> Result<Option<Self>, FileError> {
        let Some(text) = text_file::read(path, MAX_MANIFEST_BYTES)? else { return Ok(None) };
        Ok(Some(Self::parse(&path.display().to_string(), &text)?))
    }

    /// Parses the text of the file.
    pub fn parse(file: &str, text: &str) -> Result<Self, ContentError> {
        let text = Text { file, text };
        let tree = Tree::parse(text.text)
            .map_err(|error| text.content_error(error.at, error.message.clone()))?;
        for note in &tree.notes {
            if let YamlNoteKind::DuplicateKey { .. } = note.kind {
                return Err(
                    text.content_error(note.span.start, format!("`{}` is there twice", note.name))
                );
            }
        }
        let root = tree.root.filter(|root| root.entries().is_some());
        let root = root.ok_or_else(|| text.content_error(0, "an agent is a map with a `name`"))?;
        let mut reader = AgentFileReader { text, warnings: Vec::new() };
        let mut agent = reader.agent(&root)?;
        agent.warnings = reader.warnings;
        Ok(agent)
    }

    /// Returns the skills of the agent with one of its sets: the given one, else the default, else
    /// the only one.
    pub fn composition(&self, set: Option<&str>) -> Result<Composition, SetError> {
        let set = self.active_set_name(set)?;
        let chosen = set.and_then(|set| self.sets.get(set)).map_or(&[][..], Vec::as_slice);
        let parts = self.skills.iter().chain(chosen).map(|skill| ComposedSkill {
            skill: skill.skill.clone(),
            need: skill.need,
            version: None,
            left_out: false,
            tools: Vec::new(),
        });
        Ok(Composition {
            name: self.name.clone(),
            version: self.version.clone(),
            set: set.map(str::to_owned),
            parts: parts.collect(),
        })
    }

    fn active_set_name<'a>(&'a self, named: Option<&'a str>) -> Result<Option<&'a str>, SetError> {
        let sets = || self.sets.keys().cloned().collect();
        match named.or(self.default_set.as_deref()) {
            Some(name) if self.sets.contains_key(name) => Ok(Some(name)),
            Some(name) => Err(SetError::Unknown {
                file: self.file.clone(),
                name: name.to_owned(),
                sets: sets(),
            }),
            None if self.sets.len() > 1 => {
                Err(SetError::Ambiguous { file: self.file.clone(), sets: sets() })
            }
            None => Ok(self.sets.keys().next().map(String::as_str)),
        }
    }

    /// Returns the requirements for the resolver.
    pub fn roots(&self, set: Option<&str>) -> Result<Vec<Root>, SetError> {
        let file = Path::new(&self.file).file_name().unwrap_or_default();
        let asker = RootRequest::AgentFile(file.to_string_lossy().into_owned());
        let parts = self.composition(set)?.parts.into_iter();
        let root =
            |part: ComposedSkill| Root { skill: part.skill, asker: asker.clone(), need: part.need };
        Ok(parts.map(root).collect())
    }
}

struct AgentFileReader<'a> {
    text: Text<'a>,
    warnings: Vec<ContentError>,
}

impl AgentFileReader<'_> {
    fn agent(&mut self, root: &Node) -> Result<AgentFile, ContentError> {
        self.warn_of_unknown_keys(root, &KEYS);
        let name = root.get("name");
        let name =
            name.ok_or_else(|| self.text.content_error(root.span.start, "`name` is missing"))?;
        let skills = match root.get("skills") {
            Some(list) => self.skills(list)?,
            None => Vec::new(),
        };
        let sets = match root.get("skill_sets") {
            Some(sets) => self.sets(sets, &skills)?,
            None => BTreeMap::new(),
        };
        let default_set = match root.get("default_skill_set").filter(|node| !node.is_null(YAML)) {
            Some(node) => Some(self.default_set(node, &sets)?),
            None => None,
        };
        Ok(AgentFile {
            file: self.text.file.to_owned(),
            name: self.string(name)?,
            version: match root.get("version") {
                Some(node) => {
                    let version = parse_version(&self.string(node)?);
                    Some(version.map_err(|error| self.content_error(node, error.to_string()))?)
                }
                None => None,
            },
            description: root.get("description").map(|node| self.string(node)).transpose()?,
            skills,
            sets,
            default_set,
            model: match root.get("model").filter(|node| !node.is_null(YAML)) {
                Some(node) => self.model(node)?,
                None => RequestedModel::default(),
            },
            warnings: Vec::new(),
        })
    }

    /// Reads a list of skills; rejects duplicates.
    fn skills(&mut self, list: &Node) -> Result<Vec<AgentSkill>, ContentError> {
        if list.is_null(YAML) {
            return Ok(Vec::new());
        }
        let items = list.items().ok_or_else(|| self.wrong_type_error(list, "a list of skills"))?;
        let mut skills: Vec<AgentSkill> = Vec::with_capacity(items.len());
        for item in items {
            let skill = self.skill(item)?;
            let name = &skill.skill.name;
            if skills.iter().any(|known| known.skill.name == *name) {
                return Err(self.content_error(item, format!("`{name}` is there twice")));
            }
            skills.push(skill);
        }
        Ok(skills)
    }

    fn skill(&mut self, item: &Node) -> Result<AgentSkill, ContentError> {
        let at = Text::position(self.text, item.span.start);
        let place = FilePosition { file: self.text.file.to_owned(), position: at };
        if item.entries().is_none() {
            let skill = SkillRef::parse(&self.string(item)?);
            let skill = skill.map_err(|error| self.content_error(item, error.to_string()))?;
            check_name(&skill.name).map_err(|why| self.content_error(item, why))?;
            return Ok(AgentSkill { skill, need: Necessity::Required, place });
        }
        self.warn_of_unknown_keys(item, &SKILL_KEYS);
        let name =
            item.get("name").ok_or_else(|| self.content_error(item, "the skill has no `name`"))?;
        let range = match item.get("version") {
            Some(node) => VersionRange::parse(&self.string(node)?)
                .map_err(|error| self.content_error(node, error.to_string()))?,
            None => VersionRange::any(),
        };
        let need = match item.get("required").map(|node| (node, node.boolean(YAML))) {
            None | Some((_, Some(true))) => Necessity::Required,
            Some((_, Some(false))) => Necessity::Optional,
            Some((node, None)) => return Err(self.wrong_type_error(node, "true or false")),
        };
        let skill = SkillRef { name: self.string(name)?, range };
        check_name(&skill.name).map_err(|why| self.content_error(name, why))?;
        Ok(AgentSkill { skill, need, place })
    }

    fn sets(
        &mut self,
        node: &Node,
        always: &[AgentSkill],
    ) -> Result<BTreeMap<String, Vec<AgentSkill>>, ContentError> {
        let mut sets = BTreeMap::new();
        if node.is_null(YAML) {
            return Ok(sets);
        }
        for entry in node.entries().ok_or_else(|| self.wrong_type_error(node, "a map of sets"))? {
            let skills = self.skills(&entry.value)?;
            let again = skills
                .iter()
                .find(|skill| always.iter().any(|known| known.skill.name == skill.skill.name));
            if let Some(AgentSkill { skill, place, .. }) = again {
                let message = format!("`{}` is among `skills` already", skill.name);
                return Err(ContentError { place: place.clone(), message, hint: None });
            }
            sets.insert(entry.key.clone(), skills);
        }
        Ok(sets)
    }

    fn default_set(
        &self,
        node: &Node,
        sets: &BTreeMap<String, Vec<AgentSkill>>,
    ) -> Result<String, ContentError> {
        let name = self.string(node)?;
        if sets.contains_key(&name) {
            return Ok(name);
        }
        let near = words::nearest(&name, sets.keys().map(String::as_str));
        let hint = near.map(|near| format!("did you mean `{near}`?"));
        Err(self
            .content_error(node, format!("there is no set of skills `{name}`"))
            .maybe_hint(hint))
    }

    fn model(&mut self, node: &Node) -> Result<RequestedModel, ContentError> {
        if node.entries().is_none() {
            return Ok(RequestedModel {
                default: Some(self.string(node)?),
                ..RequestedModel::default()
            });
        }
        self.warn_of_unknown_keys(node, &MODEL_KEYS);
        let least = |key: &str, read: fn(&str) -> Result<Minimum, MinimumError>| {
            let Some(node) = node.get(key).filter(|node| !node.is_null(YAML)) else {
                return Ok(None);
            };
            let text = node.text().ok_or_else(|| self.wrong_type_error(node, "a text"))?;
            read(text).map(Some).map_err(|error| self.content_error(node, error.to_string()))
        };
        Ok(RequestedModel {
            default: node.get("default").map(|node| self.string(node)).transpose()?,
            minimum: least("minimum", Minimum::parameters)?,
            context: least("context", Minimum::tokens)?,
        })
    }

    /// Reads a string that is not empty.
    fn string(&self, node: &Node) -> Result<String, ContentError> {
        let text = node.string(YAML).filter(|text| !text.trim().is_empty());
        text.map(str::to_owned).ok_or_else(|| {
            let content_error = self.wrong_type_error(node, "a text");
            let number = matches!(node.type_name(YAML), "a number" | "a boolean");
            if number { content_error.hint("put it into quotes") } else { content_error }
        })
    }

    /// Warns of unknown keys that resemble known ones. Other unknown keys may belong to other
    /// programs.
    fn warn_of_unknown_keys(&mut self, node: &Node, known: &[&str]) {
        for entry in node.entries().unwrap_or_default() {
            let key = entry.key.as_str();
            if known.contains(&key) {
                continue;
            }
            if let Some(near) = words::nearest(key, known.iter().copied()) {
                let content_error =
                    self.text.content_error(entry.key_span.start, format!("`{key}` is not read"));
                self.warnings.push(content_error.hint(format!("did you mean `{near}`?")));
            }
        }
    }

    fn wrong_type_error(&self, node: &Node, expected: &str) -> ContentError {
        self.content_error(
            node,
            format!("this must be {expected}, and is {}", node.type_name(YAML)),
        )
    }

    fn content_error(&self, node: &Node, message: impl Into<String>) -> ContentError {
        self.text.content_error(node.span.start, message)
    }
}

#[cfg(test)]
mod tests;
