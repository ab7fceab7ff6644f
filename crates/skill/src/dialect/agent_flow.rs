//! Implements the dialect of Agent Flow Lite: prompts with inputs, a knowledge base and model
//! settings.

mod contract;
mod stored;

use savoir_lint::{Diagnostic, Severity, Span};
use serde_json::{Map, Value, json};

use super::{
    Clues, Conventions, Evidence, FolderNameRule, Language, NewFile, Reader, ToolExecution,
    agentskills::{tools_text, write_base},
    scaffold::title,
};
use crate::{
    convert::Fields,
    document::Document,
    frontmatter::{Fences, Unclosed},
    limits::MAX_DESCRIPTION_CHARS,
    name::NameGrammar,
    render::Placeholders,
    shape::{Field, Limit, Shape, UnknownFields},
    skill::{Input, InputKind, Skill},
    yaml::{Node, YamlVersion, write::write_scalar},
};

pub use contract::{
    Content, ModelSettings, Refusal, check_inputs, check_name, check_placeholders, check_size,
    missing_input, model_settings, parse, substitute, yaml_slips,
};
pub use stored::{Purpose, StoredSkillFile, with_owner, without_owner};

/// Maximum size of a skill file, in bytes of UTF-8.
pub const MAX_CONTENT_BYTES: usize = 51_200;

/// Names that a server refuses for skills, because its routes use them.
pub const RESERVED_NAMES: &[&str] = &["import", "catalog"];

/// Default sampling temperature.
pub const DEFAULT_TEMPERATURE: f64 = 0.7;

/// Default maximum number of tokens of an answer.
pub const DEFAULT_MAX_TOKENS: u32 = 2000;

#[derive(Debug)]
pub(super) struct AgentFlow;

const INPUT: Shape = Shape::Record(
    &[
        Field::advised(
            "name",
            Shape::Scalar(&[Limit::error(64)]),
            "Name of the input in `{{name}}`.",
        ),
        Field::optional(
            "label",
            Shape::Scalar(&[Limit::error(128)]),
            "Label that is shown to users.",
        ),
        Field::optional("type", Shape::Scalar(&[]), "`text` or `textarea`."),
        Field::optional("required", Shape::Bool, "Whether a run without it fails."),
        Field::optional(
            "default",
            Shape::Scalar(&[Limit::error(1024)]),
            "Value that is used when none is given.",
        ),
        Field::optional("description", Shape::Scalar(&[Limit::error(512)]), "What it means."),
    ],
    UnknownFields::Closed,
);

const MODEL: Shape = Shape::Record(
    &[
        Field::optional("temperature", Shape::Number(0.0, 2.0), "Sampling temperature."),
        Field::optional("max_tokens", Shape::Integer(1, 8192), "Most tokens of an answer."),
    ],
    UnknownFields::Closed,
);

const FIELDS: &[Field] = &[
    Field::optional(
        "name",
        Shape::Name(NameGrammar::Ascii, Severity::Error),
        "Defaults to the folder's name and must equal it.",
    ),
    Field::optional(
        "description",
        Shape::Scalar(&[Limit::error(MAX_DESCRIPTION_CHARS)]),
        "Defaults to the name.",
    ),
    Field::optional("license", Shape::Scalar(&[Limit::error(64)]), "License identifier."),
    Field::optional("metadata", Shape::Map, "Any further fields."),
    Field::optional("inputs", Shape::List(&INPUT), "Values that the prompt uses as `{{name}}`."),
    Field::optional(
        "knowledge_base",
        Shape::Scalar(&[Limit::error(256)]),
        "Knowledge base to search before answering.",
    ),
    Field::optional(
        "model",
        Shape::Either(&[MODEL, Shape::Scalar(&[])]),
        "Settings of the model; a name alone is ignored.",
    ),
    Field::optional("user_id", Shape::Scalar(&[Limit::error(256)]), "Owner of the skill."),
    Field::optional("compatibility", Shape::Any, "Kept, without meaning."),
    Field::optional("allowed-tools", Shape::Any, "Kept, without meaning."),
    Field::optional("tags", Shape::Any, "Kept, without meaning."),
    Field::optional("homepage", Shape::Any, "Kept, without meaning."),
    Field::optional("repository", Shape::Any, "Kept, without meaning."),
];

