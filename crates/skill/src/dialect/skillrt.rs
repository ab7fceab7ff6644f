//! Implements the dialect of skillrt: typed inputs, outputs, dependencies and permissions; or
//! prose.

mod json_schema;
mod run;
mod store;

use savoir_lint::{Diagnostic, Edit, Fix, words::nearest};
use serde_json::{Map, Value, json};

use super::{
    Clues, Evidence, Grant, Language, NewFile, Reader, ToolExecution, agentskills::KEYS,
    reader::strings_of, scaffold::title,
};
use crate::{
    convert::Fields,
    document::{Document, State},
    frontmatter::{Fences, Unclosed},
    name::{self, NameGrammar},
    permission::{self, Domain, Permission},
    render::Placeholders,
    shape::{self, Field, Limit, Shape, UnknownFields},
    skill::{Input, InputKind, Mode, Output, Skill},
    version::{self, SkillRef},
    yaml::{Node, YamlVersion, write::write_scalar},
};

pub(crate) use run::is_anthropic_skill;
pub use run::{SkillrtRunError, check_runtime, check_tools};
pub use store::{InstallId, InstalledSkill, UnsafeName, install_id, listing};

#[derive(Debug)]
pub(super) struct Skillrt;

/// Fields of future runtimes start with it.
const RESERVED_PREFIX: &str = "x-runtime-strict:";

/// The version of the runtime specification that we implement.
const RUNTIME_LEVEL: &str = "0.1.0";

const KINDS: &[&str] = &["string", "number", "boolean", "file", "url", "json"];

const OUTPUT_KINDS: &[&str] = &["text", "json", "file"];

const LIST_OF_TEXTS: Shape = Shape::List(&Shape::Text(&[]));

const INPUT: Shape = Shape::Record(
    &[
        Field::required("name", Shape::Text(&[]), "Name of the input in `{{ name }}`."),
        Field::required("type", Shape::Choice(KINDS), "What the input accepts."),
        Field::optional("required", Shape::Bool, "Whether a run without it fails."),
        Field::optional("description", Shape::Text(&[]), "What it means."),
        Field::optional("default", Shape::Any, "Value that is used when none is given."),
    ],
    UnknownFields::Closed,
);

const OUTPUTS: Shape = Shape::Record(
    &[
        Field::required("type", Shape::Choice(OUTPUT_KINDS), "What the skill answers with."),
        Field::optional("schema", Shape::Any, "JSON Schema of the answer."),
    ],
    UnknownFields::Closed,
);

const RUNTIME: Shape = Shape::Record(
    &[
        Field::optional("type", Shape::Text(&[]), "Runtime family, `markdown-skill` by default."),
        Field::optional("min-version", Shape::Version, "Smallest runtime version."),
    ],
    UnknownFields::Closed,
);

const DEPENDENCIES: Shape = Shape::Record(
    &[
        Field::optional("mcp-servers", LIST_OF_TEXTS, "MCP servers by name."),
        Field::optional("skills", LIST_OF_TEXTS, "Other skills as `name@range`."),
        Field::optional("tools", LIST_OF_TEXTS, "Programs that must be on `PATH`."),
    ],
    UnknownFields::Closed,
);

const PERMISSIONS: Shape = Shape::Record(
    &[
        Field::optional("network", LIST_OF_TEXTS, "Host names, or `*`."),
        Field::optional("filesystem", LIST_OF_TEXTS, "Path globs."),
        Field::optional("env", LIST_OF_TEXTS, "Environment variables."),
    ],
    UnknownFields::Closed,
);

const DESCRIPTION: &[Limit] =
    &[Limit::warning(512, "description-long"), Limit::warning(120, "description-long")];

const NAME: Field = Field::required(
    "name",
    Shape::Text(&[Limit::warning(128, "too-long")]),
    "Identifier, in kebab-case.",
);
const SUMMARY: Field =
    Field::required("description", Shape::Text(DESCRIPTION), "One line that describes the skill.");
const VERSION: Field =
    Field::required("version", Shape::Version, "Three numbers, such as `1.0.0` (SemVer 2.0.0).");

