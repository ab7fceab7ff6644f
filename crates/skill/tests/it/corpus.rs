//! Tests real skills, including broken ones, against reviewed results.

use std::{collections::BTreeMap, fs, path::Path};

use savoir_skill::{
    Document, Safety, Source, SourceError, State,
    check::{Options, check, fix},
    name::NameGrammar,
    read,
    yaml::{Node, NodeData, YamlVersion},
};
use serde_json::Value;

use crate::shared::{in_parallel, shared};

/// Where we read something else than expected, and why that is right. `(path, fact, reason)`.
const DIFFERENCES: [(&str, &str, &str); 13] = [
    ("xldeveloper__openclaw-skills/daily-tech-broadcast/SKILL.md", "name_valid", ANY_SCRIPT),
    ("xldeveloper__openclaw-skills/minimax-audio/SKILL.md", "name_valid", ANY_SCRIPT),
    ("xldeveloper__openclaw-skills/upload-image/SKILL.md", "name_valid", ANY_SCRIPT),
    ("anthropics__claude-plugins-official/claude-md-improver/SKILL.md", "relative_links", IN_CODE),
    ("secondsky__claude-skills/technical-specification/SKILL.md", "relative_links", IN_CODE),
    ("kouko__monkey-skills/brief-before-asking/SKILL.md", "description_chars", LAST_BLOCK),
    (
        "kouko__monkey-skills/copywriting-long-form-extended/SKILL.md",
        "description_chars",
        LAST_BLOCK,
    ),
    ("kouko__monkey-skills/qa-team/SKILL.md", "description_chars", LAST_BLOCK),
    ("microsoft__apm/auth/SKILL.md", "description_chars", LAST_BLOCK),
    ("xldeveloper__openclaw-skills/alpha-market/SKILL.md", "description_chars", LAST_BLOCK),
    ("xldeveloper__openclaw-skills/pantun-indonesia/SKILL.md", "yaml12", PASTED),
    ("xldeveloper__openclaw-skills/secure-install/SKILL.md", "yaml12", PASTED),
    (
        "github__awesome-copilot/convert-plaintext-to-md/SKILL.md",
        "unclosed_code_fence",
        "fences that are indented by four blanks are text of a list item, not fences",
    ),
];

/// The base format takes letters and digits of any script.
const ANY_SCRIPT: &str = "the name is written in another script than Latin";

/// A code fence that is not closed runs to the end of the file.
const IN_CODE: &str = "a code fence opens before the link and is never closed";

/// The line feed before the closing fence belongs to the text of a block scalar.
const LAST_BLOCK: &str = "the block scalar is the last field and ends with a line feed";

/// `metadata:` and `&nbsp; language: id` would give an empty field and an anchored one beside it.
const PASTED: &str = "`&nbsp;` reads as an anchor, but was meant to indent";

struct Expected {
    path: String,
    facts: Value,
}

fn expected(folder: &Path) -> Vec<Expected> {
    let text = fs::read_to_string(folder.join("expected.jsonl")).expect("expected.jsonl");
    text.lines()
        .map(|line| {
            let facts: Value = serde_json::from_str(line).expect("a line of JSON");
            Expected { path: facts["path"].as_str().expect("path").to_owned(), facts }
        })
        .collect()
}

fn depth(node: &Node) -> usize {
    let below = match &node.data {
        NodeData::Scalar { .. } => return 0,
        NodeData::Sequence { items, .. } => items.iter().map(depth).max(),
        NodeData::Mapping { entries, .. } => entries.iter().map(|entry| depth(&entry.value)).max(),
    };
    1 + below.unwrap_or(0)
}

fn type_of(node: &Node) -> &'static str {
    match (&node.data, node.to_value(YamlVersion::V1_2)) {
        (NodeData::Sequence { .. }, _) => "list",
        (NodeData::Mapping { .. }, _) => "map",
        (_, Value::Null) => "null",
        (_, Value::Bool(_)) => "bool",
        (_, Value::Number(number)) if number.is_f64() => "float",
        (_, Value::Number(_)) => "int",
        _ => "str",
    }
}

/// A fact that we see differently.
struct Difference {
    path: String,
    fact: String,
    detail: String,
}

