//! OpenClaw and ClawHub: the base format with `metadata.openclaw`, nested YAML or one line of
//! JSON. The shape that GAIA's document describes (`claw_version`, `actions`) is read too.

use serde_json::{Map, Value, json};

use super::{
    Clues, Evidence, Language, NewFile, Reader, Running,
    agentskills::{FENCES, tools_text, write_base},
    reader::strings_of,
    scaffold::title,
};
use crate::{
    convert::Fields,
    diagnostic::{Diagnostic, Edit, Fix, Severity},
    document::Document,
    frontmatter::Fences,
    name::NameGrammar,
    permission::{self, Permission},
    render::Placeholders,
    shape::{Field, Limit, Shape},
    skill::{Parameter, ParameterKind, Runner, Skill, Tool},
    yaml::{Node, Tree, YamlVersion, write::write_scalar},
};

#[derive(Debug)]
pub(super) struct OpenClaw;

/// The names under which the block has stood over time.
const BLOCKS: [&str; 4] = ["openclaw", "clawdbot", "clawdis", "moltbot"];

/// Fields of the block that people also write at top level or directly under `metadata`.
const LOOSE: [&str; 5] = ["requires", "install", "primaryEnv", "envVars", "skillKey"];

const SYSTEMS: [&str; 3] = ["darwin", "linux", "win32"];

/// What people call these systems elsewhere.
const OTHER_NAMES: [(&str, &str); 5] = [
    ("macos", "darwin"),
    ("mac", "darwin"),
    ("osx", "darwin"),
    ("windows", "win32"),
    ("win", "win32"),
];

const FIELDS: &[Field] = &[
    Field::optional(
        "name",
        Shape::Name(NameGrammar::AgentSkills, Severity::Warning),
        "Defaults to the folder's name.",
    ),
    Field::required(
        "description",
        Shape::Scalar(&[Limit::warning(1024, "description-truncated")]),
        "What the skill does and when to use it.",
    ),
    Field::optional("version", Shape::Scalar(&[]), "Version of the skill."),
    Field::optional("homepage", Shape::Scalar(&[]), "Page about the skill."),
    Field::optional("license", Shape::Scalar(&[]), "Licence name."),
    Field::optional("compatibility", Shape::Scalar(&[]), "What the skill needs."),
    Field::optional("allowed-tools", Shape::Any, "Kept, without meaning for OpenClaw."),
    Field::optional("user-invocable", Shape::Bool, "Whether the user may start it."),
    Field::optional("disable-model-invocation", Shape::Bool, "Only the user can start it."),
    Field::optional("command-dispatch", Shape::Choice(&["tool"]), "Runs a tool without a model."),
    Field::optional("command-tool", Shape::Scalar(&[]), "The tool that is run."),
    Field::optional("command-arg-mode", Shape::Choice(&["raw"]), "How arguments are passed."),
    Field::optional(
        "metadata",
        Shape::Either(&[Shape::Map, Shape::Text(&[])]),
        "Holds `openclaw`: requires, install, os, emoji.",
    ),
];

