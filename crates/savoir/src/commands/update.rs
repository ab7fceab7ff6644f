//! `savoir update`.

use std::process::ExitCode;

use savoir_package::{
    FileError,
    install::{InstallOptions, InstallPlan, PlannedChange, State, updates},
};
use serde_json::{Map, json};

use super::sync;
use crate::{
    error::CommandError,
    install_context::{
        Arrived, Ask, Consent, Failed, InstallContext, OutputArgs, Proposal, Report, ScopeArgs,
        Skipped, arrived, diff, summary, told,
    },
    output,
};

/// Update skills to newer versions, after showing what changes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir update                          update all skills
  savoir update pdf                      update one skill
  savoir update --dry-run --diff         show every line that would change
  savoir update pdf --accept network:read:api.example.com

A new version that adds permissions or tools is refused (exit code 3) until you accept each of them
by name. Files that you edited are merged; conflicts with your edits are marked in the files.
`savoir undo` reverts an update.
Of several skills, those whose source cannot be read are skipped. `savoir outdated` lists updates.
Exit codes: 1 failed or skipped some, 2 wrong usage, 3 refused.")]
pub(crate) struct Args {
    /// Names of the skills; without any, all skills of the project
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Update all skills, as without names
    #[arg(long, conflicts_with = "names")]
    all: bool,
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    whose: ScopeArgs,
    #[command(flatten)]
    consent: Consent,
    /// Show every changed line
    #[arg(long)]
    diff: bool,
    #[command(flatten)]
    manner: OutputArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    told(args.manner.json, || update(args))
}

fn update(args: &Args) -> Result<ExitCode, CommandError> {
    let door = args.whose.open()?.asking(&args.ask);
    let state = door.shelf.state()?;
    door.check_installed(&args.names, "update")?;
    let every: Vec<String> = state.lock.skills.keys().cloned().collect();
    let all = args.names.is_empty();
    let names = if all { &every } else { &args.names };
    let failed = if all || names.len() > 1 { Failed::Skip } else { Failed::Stop };
    let Arrived { ready, skipped } = door.newer(names, &state, failed, &args.consent, &args.ask)?;
    if !args.manner.dry_run {
        door.refuse_blocked(&args.consent, &ready)?;
        door.refuse_forbidden(&ready)?;
    }
    let how = InstallOptions { edits: args.manner.edits(), ..InstallOptions::default() };
    let agreed = door.agreed(&state.lock);
    let agree = |plan: &mut InstallPlan| {
        let notes = changed_files(args, plan);
        let proposal = Proposal {
            verb: "Update",
            ready: &ready,
            agreed: &agreed,
            trusted: &door.trusted,
            skipped: &skipped,
            always_asks: true,
            notes: &notes,
        };
        if args.manner.dry_run {
            args.consent.show(proposal, plan);
            return Ok(false);
        }
        args.consent.ask(proposal, plan)
    };
    let (plan, done) = door.carry_out(|| Ok(door.shelf.install(&ready, &how)?), agree)?;
    remember_what_stays(args, &door, &state, names)?;
    let mut more = Map::new();
    more.insert("skills".into(), ready.iter().map(arrived).collect());
    more.insert("skipped".into(), skipped.iter().map(Skipped::json).collect());
    if args.manner.json && args.diff {
        more.insert("diff".into(), json!(diff(&plan)));
    }
    if !done && !args.manner.dry_run {
        return sync::not_agreed(args.manner.dry_run);
    }
    // If every skill was skipped, only the summary is printed.
    if args.manner.json || skipped.is_empty() || !plan.changes().is_empty() {
        Report { json: args.manner.json, done }.print(&door, &[&plan], more)?;
    }
    if !skipped.is_empty() && !args.manner.json {
        let is_updated = |one: &&PlannedChange| {
            matches!(one, PlannedChange::New { .. } | PlannedChange::Updated { .. })
        };
        let count = plan.changes().iter().filter(is_updated).count();
        let word = if done { "updated" } else { "would update" };
        output::text(&format!("{word} {count}, skipped {}\n", skipped.len()))?;
    }
    let conflicts =
        plan.changes().iter().filter(|one| matches!(one, PlannedChange::Conflict { .. })).count();
    if conflicts > 0 && done {
        let files = output::plural(conflicts, "file");
        output::note(&format!("{files} with conflict markers: edit them, or: savoir undo"));
        return Ok(ExitCode::FAILURE);
    }
    Ok(if skipped.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The changed files, for the confirmation screen.
fn changed_files(args: &Args, plan: &InstallPlan) -> String {
    match (args.manner.json, args.diff) {
        (true, _) => String::new(),
        (false, true) => diff(plan),
        (false, false) => summary(plan),
    }
}

/// Stores what registries report about versions that stay, for `savoir status`: a version may have
/// been taken down without a newer one.
fn remember_what_stays(
    args: &Args,
    door: &InstallContext,
    before: &State,
    names: &[String],
) -> Result<(), CommandError> {
    let now = door.shelf.state()?;
    let version = |state: &State, name: &String| {
        let locked = state.lock.skills.get(name)?;
        Some((locked.source.clone(), locked.version.clone()))
    };
    let stay = names.iter().filter(|name| version(before, name) == version(&now, name));
    let found = door.look_at(&now, stay.cloned().collect(), &args.ask)?;
    if !found.is_empty() {
        let kept = updates::save_some_updates(&door.cache, door.shelf.root(), &now, &found);
        warn_if_not_stored(kept);
    }
    Ok(())
}

pub(super) fn warn_if_not_stored(kept: Result<(), FileError>) {
    if let Err(error) = kept {
        output::note(&format!("the result could not be stored: {error}"));
    }
}