impl Language for AgentFlow {
    fn id(&self) -> &'static str {
        "agent-flow"
    }

    fn title(&self) -> &'static str {
        "Agent Flow Lite"
    }

    fn about(&self) -> &'static str {
        "Agent Flow Lite's prompt skills with inputs, a knowledge base and model settings."
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["afl", "agent-flow-lite"]
    }

    fn yaml(&self) -> YamlVersion {
        YamlVersion::V1_1
    }

    fn placeholders(&self) -> Placeholders {
        Placeholders::AgentFlow
    }

    fn fences(&self) -> Fences {
        Fences { skip_blank_lines: false, exact: false, unclosed: Unclosed::Body, optional: false }
    }

    fn evidence(&self, clues: &Clues<'_>) -> Option<Evidence> {
        if let Some(key) = clues.first_of(&["knowledge_base", "user_id"]) {
            return Some(Evidence::strong(6, format!("only Agent Flow Lite has `{key}`")));
        }
        if clues.is_map("model") {
            return Some(Evidence::strong(6, "`model` is a map of settings"));
        }
        let kinds = clues.input_types();
        if kinds.iter().any(|kind| matches!(*kind, "text" | "textarea")) {
            return Some(Evidence::strong(6, "an input has the type `text` or `textarea`"));
        }
        clues
            .uses_an_input()
            .then(|| Evidence::weak(8, "its text uses a name of the `inputs` list as `{{name}}`"))
    }

    fn fields(&self, _: Option<&Document>) -> &'static [Field] {
        FIELDS
    }

    fn defines_words(&self, key: &str, value: &Node) -> bool {
        let inputs = value.items().unwrap_or_default();
        key != "inputs" || inputs.iter().all(|input| unknown_kind(input).is_none())
    }

    fn read(&self, reader: &Reader<'_>, skill: &mut Skill) {
        reader.identity(skill);
        reader.base_metadata(skill);
        if skill.description.is_empty() {
            skill.description.clone_from(&skill.name);
        }
        skill.body = skill.body.trim().to_owned();
        let inputs = reader.node("inputs").and_then(Node::items).unwrap_or_default();
        skill.inputs = inputs.iter().filter_map(|node| input(node, reader.version)).collect();
        skill.policy.allowed_tools = reader.tools("allowed-tools");
        skill.policy.knowledge_base = reader.text("knowledge_base");
        skill.policy.owner = reader.text("user_id");
        let model = |key: &str| reader.value(&format!("model.{key}"));
        skill.policy.temperature = model("temperature").and_then(|value| value.as_f64());
        skill.policy.max_tokens =
            model("max_tokens").and_then(|value| u32::try_from(value.as_u64()?).ok());
    }

    fn check(&self, reader: &Reader<'_>, skill: &Skill, found: &mut Vec<Diagnostic>) {
        if reader.document.fields().is_none() && reader.document.layout().closed_block().is_some() {
            let message = format!("Skill '{}' has no valid YAML frontmatter", skill.name);
            let problem =
                Diagnostic::error("missing-frontmatter", reader.document.head_span(), message);
            found.push(problem.help("add at least `description`").field("frontmatter"));
        }
        if let Err(refusal) = check_size(reader.document.text().len() as u64) {
            found.push(
                Diagnostic::error("file-too-large", reader.document.head_span(), refusal.message)
                    .field("content")
                    .help("split the skill, or move reference text into a knowledge base"),
            );
        }
        for node in reader.node("inputs").and_then(Node::items).unwrap_or_default() {
            let Some((kind, word)) = unknown_kind(node) else { continue };
            let message = format!("`{word}` is read as `text`");
            found.push(
                Diagnostic::warning("unknown-input-type", kind.span, message)
                    .help("use `text` for one line or `textarea` for several"),
            );
        }
    }

    fn conventions(&self) -> Conventions {
        // The wording of Agent Flow Lite's API.
        let message = |name: &str, folder: &str| {
            format!(
                "Skill name mismatch: folder name '{folder}' does not match frontmatter name '{name}'"
            )
        };
        Conventions {
            folder_name: Some(FolderNameRule { message, ..FolderNameRule::EQUAL }),
            ..Conventions::COMMON
        }
    }

    fn running(&self) -> ToolExecution {
        ToolExecution::DECLARED
    }

    fn write(&self, skill: &Skill, fields: &mut Fields) {
        write_base(skill, fields);
        let policy = &skill.policy;
        let inputs: Vec<Value> = skill.inputs.iter().map(input_value).collect();
        if skill.inputs.iter().all(|input| agent_flow_kind(input.kind) == input.kind) {
            fields.put("inputs", "inputs", inputs);
        } else {
            fields.put_approximate("inputs", "inputs", inputs, "every input is text here");
        }
        fields.put("policy.knowledge_base", "knowledge_base", policy.knowledge_base.clone());
        let mut model = Map::new();
        if let Some(temperature) = policy.temperature {
            model.insert("temperature".into(), json!(temperature));
        }
        if let Some(max_tokens) = policy.max_tokens {
            model.insert("max_tokens".into(), json!(max_tokens));
        }
        fields.put("policy.model_settings", "model", model);
        fields.put("policy.owner", "user_id", policy.owner.clone());
        fields.put("version", "metadata.version", skill.version.clone());
        fields.put("authors", "metadata.author", skill.authors.join(", "));
        let why = "Agent Flow Lite does not restrict tools by skill";
        fields.put_approximate("policy.allowed_tools", "allowed-tools", tools_text(skill), why);
        fields.put("tags", "tags", skill.tags.clone());
        for (model, key) in [("links.homepage", "homepage"), ("links.repository", "repository")] {
            fields.put(model, key, skill.links.get(key).cloned());
        }
    }

    fn scaffold(&self, name: &str, description: &str) -> Vec<NewFile> {
        let text = format!(
            "---\nname: {name}\ndescription: {}\ninputs:\n  - name: text\n    label: Text\n    \
             type: textarea\n    required: true\n    description: The text to work on\n  - name: tone\n    \
             label: Tone\n    type: text\n    default: friendly\nmodel:\n  temperature: 0.3\n  \
             max_tokens: 1000\n---\n\n# {}\n\nRewrite the following text in a {{{{tone}}}} tone:\n\n{{{{text}}}}\n",
            write_scalar(description, self.yaml()),
            title(name)
        );
        vec![NewFile::new("SKILL.md", text)]
    }
}

