//! Builds the HTTP request.

use reqwest::{
    Method, Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde_json::{Map, Value};

use super::{NodeError, RequestError};
use crate::workflow::{
    limits,
    scope::{PlaceholderValue, Scope, text_of},
    template::{self, TemplatePart, TextBudget},
};

/// Headers that the HTTP client sets. Those of the user are ignored.
const CLIENT_HEADERS: [&str; 11] = [
    "host", "content-length", "transfer-encoding", "connection", "keep-alive",
    "proxy-authorization", "proxy-connection", "te", "trailer", "upgrade", "expect",
];

/// A body with its default content type.
pub(super) struct Body {
    pub(super) text: String,
    pub(super) kind: Option<&'static str>,
}

/// Parses the method.
pub(super) fn method(name: &str) -> Result<Method, NodeError> {
    match name.to_ascii_uppercase().as_str() {
        "GET" => Ok(Method::GET),
        "POST" => Ok(Method::POST),
        "PUT" => Ok(Method::PUT),
        "DELETE" => Ok(Method::DELETE),
        _ => Err(NodeError::failed("HTTP method not supported")),
    }
}

/// The part of a URL that contains a placeholder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UrlPart {
    /// The scheme and host.
    Origin,
    Path,
    /// The query or the fragment.
    Query,
}

impl UrlPart {
    /// Returns the part of a URL that follows this text.
    fn of(before: &str) -> Self {
        let Some((_, after)) = before.split_once("://") else { return Self::Origin };
        match after.find(['/', '?', '#', '\\']) {
            None => Self::Origin,
            Some(at) if after[at..].contains(['?', '#']) => Self::Query,
            Some(_) => Self::Path,
        }
    }
}

/// Inserts values into a URL, encoded for each part. A value can neither choose the host nor change
/// the structure of path, query and fragment.
fn fill_url(text: &str, scope: &Scope<'_>) -> Result<String, NodeError> {
    let (mut filled, mut budget) = (String::new(), TextBudget::default());
    for part in template::parts(text) {
        let added = match part {
            TemplatePart::Text(text) => text.to_owned(),
            TemplatePart::Placeholder { whole, path } => match scope.find(path) {
                None => whole.to_owned(),
                Some(_) if UrlPart::of(&filled) == UrlPart::Origin => {
                    return Err(NodeError::failed(ORIGIN_FROM_VALUE));
                }
                Some(found) => encode(&found.text()),
            },
        };
        budget.take(&added)?;
        filled.push_str(&added);
    }
    let path = filled.split(['?', '#']).next().unwrap_or_default();
    // Servers interpret `..` as the parent folder, even if it is encoded.
    let leaves = |step: &str| matches!(step.to_ascii_lowercase().as_str(), "." | "..");
    if template::parts(text).count() > 1 && path.split('/').any(leaves) {
        return Err(NodeError::failed(STEP_FROM_VALUE));
    }
    Ok(filled)
}

/// The error for an address whose host comes from a value.
const ORIGIN_FROM_VALUE: &str =
    "A value cannot choose the host of a request; write the host into the URL";
/// The error for a value that would leave the path.
const STEP_FROM_VALUE: &str = "A value cannot be `.` or `..` in the path of a URL";

/// Percent-encodes everything but letters, digits and `-._~`.
fn encode(text: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            // Writing into a string does not fail.
            _ => drop(write!(encoded, "%{byte:02X}")),
        }
    }
    encoded
}

/// Parses the URL with inserted values. The result is used for the check and for the request.
pub(super) fn url(text: &str, scope: &Scope<'_>) -> Result<Url, RequestError> {
    let filled = fill_url(text, scope)?;
    let text = filled.trim();
    if text.is_empty() {
        return Err(NodeError::failed("URL is required").into());
    }
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    if !matches!(scheme.as_deref(), Some("http" | "https")) {
        return Err(NodeError::failed("Only http:// and https:// URLs are allowed").into());
    }
    // The URL parser would interpret the first part of the path as the host.
    let after = text.split_once("://").map_or("", |(_, after)| after);
    if after.is_empty() || after.starts_with(['/', '\\', '?', '#', ':']) {
        return Err(NodeError::failed("URL host is required").into());
    }
    if text.len() > limits::MAX_URL_BYTES {
        let most = limits::MAX_URL_BYTES;
        return Err(RequestError::unsent(format!("the URL is longer than {most} bytes")));
    }
    match Url::parse(text) {
        Ok(url) if url.has_host() => Ok(url),
        Ok(_) | Err(url::ParseError::EmptyHost) => {
            Err(NodeError::failed("URL host is required").into())
        }
        Err(error) => Err(RequestError::unsent(format!("the URL is not valid: {error}"))),
    }
}

