//! Explains the element under the pointer.

use std::fmt::Write as _;

use lsp_types::{Contents, Hover, MarkupContent, MarkupKind, Position};
use savoir_lint::{Span, harmless, visible, words};
use savoir_package::Agent;
use savoir_skill::{
    allowed_tools, check::CheckedSkill, permission::Permission, tokens::estimate_tokens,
};

use crate::{
    lookup::{self, LinkTarget, touches},
    mentions,
    open_file::OpenFile,
    schema::{self, FieldDocs, Step},
    state::{State, read_text},
};

/// Maximum size of a file whose tokens are counted for a hover.
const MAX_COUNTED_BYTES: u64 = 1024 * 1024;

/// Maximum number of agents of one dialect that are named; there may be dozens.
const MAX_NAMED_AGENTS: usize = 4;

pub(crate) fn at(state: &State, file: &OpenFile, position: Position) -> Option<Hover> {
    let checked = state.checked(file)?;
    let offset = file.offset(position);
    let (span, text) = field(&checked, offset)
        .or_else(|| tool(&checked, offset))
        .or_else(|| permission(&checked, offset))
        .or_else(|| placeholder(&checked, offset))
        .or_else(|| link(file, &checked, offset))
        .or_else(|| skill(state, file, offset))?;
    let contents =
        MarkupContent { kind: MarkupKind::Markdown, value: harmless(&text).into_owned() };
    Some(Hover { contents: Contents::MarkupContent(contents), range: Some(file.range(span)) })
}

/// Which agents read a field, and what it means to them.
fn field(checked: &CheckedSkill, offset: usize) -> Option<(Span, String)> {
    let (path, entry) = lookup::key_at(&checked.reading.document, offset)?;
    let dialect = checked.reading.detection.dialect;
    let owners = schema::owners(&path);
    let mut text = format!("**{}**", visible(&entry.key));
    if owners.is_empty() {
        let is_free = matches!(path.first(), Some(Step::Key(key)) if key == "metadata");
        text += if is_free {
            "\n\nAgents keep what is below `metadata`; each reads only the entries that it knows."
        } else {
            "\n\nNo system that Savoir knows reads this field. Agents ignore it."
        };
        return Some((entry.key_span, text));
    }
    let own = owners.iter().find(|docs| docs.dialect == dialect);
    // Writing to a string cannot fail.
    if let Some(docs) = own {
        let _ = write!(text, "\n\n{}", meaning(*docs));
    }
    for docs in owners.iter().filter(|docs| docs.dialect != dialect) {
        let _ = write!(text, "\n\n*{}*: {}", docs.dialect.title(), meaning(*docs));
    }
    let _ = write!(text, "\n\nRead by {}.", words::and(&readers(&owners)));
    if own.is_none() {
        let _ = write!(text, " {} does not define it.", dialect.title());
    }
    Some((entry.key_span, text))
}

fn meaning(docs: FieldDocs<'_>) -> String {
    let choices = schema::words(&schema::at(docs.schema, &[]));
    let choices: Vec<String> = choices.iter().map(|word| format!("`{word}`")).collect();
    let choices = if choices.is_empty() {
        String::new()
    } else {
        format!(" One of {}.", words::or(&choices))
    };
    let required = if docs.is_required { " Required." } else { "" };
    format!("{}{choices}{required}", docs.description())
}

/// The systems, each with other agents that read the same dialect.
fn readers(owners: &[FieldDocs<'_>]) -> Vec<String> {
    let reader = |docs: &FieldDocs<'_>| {
        let dialect = docs.dialect;
        let agents = Agent::ALL.iter().filter(|agent| agent.dialect == dialect);
        let others: Vec<&str> =
            agents.map(|agent| agent.title).filter(|title| *title != dialect.title()).collect();
        let more = others.len().saturating_sub(MAX_NAMED_AGENTS);
        let named = others[..others.len() - more].join(", ");
        match (named.as_str(), more) {
            ("", _) => dialect.title().to_owned(),
            (named, 0) => format!("{} ({named})", dialect.title()),
            (named, more) => format!("{} ({named} and {more} more)", dialect.title()),
        }
    };
    owners.iter().map(reader).collect()
}

/// Fields that list tools of the host.
const TOOL_FIELDS: [&str; 2] = ["allowed-tools", "disallowed-tools"];

