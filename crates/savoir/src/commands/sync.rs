//! `savoir sync`: installs exactly what savoir.lock pins.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::ExitCode,
};

use savoir_package::{
    InstallFailure, Tree,
    install::{
        CheckedSkill, InstallOptions, InstallPlan, LockMismatch, PlannedChange, State, UserEdits,
    },
    lock::{self, LockedSkill, LockedSource},
    resolve::IndexError,
    source::PinnedSource,
};
use serde_json::{Map, Value, json};

use crate::{
    error::CommandError,
    install_context::{
        Consent, ForAgents, InstallContext, OutputArgs, Proposal, RegistryArgs, Report, ScopeArgs,
        locked_arrival,
    },
    output,
};

/// Install exactly what savoir.lock pins
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir sync                            after a clone or a pull
  savoir sync --frozen                   in CI: fail if anything differs from savoir.lock
  savoir sync --check                    show differences: exit code 1 if there are any

Skills that are in savoir.toml and not in savoir.lock are installed, as with `savoir install`. Files
that you edited are kept, unless --force is given; with --frozen, they are an error.")]
pub(crate) struct Args {
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    agents: ForAgents,
    #[command(flatten)]
    ask: RegistryArgs,
    #[command(flatten)]
    consent: Consent,
    /// Fail if savoir.lock does not match savoir.toml, or if installed files were edited
    #[arg(long)]
    frozen: bool,
    /// Show differences without changing anything
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// The options of a sync.
pub(super) struct SyncRequest<'a> {
    pub(super) agents: &'a ForAgents,
    pub(super) consent: &'a Consent,
    pub(super) ask: &'a RegistryArgs,
    /// Whether nothing is written, so that no consent is needed.
    pub(super) only_looks: bool,
}

impl Args {
    fn sync_request(&self) -> SyncRequest<'_> {
        let Self { agents, consent, ask, check, output, .. } = self;
        SyncRequest { agents, consent, ask, only_looks: *check || output.dry_run }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    if args.check {
        return check(args);
    }
    let context = args.scope.open()?.with_registry_args(&args.ask);
    sync(&context, &args.sync_request(), args.output, args.frozen)
}

/// Updates savoir.lock to match savoir.toml, and the installed files to match savoir.lock.
pub(super) fn sync(
    context: &InstallContext,
    request: &SyncRequest<'_>,
    output: OutputArgs,
    frozen: bool,
) -> Result<ExitCode, CommandError> {
    let state = context.skill_set.state()?;
    let missing = state.lock_mismatches();
    if frozen && !missing.is_empty() {
        return Err(out_of_date(&missing));
    }
    if frozen {
        require_lock(context)?;
    }
    let edits = output.edits();
    let mut plans_done = Vec::new();
    if !missing.is_empty() {
        let (plan, done) = install_missing(context, request, &missing, &state, output)?;
        if !done {
            Report { json: output.json, done }.print(context, &[&plan], Map::new())?;
            return declined_result(output.dry_run);
        }
        plans_done.push(plan);
    }
    let agree = |plan: &mut InstallPlan| -> Result<bool, CommandError> {
        if frozen {
            refuse_edits(context, plan)?;
        }
        Ok(!output.dry_run)
    };
    let (plan, done) = context.carry_out(|| plan(context, request, edits), agree)?;
    plans_done.push(plan);
    // With --frozen, the tiers in the lock are not updated, because other machines trust other
    // keys.
    if !frozen {
        let tiers = || Ok(context.skill_set.refresh_tiers(&context.trust)?);
        plans_done.push(context.carry_out(tiers, |_| Ok(!output.dry_run))?.0);
    }
    let plans: Vec<&InstallPlan> = plans_done.iter().collect();
    Report { json: output.json, done }.print(context, &plans, Map::new())?;
    Ok(ExitCode::SUCCESS)
}

