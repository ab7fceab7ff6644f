//! Turns the events of a run into a timeline.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::RecordedEvent;

/// A step of a run, with its duration.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Span {
    id: usize,
    /// The span that contains this one.
    parent: Option<usize>,
    /// `model`, `retrieval`, `tool`, `approval`, `denial`, `node` or `step`
    kind: &'static str,
    name: String,
    /// `running`, `ok` or `failed`
    state: &'static str,
    start_ms: u64,
    duration_ms: Option<u64>,
    /// Further data, depending on the kind.
    #[schema(value_type = Object)]
    detail: Value,
}

/// A line of the log of a run.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct LogLine {
    at_ms: u64,
    /// `info`, `warning` or `error`
    level: &'static str,
    message: String,
}

/// The spans of a run, in the order of their start.
pub(crate) fn spans(events: &[RecordedEvent]) -> Vec<Span> {
    let mut timeline = Timeline::default();
    for event in events {
        timeline.add(event);
    }
    timeline.spans.sort_by_key(|span| (span.start_ms, span.id));
    timeline.spans
}

#[derive(Default)]
struct Timeline {
    spans: Vec<Span>,
    /// The open node spans by the id of the node.
    nodes: Vec<(String, usize)>,
}

impl Timeline {
    fn add(&mut self, event: &RecordedEvent) {
        let data = &event.data;
        let node = text(data, "node_id");
        match event.event.as_str() {
            "node_start" => {
                let name = node.clone().unwrap_or_default();
                let id = self.open("node", name.clone(), event, None);
                self.nodes.push((name, id));
            }
            "node_complete" => self.close_node(node.as_deref(), event, "ok"),
            "node_error" => self.close_node(node.as_deref(), event, "failed"),
            "usage" => self.model_call(event, node.as_deref()),
            "thought" => self.thought(event, node.as_deref()),
            "approval" => self.approval(event),
            _ => {}
        }
    }

    fn open(
        &mut self,
        kind: &'static str,
        name: String,
        event: &RecordedEvent,
        parent: Option<usize>,
    ) -> usize {
        let id = self.spans.len() + 1;
        self.spans.push(Span {
            id,
            parent,
            kind,
            name,
            state: "running",
            start_ms: event.at,
            duration_ms: None,
            detail: event.data.clone(),
        });
        id
    }

    fn close(&mut self, id: usize, event: &RecordedEvent, state: &'static str) {
        if let Some(span) = self.spans.get_mut(id - 1) {
            span.duration_ms = Some(event.at.saturating_sub(span.start_ms));
            span.state = state;
            if let (Value::Object(known), Value::Object(new)) = (&mut span.detail, &event.data) {
                known.extend(new.clone());
            }
        }
    }

    fn close_node(&mut self, node: Option<&str>, event: &RecordedEvent, state: &'static str) {
        let found = self.nodes.iter().rposition(|(name, _)| Some(name.as_str()) == node);
        if let Some(at) = found {
            let (_, id) = self.nodes.remove(at);
            self.close(id, event, state);
        }
    }

    fn node_span(&self, node: Option<&str>) -> Option<usize> {
        self.nodes.iter().rfind(|(name, _)| Some(name.as_str()) == node).map(|(_, id)| *id)
    }

    /// A request to a model is recorded when it ends, so its start is computed from its duration.
    fn model_call(&mut self, event: &RecordedEvent, node: Option<&str>) {
        let took = event.data["duration_ms"].as_u64().unwrap_or(0);
        let name = text(&event.data, "model").unwrap_or_default();
        let failed = event.data["error"].is_string();
        let id = self.open("model", name, event, self.node_span(node));
        if let Some(span) = self.spans.get_mut(id - 1) {
            span.start_ms = event.at.saturating_sub(took);
            span.duration_ms = Some(took);
            span.state = if failed { "failed" } else { "ok" };
        }
    }

    /// A question about a tool. The answer is a second event with the same id.
    fn approval(&mut self, event: &RecordedEvent) {
        let id = &event.data["id"];
        let asked = self.spans.iter().rfind(|span| {
            span.kind == "approval" && span.duration_ms.is_none() && span.detail["id"] == *id
        });
        if let Some(span) = asked.map(|span| span.id) {
            let allowed = ["once", "always"].map(Value::from).contains(&event.data["answer"]);
            self.close(span, event, if allowed { "ok" } else { "failed" });
        } else {
            let tool = text(&event.data, "tool").unwrap_or_default();
            self.open("approval", tool, event, None);
        }
    }

