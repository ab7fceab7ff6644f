//! Errors as JSON on standard output, for every command that is called with `--json`.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::{error::CommandError, output};

/// Whether the command line has `--json` before `--`.
pub(crate) fn is_json_requested(args: &[OsString]) -> bool {
    args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--json")
}

/// Prints an error, unless the command has already printed a document.
pub(crate) fn print(error: &CommandError) {
    if output::has_printed() {
        return;
    }
    if let Some(json) = error.to_json() {
        // If standard output is closed, standard error still has the message.
        let _ = output::json(&json);
    }
}

/// Prints an error of the command line.
pub(crate) fn print_usage_error(error: &clap::Error) {
    let text = error.render().to_string();
    let mut error_to_print = CommandError::input(message_of(&text));
    for kind in [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg] {
        if let Some(ContextValue::String(near)) = error.get(kind) {
            error_to_print = error_to_print.hint(format!("did you mean `{near}`?"));
        }
    }
    if error.kind() == ErrorKind::MissingRequiredArgument
        && let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage)
    {
        let usage = usage.to_string();
        let usage = usage.trim().trim_start_matches("Usage:").trim();
        error_to_print = error_to_print.hint(format!("usage: {usage}"));
    }
    print(&error_to_print);
}

/// The message of an error: its first line, with the list below it if there is one.
fn message_of(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    if !first.ends_with(':') {
        return first.to_owned();
    }
    let listed: Vec<&str> =
        lines.map_while(|line| line.strip_prefix("  ")).map(str::trim).collect();
    format!("{first} {}", listed.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_arguments_are_in_the_message() {
        let text = "error: the following required arguments were not provided:\n  --output <FILE>\n  \
                    <NAME>\n\nUsage: savoir export\n";
        assert_eq!(
            message_of(text),
            "the following required arguments were not provided: --output <FILE>, <NAME>"
        );
        assert_eq!(message_of("error: no\n  tip: x\n"), "no");
    }

    #[test]
    fn json_after_two_hyphens_belongs_to_the_tool() {
        let args = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert!(is_json_requested(&args("savoir list --json")));
        assert!(!is_json_requested(&args("savoir run tool -- --json")));
    }
}
