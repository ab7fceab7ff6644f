//! Lists what a skill provides and uses besides its permissions, so that a lock can detect
//! additions.

use savoir_skill::{
    Dialect, Document, Reading, Source, digest::sha256_hex, read_as, yaml::YamlVersion,
};
use serde_json::Value;

use super::SIDE_FILE;
use crate::Tree;

/// Fields on which hosts act automatically. A changed value counts as a new capability.
const FIELDS_WITH_EFFECT: [&str; 8] = [
    "hooks", "mcpServers", "mcp_servers", "mcp-servers", "command-dispatch", "command-tool",
    "shell", "agent",
];

/// Such fields in the metadata of vendors.
const METADATA_WITH_EFFECT: [&str; 6] = [
    "metadata.openclaw.install", "metadata.clawdbot.install", "metadata.clawdis.install",
    "metadata.openclaw.mcp", "metadata.hermes.install", "metadata.gaia.hooks",
];

/// Such fields in the side file of Codex.
const SIDE_FILE_FIELDS_WITH_EFFECT: [&str; 1] = ["dependencies"];

/// Returns what the skill provides and uses by its own dialect, and by fields that other hosts act
/// on, because it may be installed for any of them.
pub(super) fn declared_tools(reading: &Reading, tree: &Tree) -> Vec<String> {
    let mut declared = tools(reading);
    declared.extend(requirements(reading));
    let document = &reading.document;
    declared.extend(fields_with_effect(
        document,
        FIELDS_WITH_EFFECT.iter().chain(&METADATA_WITH_EFFECT),
    ));
    if let Some(beside) = tree.get(SIDE_FILE).and_then(|file| as_document(&file.bytes)) {
        declared.extend(fields_with_effect(&beside, SIDE_FILE_FIELDS_WITH_EFFECT.iter()));
    }
    declared.sort_unstable();
    declared.dedup();
    declared
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

/// Returns required environment variables and programs: a skill that requires them is allowed to
/// use them.
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

/// Returns the fields that exist, each with a digest of its value. Aliases are resolved.
fn fields_with_effect<'a>(
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

/// Returns the fields of SKILL.md on which hosts act automatically, with their values.
pub(super) fn obeyed_fields(document: &Document) -> Vec<(String, String)> {
    let Some(fields) = document.fields() else { return Vec::new() };
    let paths = FIELDS_WITH_EFFECT.iter().chain(&METADATA_WITH_EFFECT);
    let found = paths.filter_map(|path| {
        let value = fields.path(path)?.to_value(YamlVersion::V1_2);
        Some((path.trim_start_matches("metadata.").to_owned(), value.to_string()))
    });
    found.collect()
}

/// Parses a YAML file like frontmatter.
fn as_document(bytes: &[u8]) -> Option<Document> {
    let text = str::from_utf8(bytes).ok()?;
    let source = Source::from_bytes(format!("---\n{text}\n---\n").into_bytes()).ok()?;
    Some(Document::parse(source))
}