macro_rules! fields {
    ($($first:expr),+) => {
        &[
            $($first),+,
            Field::optional("authors", LIST_OF_TEXTS, "Who wrote it."),
            Field::optional("license", Shape::Text(&[]), "SPDX identifier, `UNLICENSED` by default."),
            Field::optional("runtime", RUNTIME, "Runtime family that it is for."),
            Field::optional("inputs", Shape::List(&INPUT), "Values that the body uses as `{{ name }}`."),
            Field::optional("outputs", Shape::Nullable(&OUTPUTS), "What it answers with."),
            Field::optional("dependencies", DEPENDENCIES, "What must be there before it runs."),
            Field::optional("permissions", PERMISSIONS, "What it may do; nothing when absent."),
            Field::optional("tags", LIST_OF_TEXTS, "Words to find it by."),
        ]
    };
}

const FIELDS: &[Field] = fields!(NAME, VERSION, SUMMARY);

/// A Claude skill without a version is tolerated (section 7.2 of the specification).
const FIELDS_WITHOUT_VERSION: &[Field] = fields!(NAME, SUMMARY);

impl Language for Skillrt {
    fn id(&self) -> &'static str {
        "skillrt"
    }

    fn title(&self) -> &'static str {
        "skillrt"
    }

    fn about(&self) -> &'static str {
        "skillrt's typed skills with inputs, outputs, dependencies and permissions."
    }

    fn placeholders(&self) -> Placeholders {
        Placeholders::Skillrt
    }

    fn fences(&self) -> Fences {
        Fences { skip_blank_lines: true, exact: true, unclosed: Unclosed::Error, optional: true }
    }

    fn evidence(&self, clues: &Clues<'_>) -> Option<Evidence> {
        if clues.keys_of("runtime").contains(&"type") {
            return Some(Evidence::strong(4, "`runtime` has a `type`"));
        }
        let permissions = clues.keys_of("permissions");
        let known = |key: &&str| ["network", "filesystem", "env"].contains(key);
        // Some skills of other systems list hosts and variables in the same way, but without a
        // version. OpenClaw uses the same domains as booleans.
        let is_own = clues.has("version") && !clues.has("claw_version");
        if !permissions.is_empty() && permissions.iter().all(known) && is_own {
            return Some(Evidence::strong(4, "`permissions` is a map of skillrt"));
        }
        let dependencies = clues.keys_of("dependencies");
        if let Some(key) = dependencies.iter().find(|key| ["mcp-servers", "tools"].contains(key)) {
            return Some(Evidence::strong(4, format!("`dependencies` has `{key}`")));
        }
        let entries = clues.document.entries();
        if let Some(entry) = entries.iter().find(|entry| entry.key.starts_with(RESERVED_PREFIX)) {
            return Some(Evidence::strong(4, format!("only skillrt reserves `{}`", entry.key)));
        }
        // Other systems have fields of these names, too, so they count only in the shape of skillrt.
        let is_only = |keys: &[&str], all: &[&str]| keys.iter().all(|key| all.contains(key));
        let needs_skill = || {
            let skills = clues.document.fields()?.path("dependencies.skills")?.items()?;
            let mut names = skills.iter().filter_map(Node::text);
            names.find(|name| name.contains('@') && SkillRef::parse(name).is_ok())
        };
        if is_own && is_only(&dependencies, &["skills"]) && needs_skill().is_some() {
            return Some(Evidence::strong(
                4,
                "`dependencies` has `skills` with a range of versions",
            ));
        }
        let outputs = clues.keys_of("outputs");
        let kind = clues.text("outputs.type").filter(|kind| OUTPUT_KINDS.contains(kind));
        if is_own && is_only(&outputs, &["type", "schema"]) && kind.is_some() {
            return Some(Evidence::strong(4, "`outputs` has a `type` of skillrt"));
        }
        let typed = clues.input_types().iter().any(|kind| KINDS.contains(kind));
        (typed && clues.uses_an_input()).then(|| {
            Evidence::strong(7, "an input has a type of skillrt, and the text uses `{{name}}`")
        })
    }

    fn fields(&self, document: Option<&Document>) -> &'static [Field] {
        let only_base = document.is_some_and(|document| {
            let entries = document.entries();
            !entries.is_empty() && entries.iter().all(|entry| KEYS.contains(&entry.key.as_str()))
        });
        if only_base { FIELDS_WITHOUT_VERSION } else { FIELDS }
    }

    fn read(&self, reader: &Reader<'_>, skill: &mut Skill) {
        if skill.mode == Mode::Prose {
            super::prose::Prose.read(reader, skill);
            return;
        }
        reader.identity(skill);
        skill.version = Some(reader.text("version").unwrap_or_else(|| "0.0.0".into()));
        skill.authors = reader.strings("authors");
        let inputs = reader.node("inputs").and_then(Node::items).unwrap_or_default();
        skill.inputs = inputs.iter().filter_map(|node| input(node, reader.version)).collect();
        skill.outputs = reader
            .text("outputs.type")
            .map(|kind| Output { kind, schema: reader.value("outputs.schema") });
        let requirements = &mut skill.requirements;
        requirements.programs = reader.strings("dependencies.tools");
        requirements.skills = reader.strings("dependencies.skills");
        requirements.mcp_servers = reader.strings("dependencies.mcp-servers");
        requirements.runtime = reader.value("runtime");
        skill.permissions = permission::from_skillrt(
            &reader.strings("permissions.network"),
            &reader.strings("permissions.filesystem"),
            &reader.strings("permissions.env"),
        );
    }

    fn check(&self, reader: &Reader<'_>, skill: &Skill, found: &mut Vec<Diagnostic>) {
        if skill.mode == Mode::Prose || reader.document.state() == State::Absent {
            return;
        }
        reserved_fields(reader, found);
        missing_version(reader, found);
        kebab_case(reader, found);
        if let Some(license) = reader.node("license") {
            found.extend(shape::licence_problem(license.text().unwrap_or_default(), license.span));
        }
        runtime_type(reader, found);
        runtime_level(reader, found);
        output_schema(reader, found);
        let key = "dependencies.skills";
        skill_references(reader.node(key), key, found);
    }

    fn grants(&self, document: &Document) -> Vec<Grant> {
        let Some(map) = document.field("permissions") else { return Vec::new() };
        let mut grants = Vec::new();
        for key in ["network", "filesystem", "env"] {
            // A single text counts as a list, as for a run.
            let entries =
                map.get(key).map(|node| node.items().unwrap_or(std::slice::from_ref(node)));
            for node in entries.unwrap_or_default() {
                let Some(written) = node.text() else { continue };
                let one = [written];
                let permissions = match key {
                    "network" => permission::from_skillrt(&one, &[], &[]),
                    "filesystem" => permission::from_skillrt(&[], &one, &[]),
                    _ => permission::from_skillrt(&[], &[], &one),
                };
                if !permissions.is_empty() {
                    grants.push(Grant {
                        permissions,
                        written: written.to_owned(),
                        span: node.span,
                    });
                }
            }
        }
        grants
    }

    fn declare(&self, _document: &Document, permissions: &[Permission]) -> Vec<(String, Value)> {
        // In this dialect a path or host covers reading and writing, so one of the two is enough to
        // list it.
        let scopes = |domain: Domain, all: &str| -> Vec<String> {
            let mut list: Vec<String> = permissions
                .iter()
                .filter(|permission| permission.domain == domain)
                .map(|permission| permission.scope.clone().unwrap_or_else(|| all.to_owned()))
                .collect();
            list.dedup();
            list
        };
        let value = json!({
            "network": scopes(Domain::Network, "*"),
            "filesystem": scopes(Domain::Filesystem, "~/**"),
            "env": scopes(Domain::Env, "*"),
        });
        vec![("permissions".to_owned(), value)]
    }

    fn reserved_prefix(&self) -> Option<&'static str> {
        Some(RESERVED_PREFIX)
    }

    fn running(&self) -> ToolExecution {
        ToolExecution { requirements_grant: true, ..ToolExecution::DECLARED }
    }

    fn write(&self, skill: &Skill, fields: &mut Fields) {
        fields.put("name", "name", skill.name.clone());
        let fallback = skill.version.as_deref().filter(|text| version::parse_version(text).is_ok());
        match (fallback, &skill.version) {
            (Some(version), _) => fields.put("version", "version", version),
            (None, Some(_)) => {
                fields.put_approximate("version", "version", "0.0.0", "the version is not SemVer");
            }
            (None, None) => {
                fields.put_approximate("version", "version", "0.0.0", "skillrt needs a version");
            }
        }
        fields.put("description", "description", skill.description.clone());
        fields.put("authors", "authors", skill.authors.clone());
        fields.put("license", "license", skill.license.clone());
        fields.put("compatibility", "compatibility", skill.compatibility.clone());
        fields.put("tags", "tags", skill.tags.clone());
        fields.put("requirements.runtime", "runtime", skill.requirements.runtime.clone());
        let inputs: Vec<Value> = skill.inputs.iter().map(input_value).collect();
        if skill
            .inputs
            .iter()
            .all(|input| skillrt_kind(input.kind) == input.kind && input.label.is_none())
        {
            fields.put("inputs", "inputs", inputs);
        } else {
            fields.put_approximate(
                "inputs",
                "inputs",
                inputs,
                "labels and widget types have no place here",
            );
        }
        if let Some(output) = &skill.outputs {
            fields.put("outputs", "outputs", json!(output));
        }
        write_dependencies(skill, fields);
        write_permissions(skill, fields);
    }

    fn scaffold(&self, name: &str, description: &str) -> Vec<NewFile> {
        let text = format!(
            "---\nname: {name}\nversion: 0.1.0\ndescription: {}\nlicense: MIT\ninputs:\n  - name: topic\n    \
             type: string\n    required: true\n    description: What to work on\noutputs:\n  type: text\n\
             permissions:\n  network: []\n  filesystem: []\n  env: []\n---\n\n# {}\n\nWork on {{{{ topic }}}}.\n\n\
             1. Say what to look at first.\n2. Say what to do with it.\n3. Say how to check the result.\n",
            write_scalar(description, self.yaml()),
            title(name)
        );
        vec![NewFile::new("SKILL.md", text)]
    }
}

