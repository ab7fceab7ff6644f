//! Stores the messages of a conversation. Every tool call has an answer at every moment, so that the
//! conversation can continue after it was interrupted.

use savoir_knowledge::chunk::estimate_tokens;
use savoir_model::{Message, ToolCall};
use serde_json::json;

/// The answer of a call until it has completed.
const STOPPED_ANSWER: &str = "[origin: savoir, failed: stopped]\nThe call was stopped before it ended. \
    Whether it had an effect is not known.";
/// Replaces an old tool answer that does not fit into the context.
const OMITTED_ANSWER: &str =
    "[origin: savoir]\n(An older answer of a tool, left out to save room.)";

/// The messages of a conversation, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    messages: Vec<Message>,
}

impl Conversation {
    /// Continues a stored conversation.
    pub fn new(messages: Vec<Message>) -> Self {
        Self { messages }
    }

    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Adds a message of the user.
    pub(super) fn push_user(&mut self, text: &str) {
        self.messages.push(Message::User(text.to_owned()));
    }

    /// Adds a message of the model.
    pub(super) fn push_assistant(&mut self, text: String) {
        if !text.is_empty() {
            self.messages.push(Message::Assistant { text, tool_calls: Vec::new() });
        }
    }

    /// Adds tool calls of the model; returns the index of the first answer.
    pub(super) fn push_calls(&mut self, text: String, calls: &[ToolCall]) -> usize {
        let tool_calls: Vec<ToolCall> = calls.iter().map(with_object_arguments).collect();
        let answers = tool_calls.iter().map(|call| Message::Tool {
            call_id: call.id.clone(),
            content: STOPPED_ANSWER.to_owned(),
        });
        let answers: Vec<Message> = answers.collect();
        self.messages.push(Message::Assistant { text, tool_calls });
        let first = self.messages.len();
        self.messages.extend(answers);
        first
    }

    /// Sets the answer of a call.
    pub(super) fn set_tool_answer(&mut self, index: usize, text: String) {
        if let Some(Message::Tool { content, .. }) = self.messages.get_mut(index) {
            *content = text;
        }
    }

    /// Builds the messages of a request: the system prompt and the newest messages that fit. Whole
    /// turns are left out first, then old tool answers.
    pub(super) fn request(&self, system: &str, max_tokens: usize) -> Vec<Message> {
        let budget = max_tokens.saturating_sub(estimate_tokens(system));
        let mut messages = self.newest_turns(budget).to_vec();
        let mut size: usize = messages.iter().map(message_tokens).sum();
        let last = messages.iter().rposition(|one| matches!(one, Message::Assistant { .. }));
        for message in messages.iter_mut().take(last.unwrap_or_default()) {
            if size <= budget {
                break;
            }
            let before = message_tokens(message);
            if let Message::Tool { content, .. } = message
                && content.len() > OMITTED_ANSWER.len()
            {
                OMITTED_ANSWER.clone_into(content);
            }
            size = size - before + message_tokens(message);
        }
        messages.insert(0, Message::System(system.to_owned()));
        messages
    }

    /// Returns the newest turns that fit, and always the last one.
    fn newest_turns(&self, budget: usize) -> &[Message] {
        let is_turn_start = |message: &Message| matches!(message, Message::User(_));
        let (mut start, mut size) = (self.messages.len(), 0);
        for (index, message) in self.messages.iter().enumerate().rev() {
            size += message_tokens(message);
            let is_last_turn = !self.messages[index + 1..].iter().any(is_turn_start);
            if size > budget && !is_last_turn {
                break;
            }
            if is_turn_start(message) || is_last_turn {
                start = index;
            }
        }
        &self.messages[start..]
    }
}

/// Returns the call with arguments that are an object, as providers require.
fn with_object_arguments(call: &ToolCall) -> ToolCall {
    let arguments = if call.arguments.is_object() { call.arguments.clone() } else { json!({}) };
    ToolCall { arguments, ..call.clone() }
}

/// Estimates the tokens of a message.
pub(super) fn message_tokens(message: &Message) -> usize {
    match message {
        Message::System(text) | Message::User(text) | Message::Tool { content: text, .. } => {
            estimate_tokens(text)
        }
        Message::Assistant { text, tool_calls } => {
            let calls = tool_calls.iter().map(|call| {
                estimate_tokens(&call.name) + estimate_tokens(&call.arguments.to_string())
            });
            estimate_tokens(text) + calls.sum::<usize>()
        }
    }
}
