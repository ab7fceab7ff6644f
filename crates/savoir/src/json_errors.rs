//! Errors as JSON on standard output, for every command that is called with `--json`.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};

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
    let first = text.lines().next().unwrap_or_default();
    let message = first.strip_prefix("error: ").unwrap_or(first);
    let mut error_to_print = CommandError::input(message);
    for kind in [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg] {
        if let Some(ContextValue::String(near)) = error.get(kind) {
            error_to_print = error_to_print.hint(format!("did you mean `{near}`?"));
        }
    }
    print(&error_to_print);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_after_two_hyphens_belongs_to_the_tool() {
        let args = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert!(is_json_requested(&args("savoir list --json")));
        assert!(!is_json_requested(&args("savoir run tool -- --json")));
    }
}
