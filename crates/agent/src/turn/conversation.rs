//! What was said. Every call has an answer here at every moment, so that the conversation can go on
//! wherever it was cut off.

use savoir_knowledge::chunk::estimate_tokens;
use savoir_model::{Message, ToolCall};
use serde_json::json;

/// What stands in the place of an answer until it is there.
const NOT_YET: &str = "[origin: savoir, failed: stopped]\nThe call was stopped before it ended. \
    Whether it had an effect is not known.";
/// What is left of an old answer for which there is no room.
const LEFT_OUT: &str = "[origin: savoir]\n(An older answer of a tool, left out to save room.)";

/// What was said, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    messages: Vec<Message>,
}

impl Conversation {
    /// A conversation that was kept somewhere.
    pub fn new(messages: Vec<Message>) -> Self {
        Self { messages }
    }

    /// What was said.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// A person says something.
    pub(super) fn hear(&mut self, text: &str) {
        self.messages.push(Message::User(text.to_owned()));
    }

    /// The model says something.
    pub(super) fn say(&mut self, text: String) {
        if !text.is_empty() {
            self.messages.push(Message::Assistant { text, tool_calls: Vec::new() });
        }
    }

    /// The model asks for calls; gives the place of the first answer.
    pub(super) fn say_and_call(&mut self, text: String, calls: &[ToolCall]) -> usize {
        let tool_calls: Vec<ToolCall> = calls.iter().map(presentable).collect();
        let answers = tool_calls
            .iter()
            .map(|call| Message::Tool { call_id: call.id.clone(), content: NOT_YET.to_owned() });
        let answers: Vec<Message> = answers.collect();
        self.messages.push(Message::Assistant { text, tool_calls });
        let first = self.messages.len();
        self.messages.extend(answers);
        first
    }

    /// A call is answered.
    pub(super) fn answer(&mut self, place: usize, text: String) {
        if let Some(Message::Tool { content, .. }) = self.messages.get_mut(place) {
            *content = text;
        }
    }

    /// What is sent: the system text, and the newest of what was said for which there is room.
    /// Whole turns are left out first, then old answers of tools.
    pub(super) fn request(&self, system: &str, most: usize) -> Vec<Message> {
        let room = most.saturating_sub(estimate_tokens(system));
        let mut messages = self.newest(room).to_vec();
        let mut size: usize = messages.iter().map(tokens).sum();
        let last = messages.iter().rposition(|one| matches!(one, Message::Assistant { .. }));
        for message in messages.iter_mut().take(last.unwrap_or_default()) {
            if size <= room {
                break;
            }
            let before = tokens(message);
            if let Message::Tool { content, .. } = message
                && content.len() > LEFT_OUT.len()
            {
                LEFT_OUT.clone_into(content);
            }
            size = size - before + tokens(message);
        }
        messages.insert(0, Message::System(system.to_owned()));
        messages
    }

    /// The newest turns that fit, and always the last one.
    fn newest(&self, room: usize) -> &[Message] {
        let is_begin = |message: &Message| matches!(message, Message::User(_));
        let (mut begin, mut size) = (self.messages.len(), 0);
        for (place, message) in self.messages.iter().enumerate().rev() {
            size += tokens(message);
            let is_last_turn = !self.messages[place + 1..].iter().any(is_begin);
            if size > room && !is_last_turn {
                break;
            }
            if is_begin(message) || is_last_turn {
                begin = place;
            }
        }
        &self.messages[begin..]
    }
}

/// A call as providers take it back: its arguments are an object.
fn presentable(call: &ToolCall) -> ToolCall {
    let arguments = if call.arguments.is_object() { call.arguments.clone() } else { json!({}) };
    ToolCall { arguments, ..call.clone() }
}

/// About how many tokens a message has.
pub(super) fn tokens(message: &Message) -> usize {
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
