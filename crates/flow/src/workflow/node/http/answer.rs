//! Reads the HTTP response.

use reqwest::Response;
use serde_json::Value;

use crate::workflow::limits;

/// The text of an answer, up to the limit.
pub(super) async fn read(mut response: Response) -> Result<String, reqwest::Error> {
    let mut bytes = Vec::new();
    while bytes.len() < limits::MAX_RESPONSE_BYTES
        && let Some(chunk) = response.chunk().await?
    {
        let budget = limits::MAX_RESPONSE_BYTES - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(budget)]);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A part of a JSON answer: names of members and numbers of elements, with dots between them. What
/// is not there is an empty text.
pub(super) fn part(text: &str, path: &str) -> Value {
    let answer: Option<Value> = serde_json::from_str(text).ok();
    let found = answer.as_ref().and_then(|answer| {
        path.split('.').try_fold(answer, |value, step| match value {
            Value::Object(members) => members.get(step),
            Value::Array(elements) => elements.get(step.parse::<usize>().ok()?),
            _ => None,
        })
    });
    found.cloned().unwrap_or_else(|| Value::from(""))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_of_answers() {
        let text = r#"{"a": [{"b": "x"}, 5], "0": {"c": null}}"#;
        for (path, expected) in [
            ("a.0.b", json!("x")),
            ("a.1", json!(5)),
            ("a", json!([{"b": "x"}, 5])),
            ("0.c", json!(null)),
            ("a.2", json!("")),
            ("a.-1", json!("")),
            ("a.0.b.c", json!("")),
            ("", json!("")),
            ("x", json!("")),
        ] {
            assert_eq!(part(text, path), expected, "{path}");
        }
        assert_eq!(part("no JSON", "a"), json!(""));
    }
}