/// Builds the headers with inserted values.
pub(super) fn headers(
    declared: &Map<String, Value>,
    scope: &Scope<'_>,
) -> Result<HeaderMap, RequestError> {
    if declared.len() > limits::MAX_HEADERS {
        let most = limits::MAX_HEADERS;
        return Err(RequestError::unsent(format!("there are more than {most} headers")));
    }
    let (mut headers, mut budget) = (HeaderMap::new(), TextBudget::default());
    for (name, value) in declared {
        let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| {
            let name = name.escape_debug();
            RequestError::unsent(format!("`{name}` cannot be the name of a header"))
        })?;
        if CLIENT_HEADERS.contains(&name.as_str()) {
            continue;
        }
        let value = template::fill_within(&text_of(value), scope, &mut budget)?;
        // Rejects line feeds and other control characters.
        let value = HeaderValue::from_str(value.trim()).map_err(|_| {
            let problem = "has a line feed or another control character";
            RequestError::unsent(format!("the value of the header `{name}` {problem}"))
        })?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Builds the body: an object as JSON, a text unchanged. In a text that is JSON, values are
/// inserted as JSON.
pub(super) fn body(declared: &Value, scope: &Scope<'_>) -> Result<Option<Body>, NodeError> {
    match declared {
        Value::Object(members) => {
            let mut budget = TextBudget::default();
            let members = members
                .iter()
                .map(|(name, value)| Ok((name.clone(), fill_json(value, scope, &mut budget)?)));
            let members: Map<String, Value> = members.collect::<Result<_, NodeError>>()?;
            let text = Value::from(members).to_string();
            Ok(Some(Body { text, kind: Some("application/json") }))
        }
        Value::String(text) if is_json(text) => {
            Ok(Some(Body { text: fill_json_text(text, scope)?, kind: None }))
        }
        Value::String(text) if !text.trim().is_empty() => {
            Ok(Some(Body { text: template::fill(text, scope)?, kind: None }))
        }
        _ => Ok(None),
    }
}

/// Inserts values into a JSON value. A text that is only a placeholder becomes the value itself.
fn fill_json(
    value: &Value,
    scope: &Scope<'_>,
    budget: &mut TextBudget,
) -> Result<Value, NodeError> {
    Ok(match value {
        Value::String(text) => match template::placeholder(text) {
            Some(path) if is_placeholder(text) => match scope.find(path) {
                Some(PlaceholderValue::Value(found)) => {
                    budget.take(&text_of(found))?;
                    found.clone()
                }
                _ => template::fill_within(text, scope, budget)?.into(),
            },
            _ => template::fill_within(text, scope, budget)?.into(),
        },
        Value::Array(items) => {
            let items = items.iter().map(|item| fill_json(item, scope, budget));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, member)| Ok((name.clone(), fill_json(member, scope, budget)?)));
            Value::Object(members.collect::<Result<_, NodeError>>()?)
        }
        other => other.clone(),
    })
}

/// Whether a text with placeholders is meant to be a JSON object or list.
fn is_json(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with('[') || (text.starts_with('{') && template::placeholder(text).is_none())
}

/// Whether a text is exactly one placeholder.
fn is_placeholder(text: &str) -> bool {
    template::placeholder(text).is_some_and(|path| path.len() + 4 == text.len())
}

/// Inserts values into a JSON text: inside quotes as part of the string, elsewhere as a JSON value.
fn fill_json_text(text: &str, scope: &Scope<'_>) -> Result<String, NodeError> {
    let (mut filled, mut budget) = (String::new(), TextBudget::default());
    let mut quotes = JsonQuotes::default();
    for part in template::parts(text) {
        let added = match part {
            TemplatePart::Text(text) => {
                quotes.read(text);
                text.to_owned()
            }
            TemplatePart::Placeholder { whole, path } => match scope.find(path) {
                None => whole.to_owned(),
                Some(found) if quotes.open => {
                    let quoted = Value::from(found.text().into_owned()).to_string();
                    quoted[1..quoted.len() - 1].to_owned()
                }
                Some(PlaceholderValue::Text(text)) => Value::from(text).to_string(),
                Some(PlaceholderValue::Value(value)) => value.to_string(),
            },
        };
        budget.take(&added)?;
        filled.push_str(&added);
    }
    Ok(filled)
}

/// Tracks whether a position in a JSON text is inside a string.
#[derive(Default)]
struct JsonQuotes {
    open: bool,
    escaped: bool,
}

