//! Collects the events of a run within limits.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use savoir_flow::event::{Done, Event, ModelCall, sse};
use savoir_model::{Finish, Usage};
use savoir_store::{RunEnd, RunState};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Maximum bytes of the events of one run in memory. The oldest are dropped.
const MAX_LIVE_BYTES: usize = 4 * 1024 * 1024;
/// Maximum bytes of the stored events of one run.
const MAX_STORED_BYTES: usize = 1024 * 1024;
/// Maximum bytes of the stored output of one run.
const MAX_OUTPUT_BYTES: usize = 256 * 1024;

/// An event with its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedEvent {
    /// Milliseconds since the start of the run.
    pub(crate) at: u64,
    pub(crate) event: String,
    pub(crate) data: Value,
}

impl RecordedEvent {
    /// The event as a server-sent event with its number.
    pub(crate) fn to_sse(&self, id: u64) -> String {
        format!("id: {id}\n{}", sse(&self.event, &self.data))
    }

    fn size(&self) -> usize {
        self.data.to_string().len() + 64
    }
}

/// The events of a run so far.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    events: VecDeque<RecordedEvent>,
    /// The number of dropped events, which were the oldest ones.
    dropped: u64,
    bytes: usize,
    over: bool,
    answer: String,
    final_output: Option<String>,
    error: Option<String>,
    done: Option<RunState>,
    model: Option<String>,
    usage: Usage,
    model_tokens: BTreeMap<String, [u64; 2]>,
    finish: Option<Finish>,
}