impl Difference {
    fn is(&self, (path, fact, _): &(&str, &str, &str)) -> bool {
        self.path == *path && self.fact == *fact
    }
}

/// Every fact that we see differently.
fn differences(folder: &Path, expected: &Expected) -> Vec<Difference> {
    let facts = &expected.facts;
    let mut differences = Vec::new();
    let mut same = |fact: &str, want: Value, got: Value| {
        if want != got {
            let detail = format!("expected {want}, got {got}");
            let (path, fact) = (expected.path.clone(), fact.to_owned());
            differences.push(Difference { path, fact, detail });
        }
    };
    let bytes = fs::read(folder.join(&expected.path)).expect("a file of the corpus");
    let source = match Source::from_bytes(bytes.clone()) {
        Ok(source) => source,
        Err(SourceError::NotUtf8 { .. }) => {
            same("encoding_utf8", facts["encoding_utf8"].clone(), false.into());
            return differences;
        }
        Err(error) => {
            same("size", "a file that is read".into(), error.to_string().into());
            return differences;
        }
    };
    same("encoding_utf8", facts["encoding_utf8"].clone(), true.into());
    same("bom", facts["bom"].clone(), source.text().starts_with('\u{feff}').into());
    let document = Document::parse(source);
    assert!(document.text().as_bytes() == bytes, "{} is not what we hold", expected.path);
    let block = document.layout().block;
    let status = match block {
        None => "none",
        Some(block) if block.close.is_some() => "ok",
        Some(_) => "unterminated",
    };
    same("fence", facts["fence"]["status"].clone(), status.into());
    if status == "ok" {
        let yaml = if document.state() == State::Clean { "ok" } else { "err" };
        let duplicate = document.problems().iter().any(|problem| problem.code == "duplicate-key");
        same("duplicate_key", facts["duplicate_key"].clone(), duplicate.into());
        let verdict = if duplicate { "err" } else { yaml };
        same("yaml12", facts["yaml12_ruamel"].clone(), verdict.into());
    }
    if facts["types"].is_object() && document.state() == State::Clean {
        let mut keys: Vec<&str> = Vec::new();
        for entry in document.entries() {
            if !keys.contains(&entry.key.as_str()) {
                keys.push(&entry.key);
            }
        }
        same("top_level_keys", facts["top_level_keys"].clone(), keys.into());
        for entry in document.entries() {
            // A date stays text for us, as the decisions have it.
            let want = match facts["types"][&entry.key].as_str() {
                Some("date") => "str",
                Some(other) => other,
                None => "missing",
            };
            same(&format!("type of {}", entry.key), want.into(), type_of(&entry.value).into());
        }
        if facts["name_type"] == "str" {
            let name = document.field("name").and_then(Node::text);
            same("name", facts["name"].clone(), name.into());
        }
        if facts["description_type"] == "str" {
            let chars =
                document.field("description").and_then(Node::text).map(|text| text.chars().count());
            same("description_chars", facts["description_chars"].clone(), chars.into());
        }
        let name = document.field("name").and_then(Node::text).unwrap_or_default();
        if facts["name_type"] == "str" {
            let valid = NameGrammar::AgentSkills.check(name).is_ok();
            same("name_valid", facts["name_valid"].clone(), valid.into());
            let folder = expected.path.rsplit('/').nth(1).unwrap_or_default();
            same("name_eq_dir", facts["name_eq_dir"].clone(), (name == folder).into());
        }
        let depth = document.field("metadata").filter(|node| node.entries().is_some()).map(depth);
        same("metadata_depth", facts["metadata_depth"].clone(), depth.into());
        // They count what follows the last line feed, too, even when it is nothing.
        let count = document.body().split('\n').count();
        same("body_lines", facts["body_lines"].clone(), count.into());
        let links = document.outline().links(document.text(), document.body_span());
        let mut links: Vec<&str> =
            links.iter().map(|link| link.target.slice(document.text())).collect();
        links.retain(|link| {
            !link.contains("://") && !link.starts_with(['#', '/', '<']) && !link.contains(':')
        });
        same("relative_links", facts["relative_links"].clone(), links.into());
        let unclosed = document.outline().fences.iter().any(|fence| !fence.closed);
        same("unclosed_code_fence", facts["unclosed_code_fence"].clone(), unclosed.into());
    }
    differences
}

