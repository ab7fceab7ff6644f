//! Proposals for values.

use lsp_types::CompletionItemKind;
use savoir_lint::Span;
use savoir_package::Agent;
use savoir_skill::{
    Dialect,
    check::{CheckedSkill, Target, all_rules},
    permission::Domain,
};

use super::{Found, Proposal};
use crate::{
    schema::{self, Step},
    state::State,
};

/// Tools of Claude Code that skills name. Other agents know most of them under these names, too.
const TOOLS: [&str; 16] = [
    "Agent", "AskUserQuestion", "Bash", "Edit", "Glob", "Grep", "LSP", "Monitor", "NotebookEdit",
    "Read", "Skill", "TaskCreate", "TodoWrite", "WebFetch", "WebSearch", "Write",
];

/// Tools of Personal Agent.
const PERSONAL_AGENT_TOOLS: [&str; 7] =
    ["edit_file", "list_dir", "read_file", "run_command", "web_fetch", "web_search", "write_file"];

/// Names of models that Claude Code accepts besides full ids.
const CLAUDE_MODELS: [&str; 4] = ["haiku", "inherit", "opus", "sonnet"];

/// Sub-agents that are part of Claude Code.
const SUB_AGENTS: [&str; 3] = ["Explore", "general-purpose", "Plan"];

/// The licenses of most public skills.
const LICENCES: [&str; 8] = [
    "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC-BY-4.0", "GPL-3.0-only", "ISC", "MIT",
    "MPL-2.0",
];

/// Proposals for the value at a path.
pub(super) fn of(state: &State, checked: &CheckedSkill, path: &[Step]) -> Vec<Proposal> {
    let dialect = checked.reading.detection.dialect;
    let choices = schema::words(&schema::at(schema::of(dialect), path));
    if !choices.is_empty() {
        return words(&choices, CompletionItemKind::EnumMember);
    }
    let mut keys = path.iter().filter_map(|step| match step {
        Step::Key(key) => Some(key.as_str()),
        Step::Item => None,
    });
    let top = keys.next().unwrap_or_default();
    match (top, keys.next_back()) {
        ("allowed-tools" | "allowed_tools", None) if dialect == Dialect::PERSONAL_AGENT => {
            words(&PERSONAL_AGENT_TOOLS, CompletionItemKind::Function)
        }
        ("allowed-tools" | "disallowed-tools", None) => words(&TOOLS, CompletionItemKind::Function),
        ("permissions", None) | ("metadata", Some("permissions")) => permissions(),
        ("model", None) if dialect == Dialect::CLAUDE_CODE => {
            let mut proposals = words(&CLAUDE_MODELS, CompletionItemKind::Value);
            proposals.extend(models(state));
            proposals
        }
        ("model", _) => models(state),
        ("agent", None) if dialect == Dialect::CLAUDE_CODE => {
            words(&SUB_AGENTS, CompletionItemKind::Class)
        }
        ("license", None) => words(&LICENCES, CompletionItemKind::Value),
        ("name", None) => folder_name(checked),
        ("dependencies", Some("skills")) | ("requirements", Some("name")) => skills(state),
        ("metadata", Some("os")) => words(&["darwin", "linux", "win32"], CompletionItemKind::Value),
        ("paths" | "resources" | "references", _) => files(checked),
        _ => Vec::new(),
    }
}

pub(super) fn words(words: &[impl AsRef<str>], kind: CompletionItemKind) -> Vec<Proposal> {
    words.iter().map(|word| Proposal::new(word.as_ref(), kind)).collect()
}

/// Every domain with each of its levels.
fn permissions() -> Vec<Proposal> {
    let levels = |domain: Domain| {
        domain.levels().iter().map(move |level| format!("{}:{}", domain.as_str(), level.as_str()))
    };
    let all = Domain::ALL.into_iter().flat_map(levels);
    all.map(|one| {
        Proposal::new(one, CompletionItemKind::Constant).detail("append :SCOPE to limit it")
    })
    .collect()
}

/// The name that the skill must have because of its folder.
fn folder_name(checked: &CheckedSkill) -> Vec<Proposal> {
    let name = checked.reading.skill.name.as_str();
    if name.is_empty() { Vec::new() } else { words(&[name], CompletionItemKind::Value) }
}

/// The files of the skill.
pub(super) fn files(checked: &CheckedSkill) -> Vec<Proposal> {
    words(&checked.reading.skill.resources, CompletionItemKind::File)
}

pub(super) fn skills(state: &State) -> Vec<Proposal> {
    words(&state.index.names(), CompletionItemKind::Module)
}

pub(super) fn models(state: &State) -> Vec<Proposal> {
    words(&state.environment.models(), CompletionItemKind::Value)
}

/// The word before an offset, made of the characters of names.
fn word_before(text: &str, offset: usize) -> Span {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    let before = text.get(..offset).unwrap_or_default();
    Span::new(before.trim_end_matches(is_part).len(), offset)
}

/// Settings of the project: rules, hosts, dialects, agents, names of skills.
pub(super) fn in_settings(state: &State, text: &str, offset: usize) -> Found {
    let typed = word_before(text, offset);
    let before = text.get(..typed.start)?;
    let line = before.rsplit('\n').next().unwrap_or_default();
    let is_header = |line: &&str| line.trim_start().starts_with('[');
    let table = before.lines().rev().skip(usize::from(!line.is_empty())).find(is_header);
    let table = table.unwrap_or_default().trim().trim_matches(['[', ']']);
    // A list may span lines, so the key is the last one before the cursor.
    let key = before.rsplit('\n').find_map(|line| line.split_once('=')).map(|(key, _)| key.trim());
    let in_string = line.matches('"').count() % 2 == 1;
    let proposals = match (table, key) {
        ("", _) if line.trim() == "[" => words(
            &["agents", "check", "policy", "registries", "skills"],
            CompletionItemKind::Module,
        ),
        ("check", Some("select" | "ignore")) if in_string => {
            let kind = CompletionItemKind::EnumMember;
            let rules = all_rules().iter();
            rules.map(|rule| Proposal::new(rule.code, kind).detail(rule.summary())).collect()
        }
        ("check", Some("target")) if in_string => {
            words(&Target::ALL.map(Target::id), CompletionItemKind::EnumMember)
        }
        ("check", Some("dialect")) if in_string => {
            words(&Dialect::ALL.map(Dialect::id), CompletionItemKind::EnumMember)
        }
        ("check", _) if line.trim().is_empty() => {
            let keys = ["dialect", "ignore", "select", "strict", "target"];
            words(&keys, CompletionItemKind::Field)
        }
        ("agents", _) if in_string => Agent::ALL
            .iter()
            .map(|agent| {
                Proposal::new(agent.id, CompletionItemKind::EnumMember).detail(agent.title)
            })
            .collect(),
        ("skills", _) if line.trim().is_empty() => skills(state),
        _ => return None,
    };
    Some((typed, proposals))
}

/// Names of skills in nodes of a workflow.
pub(super) fn in_workflow(state: &State, text: &str, offset: usize) -> Found {
    let typed = word_before(text, offset);
    let before = text.get(..typed.start)?.strip_suffix('"')?;
    let key = before.trim_end().strip_suffix(':')?.trim_end();
    key.ends_with("\"skillName\"").then(|| (typed, skills(state)))
}
