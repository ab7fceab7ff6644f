//! Prepares skill texts for import and export, changing only what other systems would not read.

use savoir_lint::{Edit, words::one_line};
use serde_json::{Map, Value};

use crate::{
    Dialect, Source, allowed_tools,
    dialect::{agent_flow::without_owner, prose::first_paragraph},
    document::{Document, State, has_safe_fix},
    edit,
    limits::MAX_DESCRIPTION_CHARS,
    name,
    reading::read_as,
    skill::Mode,
    yaml::{
        Entry, YamlVersion,
        write::{write_entry, write_scalar},
    },
};

/// The order of fields in a rewritten file.
const ORDER: [&str; 8] = [
    "name", "description", "when_to_use", "license", "compatibility", "allowed-tools", "context",
    "metadata",
];

const YAML: YamlVersion = YamlVersion::V1_1;

/// Problems of the fences that [`repair_fences`] repairs.
const FENCE_PROBLEMS: [&str; 3] = ["code-fenced", "missing-fence", "unclosed-frontmatter"];
const MAX_FENCE_REPAIRS: usize = 3;

fn parse(text: &str) -> Document {
    Document::parse_with(Source::new(text.to_owned()), Dialect::PERSONAL_AGENT.fences())
}

/// The handle of a skill that comes from elsewhere: as it calls itself, else after its folder or its
/// file, else after its first heading.
pub fn derive_handle(text: &str, folder: Option<&str>, stem: Option<&str>) -> Option<String> {
    let document = parse(text);
    let own = document.field("name").and_then(|node| node.text()).and_then(name::slugify);
    let heading = || {
        let first = document.outline().headings.iter().find(|heading| heading.level == 1)?;
        name::slugify(first.title.slice(document.text()))
    };
    own.or_else(|| folder.and_then(name::slugify))
        .or_else(|| stem.and_then(name::slugify))
        .or_else(heading)
}

/// Returns the text of a skill for storing: with frontmatter whose name is the handle.
/// Nothing else is changed.
///
/// ```
/// use savoir_skill::dialect::personal_agent::prepare_import;
///
/// assert_eq!(prepare_import("---\nname: My Skill # mine\nx: 1\n---\n", "my-skill"), "---\nname: my-skill # mine\nx: 1\n---\n");
/// assert_eq!(prepare_import("# Tea\n\nBoil water.\n", "tea"), "---\nname: tea\ndescription: Boil water.\n---\n\n# Tea\n\nBoil water.\n");
/// ```
pub fn prepare_import(text: &str, name: &str) -> String {
    let text = without_owner(text);
    let reading = read_as(Source::new(text.clone()), Dialect::PERSONAL_AGENT, None);
    if reading.skill.mode == Mode::Prose {
        let description: String =
            reading.skill.description.chars().take(MAX_DESCRIPTION_CHARS).collect();
        let description = one_line(&description);
        let description = if description.is_empty() { name } else { &description };
        let body = text.trim_start_matches('\u{feff}');
        let (name, description) = (write_scalar(name, YAML), write_scalar(description, YAML));
        return format!("---\nname: {name}\ndescription: {description}\n---\n\n{body}");
    }
    // Broken files are not repaired: the result would differ from what the author sees.
    match reading.document.field("name").filter(|_| reading.document.is_readable()) {
        Some(node) if node.string(YAML) != Some(name) => {
            edit::apply(&text, &[Edit::replace(node.span, write_scalar(name, YAML))])
        }
        _ => text,
    }
}

