//! Reads skill files that a service stores for its users, and checks them before they are written.

use std::collections::HashSet;

use savoir_lint::Edit;
use serde_json::{Map, Value};

use super::{
    AgentFlow, check_placeholders,
    contract::{Refusal, document, stored_document},
};
use crate::{
    dialect::{self, Detection, Dialect, Language as _, Strength},
    document::{Document, State},
    edit,
    limits::MAX_DESCRIPTION_CHARS,
    reading::read_as,
    skill::Skill,
    yaml::Node,
};

/// The reason for reading a file, which decides the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The file is stored under a new name.
    Create,
    /// The file replaces the stored file of the same name.
    Update,
    /// The file is already stored, so the limits on its fields are not checked again, and errors in
    /// its YAML are repaired as agents do it.
    Load,
    /// As `Load`, for a file that came from elsewhere: it is read in its own dialect.
    LoadImported,
}

impl Purpose {
    fn is_stored(self) -> bool {
        matches!(self, Self::Load | Self::LoadImported)
    }
}

/// A skill file as stored by a service. What was posted to the API is Agent Flow Lite, whatever it
/// looks like; an imported file keeps its dialect if it can be read in it.
#[derive(Clone, Debug)]
pub struct StoredSkillFile {
    /// The skill. It always has a name and a description, even if the file does not.
    pub skill: Skill,
    /// The field `metadata`, if it is a map.
    pub metadata: Option<Map<String, Value>>,
    /// Whether the file has a map of model settings.
    pub has_model: bool,
    /// The owner of the file.
    pub owner: Option<String>,
}

impl StoredSkillFile {
    /// Reads the file of a skill, or returns the error in the wording of the API.
    ///
    /// ```
    /// use savoir_skill::dialect::agent_flow::{Purpose, StoredSkillFile};
    ///
    /// let text = "---\nuser_id: 7\ninputs: [{name: who}]\n---\nHello {{who}}!\n";
    /// let stored = StoredSkillFile::read("greet", text, Purpose::Create)?;
    /// assert_eq!((stored.skill.name.as_str(), stored.owner.as_deref()), ("greet", Some("7")));
    /// let refusal = StoredSkillFile::read("greet", "---\nname: other\n---\n", Purpose::Create).unwrap_err();
    /// assert_eq!(refusal.message, "Frontmatter name 'other' does not match requested name 'greet'");
    /// # Ok::<(), savoir_skill::dialect::agent_flow::Refusal>(())
    /// ```
    pub fn read(name: &str, text: &str, purpose: Purpose) -> Result<Self, Refusal> {
        let document = if purpose.is_stored() { stored_document(text)? } else { document(text)? };
        let is_read = matches!(document.state(), State::Clean | State::Repaired);
        let has_fields = !document.entries().is_empty() && is_read;
        if !has_fields {
            let message = format!("Skill '{name}' has no valid YAML frontmatter");
            return Err(Refusal::new("frontmatter", message));
        }
        check_name(&document, name, purpose)?;
        if !purpose.is_stored() {
            check_fields(&document)?;
        }
        let dialect = match purpose {
            Purpose::LoadImported => dialect_of(&document),
            _ => Dialect::AGENT_FLOW,
        };
        let metadata = match document.field("metadata").map(|node| node.to_value(AgentFlow.yaml()))
        {
            Some(Value::Object(map)) => Some(map),
            _ => None,
        };
        let has_model = document.field("model").is_some_and(|node| node.entries().is_some());
        let owner = scalar(&document, "user_id").map(str::to_owned);
        let source = document.into_source();
        let reading = read_as(source.clone(), dialect, None);
        let reading = if reading.is_usable() || dialect == Dialect::AGENT_FLOW {
            reading
        } else {
            read_as(source, Dialect::AGENT_FLOW, None)
        };
        let mut skill = reading.skill;
        name.clone_into(&mut skill.name);
        if skill.description.is_empty() {
            name.clone_into(&mut skill.description);
        }
        if purpose.is_stored() {
            shorten_chars(&mut skill.description, MAX_DESCRIPTION_CHARS);
        } else {
            check_placeholders(&skill.body, &skill.inputs)?;
        }
        Ok(Self { skill, metadata, has_model, owner })
    }
}

