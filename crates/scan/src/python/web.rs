//! Tracks data that users send to a Python web application: logins and form fields.

use super::{PythonReader, calls::Call};
use crate::{
    action::Taint,
    value::{PROGRAM_REQUESTS, TYPED_PASSWORDS, Value},
};

/// Name of the request argument of a handler or middleware.
pub(super) const HANDLER_REQUEST: &str = "a request()";

/// Whether the name of a parameter says that an uncalled function is a request handler.
pub(super) fn is_request(parameter: &str) -> bool {
    matches!(parameter, "request" | "req")
}

/// Whether an attribute of a request contains user input.
fn is_user_input(attribute: &str) -> bool {
    matches!(
        attribute,
        "form" | "json" | "data" | "values" | "POST" | "body" | "get_json" | "get_data" | "forms"
    )
}

impl PythonReader<'_> {
    /// Adds the taint of a request attribute.
    pub(super) fn request_attribute(&self, mut value: Value, attribute: &str) -> Value {
        let name = value.name.as_deref().unwrap_or_default();
        let base = name.strip_suffix(attribute).and_then(|base| base.strip_suffix('.'));
        let request = matches!(
            base,
            Some(
                HANDLER_REQUEST
                    | "flask.request"
                    | "bottle.request"
                    | "quart.request"
                    | "sanic.request"
            )
        );
        if request {
            let proof = matches!(
                attribute,
                "headers" | "cookies" | "COOKIES" | "META" | "authorization" | "session"
            );
            if proof || is_user_input(attribute) && self.sees_all {
                value.taint.add(&Taint::private(PROGRAM_REQUESTS));
            }
        }
        if self.asks_password
            && (request && is_user_input(attribute) || base == Some("self") && attribute == "rfile")
        {
            value.taint.private = Some(TYPED_PASSWORDS);
        }
        value
    }
}

/// Whether the file installs middleware that sees every request of an application.
pub(super) fn installs_middleware(source: &str) -> bool {
    ["before_request", "after_request", "call_next", "get_response", "before_app_request"]
        .iter()
        .any(|mark| source.contains(mark))
}

/// Returns the result of a request method.
pub(super) fn by_name(reader: &PythonReader<'_>, name: &str, call: &Call<'_, '_>) -> Option<Value> {
    let method = call.method?;
    let read = is_user_input(method)
        && (name.starts_with("flask.request.") || name.starts_with(HANDLER_REQUEST));
    read.then(|| {
        let mut value = reader.request_attribute(Value::named(name), method);
        value.taint.fetched = Some(String::new());
        value.name = None;
        value
    })
}
