//! Tool calls that come in parts.

use serde::Deserialize;
use serde_json::Value;

use super::{Answer, Wrong};
use crate::limits;

/// Calls that are being put together, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Pending>);

#[derive(Debug)]
struct Pending {
    index: u64,
    id: String,
    name: String,
    arguments: Value,
}

/// A part of a call.
#[derive(Deserialize)]
pub(super) struct Part {
    index: Option<u64>,
    id: Option<String>,
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    name: Option<String>,
    arguments: Option<Value>,
}

impl Calls {
    pub(super) fn add(&mut self, part: Part) -> Result<(), Wrong> {
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

    /// The call of that number. Where there are no numbers, another id begins another call.
    fn find(&mut self, index: Option<u64>, id: Option<&str>) -> Result<&mut Pending, Wrong> {
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
            Err(_) if self.0.len() == limits::TOOL_CALLS => {
                return Err(Wrong::TooManyCalls);
            }
            Err(position) => {
                let arguments = Value::String(String::new());
                let pending = Pending { index, id: String::new(), name: String::new(), arguments };
                self.0.insert(position, pending);
                position
            }
        };
        Ok(&mut self.0[position])
    }

    /// They are complete.
    pub(super) fn hand_on(&mut self, answer: &mut Answer) -> Result<(), Wrong> {
        for Pending { id, name, arguments, .. } in self.0.drain(..) {
            answer.call(&id, &name, arguments)?;
        }
        Ok(())
    }
}
