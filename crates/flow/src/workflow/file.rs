//! Reads and writes workflow files: the export format of the API, or only the graph.

use serde_json::{Value, json};
use thiserror::Error;

use super::graph::{Graph, Problem};

/// The version of the export format.
pub const VERSION: u64 = 1;

/// A parsed workflow file.
#[derive(Clone, Debug)]
pub struct WorkflowFile {
    /// The name, if the file has one.
    pub name: Option<String>,
    pub description: Option<String>,
    /// The nodes and edges as written in the file.
    pub graph_data: Value,
    /// The parsed graph.
    pub graph: Graph,
}

/// Why a file is not a workflow.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FileError {
    /// The file is not JSON.
    #[error("the file is not JSON: {0}")]
    Json(String),
    /// The file has another version.
    #[error("Unsupported workflow export version: {0}")]
    Version(Value),
    /// The file is neither an export nor a graph.
    #[error(
        "there is no workflow in it: write `{{\"nodes\": […], \"edges\": […]}}`, or export one from a \
         server"
    )]
    Shape,
    /// The graph is invalid.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Graph(Vec<Problem>),
}

/// Parses a workflow from JSON text: `{"version": 1, "workflow": {…}}`, `{"name", "graph_data"}` or
/// `{"nodes", "edges"}`.
///
/// ```
/// use savoir_flow::workflow::file;
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

/// Parses a workflow from a JSON value, in the same formats as [`read`].
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

/// Returns a workflow in the export format of the API.
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
    fn all_file_formats_are_read() {
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
    fn invalid_workflows_are_rejected() {
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
