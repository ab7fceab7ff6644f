//! Implements the dialect of AMD GAIA: permissions, tiers and Python tools, flat or under
//! `metadata.gaia`.

mod values;

use savoir_lint::{Diagnostic, Edit, Fix, Severity};
use serde_json::{Map, Value, json};

use super::{
    Clues, Conventions, Evidence, FolderNameRule, Grant, Language, NetworkDefault, NewFile, Reader,
    ToolExecution, agentskills::tools_text, scaffold::title, skillrt::skill_references,
};
use crate::{
    convert::Fields,
    document::Document,
    frontmatter::{Fences, Unclosed},
    name::{self, NameGrammar},
    permission::{self, Level, Permission, PermissionError, Tier},
    shape::{Field, Limit, Shape, UnknownFields},
    skill::{Parameter, ParameterKind, Runner, Skill, Tool},
    version::{self, VersionRange},
    yaml::{Entry, Node, YamlVersion, write::write_scalar},
};
#[cfg(feature = "python")]
use crate::{folder::Folder, python};

#[derive(Debug)]
pub(super) struct Gaia;

/// Fills in missing descriptions of tools with the docstrings of their functions.
#[cfg(feature = "python")]
fn describe_by_docstrings(folder: Option<&Folder>, tools: &mut [Tool]) {
    if tools.iter().all(|tool| !tool.description.is_empty()) {
        return;
    }
    let source = folder.filter(|folder| folder.has(python::TOOLS_FILE));
    let source = source.and_then(|folder| folder.read(python::TOOLS_FILE).ok());
    let source = source.and_then(|bytes| String::from_utf8(bytes).ok());
    // Other rules report a file that cannot be read.
    let Some(module) = source.and_then(|source| python::parse(&source).ok()) else { return };
    for tool in tools.iter_mut().filter(|tool| tool.description.is_empty()) {
        let function = module.function(&tool.name);
        if let Some(text) = function.and_then(|function| function.docstring.as_ref()) {
            tool.description.clone_from(text);
        }
    }
}

/// Where a file stores the fields of GAIA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManifestShape {
    /// At top level, as the specification requires.
    Flat,
    /// Under `metadata.gaia`, as the shipped product does.
    Nested,
}

impl ManifestShape {
    /// Returns the shape of a file.
    pub fn of(document: &Document) -> Self {
        if is_nested(document) { Self::Nested } else { Self::Flat }
    }

    /// The identifier of the shape.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::Nested => "metadata.gaia",
        }
    }
}

const TIERS: &[&str] = &["verified", "community", "experimental"];
const LIST_OF_SCALARS: Shape = Shape::List(&Shape::Scalar(&[]));
const PERMISSIONS: Shape = Shape::List(&Shape::Permission);
const PARAMETER_KINDS: &[&str] = &["string", "integer", "number", "boolean", "array", "object"];

const PARAMETER: Shape = Shape::Record(
    &[
        Field::required("type", Shape::Choice(PARAMETER_KINDS), "What the parameter accepts."),
        Field::optional("required", Shape::Bool, "Whether a call without it fails."),
        Field::optional("default", Shape::Any, "Value that is used when none is given."),
        Field::optional("description", Shape::Scalar(&[]), "What it means."),
    ],
    UnknownFields::Typos,
);

const TOOL: Shape = Shape::Record(
    &[
        Field::required("name", Shape::Text(&[]), "Name of the function in `tools.py`."),
        Field::advised("description", Shape::Scalar(&[]), "What the tool does."),
        Field::optional("parameters", Shape::Table(&PARAMETER), "Parameters by name."),
        Field::optional("returns", Shape::Map, "Type of the return value."),
        Field::optional("atomic", Shape::Bool, "Whether it must run alone."),
    ],
    UnknownFields::Typos,
);

