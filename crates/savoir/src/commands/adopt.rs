//! `savoir adopt`: adds already installed skills to savoir.lock without moving them.

use std::{path::Path, process::ExitCode};

use savoir_package::{
    agents::Scope,
    install::AdoptionCandidate,
    ledger::{LedgerEntry, Origin},
};
use savoir_scan::Verdict;
use serde_json::Map;

use crate::{
    error::CommandError,
    install_context::{Consent, InstallContext, OutputArgs, Report, ScopeArgs},
    installed::Installed,
    lookup::unknown,
    output,
};

/// Add already installed skills to savoir.lock without moving them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir adopt                           list skills that can be adopted; change nothing
  savoir adopt pdf
  savoir adopt --all --user              all skills of the user

Skills that `npx skills`, `gh skill` or ClawHub installed, or that you copied, are not moved. The
lockfiles of these tools are not changed. If the source of a skill is found, your edits are detected
and updates merge with them. `savoir undo` reverts the adoption.")]
pub(crate) struct Args {
    /// Names or folders of the skills
    #[arg(value_name = "NAME|PATH")]
    names: Vec<String>,
    /// Adopt all skills that are not in savoir.lock
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Do not search the network for their sources
    #[arg(long)]
    offline: bool,
    /// Adopt this skill although the scan blocks it; may be repeated
    #[arg(long, value_name = "NAME")]
    allow_blocked: Vec<String>,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    adopt(args)
}

fn adopt(args: &Args) -> Result<ExitCode, CommandError> {
    let context = args.scope.open()?;
    let installed = Installed::open(args.scope.project())?;
    installed.warn();
    let entries = entries(args, &context, &installed)?;
    context.doing("looking for installed skills");
    let fetcher = (!args.offline).then_some(&context.fetcher);
    let found =
        context.wait(context.skill_set.find_adoptable(&entries, fetcher, &context.trust))?;
    context.done();
    found.iter().for_each(print_notes);
    let only_looks = args.output.dry_run || !args.all && args.names.is_empty();
    if !only_looks {
        let ready = found.iter().filter_map(|found| found.ready().ok().cloned());
        let ready: Vec<_> = ready.collect();
        context.refuse_blocked(&Consent::to_blocked(&args.allow_blocked), &ready)?;
        ready.iter().try_for_each(|one| context.check_policy_from(one, None))?;
    }
    let (plan, done) =
        context.carry_out(|| Ok(context.skill_set.adopt(&found)?), |_| Ok(!only_looks))?;
    Report { json: args.output.json, done }.print(&context, &[&plan], Map::new())?;
    // A skill that was named and could not be adopted is a failure.
    let adopted_none = !args.names.is_empty() && found.iter().all(|found| found.ready().is_err());
    Ok(ExitCode::from(u8::from(adopted_none)))
}

/// The selected skills of this scope that are not in savoir.lock.
fn entries<'a>(
    args: &Args,
    context: &InstallContext,
    installed: &'a Installed,
) -> Result<Vec<&'a LedgerEntry>, CommandError> {
    let scope = if context.is_global() { Scope::User } else { Scope::Project };
    let is_meant = |entry: &&LedgerEntry| {
        !matches!(entry.recorded(), Some(Origin::Savoir { .. }))
            && entry.places().iter().any(|place| place.scope() == scope)
    };
    if args.names.is_empty() {
        return Ok(installed.ledger.entries().iter().filter(is_meant).collect());
    }
    let mut found = Vec::new();
    for name in &args.names {
        let mut named: Vec<&LedgerEntry> = installed.ledger.named(name).iter().collect();
        if let (true, Ok(folder)) = (name.contains('/'), Path::new(name).canonicalize()) {
            named = at_or_in(&folder, installed);
        }
        if named.is_empty() {
            return Err(unknown(name, installed));
        }
        let before = found.len();
        found.extend(named.into_iter().filter(is_meant));
        if found.len() == before {
            let message = format!("`{name}` is already in savoir.lock, or is not in this scope");
            return Err(CommandError::input(message).with_code("nothing_to_adopt").hint(format!(
                "`savoir info {name}` shows where it is; --user selects the skills of the user"
            )));
        }
    }
    Ok(found)
}

/// The skill in a folder, or the skills in the folder of an agent.
fn at_or_in<'a>(folder: &Path, installed: &'a Installed) -> Vec<&'a LedgerEntry> {
    let is_it = |entry: &&LedgerEntry| {
        let path = entry.path().canonicalize().unwrap_or_else(|_| entry.path().to_owned());
        path == folder || path.parent() == Some(folder)
    };
    installed.ledger.entries().iter().filter(is_it).collect()
}

/// Prints notes about a skill that is to be adopted.
fn print_notes(found: &AdoptionCandidate) {
    let Ok(ready) = found.ready() else { return };
    let name = &found.name;
    if let Some(why) = &found.untraced {
        output::note(&format!("`{name}`: its source was not found: {why}"));
    }
    if found.is_edited() {
        output::note(&format!("`{name}` was edited after it was installed; the edits are kept"));
    }
    if ready.report.verdict != Verdict::Allow {
        let verdict = ready.report.verdict;
        output::note(&format!("`{name}`: the scan verdict is {verdict}; see `savoir scan`"));
    }
}
