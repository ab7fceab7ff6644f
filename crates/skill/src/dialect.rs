//! Defines the dialects: the variants of SKILL.md that different systems use.
//!
//! Each dialect is one file that implements `Language`: how to recognize, read, check and write the
//! format. To add a dialect, add such a file and a line to [`Dialect::ALL`].

pub mod agent_flow;
mod agentskills;
mod claude_code;
mod codex;
pub mod gaia;
mod gibberish;
pub(crate) mod openclaw;
pub mod personal_agent;
mod prose;
pub mod skillrt;

mod conventions;
mod reader;
mod scaffold;
mod tool_execution;

#[cfg(test)]
mod tests;

use std::{fmt, str::FromStr};

use savoir_lint::{Diagnostic, Severity, Span};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use thiserror::Error;

use crate::{
    convert::Fields,
    document::Document,
    folder::Folder,
    frontmatter::Fences,
    name::NameGrammar,
    permission::Permission,
    render::Placeholders,
    shape::{self, Field, Shape, UnknownFields},
    skill::Skill,
    yaml::{Node, YamlVersion},
};

pub(crate) use codex::SIDE_FILE as CODEX_SIDE_FILE;
pub(crate) use conventions::{BodyUse, Conventions, FolderNameRule, Strictness};
pub(crate) use gibberish::tools as command_tools;
pub(crate) use reader::Reader;
pub use scaffold::{NewFile, template_description};
pub(crate) use scaffold::{is_template_description, is_template_line};
pub use tool_execution::{
    DefaultFileAccess, NetworkDefault, StartFolder, ToolExecution, VariableContent,
};

