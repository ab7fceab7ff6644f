//! Answers chat messages with a workflow, and translates its events into chat events.

use savoir_flow::{
    event::{Done, Emitter, Event, ListenerDisconnected, Thought},
    workflow::{self, Journal, WorkflowHost, WorkflowOutcome, WorkflowRun, limits},
};
use savoir_store::StoreError;
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;

use super::{ChatService, ChatTurn};

impl ChatService {
    /// Answers a message with a workflow, and stores the result: its output, or the text so far if
    /// it failed.
    pub async fn answer_by_workflow(
        &self,
        turn: &ChatTurn,
        host: &WorkflowHost,
        mut run: WorkflowRun<'_>,
        journal: &dyn Journal,
        out: &Emitter,
    ) {
        match self.history_before(turn).await {
            Ok(messages) => run.checkpoint.history = messages,
            Err(error) => {
                tracing::warn!(session = turn.session, %error, "a conversation cannot be read");
            }
        }
        let (out, transcript) = out.with_transcript();
        let (inner, events) = out.nested();
        let run_agent = async move { workflow::run(host, run, journal, &inner).await };
        // If the client disconnects, `forward_events` drops the receiver, so that the workflow's
        // next event fails and the workflow stops.
        let (outcome, forwarded) = tokio::join!(run_agent, forward_events(events, &out));
        let text = match &outcome {
            Ok(WorkflowOutcome::Completed { output }) => text_of(output),
            _ => transcript.text(),
        };
        let ended = outcome.and_then(|outcome| forwarded.map(|()| done_event(outcome)));
        self.end(turn, &text, ended, &out).await;
    }

    /// The messages before the current one, for nodes that use the history.
    async fn history_before(&self, turn: &ChatTurn) -> Result<Vec<Value>, StoreError> {
        let most = limits::MAX_HISTORY_MESSAGES as u32 + 1;
        let mut messages = self.database.sessions().messages(&turn.session, Some(most)).await?;
        if let Some(at) = messages.iter().rposition(|message| message.content == turn.message) {
            messages.truncate(at);
        }
        let kept = messages
            .iter()
            .map(|message| json!({"role": message.speaker.as_str(), "content": message.content}));
        Ok(kept.collect())
    }
}

async fn forward_events(
    mut events: Receiver<Event>,
    out: &Emitter,
) -> Result<(), ListenerDisconnected> {
    loop {
        let event = tokio::select! {
            biased;
            // Without this, a disconnected client would only be noticed at the next event of the
            // workflow.
            () = out.gone() => return Err(ListenerDisconnected),
            event = events.recv() => event,
        };
        let Some(event) = event else { return Ok(()) };
        if let Some(event) = to_chat_event(event) {
            out.emit(event).await?;
        }
    }
}

/// Converts a workflow event into a chat event.
fn to_chat_event(event: Event) -> Option<Event> {
    let of_node = |status, node_id: String| Thought::new("node", status).with("node_id", node_id);
    Some(match event {
        Event::WorkflowStart { workflow_name, .. } => {
            Thought::new("workflow", "start").with("workflow_name", workflow_name).into()
        }
        Event::NodeStart { node_id, node_type } => {
            of_node("start", node_id).with("node_type", node_type).into()
        }
        Event::NodeComplete { node_id, .. } => of_node("complete", node_id).into(),
        Event::Token { content, .. } => Event::token(content),
        Event::Thought(thought) => thought.in_conversation().into(),
        Event::WorkflowError { error } => Event::error(error),
        Event::Citation { .. } | Event::Warning { .. } => event,
        // The workflow's own error event follows, with the same text.
        _ => return None,
    })
}

fn done_event(outcome: WorkflowOutcome) -> Done {
    match outcome {
        WorkflowOutcome::Completed { .. } => Done::Success { message: "Workflow completed" },
        WorkflowOutcome::Failed { error } => Done::Error { message: error },
        WorkflowOutcome::TimedOut => Done::Error { message: "Timeout".to_owned() },
        WorkflowOutcome::TakenOver => {
            Done::Error { message: "Execution was taken over by another worker".to_owned() }
        }
    }
}

fn text_of(output: &Value) -> String {
    output.as_str().map_or_else(|| output.to_string(), str::to_owned)
}
