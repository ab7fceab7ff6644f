//! `savoir sync`.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::ExitCode,
};

use savoir_package::{
    InstallFailure,
    install::{
        CheckedSkill, InstallOptions, InstallPlan, LockMismatch, PlannedChange, State, UserEdits,
    },
    lock::{LockedSkill, LockedSource},
    resolve::IndexError,
    source::PinnedSource,
};
use serde_json::{Map, Value, json};

use crate::{
    error::CommandError,
    install_context::{
        Ask, Consent, ForAgents, InstallContext, OutputArgs, Proposal, Report, ScopeArgs, told,
    },
    output,
};

/// Install exactly what savoir.lock pins
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir sync                            after a clone or a pull
  savoir sync --frozen                   in CI: fail if savoir.lock does not match savoir.toml
  savoir sync --check                    show differences: exit code 1 if there are any

Skills that are in savoir.toml and not in savoir.lock are installed, as with `savoir install`. Files
that you edited are kept, unless --force is given.")]
pub(crate) struct Args {
    #[command(flatten)]
    whose: ScopeArgs,
    #[command(flatten)]
    agents: ForAgents,
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    consent: Consent,
    /// Fail if savoir.lock does not match savoir.toml
    #[arg(long)]
    frozen: bool,
    /// Show differences without changing anything
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    manner: OutputArgs,
}

/// The options that decide what is installed, from where, and with whose consent.
pub(super) struct SyncRequest<'a> {
    pub(super) agents: &'a ForAgents,
    pub(super) consent: &'a Consent,
    pub(super) ask: &'a Ask,
    /// Nothing is written, so no consent is needed.
    pub(super) only_looks: bool,
}

impl Args {
    fn wish(&self) -> SyncRequest<'_> {
        let Self { agents, consent, ask, check, manner, .. } = self;
        SyncRequest { agents, consent, ask, only_looks: *check || manner.dry_run }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let open = || {
        if args.check {
            return check(args);
        }
        sync(&args.whose.open()?.asking(&args.ask), &args.wish(), args.manner, args.frozen)
    };
    told(args.manner.json, open)
}

/// Updates savoir.lock to match savoir.toml, and the installed files to match savoir.lock.
pub(super) fn sync(
    door: &InstallContext,
    wish: &SyncRequest<'_>,
    manner: OutputArgs,
    frozen: bool,
) -> Result<ExitCode, CommandError> {
    let state = door.shelf.state()?;
    let missing = state.lock_mismatches();
    if frozen && !missing.is_empty() {
        return Err(out_of_date(&missing));
    }
    let edits = manner.edits();
    let mut told = Vec::new();
    if !missing.is_empty() {
        let (plan, done) = install_missing(door, wish, &missing, &state, manner)?;
        if !done {
            Report { json: manner.json, done }.print(door, &[&plan], Map::new())?;
            return not_agreed(manner.dry_run);
        }
        told.push(plan);
    }
    let (plan, done) = door.carry_out(|| plan(door, wish, edits), |_| Ok(!manner.dry_run))?;
    told.push(plan);
    // With --frozen, tiers in the lock stay: other machines trust other keys.
    if !frozen {
        let tiers = || Ok(door.shelf.refresh_tiers(&door.trust)?);
        told.push(door.carry_out(tiers, |_| Ok(!manner.dry_run))?.0);
    }
    let plans: Vec<&InstallPlan> = told.iter().collect();
    Report { json: manner.json, done }.print(door, &plans, Map::new())?;
    Ok(ExitCode::SUCCESS)
}

/// Installs skills that are in savoir.toml and not in savoir.lock.
fn install_missing(
    door: &InstallContext,
    wish: &SyncRequest<'_>,
    missing: &[LockMismatch],
    state: &State,
    manner: OutputArgs,
) -> Result<(InstallPlan, bool), CommandError> {
    let ready = door.missing(missing, state, wish.ask)?;
    door.refuse_blocked(wish.consent, &ready)?;
    door.refuse_forbidden(&ready)?;
    let agents = door.agents(wish.agents, &state.manifest)?;
    let install = InstallOptions {
        agents,
        edits: manner.edits(),
        occupied: manner.occupied(),
        ..InstallOptions::default()
    };
    door.refuse_own_folders(&ready, &install.agents)?;
    let proposal = Proposal {
        verb: "Install",
        ready: &ready,
        agreed: &state.lock,
        trusted: &door.trusted,
        skipped: &[],
        always_asks: false,
        notes: "",
    };
    let agree = |plan: &mut InstallPlan| {
        if manner.dry_run {
            wish.consent.show(proposal, plan);
            return Ok(false);
        }
        wish.consent.ask(proposal, plan)
    };
    door.carry_out(|| Ok(door.shelf.install(&ready, &install)?), agree)
}

/// The result of a command that changed nothing.
pub(super) fn not_agreed(dry_run: bool) -> Result<ExitCode, CommandError> {
    if dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    Err(CommandError::refused("you did not agree; nothing was changed").named("not_agreed"))
}