/// The SKILL.md format of one system.
#[derive(Clone, Copy)]
pub struct Dialect(&'static dyn Language);

impl Dialect {
    /// A description, cut at the length at which this system cuts it.
    pub fn truncate_description(self, description: &str) -> &str {
        let limit = self.language().description_limit();
        let cut = limit.and_then(|limit| description.char_indices().nth(limit));
        cut.map_or(description, |(end, _)| &description[..end])
    }

    /// The agentskills.io base format.
    pub const AGENTSKILLS: Self = Self(&agentskills::AgentSkills);
    /// Claude Code.
    pub const CLAUDE_CODE: Self = Self(&claude_code::ClaudeCode);
    /// Codex, with the additional file `agents/openai.yaml`.
    pub const CODEX: Self = Self(&codex::Codex);
    /// OpenClaw and ClawHub.
    pub const OPENCLAW: Self = Self(&openclaw::OpenClaw);
    /// Agent Flow Lite.
    pub const AGENT_FLOW: Self = Self(&agent_flow::AgentFlow);
    /// gibb.eri.sh.
    pub const GIBBERISH: Self = Self(&gibberish::Gibberish);
    /// AMD GAIA.
    pub const GAIA: Self = Self(&gaia::Gaia);
    /// skillrt.
    pub const SKILLRT: Self = Self(&skillrt::Skillrt);
    /// Personal Agent.
    pub const PERSONAL_AGENT: Self = Self(&personal_agent::PersonalAgent);
    /// Markdown without frontmatter.
    pub const PROSE: Self = Self(&prose::Prose);

    /// All dialects.
    pub const ALL: [Self; 10] = [
        Self::AGENTSKILLS,
        Self::CLAUDE_CODE,
        Self::CODEX,
        Self::OPENCLAW,
        Self::AGENT_FLOW,
        Self::GIBBERISH,
        Self::GAIA,
        Self::SKILLRT,
        Self::PERSONAL_AGENT,
        Self::PROSE,
    ];

    /// The identifier that users type, such as `claude-code`.
    pub fn id(self) -> &'static str {
        self.0.id()
    }

    /// Alternative identifiers.
    pub fn aliases(self) -> &'static [&'static str] {
        self.0.aliases()
    }

    /// The name of the system.
    pub fn title(self) -> &'static str {
        self.0.title()
    }

    /// How tools of this dialect run.
    pub fn running(self) -> ToolExecution {
        self.0.running()
    }

    /// How this system's YAML reader resolves plain scalars.
    pub fn yaml(self) -> YamlVersion {
        self.0.yaml()
    }

    /// How this system finds the frontmatter.
    pub fn fences(self) -> Fences {
        self.0.fences()
    }

    /// Whether a file of this dialect can have fields.
    pub(crate) fn has_frontmatter(self) -> bool {
        !self.0.shapes().is_empty()
    }

    /// Returns the JSON Schema of the frontmatter.
    pub fn schema(self) -> Value {
        let shapes = self.0.shapes();
        let mut records: Vec<Value> =
            shapes.iter().map(|fields| shape::record_schema(fields, UnknownFields::Open)).collect();
        let mut schema = match records.len() {
            0 => shape::record_schema(&[], UnknownFields::Closed),
            1 => records.remove(0),
            _ => json!({"type": "object", "anyOf": records}),
        };
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        if let Some(start) = self.0.reserved_prefix() {
            schema["patternProperties"] = json!({format!("^{start}"): false});
        }
        schema["title"] = format!("{} frontmatter", self.title()).into();
        schema["description"] = if shapes.is_empty() {
            format!("{} There is no frontmatter.", self.0.about()).into()
        } else {
            self.0.about().into()
        };
        schema
    }

    /// Returns the files of a new skill. They pass a strict check except for the text that the author
    /// must replace.
    pub fn scaffold(self, name: &str, description: &str) -> Vec<NewFile> {
        self.0.scaffold(name, description)
    }

    /// Whether this dialect defines a top-level field.
    pub(crate) fn declares(self, key: &str) -> bool {
        self.0.shapes().into_iter().flatten().any(|field| field.key == key)
    }

    /// Returns the rules for names in a file of this dialect.
    pub(crate) fn name_grammar(self, document: &Document) -> NameGrammar {
        let fields = self.0.fields(Some(document)).iter();
        let mut grammars = fields.filter_map(|field| match field.shape {
            Shape::Name(grammar, _) if field.key == "name" => Some(grammar),
            _ => None,
        });
        grammars.next().unwrap_or(NameGrammar::Any)
    }

    pub(crate) fn language(self) -> &'static dyn Language {
        self.0
    }
}

impl PartialEq for Dialect {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for Dialect {}

impl fmt::Debug for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl Serialize for Dialect {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

/// The error for an identifier that is not a dialect.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a dialect; there are {known}", known = Dialect::ALL.map(Dialect::id).join(", "))]
pub struct UnknownDialect(String);

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(word: &str) -> Result<Self, UnknownDialect> {
        Self::ALL
            .into_iter()
            .find(|dialect| dialect.id() == word || dialect.0.aliases().contains(&word))
            .ok_or_else(|| UnknownDialect(word.to_owned()))
    }
}

/// The interface that each dialect implements.
pub(crate) trait Language: Sync {
    fn id(&self) -> &'static str;

    fn title(&self) -> &'static str;

    /// One sentence that describes the system.
    fn about(&self) -> &'static str;

    /// Short identifiers that test vectors and facts use.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    fn yaml(&self) -> YamlVersion {
        YamlVersion::V1_2
    }

    fn fences(&self) -> Fences;

    /// The placeholders that are replaced in the body before an agent reads it.
    fn placeholders(&self) -> Placeholders {
        Placeholders::None
    }

    /// Whether a lenient reader may repair broken YAML. The five specifications forbid it.
    fn repairs(&self) -> bool {
        false
    }

    /// The severity of a missing frontmatter.
    fn without_frontmatter(&self) -> Severity {
        Severity::Error
    }

