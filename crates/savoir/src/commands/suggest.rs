//! Better suggestions for mistyped commands and options: the nearest one alone.

use std::ffi::OsString;

use clap::{
    Command,
    error::{ContextKind, ContextValue, ErrorKind},
};
use savoir_lint::words::nearest;

use crate::error::CommandError;

/// Words that other tools use, and the command for them.
const OTHER_NAMES: [(&str, &str); 8] = [
    ("fix", "check --fix"),
    ("delete", "remove"),
    ("rm", "remove"),
    ("inspect", "show"),
    ("view", "show"),
    ("version", "--version"),
    ("validate-skill", "check"),
    ("init", "new"),
];

/// The error for a command that exists in a full build only.
pub(crate) fn not_built_in(error: &clap::Error) -> Option<CommandError> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let left_out = cfg!(not(feature = "server")) && super::help::is_listed(word);
    left_out.then(|| CommandError::not_built_in(&format!("the command `{word}`")))
}

/// Replaces the suggestions of a usage error.
pub(crate) fn improve(error: &mut clap::Error, root: &Command, args: &[OsString]) {
    let command = typed_command(root, args);
    let invalid = |error: &clap::Error, kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let Some(word) = invalid(error, ContextKind::InvalidSubcommand) else { return };
            error.remove(ContextKind::SuggestedSubcommand);
            if let Some(near) = nearest_command(command, &word) {
                error.insert(ContextKind::SuggestedSubcommand, ContextValue::String(near));
            }
        }
        ErrorKind::UnknownArgument => {
            let Some(word) = invalid(error, ContextKind::InvalidArg) else { return };
            let Some(near) = nearest_option(command, &word) else { return };
            // The default tip, to pass the word as a value, does not help with a typo.
            error.remove(ContextKind::Suggested);
            error.insert(ContextKind::SuggestedArg, ContextValue::String(near));
        }
        _ => {}
    }
}

/// The deepest command that the words name.
fn typed_command<'a>(root: &'a Command, args: &[OsString]) -> &'a Command {
    let mut command = root;
    for word in args.iter().skip(1).filter_map(|word| word.to_str()) {
        match command.find_subcommand(word) {
            Some(found) => command = found,
            None if word.starts_with('-') => {}
            None => break,
        }
    }
    command
}

fn nearest_command(command: &Command, word: &str) -> Option<String> {
    let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
    let names: Vec<&str> =
        shown.flat_map(|one| one.get_visible_aliases().chain([one.get_name()])).collect();
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == word).map(|(_, name)| *name);
    // Only the root has these commands.
    let other = other.filter(|_| command.get_name() == "savoir");
    other.or_else(|| nearest(word, names)).map(str::to_owned)
}

fn nearest_option(command: &Command, word: &str) -> Option<String> {
    let shown = command.get_arguments().filter(|one| !one.is_hide_set());
    let names: Vec<&str> = shown.filter_map(clap::Arg::get_long).collect();
    // The address of a registry is an option.
    if word.starts_with("http://") || word.starts_with("https://") {
        return names.contains(&"registry").then(|| "--registry".to_owned());
    }
    let typed = word.strip_prefix("--")?;
    let typed = typed.split('=').next().unwrap_or(typed);
    nearest(typed, names).map(|name| format!("--{name}"))
}