const REQUIREMENTS: Shape = Shape::Record(
    &[
        Field::optional("model", Shape::Scalar(&[]), "Smallest model, such as `>=7B`."),
        Field::optional("context", Shape::Scalar(&[]), "Smallest context window, such as `>=8K`."),
        Field::optional("python", Shape::Scalar(&[]), "Python version range."),
        Field::optional("dependencies", LIST_OF_SCALARS, "Python packages."),
        Field::optional("node_dependencies", LIST_OF_SCALARS, "Node packages."),
        Field::optional("env_vars", LIST_OF_SCALARS, "Environment variables that must be set."),
        Field::optional("hardware", Shape::Map, "Hardware hints."),
        Field::optional("skills", Shape::List(&SKILL), "Other skills."),
    ],
    UnknownFields::Closed,
);

const SKILL: Shape = Shape::Either(&[
    Shape::Record(
        &[
            Field::required("name", Shape::Text(&[]), "Name of the skill."),
            Field::optional("version", Shape::Scalar(&[]), "Version range."),
        ],
        UnknownFields::Closed,
    ),
    Shape::Text(&[]),
]);

const FLAT: &[Field] = &[
    Field::required(
        "name",
        Shape::Name(NameGrammar::Gaia, Severity::Error),
        "Identifier in lower case.",
    ),
    Field::required("version", Shape::Version, "Three numbers, such as `1.0.0` (SemVer 2.0.0)."),
    Field::required("description", Shape::Text(&[Limit::error(200)]), "One line about the skill."),
    Field::required("author", Shape::Text(&[]), "Publisher or handle."),
    Field::required("license", Shape::Licence, "SPDX identifier."),
    Field::required("permissions", PERMISSIONS, "What it may do, as `domain:level[:scope]`."),
    Field::required("tools", Shape::List(&TOOL), "Functions of `tools.py`."),
    Field::required("security_tier", Shape::Choice(TIERS), "Claimed trust tier."),
    Field::optional("requirements", REQUIREMENTS, "What must be there before it runs."),
    Field::optional("registry", Shape::Scalar(&[]), "Registry that it is published to."),
    Field::optional("tags", LIST_OF_SCALARS, "Words to find it by."),
    Field::optional("homepage", Shape::Scalar(&[]), "Page about the skill."),
    Field::optional("repository", Shape::Scalar(&[]), "Source repository."),
    Field::optional("metadata", Shape::Map, "Any further fields."),
    Field::optional("compatibility", Shape::Any, "Kept, without meaning."),
    Field::optional("allowed-tools", Shape::Any, "Kept, without meaning."),
];

const NESTED: &[Field] = &[
    Field::required(
        "name",
        Shape::Name(NameGrammar::Ascii, Severity::Error),
        "Identifier in lower case.",
    ),
    Field::optional("version", Shape::Version, "Three numbers in quotes, such as `\"1.0.0\"`."),
    Field::required("description", Shape::Text(&[Limit::error(1024)]), "What the skill does."),
    Field::optional("author", Shape::Scalar(&[]), "Publisher or handle."),
    Field::optional("license", Shape::Scalar(&[]), "SPDX identifier."),
    Field::required(
        "metadata",
        Shape::Record(
            &[Field::required(
                "gaia",
                Shape::Record(
                    &[
                        Field::optional("permissions", PERMISSIONS, "What it may do."),
                        Field::optional(
                            "security_tier",
                            Shape::Choice(TIERS),
                            "Claimed trust tier.",
                        ),
                        Field::optional("tools", Shape::List(&TOOL), "Functions of `tools.py`."),
                        Field::optional("requirements", REQUIREMENTS, "What must be there."),
                        Field::optional("tools_required", LIST_OF_SCALARS, "Tools of the host."),
                    ],
                    UnknownFields::Typos,
                ),
                "GAIA's own fields.",
            )],
            UnknownFields::Open,
        ),
        "Holds `gaia`.",
    ),
    Field::optional("registry", Shape::Scalar(&[]), "Registry that it is published to."),
    Field::optional("tags", LIST_OF_SCALARS, "Words to find it by."),
    Field::optional("homepage", Shape::Scalar(&[]), "Page about the skill."),
    Field::optional("repository", Shape::Scalar(&[]), "Source repository."),
    Field::optional("compatibility", Shape::Any, "Kept, without meaning."),
    Field::optional("allowed-tools", Shape::Any, "Kept, without meaning."),
];

