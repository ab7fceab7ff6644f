//! What was drawn: nodes and edges, read once.
//!
//! Only the shape can be wrong here. What a node lacks for its work is told when its turn comes, as
//! in the original: a graph is saved while it is still being drawn.

mod data;
mod read;

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

/// A graph that can be gone through.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    places: HashMap<String, usize>,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name.
    pub id: String,
    /// What it does.
    pub work: Work,
}

/// What a node does.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Begins with the input of the workflow.
    Start {
        /// The variable that keeps it.
        variable: Option<String>,
    },
    /// Asks a model.
    Llm(Llm),
    /// Searches a knowledge base.
    Knowledge {
        /// By id or name.
        base: Option<String>,
    },
    /// Chooses a way.
    Condition {
        /// What is judged.
        expression: String,
    },
    /// Runs a skill.
    Skill {
        /// The skill.
        name: Option<String>,
        /// Where its inputs come from; `None` if nothing is said.
        mappings: Option<Map<String, Value>>,
    },
    /// Asks a server.
    Http(Http),
    /// Runs Python.
    Code(Code),
    /// Ends the run.
    End,
}

/// What a model is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Llm {
    /// What it is told to be.
    pub system_prompt: String,
    /// Sampling temperature.
    pub temperature: f64,
    /// Which model; that of the run if there is none.
    pub model: Option<String>,
    /// The skill whose body is taken instead of the system prompt.
    pub skill: Option<String>,
    /// Whether it hears what was said before.
    pub history: bool,
}

/// What a server is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Http {
    /// As written.
    pub method: String,
    /// With placeholders.
    pub url: String,
    /// With placeholders in the values.
    pub headers: Map<String, Value>,
    /// An object, a text, or nothing.
    pub body: Value,
    /// How long it may take.
    pub seconds: u64,
    /// What of the answer is wanted.
    pub response_path: Option<String>,
}

/// What Python is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Code {
    /// The program.
    pub code: String,
    /// How long it may take.
    pub seconds: u64,
    /// How much memory it may use.
    pub mebibytes: u64,
    /// Variables that it finds.
    pub variables: Map<String, Value>,
}

/// A way from one node to another, by their places in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// From where.
    pub source: usize,
    /// To where.
    pub target: usize,
    /// Only if the node chose this way.
    pub handle: Option<String>,
}

/// What is wrong with a graph, in the shape in which the API lists what is wrong with a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// `missing`, `string_type`, …
    pub kind: &'static str,
    /// Where, from the graph on.
    pub location: Vec<Step>,
    /// What, for people.
    pub message: String,
    /// What stands there.
    pub input: Value,
}

/// A step on the way to a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Step {
    /// A member of an object.
    Member(&'static str),
    /// An element of a list.
    Element(usize),
}

impl Problem {
    /// The entry of the list `detail`; `place` is where the graph stands in the request, as in
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

impl Work {
    /// The word for it.
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
    /// Reads `graph_data`, or tells everything that is wrong with it.
    pub fn parse(graph_data: &Value) -> Result<Self, Vec<Problem>> {
        read::graph(graph_data)
    }

    /// The nodes, in the order of the list.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// A node by its name.
    pub fn node(&self, id: &str) -> Option<&Node> {
        self.place(id).map(|at| &self.nodes[at])
    }

    /// The edges that come from a node, in the order of the list.
    pub fn from<'a>(&'a self, id: &str) -> impl Iterator<Item = (&'a Edge, &'a Node)> {
        let place = self.place(id);
        let edges = self.edges.iter().filter(move |edge| Some(edge.source) == place);
        edges.map(|edge| (edge, &self.nodes[edge.target]))
    }

    /// The nodes from which edges lead to a node, in the order of the list of edges.
    pub fn before<'a>(&'a self, id: &str) -> impl Iterator<Item = &'a Node> {
        let place = self.place(id);
        let edges = self.edges.iter().filter(move |edge| Some(edge.target) == place);
        edges.map(|edge| &self.nodes[edge.source])
    }

    /// Whether edges lead back to where they come from, be it reachable or not.
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
