//! Reads assertions: sentences for a judge, or objects that name a deterministic check.

use regex::RegexBuilder;
use savoir_lint::{
    Diagnostic, visible,
    words::{nearest, or},
};
use serde_json::Value as Json;

use crate::{
    json::{Node, Value},
    limits::MAX_REGEX_BYTES,
    set::{Assertion, Grader},
};

/// The types of assertions that are objects.
pub(crate) const TYPES: [&str; 9] = [
    "file-exists", "contains", "not-contains", "matches", "not-matches", "json-schema", "command",
    "tool-called", "judge",
];
/// Other names for them, as other programs write them.
const ALIASES: [(&str, &str); 13] = [
    ("contains-phrase", "contains"),
    ("not-contains-phrase", "not-contains"),
    ("contains-pattern", "matches"),
    ("not-contains-pattern", "not-matches"),
    ("not-includes", "not-contains"),
    ("regex", "matches"),
    ("not-regex", "not-matches"),
    ("file", "file-exists"),
    ("exists", "file-exists"),
    ("includes", "contains"),
    ("schema", "json-schema"),
    ("llm", "judge"),
    ("rubric", "judge"),
];
/// Keys with the words of an assertion.
const WORDS: [&str; 6] = ["text", "assertion", "expectation", "description", "criterion", "name"];

type Problem = Box<Diagnostic>;

pub(super) fn read(node: &Node) -> Result<Assertion, Problem> {
    let sentence = |text: &str| Assertion {
        text: text.to_owned(),
        weight: 1.0,
        grader: Grader::Judge,
        span: node.span,
    };
    match &node.value {
        Value::Text(text) if text.trim().is_empty() => {
            let error =
                Diagnostic::error("eval-missing-field", node.span, "the assertion is empty");
            Err(error.help("write what must be true of a good result").into())
        }
        Value::Text(text) => Ok(sentence(text)),
        Value::Object(_) => read_object(node),
        _ => {
            let message =
                format!("the assertion is {}, expected a sentence or an object", node.kind());
            let error = Diagnostic::error("eval-wrong-type", node.span, message);
            Err(error.help("write a sentence, or {\"type\": \"file-exists\", \"path\": …}").into())
        }
    }
}

fn read_object(node: &Node) -> Result<Assertion, Problem> {
    let words = WORDS.iter().find_map(|key| node.get(key)?.text()).map(str::trim);
    let words = words.filter(|words| !words.is_empty());
    let weight = weight(node)?;
    let grader = match node.get("type") {
        None => Grader::Judge,
        Some(found) => {
            let text = found.text().ok_or_else(|| wrong(found, "type", "a string"))?;
            grader(node, found, &text.replace('_', "-"))?
        }
    };
    let text = match (words, &grader) {
        (Some(words), Grader::Judge) => words.to_owned(),
        (_, Grader::Judge) => return Err(missing(node, "text")),
        // In `{"type": "contains", "text": …}`, the text is what is searched.
        (_, Grader::Contains { .. }) if node.get("phrase").is_none() => {
            named(node).unwrap_or_else(|| describe(&grader))
        }
        (Some(words), _) => words.to_owned(),
        (None, grader) => describe(grader),
    };
    Ok(Assertion { text, weight, grader, span: node.span })
}

/// The description of a check, for keys that are no argument of it.
fn named(node: &Node) -> Option<String> {
    let keys = ["description", "name", "assertion", "expectation"];
    let found = keys.iter().find_map(|key| node.get(key)?.text())?.trim();
    (!found.is_empty()).then(|| found.to_owned())
}

fn weight(node: &Node) -> Result<f64, Problem> {
    let Some(found) = node.get("weight") else { return Ok(1.0) };
    match &found.value {
        Value::Number(number) if number.as_f64().is_some_and(|weight| weight >= 0.0) => {
            Ok(number.as_f64().unwrap_or(1.0))
        }
        _ => Err(wrong(found, "weight", "a number of at least 0")),
    }
}

fn grader(node: &Node, kind: &Node, name: &str) -> Result<Grader, Problem> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
    match name {
        "file-exists" => Ok(Grader::FileExists {
            path: path(node)?.ok_or_else(|| missing(node, "path"))?,
            exists: flag(node, "exists")?.unwrap_or(true),
        }),
        "contains" | "not-contains" => Ok(Grader::Contains {
            path: path(node)?,
            text: text(node, &["phrase", "text", "value"])?,
            contains: name == "contains",
        }),
        "matches" | "not-matches" => {
            let pattern = text(node, &["pattern", "value"])?;
            if let Err(error) = compile(&pattern) {
                let at = ["pattern", "value"].iter().find_map(|key| node.get(key)).unwrap_or(node);
                let error = error.lines().last().unwrap_or_default().trim().to_owned();
                let found = Diagnostic::error("eval-bad-pattern", at.span, error);
                return Err(found.help("write a regular expression as Rust's `regex` reads it: without look-around").into());
            }
            Ok(Grader::Matches { path: path(node)?, pattern, matches: name == "matches" })
        }
        "json-schema" => {
            let schema = node.get("schema").ok_or_else(|| missing(node, "schema"))?;
            if !matches!(schema.value, Value::Object(_) | Value::Bool(_)) {
                return Err(wrong(schema, "schema", "an object"));
            }
            let value: Json = schema.to_value();
            if let Err(reason) = crate::grade::check_schema(&value) {
                let found = Diagnostic::error("eval-bad-schema", schema.span, reason);
                return Err(found.help("correct the JSON Schema (draft 2020-12)").into());
            }
            Ok(Grader::JsonSchema { path: path(node)?, schema: value })
        }
        "command" => Ok(Grader::Command {
            command: text(node, &["command", "value"])?,
            exit_code: exit_code(node)?,
        }),
        "tool-called" => Ok(Grader::ToolCalled {
            tool: text(node, &["tool", "value"])?,
            called: flag(node, "called")?.unwrap_or(true),
        }),
        "judge" => Ok(Grader::Judge),
        other => {
            let instead = nearest(other, TYPES).map_or_else(
                || format!("use {}", or(&TYPES)),
                |near| format!("did you mean `{near}`?"),
            );
            let message = format!("`{}` is not a type of assertion", visible(other));
            Err(Diagnostic::error("eval-unknown-type", kind.span, message).help(instead).into())
        }
    }
}