impl Language for Gaia {
    fn id(&self) -> &'static str {
        "gaia"
    }

    fn title(&self) -> &'static str {
        "AMD GAIA"
    }

    fn about(&self) -> &'static str {
        "AMD GAIA's skills: Python tools with permissions, tiers and requirements."
    }

    fn yaml(&self) -> YamlVersion {
        YamlVersion::V1_1
    }

    fn fences(&self) -> Fences {
        Fences { skip_blank_lines: false, exact: false, unclosed: Unclosed::Error, optional: false }
    }

    fn evidence(&self, clues: &Clues<'_>) -> Option<Evidence> {
        if clues.is_map("metadata.gaia") {
            return Some(Evidence::strong(3, "`metadata.gaia` is a map"));
        }
        let tools = clues.document.field("tools").and_then(Node::items).unwrap_or_default();
        if clues.has("security_tier") && tools.iter().any(|tool| tool.entries().is_some()) {
            return Some(Evidence::strong(3, "it has `security_tier` and a list of `tools`"));
        }
        let grants = clues.document.field("permissions").and_then(Node::items).unwrap_or_default();
        let is_grant =
            |node: &Node| node.text().is_some_and(|text| Permission::parse(text).is_ok());
        // Some skills of other systems list permissions in the same way, but without a version.
        (!grants.is_empty() && grants.iter().all(is_grant) && clues.has("version"))
            .then(|| Evidence::strong(3, "`permissions` is a list of `domain:level`"))
    }

    fn fields(&self, document: Option<&Document>) -> &'static [Field] {
        if document.is_some_and(is_nested) { NESTED } else { FLAT }
    }

    fn shapes(&self) -> Vec<&'static [Field]> {
        vec![FLAT, NESTED]
    }

    fn read(&self, reader: &Reader<'_>, skill: &mut Skill) {
        let at = |key: &str| place(reader, key);
        reader.identity(skill);
        skill.body = skill.body.trim_matches(['\n', '\r']).to_owned();
        skill.version = reader.text("version");
        skill.authors = reader.strings("author");
        skill.permissions = reader
            .strings(&at("permissions"))
            .iter()
            .filter_map(|text| Permission::parse(text).ok())
            .collect();
        let tier = reader.text(&at("security_tier")).and_then(|word| word.parse().ok());
        skill.policy.tier = Some(tier.unwrap_or(Tier::Experimental));
        skill.policy.allowed_tools = reader.tools("allowed-tools");
        let tools = reader.node(&at("tools")).and_then(Node::items).unwrap_or_default();
        skill.tools = tools.iter().filter_map(|node| tool(node, reader.version)).collect();
        #[cfg(feature = "python")]
        describe_by_docstrings(reader.folder, &mut skill.tools);
        let need = |key: &str| at(&format!("requirements.{key}"));
        let requirements = &mut skill.requirements;
        requirements.model = reader.text(&need("model"));
        requirements.context = reader.text(&need("context"));
        requirements.python = reader.text(&need("python"));
        requirements.python_packages = reader.strings(&need("dependencies"));
        requirements.node_packages = reader.strings(&need("node_dependencies"));
        requirements.env_vars = reader.strings(&need("env_vars"));
        requirements.hardware = reader.value(&need("hardware"));
        requirements.host_tools = reader.strings(&at("tools_required"));
        let skills = reader.node(&need("skills")).and_then(Node::items).unwrap_or_default();
        requirements.skills = skills.iter().filter_map(skill_reference).collect();
    }

    fn check(&self, reader: &Reader<'_>, skill: &Skill, found: &mut Vec<Diagnostic>) {
        shapes(reader, found);
        names(reader, found);
        permissions(reader, found);
        tools(reader, skill, found);
        let key = place(reader, "requirements.skills");
        let skills = reader.node(&key);
        ranges(skills, &key, found);
        skill_references(skills, &key, found);
        values::check(reader, skill, found);
        // A docstring is a description, too.
        let tools = place(reader, "tools");
        let described =
            skill.tools.iter().enumerate().filter(|(_, tool)| !tool.description.is_empty());
        let fields: Vec<String> =
            described.map(|(at, _)| format!("{tools}[{at}].description")).collect();
        found.retain(|found| {
            let is_described = found.field.as_ref().is_some_and(|field| fields.contains(field));
            found.code != "missing-field" || !is_described
        });
    }

    fn grants(&self, document: &Document) -> Vec<Grant> {
        let Some(fields) = document.fields() else { return Vec::new() };
        let nested = fields.path("metadata.gaia.permissions");
        let list = nested.or_else(|| fields.get("permissions")).and_then(Node::items);
        let grants = list.unwrap_or_default().iter().filter_map(|node| {
            let written = node.text()?.trim();
            let permission = Permission::parse(written).ok()?;
            let written = written.to_owned();
            Some(Grant { permissions: vec![permission], written, span: node.span })
        });
        grants.collect()
    }

    fn conventions(&self) -> Conventions {
        Conventions {
            folder_name: Some(FolderNameRule::EQUAL),
            known_folders: &["lib"],
            ..Conventions::COMMON
        }
    }

    fn declare(&self, document: &Document, permissions: &[Permission]) -> Vec<(String, Value)> {
        let key = match ManifestShape::of(document) {
            ManifestShape::Flat => "permissions",
            ManifestShape::Nested => "metadata.gaia.permissions",
        };
        vec![(key.to_owned(), json!(permissions))]
    }

    fn running(&self) -> ToolExecution {
        // Running programs needs the permission `shell:execute`.
        ToolExecution {
            runs_programs: false,
            network: NetworkDefault::Off,
            ..ToolExecution::DECLARED
        }
    }

    fn write(&self, skill: &Skill, fields: &mut Fields) {
        // Skills without tools exist only in the nested shape.
        let nested = skill.tools.is_empty();
        write_as(skill, if nested { ManifestShape::Nested } else { ManifestShape::Flat }, fields);
    }

    fn scaffold(&self, name: &str, description: &str) -> Vec<NewFile> {
        let text = format!(
            "---\nname: {name}\nversion: 0.1.0\ndescription: {}\nauthor: you\nlicense: MIT\npermissions:\n  \
             - filesystem:none\n  - network:none\ntools:\n  - name: greet\n    description: Return a greeting\n    \
             parameters:\n      who: {{type: string, required: true}}\n    returns: {{type: object}}\n\
             security_tier: experimental\n---\n\n# {}\n\nCall `greet` with a name. The code is in `tools.py`.\n",
            write_scalar(description, self.yaml()),
            title(name)
        );
        let tools = "from gaia.agents.base.tools import tool\n\n\n@tool\ndef greet(who: str) -> dict:\n    \
                     \"\"\"Return a greeting for the given name.\"\"\"\n    return {\"message\": f\"Hello, {who}!\"}\n";
        vec![NewFile::new("SKILL.md", text), NewFile::new("tools.py", tools)]
    }
}

