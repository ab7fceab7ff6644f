//! Completes names of skills, agents and rules on the command line.
//!
//! The script that `savoir completions` prints calls the program with [`VARIABLE`] set whenever the
//! user presses Tab, so that candidates are always up to date.

use std::{collections::BTreeSet, ffi::OsStr};

use clap_complete::{
    CompleteEnv,
    engine::{CompletionCandidate, PathCompleter, ValueCompleter as _},
};
use savoir_lint::visible;
use savoir_package::{Agent, ledger::LedgerEntry};

use crate::{
    commands::{
        help,
        rules::{self, Rule},
    },
    installed::Installed,
};

/// The environment variable with the name of the shell that requests candidates.
pub(crate) const VARIABLE: &str = "SAVOIR_COMPLETE";

/// Prints candidates if a shell requests them, and exits; otherwise does nothing.
pub(crate) fn answer_shell() {
    CompleteEnv::with_factory(help::command).var(VARIABLE).complete();
}

/// The names of installed skills.
pub(crate) fn installed_skills() -> Vec<CompletionCandidate> {
    let Ok(installed) = Installed::open(None) else { return Vec::new() };
    let names: BTreeSet<&str> = installed.ledger.entries().iter().map(LedgerEntry::name).collect();
    // Names come from files of skills, and shells print candidates on the terminal unescaped.
    let safe = names.into_iter().filter(|name| visible(name) == *name);
    safe.map(CompletionCandidate::new).collect()
}

/// The names of installed skills, and the paths below the working folder.
pub(crate) fn skills_and_paths(current: &OsStr) -> Vec<CompletionCandidate> {
    let start = current.to_string_lossy();
    let mut candidates = installed_skills();
    candidates.retain(|skill| skill.get_value().to_string_lossy().starts_with(&*start));
    candidates.extend(PathCompleter::any().complete(current));
    candidates
}

/// The agents.
pub(crate) fn agents() -> Vec<CompletionCandidate> {
    let candidate =
        |agent: &Agent| CompletionCandidate::new(agent.id).help(Some(agent.title.into()));
    Agent::ALL.iter().map(candidate).collect()
}

/// The rules of `savoir check` and `savoir scan`.
pub(crate) fn rules() -> Vec<CompletionCandidate> {
    let candidate =
        |rule: Rule| CompletionCandidate::new(rule.code).help(Some(rule.summary.into()));
    rules::all().into_iter().map(candidate).collect()
}
