//! Resolves the values of placeholders.

use std::borrow::Cow;

use savoir_store::Checkpoint;
use serde_json::{Map, Value};

/// The values that placeholders can refer to at one point of a run.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    input: &'a str,
    outputs: &'a Map<String, Value>,
    variables: &'a Map<String, Value>,
}

/// Maximum placeholders in a message.
const MAX_LISTED: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlaceholderValue<'a> {
    /// The input of the workflow.
    Text(&'a str),
    /// An output, a variable, or a member of one.
    Value(&'a Value),
}

impl<'a> Scope<'a> {
    /// Creates a scope from an input, outputs by node, and variables.
    pub fn new(
        input: &'a str,
        outputs: &'a Map<String, Value>,
        variables: &'a Map<String, Value>,
    ) -> Self {
        Self { input, outputs, variables }
    }

    /// Creates the scope of a run from its checkpoint.
    pub fn of(input: &'a str, checkpoint: &'a Checkpoint) -> Self {
        Self::new(input, &checkpoint.outputs, &checkpoint.variables)
    }

    /// The output of a node that ran.
    pub fn output(&self, node: &str) -> Option<&'a Value> {
        self.outputs.get(node)
    }

    /// Resolves a path: `input`, a variable, `<node>.output`, or members of objects.
    pub fn find(&self, path: &str) -> Option<PlaceholderValue<'a>> {
        if let Some(found) = self.variable(path) {
            return Some(PlaceholderValue::Value(found));
        }
        if path == "input" {
            return Some(PlaceholderValue::Text(self.input));
        }
        let (node, rest) = path.split_once('.')?;
        let members = match rest.strip_prefix("output")? {
            "" => None,
            rest => Some(rest.strip_prefix('.')?),
        };
        member(self.outputs.get(node)?, members).map(PlaceholderValue::Value)
    }

    /// Lists placeholders that have a value, for messages.
    pub(super) fn placeholders(&self) -> String {
        let variables = self.variables.keys().filter(|name| !self.outputs.contains_key(*name));
        let variables = variables.map(|name| format!("{{{{{name}}}}}"));
        let outputs = self.outputs.keys().map(|node| format!("{{{{{node}.output}}}}"));
        let input = std::iter::once("{{input}}".to_owned());
        let mut all: Vec<String> = input.chain(variables).chain(outputs).collect();
        let more = all.len() > MAX_LISTED;
        all.truncate(MAX_LISTED);
        all.join(", ") + if more { ", …" } else { "" }
    }

    fn variable(&self, path: &str) -> Option<&'a Value> {
        let (name, members) = match path.split_once('.') {
            Some((name, members)) => (name, Some(members)),
            None => (path, None),
        };
        member(self.variables.get(name)?, members)
    }
}

fn member<'a>(value: &'a Value, members: Option<&str>) -> Option<&'a Value> {
    let Some(members) = members else { return Some(value) };
    members.split('.').try_fold(value, |value, name| value.as_object()?.get(name))
}

impl<'a> PlaceholderValue<'a> {
    /// The value as text: strings unchanged, null as an empty text, other values as JSON.
    pub fn text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Value(value) => text_of(value),
        }
    }
}

/// A JSON value as text: strings unchanged, null as an empty text, other values as JSON.
pub fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_to_inputs_variables_and_outputs() {
        let map = |value: Value| value.as_object().cloned().unwrap();
        let outputs = map(json!({"a": {"output": {"x": 1}, "n": null}, "b": "text"}));
        let variables = map(json!({"topic": "cats", "o": {"k": [1]}}));
        let scope = Scope::new("in", &outputs, &variables);
        let text = |path: &str| scope.find(path).map(|found| found.text().into_owned());
        for (path, expected) in [
            ("input", Some("in")),
            ("topic", Some("cats")),
            ("o.k", Some("[1]")),
            ("o", Some(r#"{"k":[1]}"#)),
            ("b.output", Some("text")),
            ("a.output.output.x", Some("1")),
            ("a.output.n", Some("")),
            ("b", None),
            ("b.outputs", None),
            ("b.output.x", None),
            ("o.k.0", None),
            ("input.x", None),
            ("missing", None),
            ("", None),
        ] {
            assert_eq!(text(path).as_deref(), expected, "{path}");
        }
    }
}