/// Writes the model in one of the two shapes.
pub(crate) fn write_as(skill: &Skill, shape: ManifestShape, fields: &mut Fields) {
    let nested = shape == ManifestShape::Nested;
    let at = |key: &str| if nested { format!("metadata.gaia.{key}") } else { key.to_owned() };
    fields.put("name", "name", skill.name.clone());
    let semver = skill.version.as_deref().filter(|text| version::parse_version(text).is_ok());
    match (semver, nested) {
        (Some(version), _) => fields.put("version", "version", version),
        (None, false) => {
            fields.put_approximate("version", "version", "0.0.0", "GAIA needs a SemVer version");
        }
        (None, true) => {}
    }
    if nested || skill.description.chars().count() <= 200 {
        fields.put("description", "description", skill.description.clone());
    } else {
        let why = "the specification allows 200 characters; shorten it before publishing";
        fields.put_approximate("description", "description", skill.description.clone(), why);
    }
    match (skill.authors.as_slice(), nested) {
        ([], true) => {}
        ([], false) => {
            fields.put_approximate("authors", "author", "unknown", "GAIA needs an author");
        }
        (authors, _) => fields.put("authors", "author", authors.join(", ")),
    }
    match (&skill.license, nested) {
        (None, false) => {
            fields.put_approximate("license", "license", "NOASSERTION", "GAIA needs a license");
        }
        (license, _) => fields.put("license", "license", license.clone()),
    }
    fields.put("compatibility", "compatibility", skill.compatibility.clone());
    let why = "GAIA does not restrict tools by skill";
    fields.put_approximate("policy.allowed_tools", "allowed-tools", tools_text(skill), why);
    write_permissions(skill, fields, &at("permissions"));
    let tier = skill.policy.tier.unwrap_or(Tier::Experimental).as_str();
    if skill.policy.tier.is_some() {
        fields.put("policy.tier", &at("security_tier"), tier);
    } else {
        fields.put_approximate(
            "policy.tier",
            &at("security_tier"),
            tier,
            "a converted skill starts as experimental",
        );
    }
    write_tools(skill, fields, &at("tools"));
    write_requirements(skill, fields, &at);
    fields.put("tags", "tags", skill.tags.clone());
    for (model, key) in [
        ("links.homepage", "homepage"),
        ("links.repository", "repository"),
        ("links.registry", "registry"),
    ] {
        fields.put(model, key, skill.links.get(key).cloned());
    }
}

