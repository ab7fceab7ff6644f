//! What a skill brings and uses beside its permissions, in words that a lock can hold it to.

use savoir_skill::{
    Dialect, Document, Reading, Source, digest::sha256_hex, read_as, yaml::YamlVersion,
};
use serde_json::Value;

use super::SIDE_FILE;
use crate::Tree;

/// Fields by which a host does something by itself. Another value is something else.
const FIELDS_WITH_EFFECT: [&str; 8] = [
    "hooks", "mcpServers", "mcp_servers", "mcp-servers", "command-dispatch", "command-tool",
    "shell", "agent",
];

/// The same in the part of a vendor.
const METADATA_WITH_EFFECT: [&str; 6] = [
    "metadata.openclaw.install", "metadata.clawdbot.install", "metadata.clawdis.install",
    "metadata.openclaw.mcp", "metadata.hermes.install", "metadata.gaia.hooks",
];

/// Fields of Codex's side file that give an agent more than words.
const SIDE_FILE_FIELDS_WITH_EFFECT: [&str; 1] = ["dependencies"];

/// What it brings and uses, by what it says in its own dialect and by what other hosts obey: it may
/// be given to any of them.
pub(super) fn declared_tools(reading: &Reading, tree: &Tree) -> Vec<String> {
    let mut wishes = tools(reading);
    wishes.extend(requirements(reading));
    let document = &reading.document;
    wishes.extend(obeyed(document, FIELDS_WITH_EFFECT.iter().chain(&METADATA_WITH_EFFECT)));
    if let Some(beside) = tree.get(SIDE_FILE).and_then(|file| as_document(&file.bytes)) {
        wishes.extend(obeyed(&beside, SIDE_FILE_FIELDS_WITH_EFFECT.iter()));
    }
    wishes.sort_unstable();
    wishes.dedup();
    wishes
}

fn tools(reading: &Reading) -> Vec<String> {
    let skill = &reading.skill;
    let own = skill.tools.iter().map(|tool| tool.name.clone());
    let granted = skill.policy.allowed_tools.iter().flatten().map(ToString::to_string);
    let mut tools: Vec<String> =
        own.chain(skill.requirements.host_tools.iter().cloned()).chain(granted).collect();
    let document = &reading.document;
    if skill.policy.allowed_tools.is_none() && document.field("allowed-tools").is_some() {
        let source = document.source().clone();
        let policy = read_as(source, Dialect::CLAUDE_CODE, None).skill.policy;
        tools.extend(policy.allowed_tools.iter().flatten().map(ToString::to_string));
    }
    tools
}

/// Variables are granted with being required, and programs are run.
fn requirements(reading: &Reading) -> Vec<String> {
    let needs = &reading.skill.requirements;
    let named = |kind: &str, names: &[String]| -> Vec<String> {
        names.iter().map(|name| format!("{kind}:{name}")).collect()
    };
    [
        named("env", &needs.env_vars),
        named("program", &needs.programs),
        named("program", &needs.any_programs),
        named("mcp", &needs.mcp_servers),
    ]
    .concat()
}

/// Each field that is there, with a mark of what it says. Aliases count as what they stand for.
fn obeyed<'a>(
    document: &Document,
    paths: impl Iterator<Item = &'a &'a str>,
) -> impl Iterator<Item = String> {
    let fields = document.fields();
    paths.filter_map(move |path| {
        let value = fields?.path(path)?.to_value(YamlVersion::V1_2);
        let is_nothing = matches!(&value, Value::Null | Value::Bool(false));
        (!is_nothing).then(|| {
            let mark = &sha256_hex(value.to_string().as_bytes())[..12];
            format!("{}:{mark}", path.trim_start_matches("metadata."))
        })
    })
}

/// The fields of SKILL.md that hosts obey, with what they say.
pub(super) fn obeyed_fields(document: &Document) -> Vec<(String, String)> {
    let Some(fields) = document.fields() else { return Vec::new() };
    let paths = FIELDS_WITH_EFFECT.iter().chain(&METADATA_WITH_EFFECT);
    let found = paths.filter_map(|path| {
        let value = fields.path(path)?.to_value(YamlVersion::V1_2);
        Some((path.trim_start_matches("metadata.").to_owned(), value.to_string()))
    });
    found.collect()
}

/// A file of YAML, read as frontmatter is.
fn as_document(bytes: &[u8]) -> Option<Document> {
    let text = str::from_utf8(bytes).ok()?;
    let source = Source::from_bytes(format!("---\n{text}\n---\n").into_bytes()).ok()?;
    Some(Document::parse(source))
}
