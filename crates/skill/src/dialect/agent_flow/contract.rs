//! Implements the checks that Agent Flow Lite makes before it stores or runs a skill, with the
//! wording of its API.

use std::{borrow::Cow, collections::BTreeSet};

use savoir_lint::{Diagnostic, Source};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    AgentFlow, DEFAULT_MAX_TOKENS, DEFAULT_TEMPERATURE, MAX_CONTENT_BYTES, stored::agents_repair,
};
use crate::{
    dialect::Language as _,
    document::{Document, State, has_safe_fix},
    frontmatter::Fences,
    name::NameGrammar,
    skill::{Input, Skill},
    template::{self, Grammar},
};

/// Why a request is rejected: the member `detail` of the response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The invalid part: `name`, `content`, `frontmatter`, `prompt` or `inputs`.
    pub field: &'static str,
    /// The message that clients show.
    pub message: String,
}

impl Refusal {
    pub(super) fn new(field: &'static str, message: impl Into<String>) -> Self {
        Self { field, message: message.into() }
    }
}

/// The fields and the prompt of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// The fields; empty if the file has no frontmatter.
    pub frontmatter: Map<String, Value>,
    /// The prompt, trimmed.
    pub body: String,
}

/// The settings for calling a model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ModelSettings {
    /// Sampling temperature.
    pub temperature: f64,
    /// Maximum number of tokens of an answer.
    pub max_tokens: u32,
}

/// Checks a name of a skill.
pub fn check_name(name: &str) -> Result<(), Refusal> {
    NameGrammar::Ascii.check(name).map_err(|problem| Refusal::new("name", problem.to_string()))
}

/// Checks the size of a file, in bytes of UTF-8.
pub fn check_size(bytes: u64) -> Result<(), Refusal> {
    if bytes <= MAX_CONTENT_BYTES as u64 {
        return Ok(());
    }
    let message = format!(
        "Skill file size ({bytes} bytes) exceeds the soft limit of {MAX_CONTENT_BYTES} bytes (50KB). \
         Consider splitting into smaller skills or reducing content."
    );
    Err(Refusal::new("content", message))
}

/// Splits a file into its fields and its prompt. A file without frontmatter is all prompt; this
/// function does not check whether it is a valid skill.
///
/// ```
/// use savoir_skill::dialect::agent_flow::parse;
///
/// let content = parse("---\nname: a\nenabled: yes\n---\n\nHello\n")?;
/// assert_eq!(content.frontmatter["enabled"], true);
/// assert_eq!(content.body, "Hello");
/// assert_eq!(parse(" \n").unwrap_err().message, "Skill content is empty");
/// # Ok::<(), savoir_skill::dialect::agent_flow::Refusal>(())
/// ```
pub fn parse(text: &str) -> Result<Content, Refusal> {
    let document = document(text)?;
    let fields = document.fields().filter(|_| document.state() == State::Clean);
    let frontmatter = match fields.map(|fields| fields.to_value(AgentFlow.yaml())) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    Ok(Content { frontmatter, body: document.body().trim().to_owned() })
}

/// Parses a file, or returns why it is rejected. Nothing is repaired here.
pub(super) fn document(text: &str) -> Result<Document, Refusal> {
    let document = repaired_document(text)?;
    match document.problems().iter().find(|problem| problem.is_error()) {
        None => Ok(document),
        Some(problem) => Err(refusal_of(problem)),
    }
}

/// Parses a stored file. Errors in the YAML that have only one meaning are read as agents read them,
/// unless a specification forbids it for the dialect of the file.
pub(super) fn stored_document(text: &str) -> Result<Document, Refusal> {
    let document = repaired_document(text)?;
    match yaml_slips_of(&document) {
        Ok(_) => Ok(document),
        Err(problem) => Err(refusal_of(&problem)),
    }
}

/// Returns the errors in the YAML of a file that is to be stored, if a stored file may have them:
/// agents repair them when they read the file. Otherwise returns the first other error.
///
/// ```
/// use savoir_skill::dialect::agent_flow::yaml_slips;
///
/// let slips = yaml_slips("---\nname: a\ndescription: Reviews code: style\n---\nB\n").unwrap();
/// assert_eq!(slips[0].code, "unquoted-colon");
/// assert_eq!(yaml_slips("---\nname: [x\n---\nB\n").unwrap_err().code, "unclosed-bracket");
/// ```
pub fn yaml_slips(text: &str) -> Result<Vec<Diagnostic>, Box<Diagnostic>> {
    match repaired_document(text) {
        Ok(document) => yaml_slips_of(&document),
        // The text is empty or not a text, which is not about YAML.
        Err(_) => Ok(Vec::new()),
    }
}

fn yaml_slips_of(document: &Document) -> Result<Vec<Diagnostic>, Box<Diagnostic>> {
    let errors = document.problems().iter().filter(|problem| problem.is_error());
    let errors: Vec<Diagnostic> = errors.cloned().collect();
    if errors.is_empty() {
        return Ok(errors);
    }
    let is_lenient = agents_repair(document);
    match errors.iter().find(|problem| !is_lenient || !has_safe_fix(problem)) {
        Some(problem) => Err(Box::new(problem.clone())),
        None => Ok(errors),
    }
}

fn repaired_document(text: &str) -> Result<Document, Refusal> {
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        return Err(Refusal::new("content", "Skill content is empty"));
    }
    let source = Source::from_bytes(text.as_bytes().to_vec()).map_err(|error| invalid(&error))?;
    // Text that Agent Flow Lite does not read as frontmatter is prompt.
    let fences = Fences { optional: true, ..AgentFlow.fences() };
    Ok(Document::parse_with(source, fences))
}

