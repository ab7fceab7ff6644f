//! Prints the events of a run as text or as JSON.

use std::{
    collections::HashMap,
    io::{self, IsTerminal as _, Write as _},
    process::ExitCode,
};

use savoir_flow::event::{CitedSource, Done, Event, Thought};
use savoir_lint::{visible_json, words::one_line};
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;

use crate::{error::CommandError, model_errors::Failure, output};

/// How a run is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventFormat {
    /// One JSON object per event, each on its own line.
    Json,
    /// The answer, with the steps on standard error.
    Steps,
    /// Only the answer.
    Answer,
}

impl EventFormat {
    /// Steps are printed on a terminal, or with `--verbose`.
    pub(crate) fn new(json: bool, verbose: bool) -> Self {
        match (json, verbose || io::stderr().is_terminal()) {
            (true, _) => Self::Json,
            (false, true) => Self::Steps,
            (false, false) => Self::Answer,
        }
    }
}

/// How a run ended, according to its events.
#[derive(Debug)]
pub(crate) enum RunEnd {
    Completed,
    Failed(String),
    /// Interrupted by a signal.
    Stopped,
}

/// Prints events as they come.
#[derive(Debug)]
pub(crate) struct Printer {
    format: EventFormat,
    sources: Vec<CitedSource>,
    failed: Option<String>,
    /// The answer so far, if it must be checked before it is printed.
    buffered: Option<String>,
    /// Whether the last printed line is not finished.
    open: bool,
    /// The first tool that needed approval without a user to ask.
    unapproved: Option<String>,
    /// The last failure of the model, whose reason is not in the events.
    model_failure: Failure,
    /// The code of an error event that has none.
    error_code: Option<&'static str>,
}

impl Printer {
    pub(crate) fn new(format: EventFormat) -> Self {
        Self {
            format,
            sources: Vec::new(),
            failed: None,
            buffered: None,
            open: false,
            unapproved: None,
            model_failure: Failure::default(),
            error_code: None,
        }
    }

    /// Adds to an error event why the model failed, or else this code.
    #[must_use]
    pub(crate) fn with_reasons(self, model_failure: Failure, code: &'static str) -> Self {
        Self { model_failure, error_code: Some(code), ..self }
    }

    /// Buffers the answer instead of printing it, so that only its JSON is printed.
    pub(crate) fn buffer_answer(&mut self) {
        self.buffered = Some(String::new());
    }

    /// The buffered answer.
    pub(crate) fn take_buffered(&mut self) -> Option<String> {
        self.buffered.take()
    }

    /// The first tool that needed approval without a user to ask.
    pub(crate) fn first_unapproved_tool(&self) -> Option<&str> {
        self.unapproved.as_deref()
    }

    /// Prints all events of a run until it ends or is interrupted.
    pub(crate) async fn follow(
        &mut self,
        mut events: Receiver<Event>,
    ) -> Result<RunEnd, CommandError> {
        let mut interrupted = std::pin::pin!(tokio::signal::ctrl_c());
        loop {
            let event = tokio::select! {
                biased;
                event = events.recv() => event,
                _ = &mut interrupted => {
                    self.close()?;
                    return Ok(RunEnd::Stopped);
                }
            };
            let Some(event) = event else { break };
            self.print(event)?;
        }
        self.close()?;
        Ok(self.failed.take().map_or(RunEnd::Completed, RunEnd::Failed))
    }

    /// Prints the cited sources, with the name of each document if it is known.
    pub(crate) fn print_sources(&self, names: &HashMap<String, String>) {
        if self.format == EventFormat::Json {
            return;
        }
        for (at, source) in self.sources.iter().enumerate() {
            let name = names.get(&source.doc_id).unwrap_or(&source.doc_id);
            let text = one_line(&source.text);
            let (place, score) = (source.chunk_index, source.score);
            output::note(&format!("[{}] {name}, part {place} ({score:.4}): {text}", at + 1));
        }
    }

    fn print(&mut self, event: Event) -> Result<(), CommandError> {
        if self.format == EventFormat::Json {
            self.print_json(&event)?;
        }
        match event {
            Event::Thought(thought) if thought.topic() == "tool" => self.tool(&thought)?,
            Event::Thought(thought) => self.step(&step(&thought))?,
            Event::Token { node: None, content } => self.print_text(&content)?,
            Event::Citation { sources, .. } => self.sources.extend(sources),
            Event::Warning { message, .. } => self.step(&format!("warning: {message}"))?,
            Event::Error { message, .. } | Event::WorkflowError { error: message } => {
                self.failed = Some(message);
            }
            Event::Done(Done::Error { message }) => {
                self.failed.get_or_insert(message);
            }
            // The answer of a workflow node is printed when the node is complete; the terminal asks its
            // questions itself.
            Event::Token { .. }
            | Event::Approval(_)
            | Event::Done(Done::Success { .. } | Done::Complete | Done::Failed) => {}
            Event::WorkflowStart { workflow_name, .. } => self.step(&workflow_name)?,
            Event::NodeStart { node_id, node_type } => {
                self.step(&format!("{node_type} {node_id} …"))?;
            }
            Event::NodeComplete { node_id, output, .. } => {
                self.step(&format!("{node_id}: {}", first_line(&output)))?;
            }
            Event::NodeError { node_id, error } => self.step(&format!("{node_id}: {error}"))?,
            Event::WorkflowComplete { final_output } => self.print_text(&text(&final_output))?,
        }
        Ok(())
    }

