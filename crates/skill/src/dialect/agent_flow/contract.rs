//! What Agent Flow Lite checks before it stores or runs a skill, in the words of its API.

use std::{borrow::Cow, collections::BTreeSet};

use savoir_lint::Source;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{AgentFlow, DEFAULT_MAX_TOKENS, DEFAULT_TEMPERATURE, MAX_CONTENT_BYTES};
use crate::{
    dialect::Language as _,
    document::{Document, State},
    frontmatter::Fences,
    name::NameGrammar,
    skill::{Input, Skill},
    template::{self, Grammar},
};

/// Why a request is refused: the member `detail` of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// What is wrong: `name`, `content`, `frontmatter`, `prompt` or `inputs`.
    pub field: &'static str,
    /// The text that clients show.
    pub message: String,
}

impl Refusal {
    pub(super) fn new(field: &'static str, message: impl Into<String>) -> Self {
        Self { field, message: message.into() }
    }
}

/// The two parts of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// The fields; none when the file has no frontmatter.
    pub frontmatter: Map<String, Value>,
    /// The prompt, without blanks around it.
    pub body: String,
}

/// How a model is called.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ModelSettings {
    /// Sampling temperature.
    pub temperature: f64,
    /// Most tokens of an answer.
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

/// Splits a file into its fields and its prompt. A file without frontmatter is all prompt; whether
/// that is a skill is another question.
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

/// The parts of a file, or why it is refused.
pub(super) fn document(text: &str) -> Result<Document, Refusal> {
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        return Err(Refusal::new("content", "Skill content is empty"));
    }
    let invalid = |why: &dyn std::fmt::Display| {
        Refusal::new("frontmatter", format!("Invalid YAML frontmatter: {why}"))
    };
    let source = Source::from_bytes(text.as_bytes().to_vec()).map_err(|error| invalid(&error))?;
    // Nothing is mended here: what the original does not see as frontmatter is prompt.
    let fences = Fences { optional: true, ..AgentFlow.fences() };
    let document = Document::parse_with(source, fences);
    match document.problems().iter().find(|problem| problem.is_error()) {
        None => Ok(document),
        Some(problem) => Err(match problem.code {
            "frontmatter-not-map" => Refusal::new("frontmatter", "frontmatter must be a mapping"),
            _ => invalid(&problem.message),
        }),
    }
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

/// The first required input that is not given. Neither a default nor an empty text is enough, a
/// blank is.
pub fn missing_input<'a>(inputs: &'a [Input], given: &Map<String, Value>) -> Option<&'a Input> {
    let is_given = |input: &Input| {
        given.get(&input.name).and_then(text_of).is_some_and(|text| !text.is_empty())
    };
    inputs.iter().find(|input| input.required && !is_given(input))
}

/// Checks that every required input is given.
pub fn check_inputs(inputs: &[Input], given: &Map<String, Value>) -> Result<(), Refusal> {
    match missing_input(inputs, given) {
        Some(input) => {
            Err(Refusal::new("inputs", format!("Missing required input: '{}'", input.name)))
        }
        None => Ok(()),
    }
}

/// Puts values into a prompt: what is given, else the default, else nothing. Names that are not
/// declared become nothing, too.
pub fn substitute(prompt: &str, inputs: &[Input], given: &Map<String, Value>) -> String {
    template::substitute(prompt, Grammar::AgentFlow, |name| {
        let input = inputs.iter().find(|input| input.name == name);
        let value = input.and_then(|input| {
            given.get(name).and_then(text_of).or_else(|| input.default.as_ref().and_then(text_of))
        });
        Some(value.unwrap_or_default())
    })
}

/// How the model is called for a skill; what it does not say has a default.
pub fn model_settings(skill: &Skill) -> ModelSettings {
    ModelSettings {
        temperature: skill.policy.temperature.unwrap_or(DEFAULT_TEMPERATURE),
        max_tokens: skill.policy.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
    }
}

/// A value as text; null is none.
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
    fn what_is_no_mapping_is_refused() {
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
    fn a_default_is_no_input() {
        let input = |name: &str, required, default: Option<&str>| Input {
            name: name.into(),
            required,
            default: default.map(Value::from),
            ..Input::default()
        };
        let inputs = [input("a", true, Some("x")), input("b", false, Some("y"))];
        let given = |value: Value| value.as_object().cloned().unwrap();
        assert!(check_inputs(&inputs, &given(json!({"a": ""}))).is_err());
        assert!(check_inputs(&inputs, &given(json!({"a": " "}))).is_ok());
        let text = substitute("{{a}}|{{b}}|{{c}}|{{ b }}", &inputs, &given(json!({"c": "z"})));
        assert_eq!(text, "x|y||{{ b }}");
    }
}