/// Adds a line `user_id: '…'` before the closing fence; a text that has an owner stays unchanged.
///
/// ```
/// use savoir_skill::dialect::agent_flow::with_owner;
///
/// let owned = with_owner("---\r\nname: a\r\n---\r\nHi\r\n", "7")?;
/// assert_eq!(owned, "---\r\nname: a\r\nuser_id: '7'\r\n---\r\nHi\r\n");
/// assert_eq!(with_owner(&owned, "8")?, owned);
/// # Ok::<(), savoir_skill::dialect::agent_flow::Refusal>(())
/// ```
pub fn with_owner(text: &str, owner: &str) -> Result<String, Refusal> {
    let found = stored_document(text)?;
    if scalar(&found, "user_id").is_some() {
        return Ok(text.to_owned());
    }
    let Some(block) = found.layout().closed_block() else {
        return Err(Refusal::new("frontmatter", "the frontmatter has no end"));
    };
    let line_end = if text[..block.yaml.start].ends_with("\r\n") { "\r\n" } else { "\n" };
    let line = format!("user_id: '{}'{line_end}", owner.replace('\'', "''"));
    let edit = match found.entry_lines("user_id") {
        Some(empty) => Edit::replace(empty, line),
        None => Edit::insert(block.yaml.end, line),
    };
    let noted = edit::apply(text, &[edit]);
    let is_readable = stored_document(&noted).ok().is_some_and(|document| {
        scalar(&document, "user_id") == Some(owner)
            && document.entries().len() >= found.entries().len()
    });
    if is_readable {
        return Ok(noted);
    }
    let message = "the owner cannot be noted: write one `key: value` on each line";
    Err(Refusal::new("frontmatter", message))
}

/// Removes the line with the owner, which restores the text of the author.
///
/// ```
/// use savoir_skill::dialect::agent_flow::{with_owner, without_owner};
///
/// let text = "---\nname: a\n# the end\n---\nHi\n";
/// assert_eq!(without_owner(&with_owner(text, "7")?), text);
/// # Ok::<(), savoir_skill::dialect::agent_flow::Refusal>(())
/// ```
pub fn without_owner(text: &str) -> String {
    let Ok(found) = stored_document(text) else { return text.to_owned() };
    let entry = found.entries().iter().find(|entry| entry.key == "user_id");
    let Some(entry) = entry else { return text.to_owned() };
    let start = entry.key_span.start;
    let end = text[entry.value.span.end..].find('\n').map(|end| entry.value.span.end + end + 1);
    match end {
        // The field can be removed only if it is on its own line.
        Some(end) if text[..start].ends_with('\n') => format!("{}{}", &text[..start], &text[end..]),
        _ => text.to_owned(),
    }
}

fn dialect_of(document: &Document) -> Dialect {
    detect_without_owner(document)
        .filter(|detection| detection.strength == Strength::Strong)
        // The base format is a subset of this dialect.
        .filter(|detection| detection.dialect != Dialect::AGENTSKILLS)
        .map_or(Dialect::AGENT_FLOW, |detection| detection.dialect)
}

/// Whether agents repair the YAML of such a file. The five specifications forbid it.
pub(super) fn agents_repair(document: &Document) -> bool {
    detect_without_owner(document).is_none_or(|detection| detection.dialect.language().repairs())
}

/// Detects the dialect without the owner's line, which is not from the author.
fn detect_without_owner(document: &Document) -> Option<Detection> {
    match document.entry_lines("user_id") {
        Some(lines) => {
            let text = edit::apply(document.text(), &[Edit::replace(lines, "")]);
            dialect::detect(&Document::parse(crate::Source::new(text)), None)
        }
        None => dialect::detect(document, None),
    }
}

fn shorten_chars(text: &mut String, max: usize) {
    if let Some((end, _)) = text.char_indices().nth(max) {
        text.truncate(end);
    }
}

