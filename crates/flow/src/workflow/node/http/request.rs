//! Builds the HTTP request.

use reqwest::{
    Method, Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde_json::{Map, Value};

use super::{FAILED, NodeError};
use crate::workflow::{
    limits,
    scope::{Scope, text_of},
    template::{self, TextBudget},
};

/// Headers that belong to the connection. They are ours to set, so they are passed over.
const OURS: [&str; 11] = [
    "host", "content-length", "transfer-encoding", "connection", "keep-alive",
    "proxy-authorization", "proxy-connection", "te", "trailer", "upgrade", "expect",
];

/// A body, with the type that it has if nothing else is said.
pub(super) struct Body {
    pub(super) text: String,
    pub(super) kind: Option<&'static str>,
}

/// The method.
pub(super) fn method(name: &str) -> Result<Method, NodeError> {
    match name.to_ascii_uppercase().as_str() {
        "GET" => Ok(Method::GET),
        "POST" => Ok(Method::POST),
        "PUT" => Ok(Method::PUT),
        "DELETE" => Ok(Method::DELETE),
        _ => Err(NodeError::failed("HTTP method not supported")),
    }
}

/// The address, read once: what is judged is what is asked.
pub(super) fn url(text: &str, scope: &Scope<'_>) -> Result<Url, NodeError> {
    let filled = template::fill(text, scope)?;
    let text = filled.trim();
    if text.is_empty() {
        return Err(NodeError::failed("URL is required"));
    }
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    if !matches!(scheme.as_deref(), Some("http" | "https")) {
        return Err(NodeError::failed("Only http:// and https:// URLs are allowed"));
    }
    // The reader of addresses would take the first word of the path for the host.
    let after = text.split_once("://").map_or("", |(_, after)| after);
    if after.is_empty() || after.starts_with(['/', '\\', '?', '#', ':']) {
        return Err(NodeError::failed("URL host is required"));
    }
    if text.len() > limits::MAX_URL_BYTES {
        return Err(NodeError::failed(FAILED));
    }
    match Url::parse(text) {
        Ok(url) if url.has_host() => Ok(url),
        Ok(_) | Err(url::ParseError::EmptyHost) => Err(NodeError::failed("URL host is required")),
        Err(_) => Err(NodeError::failed(FAILED)),
    }
}

/// The headers.
pub(super) fn headers(
    declared: &Map<String, Value>,
    scope: &Scope<'_>,
) -> Result<HeaderMap, NodeError> {
    if declared.len() > limits::MAX_HEADERS {
        return Err(NodeError::failed(FAILED));
    }
    let (mut headers, mut budget) = (HeaderMap::new(), TextBudget::default());
    for (name, value) in declared {
        let name = HeaderName::from_bytes(name.trim().as_bytes())
            .map_err(|_| NodeError::failed(FAILED))?;
        if OURS.contains(&name.as_str()) {
            continue;
        }
        let value = template::fill_within(&text_of(value), scope, &mut budget)?;
        // Refuses line feeds and other control characters.
        let value = HeaderValue::from_str(value.trim()).map_err(|_| NodeError::failed(FAILED))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// The body: an object as JSON with texts, a text as it is.
pub(super) fn body(declared: &Value, scope: &Scope<'_>) -> Result<Option<Body>, NodeError> {
    match declared {
        Value::Object(members) => {
            let mut budget = TextBudget::default();
            let members = members.iter().map(|(name, value)| {
                let text = template::fill_within(&text_of(value), scope, &mut budget)?;
                Ok((name.clone(), Value::from(text)))
            });
            let members: Map<String, Value> = members.collect::<Result<_, NodeError>>()?;
            let text = Value::from(members).to_string();
            Ok(Some(Body { text, kind: Some("application/json") }))
        }
        Value::String(text) if !text.trim().is_empty() => {
            Ok(Some(Body { text: template::fill(text, scope)?, kind: None }))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with_scope<T>(check: impl FnOnce(&Scope<'_>) -> T) -> T {
        let outputs = json!({"n": "a\r\nX-Evil: 1", "id": 7}).as_object().cloned().unwrap();
        check(&Scope::new("in put", &outputs, &Map::new()))
    }

    fn read(text: &str) -> Result<String, String> {
        with_scope(|scope| match url(text, scope) {
            Ok(url) => Ok(url.to_string()),
            Err(NodeError::Failed(text)) => Err(text),
            Err(NodeError::Gone) => panic!("nobody was there"),
        })
    }

    #[test]
    fn addresses() {
        assert_eq!(read(" https://a.example/{{id.output}} ").unwrap(), "https://a.example/7");
        assert_eq!(read("HTTP://a.example?q={{input}}").unwrap(), "http://a.example/?q=in%20put");
        for (text, expected) in [
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
            ("http://a.example:99999/", FAILED),
            ("http://[::1/", FAILED),
        ] {
            assert_eq!(read(text), Err(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn headers_carry_no_second_line() {
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
            (r#"{"a":"7","n":"5","l":"[1]","x":""}"#.into(), Some("application/json"))
        );
        assert_eq!(read(json!("q={{id.output}}")), Some(("q=7".into(), None)));
        assert_eq!(read(json!({})).unwrap().0, "{}");
        for nothing in [json!(""), json!(" \n"), json!(null), json!(5), json!([1])] {
            assert!(read(nothing).is_none());
        }
    }

    #[test]
    fn many_members_share_one_bound() {
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
