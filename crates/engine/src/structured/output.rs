//! Validates the answer of a skill against its declared outputs.

use std::{fmt, fs, io::Read as _, path::PathBuf};

use savoir_lint::words::shorten;
use savoir_skill::skill::Output;
use serde_json::Value;
use thiserror::Error;

use super::schema_cost;

/// Maximum number of reported violations, and characters of each.
const MAX_VIOLATIONS: usize = 10;
const MAX_MESSAGE_CHARS: usize = 200;

/// Stack of the validator, which needs some kilobytes for each schema inside another one.
const VALIDATOR_STACK_BYTES: usize = 64 << 20;

/// Maximum size of a file that is checked against a schema.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// An answer of the declared type.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Text, unchanged.
    Text(String),
    Json(Value),
    /// The path of an existing file.
    File(PathBuf),
}

/// A part of an answer that does not match the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer into the answer; empty for the whole.
    pub pointer: String,
    /// The reason.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.is_empty() { "the whole answer" } else { &self.pointer };
        write!(f, "{place}: {}", self.message)
    }
}

/// Why an answer is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OutputError {
    /// The type is not a type of skillrt.
    #[error("`{0}` is not a type of output, there are text, json and file")]
    UnknownType(String),
    /// The answer is not JSON.
    #[error("the answer is not JSON: {0}")]
    NotJson(String),
    /// The file that the answer names cannot be read.
    #[error("the answer names no file that can be read: {0}")]
    NoFile(String),
    /// The answer does not match the schema; lists the first violations.
    #[error("the answer does not match the schema: {}", join(.0))]
    Mismatch(Vec<Violation>),
    /// The schema is invalid or refers to an external schema.
    #[error("the schema cannot be used: {0}")]
    BadSchema(String),
}

fn join(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl OutputError {
    /// The stable identifier of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownType(_) => "unknown-output-type",
            Self::NotJson(_) => "output-not-json",
            Self::NoFile(_) => "output-no-file",
            Self::Mismatch(_) => "output-mismatch",
            Self::BadSchema(_) => "invalid-schema",
        }
    }
}

/// Parses an answer as the declared type and validates it against the schema.
///
/// JSON may be in a code block, as models like to write it. For `file` the answer is a path, and
/// the schema applies to the JSON in that file. External schemas are never fetched.
pub fn validate_output(output: &Output, text: &str) -> Result<Answer, OutputError> {
    let schema = output.schema.as_ref().filter(|schema| !schema.is_null());
    match output.kind.as_str() {
        "text" => {
            if let Some(schema) = schema {
                validate_schema(schema, &Value::from(text))?;
            }
            Ok(Answer::Text(text.to_owned()))
        }
        "json" => {
            let value = parse(strip_fence(text))?;
            if let Some(schema) = schema {
                validate_schema(schema, &value)?;
            }
            Ok(Answer::Json(value))
        }
        "file" => {
            let path = PathBuf::from(text.trim());
            if text.trim().is_empty() || !path.is_file() {
                return Err(OutputError::NoFile(text.trim().to_owned()));
            }
            if let Some(schema) = schema {
                validate_schema(schema, &parse(&content(&path)?)?)?;
            }
            Ok(Answer::File(path))
        }
        other => Err(OutputError::UnknownType(other.to_owned())),
    }
}

/// Validates the answer of a model, like [`validate_output`]. Models write no files, so an answer
/// of type `file` is treated as text.
pub fn validate_answer(output: &Output, text: &str) -> Result<Answer, OutputError> {
    match output.kind.as_str() {
        "file" => Ok(Answer::Text(text.to_owned())),
        _ => validate_output(output, text),
    }
}

fn parse(text: &str) -> Result<Value, OutputError> {
    serde_json::from_str(text).map_err(|error| OutputError::NotJson(error.to_string()))
}