/// Installs skills that are in savoir.toml and not in savoir.lock.
fn install_missing(
    context: &InstallContext,
    request: &SyncRequest<'_>,
    missing: &[LockMismatch],
    state: &State,
    output: OutputArgs,
) -> Result<(InstallPlan, bool), CommandError> {
    let ready = context.missing(missing, state, request.ask)?;
    context.refuse_blocked(request.consent, &ready)?;
    context.refuse_forbidden(&ready)?;
    let agents = context.agents(request.agents, &state.manifest)?;
    let install = InstallOptions {
        agents,
        edits: output.edits(),
        occupied: output.occupied(),
        ..InstallOptions::default()
    };
    context.refuse_own_folders(&ready, &install.agents)?;
    let proposal = Proposal {
        verb: "Install",
        ready: &ready,
        agreed: &state.lock,
        trusted: &context.trusted,
        skipped: &[],
        always_asks: false,
        notes: "",
    };
    let agree = |plan: &mut InstallPlan| {
        if output.dry_run {
            request.consent.show(proposal, plan);
            return Ok(false);
        }
        request.consent.ask(proposal, plan)
    };
    context.carry_out(|| Ok(context.skill_set.install(&ready, &install)?), agree)
}

/// The result of a command that changed nothing.
pub(super) fn declined_result(dry_run: bool) -> Result<ExitCode, CommandError> {
    if dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    Err(CommandError::refused("you did not agree; nothing was changed").with_code("not_agreed"))
}

/// Plans the installation of the lock and fetches what is not in the store. The lock is consent to
/// install exactly these files; skills that the scan blocks are still refused.
fn plan(
    context: &InstallContext,
    request: &SyncRequest<'_>,
    edits: UserEdits,
) -> Result<InstallPlan, CommandError> {
    let state = context.skill_set.state()?;
    let store = context.skill_set.store();
    let mut fetched = BTreeMap::new();
    let (mut arrivals, mut reinstalled) = (Vec::new(), BTreeSet::new());
    for (name, locked) in &state.lock.skills {
        // The store contains only skills that the user approved on this machine.
        if store.has(&locked.integrity) {
            context.check_signature(name, locked)?;
            continue;
        }
        let tree = match context.skill_set.installed(name, locked)? {
            Some(tree) => {
                reinstalled.insert(name.clone());
                tree
            }
            None if matches!(locked.source, LockedSource::Adopted { .. }) => continue,
            None => {
                context.doing(&format!("fetching {name}"));
                let tree = fetch(context, &state, name, locked, request.ask)?;
                fetched.insert(name.clone(), tree.clone());
                tree
            }
        };
        let arrival = locked_arrival(name, locked, tree);
        if request.only_looks {
            context.check_signatures(&arrival)?;
        } else {
            arrivals.push(arrival);
        }
    }
    let ready: Vec<CheckedSkill> =
        context.check_all(arrivals).into_iter().collect::<Result<_, _>>()?;
    let new: BTreeSet<String> = fetched.keys().cloned().collect();
    let mut again = |name: &str, _: &LockedSkill| {
        fetched.remove(name).ok_or_else(|| {
            IndexError::from("it was changed by another process; run the command again")
        })
    };
    let plan = context.skill_set.sync(edits, &mut again)?;
    // Fetched skills were just checked; the registry may have removed stored ones since.
    let stored_names: BTreeSet<String> =
        plan.written_skills().into_iter().filter(|name| !new.contains(name)).collect();
    reinstalled.extend(stored_names.iter().cloned());
    context.must_be_given(&state, reinstalled, request.ask)?;
    context.done();
    if !request.only_looks {
        context.refuse_blocked(request.consent, &ready)?;
        context.refuse_blocked(
            request.consent,
            &stored_blocked_skills(context, &state, &stored_names)?,
        )?;
        for one in &ready {
            // Files that came with a clone were not fetched, so the source in the lock does not
            // apply to them.
            let source = new.contains(&one.summary.name).then_some(&one.source);
            context.check_policy_from(one, source)?;
        }
        check_stored_against_policy(context, &state)?;
    }
    Ok(plan)
}

/// The skills in the store that the scan blocked. The user may have allowed them only in another
/// project or under another name.
fn stored_blocked_skills(
    context: &InstallContext,
    state: &State,
    names: &BTreeSet<String>,
) -> Result<Vec<CheckedSkill>, CommandError> {
    let store = context.skill_set.store();
    let locked = names.iter().filter_map(|name| Some((name, state.lock.skills.get(name)?)));
    let mut blocked = Vec::new();
    for (name, locked) in locked.filter(|(_, locked)| store.is_blocked(&locked.integrity)) {
        if let Some(tree) = store.get(&locked.integrity).map_err(InstallFailure::from)? {
            blocked.push(context.as_arrived(name, locked, tree)?);
        }
    }
    Ok(blocked)
}