/// Adds missing fences and removes a code block around the whole file, if its frontmatter is
/// recognizable. Returns the text with what was repaired.
///
/// ```
/// use savoir_skill::dialect::personal_agent::repair_fences;
///
/// let (text, repairs) = repair_fences("---\nname: tea\ndescription: d\n\n# Tea\n").unwrap();
/// assert_eq!(text, "---\nname: tea\ndescription: d\n---\n\n# Tea\n");
/// assert_eq!(repairs, ["Missing closing '---': the frontmatter is never closed"]);
/// assert_eq!(repair_fences("# Tea\n"), None);
/// ```
pub fn repair_fences(text: &str) -> Option<(String, Vec<String>)> {
    let mut repaired = text.to_owned();
    let mut repairs = Vec::new();
    // A code block can contain a frontmatter that is never closed.
    while repairs.len() < MAX_FENCE_REPAIRS {
        let document = Document::parse(Source::new(repaired.clone()));
        let found = document.problems().iter().find_map(|problem| {
            let is_repairable = FENCE_PROBLEMS.contains(&problem.code) && has_safe_fix(problem);
            Some((problem, problem.fix.as_ref().filter(|_| is_repairable)?))
        });
        let Some((problem, fix)) = found else { break };
        repaired = edit::apply(&repaired, &fix.edits);
        repairs.push(problem.message.clone());
    }
    (!repairs.is_empty()).then_some((repaired, repairs))
}

/// Adds the first paragraph of the body as `description` to a file that has none; `None` if there is
/// no such paragraph.
///
/// ```
/// use savoir_skill::dialect::personal_agent::add_description;
///
/// let text = "---\nname: tea\n---\n# Tea\n\nBoil water.\n";
/// let repaired = "---\nname: tea\ndescription: Boil water.\n---\n# Tea\n\nBoil water.\n";
/// assert_eq!(add_description(text).as_deref(), Some(repaired));
/// assert_eq!(add_description("---\nname: tea\n---\n"), None);
/// ```
pub fn add_description(text: &str) -> Option<String> {
    let document = parse(text);
    let block = document.layout().closed_block()?;
    let description = shorten_description(&first_paragraph(document.body())?);
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let line = format!("description: {}{line_end}", write_scalar(&description, YAML));
    let edit = match document.entry_lines("description") {
        Some(empty) => Edit::replace(empty, line),
        None => Edit::insert(block.yaml.end, line),
    };
    let repaired = edit::apply(text, &[edit]);
    let read = parse(&repaired);
    let is_added = read.field("description").and_then(|node| node.text()) == Some(&description);
    (is_added && read.is_readable()).then_some(repaired)
}

/// Whether a file says what its skill does.
pub fn has_description(text: &str) -> bool {
    let document = parse(text);
    let description = document.field("description").and_then(|node| node.text());
    description.is_some_and(|description| !description.trim().is_empty())
}

/// A description on one line, cut to the maximum length.
fn shorten_description(description: &str) -> String {
    let line = one_line(description);
    let cut: String = line.chars().take(MAX_DESCRIPTION_CHARS).collect();
    cut.trim_end().to_owned()
}

/// The text of a skill for others: without its owner, with valid YAML, with the fields of the portable
/// format as that writes them. What needs no change stays byte for byte, and no field is lost.
///
/// ```
/// use savoir_skill::dialect::personal_agent::prepare_export;
///
/// let kept = "---\nname: a\ndescription: d\nallowed_tools: [Read, 'Bash(git:*)']\ncontext_fork: true\nx: 1\nuser_id: '7'\n---\nHi\n";
/// assert_eq!(
///     prepare_export(kept, "a"),
///     "---\nname: a\ndescription: d\nallowed-tools: Read Bash(git:*)\ncontext: fork\nx: 1\n---\nHi\n"
/// );
/// ```
pub fn prepare_export(text: &str, name: &str) -> String {
    let text = repair_values(prepare_import(text, name));
    let document = parse(&text);
    let Some(block) = document.layout().closed_block().filter(|_| document.state() == State::Clean)
    else {
        return text;
    };
    let Some(fields) = PortableFields::read(&document, name) else { return text };
    if !fields.changed {
        return text;
    }
    let first = document.entries().first().and_then(|entry| document.entry_lines(&entry.key));
    let head = &text[block.yaml.start..first.map_or(block.yaml.start, |lines| lines.start)];
    let whole = |lines: Vec<String>| {
        let (before, after) = (&text[..block.yaml.start], &text[block.yaml.end..]);
        format!("{before}{head}{}{after}", lines.concat())
    };
    let rank = |key: &str| ORDER.iter().position(|known| *known == key).unwrap_or(ORDER.len());
    let mut ordered = fields.lines.clone();
    ordered.sort_by_key(|(key, _)| rank(key));
    let lines = |fields: Vec<(String, String)>| fields.into_iter().map(|(_, line)| line).collect();
    // An anchor must precede its aliases.
    let tries = [whole(lines(ordered)), whole(lines(fields.lines.clone()))];
    let kept = |written: &String| fields.are_equal_in(&parse(written));
    tries.into_iter().find(kept).unwrap_or(text)
}