fn content(path: &PathBuf) -> Result<String, OutputError> {
    let failed = |why: &dyn fmt::Display| OutputError::NoFile(format!("{}: {why}", path.display()));
    let file = fs::File::open(path).map_err(|error| failed(&error))?;
    let mut text = String::new();
    let read = file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text);
    match read.map_err(|error| failed(&error))? as u64 {
        size if size > MAX_FILE_BYTES => Err(failed(&"it is larger than 16 MiB")),
        _ => Ok(text),
    }
}

/// The content of the code block that is the whole text, or the text.
fn strip_fence(text: &str) -> &str {
    let inner = || {
        let (info, rest) = text.trim().strip_prefix("```")?.split_once('\n')?;
        let known = matches!(info.trim().to_ascii_lowercase().as_str(), "" | "json");
        rest.strip_suffix("```").filter(|_| known)
    };
    inner().unwrap_or(text)
}

/// The JSON of an answer, without the code block around it.
pub fn json_text(answer: &str) -> &str {
    strip_fence(answer).trim()
}

/// Validates a value against a JSON Schema: draft 2020-12 unless `$schema` names another one.
///
/// On a thread of its own, because both steps recurse as deep as the schema.
fn validate_schema(schema: &Value, value: &Value) -> Result<(), OutputError> {
    let failed = || OutputError::BadSchema("the validator failed".to_owned());
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(VALIDATOR_STACK_BYTES);
        let running = builder.spawn_scoped(scope, || validate_bounded(schema, value));
        running.map_err(|_| failed())?.join().unwrap_or_else(|_| Err(failed()))
    })
}

fn validate_bounded(schema: &Value, value: &Value) -> Result<(), OutputError> {
    let bad = |error: &dyn fmt::Display| {
        OutputError::BadSchema(shorten(&error.to_string(), MAX_MESSAGE_CHARS))
    };
    let mut compiler = boon::Compiler::new();
    compiler.use_loader(Box::new(NoLoader));
    compiler.add_resource(SCHEMA_URL, schema.clone()).map_err(|error| bad(&error))?;
    let mut schemas = boon::Schemas::new();
    let index = compiler.compile(SCHEMA_URL, &mut schemas).map_err(|error| bad(&error))?;
    schema_cost::check(schema, value).map_err(|error| bad(&error))?;
    schemas.validate(value, index).map_err(|error| {
        let mut violations = Vec::new();
        collect_violations(&error, &mut violations);
        OutputError::Mismatch(violations)
    })
}

/// The name of the schema itself while it is compiled.
const SCHEMA_URL: &str = "urn:savoir:output-schema";

/// Refuses to load schemas that are not inside the schema of the skill.
struct NoLoader;

impl boon::UrlLoader for NoLoader {
    fn load(&self, url: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err(format!("it refers to {url}, and other schemas are not loaded").into())
    }
}