#[test]
fn reviewed_files_are_read_as_expected() {
    let Some(folder) = shared("corpus") else { return };
    let expected = expected(&folder);
    assert_eq!(expected.len(), 617);
    let found: Vec<Difference> =
        in_parallel(&expected, |one| differences(&folder, one)).into_iter().flatten().collect();
    let unknown = found.iter().filter(|found| !DIFFERENCES.iter().any(|listed| found.is(listed)));
    let unknown = unknown.map(|found| format!("{} {}: {}", found.path, found.fact, found.detail));
    let stale = DIFFERENCES.iter().filter(|listed| !found.iter().any(|found| found.is(listed)));
    let stale = stale.map(|(path, fact, _)| format!("{path} {fact}: listed, but not different"));
    let problems: Vec<String> = unknown.chain(stale).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// How many files of the corpus are read in which dialect. Reviewed by eye: see `docs/concepts/dialects.md`.
const DIALECTS: [(&str, usize); 6] = [
    ("agent-flow", 1),
    ("agentskills", 468),
    ("claude-code", 78),
    ("gaia", 1),
    ("openclaw", 49),
    ("prose", 19),
];

/// Fields of which a file must have one to be read in a dialect that few files are written in. A file
/// of gibb.eri.sh may have tool sections instead.
const OWN_FIELDS: [(&str, &[&str]); 5] = [
    ("agent-flow", &["knowledge_base", "user_id", "model", "inputs"]),
    ("gaia", &["metadata", "security_tier", "permissions"]),
    ("gibberish", &["modes", "read_only", "always_ask"]),
    ("personal-agent", &["when-to-use", "allowed_tools", "context_fork"]),
    ("skillrt", &["runtime", "permissions", "dependencies", "inputs"]),
];

#[test]
fn only_files_with_evidence_of_their_own_are_of_a_rare_dialect() {
    let Some(folder) = shared("corpus") else { return };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for one in expected(&folder) {
        let bytes = fs::read(folder.join(&one.path)).expect("a file of the corpus");
        let Ok(source) = Source::from_bytes(bytes) else { continue };
        let reading = read(source, None);
        let dialect = reading.detection.dialect.id();
        *counts.entry(dialect).or_default() += 1;
        let Some((_, own)) = OWN_FIELDS.iter().find(|(id, _)| *id == dialect) else { continue };
        let has_own = own.iter().any(|key| reading.document.field(key).is_some());
        let has_tools = dialect == "gibberish" && reading.document.body().contains("#### Command");
        assert!(has_own || has_tools, "{} is read as {dialect}", one.path);
    }
    let counts: Vec<(&str, usize)> = counts.into_iter().collect();
    assert_eq!(counts, DIALECTS);
}

#[test]
fn fixing_leaves_nothing_that_is_safe_to_fix() {
    let Some(folder) = shared("corpus") else { return };
    let expected = expected(&folder);
    let left: Vec<String> = in_parallel(&expected, |one| {
        let Ok(text) = fs::read_to_string(folder.join(&one.path)) else { return Vec::new() };
        let fixed = fix(&text, None, &Options::default(), Safety::Safe);
        let again = fix(&fixed.text, None, &Options::default(), Safety::Safe);
        let mut problems: Vec<String> = fixed
            .remaining
            .iter()
            .filter(|found| found.fix.as_ref().is_some_and(|fix| fix.safety == Safety::Safe))
            .map(|found| format!("{} still has {} {:?}", one.path, found.code, found.span))
            .collect();
        if again.text != fixed.text {
            problems.push(format!("{} changes again", one.path));
        }
        let source = Source::from_bytes(fixed.text.into_bytes()).expect("still text");
        let checked = check(source, None, &Options::default());
        if checked.diagnostics != fixed.remaining {
            problems.push(format!("{} is found otherwise", one.path));
        }
        problems
    })
    .concat();
    for problem in &left {
        eprintln!("{problem}");
    }
    assert!(left.is_empty(), "{} problems", left.len());
}