fn input(node: &Node, version: YamlVersion) -> Option<Input> {
    Some(Input {
        name: node.get("name")?.text()?.to_owned(),
        label: None,
        kind: InputKind::parse(node.get("type")?.text()?)
            .filter(|kind| KINDS.contains(&kind.as_str()))?,
        required: node.get("required").and_then(|node| node.boolean(version)).unwrap_or(false),
        default: node
            .get("default")
            .map(|node| node.to_value(version))
            .filter(|value| !value.is_null()),
        description: node.get("description").and_then(Node::text).map(str::to_owned),
    })
}

fn skillrt_kind(kind: InputKind) -> InputKind {
    match kind {
        InputKind::Text | InputKind::Textarea => InputKind::String,
        other => other,
    }
}

fn input_value(input: &Input) -> Value {
    let mut map = Map::new();
    map.insert("name".into(), json!(input.name));
    map.insert("type".into(), json!(skillrt_kind(input.kind).as_str()));
    if input.required {
        map.insert("required".into(), json!(true));
    }
    if let Some(text) = input.description.as_ref().or(input.label.as_ref()) {
        map.insert("description".into(), json!(text));
    }
    if let Some(default) = &input.default {
        map.insert("default".into(), default.clone());
    }
    Value::Object(map)
}

fn write_dependencies(skill: &Skill, fields: &mut Fields) {
    let requirements = &skill.requirements;
    let lists = [
        ("requirements.programs", "dependencies.tools", &requirements.programs),
        ("requirements.skills", "dependencies.skills", &requirements.skills),
        ("requirements.mcp_servers", "dependencies.mcp-servers", &requirements.mcp_servers),
    ];
    for (model, path, list) in lists {
        fields.put(model, path, list.clone());
    }
}

