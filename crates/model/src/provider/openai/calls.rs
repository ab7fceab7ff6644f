//! Assembles tool calls that arrive in parts.

use serde::Deserialize;
use serde_json::Value;

use super::{AnswerState, DecodeError};
use crate::limits;

/// Incomplete tool calls, sorted by index.
#[derive(Debug, Default)]
pub(super) struct PendingCalls(Vec<PendingCall>);

#[derive(Debug)]
struct PendingCall {
    index: u64,
    id: String,
    name: String,
    arguments: Value,
}

/// A part of a tool call.
#[derive(Deserialize)]
pub(super) struct CallPart {
    index: Option<u64>,
    id: Option<String>,
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    name: Option<String>,
    arguments: Option<Value>,
}

impl PendingCalls {
    pub(super) fn add(&mut self, part: CallPart) -> Result<(), DecodeError> {
        let pending = self.find(part.index, part.id.as_deref())?;
        if let Some(id) = part.id.filter(|id| !id.is_empty()) {
            pending.id = id;
        }
        let Some(function) = part.function else { return Ok(()) };
        if let Some(name) = function.name {
            pending.name.push_str(&name);
        }
        match (&mut pending.arguments, function.arguments) {
            (Value::String(known), Some(Value::String(more))) => known.push_str(&more),
            (known, Some(whole @ Value::Object(_))) => *known = whole,
            _ => {}
        }
        Ok(())
    }

    /// Finds or creates the call with an index. Without an index, a new ID starts a new call.
    fn find(
        &mut self,
        index: Option<u64>,
        id: Option<&str>,
    ) -> Result<&mut PendingCall, DecodeError> {
        let last = self.0.last();
        let index = index.unwrap_or_else(|| match (last, id) {
            (None, _) => 0,
            (Some(last), Some(id)) if !id.is_empty() && last.id != id => {
                last.index.saturating_add(1)
            }
            (Some(last), _) => last.index,
        });
        let position = match self.0.binary_search_by_key(&index, |pending| pending.index) {
            Ok(position) => position,
            Err(_) if self.0.len() == limits::MAX_TOOL_CALLS => {
                return Err(DecodeError::TooManyCalls);
            }
            Err(position) => {
                let arguments = Value::String(String::new());
                let pending =
                    PendingCall { index, id: String::new(), name: String::new(), arguments };
                self.0.insert(position, pending);
                position
            }
        };
        Ok(&mut self.0[position])
    }

    /// Queues all calls, which are complete at this point.
    pub(super) fn push_calls(&mut self, answer: &mut AnswerState) -> Result<(), DecodeError> {
        for PendingCall { id, name, arguments, .. } in self.0.drain(..) {
            answer.push_tool_call(&id, &name, arguments)?;
        }
        Ok(())
    }
}
