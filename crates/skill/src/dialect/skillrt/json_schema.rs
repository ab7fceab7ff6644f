//! Finds mistakes in a JSON Schema. The engine compiles schemas in full; this finds the mistakes
//! that authors make, without a dependency.

use serde_json::Value;

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

/// Keywords with a schema, a list of schemas, and a map of schemas.
const ONE: [&str; 8] =
    ["items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else"];
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const MAPS: [&str; 5] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Keywords with a number, and with a whole number that is not negative.
const NUMBERS: [&str; 5] =
    ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
const COUNTS: [&str; 8] = [
    "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
    "minContains", "maxContains",
];

/// How deep schemas are examined.
const MAX_DEPTH: usize = 32;

/// The first mistake, with its place; none if there is no schema.
pub(super) fn find_problem(schema: &Value) -> Option<String> {
    if schema.is_null() { None } else { problem_at(schema, schema, "", 0) }
}

fn problem_at(root: &Value, schema: &Value, place: &str, depth: usize) -> Option<String> {
    let at = |key: &str| format!("{place}/{key}");
    let map = match schema {
        Value::Bool(_) => return None,
        Value::Object(map) => map,
        _ => return Some(format!("{} must be a map", if place.is_empty() { "it" } else { place })),
    };
    if depth > MAX_DEPTH {
        return None;
    }
    map.iter().find_map(|(key, value)| {
        let here = at(key);
        match key.as_str() {
            "type" => type_problem(value, &here),
            "required" if !is_list_of_texts(value) => {
                Some(format!("{here} must be a list of names"))
            }
            "enum" if !value.is_array() => Some(format!("{here} must be a list")),
            "pattern" | "$ref" if !value.is_string() => Some(format!("{here} must be text")),
            "$ref" => reference_problem(root, value.as_str().unwrap_or_default(), &here),
            key if NUMBERS.contains(&key) && !value.is_number() => {
                Some(format!("{here} must be a number"))
            }
            key if COUNTS.contains(&key) && !value.is_u64() => {
                Some(format!("{here} must be a whole number"))
            }
            key if ONE.contains(&key) && !value.is_array() => {
                problem_at(root, value, &here, depth + 1)
            }
            key if LISTS.contains(&key) => match value.as_array() {
                Some(all) => all.iter().find_map(|one| problem_at(root, one, &here, depth + 1)),
                None => Some(format!("{here} must be a list")),
            },
            key if MAPS.contains(&key) => match value.as_object() {
                Some(all) => all.iter().find_map(|(name, one)| {
                    problem_at(root, one, &format!("{here}/{name}"), depth + 1)
                }),
                None => Some(format!("{here} must be a map")),
            },
            _ => None,
        }
    })
}

fn type_problem(value: &Value, place: &str) -> Option<String> {
    let words: Vec<Option<&str>> = match value {
        Value::Array(all) => all.iter().map(Value::as_str).collect(),
        one => vec![one.as_str()],
    };
    let is_known = |word: Option<&str>| word.is_some_and(|word| TYPES.contains(&word));
    let wrong = words.into_iter().find(|word| !is_known(*word))?;
    let wrong = wrong.map_or_else(|| value.to_string(), str::to_owned);
    Some(format!("{place} is `{wrong}`, which is not one of {}", TYPES.join(", ")))
}

/// Schemas of JSON Schema itself, which validators know.
const META_SCHEMAS: [&str; 2] = ["https://json-schema.org/", "http://json-schema.org/"];

/// Why a reference cannot be resolved. Only the validator resolves percent escapes, and parts of the
/// schema with an `$id`, which are addresses of their own.
fn reference_problem(root: &Value, reference: &str, place: &str) -> Option<String> {
    let is_known = META_SCHEMAS.iter().any(|start| reference.starts_with(start));
    if is_known
        || reference.contains('%')
        || has_keyword(root, 0, &|key, _| key == "$id" || key == "id")
    {
        return None;
    }
    let Some(fragment) = reference.strip_prefix('#') else {
        return Some(format!(
            "{place} is `{reference}`, and other documents are not loaded: put the schema into `$defs`"
        ));
    };
    let is_there = match fragment {
        "" => true,
        pointer if pointer.starts_with('/') => root.pointer(pointer).is_some(),
        name => has_keyword(root, 0, &|key, value| {
            ["$anchor", "$dynamicAnchor"].contains(&key) && value == name
        }),
    };
    (!is_there).then(|| format!("{place} is `{reference}`, which is not in the schema"))
}

/// Whether a map in the schema has such an entry with a text.
fn has_keyword(value: &Value, depth: usize, is_wanted: &dyn Fn(&str, &str) -> bool) -> bool {
    if depth > 2 * MAX_DEPTH {
        return false;
    }
    match value {
        Value::Object(map) => map.iter().any(|(key, value)| {
            value.as_str().is_some_and(|text| is_wanted(key, text))
                || has_keyword(value, depth + 1, is_wanted)
        }),
        Value::Array(all) => all.iter().any(|one| has_keyword(one, depth + 1, is_wanted)),
        _ => false,
    }
}

fn is_list_of_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|all| all.iter().all(Value::is_string))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mistakes_have_their_place() {
        for (schema, problem) in [
            (json!({"type": "wrong"}), "/type is `wrong`, which is not one of string"),
            (json!({"properties": {"a": {"type": 5}}}), "/properties/a/type is `5`"),
            (json!({"required": "a"}), "/required must be a list of names"),
            (json!({"items": {"minimum": "x"}}), "/items/minimum must be a number"),
            (json!({"anyOf": [{"maxLength": -1}]}), "/anyOf/maxLength must be a whole number"),
            (json!("text"), "it must be a map"),
            (json!({"items": {"$ref": "#/$defs/none"}}), "/items/$ref is `#/$defs/none`, which"),
            (json!({"$ref": "#none"}), "/$ref is `#none`, which"),
            (json!({"$ref": "other.json#/a"}), "/$ref is `other.json#/a`, and other documents"),
            (json!({"$ref": "https://x.org/a"}), "/$ref is `https://x.org/a`, and other documents"),
        ] {
            let found = find_problem(&schema).unwrap_or_default();
            assert!(found.starts_with(problem), "{schema}: {found}");
        }
    }

    #[test]
    fn valid_schemas_are_accepted() {
        for schema in [
            json!(null),
            json!(true),
            json!({"type": ["object", "null"], "required": ["a"], "additionalProperties": false}),
            json!({"$defs": {"n": {"type": "number"}}, "$ref": "#/$defs/n", "x-own": 1}),
            json!({"enum": [1, 2], "minLength": 0, "items": [{"type": "string"}]}),
            json!({"properties": {"$ref": {"$ref": "#"}}, "const": {"$ref": "#/none"}}),
            json!({"$defs": {"a/b c": {"$anchor": "one"}}, "anyOf": [{"$ref": "#one"}, {"$ref": "#/$defs/a~1b%20c"}]}),
            json!({"anyOf": [{"type": "null"}, {"$ref": "#/anyOf/0"}]}),
            json!({"$defs": {"a": {"$id": "https://x.org/a"}}, "$ref": "https://x.org/a"}),
            json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}),
        ] {
            assert_eq!(find_problem(&schema), None, "{schema}");
        }
    }
}
