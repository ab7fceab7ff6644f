//! Serves the API reference: as an OpenAPI document and as an HTML page.

use std::{collections::BTreeMap, fmt::Write as _, sync::OnceLock};

use axum::{
    Router,
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::openapi;
use crate::{
    app::App,
    pages::{self, escape},
};

pub(super) fn router() -> Router<App> {
    Router::new().route("/openapi.json", get(document)).route("/docs", get(docs))
}

/// How long browsers may cache the reference: it only changes with the program.
const CACHE_CONTROL_VALUE: &str = "public, max-age=300";

async fn document() -> Response {
    static BYTES: OnceLock<Bytes> = OnceLock::new();
    let bytes = BYTES.get_or_init(|| serde_json::to_vec(&openapi()).unwrap_or_default().into());
    let headers =
        [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, CACHE_CONTROL_VALUE)];
    (headers, bytes.clone()).into_response()
}

async fn docs() -> Response {
    static BYTES: OnceLock<Bytes> = OnceLock::new();
    let html = BYTES.get_or_init(|| {
        let document = serde_json::to_value(openapi()).unwrap_or_default();
        pages::html("Savoir over HTTP", &Reference(&document).render()).into()
    });
    pages::answer(StatusCode::OK, CACHE_CONTROL_VALUE, html.clone())
}

/// Maximum depth of a sample body, because a schema may contain itself.
const MAX_DEPTH: usize = 10;

/// An OpenAPI document.
struct Reference<'a>(&'a Value);

/// One route.
struct Operation<'a> {
    method: String,
    path: &'a str,
    value: &'a Value,
}

impl<'a> Reference<'a> {
    fn render(&self) -> String {
        let groups = self.groups();
        let mut html = String::from(
            "<p>The same as a document for programs: <a href=\"/openapi.json\">openapi.json</a>. \
             In the examples <code>$SAVOIR</code> is where this server is, such as \
             <code>http://127.0.0.1:7878</code>, and <code>$TOKEN</code> is what logging in gave \
             you.</p>\n<ul>\n",
        );
        for tag in groups.keys() {
            // Writing into a string does not fail.
            let _ = writeln!(html, "<li><a href=\"#{0}\">{0}</a></li>", escape(tag));
        }
        html.push_str("</ul>\n");
        for (tag, operations) in &groups {
            let _ = writeln!(html, "<h2 id=\"{0}\">{0}</h2>", escape(tag));
            for operation in operations {
                self.operation(&mut html, operation);
            }
        }
        html
    }

    /// The routes, grouped by tag.
    fn groups(&self) -> BTreeMap<&'a str, Vec<Operation<'a>>> {
        let mut groups: BTreeMap<&str, Vec<Operation<'_>>> = BTreeMap::new();
        for (path, methods) in members(&self.0["paths"]) {
            for (method, value) in members(methods) {
                let tag = value["tags"][0].as_str().unwrap_or("other");
                let method = method.to_uppercase();
                groups.entry(tag).or_default().push(Operation { method, path, value });
            }
        }
        groups
    }

    fn operation(&self, html: &mut String, operation: &Operation<'_>) {
        let Operation { method, path, value } = operation;
        let _ = writeln!(html, "<h3><code>{method} {}</code></h3>", escape(path));
        for about in ["summary", "description"] {
            if let Some(text) = value[about].as_str() {
                let _ = writeln!(html, "<p>{}</p>", prose(text));
            }
        }
        let sample = self.body(value);
        let _ = writeln!(html, "<pre>{}</pre>", escape(&curl(operation, sample.as_ref())));
        html.push_str("<details><summary>Parameters and answers</summary>\n<table>\n");
        for parameter in value["parameters"].as_array().into_iter().flatten() {
            let text = |key: &str| escape(parameter[key].as_str().unwrap_or_default());
            let (name, place, about) = (text("name"), text("in"), text("description"));
            let _ =
                writeln!(html, "<tr><td><code>{name}</code></td><td>{place}: {about}</td></tr>");
        }
        for (status, answer) in members(&value["responses"]) {
            let about = prose(answer["description"].as_str().unwrap_or_default());
            let shape = self.answer(answer);
            let _ = writeln!(html, "<tr><td>{}</td><td>{about}{shape}</td></tr>", escape(status));
        }
        html.push_str("</table>\n</details>\n");
    }

    /// A sample of the request body of a route, with its media type.
    fn body(&self, operation: &Value) -> Option<(String, Value)> {
        let (kind, content) = members(&operation["requestBody"]["content"]).next()?;
        Some((kind.clone(), self.sample(&content["schema"], MAX_DEPTH)))
    }

