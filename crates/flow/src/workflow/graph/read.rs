//! Parses the JSON of a graph and reports all problems with their paths.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Edge, Graph, Node, Problem, Step, data};
use crate::workflow::limits;

type Location = Vec<Step>;
type Refused = Box<Problem>;

/// Parses a graph, or returns all problems.
pub(super) fn graph(value: &Value) -> Result<Graph, Vec<Problem>> {
    let Some(members) = value.as_object() else {
        return Err(vec![*problem(
            "dict_type",
            Vec::new(),
            "Input should be a valid dictionary",
            value,
        )]);
    };
    let mut problems = Vec::new();
    let mut graph = Graph::default();
    for (at, value) in list(members, "nodes", limits::MAX_NODES, &mut problems).iter().enumerate() {
        match node(value, &[Step::Member("nodes"), Step::Element(at)]) {
            Ok(node) if graph.places.contains_key(&node.id) => {
                let message = format!("Value error, Duplicate node id: '{}'", node.id);
                let place = below(&[Step::Member("nodes"), Step::Element(at)], "id");
                problems.push(*problem("value_error", place, message, &Value::from(node.id)));
            }
            Ok(node) => {
                graph.places.insert(node.id.clone(), graph.nodes.len());
                graph.nodes.push(node);
            }
            Err(problem) => problems.push(*problem),
        }
    }
    for (at, value) in list(members, "edges", limits::MAX_EDGES, &mut problems).iter().enumerate() {
        match edge(value, &[Step::Member("edges"), Step::Element(at)], &graph.places) {
            Ok(edge) => graph.edges.extend(edge),
            Err(problem) => problems.push(*problem),
        }
    }
    problems.truncate(limits::MAX_PROBLEMS);
    if problems.is_empty() { Ok(graph) } else { Err(problems) }
}

/// Returns the elements of a list; a missing list is empty.
fn list<'a>(
    members: &'a Map<String, Value>,
    name: &'static str,
    most: usize,
    problems: &mut Vec<Problem>,
) -> &'a [Value] {
    let place = vec![Step::Member(name)];
    match members.get(name) {
        None => &[],
        Some(Value::Array(list)) if list.len() <= most => list,
        Some(Value::Array(list)) => {
            let message = format!(
                "List should have at most {most} items after validation, not {}",
                list.len()
            );
            // Leave the value out of the message: the list itself is too long.
            problems.push(*problem("too_long", place, message, &Value::Null));
            &[]
        }
        Some(other) => {
            problems.push(*problem("list_type", place, "Input should be a valid list", other));
            &[]
        }
    }
}

fn node(value: &Value, place: &[Step]) -> Result<Node, Refused> {
    let members = object(value, place)?;
    let id = text(members, "id", place, value)?;
    if id.is_empty() {
        let message = "String should have at least 1 character";
        return Err(problem("string_too_short", below(place, "id"), message, &members["id"]));
    }
    if id.chars().count() > limits::MAX_ID_CHARS {
        let message = format!("String should have at most {} characters", limits::MAX_ID_CHARS);
        return Err(problem("string_too_long", below(place, "id"), message, &members["id"]));
    }
    let kind = text(members, "type", place, value)?;
    let empty = Map::new();
    let data = match members.get("data") {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(data)) => data,
        Some(other) => {
            let message = "Input should be a valid dictionary";
            return Err(problem("dict_type", below(place, "data"), message, other));
        }
    };
    let mut warnings = Vec::new();
    let work = data::work(kind, data, &mut warnings).ok_or_else(|| {
        let message = format!("Value error, Unknown node type: '{kind}'");
        problem("value_error", below(place, "type"), message, &members["type"])
    })?;
    Ok(Node { id: id.to_owned(), work, warnings })
}

/// Parses an edge; returns `None` if one of its ends does not exist.
fn edge(
    value: &Value,
    place: &[Step],
    places: &HashMap<String, usize>,
) -> Result<Option<Edge>, Refused> {
    let members = object(value, place)?;
    let source = text(members, "source", place, value)?;
    let target = text(members, "target", place, value)?;
    let handle = match members.get("sourceHandle") {
        None | Some(Value::Null) => None,
        Some(Value::String(handle)) => Some(handle.clone()),
        Some(other) => {
            let place = below(place, "sourceHandle");
            return Err(problem("string_type", place, "Input should be a valid string", other));
        }
    };
    let ends = places.get(source).zip(places.get(target));
    Ok(ends.map(|(source, target)| Edge { source: *source, target: *target, handle }))
}

fn object<'a>(value: &'a Value, place: &[Step]) -> Result<&'a Map<String, Value>, Refused> {
    let message = "Input should be a valid dictionary";
    value.as_object().ok_or_else(|| problem("dict_type", place.to_vec(), message, value))
}

fn text<'a>(
    members: &'a Map<String, Value>,
    name: &'static str,
    place: &[Step],
    whole: &Value,
) -> Result<&'a str, Refused> {
    let place = below(place, name);
    match members.get(name) {
        None => Err(problem("missing", place, "Field required", whole)),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(problem("string_type", place, "Input should be a valid string", other)),
    }
}

fn below(place: &[Step], name: &'static str) -> Location {
    place.iter().cloned().chain([Step::Member(name)]).collect()
}

fn problem(
    kind: &'static str,
    location: Location,
    message: impl Into<String>,
    input: &Value,
) -> Refused {
    Box::new(Problem { kind, location, message: message.into(), input: input.clone() })
}