impl JsonQuotes {
    fn read(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                _ if self.escaped => self.escaped = false,
                '\\' if self.open => self.escaped = true,
                '"' => self.open = !self.open,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with_scope<T>(check: impl FnOnce(&Scope<'_>) -> T) -> T {
        let outputs = json!({
            "n": "a\r\nX-Evil: 1", "id": 7, "up": "../../admin?x=1#f", "dots": "..",
        });
        let outputs = outputs.as_object().cloned().unwrap();
        check(&Scope::new("in put", &outputs, &Map::new()))
    }

    fn read(text: &str) -> Result<String, String> {
        with_scope(|scope| {
            url(text, scope).map(|url| url.to_string()).map_err(RequestError::into_text)
        })
    }

    #[test]
    fn addresses() {
        assert_eq!(read(" https://a.example/{{id.output}} ").unwrap(), "https://a.example/7");
        assert_eq!(read("HTTP://a.example?q={{input}}").unwrap(), "http://a.example/?q=in%20put");
        assert_eq!(
            read("https://a.example/v1/{{up.output}}/x?q={{up.output}}#{{input}}").unwrap(),
            "https://a.example/v1/..%2F..%2Fadmin%3Fx%3D1%23f/x?q=..%2F..%2Fadmin%3Fx%3D1%23f#in%20put"
        );
        for (text, expected) in [
            ("http://{{input}}/p", ORIGIN_FROM_VALUE),
            ("{{input}}", ORIGIN_FROM_VALUE),
            ("http://a.example{{input}}", ORIGIN_FROM_VALUE),
            ("http://{{input}}@a.example/", ORIGIN_FROM_VALUE),
            ("http://a.example/{{dots.output}}/x", STEP_FROM_VALUE),
            ("", "URL is required"),
            ("  ", "URL is required"),
            ("ftp://a.example", "Only http:// and https:// URLs are allowed"),
            ("file:///etc/passwd", "Only http:// and https:// URLs are allowed"),
            ("a.example", "Only http:// and https:// URLs are allowed"),
            ("http:a.example", "Only http:// and https:// URLs are allowed"),
            ("javascript:alert(1)//http://", "Only http:// and https:// URLs are allowed"),
            ("http://", "URL host is required"),
            ("http:///path", "URL host is required"),
            ("http://:80/", "URL host is required"),
            ("http://?x", "URL host is required"),
            ("http://user@/", "URL host is required"),
            ("http://a.example:99999/", "HTTP request failed"),
            ("http://[::1/", "HTTP request failed"),
        ] {
            assert_eq!(read(text), Err(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn headers_with_line_feeds_are_rejected() {
        let read = |declared: Value| {
            with_scope(|scope| headers(declared.as_object().unwrap(), scope).map_err(|_| ()))
        };
        let headers =
            read(json!({"X-A": "{{id.output}}", "Host": "b", "content-LENGTH": 5, "N": 1}));
        let headers = headers.unwrap();
        let names: Vec<_> =
            headers.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        assert_eq!(names, ["x-a=\"7\"", "n=\"1\""]);
        for bad in [
            json!({"X-A": "{{n.output}}"}),
            json!({"X A": "1"}),
            json!({"": "1"}),
            json!({"a\n": 1, "b\0": 2}),
        ] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn bodies() {
        let read = |declared: Value| {
            with_scope(|scope| body(&declared, scope).unwrap().map(|body| (body.text, body.kind)))
        };
        let json = read(json!({"a": "{{id.output}}", "n": 5, "l": [1], "x": null}));
        assert_eq!(
            json.unwrap(),
            (r#"{"a":7,"n":5,"l":[1],"x":null}"#.into(), Some("application/json"))
        );
        let nested =
            read(json!({"o": {"t": "id {{id.output}}", "q": "{{input}}"}, "n": "{{n.output}}"}));
        assert_eq!(nested.unwrap().0, r#"{"o":{"t":"id 7","q":"in put"},"n":"a\r\nX-Evil: 1"}"#);
        let text =
            read(json!(r#"{"s": "x {{n.output}}", "v": {{id.output}}, "t": {{input}}, "\"": 1}"#));
        assert_eq!(text.unwrap().0, r#"{"s": "x a\r\nX-Evil: 1", "v": 7, "t": "in put", "\"": 1}"#);
        assert_eq!(read(json!("q={{id.output}}")), Some(("q=7".into(), None)));
        assert_eq!(read(json!({})).unwrap().0, "{}");
        for nothing in [json!(""), json!(" \n"), json!(null), json!(5), json!([1])] {
            assert!(read(nothing).is_none());
        }
    }

    #[test]
    fn body_members_share_one_size_limit() {
        let (none, long) = (Map::new(), "x".repeat(1 << 20));
        let scope = Scope::new(&long, &none, &none);
        let members = |count: usize| -> Map<String, Value> {
            (0..count).map(|at| (format!("m{at}"), json!("{{input}}"))).collect()
        };
        assert!(body(&members(4).into(), &scope).is_ok());
        assert!(body(&members(5).into(), &scope).is_err());
        assert!(headers(&members(5), &scope).is_err());
    }

    #[test]
    fn four_methods() {
        for name in ["GET", "post", "Put", "DELETE"] {
            assert!(method(name).is_ok());
        }
        for name in ["PATCH", "HEAD", "", "GET /"] {
            assert!(method(name).is_err());
        }
    }
}
