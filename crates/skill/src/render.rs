//! Renders a skill with the values of its inputs into the prompt that an agent reads.
//!
//! ```
//! use savoir_skill::{Source, read, render::render};
//! use serde_json::json;
//!
//! let text = "---\nname: greet\ninputs:\n  - {name: who, type: text, required: true}\n---\nHello {{who}}!\n";
//! let skill = read(Source::from_bytes(text.into())?, None).skill;
//! let inputs = json!({"who": "Ada"}).as_object().cloned().unwrap_or_default();
//! assert_eq!(render(&skill, &inputs, None)?, "Hello Ada!");
//! assert_eq!(render(&skill, &Default::default(), None).unwrap_err().code(), "missing-input");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::{borrow::Cow, fs::File, path::Path};

use savoir_lint::words::nearest;
use serde_json::{Map, Number, Value};
use thiserror::Error;

use crate::{
    dialect::{Dialect, agent_flow, skillrt::is_anthropic_skill},
    name::shorten_name,
    skill::{Input, InputKind, Mode, Skill},
    template::{self, Grammar, claude},
};

/// The input of a Claude Code skill that contains everything typed after its name.
pub const ARGUMENTS: &str = "ARGUMENTS";

/// The placeholders in a body that are replaced before an agent reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Placeholders {
    /// No placeholders.
    #[default]
    None,
    /// `{{x}}`, every input a text.
    AgentFlow,
    /// `{{ x }}` with typed inputs.
    Skillrt,
    /// `$ARGUMENTS`, `$0`, `$name`, `${CLAUDE_SKILL_DIR}`.
    Claude,
    /// `{baseDir}`.
    BaseDir,
}

impl Placeholders {
    /// The field of the frontmatter that declares the inputs.
    pub(crate) fn field(self) -> &'static str {
        if self == Self::Claude { "arguments" } else { "inputs" }
    }

    /// Returns the placeholder of an input as written in a body.
    pub(crate) fn write(self, name: &str) -> String {
        match self {
            Self::Claude => format!("${name}"),
            Self::Skillrt => format!("{{{{ {name} }}}}"),
            Self::AgentFlow | Self::BaseDir | Self::None => format!("{{{{{name}}}}}"),
        }
    }

    /// Whether a required input without a value is an error even if it has a default.
    pub(crate) fn required_beats_default(self) -> bool {
        self == Self::AgentFlow
    }

    /// Whether values and defaults are checked against the type of their input.
    pub(crate) fn have_types(self) -> bool {
        self == Self::Skillrt
    }
}

/// Why a prompt cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RenderError {
    /// A required input has no value.
    #[error("Missing required input: '{input}'")]
    MissingInput {
        /// The name of the input.
        input: String,
    },
    /// A value does not have the type of its input.
    #[error("the input `{input}` must be {expected}")]
    InvalidInput {
        /// The name of the input.
        input: String,
        /// A description of the expected type.
        expected: &'static str,
    },
    /// A value was passed for an input that the skill does not have.
    #[error("the skill has no input `{}`; {}", shorten_name(input), known_inputs(known, near.as_deref()))]
    UnknownInput {
        /// The unknown name.
        input: String,
        /// The names of the skill's inputs.
        known: Vec<String>,
        /// The input name that was probably meant.
        near: Option<String>,
    },
}

fn known_inputs(known: &[String], near: Option<&str>) -> String {
    match (known, near) {
        ([], _) => "it has no inputs".to_owned(),
        (known, None) => format!("its inputs: {}", known.join(", ")),
        (known, Some(near)) => {
            format!("did you mean `{near}`? Its inputs: {}", known.join(", "))
        }
    }
}

impl RenderError {
    /// The stable identifier of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::MissingInput { .. } => "missing-input",
            Self::InvalidInput { .. } => "invalid-input",
            Self::UnknownInput { .. } => "unknown-input",
        }
    }

    /// The name of the input that caused the error.
    pub fn input(&self) -> &str {
        match self {
            Self::MissingInput { input }
            | Self::InvalidInput { input, .. }
            | Self::UnknownInput { input, .. } => input,
        }
    }
}