fn input(node: &Node, version: YamlVersion) -> Option<Input> {
    let text = |key: &str| node.get(key).filter(|node| !node.is_null(version))?.text();
    let name = text("name").filter(|name| !name.is_empty())?.to_owned();
    let kind = text("type").and_then(InputKind::parse);
    Some(Input {
        label: text("label").map(str::to_owned),
        kind: kind.filter(|kind| *kind == InputKind::Textarea).unwrap_or_default(),
        required: node.get("required").and_then(|node| node.boolean(version)).unwrap_or(false),
        default: text("default").map(|text| Value::String(text.to_owned())),
        description: text("description").map(str::to_owned),
        name,
    })
}

/// The type of an input, if Agent Flow Lite reads it as `text` because it does not define it.
fn unknown_kind(input: &Node) -> Option<(&Node, &str)> {
    let kind = input.get("type")?;
    let word = kind.text().filter(|word| !matches!(*word, "text" | "textarea"))?;
    Some((kind, word))
}

fn agent_flow_kind(kind: InputKind) -> InputKind {
    match kind {
        InputKind::Textarea | InputKind::Json => InputKind::Textarea,
        _ => InputKind::Text,
    }
}

fn input_value(input: &Input) -> Value {
    let mut map = Map::new();
    map.insert("name".into(), json!(input.name));
    if let Some(label) = &input.label {
        map.insert("label".into(), json!(label));
    }
    map.insert("type".into(), json!(agent_flow_kind(input.kind).as_str()));
    if input.required {
        map.insert("required".into(), json!(true));
    }
    if let Some(default) = &input.default {
        let text = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
        map.insert("default".into(), json!(text));
    }
    if let Some(description) = &input.description {
        map.insert("description".into(), json!(description));
    }
    Value::Object(map)
}

/// Splits a chat message `@name text` into the name and the text.
pub fn parse_at_skill(message: &str) -> (Option<&str>, &str) {
    let none = (None, message);
    let Some(rest) = message.strip_prefix('@') else { return none };
    let length = rest
        .find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'))
        .unwrap_or(rest.len());
    let (name, rest) = rest.split_at(length);
    if name.is_empty() {
        return none;
    }
    // `\s+(.+)` leaves one blank for the second group if nothing else is left.
    let text = rest.trim_start();
    let blanks = &rest[..rest.len() - text.len()];
    match (blanks.chars().count(), text.is_empty()) {
        (0, _) | (1, true) => none,
        (_, false) => (Some(name), text),
        (_, true) => {
            let last = blanks.char_indices().next_back().map_or(0, |(at, _)| at);
            (Some(name), Span::new(last, blanks.len()).slice(blanks))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_skill_takes_name_and_text() {
        assert_eq!(parse_at_skill("@a-1 x  y\nz"), (Some("a-1"), "x  y\nz"));
        assert_eq!(parse_at_skill("@a   "), (Some("a"), " "));
        for none in ["@a", "@a ", "@A b", "a b", "@ b", ""] {
            assert_eq!(parse_at_skill(none), (None, none));
        }
    }
}
