//! Limits the work of validating a value against a JSON Schema. A small schema can refer to itself
//! in ways that take years, and a server must not spend them on a skill of a stranger.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Maximum number of evaluations: a base for schemas with many alternatives, and a share for each
/// value, for long answers.
const BASE_EVALUATIONS: u64 = 1_000_000;
const EVALUATIONS_PER_VALUE: u64 = 20;
/// Maximum number of schemas inside each other, including references. The validator recurses.
const MAX_DEPTH: usize = 400;

/// Keywords with schemas that apply to the same value.
const SAME_VALUE: [&str; 8] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "contentSchema"];
/// Keywords with a map of schemas that apply to the same value.
const SAME_VALUE_MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords with schemas for the members of an object or the items of a list.
const PARTS: [&str; 8] = [
    "additionalProperties", "unevaluatedProperties", "propertyNames", "items", "additionalItems",
    "unevaluatedItems", "contains", "prefixItems",
];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The schemas of the drafts, which the validator has. They take few steps for each value.
const JSON_SCHEMA_ORG: [&str; 2] = ["https://json-schema.org/", "http://json-schema.org/"];

/// Why a schema is not used.
pub(super) const TOO_MUCH: &str =
    "checking this answer would take too long; use fewer alternatives and references";

/// Checks that validation takes a bounded number of steps.
pub(super) fn check(schema: &Value, value: &Value) -> Result<(), String> {
    let limit = BASE_EVALUATIONS.saturating_add(EVALUATIONS_PER_VALUE.saturating_mul(count(value)));
    let mut anchors = Anchors::default();
    anchors.collect(schema, true);
    let mut steps = Steps { root: schema, anchors, limit, known: HashMap::new() };
    match steps.of(schema, value, 0)? {
        steps if steps > limit => Err(TOO_MUCH.to_owned()),
        _ => Ok(()),
    }
}

/// The number of values in a value.
fn count(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<u64>(),
        Value::Object(members) => 1 + members.values().map(count).sum::<u64>(),
        _ => 1,
    }
}

/// The schemas with a name of their own.
#[derive(Default)]
struct Anchors<'a> {
    named: HashMap<&'a str, Vec<&'a Value>>,
    /// Whether a part of the schema has an address of its own.
    has_inner_ids: bool,
}

impl<'a> Anchors<'a> {
    fn collect(&mut self, schema: &'a Value, is_root: bool) {
        match schema {
            Value::Array(items) => items.iter().for_each(|item| self.collect(item, false)),
            Value::Object(members) => {
                for key in ["$anchor", "$dynamicAnchor"] {
                    if let Some(name) = members.get(key).and_then(Value::as_str) {
                        self.named.entry(name).or_default().push(schema);
                    }
                }
                self.has_inner_ids |= !is_root && members.get("$id").is_some_and(Value::is_string);
                members.values().for_each(|member| self.collect(member, false));
            }
            _ => {}
        }
    }
}

struct Steps<'a> {
    root: &'a Value,
    anchors: Anchors<'a>,
    limit: u64,
    /// The steps for a schema and a value, by their addresses; 0 while they are counted.
    known: HashMap<(*const Value, *const Value), u64>,
}

impl<'a> Steps<'a> {
    /// The number of evaluations, as if no schema ended early.
    fn of(&mut self, schema: &'a Value, value: &'a Value, depth: usize) -> Result<u64, String> {
        let Value::Object(keywords) = schema else { return Ok(1) };
        let key = (std::ptr::from_ref(schema), std::ptr::from_ref(value));
        // The validator ends at a schema that refers to itself for the same value.
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        if depth > MAX_DEPTH || self.known.len() as u64 > self.limit {
            return Err(TOO_MUCH.to_owned());
        }
        self.known.insert(key, 0);
        let mut total = own_steps(keywords, value);
        let mut add = |more: u64| total = total.saturating_add(more);
        for (keyword, inner) in keywords {
            match keyword.as_str() {
                keyword if REFERENCES.contains(&keyword) => {
                    for target in self.targets(inner)? {
                        add(self.of(target, value, depth + 1)?);
                    }
                }
                keyword if SAME_VALUE.contains(&keyword) => {
                    for one in list(inner) {
                        add(self.of(one, value, depth + 1)?);
                    }
                }
                keyword if SAME_VALUE_MAPS.contains(&keyword) => {
                    for one in inner.as_object().into_iter().flat_map(Map::values) {
                        add(self.of(one, value, depth + 1)?);
                    }
                }
                "properties" => {
                    for (name, one) in inner.as_object().into_iter().flatten() {
                        if let Some(member) = value.get(name) {
                            add(self.of(one, member, depth + 1)?);
                        }
                    }
                }
                "patternProperties" => {
                    for one in inner.as_object().into_iter().flat_map(Map::values) {
                        for part in parts(value) {
                            add(self.of(one, part, depth + 1)?);
                        }
                    }
                }
                keyword if PARTS.contains(&keyword) => {
                    for (at, one) in list(inner).iter().enumerate() {
                        // A list of schemas has one for each item.
                        let only = inner.is_array().then_some(at);
                        for (_, part) in parts(value)
                            .enumerate()
                            .filter(|(at, _)| only.is_none_or(|only| only == *at))
                        {
                            add(self.of(one, part, depth + 1)?);
                        }
                    }
                }
                _ => {}
            }
        }
        self.known.insert(key, total);
        Ok(total)
    }