/// Refuses skills in the store that a policy forbids.
fn check_stored_against_policy(
    context: &InstallContext,
    state: &State,
) -> Result<(), CommandError> {
    if context.policy.is_empty() {
        return Ok(());
    }
    let store = context.skill_set.store();
    for (name, locked) in &state.lock.skills {
        if let Some(tree) = store.get(&locked.integrity).map_err(InstallFailure::from)? {
            context.check_policy(&context.as_arrived(name, locked, tree)?)?;
        }
    }
    Ok(())
}

fn fetch(
    context: &InstallContext,
    state: &State,
    name: &str,
    locked: &LockedSkill,
    ask: &RegistryArgs,
) -> Result<Tree, CommandError> {
    let source = locked.source.clone();
    let tree = if matches!(source, LockedSource::Registry(_)) {
        context.fetch_published(state, name, locked, ask)?
    } else {
        let place = PinnedSource::parse(&source.to_string(), context.skill_set.root())?;
        context.wait(context.fetcher.fetch_locked(&place))?
    };
    let found = tree.integrity();
    if found != locked.integrity {
        let (name, locked) = (name.to_owned(), locked.integrity.clone());
        return Err(InstallFailure::Integrity { name, locked, found }.into());
    }
    Ok(tree)
}

/// In CI, a missing lock is an error: it may be the wrong folder.
fn require_lock(context: &InstallContext) -> Result<(), CommandError> {
    let root = context.skill_set.root();
    if root.join(lock::FILE).exists() {
        return Ok(());
    }
    Err(CommandError::findings(format!("there is no savoir.lock in {}", root.display()))
        .with_code("no_lock")
        .hint("if the project is elsewhere: --project DIR")
        .hint("to create the lock: savoir install SOURCE; then commit savoir.lock"))
}

fn out_of_date(stale: &[LockMismatch]) -> CommandError {
    let lines: Vec<String> = stale.iter().map(ToString::to_string).collect();
    CommandError::findings(format!("savoir.lock is out of date: {}", lines.join("; ")))
        .with_code("stale_lock")
        .hint("run `savoir sync` without --frozen, review savoir.lock, and commit it")
}

/// Refuses edited folders: with --frozen they would keep differing from the lock.
fn refuse_edits(context: &InstallContext, plan: &InstallPlan) -> Result<(), CommandError> {
    let edited = plan.edited_folders().map(|folder| context.short(&folder.display().to_string()));
    let edited: Vec<String> = edited.collect();
    if edited.is_empty() {
        return Ok(());
    }
    let message = format!("edited since it was installed: {}", edited.join(", "));
    Err(CommandError::findings(message)
        .with_code("edited")
        .hint("`savoir verify` lists the files; nothing was changed")
        .hint("to discard the edits: savoir sync --frozen --force"))
}

/// Prints differences without changing anything.
fn check(args: &Args) -> Result<ExitCode, CommandError> {
    let context = args.scope.open_read_only()?;
    let stale = context.skill_set.state()?.lock_mismatches();
    if stale.is_empty() {
        require_lock(&context)?;
    }
    let plan = plan(&context, &args.sync_request(), args.output.edits())?;
    context.done();
    let left = plan.changes().iter().any(|change| matches!(change, PlannedChange::EditsLeft(_)));
    let differs = !stale.is_empty() || plan.changes_project() || left;
    let mut more = Map::new();
    let lines: Vec<String> = stale.iter().map(ToString::to_string).collect();
    more.insert("stale".into(), json!(lines));
    more.insert("in_sync".into(), Value::Bool(!differs));
    if args.output.json {
        Report { json: true, done: false }.print(&context, &[&plan], more)?;
    } else if differs {
        for line in &lines {
            output::text(&format!("{}\n", output::cell(line)))?;
        }
        if !plan.changes().is_empty() {
            Report { json: false, done: false }.print(&context, &[&plan], more)?;
        }
    } else {
        output::text("everything matches savoir.lock\n")?;
    }
    Ok(ExitCode::from(u8::from(differs)))
}