    fn answer(&self, answer: &Value) -> String {
        let Some((kind, content)) = members(&answer["content"]).next() else {
            return String::new();
        };
        if kind != "application/json" {
            return format!("<div><code>{}</code></div>", escape(kind));
        }
        let sample = self.sample(&content["schema"], MAX_DEPTH);
        let text = serde_json::to_string_pretty(&sample).unwrap_or_default();
        format!("<pre>{}</pre>", escape(&text))
    }

    /// A sample value for a schema.
    fn sample(&self, schema: &Value, depth: usize) -> Value {
        if depth == 0 {
            return Value::Null;
        }
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
            return self.sample(&self.0["components"]["schemas"][name], depth - 1);
        }
        for choice in ["oneOf", "anyOf", "allOf"] {
            let mut choices = schema[choice].as_array().into_iter().flatten();
            if let Some(first) = choices.find(|choice| choice["type"] != "null") {
                return self.sample(first, depth - 1);
            }
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.first(),
            kind => Some(kind),
        };
        match kind.and_then(Value::as_str) {
            Some("object") => self.sample_object(schema, depth),
            Some("array") => json!([self.sample(&schema["items"], depth - 1)]),
            Some("string") => json!("…"),
            Some("integer") => json!(1),
            Some("number") => json!(0.5),
            Some("boolean") => json!(true),
            _ => Value::Null,
        }
    }

    fn sample_object(&self, schema: &Value, depth: usize) -> Value {
        let properties = members(&schema["properties"]);
        let mut object: Map<String, Value> = properties
            .map(|(name, schema)| (name.clone(), self.sample(schema, depth - 1)))
            .collect();
        if schema["additionalProperties"].is_object() {
            let value = self.sample(&schema["additionalProperties"], depth - 1);
            object.insert("…".to_owned(), value);
        }
        Value::Object(object)
    }
}

/// A text as HTML, with `code` for backticks.
fn prose(text: &str) -> String {
    let escaped = escape(text);
    let parts = escaped.split('`').enumerate();
    parts
        .map(|(at, part)| match at % 2 {
            0 => part.to_owned(),
            _ => format!("<code>{part}</code>"),
        })
        .collect()
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// A curl command for a route.
fn curl(operation: &Operation<'_>, body: Option<&(String, Value)>) -> String {
    let Operation { method, path, value } = operation;
    let mut command = String::from("curl");
    if value["responses"]["200"]["content"]["text/event-stream"].is_object() {
        command.push_str(" -N");
    }
    if method != "GET" && !(method == "POST" && body.is_some()) {
        let _ = write!(command, " -X {method}");
    }
    let path = path.replace('{', "$").replace('}', "");
    let _ = write!(command, " \"$SAVOIR{path}\"");
    if value["security"].is_array() {
        command.push_str(" \\\n  -H \"Authorization: Bearer $TOKEN\"");
    }
    match body {
        Some((kind, sample)) if kind == "application/json" => {
            let _ =
                write!(command, " \\\n  -H 'Content-Type: application/json' \\\n  -d '{sample}'");
        }
        Some((kind, _)) if kind == "application/x-www-form-urlencoded" => {
            command.push_str(" \\\n  --data-urlencode 'input=…'");
        }
        Some((kind, _)) if kind == "multipart/form-data" => {
            command.push_str(" \\\n  -F file=@notes.md");
        }
        _ => {}
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_shown() {
        let document = serde_json::to_value(openapi()).unwrap();
        let html = Reference(&document).render();
        for (path, methods) in members(&document["paths"]) {
            for (method, _) in members(methods) {
                let head = format!("<code>{} {path}</code>", method.to_uppercase());
                assert!(html.contains(&head), "{head}");
            }
        }
        assert!(html.contains("curl -X DELETE &quot;$SAVOIR/api/v1/skills/$name&quot;"));
        assert!(html.contains("curl -N &quot;$SAVOIR/api/v1/skills/$name/run&quot;"));
        assert!(!html.contains("<script"));
    }

    #[test]
    fn code_in_prose() {
        assert_eq!(prose("a `<b>` c"), "a <code>&lt;b&gt;</code> c");
    }

    #[test]
    fn recursive_schema_terminates() {
        let document = json!({"components": {"schemas": {
            "Tree": {"type": "object", "properties": {"child": {"$ref": "#/components/schemas/Tree"}}}
        }}});
        let sample = Reference(&document).sample(&json!({"$ref": "x/Tree"}), MAX_DEPTH);
        assert!(sample["child"]["child"].is_object());
    }
}