/// Repairs the YAML of a file if its errors have only one meaning.
fn repair_values(text: String) -> String {
    let document = parse(&text);
    if document.state() != State::Repaired {
        return text;
    }
    let fixes = document.problems().iter().filter(|problem| has_safe_fix(problem));
    let fixes = fixes.filter_map(|problem| problem.fix.as_ref());
    let edits: Vec<Edit> = fixes.flat_map(|fix| fix.edits.clone()).collect();
    let repaired = edit::apply(&text, &edits);
    if parse(&repaired).state() == State::Clean { repaired } else { text }
}

/// The fields of a file as the portable format writes them.
struct PortableFields {
    /// Keys, each with its lines.
    lines: Vec<(String, String)>,
    /// What must be read again.
    values: Vec<(String, Value)>,
    changed: bool,
}

impl PortableFields {
    /// Returns `None` if several fields share a line.
    fn read(document: &Document, name: &str) -> Option<Self> {
        let text = document.text();
        let mut fields = Self { lines: Vec::new(), values: Vec::new(), changed: false };
        for entry in document.entries() {
            if !text[..entry.key_span.start].ends_with('\n') {
                return None;
            }
            fields.add(document, entry)?;
        }
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        for key in ["description", "name"] {
            if document.field(key).is_none() {
                let line = format!("{key}: {}{line_end}", write_scalar(name, YAML));
                fields.lines.insert(0, (key.to_owned(), line));
                fields.changed = true;
            }
        }
        Some(fields)
    }

    fn add(&mut self, document: &Document, entry: &Entry) -> Option<()> {
        let text = document.text();
        let lines = document.entry_lines(&entry.key)?;
        let has = |key: &str| document.field(key).is_some();
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let before = &text[lines.start..entry.key_span.start];
        let (key, value, line) = match entry.key.as_str() {
            "allowed_tools" if has("allowed-tools") => return self.drop_entry(),
            "when-to-use" if has("when_to_use") => return self.drop_entry(),
            "context_fork" if has("context") || entry.value.boolean(YAML) != Some(true) => {
                return self.drop_entry();
            }
            "context_fork" => {
                ("context", Value::from("fork"), format!("{before}context: fork{line_end}"))
            }
            "allowed-tools" | "allowed_tools" => {
                let tools = tools(entry)?;
                let is_clean = entry.key == "allowed-tools" && entry.value.text() == Some(&tools);
                if is_clean {
                    return self.keep(document, entry);
                }
                let line =
                    format!("{before}allowed-tools: {}{line_end}", write_scalar(&tools, YAML));
                ("allowed-tools", Value::from(tools), line)
            }
            "description" if is_too_long(entry) => {
                let description = shorten_description(entry.value.text().unwrap_or_default());
                let line =
                    format!("{before}description: {}{line_end}", write_scalar(&description, YAML));
                ("description", Value::from(description), line)
            }
            // Readers of the portable format reject a file whose `metadata` is not a map.
            "metadata" if !is_map_or_empty(entry) => {
                let inner = Map::from_iter([("metadata".to_owned(), entry.value.to_value(YAML))]);
                let value = Value::Object(inner);
                let lines = write_entry("metadata", &value, 0).replace('\n', line_end);
                ("metadata", value, format!("{before}{lines}"))
            }
            "when-to-use" => {
                let rest = &text[entry.key_span.end..lines.end];
                let value = entry.value.to_value(YAML);
                ("when_to_use", value, format!("{before}when_to_use{rest}"))
            }
            _ => return self.keep(document, entry),
        };
        self.lines.push((key.to_owned(), line));
        self.values.push((key.to_owned(), value));
        self.changed = true;
        Some(())
    }