fn write_permissions(skill: &Skill, fields: &mut Fields) {
    let map = permission::to_skillrt(&skill.permissions);
    let lists = [
        ("permissions.network", map.network),
        ("permissions.filesystem", map.filesystem),
        ("permissions.env", map.env),
    ];
    for (path, list) in lists {
        if map.left_over.is_empty() {
            fields.put("permissions", path, list);
        } else {
            let why = "skillrt grants only hosts, paths and variables, and does not distinguish reading from writing";
            fields.put_approximate("permissions", path, list, why);
        }
    }
}

fn reserved_fields(reader: &Reader<'_>, found: &mut Vec<Diagnostic>) {
    for entry in reader.document.entries() {
        if entry.key.starts_with(RESERVED_PREFIX) {
            let message = format!("`{}` is reserved", entry.key);
            found.push(
                Diagnostic::error("reserved-field", entry.key_span, message)
                    .field(entry.key.clone())
                    .help("fields that start with `x-runtime-strict:` are reserved for future runtimes"),
            );
        }
    }
}

fn missing_version(reader: &Reader<'_>, found: &mut Vec<Diagnostic>) {
    let tolerated = self_fields_have_no_version(reader.document);
    if tolerated && reader.document.field("version").is_none() {
        let at = reader.document.entries().last().map(|entry| entry.value.span.end);
        let text = reader.document.text();
        let mut problem = Diagnostic::warning(
            "missing-version",
            reader.document.head_span(),
            "the field `version` is missing, `0.0.0` is assumed",
        )
        .field("version")
        .help("add `version: 0.1.0`");
        if let Some(end) = at.and_then(|at| Some(at + text.get(at..)?.find('\n')? + 1)) {
            problem = problem.fix(Fix::unsafe_edits(vec![Edit::insert(end, "version: 0.1.0\n")]));
        }
        found.push(problem);
    }
}