fn check_name(document: &Document, name: &str, purpose: Purpose) -> Result<(), Refusal> {
    let Some(node) = present(document, "name") else { return Ok(()) };
    let Some(found) = node.string(AgentFlow.yaml()) else {
        return Err(Refusal::new("name", "Frontmatter name must be a string"));
    };
    if found == name {
        return Ok(());
    }
    Err(Refusal::new(
        "name",
        match purpose {
            Purpose::Create => {
                format!("Frontmatter name '{found}' does not match requested name '{name}'")
            }
            Purpose::Update => format!(
                "Cannot change skill name via update. Frontmatter name '{found}' does not match '{name}'"
            ),
            Purpose::Load | Purpose::LoadImported => format!(
                "Skill name mismatch: folder name '{name}' does not match frontmatter name '{found}'"
            ),
        },
    ))
}

/// Text fields: the key, its name in messages, and the maximum number of characters.
const TEXTS: &[(&str, &str, usize)] = &[
    ("description", "Description", MAX_DESCRIPTION_CHARS),
    ("license", "License", 64),
    ("knowledge_base", "Knowledge base", 256),
    ("user_id", "User id", 256),
];

/// Text fields of an input: the key and the maximum number of characters.
const INPUT_TEXTS: &[(&str, usize)] =
    &[("name", 64), ("label", 128), ("default", 1024), ("description", 512)];

fn check_fields(document: &Document) -> Result<(), Refusal> {
    for (key, word, most) in TEXTS {
        let Some(node) = present(document, key) else { continue };
        check_text(key, word, *most, node)?;
    }
    check_model(document)?;
    if present(document, "metadata").is_some_and(|node| node.entries().is_none()) {
        return Err(Refusal::new("metadata", "metadata must be an object"));
    }
    let Some(inputs) = present(document, "inputs") else { return Ok(()) };
    let Some(items) = inputs.items() else {
        return Err(Refusal::new("inputs", "inputs must be a list"));
    };
    let mut names = HashSet::new();
    for (at, item) in items.iter().enumerate() {
        check_required(at, item)?;
        let name = item.get("name").and_then(Node::text);
        if let Some(name) = name.filter(|name| !name.is_empty() && !names.insert(*name)) {
            return Err(Refusal::new("inputs", format!("Two inputs have the name '{name}'")));
        }
        for (key, most) in INPUT_TEXTS {
            let Some(node) = item.get(key).filter(|node| !node.is_null(AgentFlow.yaml())) else {
                continue;
            };
            check_text("inputs", &format!("Input {key}"), *most, node)?;
            if *key == "label" && node.text() == Some("") {
                return Err(Refusal::new("inputs", "Input label must not be empty"));
            }
        }
    }
    Ok(())
}

/// Checks that `required` is a boolean: another value would mean that the input is not required. The
/// message is that of `savoir check`.
fn check_required(at: usize, input: &Node) -> Result<(), Refusal> {
    let version = AgentFlow.yaml();
    let Some(node) = input.get("required").filter(|node| !node.is_null(version)) else {
        return Ok(());
    };
    if node.boolean(version).is_some() {
        return Ok(());
    }
    let is = node.type_name(version);
    let message = format!("`inputs[{at}].required` is {is}, it must be `true` or `false`");
    Err(Refusal::new("inputs", message))
}

fn check_text(field: &'static str, word: &str, most: usize, node: &Node) -> Result<(), Refusal> {
    match node.text() {
        None => Err(Refusal::new(field, format!("{word} must be a string"))),
        Some(text) if text.chars().count() > most => {
            Err(Refusal::new(field, format!("{word} must be {most} characters or less")))
        }
        Some(_) => Ok(()),
    }
}

fn check_model(document: &Document) -> Result<(), Refusal> {
    let Some(model) = document.field("model").filter(|node| node.entries().is_some()) else {
        return Ok(());
    };
    let number = |key: &str| {
        let node = model.get(key).filter(|node| !node.is_null(AgentFlow.yaml()))?;
        Some(node.to_value(AgentFlow.yaml()))
    };
    let refuse = |message: &str| Err(Refusal::new("model", message));
    if number("temperature").is_some_and(|value| !value.is_number()) {
        return refuse("temperature must be a number");
    }
    if number("max_tokens").is_some_and(|value| !value.is_i64() && !value.is_u64()) {
        return refuse("max_tokens must be a whole number");
    }
    if let Some(value) = number("temperature")
        && !value.as_f64().is_some_and(|value| (0.0..=2.0).contains(&value))
    {
        return refuse("temperature must be between 0 and 2");
    }
    if let Some(value) = number("max_tokens")
        && !value.as_u64().is_some_and(|value| (1..=8192).contains(&value))
    {
        return refuse("max_tokens must be between 1 and 8192");
    }
    Ok(())
}