fn refusal_of(problem: &Diagnostic) -> Refusal {
    match problem.code {
        "frontmatter-not-map" => Refusal::new("frontmatter", "frontmatter must be a mapping"),
        _ => invalid(&problem.message),
    }
}

fn invalid(why: &dyn std::fmt::Display) -> Refusal {
    Refusal::new("frontmatter", format!("Invalid YAML frontmatter: {why}"))
}

/// Checks that every placeholder of a prompt is a declared input.
pub fn check_placeholders(prompt: &str, inputs: &[Input]) -> Result<(), Refusal> {
    let declared = |name: &str| inputs.iter().any(|input| input.name == name);
    let undeclared: BTreeSet<String> = template::scan(prompt, Grammar::AgentFlowCheck)
        .into_iter()
        .map(|placeholder| placeholder.name)
        .filter(|name| !declared(name))
        .collect();
    if undeclared.is_empty() {
        return Ok(());
    }
    let names = undeclared.into_iter().collect::<Vec<_>>().join(", ");
    let message = format!(
        "Undeclared placeholders in prompt: {names}. Add them to inputs or remove from prompt."
    );
    Err(Refusal::new("prompt", message))
}

/// Returns the first required input without a value. A default or an empty text does not count as a
/// value; a blank does.
pub fn missing_input<'a>(inputs: &'a [Input], provided: &Map<String, Value>) -> Option<&'a Input> {
    let is_given = |input: &Input| {
        provided.get(&input.name).and_then(text_of).is_some_and(|text| !text.is_empty())
    };
    inputs.iter().find(|input| input.required && !is_given(input))
}

/// Checks that every required input has a value.
pub fn check_inputs(inputs: &[Input], provided: &Map<String, Value>) -> Result<(), Refusal> {
    match missing_input(inputs, provided) {
        Some(input) => {
            Err(Refusal::new("inputs", format!("Missing required input: '{}'", input.name)))
        }
        None => Ok(()),
    }
}

/// Inserts values into a prompt: the passed value, else the default, else an empty text. Undeclared
/// names become empty as well.
pub fn substitute(prompt: &str, inputs: &[Input], provided: &Map<String, Value>) -> String {
    template::substitute(prompt, Grammar::AgentFlow, |name| {
        let input = inputs.iter().find(|input| input.name == name);
        let value = input.and_then(|input| {
            provided
                .get(name)
                .and_then(text_of)
                .or_else(|| input.default.as_ref().and_then(text_of))
        });
        Some(value.unwrap_or_default())
    })
}

/// Returns the model settings of a skill, with defaults for missing ones.
pub fn model_settings(skill: &Skill) -> ModelSettings {
    ModelSettings {
        temperature: skill.policy.temperature.unwrap_or(DEFAULT_TEMPERATURE),
        max_tokens: skill.policy.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
    }
}

/// Converts a value to text; `None` for null.
fn text_of(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        other => Some(Cow::Owned(other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(text: &str) -> (&'static str, String) {
        let refusal = parse(text).unwrap_err();
        (refusal.field, refusal.message)
    }

    #[test]
    fn fences_are_whole_lines_at_the_start() {
        let fields = |text: &str| Value::Object(parse(text).unwrap().frontmatter);
        let body = |text: &str| parse(text).unwrap().body;
        assert_eq!(fields("--- \r\na: on\r\n---\t\r\nb\r\n"), json!({"a": true}));
        for prose in ["\n---\na: 1\n---\nb", "----\na: 1\n----\nb", " ---\na: 1\n---\n"] {
            assert_eq!(fields(prose), json!({}), "{prose:?}");
            assert_eq!(body(prose), prose.trim());
        }
        assert_eq!(fields("---\n# nothing\n---\nb"), json!({}));
        assert_eq!(body("---\n---\n\n b \n\n"), "b");
    }

    #[test]
    fn values_are_those_of_yaml_1_1() {
        let text = "---\non: off\nday: 2024-05-01\nn: 010\nnone:\nt: 12:30\n---\n";
        let fields = Value::Object(parse(text).unwrap().frontmatter);
        let expected = json!({"on": false, "day": "2024-05-01", "n": 8, "none": null, "t": 750});
        assert_eq!(fields, expected);
    }

    #[test]
    fn non_mapping_frontmatter_is_rejected() {
        for text in ["---\n- a\n---\n", "---\ntext\n---\n", "---\n[a]\n---\n"] {
            let expected = ("frontmatter", "frontmatter must be a mapping".to_owned());
            assert_eq!(refusal(text), expected);
        }
        for text in ["---\na: [\n---\n", "---\na: b: c\n---\n", "---\na: 1\na: 2\n---\n"] {
            let (field, message) = refusal(text);
            assert_eq!(field, "frontmatter");
            assert!(message.starts_with("Invalid YAML frontmatter: "), "{message}");
        }
        assert_eq!(refusal("\u{feff} \n").0, "content");
    }

    #[test]
    fn default_does_not_satisfy_required_input() {
        let input = |name: &str, required, default: Option<&str>| Input {
            name: name.into(),
            required,
            default: default.map(Value::from),
            ..Input::default()
        };
        let inputs = [input("a", true, Some("x")), input("b", false, Some("y"))];
        let provided = |value: Value| value.as_object().cloned().unwrap();
        assert!(check_inputs(&inputs, &provided(json!({"a": ""}))).is_err());
        assert!(check_inputs(&inputs, &provided(json!({"a": " "}))).is_ok());
        let text = substitute("{{a}}|{{b}}|{{c}}|{{ b }}", &inputs, &provided(json!({"c": "z"})));
        assert_eq!(text, "x|y||{{ b }}");
    }
}
