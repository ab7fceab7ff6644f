//! Parses the nodes and edges of a workflow.
//!
//! Only the structure is checked here. A missing setting of a node is reported when the node runs,
//! as in the original API, because users save graphs that are not finished.

mod data;
mod read;

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

/// A parsed graph.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    places: HashMap<String, usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub id: String,
    pub work: NodeKind,
    /// Settings that cannot be used as written, and what is used instead.
    pub warnings: Vec<String>,
}

/// The type of a node, with its settings.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeKind {
    /// Starts with the input of the workflow.
    Start {
        /// The variable in which the input is stored.
        variable: Option<String>,
    },
    /// Asks a model.
    Llm(Llm),
    /// Searches a knowledge base.
    Knowledge {
        /// The id or name of the knowledge base.
        base: Option<String>,
    },
    /// Chooses the outgoing edges.
    Condition {
        /// The condition.
        expression: String,
    },
    /// Runs a skill.
    Skill {
        /// The name of the skill.
        name: Option<String>,
        /// The sources of the inputs; `None` if the node has no mappings.
        mappings: Option<Map<String, Value>>,
    },
    /// Sends an HTTP request.
    Http(Http),
    /// Runs Python.
    Code(Code),
    /// Ends the run.
    End,
}

/// The settings of an LLM node.
#[derive(Clone, Debug, PartialEq)]
pub struct Llm {
    pub system_prompt: String,
    /// Sampling temperature.
    pub temperature: f64,
    /// The model; `None` for that of the run.
    pub model: Option<String>,
    /// The skill whose body replaces the system prompt.
    pub skill: Option<String>,
    /// The sources of the skill's inputs.
    pub mappings: Option<Map<String, Value>>,
    /// Whether the model gets the earlier messages of the run.
    pub history: bool,
}

/// The settings of a node that sends an HTTP request.
#[derive(Clone, Debug, PartialEq)]
pub struct Http {
    /// The method, as written.
    pub method: String,
    /// The URL, with placeholders.
    pub url: String,
    /// The headers, with placeholders in the values.
    pub headers: Map<String, Value>,
    /// The body: an object, a text, or null.
    pub body: Value,
    /// The time limit.
    pub seconds: u64,
    /// The path of the part of the response that becomes the output.
    pub response_path: Option<String>,
}

/// The settings of a node that runs Python.
#[derive(Clone, Debug, PartialEq)]
pub struct Code {
    pub code: String,
    /// Maximum run time.
    pub seconds: u64,
    /// Maximum memory.
    pub mebibytes: u64,
    /// The variables that the code gets.
    pub variables: Map<String, Value>,
}

/// An edge from one node to another; nodes are indices into the list of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub source: usize,
    pub target: usize,
    /// The branch of a condition on which the edge is followed; `None` for every branch.
    pub handle: Option<String>,
}

/// An error in a graph, in the format in which the API lists errors of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The kind of error: `missing`, `string_type`, …
    pub kind: &'static str,
    /// The path to the value, starting at the graph.
    pub location: Vec<Step>,
    pub message: String,
    /// The invalid value.
    pub input: Value,
}

/// One step of a path to a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Step {
    /// A member of an object.
    Member(&'static str),
    /// An element of a list.
    Element(usize),
}

impl Problem {
    /// The entry for the list `detail`; `place` is the path of the graph in the request, such as
    /// `["body", "graph_data"]`.
    pub fn detail(&self, place: &[&str]) -> Value {
        let mut location: Vec<Value> = place.iter().map(|step| json!(step)).collect();
        location.extend(self.location.iter().map(|step| json!(step)));
        json!({"type": self.kind, "loc": location, "msg": self.message, "input": self.input})
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let steps = self.location.iter().map(|step| match step {
            Step::Member(name) => (*name).to_owned(),
            Step::Element(at) => at.to_string(),
        });
        let place = steps.collect::<Vec<_>>().join(".");
        if place.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{place}: {}", self.message)
        }
    }
}

impl NodeKind {
    /// The name of the type in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Start { .. } => "start",
            Self::Llm(_) => "llm",
            Self::Knowledge { .. } => "knowledge",
            Self::Condition { .. } => "condition",
            Self::Skill { .. } => "skill",
            Self::Http(_) => "http",
            Self::Code(_) => "code",
            Self::End => "end",
        }
    }
}

impl Graph {
    /// Parses `graph_data`, or returns all errors in it.
    pub fn parse(graph_data: &Value) -> Result<Self, Vec<Problem>> {
        read::graph(graph_data)
    }

    /// The nodes, in the order of the list.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Finds a node by its id.
    pub fn node(&self, id: &str) -> Option<&Node> {
        self.place(id).map(|at| &self.nodes[at])
    }

    /// The edges that come from a node, in the order of the list.
    pub fn from<'a>(&'a self, id: &str) -> impl Iterator<Item = (&'a Edge, &'a Node)> {
        let place = self.place(id);
        let edges = self.edges.iter().filter(move |edge| Some(edge.source) == place);
        edges.map(|edge| (edge, &self.nodes[edge.target]))
    }

    /// The edges that lead to a node with their sources, in the order of the list of edges.
    pub fn before<'a>(&'a self, id: &str) -> impl Iterator<Item = (&'a Edge, &'a Node)> {
        let place = self.place(id);
        let edges = self.edges.iter().filter(move |edge| Some(edge.target) == place);
        edges.map(|edge| (edge, &self.nodes[edge.source]))
    }

    /// Whether a path leads from one node to another one.
    pub fn leads_to(&self, from: &str, to: &str) -> bool {
        let (Some(from), Some(to)) = (self.place(from), self.place(to)) else { return false };
        let mut seen = vec![false; self.nodes.len()];
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            for edge in self.edges.iter().filter(|edge| edge.source == at) {
                if edge.target == to {
                    return true;
                }
                if !std::mem::replace(&mut seen[edge.target], true) {
                    open.push(edge.target);
                }
            }
        }
        false
    }

    /// Whether the graph has a cycle, reachable or not.
    pub fn has_cycle(&self) -> bool {
        let mut incoming = vec![0_usize; self.nodes.len()];
        let mut outgoing: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for edge in &self.edges {
            incoming[edge.target] += 1;
            outgoing[edge.source].push(edge.target);
        }
        let mut free: Vec<usize> =
            (0..self.nodes.len()).filter(|node| incoming[*node] == 0).collect();
        let mut seen = 0;
        while let Some(node) = free.pop() {
            seen += 1;
            for target in &outgoing[node] {
                incoming[*target] -= 1;
                if incoming[*target] == 0 {
                    free.push(*target);
                }
            }
        }
        seen < self.nodes.len()
    }

    fn place(&self, id: &str) -> Option<usize> {
        self.places.get(id).copied()
    }
}

#[cfg(test)]
mod tests;