/// Returns a field that exists and is not null.
fn present<'a>(document: &'a Document, key: &str) -> Option<&'a Node> {
    document.field(key).filter(|node| !node.is_null(AgentFlow.yaml()))
}

fn scalar<'a>(document: &'a Document, key: &str) -> Option<&'a str> {
    present(document, key)?.text().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> (&'static str, String) {
        let refusal = StoredSkillFile::read("a", text, Purpose::Create).unwrap_err();
        (refusal.field, refusal.message)
    }

    #[test]
    fn errors_have_the_api_messages() {
        let long = "x".repeat(1025);
        for (text, field, message) in [
            ("", "content", "Skill content is empty"),
            ("hello", "frontmatter", "Skill 'a' has no valid YAML frontmatter"),
            ("---\n---\nb", "frontmatter", "Skill 'a' has no valid YAML frontmatter"),
            ("---\nname: 5\n---\n", "name", "Frontmatter name must be a string"),
            (
                "---\nname: b\n---\n",
                "name",
                "Frontmatter name 'b' does not match requested name 'a'",
            ),
            (
                &format!("---\ndescription: {long}\n---\n"),
                "description",
                "Description must be 1024 characters or less",
            ),
            ("---\ninputs: 5\n---\n", "inputs", "inputs must be a list"),
            ("---\nmetadata: [a]\n---\n", "metadata", "metadata must be an object"),
            (
                "---\ninputs: [{name: n, label: ''}]\n---\n",
                "inputs",
                "Input label must not be empty",
            ),
            (
                "---\ninputs: [{name: n, required: 'true'}]\n---\n",
                "inputs",
                "`inputs[0].required` is a string, it must be `true` or `false`",
            ),
            (
                "---\ninputs: [{name: n, required: yes}, {name: m, required: 1}]\n---\n",
                "inputs",
                "`inputs[1].required` is a number, it must be `true` or `false`",
            ),
            (
                &format!("---\ninputs: [{{name: n, default: {long}}}]\n---\n"),
                "inputs",
                "Input default must be 1024 characters or less",
            ),
            ("---\nmodel: {temperature: 3}\n---\n", "model", "temperature must be between 0 and 2"),
            ("---\nmodel: {temperature: hot}\n---\n", "model", "temperature must be a number"),
            ("---\nmodel: {max_tokens: 10.5}\n---\n", "model", "max_tokens must be a whole number"),
            (
                "---\ninputs: [{name: a}, {name: b}, {name: a}]\n---\n",
                "inputs",
                "Two inputs have the name 'a'",
            ),
            (
                "---\nmodel: {max_tokens: 0}\n---\n",
                "model",
                "max_tokens must be between 1 and 8192",
            ),
            (
                "---\ndescription: d\n---\n{{b}} {{a}}",
                "prompt",
                "Undeclared placeholders in prompt: a, b. Add them to inputs or remove from prompt.",
            ),
        ] {
            assert_eq!(refusal(text), (field, message.to_owned()), "{text:.60}");
        }
    }

    #[test]
    fn stored_files_are_read_leniently() {
        let long = format!("---\ndescription: {}\ninputs: 5\n---\n{{{{x}}}}", "x".repeat(2000));
        assert!(StoredSkillFile::read("a", &long, Purpose::Load).is_ok());
        let other = StoredSkillFile::read("a", "---\nname: b\n---\n", Purpose::Load).unwrap_err();
        assert_eq!(
            other.message,
            "Skill name mismatch: folder name 'a' does not match frontmatter name 'b'"
        );
    }

    #[test]
    fn stored_files_are_repaired_as_agents_do() {
        for text in [
            "---\ndescription: Reviews code: style and bugs\n---\nB\n",
            "---\nname: a\ndescription: @team reviews\nuser_id: '7'\n---\nB\n",
            "---\r\nname: a\r\ndescription: \"x\" and y\r\ntags: - a\r\n---\r\nB\r\n",
        ] {
            let owned = with_owner(text, "7").unwrap();
            for purpose in [Purpose::Load, Purpose::LoadImported] {
                let stored = StoredSkillFile::read("a", &owned, purpose).expect(text);
                assert_eq!(stored.owner.as_deref(), Some("7"), "{owned}");
                assert!(!stored.skill.description.is_empty(), "{owned}");
            }
            if !text.contains("user_id") {
                assert_eq!(without_owner(&owned), text);
            }
            let refusal = StoredSkillFile::read("a", text, Purpose::Create).unwrap_err();
            assert_eq!(refusal.field, "frontmatter", "{text}");
        }
        for text in [
            "---\nname: [a\ndescription: d\n---\nB\n",
            "---\nname: a\ndescription: a: b\ninputs: [{name: n, type: text}]\n---\nB\n",
        ] {
            assert!(StoredSkillFile::read("a", text, Purpose::Load).is_err(), "{text}");
            assert_eq!(with_owner(text, "7").unwrap_err().field, "frontmatter", "{text}");
        }
    }

    #[test]
    fn long_descriptions_of_stored_files_are_shortened() {
        let text = format!("---\ndescription: {}\n---\nB", "ä".repeat(2000));
        for purpose in [Purpose::Load, Purpose::LoadImported] {
            let stored = StoredSkillFile::read("a", &text, purpose).unwrap();
            assert_eq!(stored.skill.description.chars().count(), MAX_DESCRIPTION_CHARS);
        }
    }

    #[test]
    fn an_owner_does_not_change_the_dialect() {
        let text = "---\nname: a\nversion: 1.0.0\ndescription: d\ninputs:\n  - {name: n, type: number}\n---\n{{ n }}\n";
        let dialect = |text: &str| {
            StoredSkillFile::read("a", text, Purpose::LoadImported).unwrap().skill.dialect
        };
        assert_eq!(dialect(text), Dialect::SKILLRT);
        let owned = with_owner(text, "7").unwrap();
        assert_eq!(dialect(&owned), Dialect::SKILLRT);
        assert_eq!(
            StoredSkillFile::read("a", &owned, Purpose::LoadImported).unwrap().owner.as_deref(),
            Some("7")
        );
    }

    #[test]
    fn posted_text_is_agent_flow() {
        for text in [
            "---\ninputs: [{name: q, type: number}]\n---\n{{q}}",
            "---\noutputs: {a: b}\npermissions: [x]\nruntime: z\nread_only: true\n---\nHi",
            "---\ndescription: d\n---\n### deploy\n#### Command\nls\n",
            "---\nversion: 1.0.0\ndescription: d\ninputs: [{name: n, type: number}]\n---\n{{n}}",
        ] {
            for purpose in [Purpose::Create, Purpose::Update, Purpose::Load] {
                let stored = StoredSkillFile::read("a", text, purpose).unwrap();
                assert_eq!(stored.skill.dialect, Dialect::AGENT_FLOW, "{text}");
            }
        }
        let unusable = "---\ninputs: [{name: q, type: number}]\n---\n{{q}}";
        let stored = StoredSkillFile::read("a", unusable, Purpose::LoadImported).unwrap();
        assert_eq!(stored.skill.dialect, Dialect::AGENT_FLOW);
    }

    #[test]
    fn adding_an_owner_changes_one_line() {
        for (text, owned) in [
            ("---\na: |\n  b\n---\nx", "---\na: |\n  b\nuser_id: '7'\n---\nx"),
            ("---\nuser_id:\na: 1\n---\n", "---\nuser_id: '7'\na: 1\n---\n"),
            ("\u{feff}---\na: 1\n---", "\u{feff}---\na: 1\nuser_id: '7'\n---"),
        ] {
            assert_eq!(with_owner(text, "7").unwrap(), owned);
        }
        assert_eq!(with_owner("---\n{a: 1}\n---\n", "7").unwrap_err().field, "frontmatter");
    }
}