    /// Returns why a file looks like this dialect, if it does.
    fn evidence(&self, clues: &Clues<'_>) -> Option<Evidence>;

    /// The fields of the frontmatter. They depend on the document only in GAIA, which has two
    /// shapes.
    fn fields(&self, document: Option<&Document>) -> &'static [Field];

    /// All shapes of the frontmatter that the schema accepts; empty if the dialect has no
    /// frontmatter.
    fn shapes(&self) -> Vec<&'static [Field]> {
        vec![self.fields(None)]
    }

    /// How this dialect treats top-level fields that it does not define.
    fn unknown_fields(&self) -> UnknownFields {
        UnknownFields::Open
    }

    /// Whether this dialect defines every word in the value of a field. It may read an unknown word as
    /// another one, but a conversion must not write it.
    fn defines_words(&self, _key: &str, _value: &Node) -> bool {
        true
    }

    /// Reads fields and body into the model.
    fn read(&self, reader: &Reader<'_>, skill: &mut Skill);

    /// Adds findings beyond the shape of the fields.
    fn check(&self, _reader: &Reader<'_>, _skill: &Skill, _found: &mut Vec<Diagnostic>) {}

    /// Writes the model as fields of this dialect.
    fn write(&self, skill: &Skill, fields: &mut Fields);

    /// Returns the permissions that the file grants, each with its position.
    fn grants(&self, _document: &Document) -> Vec<Grant> {
        Vec::new()
    }

    /// Returns the fields that declare permissions, if the dialect has any. A dot separates nested
    /// keys.
    fn declare(&self, _document: &Document, _permissions: &[Permission]) -> Vec<(String, Value)> {
        Vec::new()
    }

    /// The conventions that the rules check.
    fn conventions(&self) -> Conventions {
        Conventions::COMMON
    }

    /// How its tools run.
    fn running(&self) -> ToolExecution {
        ToolExecution::COMMON
    }

    /// The beginning of names of fields that are reserved, so that no skill may have them.
    fn reserved_prefix(&self) -> Option<&'static str> {
        None
    }

    /// The maximum length of a description in this system, in characters.
    fn description_limit(&self) -> Option<usize> {
        None
    }

    fn scaffold(&self, name: &str, description: &str) -> Vec<NewFile>;
}

/// An entry of a file that grants permissions.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    /// The granted permissions, at least one.
    pub(crate) permissions: Vec<Permission>,
    /// The entry as written in the file.
    pub(crate) written: String,
    /// The position of the entry.
    pub(crate) span: Span,
}

/// How certain a detection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Strength {
    /// The user named the dialect.
    Explicit,
    /// The file contains something that only this dialect has.
    Strong,
    /// The file is valid in this dialect, but in others as well.
    Weak,
}

/// Why a file looks like a dialect. The lowest rank wins; ranks are the rows of the detection table
/// in `docs/concepts/dialects.md`. Row 1b, the location of the file, is a [`Hint`].
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    pub(crate) rank: u8,
    pub(crate) strength: Strength,
    pub(crate) why: String,
}

impl Evidence {
    pub(crate) fn strong(rank: u8, why: impl Into<String>) -> Self {
        Self { rank, strength: Strength::Strong, why: why.into() }
    }

    pub(crate) fn weak(rank: u8, why: impl Into<String>) -> Self {
        Self { rank, strength: Strength::Weak, why: why.into() }
    }
}

/// The detected dialect of a file.
#[derive(Clone, Debug, Serialize)]
pub struct Detection {
    /// The detected dialect.
    pub dialect: Dialect,
    /// How certain the detection is.
    pub strength: Strength,
    /// The reason, as a text for users.
    pub why: String,
}

/// The dialect that the location of a skill suggests: it is in the skills folder of an agent, or is
/// installed for that agent. A hint outranks weak evidence in the file but not strong evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The dialect that the agent supports best.
    pub dialect: Dialect,
    /// The reason, as a text for users, such as ``it lies in `.claude/skills` ``.
    pub why: String,
}

