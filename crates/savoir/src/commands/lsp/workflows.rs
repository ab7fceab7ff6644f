//! Checks a workflow like `savoir workflow check`, and finds the position of each problem.

use std::ops::Range;

use savoir_flow::workflow::{
    file::{self, FileError},
    graph::{Problem, Step},
};
use savoir_lsp::FileProblem;
use savoir_skill::yaml::{Node, Tree};

use crate::commands::workflow;

pub(super) fn problems(text: &str) -> Vec<FileProblem> {
    let error = |span: Range<usize>, message: String| FileProblem {
        span,
        message,
        hint: None,
        is_error: true,
    };
    let first_line = 0..text.lines().next().map_or(0, str::len);
    match file::read(text) {
        Ok(read) => workflow::problem(&read)
            .map(|problem| error(first_line, problem.to_owned()))
            .into_iter()
            .collect(),
        Err(FileError::Graph(problems)) => {
            // JSON is also YAML, and the YAML parser knows positions.
            let tree = Tree::parse(text).ok().and_then(|tree| tree.root);
            let graph = tree.as_ref().map(graph);
            let place = |problem: &Problem| {
                graph.map_or_else(|| first_line.clone(), |graph| place(graph, problem))
            };
            problems.iter().map(|problem| error(place(problem), problem.to_string())).collect()
        }
        Err(problem) => vec![error(first_line, problem.to_string())],
    }
}

/// The node with the graph, in each of the formats of the file.
fn graph(root: &Node) -> &Node {
    let workflow = root.get("workflow").unwrap_or(root);
    workflow.get("graph_data").unwrap_or(workflow)
}

/// The range of the innermost existing value on the path of a problem: a missing member has no
/// position.
fn place(graph: &Node, problem: &Problem) -> Range<usize> {
    let mut node = graph;
    for step in &problem.location {
        let inner = match step {
            Step::Member(name) => node.get(name),
            Step::Element(at) => node.items().and_then(|items| items.get(*at)),
        };
        let Some(inner) = inner else { break };
        node = inner;
    }
    node.span.start..node.span.end
}