    fn thought(&mut self, event: &RecordedEvent, node: Option<&str>) {
        let data = &event.data;
        let topic = text(data, "type_detail").or_else(|| text(data, "type")).unwrap_or_default();
        // This request is already a span.
        if topic == "generation" {
            return;
        }
        if topic == "node" {
            let name = node.unwrap_or_default().to_owned();
            match data["status"].as_str() {
                Some("start") => {
                    let id = self.open("node", name.clone(), event, None);
                    self.nodes.push((name, id));
                }
                _ => self.close_node(node, event, "ok"),
            }
            return;
        }
        let kind = match topic.as_str() {
            "retrieval" => "retrieval",
            "tool" => "tool",
            _ => "step",
        };
        let named = text(data, "tool").or_else(|| text(data, "skill_name"));
        let name = named.filter(|_| kind == "tool").unwrap_or_else(|| topic.clone());
        let parent = self.node_span(node);
        match data["status"].as_str() {
            Some("start" | "searching" | "running") => {
                self.open(kind, name, event, parent);
            }
            Some("refused") => {
                let id = self.open("denial", name, event, parent);
                self.close(id, event, "failed");
            }
            Some(status) => {
                let state = if status == "error" { "failed" } else { "ok" };
                let open = |span: &&Span| {
                    span.duration_ms.is_none()
                        && (span.kind, &span.name, span.parent) == (kind, &name, parent)
                };
                let id = self.spans.iter().rfind(open).map(|span| span.id);
                let id = id.unwrap_or_else(|| self.open(kind, name, event, parent));
                self.close(id, event, state);
            }
            None => {
                let id = self.open(kind, name, event, parent);
                self.close(id, event, "ok");
            }
        }
    }
}

/// The warnings and errors of a run.
pub(crate) fn log_lines(events: &[RecordedEvent]) -> Vec<LogLine> {
    let line = |event: &RecordedEvent| {
        let (level, key) = match event.event.as_str() {
            "warning" => ("warning", "message"),
            "error" => ("error", "message"),
            "node_error" | "workflow_error" => ("error", "error"),
            "usage" | "thought" if event.data["error"].is_string() => ("error", "error"),
            "thought" if event.data["message"].is_string() => ("info", "message"),
            _ => return None,
        };
        let message = text(&event.data, key)?;
        let message = match text(&event.data, "node_id") {
            Some(node) => format!("{node}: {message}"),
            None => message,
        };
        Some(LogLine { at_ms: event.at, level, message })
    };
    events.iter().filter_map(line).collect()
}

/// The passages that the answer is based on.
pub(crate) fn citations(events: &[RecordedEvent]) -> Vec<Value> {
    let cited = events.iter().filter(|event| event.event == "citation");
    cited.flat_map(|event| event.data["sources"].as_array().cloned().unwrap_or_default()).collect()
}

fn text(data: &Value, key: &str) -> Option<String> {
    data[key].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(at: u64, name: &str, data: Value) -> RecordedEvent {
        RecordedEvent { at, event: name.to_owned(), data }
    }

    #[test]
    fn nodes_contain_requests_to_models() {
        let events = [
            event(5, "node_start", json!({"node_id": "a", "node_type": "llm"})),
            event(90, "usage", json!({"node_id": "a", "model": "stub:one", "duration_ms": 70})),
            event(95, "node_complete", json!({"node_id": "a", "output": "x"})),
            event(96, "node_start", json!({"node_id": "b", "node_type": "end"})),
        ];
        let spans = spans(&events);
        let seen: Vec<_> = spans
            .iter()
            .map(|span| (span.kind, span.parent, span.state, span.start_ms, span.duration_ms))
            .collect();
        assert_eq!(
            seen,
            [
                ("node", None, "ok", 5, Some(90)),
                ("model", Some(1), "ok", 20, Some(70)),
                ("node", None, "running", 96, None),
            ]
        );
        assert_eq!(spans[0].detail["output"], "x");
    }

    #[test]
    fn question_and_answer_are_one_span() {
        let events = [
            event(1, "thought", json!({"type": "tool", "status": "start", "tool": "add"})),
            event(2, "approval", json!({"id": "q", "tool": "add", "choices": ["once", "deny"]})),
            event(50, "approval", json!({"id": "q", "answer": "deny"})),
        ];
        let spans = spans(&events);
        assert_eq!((spans[1].kind, spans[1].name.as_str()), ("approval", "add"));
        assert_eq!((spans[1].state, spans[1].duration_ms), ("failed", Some(48)));
        assert_eq!(spans[1].detail["answer"], "deny");
    }

    #[test]
    fn thoughts_become_spans() {
        let events = [
            event(1, "thought", json!({"type": "validation", "status": "start"})),
            event(2, "thought", json!({"type": "validation", "status": "complete"})),
            event(3, "thought", json!({"type": "retrieval", "status": "searching"})),
            event(9, "thought", json!({"type": "retrieval", "status": "error", "error": "no"})),
            event(10, "thought", json!({"type": "tool", "status": "refused", "tool": "rm"})),
        ];
        let spans = spans(&events);
        let seen: Vec<_> =
            spans.iter().map(|span| (span.kind, span.name.as_str(), span.state)).collect();
        assert_eq!(
            seen,
            [
                ("step", "validation", "ok"),
                ("retrieval", "retrieval", "failed"),
                ("denial", "rm", "failed"),
            ]
        );
        assert_eq!(log_lines(&events).len(), 1);
    }
}