/// Compiles a pattern with a limit on its size.
pub(crate) fn compile(pattern: &str) -> Result<regex::Regex, String> {
    let built = RegexBuilder::new(pattern).multi_line(true).size_limit(MAX_REGEX_BYTES).build();
    built.map_err(|error| error.to_string())
}

fn path(node: &Node) -> Result<Option<String>, Problem> {
    let Some(found) = node.get("path") else { return Ok(None) };
    let text = found.text().ok_or_else(|| wrong(found, "path", "a path"))?;
    let clean = text.strip_prefix("./").unwrap_or(text);
    let outside = clean.is_empty()
        || clean.starts_with('/')
        || clean.contains('\0')
        || clean.split('/').any(|part| part == "..");
    if outside {
        let message = format!("`{}` is not a path inside the workspace", visible(text));
        let error = Diagnostic::error("eval-outside-path", found.span, message);
        return Err(error.help("write a relative path without `..`").into());
    }
    Ok(Some(clean.to_owned()))
}

fn text(node: &Node, keys: &[&str]) -> Result<String, Problem> {
    let found = keys.iter().find_map(|key| node.get(key)).ok_or_else(|| missing(node, keys[0]))?;
    let text = found.text().ok_or_else(|| wrong(found, keys[0], "a string"))?;
    if text.is_empty() {
        return Err(wrong(found, keys[0], "a string that is not empty"));
    }
    Ok(text.to_owned())
}

fn flag(node: &Node, key: &str) -> Result<Option<bool>, Problem> {
    match node.get(key).map(|found| (found, &found.value)) {
        None => Ok(None),
        Some((_, Value::Bool(is))) => Ok(Some(*is)),
        Some((found, _)) => Err(wrong(found, key, "true or false")),
    }
}

fn exit_code(node: &Node) -> Result<i32, Problem> {
    let Some(found) = node.get("exit_code") else { return Ok(0) };
    let code = match &found.value {
        Value::Number(number) => number.as_i64().filter(|code| (0..=255).contains(code)),
        _ => None,
    };
    let code = code.ok_or_else(|| wrong(found, "exit_code", "a number from 0 to 255"))?;
    Ok(i32::try_from(code).unwrap_or(0))
}

fn missing(node: &Node, key: &str) -> Problem {
    let head = savoir_lint::Span::new(node.span.start, node.span.start + 1);
    let error = Diagnostic::error("eval-missing-field", head, format!("`{key}` is missing"));
    error.help(format!("add \"{key}\" to the assertion")).into()
}

fn wrong(node: &Node, key: &str, expected: &str) -> Problem {
    let message = format!("`{key}` is {}, expected {expected}", node.kind());
    let error = Diagnostic::error("eval-wrong-type", node.span, message);
    error.help(format!("write {expected} here")).into()
}

/// A check in words.
fn describe(grader: &Grader) -> String {
    let place = |path: &Option<String>| path.clone().unwrap_or_else(|| "the answer".to_owned());
    match grader {
        Grader::FileExists { path, exists: true } => format!("{path} exists"),
        Grader::FileExists { path, exists: false } => format!("{path} does not exist"),
        Grader::Contains { path, text, contains: true } => {
            format!("{} contains {text:?}", place(path))
        }
        Grader::Contains { path, text, contains: false } => {
            format!("{} does not contain {text:?}", place(path))
        }
        Grader::Matches { path, pattern, matches: true } => {
            format!("{} matches /{pattern}/", place(path))
        }
        Grader::Matches { path, pattern, matches: false } => {
            format!("{} does not match /{pattern}/", place(path))
        }
        Grader::JsonSchema { path, .. } => format!("{} satisfies the JSON Schema", place(path)),
        Grader::Command { command, exit_code } => format!("`{command}` exits with {exit_code}"),
        Grader::ToolCalled { tool, called: true } => format!("the tool {tool} is called"),
        Grader::ToolCalled { tool, called: false } => format!("the tool {tool} is not called"),
        Grader::Judge => String::new(),
    }
}
