//! Implements the dialect of OpenClaw and ClawHub: the base format with `metadata.openclaw`, as
//! nested YAML or one line of JSON.
//!
//! It also reads the shape that GAIA's documentation describes (`claw_version`, `actions`).

use savoir_lint::{Diagnostic, Edit, Fix, Severity};
use serde_json::{Map, Value, json};

use super::{
    Clues, Evidence, Language, NewFile, Reader, ToolExecution,
    agentskills::{FENCES, tools_text, write_base},
    reader::strings_of,
    scaffold::title,
};
use crate::{
    convert::Fields,
    document::Document,
    frontmatter::Fences,
    name::NameGrammar,
    permission::{Domain, Level, Permission},
    render::Placeholders,
    shape::{Field, Limit, Shape},
    skill::{Parameter, ParameterKind, Runner, Skill, Tool},
    yaml::{Node, Tree, YamlVersion, write::write_scalar},
};

#[derive(Debug)]
pub(super) struct OpenClaw;

/// The current and former names of the OpenClaw block.
pub(crate) const BLOCKS: [&str; 4] = ["openclaw", "clawdbot", "clawdis", "moltbot"];

/// The block of Hermes, which has the same requirements.
pub(crate) const HERMES: &str = "hermes";

/// Domains that GAIA's documented shape switches on or off as a whole.
pub(crate) const COARSE: [Domain; 6] = [
    Domain::Network,
    Domain::Filesystem,
    Domain::Shell,
    Domain::Env,
    Domain::Database,
    Domain::Desktop,
];

/// Fields of the block that authors also write at top level or directly under `metadata`.
const LOOSE: [&str; 5] = ["requires", "install", "primaryEnv", "envVars", "skillKey"];

const SYSTEMS: [&str; 3] = ["darwin", "linux", "win32"];

/// Other common names of these operating systems.
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
    Field::optional("license", Shape::Scalar(&[]), "License name."),
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
        if skill.authors.is_empty() {
            skill.authors = reader.strings("author");
        }
        let policy = &mut skill.policy;
        policy.allowed_tools = reader.tools("allowed-tools");
        policy.user_invocable = reader.boolean("user-invocable");
        policy.model_invocable = reader.boolean("disable-model-invocation").map(|off| !off);
        policy.host = reader.host(&["command-dispatch", "command-tool", "command-arg-mode"]);
        if let Some(block) = reader.document.fields().and_then(Block::of) {
            read_block(&block.node, reader, skill);
        }
        read_described_shape(reader, skill);
    }

    fn check(&self, reader: &Reader<'_>, _: &Skill, found: &mut Vec<Diagnostic>) {
        let Some(fields) = reader.document.fields() else { return };
        metadata_text(fields, found);
        let Some(Block { node: block, .. }) = Block::of(fields) else { return };
        let place = reader.node("metadata").map_or(reader.document.head_span(), |node| node.span);
        let in_file = |node: &Node| {
            fields.path("metadata").is_some_and(|own| own.text().is_none()) && !node.span.is_empty()
        };
        for node in block.get("os").map(list_of).unwrap_or_default() {
            let word = node.text().unwrap_or_default();
            if !SYSTEMS.contains(&word) {
                let span = if in_file(&node) { node.span } else { place };
                let message = format!("`{word}` is not an operating system that OpenClaw knows");
                let mut problem =
                    Diagnostic::warning("unknown-os", span, message).field("metadata.openclaw.os");
                problem = match OTHER_NAMES.iter().find(|(other, _)| *other == word) {
                    Some((_, known)) => {
                        problem.fix = in_file(&node)
                            .then(|| Fix::unsafe_edits(vec![Edit::replace(node.span, *known)]));
                        problem.help(format!("write `{known}`"))
                    }
                    None => problem.help("use darwin, linux or win32"),
                };
                found.push(problem);
            }
        }
    }

    fn running(&self) -> ToolExecution {
        ToolExecution { requirements_grant: true, attestable: false, ..ToolExecution::COMMON }
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
            fields.put_approximate("policy.allowed_tools", "allowed-tools", tools_text(skill), why);
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

/// Returns `metadata` as a map, also if it is a JSON string.
fn metadata_of(fields: &Node) -> Option<Node> {
    let metadata = fields.get("metadata")?;
    match metadata.text() {
        None => Some(metadata.clone()),
        Some(text) if text.trim_start().starts_with('{') => Tree::parse(text).ok()?.root,
        Some(_) => None,
    }
}

/// The fields of OpenClaw, and their path.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// Dotted path; empty if the fields are at top level.
    pub(crate) path: String,
    pub(crate) node: Node,
}

impl Block {
    /// Finds the block, or the other places where authors write its fields.
    pub(crate) fn of(fields: &Node) -> Option<Self> {
        let metadata = metadata_of(fields);
        let named = |place: &str, node: &Node| {
            // Hermes reads the same fields; its block is used if there is no other.
            let block = BLOCKS.into_iter().chain([HERMES]).find(|key| node.get(key).is_some())?;
            let node = node.get(block)?.clone();
            Some(Self { path: format!("{place}{block}"), node })
        };
        let loose = |path: &str, node: &Node| {
            let found = LOOSE.iter().any(|key| node.get(key).is_some());
            found.then(|| Self { path: path.to_owned(), node: node.clone() })
        };
        let metadata = metadata.as_ref();
        metadata
            .and_then(|node| named("metadata.", node))
            .or_else(|| named("", fields))
            .or_else(|| metadata.and_then(|node| loose("metadata", node)))
            .or_else(|| loose("", fields))
    }