/// The parts of a file that dialects examine to recognize themselves.
#[derive(Debug)]
pub(crate) struct Clues<'a> {
    pub(crate) document: &'a Document,
}

impl Clues<'_> {
    pub(crate) fn has(&self, key: &str) -> bool {
        self.document.field(key).is_some()
    }

    /// Returns the first of these keys that the frontmatter has.
    pub(crate) fn first_of(&self, keys: &[&'static str]) -> Option<&'static str> {
        keys.iter().copied().find(|key| self.has(key))
    }

    pub(crate) fn is_map(&self, path: &str) -> bool {
        self.document
            .fields()
            .and_then(|fields| fields.path(path))
            .is_some_and(|node| node.entries().is_some())
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.document.fields()?.path(path)?.text()
    }

    /// Returns the keys of a top-level map.
    pub(crate) fn keys_of(&self, key: &str) -> Vec<&str> {
        let entries = self.document.field(key).and_then(|node| node.entries());
        entries.unwrap_or_default().iter().map(|entry| entry.key.as_str()).collect()
    }

    /// Returns the values of `inputs[].type`.
    pub(crate) fn input_types(&self) -> Vec<&str> {
        self.inputs().iter().filter_map(|item| item.get("type")?.text()).collect()
    }

    /// Whether the body contains `{{name}}` for the name of an input.
    pub(crate) fn uses_an_input(&self) -> bool {
        let names = self.inputs().iter().filter_map(|item| item.get("name")?.text());
        let names: Vec<&str> = names.collect();
        let mut uses = self.document.body().split("{{").skip(1);
        uses.any(|rest| {
            rest.split_once("}}").is_some_and(|(inside, _)| names.contains(&inside.trim()))
        })
    }

    fn inputs(&self) -> &[Node] {
        self.document.field("inputs").and_then(Node::items).unwrap_or_default()
    }
}

/// Detects the dialect of a file from its content and its location.
pub fn detect(document: &Document, hint: Option<&Hint>) -> Option<Detection> {
    let clues = Clues { document };
    let evidence = |dialect: Dialect| Some((dialect, dialect.0.evidence(&clues)?));
    let found = Dialect::ALL.into_iter().filter_map(evidence);
    let found = found.filter(|(_, evidence)| hint.is_none() || evidence.strength != Strength::Weak);
    let best = found.min_by_key(|(_, evidence)| evidence.rank);
    let by_file =
        best.map(|(dialect, Evidence { strength, why, .. })| Detection { dialect, strength, why });
    by_file.or_else(|| {
        let Hint { dialect, why } = hint?.clone();
        Some(Detection { dialect, strength: Strength::Strong, why })
    })
}

/// Returns the three dialects that define most of the fields of a file.
pub(crate) fn nearest(document: &Document) -> [Dialect; 3] {
    let known = |dialect: &Dialect| {
        let fields = dialect.0.fields(None);
        let entries = document.entries().iter();
        entries.filter(|entry| fields.iter().any(|field| field.key == entry.key)).count()
    };
    let mut all = Dialect::ALL;
    // The sort is stable, so the base format comes first among equals.
    all.sort_by_key(|dialect| std::cmp::Reverse(known(dialect)));
    let [first, second, third, ..] = all;
    [first, second, third]
}

/// Returns the other dialects in which the same file is valid.
pub fn other_valid_dialects(
    document: &Document,
    folder: Option<&Folder>,
    found: Dialect,
) -> Vec<Dialect> {
    let side_file = folder.is_some_and(|folder| folder.has(codex::SIDE_FILE));
    Dialect::ALL
        .into_iter()
        // Every file is valid prose, so prose is not reported.
        .filter(|dialect| *dialect != found && *dialect != Dialect::PROSE)
        .filter(|dialect| {
            if *dialect == Dialect::CODEX {
                return side_file;
            }
            crate::reading::read_as(document.source().clone(), *dialect, folder).is_valid()
        })
        .collect()
}