/// Collects the first errors that are not caused by a more specific error.
fn collect_violations(error: &boon::ValidationError<'_, '_>, violations: &mut Vec<Violation>) {
    if violations.len() >= MAX_VIOLATIONS {
        return;
    }
    if error.causes.is_empty() {
        violations.push(Violation {
            pointer: shorten(&error.instance_location.to_string(), MAX_MESSAGE_CHARS),
            // The message of a violation may quote the whole answer.
            message: shorten(&error.kind.to_string(), MAX_MESSAGE_CHARS),
        });
    }
    for cause in &error.causes {
        collect_violations(cause, violations);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn validate(kind: &str, schema: Value, text: &str) -> Result<Answer, OutputError> {
        validate_output(&Output { kind: kind.into(), schema: Some(schema) }, text)
    }

    #[test]
    fn every_violation_has_its_pointer() {
        let schema = json!({"type": "object", "required": ["verdict"], "properties": {
            "comments": {"type": "array", "items": {"type": "string"}}}});
        let good = validate("json", schema.clone(), "```json\n{\"verdict\": 1}\n```\n").unwrap();
        assert_eq!(good, Answer::Json(json!({"verdict": 1})));
        let error = validate("json", schema, r#"{"comments": ["a", 5, {}]}"#).unwrap_err();
        assert_eq!(error.code(), "output-mismatch");
        let OutputError::Mismatch(violations) = error else { panic!("{error}") };
        let mut pointers: Vec<_> = violations.iter().map(|found| found.pointer.as_str()).collect();
        pointers.sort_unstable();
        assert_eq!(pointers, ["", "/comments/1", "/comments/2"]);
    }

    #[test]
    fn violations_are_shortened() {
        let schema = json!({"allOf": vec![json!({"type": "string"}); 2_000]});
        let answer = json!(vec![1; 10_000]).to_string();
        let error = validate("json", schema, &answer).unwrap_err().to_string();
        assert!(error.len() < 4_000, "{}", error.len());
    }

    #[test]
    fn file_output_is_rejected_for_models() {
        let promised = |kind: &str| Output { kind: kind.into(), schema: Some(json!({})) };
        let answer = validate_answer(&promised("file"), "/etc/passwd").unwrap();
        assert_eq!(answer, Answer::Text("/etc/passwd".into()));
        let error = validate_answer(&promised("json"), "Sure!").unwrap_err();
        assert_eq!(error.code(), "output-not-json");
    }

    #[test]
    fn external_schemas_are_not_fetched() {
        for reference in
            ["http://127.0.0.1:1/x.json", "https://example.com/x", "file:///etc/passwd"]
        {
            let error = validate("json", json!({"$ref": reference}), "1").unwrap_err();
            assert_eq!(error.code(), "invalid-schema", "{reference}");
        }
        let inside = json!({"$defs": {"n": {"type": "number"}}, "$ref": "#/$defs/n"});
        assert!(validate("json", inside, "1").is_ok());
    }

    #[test]
    fn invalid_schema_is_an_error() {
        for schema in [
            json!({"type": "nothing"}),
            json!({"minimum": "x"}),
            json!("text"),
            json!({"pattern": "("}),
        ] {
            let error = validate("json", schema.clone(), "\"a\"").unwrap_err();
            assert_eq!(error.code(), "invalid-schema", "{schema}");
        }
    }

    #[test]
    fn hostile_schemas_end_with_an_error() {
        let loops = json!({"$ref": "#"});
        assert!(validate("json", loops.clone(), "\"a\"").is_err(), "{loops}");
        // A pattern that needs too much memory. In a debug build, the validator panics.
        let huge = json!({"pattern": format!("{}a{}", "(".repeat(4), "){1000}".repeat(4))});
        assert!(validate("json", huge.clone(), "\"a\"").is_err(), "{huge}");
        // A backtracking engine would need years for this pattern.
        let slow = json!({"pattern": "^(a+)+$"});
        let answer = format!("\"{}!\"", "a".repeat(10_000));
        assert_eq!(validate("json", slow, &answer).unwrap_err().code(), "output-mismatch");
    }

    #[test]
    fn each_type_is_read_its_own_way() {
        assert_eq!(validate("json", Value::Null, "{").unwrap_err().code(), "output-not-json");
        assert_eq!(validate("text", Value::Null, " a ").unwrap(), Answer::Text(" a ".into()));
        let short = json!({"type": "string", "maxLength": 3});
        assert_eq!(validate("text", short, "four").unwrap_err().code(), "output-mismatch");
        assert_eq!(validate("sound", Value::Null, "").unwrap_err().code(), "unknown-output-type");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.json");
        fs::write(&file, "[1]").unwrap();
        let path = file.to_str().unwrap();
        let schema = json!({"type": "array"});
        assert_eq!(
            validate("file", schema, &format!("{path}\n")).unwrap(),
            Answer::File(file.clone())
        );
        let object = json!({"type": "object"});
        assert_eq!(validate("file", object, path).unwrap_err().code(), "output-mismatch");
        let gone = folder.path().join("gone");
        let error = validate("file", Value::Null, gone.to_str().unwrap()).unwrap_err();
        assert_eq!(error.code(), "output-no-file");
    }
}