    fn keep(&mut self, document: &Document, entry: &Entry) -> Option<()> {
        let lines = document.entry_lines(&entry.key)?.slice(document.text());
        self.lines.push((entry.key.clone(), lines.to_owned()));
        self.values.push((entry.key.clone(), entry.value.to_value(YAML)));
        Some(())
    }

    /// Drops an entry that is empty or repeats another field.
    #[expect(clippy::unnecessary_wraps, reason = "it is where a field is added")]
    fn drop_entry(&mut self) -> Option<()> {
        self.changed = true;
        Some(())
    }

    /// Whether a file contains the same values as these fields.
    fn are_equal_in(&self, document: &Document) -> bool {
        document.state() == State::Clean
            && document.entries().len() == self.lines.len()
            && self.values.iter().all(|(key, value)| {
                document.field(key).is_some_and(|node| node.to_value(YAML) == *value)
            })
    }
}

fn is_map_or_empty(metadata: &Entry) -> bool {
    metadata.value.entries().is_some() || metadata.value.is_null(YAML)
}

fn is_too_long(description: &Entry) -> bool {
    description.value.text().is_some_and(|text| text.chars().count() > MAX_DESCRIPTION_CHARS)
}

/// The tools that are allowed, with blanks between them, as their author wrote each.
fn tools(entry: &Entry) -> Option<String> {
    let items = entry.value.items().unwrap_or(std::slice::from_ref(&entry.value));
    let texts: Option<Vec<&str>> = items.iter().map(|item| item.text()).collect();
    let grants: Vec<_> = texts?.into_iter().flat_map(allowed_tools::split).collect();
    Some(allowed_tools::join(&grants))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_files_are_unchanged() {
        for text in [
            "---\nname: a\ndescription: d\n---\nHi\n",
            "---\r\ndescription: d # why\r\nname: 'a'\r\nallowed-tools: Read Bash(git add:*)\r\n---\r\nHi",
            "---\nname: a\n# comment\ndescription: |\n  d\nmetadata: {author: x, v: [1, 2]}\nlicense: MIT\n# end\n---\n",
        ] {
            assert_eq!(prepare_export(text, "a"), text);
            let owned = crate::dialect::agent_flow::with_owner(text, "7").unwrap();
            assert_ne!(owned, text);
            assert_eq!(prepare_export(&owned, "a"), text);
        }
    }

    #[test]
    fn rewritten_files_keep_all_values() {
        let text = "---\n# head\n\nzeta: [1, {a: b}]\nwhen-to-use: >\n  often\n  here\ndescription: d\nallowed-tools:\n  - Read\n  - Bash(git log:*)\nmetadata:\n  b: 1 # one\n  a: \"2\"\ncompatibility: x\nlicense: MIT\nname: a\n---\nBody --- stays\n";
        assert_eq!(
            prepare_export(text, "a"),
            "---\n# head\n\nname: a\ndescription: d\nwhen_to_use: >\n  often\n  here\nlicense: MIT\ncompatibility: x\nallowed-tools: Read Bash(git log:*)\nmetadata:\n  b: 1 # one\n  a: \"2\"\nzeta: [1, {a: b}]\n---\nBody --- stays\n"
        );
        assert_eq!(prepare_export(&prepare_export(text, "a"), "a"), prepare_export(text, "a"));
    }

    #[test]
    fn anchors_stay_before_what_refers_to_them() {
        let text = "---\nbase: &b {x: 1}\nmetadata: *b\nallowed_tools: Read, Write\nname: a\ndescription: d\n---\n";
        let exported = prepare_export(text, "a");
        assert!(exported.contains("allowed-tools: Read Write"), "{exported}");
        assert_eq!(parse(&exported).state(), State::Clean);
    }

    #[test]
    fn long_description_is_cut_on_export() {
        let long = "wörd ".repeat(400);
        for value in [format!("{long}# why"), format!(">\n  {long}"), format!("'{long}'")] {
            let text = format!("---\nname: a\ndescription: {value}\nlicense: MIT\n---\nHi\n");
            let exported = prepare_export(&text, "a");
            let read = parse(&exported);
            let description = read.field("description").and_then(|node| node.text()).unwrap();
            assert!(description.chars().count() <= MAX_DESCRIPTION_CHARS, "{exported}");
            assert!(description.starts_with("wörd wörd"), "{exported}");
            assert!(exported.ends_with("license: MIT\n---\nHi\n"), "{exported}");
        }
    }

    #[test]
    fn missing_description_is_the_first_paragraph() {
        let text = "---\r\nname: a\r\ndescription:\r\n---\r\nSays: *hi*.\r\n";
        let repaired = add_description(text).unwrap();
        assert!(has_description(&repaired) && !has_description(text), "{repaired}");
        assert!(!has_description("---\nname: a\ndescription: ' '\n---\n"));
        for text in ["---\nname: a\n---\n# Only\n", "---\nname: [\n---\nHi.\n", "Hi.\n"] {
            assert_eq!(add_description(text), None, "{text}");
        }
    }

    #[test]
    fn metadata_that_is_not_a_map_is_exported_in_one() {
        for (value, line) in
            [("just text", "just text"), ("[1, b]", "\n    - 1\n    - b"), ("7", "7")]
        {
            let text = format!("---\nname: a\ndescription: d\nmetadata: {value}\n---\nB\n");
            let exported = prepare_export(&text, "a");
            let space = if line.starts_with('\n') { "" } else { " " };
            assert_eq!(
                exported,
                format!(
                    "---\nname: a\ndescription: d\nmetadata:\n  metadata:{space}{line}\n---\nB\n"
                )
            );
            assert_eq!(prepare_export(&exported, "a"), exported);
        }
        let empty = "---\nname: a\ndescription: d\nmetadata:\n---\nB\n";
        assert_eq!(prepare_export(empty, "a"), empty);
    }

    #[test]
    fn slips_in_the_yaml_are_imported_unchanged_and_exported_repaired() {
        let text = "---\nname: a\ndescription: Reviews code: style\nlicense: MIT\n---\nB\n";
        assert_eq!(prepare_import(text, "a"), text);
        assert_eq!(
            prepare_export(text, "a"),
            text.replace("Reviews code: style", "\"Reviews code: style\"")
        );
        let other = "---\nname: A: b\ndescription: x: y\n---\nB\n";
        assert_eq!(prepare_import(other, "a-b"), other.replace("A: b", "a-b"));
        let added = add_description("---\nname: a\nlicense: x: y\n---\nB\n").unwrap();
        assert_eq!(added, "---\nname: a\nlicense: x: y\ndescription: B\n---\nB\n");
    }

    #[test]
    fn fences_are_repaired() {
        for (text, repaired) in [
            ("---\nname: a\ndescription: d\n\nB\n", "---\nname: a\ndescription: d\n---\n\nB\n"),
            ("name: a\ndescription: d\n---\nB\n", "---\nname: a\ndescription: d\n---\nB\n"),
            ("```\n---\nname: a\n---\nB\n```\n", "---\nname: a\n---\nB\n"),
        ] {
            assert_eq!(repair_fences(text).map(|found| found.0).as_deref(), Some(repaired));
            assert_eq!(repair_fences(repaired), None);
        }
        assert_eq!(repair_fences("---\nname: [a\n\nB\n"), None, "a guess");
    }

    #[test]
    fn broken_files_are_unchanged() {
        let text = "---\nname: [\n---\nx\n";
        assert_eq!(prepare_import(text, "x"), text);
    }

    #[test]
    fn handles() {
        let of = |text| derive_handle(text, None, None);
        assert_eq!(of("---\nname: Wöchen Bericht!\n---\n").as_deref(), Some("wochen-bericht"));
        assert_eq!(
            derive_handle("x", Some("My Folder"), Some("file")).as_deref(),
            Some("my-folder")
        );
        assert_eq!(
            derive_handle("---\nname: '!!'\n---\n", None, Some("file")).as_deref(),
            Some("file")
        );
        assert_eq!(of("# Make *tea*\n").as_deref(), Some("make-tea"));
        assert_eq!(of("text"), None);
    }
}
