//! Evaluates handlers that a web server calls with data of its users.

use oxc_ast::ast::BindingPattern;

use super::Function;
use crate::{
    action::Taint,
    value::{PROGRAM_REQUESTS, TYPED_PASSWORDS, Value},
};

/// Name of the request argument of a handler.
pub(super) const HANDLER_REQUEST: &str = "a request()";

fn name_of<'t>(pattern: &'t BindingPattern<'t>) -> &'t str {
    match pattern {
        BindingPattern::BindingIdentifier(id) => id.name.as_str().trim_start_matches('_'),
        // `({ headers, body }, res, next)`.
        BindingPattern::ObjectPattern(_) => "req",
        _ => "",
    }
}

/// Makes the value of a request. It always contains logins, and it contains typed data if the code
/// is middleware or a page asks for passwords.
fn request(sees_all: bool, asks_password: bool) -> Value {
    let proof = Value::tainted(Taint::private(PROGRAM_REQUESTS));
    let keys = ["headers", "cookies", "signedCookies", "rawHeaders", "header"];
    let mut items: Vec<Value> = keys.iter().map(|key| Value::entry(key, proof.clone())).collect();
    if asks_password {
        items.push(Value::entry("body", Value::tainted(Taint::private(TYPED_PASSWORDS))));
    } else if sees_all {
        items.push(Value::entry("body", proof));
    }
    Value { items, ..Value::named(HANDLER_REQUEST) }
}

/// Returns the first argument of a function that a web server calls.
pub(super) fn first_argument(
    name: &str,
    function: Function<'_>,
    asks_password: bool,
) -> Option<Value> {
    let names: Vec<&str> =
        function.parameters.items.iter().take(4).map(|one| name_of(&one.pattern)).collect();
    let next = names.iter().any(|name| matches!(*name, "next" | "done"));
    match names.as_slice() {
        ["req" | "request", "res" | "response" | "reply" | "rep" | "next" | "event", ..] => {
            Some(request(next, asks_password))
        }
        ["req" | "request"] if name.contains("iddleware") => Some(request(true, asks_password)),
        ["ctx" | "context" | "c", "next"] => {
            let mut context = request(true, asks_password);
            let inner = request(true, asks_password);
            context.put("request", inner.clone());
            context.put("req", inner);
            Some(context)
        }
        _ => None,
    }
}