/// Whether the file has the nested shape of the shipped product.
fn is_nested(document: &Document) -> bool {
    document
        .fields()
        .and_then(|fields| fields.path("metadata.gaia"))
        .is_some_and(|node| node.entries().is_some())
}

/// Returns the path of a GAIA field in this file.
fn place(reader: &Reader<'_>, key: &str) -> String {
    if is_nested(reader.document) { format!("metadata.gaia.{key}") } else { key.to_owned() }
}

fn tool(node: &Node, version: YamlVersion) -> Option<Tool> {
    let name = node.get("name")?.text()?.to_owned();
    let parameters = node.get("parameters").and_then(Node::entries).unwrap_or_default();
    Some(Tool {
        description: node.get("description").and_then(Node::text).unwrap_or_default().to_owned(),
        parameters: parameters.iter().map(|entry| parameter(entry, version)).collect(),
        returns: node.get("returns").map(|node| node.to_value(version)),
        atomic: node.get("atomic").and_then(|node| node.boolean(version)).unwrap_or(false),
        examples: Vec::new(),
        runner: Runner::Python { function: name.clone() },
        name,
    })
}

fn parameter(entry: &Entry, version: YamlVersion) -> Parameter {
    let get = |key: &str| entry.value.get(key);
    Parameter {
        name: entry.key.clone(),
        kind: get("type").and_then(Node::text).and_then(ParameterKind::parse).unwrap_or_default(),
        required: get("required").and_then(|node| node.boolean(version)).unwrap_or(false),
        description: get("description").and_then(Node::text).unwrap_or_default().to_owned(),
        default: get("default").map(|node| node.to_value(version)).filter(|value| !value.is_null()),
    }
}

fn skill_reference(node: &Node) -> Option<String> {
    if let Some(text) = node.text() {
        return Some(text.to_owned());
    }
    let name = node.get("name")?.text()?;
    let range = node.get("version").and_then(Node::text).unwrap_or_default();
    Some(if range.is_empty() { name.to_owned() } else { format!("{name}@{range}") })
}

fn shapes(reader: &Reader<'_>, found: &mut Vec<Diagnostic>) {
    if !is_nested(reader.document) {
        return;
    }
    let flat = ["permissions", "tools", "security_tier", "requirements"];
    let entries = reader.document.entries();
    if let Some(entry) = entries.iter().find(|entry| flat.contains(&entry.key.as_str())) {
        let message = format!("`{}` is next to `metadata.gaia`, which takes precedence", entry.key);
        found.push(
            Diagnostic::warning("both-shapes", entry.key_span, message)
                .field(entry.key.clone())
                .help("write the fields in only one of the two places"),
        );
    }
}

fn names(reader: &Reader<'_>, found: &mut Vec<Diagnostic>) {
    let Some(node) = reader.node("name") else { return };
    let text = node.text().unwrap_or_default();
    if NameGrammar::Gaia.check(text).is_err() {
        return;
    }
    for code in name::gaia_warnings(text) {
        let message = format!("`{text}` has hyphens that most other systems reject");
        let mut problem = Diagnostic::warning(code, node.span, message)
            .field("name")
            .help("use single hyphens between words");
        if let Some(slug) = name::slugify(text) {
            problem = problem.fix(Fix::unsafe_edits(vec![Edit::replace(node.span, slug)]));
        }
        found.push(problem);
    }
    if let Some(prefix) = name::reserved_prefix(text) {
        let message = format!("names that start with `{prefix}` are reserved for its publisher");
        found.push(
            Diagnostic::warning("reserved-prefix", node.span, message)
                .field("name")
                .help("choose another name before publishing"),
        );
    }
}