    /// The schemas that a reference can mean.
    fn targets(&self, reference: &'a Value) -> Result<Vec<&'a Value>, String> {
        // `"$recursiveRef": "#"`, or not a text, which the validator refuses.
        let Some(text) = reference.as_str() else { return Ok(Vec::new()) };
        let (address, fragment) = text.split_once('#').unwrap_or((text, ""));
        let unknown =
            || Err(format!("it refers to `{text}`; write such references as #/$defs/NAME"));
        let is_of_json_schema = JSON_SCHEMA_ORG.iter().any(|site| address.starts_with(site))
            && self.anchors.named.is_empty();
        if is_of_json_schema {
            return Ok(Vec::new());
        }
        if !address.is_empty() || self.anchors.has_inner_ids || fragment.contains('%') {
            return unknown();
        }
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(fragment).map_or_else(unknown, |found| Ok(vec![found]));
        }
        self.anchors.named.get(fragment).map_or_else(unknown, |found| Ok(found.clone()))
    }
}

/// The steps of the keywords that have no schema.
fn own_steps(keywords: &Map<String, Value>, value: &Value) -> u64 {
    let length = |key: &str| {
        keywords.get(key).map_or(0, |list| match list {
            Value::Array(items) => items.len() as u64,
            Value::Object(members) => members.len() as u64,
            _ => 0,
        })
    };
    let parts = parts(value).count() as u64;
    1 + parts.saturating_mul(1 + length("patternProperties")) + length("enum") + length("required")
}

/// The schemas of a keyword that takes one or a list.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice)
}

fn parts(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => Box::new(std::iter::empty()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn exponential_schemas_are_refused() {
        let mut defs = Map::new();
        for level in 0..40 {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            defs.insert(format!("d{level}"), json!({"anyOf": [next, next]}));
        }
        defs.insert("d40".to_owned(), json!({"type": "string"}));
        let wide = json!({"$defs": defs, "$ref": "#/$defs/d0"});
        assert_eq!(check(&wide, &json!(1)), Err(TOO_MUCH.to_owned()));
        let both =
            json!([{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]);
        let deep = json!({"allOf": both});
        let value = (0..60).fold(json!({}), |inner, _| json!({"a": inner}));
        assert_eq!(check(&deep, &value), Err(TOO_MUCH.to_owned()));
        let shallow = json!({"a": {"a": {"a": 1}}});
        assert_eq!(check(&deep, &shallow), Ok(()));
    }

    #[test]
    fn long_chains_are_refused() {
        let mut defs = Map::new();
        for level in 0..20_000 {
            defs.insert(format!("d{level}"), json!({"$ref": format!("#/$defs/d{}", level + 1)}));
        }
        defs.insert("d20000".to_owned(), json!(true));
        let chain = json!({"$defs": defs, "$ref": "#/$defs/d0"});
        assert_eq!(check(&chain, &json!(1)), Err(TOO_MUCH.to_owned()));
    }

    #[test]
    fn ordinary_schemas_pass() {
        let row = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"$ref": "#/$defs/n"}}});
        let schema = json!({"$defs": {"n": {"type": "number"}, "t": {"$anchor": "tree", "items": {"$ref": "#tree"}}},
            "type": "array", "items": {"anyOf": [row, {"$ref": "#/$defs/t"}]}});
        let rows: Vec<_> = (0..100_000).map(|n| json!({"a": "x", "b": n})).collect();
        assert_eq!(check(&schema, &json!(rows)), Ok(()));
        assert_eq!(check(&json!({"$ref": "#"}), &json!(1)), Ok(()));
        assert!(check(&json!({"$ref": "other.json"}), &json!(1)).is_err());
        let meta = json!({"$ref": "https://json-schema.org/draft/2020-12/schema"});
        assert_eq!(check(&meta, &json!({"type": "string"})), Ok(()));
    }
}