impl EventLog {
    /// The total number of events.
    pub(crate) fn count(&self) -> u64 {
        self.dropped + self.events.len() as u64
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    pub(crate) fn set_over(&mut self) {
        self.over = true;
    }

    /// The events after the first `seen` ones, with their numbers. `done` is one of them only after
    /// the run is stored: a client that read it must find the run in the history.
    pub(crate) fn after(&self, seen: u64) -> Vec<(u64, RecordedEvent)> {
        let skip = usize::try_from(seen.saturating_sub(self.dropped)).unwrap_or(usize::MAX);
        // The client chooses this number, so it may be too large.
        let first = (self.dropped + 1).saturating_add(skip as u64);
        let rest = self.events.iter().skip(skip);
        let readable = rest.take_while(|event| self.over || event.event != "done").cloned();
        readable.zip(first..).map(|(event, id)| (id, event)).collect()
    }

    pub(crate) fn add(&mut self, at: Duration, event: &Event) {
        match event {
            Event::Token { content, .. } => self.answer.push_str(content),
            Event::WorkflowComplete { final_output } => {
                self.final_output = Some(match final_output {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                });
            }
            Event::Error { message, .. } | Event::WorkflowError { error: message } => {
                self.error.get_or_insert_with(|| message.clone());
            }
            Event::Done(Done::Error { message }) => {
                self.error.get_or_insert_with(|| message.clone());
                self.done = Some(RunState::Failed);
            }
            Event::Done(Done::Success { .. } | Done::Complete) => self.done = Some(RunState::Ok),
            Event::Done(Done::Failed) => self.done = Some(RunState::Failed),
            _ => {}
        }
        self.push(at, event.name(), event.data());
    }

    /// Adds a request to a model, as an event `usage`.
    pub(crate) fn add_call(&mut self, at: Duration, call: ModelCall) {
        let usage = call.usage.unwrap_or_default();
        self.usage.input += usage.input;
        self.usage.output += usage.output;
        if call.usage.is_some() || call.error.is_none() {
            let [input, output] = self.model_tokens.entry(call.model.clone()).or_default();
            *input = input.saturating_add(usage.input);
            *output = output.saturating_add(usage.output);
        }
        self.finish = call.finish.or(self.finish);
        if let Some(error) = &call.error {
            self.error.get_or_insert_with(|| error.clone());
        }
        let mut data = json!({
            "model": call.model,
            "input_tokens": usage.input,
            "output_tokens": usage.output,
            "finish_reason": call.finish.map(finish_word),
            "duration_ms": millis(call.duration),
        });
        if let Some(node) = call.node {
            data["node_id"] = json!(&*node);
        }
        if let Some(error) = call.error {
            data["error"] = error.into();
        }
        if call.is_estimate {
            data["is_estimate"] = true.into();
        }
        if !call.model.is_empty() {
            self.model = Some(call.model);
        }
        self.push(at, "usage", data);
    }

    fn push(&mut self, at: Duration, name: &str, data: Value) {
        let event = RecordedEvent { at: millis(at), event: name.to_owned(), data };
        self.bytes += event.size();
        self.events.push_back(event);
        while self.bytes > MAX_LIVE_BYTES
            && let Some(oldest) = self.events.pop_front()
        {
            self.bytes -= oldest.size();
            self.dropped += 1;
        }
    }

    /// How the run ended, by its last event.
    pub(crate) fn state(&self) -> RunState {
        self.done.unwrap_or(RunState::Stopped)
    }

    /// The result of the run, as it is stored.
    pub(crate) fn end(&self, state: RunState, stopped: Option<&str>) -> RunEnd {
        let output = self.final_output.clone().or_else(|| Some(self.answer.clone()));
        let output = output.filter(|output| !output.is_empty());
        RunEnd {
            state,
            ended_at: None,
            model: self.model.clone(),
            input_tokens: self.usage.input,
            output_tokens: self.usage.output,
            model_tokens: self.model_tokens.clone(),
            finish_reason: self.finish.map(|finish| finish_word(finish).to_owned()),
            error: self.error.clone().or_else(|| stopped.map(str::to_owned)),
            output: output.map(|output| shorten(&output)),
            events: serde_json::to_value(self.compacted()).unwrap_or_default(),
        }
    }

    /// The events to store, with consecutive tokens joined, up to the size limit.
    fn compacted(&self) -> Vec<RecordedEvent> {
        let mut kept: Vec<RecordedEvent> = Vec::new();
        for event in &self.events {
            if event.event == "token"
                && let Some(last) = kept.last_mut()
                && last.event == "token"
                && last.data["node_id"] == event.data["node_id"]
            {
                let text = [&last.data, &event.data].map(|data| data["content"].as_str());
                last.data["content"] = text.map(Option::unwrap_or_default).concat().into();
            } else {
                kept.push(event.clone());
            }
        }
        let mut bytes = 0;
        let fits = |event: &RecordedEvent| {
            bytes += event.size();
            bytes <= MAX_STORED_BYTES
        };
        let fitting = kept.iter().map(fits).take_while(|fits| *fits).count();
        if fitting < kept.len() {
            let at = kept[fitting].at;
            kept.truncate(fitting);
            let data = json!({"message": "The rest of the events is too long to be stored"});
            kept.push(RecordedEvent { at, event: "warning".to_owned(), data });
        }
        kept
    }
}

/// Shortens a text to the size that is stored.
pub(super) fn shorten(text: &str) -> String {
    if text.len() <= MAX_OUTPUT_BYTES {
        return text.to_owned();
    }
    let end = savoir_lint::floor_char_boundary(text, MAX_OUTPUT_BYTES);
    format!("{}… (cut, {} bytes in all)", &text[..end], text.len())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn finish_word(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ToolCalls => "tool_calls",
        Finish::Other => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn tokens_are_joined_when_stored() {
        let mut log = EventLog::default();
        for (ms, word) in [(1, "a"), (2, "b"), (3, "c")] {
            log.add(at(ms), &Event::token(word));
        }
        log.add(at(4), &Event::Done(Done::Success { message: "ok" }));
        assert_eq!(log.count(), 4);
        assert_eq!(log.after(3), [], "`done` waits until the run is stored");
        log.set_over();
        assert_eq!(log.after(3).len(), 1);
        assert_eq!(log.after(3)[0].0, 4);
        assert_eq!(log.after(u64::MAX), []);
        let end = log.end(log.state(), None);
        assert_eq!((end.state, end.output.as_deref()), (RunState::Ok, Some("abc")));
        assert_eq!(end.events.as_array().map(Vec::len), Some(2));
        assert_eq!(end.events[0]["data"]["content"], "abc");
    }

    #[test]
    fn old_events_are_dropped() {
        let mut log = EventLog::default();
        let long = "x".repeat(MAX_LIVE_BYTES / 4);
        for ms in 0..6 {
            log.add(at(ms), &Event::token(long.clone()));
        }
        assert_eq!(log.count(), 6);
        let left = log.after(0);
        assert!(left.len() < 6 && left.last().is_some_and(|(id, _)| *id == 6));
        assert_eq!(log.after(6), []);
        assert!(log.end(RunState::Ok, None).output.is_some_and(|text| text.contains("… (cut, ")));
    }

    #[test]
    fn usage_is_summed() {
        let mut log = EventLog::default();
        for tokens in [3, 4] {
            log.add_call(
                at(9),
                ModelCall {
                    node: None,
                    model: "stub:one".to_owned(),
                    usage: Some(Usage { input: tokens, output: 1 }),
                    is_estimate: false,
                    finish: Some(Finish::Length),
                    error: None,
                    duration: at(5),
                },
            );
        }
        let end = log.end(RunState::Ok, None);
        assert_eq!((end.input_tokens, end.output_tokens), (7, 2));
        assert_eq!(end.model_tokens["stub:one"], [7, 2]);
        assert_eq!(end.finish_reason.as_deref(), Some("length"));
        assert_eq!(end.model.as_deref(), Some("stub:one"));
    }
}