fn permissions(reader: &Reader<'_>, found: &mut Vec<Diagnostic>) {
    let key = place(reader, "permissions");
    let nodes = reader.node(&key).and_then(Node::items).unwrap_or_default();
    let mut read: Vec<(Permission, &Node)> = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        let field = format!("{key}[{index}]");
        // The shape of the field reports an entry that is not a text.
        let Some(text) = node.text() else { continue };
        match Permission::parse(text) {
            Ok(grant) => read.push((grant, node)),
            Err(problem) => found.push(
                Diagnostic::error("invalid-permission", node.span, problem.to_string())
                    .field(field)
                    .help(permission_help(text, &problem)),
            ),
        }
    }
    let grants: Vec<Permission> = read.iter().map(|(grant, _)| grant.clone()).collect();
    for clash in permission::contradictions(&grants) {
        let Some((_, node)) = read.get(clash.none) else { continue };
        let message = format!("`{}:none` contradicts another permission", clash.domain);
        found.push(
            Diagnostic::error("contradicting-permissions", node.span, message)
                .field(key.clone())
                .help("keep either `none` or the grant"),
        );
    }
}

/// A hint for a permission that is not one. If only the level is missing, as in `shell:bash`, it is
/// the whole permission.
fn permission_help(text: &str, problem: &PermissionError) -> String {
    if let PermissionError::UnknownLevel { domain, found } = problem
        && let [level] =
            domain.levels().iter().filter(|it| **it != Level::None).collect::<Vec<_>>()[..]
        && text.trim() == format!("{domain}:{found}")
    {
        return format!("write `{domain}:{level}:{found}`");
    }
    "write `domain:level` or `domain:level:scope`".to_owned()
}

fn tools(reader: &Reader<'_>, skill: &Skill, found: &mut Vec<Diagnostic>) {
    let key = place(reader, "tools");
    let nodes = reader.node(&key).and_then(Node::items);
    let mut seen: Vec<&str> = Vec::new();
    for (index, node) in nodes.unwrap_or_default().iter().enumerate() {
        let field = format!("{key}[{index}].name");
        let Some((name_node, name)) = node.get("name").and_then(|node| Some((node, node.text()?)))
        else {
            continue;
        };
        if seen.contains(&name) {
            let message = format!("Duplicate tool name '{name}'");
            found.push(
                Diagnostic::error("duplicate-tool", name_node.span, message)
                    .field(field.clone())
                    .help("give each tool of a skill its own name"),
            );
        }
        seen.push(name);
        if !is_identifier(name) {
            let message = format!("`{name}` is not the name of a Python function");
            found.push(
                Diagnostic::error("invalid-tool-name", name_node.span, message)
                    .field(field)
                    .help("use letters, digits and underscores, and start with a letter"),
            );
        }
    }
    if nodes.is_some_and(<[Node]>::is_empty) && !is_nested(reader.document) {
        let span = reader.node(&key).map_or(reader.document.head_span(), |node| node.span);
        found.push(
            Diagnostic::error("no-tools", span, "the skill declares no tool")
                .field("tools")
                .help("declare at least one function of `tools.py`"),
        );
    }
    let folder =
        reader.folder.filter(|folder| !skill.tools.is_empty() && !folder.files().is_empty());
    if folder.is_some_and(|folder| !folder.has("tools.py")) {
        let span = reader.node(&key).map_or(reader.document.head_span(), |node| node.span);
        found.push(
            Diagnostic::error(
                "missing-tools-file",
                span,
                "`tools.py` is not in the skill's folder",
            )
            .field("tools")
            .help("add `tools.py` with a function for each declared tool"),
        );
    }
}

pub(crate) fn is_identifier(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(word) && !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty()
}

