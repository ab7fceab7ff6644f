//! Tracks default addresses of environment variables, settings and command-line options.

use super::{PythonReader, calls::Call};
use crate::{host, value::Value};

/// Name of the value that contains the parsed command-line options.
pub(super) const PARSED_OPTIONS: &str = "argparse.args()";

/// Whether a value is an address; default paths and user names are expected.
fn is_address(value: &Value) -> bool {
    let text = value.text_or_unknown();
    text.starts_with("http") && text.contains("://")
        || text.starts_with("ws")
        || host::has_bare_ip(text)
}

/// Gives an unknown value the address that is used as its default.
pub(super) fn with_default_address(mut value: Value, default: Option<&Value>) -> Value {
    if value.text.is_none()
        && let Some(default) = default.filter(|default| is_address(default))
    {
        value.text.clone_from(&default.text);
    }
    value
}

/// Converts an option to its attribute name: `--base-url` to `base_url`.
fn option_name(flag: &str) -> String {
    flag.trim_start_matches('-').replace('-', "_")
}

pub(super) fn by_name(name: &str, call: &Call<'_, '_>) -> Option<Value> {
    if !matches!(name, "click.option" | "click.argument" | "typer.Option" | "typer.Argument") {
        return None;
    }
    if name.starts_with("typer.") {
        let default = call.at(0, "default")?;
        return is_address(default).then(|| default.clone());
    }
    let default = call.keyword("default").filter(|default| is_address(default))?;
    let flags = call.positional.iter().filter_map(Value::known);
    let names = flags.flat_map(|flag| flag.split('/')).map(option_name);
    let items = names.map(|name| Value::entry(&name, default.clone())).collect();
    Some(Value { items, ..Value::named("click.option()") })
}

pub(super) fn by_method(
    reader: &mut PythonReader<'_>,
    method: &str,
    call: &Call<'_, '_>,
) -> Option<Value> {
    match method {
        "add_argument" | "add_option" => {
            let default = call.keyword("default").filter(|default| is_address(default))?;
            let own = call.keyword("dest").and_then(Value::known).map(str::to_owned);
            let flags = call.positional.iter().filter_map(Value::known).map(option_name);
            for name in own.into_iter().chain(flags) {
                reader.options.put(&name, default.clone());
            }
            Some(Value::default())
        }
        "parse_args" | "parse_known_args" if !reader.options.items.is_empty() => {
            let options = Value { name: Some(PARSED_OPTIONS.into()), ..reader.options.clone() };
            if method == "parse_args" {
                return Some(options);
            }
            Some(Value { items: vec![options, Value::default()], ..Value::default() })
        }
        // `settings.get("url", "https://…")`, `settings.get("api", "url", fallback="https://…")`.
        "get" | "getstr" | "pop" => {
            let default = call.keyword("fallback").or_else(|| call.at(1, "default"))?;
            let known = is_address(default) && !call.first().text_or_unknown().contains("://");
            known.then(|| {
                with_default_address(Value::tainted(call.receiver.all_taint()), Some(default))
            })
        }
        _ => None,
    }
}
