//! `savoir update`: updates skills to newer versions, after showing what changes.

use std::process::ExitCode;

use clap_complete::engine::ArgValueCandidates;
use savoir_package::{
    FileError,
    install::{InstallOptions, InstallPlan, PlannedChange, State, updates},
};
use serde_json::Map;

use super::{outdated, sync};
use crate::{
    ask, completion,
    error::CommandError,
    install_context::{
        Consent, FetchedSkills, InstallContext, OnFailure, OutputArgs, Proposal, RegistryArgs,
        Report, ScopeArgs, Skipped, arrived, diff, summary,
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

A new version that adds permissions or tools is refused (exit code 3) until you accept them: on the
terminal, with --accept NAME, or with --accept all. Files that you edited are merged; conflicts with
your edits are marked in the files. `savoir undo` reverts an update.
Of several skills, those whose source cannot be read are skipped. `savoir outdated` lists updates.
Exit codes: 1 failed or skipped some, 2 wrong usage, 3 refused.")]
pub(crate) struct Args {
    /// Names of the skills; without any, all skills of the project
    #[arg(value_name = "NAME", add = ArgValueCandidates::new(completion::installed_skills))]
    names: Vec<String>,
    /// Update all skills, as without names
    #[arg(long, conflicts_with = "names")]
    all: bool,
    #[command(flatten)]
    ask: RegistryArgs,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    consent: Consent,
    /// Show every changed line; without a terminal, apply the update only with --yes
    #[arg(long)]
    diff: bool,
    #[command(flatten)]
    output: OutputArgs,
}

impl Args {
    /// Whether nothing is applied: a script with --diff wants to see the changes first.
    fn only_shows(&self) -> bool {
        self.output.dry_run || self.diff && !self.consent.yes && !ask::is_interactive()
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let context = args.scope.open()?.with_registry_args(&args.ask);
    let state = context.skill_set.state()?;
    context.check_installed(&args.names, "update")?;
    let every: Vec<String> = state.lock.skills.keys().cloned().collect();
    let all = args.names.is_empty();
    let names = if all { &every } else { &args.names };
    let failed = if all || names.len() > 1 { OnFailure::Skip } else { OnFailure::Stop };
    let FetchedSkills { ready, skipped } =
        context.newer(names, &state, failed, &args.consent, &args.ask)?;
    let only_show = args.only_shows();
    if !only_show {
        context.refuse_blocked(&args.consent, &ready)?;
        context.refuse_forbidden(&ready)?;
    }
    let how = InstallOptions { edits: args.output.edits(), ..InstallOptions::default() };
    let agreed = context.agreed(&state.lock);
    let agree = |plan: &mut InstallPlan| {
        let notes = changed_files(args, plan);
        let proposal = Proposal {
            verb: "Update",
            ready: &ready,
            agreed: &agreed,
            trusted: &context.trusted,
            skipped: &skipped,
            always_asks: true,
            notes: &notes,
        };
        if only_show {
            args.consent.show(proposal, plan);
            return Ok(false);
        }
        args.consent.ask(proposal, plan)
    };
    let (plan, done) = context.carry_out(|| Ok(context.skill_set.install(&ready, &how)?), agree)?;
    let beyond = store_registry_status(args, &context, &state, names)?;
    let mut more = Map::new();
    more.insert("skills".into(), ready.iter().map(arrived).collect());
    more.insert("skipped".into(), skipped.iter().map(Skipped::json).collect());
    if args.output.json && args.diff {
        let plain = anstream::adapter::strip_str(&diff(&plan)).to_string();
        more.insert("diff".into(), plain.into());
    }
    if !done && !only_show {
        return sync::declined_result(only_show);
    }
    // If every skill was skipped, only the summary is printed.
    if args.output.json || skipped.is_empty() || !plan.changes().is_empty() {
        Report { json: args.output.json, done }.print(&context, &[&plan], more)?;
    }
    if !args.output.json {
        for line in &beyond {
            output::note(&output::cell(line));
        }
    }
    if !skipped.is_empty() && !args.output.json {
        let is_updated = |one: &&PlannedChange| {
            matches!(one, PlannedChange::New { .. } | PlannedChange::Updated { .. })
        };
        let count = plan.changes().iter().filter(is_updated).count();
        let word = if done { "updated" } else { "would update" };
        output::text(&format!("{word} {count}, skipped {}\n", skipped.len()))?;
    }
    if only_show && !args.output.dry_run && !plan.is_empty() {
        output::note("hint: to apply the update, add --yes");
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
    match (args.output.json, args.diff) {
        (true, _) => String::new(),
        (false, true) => diff(plan),
        (false, false) => summary(plan),
    }
}

/// Stores the notices of registries about versions that stay installed, for `savoir status`: a
/// version may have been removed without a newer one. Returns notes about the named skills that
/// have newer versions outside of the wanted range, or their number if all skills are updated.
fn store_registry_status(
    args: &Args,
    context: &InstallContext,
    before: &State,
    names: &[String],
) -> Result<Vec<String>, CommandError> {
    let now = context.skill_set.state()?;
    let version = |state: &State, name: &String| {
        let locked = state.lock.skills.get(name)?;
        Some((locked.source.clone(), locked.version.clone()))
    };
    let stay = names.iter().filter(|name| version(before, name) == version(&now, name));
    let found = context.look_at(&now, stay.cloned().collect(), &args.ask)?;
    if !found.is_empty() {
        let stored =
            updates::save_some_updates(&context.cache, context.skill_set.root(), &now, &found);
        warn_if_not_stored(stored);
    }
    let lines = found.iter().filter_map(|(name, found)| {
        Some((name, outdated::beyond_line(name, context, &now, found)?))
    });
    if !args.names.is_empty() {
        return Ok(lines.filter(|(name, _)| args.names.contains(name)).map(|(_, it)| it).collect());
    }
    let count = lines.count();
    let scope = if context.is_global() { " --user" } else { "" };
    let verb = if count == 1 { "has a newer version" } else { "have newer versions" };
    let skills = output::plural(count, "skill");
    let note = format!(
        "{skills} {verb} that savoir.toml or another skill does not allow: savoir outdated{scope}"
    );
    Ok((count > 0).then_some(note).into_iter().collect())
}

pub(super) fn warn_if_not_stored(stored: Result<(), FileError>) {
    if let Err(error) = stored {
        output::note(&format!("the result could not be stored: {error}"));
    }
}