fn ranges(skills: Option<&Node>, key: &str, found: &mut Vec<Diagnostic>) {
    for (index, node) in skills.and_then(Node::items).unwrap_or_default().iter().enumerate() {
        let Some(range) = node.get("version") else { continue };
        if let Err(problem) = VersionRange::parse(range.text().unwrap_or_default()) {
            found.push(
                Diagnostic::error("invalid-range", range.span, problem.to_string())
                    .field(format!("{key}[{index}].version"))
                    .help("write a range such as `>=1.2, <2` or `^1.2`"),
            );
        }
    }
}

fn write_permissions(skill: &Skill, fields: &mut Fields, path: &str) {
    let mut grants: Vec<String> = skill.permissions.iter().map(ToString::to_string).collect();
    if !grants.is_empty() {
        fields.put("permissions", path, grants);
        return;
    }
    grants.extend(["filesystem:none".to_owned(), "network:none".to_owned()]);
    let why = "the skill declares no permissions, so it gets none";
    fields.put_approximate("permissions", path, grants, why);
}

fn write_tools(skill: &Skill, fields: &mut Fields, path: &str) {
    let tools: Vec<Value> = skill.tools.iter().map(tool_value).collect();
    let python = skill.tools.iter().all(|tool| matches!(tool.runner, Runner::Python { .. }));
    if python {
        fields.put("tools", path, tools);
    } else {
        let why = "GAIA calls functions of `tools.py`; write one for each command";
        fields.put_approximate("tools", path, tools, why);
    }
}

fn tool_value(tool: &Tool) -> Value {
    let mut map = Map::new();
    map.insert("name".into(), json!(tool.name));
    map.insert("description".into(), json!(tool.description));
    let mut parameters = Map::new();
    for parameter in &tool.parameters {
        let mut value = Map::new();
        value.insert("type".into(), json!(parameter.kind.as_str()));
        value.insert("required".into(), json!(parameter.required));
        if let Some(default) = &parameter.default {
            value.insert("default".into(), default.clone());
        }
        if !parameter.description.is_empty() {
            value.insert("description".into(), json!(parameter.description));
        }
        parameters.insert(parameter.name.clone(), value.into());
    }
    if !parameters.is_empty() {
        map.insert("parameters".into(), parameters.into());
    }
    if let Some(returns) = &tool.returns {
        map.insert("returns".into(), returns.clone());
    }
    if tool.atomic {
        map.insert("atomic".into(), json!(true));
    }
    Value::Object(map)
}

fn write_requirements(skill: &Skill, fields: &mut Fields, at: &impl Fn(&str) -> String) {
    let requirements = &skill.requirements;
    fields.put("requirements.model", &at("requirements.model"), requirements.model.clone());
    fields.put("requirements.context", &at("requirements.context"), requirements.context.clone());
    fields.put("requirements.python", &at("requirements.python"), requirements.python.clone());
    let lists = [
        (
            "requirements.python_packages", "requirements.dependencies",
            &requirements.python_packages,
        ),
        (
            "requirements.node_packages",
            "requirements.node_dependencies",
            &requirements.node_packages,
        ),
        ("requirements.env_vars", "requirements.env_vars", &requirements.env_vars),
    ];
    for (model, path, list) in lists {
        fields.put(model, &at(path), list.clone());
    }
    fields.put(
        "requirements.hardware",
        &at("requirements.hardware"),
        requirements.hardware.clone(),
    );
    let skills: Vec<Value> = requirements
        .skills
        .iter()
        .map(|reference| match reference.split_once('@') {
            Some((name, range)) => json!({"name": name, "version": range}),
            None => json!({"name": reference}),
        })
        .collect();
    fields.put("requirements.skills", &at("requirements.skills"), skills);
    fields.put("requirements.host_tools", &at("tools_required"), requirements.host_tools.clone());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permission_without_its_level_is_completed() {
        let help = |text: &str| permission_help(text, &Permission::parse(text).unwrap_err());
        assert_eq!(help("shell:bash"), "write `shell:execute:bash`");
        assert_eq!(help("env:PATH"), "write `env:read:PATH`");
        for text in ["shell", "network:example.com", "shell:bash:x", "files:read"] {
            assert_eq!(help(text), "write `domain:level` or `domain:level:scope`", "{text}");
        }
    }
}
