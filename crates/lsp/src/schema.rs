//! Reads the fields of all dialects from their JSON Schemas.

use std::sync::OnceLock;

use savoir_skill::Dialect;
use serde_json::Value;

/// A step from a value to one inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Item,
}

/// The documentation of a field in one dialect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldDocs<'a> {
    pub(crate) dialect: Dialect,
    pub(crate) schema: &'a Value,
    pub(crate) is_required: bool,
}

impl<'a> FieldDocs<'a> {
    pub(crate) fn description(self) -> &'a str {
        self.schema.get("description").and_then(Value::as_str).unwrap_or_default()
    }
}

/// The schema of a dialect's frontmatter.
pub(crate) fn of(dialect: Dialect) -> &'static Value {
    static SCHEMAS: OnceLock<Vec<(Dialect, Value)>> = OnceLock::new();
    let schemas =
        SCHEMAS.get_or_init(|| Dialect::ALL.map(|dialect| (dialect, dialect.schema())).to_vec());
    schemas.iter().find(|(known, _)| *known == dialect).map_or(&Value::Null, |(_, schema)| schema)
}

/// The schemas that a value at a path may have.
pub(crate) fn at<'a>(root: &'a Value, path: &[Step]) -> Vec<&'a Value> {
    let mut schemas = alternatives(root);
    for step in path {
        let inner = schemas.into_iter().filter_map(|schema| match step {
            Step::Key(key) => schema
                .get("properties")
                .and_then(|properties| properties.get(key))
                .or_else(|| schema.get("additionalProperties").filter(|value| value.is_object())),
            Step::Item => schema.get("items"),
        });
        schemas = inner.flat_map(alternatives).collect();
    }
    schemas
}

/// A schema, or those that it lists as alternatives.
fn alternatives(schema: &Value) -> Vec<&Value> {
    match schema.get("anyOf").and_then(Value::as_array) {
        Some(schemas) => schemas.iter().flat_map(alternatives).collect(),
        None => vec![schema],
    }
}

/// The fields of the map at a path, in the order of the dialect.
pub(crate) fn fields(dialect: Dialect, path: &[Step]) -> Vec<(&'static str, FieldDocs<'static>)> {
    let mut fields: Vec<(&str, FieldDocs<'_>)> = Vec::new();
    for schema in at(of(dialect), path) {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required =
            |key: &str| required.is_some_and(|keys| keys.iter().any(|known| known == key));
        for (key, schema) in
            schema.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            if fields.iter().all(|(known, _)| known != key) {
                let is_required = is_required(key);
                fields.push((key, FieldDocs { dialect, schema, is_required }));
            }
        }
    }
    fields
}

/// The documentation of a field in every dialect that defines it. The path ends with its key.
pub(crate) fn owners(path: &[Step]) -> Vec<FieldDocs<'static>> {
    let Some((Step::Key(key), parent)) = path.split_last() else { return Vec::new() };
    let docs = |dialect| {
        fields(dialect, parent).into_iter().find(|(known, _)| known == key).map(|(_, docs)| docs)
    };
    Dialect::ALL.into_iter().filter_map(docs).collect()
}

/// The words that a value may be, if its schema lists them.
pub(crate) fn words(schemas: &[&Value]) -> Vec<String> {
    let mut words = Vec::new();
    for schema in schemas {
        let choices = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
        words.extend(choices.filter_map(Value::as_str).map(str::to_owned));
        if schema.get("type").is_some_and(|kind| kind == "boolean") {
            words.extend(["true", "false"].map(str::to_owned));
        }
    }
    words.dedup();
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(key: &str) -> Step {
        Step::Key(key.to_owned())
    }

    #[test]
    fn fields_know_their_owners() {
        let owners = |name: &str| {
            owners(&[key(name)]).iter().map(|docs| docs.dialect.id()).collect::<Vec<_>>()
        };
        assert_eq!(owners("effort"), ["claude-code"]);
        assert!(owners("name").len() > 5);
        assert!(owners("no-such-field").is_empty());
    }

    #[test]
    fn words_of_nested_values_are_found() {
        let schemas = at(of(Dialect::CLAUDE_CODE), &[key("effort")]);
        assert_eq!(words(&schemas), ["low", "medium", "high", "xhigh", "max"]);
        let path = [key("inputs"), Step::Item, key("type")];
        assert!(words(&at(of(Dialect::SKILLRT), &path)).contains(&"number".to_owned()));
    }
}