    fn print_json(&self, event: &Event) -> Result<(), CommandError> {
        let mut data = event.data();
        match (event, self.model_failure.get()) {
            (Event::Error { .. }, Some(error)) => data = failure_data(&error),
            (Event::Error { code: None, .. }, None) => {
                if let Some(code) = self.error_code {
                    data["code"] = code.into();
                }
            }
            (Event::Done(Done::Error { .. }), Some(error)) => {
                data["message"] = error.to_string().into();
            }
            _ => {}
        }
        print_line(event.name(), &data)
    }

    /// One line for each call, and one for each failure.
    fn tool(&mut self, thought: &Thought) -> Result<(), CommandError> {
        let member = |key: &str| thought.member(key).and_then(Value::as_str);
        let name = member("tool").unwrap_or_default();
        let of = member("skill").map(|skill| format!("{skill}: ")).unwrap_or_default();
        if member("code") == Some("approval-needed") {
            self.unapproved.get_or_insert_with(|| name.to_owned());
        }
        let line = match member("status") {
            Some("start") => {
                let argument = member("arguments").or_else(|| member("skill_name"));
                format!("{of}{name} {}", argument.unwrap_or_default())
            }
            Some("complete") => return Ok(()),
            _ => {
                let code = member("code").unwrap_or("failed");
                format!("{of}{name}: {code}: {}", member("message").unwrap_or_default())
            }
        };
        if self.format == EventFormat::Steps {
            self.close()?;
            output::note(line.lines().next().unwrap_or_default());
        }
        Ok(())
    }

    fn step(&mut self, line: &str) -> Result<(), CommandError> {
        if self.format == EventFormat::Steps {
            self.close()?;
            output::note(line);
        }
        Ok(())
    }

    /// Prints text as it arrives: byte for byte to a pipe, escaped on a terminal.
    fn print_text(&mut self, words: &str) -> Result<(), CommandError> {
        if self.format == EventFormat::Json {
            return Ok(());
        }
        if let Some(buffered) = &mut self.buffered {
            buffered.push_str(words);
        } else if !words.is_empty() {
            output::content(words)?;
            self.open = !words.ends_with('\n');
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), CommandError> {
        if std::mem::take(&mut self.open) {
            output::text("\n")?;
        }
        Ok(())
    }
}

/// Reports a failure from before the first event: as events with hints on standard output, and as
/// text on standard error.
pub(crate) fn report_failure(error: CommandError) -> Result<ExitCode, CommandError> {
    // Standard output was closed.
    if error.code().is_none() {
        return Err(error);
    }
    print_line("error", &failure_data(&error))?;
    let last = Event::failed(error.to_string());
    print_line(last.name(), &last.data())?;
    Ok(error.report())
}

/// The data of an error event, with the reason and hints that this user may see.
fn failure_data(error: &CommandError) -> Value {
    json!({"message": error.to_string(), "code": error.code(), "help": error.hints()})
}

fn print_line(name: &str, data: &Value) -> Result<(), CommandError> {
    let line = json!({"event": name, "data": data}).to_string();
    let mut out = io::stdout().lock();
    writeln!(out, "{}", visible_json(&line))?;
    Ok(out.flush()?)
}

/// `retrieval: complete, 3 found`
fn step(thought: &Thought) -> String {
    let member = |key: &str| thought.member(key).and_then(Value::as_str);
    let mut line = thought.topic().to_owned();
    let said = member("message").or_else(|| member("error"));
    let chosen = member("branch").or_else(|| member("skill_name"));
    for part in [member("status"), chosen, said].into_iter().flatten() {
        line = format!("{line}: {part}");
    }
    match thought.member("results_count") {
        Some(count) => format!("{line}, {count} found"),
        None => line,
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The first line of a value, cut short.
fn first_line(value: &Value) -> String {
    let text = text(value);
    let line = text.lines().next().unwrap_or_default();
    let short: String = line.chars().take(100).collect();
    if short.len() == text.len() { short } else { format!("{short} …") }
}
