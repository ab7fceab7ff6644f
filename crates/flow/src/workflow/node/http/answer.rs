//! Reads the HTTP response.

use reqwest::Response;
use serde_json::{Map, Value, json};

use crate::workflow::limits;

/// Reads the body up to the limit; returns whether it was truncated.
pub(super) async fn read(mut response: Response) -> Result<(String, bool), reqwest::Error> {
    let mut bytes = Vec::new();
    while bytes.len() <= limits::MAX_RESPONSE_BYTES
        && let Some(chunk) = response.chunk().await?
    {
        bytes.extend_from_slice(&chunk);
    }
    let cut = bytes.len() > limits::MAX_RESPONSE_BYTES;
    bytes.truncate(limits::MAX_RESPONSE_BYTES);
    Ok((String::from_utf8_lossy(&bytes).into_owned(), cut))
}

/// Returns the status and the headers of a response.
pub(super) fn details(response: &Response) -> Value {
    let mut headers = Map::new();
    for (name, value) in response.headers().iter().take(limits::MAX_HEADERS) {
        if let Ok(value) = value.to_str()
            && value.len() <= limits::MAX_HEADER_BYTES
        {
            headers.insert(name.as_str().to_owned(), value.into());
        }
    }
    json!({"status": response.status().as_u16(), "headers": headers})
}

/// Returns a part of a JSON response: names of members and indexes of elements, separated by dots.
/// A missing part is an empty text.
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
    fn parts_of_json_responses() {
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