impl Language for OpenClaw {
    fn id(&self) -> &'static str {
        "openclaw"
    }

    fn title(&self) -> &'static str {
        "OpenClaw"
    }

    fn about(&self) -> &'static str {
        "OpenClaw's skills: the base format with requirements and installers in metadata.openclaw."
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["clawhub", "clawdbot"]
    }

    fn placeholders(&self) -> Placeholders {
        Placeholders::BaseDir
    }

    fn fences(&self) -> Fences {
        FENCES
    }

    fn repairs(&self) -> bool {
        true
    }

    fn evidence(&self, clues: &Clues<'_>) -> Option<Evidence> {
        let fields = clues.document.fields()?;
        let metadata = metadata_of(fields);
        for block in BLOCKS {
            if metadata.as_ref().is_some_and(|node| node.get(block).is_some()) {
                return Some(Evidence::strong(9, format!("it has `metadata.{block}`")));
            }
            if clues.has(block) {
                return Some(Evidence::strong(9, format!("it has `{block}`")));
            }
        }
        if let Some(key) = clues.first_of(&["claw_version", "pip_requires"]) {
            return Some(Evidence::strong(9, format!("only OpenClaw has `{key}`")));
        }
        let loose = |node: &Node| LOOSE.iter().filter(|key| node.get(key).is_some()).count();
        let count = loose(fields).max(metadata.as_ref().map_or(0, loose));
        (count >= 2).then(|| Evidence::strong(9, "it has requirements and installers of OpenClaw"))
    }

    fn fields(&self, _: Option<&Document>) -> &'static [Field] {
        FIELDS
    }

    fn read(&self, reader: &Reader<'_>, skill: &mut Skill) {
        reader.identity(skill);
        reader.base_metadata(skill);
        skill.version = reader.text("version").or_else(|| skill.version.take());
        let policy = &mut skill.policy;
        policy.allowed_tools = reader.tools("allowed-tools");
        policy.user_invocable = reader.boolean("user-invocable");
        policy.model_invocable = reader.boolean("disable-model-invocation").map(|off| !off);
        policy.host = reader.host(&["command-dispatch", "command-tool", "command-arg-mode"]);
        if let Some(block) = reader.document.fields().and_then(block_of) {
            read_block(&block, reader, skill);
        }
        read_described_shape(reader, skill);
    }

    fn check(&self, reader: &Reader<'_>, _: &Skill, found: &mut Vec<Diagnostic>) {
        let Some(fields) = reader.document.fields() else { return };
        metadata_text(fields, found);
        let Some(block) = block_of(fields) else { return };
        let place = reader.node("metadata").map_or(reader.document.head_span(), |node| node.span);
        let in_file = |node: &Node| {
            fields.path("metadata").is_some_and(|own| own.text().is_none()) && !node.span.is_empty()
        };
        for node in block.get("os").map(list_of).unwrap_or_default() {
            let word = node.text().unwrap_or_default();
            if !SYSTEMS.contains(&word) {
                let span = if in_file(&node) { node.span } else { place };
                let message = format!("`{word}` is no operating system that OpenClaw knows");
                let mut problem =
                    Diagnostic::warning("unknown-os", span, message).field("metadata.openclaw.os");
                problem = match OTHER_NAMES.iter().find(|(other, _)| *other == word) {
                    Some((_, known)) => {
                        problem.fix = in_file(&node)
                            .then(|| Fix::safe(vec![Edit::replace(node.span, *known)]));
                        problem.help(format!("write `{known}`"))
                    }
                    None => problem.help("use darwin, linux or win32"),
                };
                found.push(problem);
            }
        }
    }

    fn running(&self) -> Running {
        Running { requirements_grant: true, attestable: false, ..Running::COMMON }
    }

    fn write(&self, skill: &Skill, fields: &mut Fields) {
        write_base(skill, fields);
        fields.put("version", "version", skill.version.clone());
        fields.put("links.homepage", "homepage", skill.links.get("homepage").cloned());
        let policy = &skill.policy;
        fields.put("policy.user_invocable", "user-invocable", policy.user_invocable);
        let disabled = policy.model_invocable.map(|on| !on);
        fields.put("policy.model_invocable", "disable-model-invocation", disabled);
        if policy.allowed_tools.is_some() {
            let why = "OpenClaw does not restrict tools by skill";
            fields.near("policy.allowed_tools", "allowed-tools", tools_text(skill), why);
        }
        for key in ["command-dispatch", "command-tool", "command-arg-mode"] {
            fields.put("policy.host", key, policy.host.get(key).cloned());
        }
        fields.put("authors", "metadata.author", skill.authors.join(", "));
        let requirements = &skill.requirements;
        let lists = [
            ("requirements.programs", "requires.bins", &requirements.programs),
            ("requirements.any_programs", "requires.anyBins", &requirements.any_programs),
            ("requirements.env_vars", "requires.env", &requirements.env_vars),
            ("requirements.config", "requires.config", &requirements.config),
            ("requirements.os", "os", &requirements.os),
        ];
        for (model, path, list) in lists {
            fields.put(model, &format!("metadata.openclaw.{path}"), list.clone());
        }
        fields.put(
            "requirements.install",
            "metadata.openclaw.install",
            requirements.install.clone(),
        );
        if let Some(Value::Object(rest)) = policy.host.get("openclaw") {
            for (key, value) in rest {
                fields.put("policy.host", &format!("metadata.openclaw.{key}"), value.clone());
            }
        }
    }

    fn scaffold(&self, name: &str, description: &str) -> Vec<NewFile> {
        let text = format!(
            "---\nname: {name}\ndescription: {}\nmetadata:\n  openclaw:\n    emoji: \"🔧\"\n    requires:\n      \
             bins: [git]\n---\n\n# {}\n\nThe skill's folder is `{{baseDir}}`.\n\n\
             1. Say what to look at first.\n2. Say what to do with it.\n3. Say how to check the result.\n",
            write_scalar(description, self.yaml()),
            title(name)
        );
        vec![NewFile::new("SKILL.md", text)]
    }
}

/// `metadata` as a map, also when it is a string of JSON.
fn metadata_of(fields: &Node) -> Option<Node> {
    let metadata = fields.get("metadata")?;
    match metadata.text() {
        None => Some(metadata.clone()),
        Some(text) if text.trim_start().starts_with('{') => Tree::parse(text).ok()?.root,
        Some(_) => None,
    }
}

/// The block, or the places where people put its fields instead.
fn block_of(fields: &Node) -> Option<Node> {
    let metadata = metadata_of(fields);
    let named = |node: &Node| BLOCKS.iter().find_map(|block| node.get(block).cloned());
    let loose = |node: &Node| LOOSE.iter().any(|key| node.get(key).is_some());
    metadata
        .as_ref()
        .and_then(named)
        .or_else(|| named(fields))
        .or_else(|| metadata.filter(loose))
        .or_else(|| loose(fields).then(|| fields.clone()))
}

