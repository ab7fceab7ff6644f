//! Reads the `data` member of a node, with defaults for missing or invalid values.

use serde_json::{Map, Value};

use super::{Code, Http, Llm, NodeKind};

/// The default system prompt of a node.
const SYSTEM_PROMPT: &str = "You are a helpful assistant.";

const TEMPERATURE: f64 = 0.7;
/// The range that providers accept.
const TEMPERATURES: (f64, f64) = (0.0, 2.0);

const TIMEOUT_RANGE_SECONDS: (u64, u64) = (1, 30);
const HTTP_SECONDS: u64 = 10;
const CODE_SECONDS: u64 = 30;

const MEBIBYTES: (u64, u64) = (64, 512);
const CODE_MEBIBYTES: u64 = 256;

/// Returns the node kind of a type name; `None` if there is no such type. Adds a warning for each
/// setting that is not used as written.
pub(super) fn work(
    kind: &str,
    data: &Map<String, Value>,
    warnings: &mut Vec<String>,
) -> Option<NodeKind> {
    Some(match kind {
        "start" => NodeKind::Start { variable: name(data, "inputVariable") },
        "llm" => NodeKind::Llm(llm(data, warnings)),
        "knowledge" => NodeKind::Knowledge { base: name(data, "knowledgeBaseId") },
        "condition" => NodeKind::Condition { expression: expression(data) },
        "skill" => NodeKind::Skill { name: name(data, "skillName"), mappings: mappings(data) },
        "http" => NodeKind::Http(http(data, warnings)),
        "code" => NodeKind::Code(Code {
            code: text(data, "code").unwrap_or_default().to_owned(),
            seconds: number(data, "timeoutSeconds", TIMEOUT_RANGE_SECONDS, CODE_SECONDS, warnings),
            mebibytes: number(data, "memoryLimitMb", MEBIBYTES, CODE_MEBIBYTES, warnings),
            variables: object(data, "env"),
        }),
        "end" => NodeKind::End,
        _ => return None,
    })
}

fn llm(data: &Map<String, Value>, warnings: &mut Vec<String>) -> Llm {
    let (least, most) = TEMPERATURES;
    let wanted = data.get("temperature").and_then(Value::as_f64);
    let temperature = wanted.map_or(TEMPERATURE, |wanted| wanted.clamp(least, most));
    warn_if_changed(data, "temperature", wanted, temperature, TEMPERATURES, warnings);
    Llm {
        system_prompt: text(data, "systemPrompt").unwrap_or(SYSTEM_PROMPT).to_owned(),
        temperature,
        model: name(data, "model"),
        skill: name(data, "skillName"),
        mappings: mappings(data),
        history: data.get("inheritChatHistory").and_then(Value::as_bool).unwrap_or_default(),
    }
}

fn mappings(data: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mappings = data.get("inputMappings").and_then(Value::as_object);
    mappings.filter(|mappings| !mappings.is_empty()).cloned()
}

fn http(data: &Map<String, Value>, warnings: &mut Vec<String>) -> Http {
    Http {
        method: name(data, "method").unwrap_or_else(|| "GET".to_owned()),
        url: text(data, "url").unwrap_or_default().to_owned(),
        headers: object(data, "headers"),
        body: data.get("body").cloned().unwrap_or_default(),
        seconds: number(data, "timeoutSeconds", TIMEOUT_RANGE_SECONDS, HTTP_SECONDS, warnings),
        response_path: name(data, "responsePath"),
    }
}

/// Some editors write a boolean instead of a text.
fn expression(data: &Map<String, Value>) -> String {
    match data.get("expression") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(value)) => value.to_string(),
        _ => "true".to_owned(),
    }
}

fn text<'a>(data: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    data.get(name)?.as_str()
}

/// Returns a text without surrounding spaces; `None` if it is empty.
fn name(data: &Map<String, Value>, name: &str) -> Option<String> {
    text(data, name).map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn object(data: &Map<String, Value>, name: &str) -> Map<String, Value> {
    data.get(name).and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Returns an integer clamped to a range. Forms may send numbers as texts.
fn number(
    data: &Map<String, Value>,
    name: &str,
    (least, most): (u64, u64),
    default: u64,
    warnings: &mut Vec<String>,
) -> u64 {
    let wanted = match data.get(name) {
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => text.trim().parse::<f64>().ok(),
        _ => None,
    };
    let wanted = wanted.filter(|number| number.is_finite());
    // The range is small, so the conversions are exact.
    #[expect(clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "within bounds")]
    {
        let (least, most) = (least as f64, most as f64);
        let used = wanted.map_or(default, |number| number.clamp(least, most) as u64);
        warn_if_changed(data, name, wanted, used as f64, (least, most), warnings);
        used
    }
}

/// Adds a warning if a setting is there, and another value is used. An empty field of a form is not
/// there.
fn warn_if_changed(
    data: &Map<String, Value>,
    name: &str,
    wanted: Option<f64>,
    used: f64,
    (least, most): (f64, f64),
    warnings: &mut Vec<String>,
) {
    let written = data.get(name).unwrap_or(&Value::Null);
    let is_empty = written.is_null() || written.as_str().is_some_and(|text| text.trim().is_empty());
    if is_empty || wanted == Some(used) {
        return;
    }
    let written = written.to_string();
    let shown: String = written.chars().take(SHOWN_CHARS).collect();
    warnings.push(format!(
        "`{name}` is {shown}, and {used} is used instead; write a number from {least} to {most}"
    ));
}

/// Maximum characters of a value in a warning.
const SHOWN_CHARS: usize = 40;