    /// Returns the path of a field of the block.
    pub(crate) fn place(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Returns every environment variable with its path, and whether it is required.
    pub(crate) fn variables(&self) -> Vec<(String, String, bool)> {
        let mut variables: Vec<(String, String, bool)> = Vec::new();
        for key in ["requires.env", "primaryEnv", "envVars", "env", "optionalEnv"] {
            for node in self.node.path(key).map(list_of).unwrap_or_default() {
                let name = node.get("name").or_else(|| node.get("key")).unwrap_or(&node);
                let Some(name) = name.text().filter(|name| !name.is_empty()) else { continue };
                let optional =
                    node.get("required").and_then(|node| node.boolean(YamlVersion::V1_2))
                        == Some(false)
                        || key == "optionalEnv";
                if !variables.iter().any(|(known, ..)| known == name) {
                    variables.push((name.to_owned(), self.place(key), !optional));
                }
            }
        }
        variables
    }

    /// Returns the entries of `install`.
    pub(crate) fn installers(&self) -> Vec<Installer> {
        let nodes = self.node.get("install").and_then(Node::items).unwrap_or_default();
        nodes.iter().map(Installer::of).collect()
    }
}

/// One entry of `install`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Installer {
    /// A Python package.
    Python(String),
    /// A Node package.
    Node(String),
    /// Another kind of installer.
    Other(String),
}

impl Installer {
    fn of(node: &Node) -> Self {
        let text = |keys: &[&str]| {
            keys.iter().find_map(|key| node.get(key)?.text()).unwrap_or_default().to_owned()
        };
        let kind = text(&["kind", "type", "manager"]);
        let package = text(&["package", "module", "name"]);
        match kind.as_str() {
            _ if package.is_empty() => Self::Other(kind),
            "uv" | "pip" | "pipx" | "python" | "poetry" => Self::Python(package),
            "node" | "npm" | "pnpm" | "yarn" | "bun" => Self::Node(package),
            _ => Self::Other(kind),
        }
    }
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
    requirements.host_tools = strings("requires.tools");
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

/// Reads GAIA's documented shape: `actions` with handlers, coarse permissions, `pip_requires`.
fn read_described_shape(reader: &Reader<'_>, skill: &mut Skill) {
    let actions = reader.node("actions").and_then(Node::items).unwrap_or_default();
    skill.tools = actions.iter().filter_map(|node| action(node, reader)).collect();
    skill.requirements.python_packages = reader.strings("pip_requires");
    for domain in COARSE {
        let flag = coarse_places(domain).iter().find_map(|place| reader.boolean(place));
        let levels = domain
            .levels()
            .iter()
            .filter(|level| flag.is_some_and(|all| all != (**level == Level::None)));
        skill.permissions.extend(levels.map(|level| Permission::unscoped(domain, *level)));
    }
}

/// Returns the two paths where a whole domain can be switched on or off.
pub(crate) fn coarse_places(domain: Domain) -> [String; 2] {
    [format!("permissions.{domain}"), domain.to_string()]
}

fn action(node: &Node, reader: &Reader<'_>) -> Option<Tool> {
    let text = |key: &str| node.get(key).and_then(Node::text).unwrap_or_default().to_owned();
    let parameters = node.get("parameters");
    let named = parameters.and_then(Node::entries).unwrap_or_default();
    let listed = parameters.and_then(Node::items).unwrap_or_default();
    let named = named.iter().map(|entry| parameter(&entry.key, &entry.value, reader));
    let listed = listed.iter().filter_map(|node| Some((node.get("name")?.text()?, node)));
    Some(Tool {
        name: node.get("name")?.text()?.to_owned(),
        description: text("description"),
        parameters: named.chain(listed.map(|(name, node)| parameter(name, node, reader))).collect(),
        returns: node
            .get("returns")
            .filter(|node| node.entries().is_some())
            .map(|node| node.to_value(reader.version)),
        atomic: false,
        examples: Vec::new(),
        runner: Runner::Handler { path: text("handler") },
    })
}

fn parameter(name: &str, node: &Node, reader: &Reader<'_>) -> Parameter {
    let kind = node.get("type").or(Some(node)).and_then(Node::text).unwrap_or_default();
    let required = node.get("required").and_then(|node| node.boolean(reader.version));
    let description = node.get("description").and_then(Node::text).unwrap_or_default();
    Parameter {
        name: name.to_owned(),
        kind: parameter_kind(kind).unwrap_or_default(),
        required: required.unwrap_or(false),
        description: description.to_owned(),
        default: node
            .get("default")
            .map(|node| node.to_value(reader.version))
            .filter(|value| !value.is_null()),
    }
}

/// Parses a type name of JSON Schema or Python.
fn parameter_kind(word: &str) -> Option<ParameterKind> {
    ParameterKind::parse(word).or(match word {
        "str" => Some(ParameterKind::String),
        "int" => Some(ParameterKind::Integer),
        "float" => Some(ParameterKind::Number),
        "bool" => Some(ParameterKind::Boolean),
        "list" => Some(ParameterKind::Array),
        "dict" => Some(ParameterKind::Object),
        _ => None,
    })
}

/// Reports `metadata: '{"openclaw": …}'`, which other systems read as a string.
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
        problem = problem.fix(Fix::unsafe_edits(vec![Edit::replace(metadata.span, bare)]));
    }
    found.push(problem);
}