fn list_of(node: &Node) -> Vec<Node> {
    node.items().map_or_else(|| vec![node.clone()], <[Node]>::to_vec)
}

fn read_block(block: &Node, reader: &Reader<'_>, skill: &mut Skill) {
    let strings = |path: &str| block.path(path).map(strings_of).unwrap_or_default();
    let requirements = &mut skill.requirements;
    requirements.programs = strings("requires.bins");
    requirements.any_programs = strings("requires.anyBins");
    requirements.env_vars = strings("requires.env");
    requirements.config = strings("requires.config");
    requirements.os = strings("os");
    let install = block.get("install").and_then(Node::items).unwrap_or_default();
    requirements.install = install.iter().map(|node| node.to_value(reader.version)).collect();
    let own = ["requires", "os", "install"];
    let presentation =
        ["emoji", "homepage", "skillKey", "primaryEnv", "envVars", "always", "nix", "config"];
    let rest: Map<String, Value> = block
        .entries()
        .unwrap_or_default()
        .iter()
        .filter(|entry| {
            !own.contains(&entry.key.as_str()) && presentation.contains(&entry.key.as_str())
        })
        .map(|entry| (entry.key.clone(), entry.value.to_value(reader.version)))
        .collect();
    if let Some(link) = rest.get("homepage").filter(|_| !skill.links.contains_key("homepage")) {
        skill.links.insert("homepage".into(), link.clone());
    }
    if !rest.is_empty() {
        skill.policy.host.insert("openclaw".into(), rest.into());
    }
}

/// The shape of GAIA's document: `actions` with handlers, coarse permissions, `pip_requires`.
fn read_described_shape(reader: &Reader<'_>, skill: &mut Skill) {
    let actions = reader.node("actions").and_then(Node::items).unwrap_or_default();
    skill.tools = actions.iter().filter_map(|node| action(node, reader)).collect();
    skill.requirements.python_packages = reader.strings("pip_requires");
    if let Some(version) = reader.text("claw_version").filter(|_| skill.version.is_none()) {
        skill.version = Some(version);
    }
    if reader.boolean("permissions.network") == Some(true)
        || reader.boolean("network") == Some(true)
    {
        skill.permissions.extend(permission::any_network());
    }
    let coarse = [
        ("permissions.filesystem", &["filesystem:read", "filesystem:write"][..]),
        ("permissions.shell", &["shell:execute"][..]),
    ];
    for (path, grants) in coarse {
        if reader.boolean(path) == Some(true) {
            skill
                .permissions
                .extend(grants.iter().filter_map(|grant| Permission::parse(grant).ok()));
        }
    }
}

fn action(node: &Node, reader: &Reader<'_>) -> Option<Tool> {
    let text = |key: &str| node.get(key).and_then(Node::text).unwrap_or_default().to_owned();
    let parameters = node.get("parameters").and_then(Node::entries).unwrap_or_default();
    Some(Tool {
        name: node.get("name")?.text()?.to_owned(),
        description: text("description"),
        parameters: parameters
            .iter()
            .map(|entry| Parameter {
                name: entry.key.clone(),
                kind: entry
                    .value
                    .get("type")
                    .or(Some(&entry.value))
                    .and_then(Node::text)
                    .and_then(ParameterKind::parse)
                    .unwrap_or_default(),
                required: entry
                    .value
                    .get("required")
                    .and_then(|node| node.boolean(reader.version))
                    .unwrap_or(false),
                description: String::new(),
                default: entry.value.get("default").map(|node| node.to_value(reader.version)),
            })
            .collect(),
        returns: None,
        atomic: false,
        runner: Runner::Handler { path: text("handler") },
    })
}

/// `metadata: '{"openclaw": …}'` is a string for every other reader.
fn metadata_text(fields: &Node, found: &mut Vec<Diagnostic>) {
    let Some(metadata) = fields.get("metadata") else { return };
    let Some(text) = metadata.text() else { return };
    let mut problem =
        Diagnostic::error("wrong-type", metadata.span, "`metadata` is a string, it must be a map")
            .field("metadata")
            .help("remove the quotes around the JSON");
    if let Some(value) =
        Tree::parse(text).ok().and_then(|tree| tree.root).filter(|root| root.entries().is_some())
    {
        let whole = text.starts_with('{') && !text.contains('\n');
        let json = || json!(value.to_value(YamlVersion::V1_2)).to_string();
        let bare = if whole { text.to_owned() } else { json() };
        problem.severity = Severity::Warning;
        problem = problem.fix(Fix::safe(vec![Edit::replace(metadata.span, bare)]));
    }
    found.push(problem);
}