/// The variable from which a code block reads an input: `pr-url` is in `INPUT_PR_URL`.
pub fn input_variable(name: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("INPUT_{}", name.chars().map(word).collect::<String>())
}

/// Inserts values into the body of a skill and rejects unknown input names.
///
/// A value has the type of the input or is a text that can be parsed as one. `directory` is the
/// skill's folder; without it, placeholders for the folder stay unchanged.
pub fn render(
    skill: &Skill,
    inputs: &Map<String, Value>,
    directory: Option<&str>,
) -> Result<String, RenderError> {
    let known = input_names(skill);
    if let Some(input) = inputs.keys().find(|name| !known.contains(name)) {
        let near = nearest(input, known.iter().map(String::as_str)).map(str::to_owned);
        return Err(RenderError::UnknownInput { input: input.clone(), known, near });
    }
    fill(skill, inputs, directory)
}

/// Returns all errors that [`render`] can report, in the order of the passed names and then of the
/// inputs.
pub fn problems(skill: &Skill, inputs: &Map<String, Value>) -> Vec<RenderError> {
    let known = input_names(skill);
    let unknown = inputs.keys().filter(|name| !known.contains(name)).map(|name| {
        let near = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
        RenderError::UnknownInput { input: name.clone(), known: known.clone(), near }
    });
    let mut problems: Vec<RenderError> = unknown.collect();
    let typed = skill.dialect.language().placeholders().have_types();
    if typed && skill.mode == Mode::Structured {
        let texts = skill.inputs.iter().map(|input| skillrt_text(input, inputs.get(&input.name)));
        problems.extend(texts.filter_map(Result::err));
    } else {
        problems.extend(fill(skill, inputs, None).err());
    }
    problems
}

/// Inserts values into the body of a skill as its own system does: unknown input names are ignored.
pub fn fill(
    skill: &Skill,
    inputs: &Map<String, Value>,
    directory: Option<&str>,
) -> Result<String, RenderError> {
    let body = &skill.body;
    match skill.dialect.language().placeholders() {
        Placeholders::None => Ok(body.clone()),
        Placeholders::AgentFlow => agent_flow_prompt(skill, inputs),
        Placeholders::Skillrt if skill.mode == Mode::Prose => Ok(body.clone()),
        Placeholders::Skillrt => skillrt_prompt(skill, inputs, directory),
        Placeholders::Claude => claude_prompt(skill, inputs, directory),
        Placeholders::BaseDir => Ok(match directory {
            Some(directory) => template::substitute_base_dir(body, directory),
            None => body.clone(),
        }),
    }
}

/// Returns the passed values, and the defaults of the other inputs.
pub fn values(skill: &Skill, inputs: &Map<String, Value>) -> Map<String, Value> {
    let mut values = inputs.clone();
    for input in &skill.inputs {
        let is_given = values.get(&input.name).is_some_and(|value| !value.is_null());
        if let Some(default) = input.default.as_ref().filter(|_| !is_given) {
            values.insert(input.name.clone(), default.clone());
        }
    }
    values
}

/// The names of the inputs of a skill, in declared order.
pub fn input_names(skill: &Skill) -> Vec<String> {
    match skill.dialect.language().placeholders() {
        Placeholders::None | Placeholders::BaseDir => Vec::new(),
        Placeholders::AgentFlow | Placeholders::Skillrt => {
            skill.inputs.iter().map(|input| input.name.clone()).collect()
        }
        Placeholders::Claude => {
            let names = skill.policy.arguments.iter().cloned();
            names.chain(std::iter::once(ARGUMENTS.to_owned())).collect()
        }
    }
}

/// Whether the body has a placeholder for the text typed after the name of the skill: `$ARGUMENTS`,
/// `$ARGUMENTS[N]` or `$N`.
pub fn takes_arguments(skill: &Skill) -> bool {
    let found = claude::scan(&skill.body, &skill.policy.arguments);
    found.iter().any(|one| matches!(one.target, claude::Target::All | claude::Target::Position(_)))
}

/// Prepares a skill for a call by the user: if its dialect has no placeholders, those of Claude
/// Code are replaced.
pub fn as_user_invoked(skill: &Skill) -> Cow<'_, Skill> {
    let bare = skill.dialect.language().placeholders() == Placeholders::None;
    if bare && takes_arguments(skill) {
        Cow::Owned(Skill { dialect: Dialect::CLAUDE_CODE, ..skill.clone() })
    } else {
        Cow::Borrowed(skill)
    }
}

