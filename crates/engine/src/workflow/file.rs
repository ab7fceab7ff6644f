//! A workflow in a file: as the API exports it, or the bare graph.

use serde_json::{Value, json};
use thiserror::Error;

use super::graph::{Graph, Problem};

/// The version of exports that is written and read.
pub const VERSION: u64 = 1;

/// A workflow that was read from a file.
#[derive(Clone, Debug)]
pub struct WorkflowFile {
    /// Its name, if the file has one.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Nodes and edges as they stand in the file.
    pub graph_data: Value,
    /// The same, ready to run.
    pub graph: Graph,
}

/// Why a file is not a workflow.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FileError {
    /// It is no JSON.
    #[error("the file is not JSON: {0}")]
    Json(String),
    /// Another version wrote it.
    #[error("Unsupported workflow export version: {0}")]
    Version(Value),
    /// Neither an export nor a graph.
    #[error(
        "there is no workflow in it: write `{{\"nodes\": […], \"edges\": […]}}`, or export one from a \
         server"
    )]
    Shape,
    /// The graph is wrong.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Graph(Vec<Problem>),
}

/// Reads a workflow from a text in JSON: `{"version": 1, "workflow": {…}}`, `{"name", "graph_data"}` or
/// `{"nodes", "edges"}`.
///
/// ```
/// use savoir_engine::workflow::file;
///
/// let read = file::read(r#"{"nodes": [{"id": "s", "type": "start"}], "edges": []}"#)?;
/// assert_eq!((read.name, read.graph.nodes().len()), (None, 1));
/// # Ok::<(), file::FileError>(())
/// ```
pub fn read(text: &str) -> Result<WorkflowFile, FileError> {
    let text = text.trim_start_matches('\u{feff}');
    let value: Value =
        serde_json::from_str(text).map_err(|error| FileError::Json(error.to_string()))?;
    parse(&value)
}

/// Reads a workflow from a value, in the same shapes.
pub fn parse(value: &Value) -> Result<WorkflowFile, FileError> {
    let workflow = match value.get("workflow") {
        Some(workflow) => {
            let version = value.get("version").unwrap_or(&Value::Null);
            if *version != json!(VERSION) {
                return Err(FileError::Version(version.clone()));
            }
            workflow
        }
        None => value,
    };
    let graph_data = match workflow.get("graph_data") {
        Some(graph_data) => graph_data,
        None if workflow.get("nodes").is_some() => workflow,
        None => return Err(FileError::Shape),
    };
    let text = |name: &str| workflow.get(name).and_then(Value::as_str).map(str::to_owned);
    Ok(WorkflowFile {
        name: text("name"),
        description: text("description"),
        graph: Graph::parse(graph_data).map_err(FileError::Graph)?,
        graph_data: graph_data.clone(),
    })
}

/// A workflow as the API exports it.
pub fn export(name: &str, description: Option<&str>, graph_data: &Value) -> Value {
    json!({
        "version": VERSION,
        "workflow": {"name": name, "description": description, "graph_data": graph_data},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_shapes() {
        let graph =
            json!({"nodes": [{"id": "s", "type": "start", "position": [1, 2]}], "edges": []});
        let name = |value: &Value| parse(value).unwrap().name;
        assert_eq!(name(&graph), None);
        assert_eq!(name(&json!({"name": "a", "graph_data": graph})).as_deref(), Some("a"));
        let exported = parse(&export("b", Some("c"), &graph)).unwrap();
        assert_eq!(
            (exported.name.as_deref(), exported.description.as_deref()),
            (Some("b"), Some("c"))
        );
        assert_eq!(exported.graph_data, graph);
    }

    #[test]
    fn what_is_no_workflow() {
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert!(error("nodes: []").starts_with("the file is not JSON"));
        assert_eq!(
            error(r#"{"version": 2, "workflow": {}}"#),
            "Unsupported workflow export version: 2"
        );
        assert!(error("[]").starts_with("there is no workflow in it: write `{\"nodes\""));
        assert_eq!(
            error(r#"{"nodes": [{"id": "a", "type": "x"}, {}]}"#),
            "nodes.0.type: Value error, Unknown node type: 'x'; nodes.1.id: Field required"
        );
    }
}
