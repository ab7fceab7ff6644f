//! Implements the dialect of Codex: three fields of SKILL.md and the additional file
//! `agents/openai.yaml`.

use savoir_lint::{Diagnostic, Severity, Source, words::one_line};
use serde_json::{Value, json};

use super::{
    Clues, Evidence, Language, NewFile, Reader,
    agentskills::{FENCES, write_base},
    scaffold::title,
};
use crate::{
    convert::Fields,
    document::Document,
    frontmatter::Fences,
    name::NameGrammar,
    shape::{Field, Limit, Shape},
    skill::Skill,
    yaml::{
        Node, Tree, YamlVersion,
        write::{write_entry, write_scalar},
    },
};

/// The additional file with the fields that Codex has and the base format does not.
pub(crate) const SIDE_FILE: &str = "agents/openai.yaml";

#[derive(Debug)]
pub(super) struct Codex;

const FIELDS: &[Field] = &[
    Field::optional(
        "name",
        Shape::Name(NameGrammar::AgentSkills, Severity::Warning),
        "Defaults to the folder's name.",
    ),
    Field::required(
        "description",
        Shape::Scalar(&[Limit::warning(1024, "description-truncated")]),
        "What the skill does and when to use it; the catalog cuts it at 1024 characters.",
    ),
    Field::optional("license", Shape::Scalar(&[]), "Kept, without meaning for Codex."),
    Field::optional("compatibility", Shape::Scalar(&[]), "Kept, without meaning for Codex."),
    Field::optional("metadata", Shape::Map, "Codex reads only `short-description`."),
    Field::optional("allowed-tools", Shape::Any, "Kept, without meaning for Codex."),
];

impl Language for Codex {
    fn id(&self) -> &'static str {
        "codex"
    }

    fn title(&self) -> &'static str {
        "Codex"
    }

    fn about(&self) -> &'static str {
        "Codex's skills: the base format, with presentation and policy in agents/openai.yaml."
    }

    fn fences(&self) -> Fences {
        FENCES
    }

    fn repairs(&self) -> bool {
        true
    }

    /// The additional file does not change the dialect of SKILL.md.
    fn evidence(&self, _: &Clues<'_>) -> Option<Evidence> {
        None
    }

    fn fields(&self, _: Option<&Document>) -> &'static [Field] {
        FIELDS
    }

    fn read(&self, reader: &Reader<'_>, skill: &mut Skill) {
        reader.identity(skill);
        reader.base_metadata(skill);
        for text in [&mut skill.name, &mut skill.description] {
            *text = one_line(text);
        }
        skill.policy.allowed_tools = reader.tools("allowed-tools");
        if let Some(side) = side_file(reader) {
            let version = YamlVersion::V1_2;
            let implicit = side.path("policy.allow_implicit_invocation");
            skill.policy.model_invocable = implicit.and_then(|node| node.boolean(version));
            for key in ["interface", "dependencies", "policy"] {
                if let Some(node) = side.get(key) {
                    skill.policy.host.insert(key.into(), node.to_value(version));
                }
            }
            let tools = side.path("dependencies.tools").and_then(Node::items).unwrap_or_default();
            skill.requirements.mcp_servers = tools
                .iter()
                .filter(|tool| tool.get("type").and_then(Node::text) == Some("mcp"))
                .filter_map(|tool| Some(tool.get("value")?.text()?.to_owned()))
                .collect();
        }
    }

    fn check(&self, reader: &Reader<'_>, _: &Skill, found: &mut Vec<Diagnostic>) {
        let Some(problem) = reader
            .folder
            .filter(|folder| folder.has(SIDE_FILE))
            .and_then(|folder| side_text(folder.read(SIDE_FILE)).err())
        else {
            return;
        };
        let message = format!("`{SIDE_FILE}` does not read, so Codex ignores it: {problem}");
        found.push(
            Diagnostic::warning("side-file", reader.document.head_span(), message)
                .help(format!("fix the YAML of {SIDE_FILE}")),
        );
    }

    fn write(&self, skill: &Skill, fields: &mut Fields) {
        write_base(skill, fields);
        if skill.policy.allowed_tools.is_some() {
            let why = "Codex does not restrict tools by skill";
            let text = super::agentskills::tools_text(skill);
            fields.put_approximate("policy.allowed_tools", "allowed-tools", text, why);
        }
        fields.put("version", "metadata.version", skill.version.clone());
        fields.put("authors", "metadata.author", skill.authors.join(", "));
        let mut side = skill.policy.host.clone();
        side.retain(|key, _| matches!(key.as_str(), "interface" | "dependencies" | "policy"));
        for (key, value) in &side {
            fields.put("policy.host", &format!("{SIDE_FILE}#{key}"), value.clone());
        }
        if let Some(implicit) = skill.policy.model_invocable {
            let path = format!("{SIDE_FILE}#policy.allow_implicit_invocation");
            fields.put("policy.model_invocable", &path, implicit);
            let policy = side.entry("policy").or_insert_with(|| json!({}));
            if let Some(policy) = policy.as_object_mut() {
                policy.insert("allow_implicit_invocation".into(), implicit.into());
            }
        }
        if !skill.requirements.mcp_servers.is_empty() {
            fields.put(
                "requirements.mcp_servers",
                &format!("{SIDE_FILE}#dependencies.tools"),
                skill.requirements.mcp_servers.clone(),
            );
            let tools: Vec<Value> = skill
                .requirements
                .mcp_servers
                .iter()
                .map(|server| json!({"type": "mcp", "value": server}))
                .collect();
            side.entry("dependencies").or_insert_with(|| json!({"tools": tools}));
        }
        if !side.is_empty() {
            let text: String = side.iter().map(|(key, value)| write_entry(key, value, 0)).collect();
            fields.files.push(NewFile::new(SIDE_FILE, text));
        }
    }

    fn description_limit(&self) -> Option<usize> {
        Some(1024)
    }

    fn scaffold(&self, name: &str, description: &str) -> Vec<NewFile> {
        let description = write_scalar(description, self.yaml());
        let title = title(name);
        vec![
            NewFile::new(
                "SKILL.md",
                format!(
                    "---\nname: {name}\ndescription: {description}\n---\n\n# {title}\n\n\
                     1. Say what to look at first.\n2. Say what to do with it.\n3. Say how to check the result.\n"
                ),
            ),
            NewFile::new(
                SIDE_FILE,
                format!(
                    "interface:\n  display_name: {title}\n  short_description: {description}\n  \
                     default_prompt: Use ${name} for this.\npolicy:\n  allow_implicit_invocation: true\n"
                ),
            ),
        ]
    }
}

fn side_file(reader: &Reader<'_>) -> Option<Node> {
    let folder = reader.folder.filter(|folder| folder.has(SIDE_FILE))?;
    side_text(folder.read(SIDE_FILE)).ok()
}

fn side_text(bytes: std::io::Result<Vec<u8>>) -> Result<Node, String> {
    let bytes = bytes.map_err(|error| error.to_string())?;
    let source = Source::from_bytes(bytes).map_err(|error| error.to_string())?;
    let tree = Tree::parse(source.text()).map_err(|error| error.to_string())?;
    tree.root.filter(|root| root.entries().is_some()).ok_or_else(|| "it is not a map".to_owned())
}