fn agent_flow_prompt(skill: &Skill, inputs: &Map<String, Value>) -> Result<String, RenderError> {
    if let Some(input) = agent_flow::missing_input(&skill.inputs, inputs) {
        return Err(RenderError::MissingInput { input: input.name.clone() });
    }
    Ok(agent_flow::substitute(&skill.body, &skill.inputs, inputs))
}

fn skillrt_prompt(
    skill: &Skill,
    inputs: &Map<String, Value>,
    directory: Option<&str>,
) -> Result<String, RenderError> {
    let mut texts: Vec<(&str, String)> = Vec::with_capacity(skill.inputs.len());
    for input in &skill.inputs {
        texts.push((&input.name, skillrt_text(input, inputs.get(&input.name))?));
    }
    // Before the inputs: a value must not become a placeholder.
    let body = match directory.filter(|_| is_anthropic_skill(skill)) {
        Some(directory) => Cow::Owned(skill.body.replace("${CLAUDE_SKILL_DIR}", directory)),
        None => Cow::Borrowed(skill.body.as_str()),
    };
    Ok(template::substitute(&body, Grammar::Skillrt, |name| {
        let text = texts.iter().find(|(known, _)| *known == name);
        text.map(|(_, text)| Cow::Borrowed(text.as_str()))
    }))
}

/// Returns the text of an input: the value, else the default, else an empty text.
fn skillrt_text(input: &Input, value: Option<&Value>) -> Result<String, RenderError> {
    match value.filter(|value| !value.is_null()) {
        Some(value) => typed_text(input.kind, value)
            .map_err(|expected| RenderError::InvalidInput { input: input.name.clone(), expected }),
        None if input.required => Err(RenderError::MissingInput { input: input.name.clone() }),
        None => {
            input.default.as_ref().map_or_else(|| Ok(String::new()), |it| default_text(input, it))
        }
    }
}

/// Returns the text of a default. It comes from the author, so a default file need not exist.
fn default_text(input: &Input, default: &Value) -> Result<String, RenderError> {
    typed_text(input.kind, default).or_else(|expected| match input.kind {
        InputKind::Number | InputKind::Boolean | InputKind::Url => {
            Err(RenderError::InvalidInput { input: input.name.clone(), expected })
        }
        _ => Ok(plain_text(default)),
    })
}

/// Returns the text of a value, or a description of the expected type.
fn typed_text(kind: InputKind, value: &Value) -> Result<String, &'static str> {
    let given = value.as_str();
    match kind {
        InputKind::Text | InputKind::Textarea | InputKind::String => Ok(plain_text(value)),
        InputKind::Number => match given.map(str::trim) {
            None if value.is_number() => Ok(value.to_string()),
            Some(text) if serde_json::from_str::<Number>(text).is_ok() => Ok(text.to_owned()),
            _ => Err("a number such as 3 or 0.5"),
        },
        InputKind::Boolean => match given.map(str::trim) {
            None if value.is_boolean() => Ok(value.to_string()),
            Some(text @ ("true" | "false")) => Ok(text.to_owned()),
            _ => Err("`true` or `false`"),
        },
        InputKind::Url => given
            .filter(|text| is_absolute_url(text))
            .map(str::to_owned)
            .ok_or("an absolute URL such as https://example.com"),
        InputKind::File => given
            .filter(|path| is_readable_file(Path::new(path)))
            .map(str::to_owned)
            .ok_or("the path of a file that can be read"),
        InputKind::Json => match given {
            None => Ok(value.to_string()),
            Some(text) => serde_json::from_str::<Value>(text)
                .map(|value| value.to_string())
                .map_err(|_| "valid JSON"),
        },
    }
}

fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Whether a text is an absolute URL: a scheme and a target.
fn is_absolute_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let letter = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    let scheme_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let clean = !text.contains(|c: char| c.is_whitespace() || c.is_control());
    if !letter || !scheme.chars().all(scheme_char) || !clean {
        return false;
    }
    let host = |rest: &str| rest.split(['/', '?', '#']).next().unwrap_or_default().to_owned();
    match (scheme.to_ascii_lowercase().as_str(), rest.strip_prefix("//")) {
        ("http" | "https" | "ws" | "wss" | "ftp", authority) => {
            authority.is_some_and(|rest| !host(rest).trim_start_matches('@').is_empty())
        }
        (_, Some(rest)) => !rest.is_empty(),
        (_, None) => !rest.is_empty(),
    }
}

/// Checks the file type before opening, because opening a pipe would block.
fn is_readable_file(path: &Path) -> bool {
    path.is_file() && File::open(path).is_ok()
}

fn claude_prompt(
    skill: &Skill,
    inputs: &Map<String, Value>,
    directory: Option<&str>,
) -> Result<String, RenderError> {
    let names = &skill.policy.arguments;
    let by_name = names.iter().find(|name| inputs.contains_key(*name));
    let arguments = match (inputs.get(ARGUMENTS), by_name) {
        (Some(_), Some(name)) => {
            let expected = "not used when `ARGUMENTS` is given";
            return Err(RenderError::InvalidInput { input: name.clone(), expected });
        }
        (Some(all), None) => plain_text(all),
        (None, _) => {
            let given = names.iter().rposition(|name| inputs.contains_key(name));
            let count = given.map_or(0, |last| last + 1);
            let words = names.iter().take(count).map(|name| inputs.get(name));
            words
                .map(|word| quoted(word.map_or(String::new(), plain_text)))
                .collect::<Vec<_>>()
                .join(" ")
        }
    };
    Ok(claude::render(&skill.body, &arguments, names, |variable| match variable {
        "CLAUDE_SKILL_DIR" => directory.map(Cow::Borrowed),
        _ => None,
    }))
}

