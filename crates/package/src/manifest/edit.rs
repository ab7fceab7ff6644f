//! Edits `savoir.toml` and keeps comments and formatting.

use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::{Manifest, Revision, SkillRequirement, check_name};
use crate::text_file::{ContentError, Text};

/// Adds or replaces a skill.
pub fn add_skill(
    file: &str,
    text: &str,
    name: &str,
    requirement: &SkillRequirement,
) -> Result<String, ContentError> {
    add_skills(file, text, [(name, requirement)])
}

/// Like [`add_skill`], for several skills.
pub fn add_skills<'a>(
    file: &str,
    text: &str,
    new: impl IntoIterator<Item = (&'a str, &'a SkillRequirement)>,
) -> Result<String, ContentError> {
    let mut document = read(file, text)?;
    let is_new = !document.contains_key("skills");
    let skills = document.entry("skills").or_insert_with(|| new_table(text));
    if let Some(skills) = skills.as_inline_table_mut() {
        remove_padding(skills);
    }
    let Some(skills) = skills.as_table_like_mut() else {
        return Err(Text { file, text }.content_error(0, "`skills` must be a table of skills"));
    };
    let was_sorted = !is_new && is_sorted(skills);
    for (name, requirement) in new {
        check_name(name).map_err(|why| Text { file, text }.content_error(0, why))?;
        insert_skill(skills, name, requirement_value(requirement));
    }
    if was_sorted {
        skills.sort_values();
    }
    check_and_write(file, text, &document)
}

/// Removes a skill; returns `None` if it is not in the text.
pub fn remove_skill(file: &str, text: &str, name: &str) -> Result<Option<String>, ContentError> {
    let mut document = read(file, text)?;
    let skills = document.get_mut("skills").and_then(Item::as_table_like_mut);
    if skills.and_then(|skills| skills.remove(name)).is_none() {
        return Ok(None);
    }
    check_and_write(file, text, &document).map(Some)
}

/// Adds the list of agents, unless there is one.
pub fn set_agents(file: &str, text: &str, ids: &[String]) -> Result<String, ContentError> {
    let mut document = read(file, text)?;
    if text.starts_with("[skills]") && !document.contains_key("agents") {
        // Insert the list before `[skills]`, because users add skills at the end of the file.
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let list = Value::Array(ids.iter().collect());
        let text = format!("[agents]{line_end}use = {list}{line_end}{line_end}{text}");
        Manifest::parse(file, &text)?;
        return Ok(text);
    }
    let agents = document.entry("agents").or_insert_with(|| new_table(text));
    let Some(agents) = agents.as_table_like_mut() else {
        return Err(Text { file, text }.content_error(0, "`agents` must be a table"));
    };
    if agents.contains_key("use") {
        return Ok(text.to_owned());
    }
    agents.insert("use", Item::Value(Value::Array(ids.iter().collect())));
    check_and_write(file, text, &document)
}

/// Parses the text and checks that it is valid, so that an edit is never blamed for an existing
/// error.
fn read(file: &str, text: &str) -> Result<DocumentMut, ContentError> {
    Manifest::parse(file, text)?;
    text.parse().map_err(|error: toml_edit::TomlError| {
        let at = error.span().map_or(0, |span| span.start);
        Text { file, text }.content_error(at, error.message().to_owned())
    })
}

fn new_table(text: &str) -> Item {
    let mut table = Table::new();
    if !text.trim().is_empty() {
        table.decor_mut().set_prefix("\n");
    }
    Item::Table(table)
}

/// Removes the space before the closing bracket, which would end up before a comma.
fn remove_padding(table: &mut InlineTable) {
    let Some((_, last)) = table.iter_mut().last() else { return };
    let suffix = last.decor().suffix().and_then(|suffix| suffix.as_str());
    if suffix.is_some_and(|suffix| suffix.trim().is_empty()) {
        last.decor_mut().set_suffix("");
    }
}

fn is_sorted(skills: &dyn TableLike) -> bool {
    skills.iter().map(|(name, _)| name).is_sorted()
}

/// Sets a value, and keeps the comment after the old one.
fn insert_skill(skills: &mut dyn TableLike, name: &str, mut value: Value) {
    match skills.get_mut(name).and_then(Item::as_value_mut) {
        Some(old) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        None => {
            skills.insert(name, Item::Value(value));
        }
    }
}

fn requirement_value(requirement: &SkillRequirement) -> Value {
    let mut members: Vec<(&str, &str)> = Vec::new();
    let range;
    match requirement {
        SkillRequirement::Version { range, registry: None, namespace: None } => {
            return range.to_string().into();
        }
        SkillRequirement::Version { range: versions, registry, namespace } => {
            range = versions.to_string();
            members.push(("version", range.as_str()));
            members.extend(registry.as_deref().map(|registry| ("registry", registry)));
            members.extend(namespace.as_deref().map(|namespace| ("namespace", namespace)));
        }
        SkillRequirement::Path(path) => members.push(("path", path)),
        SkillRequirement::Git { url, at, path } => {
            members.push(("git", url));
            match at {
                Revision::Default => {}
                Revision::Rev(rev) => members.push(("rev", rev)),
                Revision::Tag(tag) => members.push(("tag", tag)),
                Revision::Branch(branch) => members.push(("branch", branch)),
            }
            members.extend(path.as_deref().map(|path| ("path", path)));
        }
        SkillRequirement::Url { url, integrity } => {
            members.push(("url", url));
            members.extend(integrity.as_deref().map(|integrity| ("integrity", integrity)));
        }
    }
    Value::InlineTable(members.into_iter().collect::<InlineTable>())
}

/// Returns the new text with the line endings of the old one, after checking that it can be parsed.
fn check_and_write(file: &str, old: &str, document: &DocumentMut) -> Result<String, ContentError> {
    let mut text = document.to_string();
    if old.contains("\r\n") {
        text = text.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    if let Some(mark) = old.strip_prefix('\u{feff}').and(Some('\u{feff}'))
        && !text.starts_with(mark)
    {
        text.insert(0, mark);
    }
    Manifest::parse(file, &text)?;
    Ok(text)
}
