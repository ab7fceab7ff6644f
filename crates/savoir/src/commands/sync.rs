//! `savoir sync`.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::ExitCode,
};

use savoir_package::{
    ShelfError,
    lock::{LockedSkill, LockedSource},
    resolve::IndexError,
    shelf::{Change, Edits, Install, Plan, Ready, Stale, State},
    source::Place,
};
use serde_json::{Map, Value, json};

use crate::{
    error::CommandError,
    output,
    shelf::{Ask, Consent, Door, ForAgents, Manner, Proposal, Report, Whose, told},
};

/// Install exactly what savoir.lock pins
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir sync                            after a clone or a pull
  savoir sync --frozen                   in a build: fail if the lock does not fit savoir.toml
  savoir sync --check                    only show what differs: exit code 1 if something does

Skills that savoir.toml names and the lock does not are installed, as `savoir install` does. Files
that you edited stay as they are, unless --force is given.")]
pub(crate) struct Args {
    #[command(flatten)]
    whose: Whose,
    #[command(flatten)]
    agents: ForAgents,
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    consent: Consent,
    /// Fail if savoir.lock does not say what savoir.toml asks for
    #[arg(long)]
    frozen: bool,
    /// Only show what differs
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    manner: Manner,
}

/// Who gets what from where, and what was agreed to.
pub(super) struct Wish<'a> {
    pub(super) agents: &'a ForAgents,
    pub(super) consent: &'a Consent,
    pub(super) ask: &'a Ask,
    /// Nothing is written, so that nothing must be agreed to.
    pub(super) only_looks: bool,
}