fn self_fields_have_no_version(document: &Document) -> bool {
    std::ptr::eq(Skillrt.fields(Some(document)), FIELDS_WITHOUT_VERSION)
}

fn kebab_case(reader: &Reader<'_>, found: &mut Vec<Diagnostic>) {
    let Some(node) = reader.node("name") else { return };
    let text = node.text().unwrap_or_default();
    if !text.is_empty() && NameGrammar::Any.check(text).is_ok() && !name::is_kebab_case(text) {
        let message = format!("`{text}` is not in kebab-case");
        let problem = Diagnostic::warning("name-not-kebab-case", node.span, message);
        let mut problem =
            problem.field("name").help("use lower-case words with hyphens between them");
        if let Some(slug) = name::slugify(text) {
            problem = problem
                .help(format!("`{slug}` would be"))
                .fix(Fix::unsafe_edits(vec![Edit::replace(node.span, slug)]));
        }
        found.push(problem);
    }
}

fn runtime_type(reader: &Reader<'_>, found: &mut Vec<Diagnostic>) {
    let Some(node) = reader.node("runtime.type") else { return };
    let word = node.text().unwrap_or_default();
    if word == run::MCP_TOOL {
        let message = "a skill that stands for a tool of an MCP server cannot be run by Savoir";
        found.push(
            Diagnostic::warning("unknown-runtime", node.span, message)
                .field("runtime.type")
                .help("agents can load it, and call the tool if they have the server"),
        );
    }
    if run::RUNTIME_TYPES.contains(&word) {
        return;
    }
    let message = format!("`{word}` is not a known runtime");
    let mut problem =
        Diagnostic::warning("unknown-runtime", node.span, message).field("runtime.type");
    problem = match nearest(word, run::RUNTIME_TYPES) {
        Some(near) => problem
            .help(format!("did you mean `{near}`?"))
            .fix(Fix::unsafe_edits(vec![Edit::replace(node.span, near)])),
        None => problem.help(format!("use one of {}", run::RUNTIME_TYPES.join(", "))),
    };
    found.push(problem);
}

fn output_schema(reader: &Reader<'_>, found: &mut Vec<Diagnostic>) {
    let Some(node) = reader.node("outputs.schema") else { return };
    if let Some(problem) = json_schema::find_problem(&node.to_value(reader.version)) {
        let message = format!("`outputs.schema` is not a JSON Schema: {problem}");
        found.push(
            Diagnostic::error("invalid-schema", node.span, message)
                .field("outputs.schema")
                .help("correct it; every answer would be refused"),
        );
    }
}

fn runtime_level(reader: &Reader<'_>, found: &mut Vec<Diagnostic>) {
    let Some(node) = reader.node("runtime.min-version") else { return };
    let level = version::parse_version(RUNTIME_LEVEL);
    let wanted = version::parse_version(node.text().unwrap_or_default());
    if let (Ok(wanted), Ok(level)) = (wanted, level)
        && wanted > level
    {
        let message = format!("it needs runtime {wanted}, this is {level}");
        found.push(
            Diagnostic::warning("runtime-too-new", node.span, message)
                .field("runtime.min-version")
                .help("it can be read and shown, but not run"),
        );
    }
}

/// Reports references to skills that are not `name@range`.
pub(super) fn skill_references(list: Option<&Node>, key: &str, found: &mut Vec<Diagnostic>) {
    for (index, node) in list.and_then(Node::items).unwrap_or_default().iter().enumerate() {
        for text in strings_of(node) {
            if let Err(problem) = SkillRef::parse(&text) {
                found.push(
                    Diagnostic::error("invalid-range", node.span, problem.to_string())
                        .field(format!("{key}[{index}]"))
                        .help("write `name`, or `name@^1.2` with a range"),
                );
            }
        }
    }
}