/// Quotes a word so that splitting returns it unchanged.
fn quoted(word: String) -> String {
    let plain = |c: char| !c.is_whitespace() && !matches!(c, '\'' | '"' | '\\');
    if !word.is_empty() && word.chars().all(plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Dialect, Source, read_as};

    fn skill(text: &str, dialect: Dialect) -> Skill {
        read_as(Source::new(text.into()), dialect, None).skill
    }

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    fn typed(kind: &str, value: &Value) -> Result<String, RenderError> {
        let text = format!(
            "---\nname: a\nversion: 1.0.0\ndescription: d\ninputs:\n  - {{name: x, type: {kind}, required: true}}\n---\n{{{{ x }}}}"
        );
        render(&skill(&text, Dialect::SKILLRT), &map(&json!({"x": value})), None)
    }

    #[test]
    fn typed_inputs_take_values_and_texts() {
        for (kind, value, text) in [
            ("string", json!("a b"), "a b"),
            ("string", json!(5), "5"),
            ("number", json!(1.5), "1.5"),
            ("number", json!(" 7 "), "7"),
            ("boolean", json!(true), "true"),
            ("boolean", json!("false"), "false"),
            ("json", json!({"b": [1, 2], "a": null}), r#"{"b":[1,2],"a":null}"#),
            ("json", json!("[1, 2]"), "[1,2]"),
            ("url", json!("https://x/y?z"), "https://x/y?z"),
            ("url", json!("mailto:a@b"), "mailto:a@b"),
        ] {
            assert_eq!(typed(kind, &value).as_deref(), Ok(text), "{kind}: {value}");
        }
    }

    #[test]
    fn values_of_wrong_type_are_rejected() {
        for (kind, value) in [
            ("number", json!("seven")),
            ("number", json!("007")),
            ("number", json!(true)),
            ("boolean", json!("yes")),
            ("boolean", json!(1)),
            ("json", json!("{")),
            ("url", json!("example.com/x")),
            ("url", json!("/x")),
            ("url", json!("https://")),
            ("url", json!("https:x")),
            ("url", json!("https://a b")),
            ("url", json!(5)),
            ("file", json!("/no/such/file/anywhere")),
        ] {
            let error = typed(kind, &value).unwrap_err();
            assert_eq!((error.code(), error.input()), ("invalid-input", "x"), "{kind}: {value}");
        }
        assert_eq!(typed("string", &Value::Null).unwrap_err().code(), "missing-input");
    }

    #[test]
    fn defaults_of_wrong_type_are_rejected() {
        let default = |kind: &str, default: &str| {
            let text = format!(
                "---\nname: a\nversion: 1.0.0\ndescription: d\ninputs:\n  - {{name: x, type: {kind}, default: {default}}}\n---\n{{{{ x }}}}"
            );
            render(&skill(&text, Dialect::SKILLRT), &Map::new(), None)
        };
        for (kind, written) in [("number", "many"), ("boolean", "\"yes\""), ("url", "example")] {
            let error = default(kind, written).unwrap_err();
            assert_eq!((error.code(), error.input()), ("invalid-input", "x"), "{kind}: {written}");
        }
        for (kind, written, text) in [
            ("number", "3", "3"),
            ("number", "\"0.5\"", "0.5"),
            ("boolean", "true", "true"),
            ("json", "plain", "plain"),
            ("file", "no-such-file", "no-such-file"),
        ] {
            assert_eq!(default(kind, written).as_deref(), Ok(text), "{kind}: {written}");
        }
    }

    #[test]
    fn missing_files_are_rejected() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        assert_eq!(typed("file", &json!(path)).as_deref(), Ok(path));
        let folder = file.path().parent().unwrap().to_str().unwrap();
        assert!(typed("file", &json!(folder)).is_err());
    }

    #[test]
    fn unknown_names_are_refused_with_a_guess() {
        let text = "---\nname: a\ninputs:\n  - name: style\n---\n{{style}}";
        let skill = skill(text, Dialect::AGENT_FLOW);
        let error = render(&skill, &map(&json!({"sytle": "x"})), None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the skill has no input `sytle`; did you mean `style`? Its inputs: style"
        );
        assert_eq!(fill(&skill, &map(&json!({"sytle": "x"})), None).as_deref(), Ok(""));
    }

    #[test]
    fn all_problems_are_found_at_once() {
        let text = "---\nname: a\nversion: 1.0.0\ndescription: d\ninputs:\n  - {name: first, type: url, required: true}\n  - {name: second, type: number}\n---\nx";
        let skill = skill(text, Dialect::SKILLRT);
        let codes = |inputs: &Value| {
            let found = problems(&skill, &map(inputs));
            found.iter().map(RenderError::code).collect::<Vec<_>>()
        };
        assert_eq!(
            codes(&json!({"third": 1, "second": "two"})),
            ["unknown-input", "missing-input", "invalid-input"]
        );
        assert_eq!(codes(&json!({"first": "https://x", "second": 2})), [""; 0]);
        let prose = read_as(Source::new("# x".into()), Dialect::SKILLRT, None).skill;
        assert_eq!(problems(&prose, &Map::new()), []);
    }

    #[test]
    fn claude_arguments_by_name_or_all_at_once() {
        let text = "---\nname: a\ndescription: d\narguments: [issue, branch]\n---\n$issue on $branch: $ARGUMENTS";
        let skill = skill(text, Dialect::CLAUDE_CODE);
        let rendered = |inputs: &Value| render(&skill, &map(inputs), None);
        assert_eq!(
            rendered(&json!({"branch": "it's a"})).as_deref(),
            Ok(r" on it's a: '' 'it'\''s a'")
        );
        assert_eq!(rendered(&json!({"ARGUMENTS": "1 m"})).as_deref(), Ok("1 on m: 1 m"));
        assert!(rendered(&json!({"ARGUMENTS": "1 m", "issue": "2"})).is_err());
    }

    #[test]
    fn the_folder_goes_where_its_placeholder_is() {
        let text = "---\nname: a\ndescription: d\n---\n{baseDir} ${CLAUDE_SKILL_DIR} {{x}}";
        let none = Map::new();
        let in_folder = |dialect| render(&skill(text, dialect), &none, Some("/s")).unwrap();
        assert_eq!(in_folder(Dialect::OPENCLAW), "/s ${CLAUDE_SKILL_DIR} {{x}}");
        assert_eq!(in_folder(Dialect::CLAUDE_CODE), "{baseDir} /s {{x}}");
        assert_eq!(in_folder(Dialect::AGENTSKILLS), "{baseDir} ${CLAUDE_SKILL_DIR} {{x}}");
    }
}