/// Plans the installation of the lock and fetches what is not in the store. The lock is consent to
/// install exactly these files; skills that the scan blocks are still refused.
fn plan(
    door: &InstallContext,
    wish: &SyncRequest<'_>,
    edits: UserEdits,
) -> Result<InstallPlan, CommandError> {
    let state = door.shelf.state()?;
    let store = door.shelf.store();
    let mut fetched = BTreeMap::new();
    let (mut ready, mut anew) = (Vec::new(), BTreeSet::new());
    for (name, locked) in &state.lock.skills {
        // The store has only skills that the user agreed to on this machine.
        if store.has(&locked.integrity) {
            door.check_signature(name, locked)?;
            continue;
        }
        let arrived = match door.shelf.installed(name, locked)? {
            Some(tree) => {
                anew.insert(name.clone());
                door.as_arrived(name, locked, tree)?
            }
            None if matches!(locked.source, LockedSource::Adopted { .. }) => continue,
            None => {
                door.doing(&format!("fetching {name}"));
                let arrived = fetch(door, &state, name, locked, wish.ask)?;
                fetched.insert(name.clone(), arrived.tree.clone());
                arrived
            }
        };
        ready.push(arrived);
    }
    let new: BTreeSet<String> = fetched.keys().cloned().collect();
    let mut again = |name: &str, _: &LockedSkill| {
        fetched.remove(name).ok_or_else(|| {
            IndexError::from("it was changed by another process; run the command again")
        })
    };
    let plan = door.shelf.sync(edits, &mut again)?;
    // Fetched skills were just checked; stored ones may have been taken down since.
    let kept: BTreeSet<String> =
        plan.written_skills().into_iter().filter(|name| !new.contains(name)).collect();
    anew.extend(kept.iter().cloned());
    door.must_be_given(&state, anew, wish.ask)?;
    door.done();
    if !wish.only_looks {
        door.refuse_blocked(wish.consent, &ready)?;
        door.refuse_blocked(wish.consent, &kept_blocked(door, &state, &kept)?)?;
        for one in &ready {
            // Files that came with a clone were not fetched, whatever source the lock names.
            let source = new.contains(&one.summary.name).then_some(&one.source);
            door.check_policy_from(one, source)?;
        }
        refuse_forbidden_kept(door, &state)?;
    }
    Ok(plan)
}

/// The skills in the store that the scan blocked. The user may have allowed them in another project or
/// under another name only.
fn kept_blocked(
    door: &InstallContext,
    state: &State,
    names: &BTreeSet<String>,
) -> Result<Vec<CheckedSkill>, CommandError> {
    let store = door.shelf.store();
    let locked = names.iter().filter_map(|name| Some((name, state.lock.skills.get(name)?)));
    let mut blocked = Vec::new();
    for (name, locked) in locked.filter(|(_, locked)| store.is_blocked(&locked.integrity)) {
        if let Some(tree) = store.get(&locked.integrity).map_err(InstallFailure::from)? {
            blocked.push(door.as_arrived(name, locked, tree)?);
        }
    }
    Ok(blocked)
}

/// Refuses skills in the store that a policy forbids.
fn refuse_forbidden_kept(door: &InstallContext, state: &State) -> Result<(), CommandError> {
    if door.policy.is_empty() {
        return Ok(());
    }
    let store = door.shelf.store();
    for (name, locked) in &state.lock.skills {
        if let Some(tree) = store.get(&locked.integrity).map_err(InstallFailure::from)? {
            door.check_policy(&door.as_arrived(name, locked, tree)?)?;
        }
    }
    Ok(())
}

fn fetch(
    door: &InstallContext,
    state: &State,
    name: &str,
    locked: &LockedSkill,
    ask: &Ask,
) -> Result<CheckedSkill, CommandError> {
    let source = locked.source.clone();
    let tree = if matches!(source, LockedSource::Registry(_)) {
        door.fetch_published(state, name, locked, ask)?
    } else {
        let place = PinnedSource::parse(&source.to_string(), door.shelf.root())?;
        door.wait(door.fetcher.fetch_locked(&place))?
    };
    let found = tree.integrity();
    if found != locked.integrity {
        let (name, locked) = (name.to_owned(), locked.integrity.clone());
        return Err(InstallFailure::Integrity { name, locked, found }.into());
    }
    door.as_arrived(name, locked, tree)
}

fn out_of_date(stale: &[LockMismatch]) -> CommandError {
    let lines: Vec<String> = stale.iter().map(ToString::to_string).collect();
    CommandError::findings(format!("savoir.lock is out of date: {}", lines.join("; ")))
        .named("stale_lock")
        .hint("run `savoir sync` without --frozen, review savoir.lock, and commit it")
}

/// Prints differences without changing anything.
fn check(args: &Args) -> Result<ExitCode, CommandError> {
    let door = args.whose.look()?;
    let stale = door.shelf.state()?.lock_mismatches();
    let plan = plan(&door, &args.wish(), args.manner.edits())?;
    door.done();
    let left = plan.changes().iter().any(|change| matches!(change, PlannedChange::EditsLeft(_)));
    let differs = !stale.is_empty() || !plan.is_empty() || left;
    let mut more = Map::new();
    let lines: Vec<String> = stale.iter().map(ToString::to_string).collect();
    more.insert("stale".into(), json!(lines));
    more.insert("in_sync".into(), Value::Bool(!differs));
    if args.manner.json {
        Report { json: true, done: false }.print(&door, &[&plan], more)?;
    } else if differs {
        for line in &lines {
            output::text(&format!("{}\n", output::cell(line)))?;
        }
        if !plan.changes().is_empty() {
            Report { json: false, done: false }.print(&door, &[&plan], more)?;
        }
    } else {
        output::text("everything matches savoir.lock\n")?;
    }
    Ok(ExitCode::from(u8::from(differs)))
}
