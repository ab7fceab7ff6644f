//! Parses MCP messages.

use rmcp::{
    ErrorData,
    model::{ClientJsonRpcMessage, ErrorCode, RequestId},
};
use serde_json::Value;

/// The reason why bytes are not a valid message.
#[derive(Debug)]
pub(super) struct InvalidMessage {
    pub(super) error: ErrorData,
    /// The id of the invalid request, if it could be read.
    pub(super) id: Option<RequestId>,
}

/// Parses one message.
pub(super) fn read(bytes: &[u8]) -> Result<ClientJsonRpcMessage, Box<InvalidMessage>> {
    let wrong = |code, message: String, id| {
        Box::new(InvalidMessage { error: ErrorData::new(code, message, None), id })
    };
    let value = serde_json::from_slice::<Value>(bytes).map_err(|error| {
        wrong(ErrorCode::PARSE_ERROR, format!("the message is no JSON: {error}"), None)
    })?;
    if value.is_array() {
        let message = "messages come one by one".to_owned();
        return Err(wrong(ErrorCode::INVALID_REQUEST, message, None));
    }
    let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    if has_odd_cursor(&value) {
        let message = "`cursor` must be a text from the page before; begin without one".to_owned();
        return Err(wrong(ErrorCode::INVALID_PARAMS, message, id));
    }
    let is_request = value.get("method").is_some();
    serde_json::from_value(value).map_err(|_| {
        let message = if is_request {
            "it is not a message of JSON-RPC 2.0: check jsonrpc, id and params"
        } else {
            "it is not a message of JSON-RPC 2.0: there is no method"
        };
        wrong(ErrorCode::INVALID_REQUEST, message.to_owned(), id)
    })
}

/// Whether a list request has a cursor that is not a text. The library would treat it as missing,
/// and a client would read the first page forever.
fn has_odd_cursor(message: &Value) -> bool {
    let is_list = message["method"].as_str().is_some_and(|method| method.ends_with("/list"));
    let cursor = &message["params"]["cursor"];
    is_list && !cursor.is_null() && !cursor.is_string()
}