fn tool(checked: &CheckedSkill, offset: usize) -> Option<(Span, String)> {
    let document = &checked.reading.document;
    let mut values = TOOL_FIELDS.iter().filter_map(|field| {
        let node = document.field(field)?;
        let items = node.items().map_or_else(|| vec![node], |items| items.iter().collect());
        items.into_iter().find(|item| touches(item.span, offset))
    });
    let span = values.next()?.span;
    let written = span.slice(document.text());
    let grants = allowed_tools::split(written);
    let grant = grants.iter().find(|grant| {
        touches(Span::new(grant.range.start, grant.range.end).shifted(span.start), offset)
    })?;
    let span = Span::new(grant.range.start, grant.range.end).shifted(span.start);
    let name = visible(grant.name.trim_matches(['"', '\''])).into_owned();
    let condition = match grant.arguments.as_deref() {
        Some(arguments) => format!(", only as far as `{}` allows", visible(arguments)),
        None => String::new(),
    };
    let known = if grant.is_known() {
        format!("\n\nThe same tool has other names elsewhere, such as `{}`.", grant.normalized())
    } else {
        String::new()
    };
    Some((span, format!("The tool `{name}`{condition}.{known}")))
}

fn permission(checked: &CheckedSkill, offset: usize) -> Option<(Span, String)> {
    let document = &checked.reading.document;
    let items = document.field("permissions")?.items()?;
    let item = items.iter().find(|item| touches(item.span, offset))?;
    let parsed = match Permission::parse(item.text()?) {
        Ok(permission) => permission,
        Err(error) => return Some((item.span, visible(&error.to_string()).into_owned())),
    };
    let (domain, level) = (parsed.domain.as_str(), parsed.level.as_str());
    let scope = match &parsed.scope {
        Some(scope) => format!("`{}`", visible(scope)),
        None => "everything in this domain".to_owned(),
    };
    Some((
        item.span,
        format!("**{domain}:{level}**\n\nDomain `{domain}`, level `{level}`, for {scope}."),
    ))
}

fn placeholder(checked: &CheckedSkill, offset: usize) -> Option<(Span, String)> {
    let reading = &checked.reading;
    let uses = lookup::placeholders(&reading.document, reading.detection.dialect);
    let found = uses.into_iter().find(|found| touches(found.span, offset))?;
    let Some(input) = reading.skill.inputs.iter().find(|input| input.name == found.name) else {
        return Some((found.span, format!("No input is named `{}`.", visible(&found.name))));
    };
    let required = if input.required { "required" } else { "optional" };
    let mut text =
        format!("**{}** · {} input, {required}", visible(&input.name), input.kind.as_str());
    if let Some(description) = &input.description {
        let _ = write!(text, "\n\n{}", visible(description));
    }
    if let Some(default) = &input.default {
        let _ = write!(text, "\n\nDefault: `{}`", visible(&default.to_string()));
    }
    Some((found.span, text))
}

fn link(file: &OpenFile, checked: &CheckedSkill, offset: usize) -> Option<(Span, String)> {
    let links = lookup::links(&checked.reading.document, file.folder().as_deref());
    let link = links.into_iter().find(|link| touches(link.span, offset))?;
    let LinkTarget::File(path) = link.target else { return None };
    let text = match read_text(&path, MAX_COUNTED_BYTES) {
        Some(text) => format!(
            "{} bytes, about {} tokens when an agent reads it",
            text.len(),
            estimate_tokens(&text)
        ),
        None if path.exists() => "a folder, or a file that is not text".to_owned(),
        None => "the file does not exist".to_owned(),
    };
    Some((link.span, text))
}

fn skill(state: &State, file: &OpenFile, offset: usize) -> Option<(Span, String)> {
    let mention = mentions::at(state, file, offset)?;
    let found = state.index.named(&mention.name).into_iter().next()?;
    let text = state.text_of(&found.path, MAX_COUNTED_BYTES)?;
    let tokens = estimate_tokens(&text);
    let reading = savoir_skill::read(savoir_skill::Source::new(text), None);
    let description = visible(&reading.skill.description).into_owned();
    Some((
        mention.span,
        format!("**{}** · skill, about {tokens} tokens\n\n{description}", visible(&mention.name)),
    ))
}