impl Args {
    fn wish(&self) -> Wish<'_> {
        let Self { agents, consent, ask, check, manner, .. } = self;
        Wish { agents, consent, ask, only_looks: *check || manner.dry_run }
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

/// Brings the lock in line with `savoir.toml`, and the disk in line with the lock.
pub(super) fn sync(
    door: &Door,
    wish: &Wish<'_>,
    manner: Manner,
    frozen: bool,
) -> Result<ExitCode, CommandError> {
    let state = door.shelf.state()?;
    let missing = state.stale();
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
    // A lock that must not change keeps its tiers: other machines trust other keys.
    if !frozen {
        let tiers = || Ok(door.shelf.refresh_tiers(&door.trust)?);
        told.push(door.carry_out(tiers, |_| Ok(!manner.dry_run))?.0);
    }
    let plans: Vec<&Plan> = told.iter().collect();
    Report { json: manner.json, done }.print(door, &plans, Map::new())?;
    Ok(ExitCode::SUCCESS)
}

/// Installs what `savoir.toml` asks for and the lock does not have.
fn install_missing(
    door: &Door,
    wish: &Wish<'_>,
    missing: &[Stale],
    state: &State,
    manner: Manner,
) -> Result<(Plan, bool), CommandError> {
    let ready = door.missing(missing, state, wish.ask)?;
    door.refuse_blocked(wish.consent, &ready)?;
    door.refuse_forbidden(&ready)?;
    let agents = door.agents(wish.agents, &state.manifest)?;
    let install = Install {
        agents,
        edits: manner.edits(),
        occupied: manner.occupied(),
        ..Install::default()
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
    let agree = |plan: &mut Plan| {
        if manner.dry_run {
            wish.consent.show(proposal, plan);
            return Ok(false);
        }
        wish.consent.ask(proposal, plan)
    };
    door.carry_out(|| Ok(door.shelf.install(&ready, &install)?), agree)
}

/// How a command ends that changed nothing.
pub(super) fn not_agreed(dry_run: bool) -> Result<ExitCode, CommandError> {
    if dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    Err(CommandError::refused("you did not agree; nothing was changed").named("not_agreed"))
}

/// What is not kept on this machine is fetched. The lock is consent to install exactly its bytes; what
/// the scan blocks is refused all the same.
fn plan(door: &Door, wish: &Wish<'_>, edits: Edits) -> Result<Plan, CommandError> {
    let state = door.shelf.state()?;
    let store = door.shelf.store();
    let mut fetched = BTreeMap::new();
    let (mut ready, mut anew) = (Vec::new(), BTreeSet::new());
    for (name, locked) in &state.lock.skills {
        // Only what somebody agreed to on this machine is in the store.
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
        fetched
            .remove(name)
            .ok_or_else(|| IndexError::from("it changed at the same time; run the command again"))
    };
    let plan = door.shelf.sync(edits, &mut again)?;
    // What was just fetched was asked about; what is kept here may have been taken down meanwhile.
    let kept: BTreeSet<String> =
        plan.laid_out().into_iter().filter(|name| !new.contains(name)).collect();
    anew.extend(kept.iter().cloned());
    door.must_be_given(&state, anew, wish.ask)?;
    door.done();
    if !wish.only_looks {
        door.refuse_blocked(wish.consent, &ready)?;
        door.refuse_blocked(wish.consent, &kept_blocked(door, &state, &kept)?)?;
        for one in &ready {
            // Files that came with a clone were fetched from nowhere, whatever the lock says.
            let source = new.contains(&one.card.name).then_some(&one.source);
            door.check_policy_from(one, source)?;
        }
        refuse_forbidden_kept(door, &state)?;
    }
    Ok(plan)
}

/// The kept skills among these that the scanner blocked when they came. Somebody allowed them, maybe in
/// another project or under another name.
fn kept_blocked(
    door: &Door,
    state: &State,
    names: &BTreeSet<String>,
) -> Result<Vec<Ready>, CommandError> {
    let store = door.shelf.store();
    let locked = names.iter().filter_map(|name| Some((name, state.lock.skills.get(name)?)));
    let mut blocked = Vec::new();
    for (name, locked) in locked.filter(|(_, locked)| store.is_blocked(&locked.integrity)) {
        if let Some(tree) = store.get(&locked.integrity).map_err(ShelfError::from)? {
            blocked.push(door.as_arrived(name, locked, tree)?);
        }
    }
    Ok(blocked)
}

/// Refuses skills of the lock that are kept on this machine and that a policy forbids.
fn refuse_forbidden_kept(door: &Door, state: &State) -> Result<(), CommandError> {
    if door.policy.is_empty() {
        return Ok(());
    }
    let store = door.shelf.store();
    for (name, locked) in &state.lock.skills {
        if let Some(tree) = store.get(&locked.integrity).map_err(ShelfError::from)? {
            door.check_policy(&door.as_arrived(name, locked, tree)?)?;
        }
    }
    Ok(())
}

fn fetch(
    door: &Door,
    state: &State,
    name: &str,
    locked: &LockedSkill,
    ask: &Ask,
) -> Result<Ready, CommandError> {
    let source = locked.source.clone();
    let tree = if matches!(source, LockedSource::Registry(_)) {
        door.fetch_published(state, name, locked, ask)?
    } else {
        let place = Place::parse(&source.to_string(), door.shelf.root())?;
        door.wait(door.fetcher.fetch_locked(&place))?
    };
    let found = tree.integrity();
    if found != locked.integrity {
        let (name, locked) = (name.to_owned(), locked.integrity.clone());
        return Err(ShelfError::Integrity { name, locked, found }.into());
    }
    door.as_arrived(name, locked, tree)
}

fn out_of_date(stale: &[Stale]) -> CommandError {
    let lines: Vec<String> = stale.iter().map(ToString::to_string).collect();
    CommandError::findings(format!("savoir.lock is out of date: {}", lines.join("; ")))
        .named("stale_lock")
        .hint("run `savoir sync` without --frozen, look at the lock, and commit it")
}

/// Tells what differs, and changes nothing.
fn check(args: &Args) -> Result<ExitCode, CommandError> {
    let door = args.whose.look()?;
    let stale = door.shelf.state()?.stale();
    let plan = plan(&door, &args.wish(), args.manner.edits())?;
    door.done();
    let left = plan.changes().iter().any(|change| matches!(change, Change::Left(_)));
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
        output::text("everything is as savoir.lock says\n")?;
    }
    Ok(ExitCode::from(u8::from(differs)))
}
