//! Compares a result with the expected one.
//!
//! Objects are compared as subsets, arrays element by element, `warnings` as a set. The values of a
//! few keys must not have additional members, and some keys name a condition instead of a value.

use serde_json::{Map, Value};

/// Keys whose values must not have additional members.
const EXACT_KEYS: [&str; 4] = ["frontmatter", "extra", "parsed", "json"];

/// Whether `got` matches the expected value.
pub(super) fn matches(expected: &Value, got: &Value) -> bool {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            expected.iter().all(|(key, value)| key_matches(key, value, got))
        }
        (Value::Array(expected), Value::Array(got)) => {
            expected.len() == got.len()
                && expected.iter().zip(got).all(|(expected, got)| matches(expected, got))
        }
        // `serde_json` distinguishes floats from integers, as the vectors require.
        (expected, got) => expected == got,
    }
}

fn key_matches(key: &str, expected: &Value, got: &Map<String, Value>) -> bool {
    if let Some(holds) = condition(key, expected, got) {
        return holds;
    }
    match got.get(key) {
        Some(got) if EXACT_KEYS.contains(&key) => expected == got,
        Some(got) if key == "warnings" => contains_all(expected, got),
        Some(got) => matches(expected, got),
        None => false,
    }
}

fn contains_all(expected: &Value, got: &Value) -> bool {
    match (expected.as_array(), got.as_array()) {
        (Some(expected), Some(got)) => expected.iter().all(|code| got.contains(code)),
        _ => false,
    }
}

/// Whether the condition named by `key` is true; `None` if `key` names a value.
fn condition(key: &str, expected: &Value, got: &Map<String, Value>) -> Option<bool> {
    let message = || got.get("message").and_then(Value::as_str).unwrap_or_default();
    let output = || got.get("envelope").and_then(|it| it["output"].as_str()).unwrap_or_default();
    let text = || expected.as_str().unwrap_or_default();
    let counts = |length: usize| expected.as_u64() == Some(length as u64);
    let string = |key: &str| got.get(key).and_then(Value::as_str);
    Some(match key {
        "message_prefix" => message().starts_with(text()),
        "message_contains" => message().contains(text()),
        "output_starts_with" => output().starts_with(text()),
        "output_contains" => output().contains(text()),
        "output_ends_with" => output().ends_with(text()),
        "output_bytes" => counts(output().len()),
        "body_bytes" => string("body").is_some_and(|body| counts(body.len())),
        "description_chars" => {
            string("description").is_some_and(|text| counts(text.chars().count()))
        }
        "headers_present" => headers_present(expected, got.get("headers")),
        "detail_type" => got.get("json").is_some_and(|body| type_of(&body["detail"]) == text()),
        _ => return None,
    })
}

fn headers_present(expected: &Value, got: Option<&Value>) -> bool {
    let Some(got) = got.and_then(Value::as_object) else { return false };
    let present = |name: &str| got.keys().any(|key| key.eq_ignore_ascii_case(name));
    let wanted = expected.as_array().into_iter().flatten();
    wanted.into_iter().all(|name| name.as_str().is_some_and(present))
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(expected: &Value, got: &Value, outcome: bool) {
        assert_eq!(matches(expected, got), outcome, "{expected} and {got}");
    }

    #[test]
    fn objects_are_subsets_and_arrays_are_not() {
        let got = json!({"ok": true, "tools": [{"name": "a", "more": 1}], "x": null});
        check(&json!({"ok": true}), &got, true);
        check(&json!({"tools": [{"name": "a"}]}), &got, true);
        check(&json!({"tools": []}), &got, false);
        check(&json!({"tools": [{"name": "b"}]}), &got, false);
        check(&json!({"x": null}), &got, true);
        check(&json!({"y": null}), &got, false);
    }

    #[test]
    fn float_does_not_match_integer() {
        check(&json!(1), &json!(1.0), false);
        check(&json!({"a": 1.0}), &json!({"a": 1.0}), true);
        check(&json!("1"), &json!(1), false);
    }

    #[test]
    fn some_values_are_exact() {
        for key in EXACT_KEYS {
            let (less, more) =
                (json!({key: {"a": {"b": 1}}}), json!({key: {"a": {"b": 1, "c": 2}}}));
            check(&less, &more, false);
            check(&more, &json!({key: {"a": {"c": 2, "b": 1}}}), true);
            check(&json!({key: {}}), &json!({}), false);
        }
    }

    #[test]
    fn warnings_are_a_set() {
        let got = json!({"warnings": ["a", "b", "c"]});
        check(&json!({"warnings": ["c", "a"]}), &got, true);
        check(&json!({"warnings": []}), &got, true);
        check(&json!({"warnings": ["d"]}), &got, false);
        check(&json!({"warnings": []}), &json!({}), false);
    }

    #[test]
    fn conditions_look_at_another_key() {
        let got = json!({
            "message": "no such file", "body": "é", "description": "é",
            "envelope": {"output": "abc"}, "headers": {"X-Limit": "1"}, "json": {"detail": []}
        });
        for (key, good, bad) in [
            ("message_prefix", json!("no "), json!("file")),
            ("message_contains", json!("such"), json!("suck")),
            ("output_starts_with", json!("a"), json!("b")),
            ("output_contains", json!("b"), json!("d")),
            ("output_ends_with", json!("c"), json!("b")),
            ("output_bytes", json!(3), json!(2)),
            ("body_bytes", json!(2), json!(1)),
            ("description_chars", json!(1), json!(2)),
            ("headers_present", json!(["x-limit"]), json!(["x-other"])),
            ("detail_type", json!("array"), json!("object")),
        ] {
            check(&json!({key: good}), &got, true);
            check(&json!({key: bad}), &got, false);
            check(&json!({key: bad}), &json!({}), false);
        }
    }
}
