//! `savoir update`.

use std::{collections::BTreeMap, fmt::Write as _, process::ExitCode};

use savoir_package::{
    FileError,
    lock::LockedSource,
    manifest::Wanted,
    registry::Published,
    shelf::{
        Change, Install, Plan, State,
        updates::{self, Availability},
    },
};
use savoir_skill::version::{SkillRef, VersionRange};
use semver::Version;
use serde_json::{Map, Value, json};

use super::sync;
use crate::{
    error::CommandError,
    output,
    shelf::{
        Arrived, Ask, Consent, Door, Failed, Manner, Proposal, Report, Skipped, Whose, arrived,
        diff, summary, told, withdrawn,
    },
};

/// Get newer versions of skills; what changes is shown first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir update                          what is newer? nothing is changed
  savoir update pdf                      show what changes, ask, and do it
  savoir update --all --diff             every line that changes
  savoir update pdf --accept network:read:api.example.com

A new version that wants a permission or a tool which the old one did not have is refused (exit code
3) until each is accepted by its name. Files that you edited are merged; places where your edits and
the new version meet are marked. `savoir undo` reverts it.
With --all or several names, a skill whose source cannot be read is skipped.
Exit codes: 1 failed or skipped some, 2 wrong usage, 3 refused.")]
pub(crate) struct Args {
    /// The names of the skills
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// All skills that savoir.toml names
    #[arg(long, conflicts_with = "names")]
    all: bool,
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    whose: Whose,
    #[command(flatten)]
    consent: Consent,
    /// Show every line that changes
    #[arg(long)]
    diff: bool,
    #[command(flatten)]
    manner: Manner,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    told(args.manner.json, || update(args))
}

fn update(args: &Args) -> Result<ExitCode, CommandError> {
    let door = args.whose.open()?.asking(&args.ask);
    let state = door.shelf.state()?;
    if !args.all && args.names.is_empty() {
        return look(args, &door, &state);
    }
    door.check_installed(&args.names, "update")?;
    let every: Vec<String> = state.lock.skills.keys().cloned().collect();
    let names = if args.all { &every } else { &args.names };
    let failed = if args.all || names.len() > 1 { Failed::Skip } else { Failed::Stop };
    let Arrived { ready, skipped } = door.newer(names, &state, failed, &args.consent, &args.ask)?;
    if !args.manner.dry_run {
        door.refuse_blocked(&args.consent, &ready)?;
        door.refuse_forbidden(&ready)?;
    }
    let how = Install { edits: args.manner.edits(), ..Install::default() };
    let agreed = door.agreed(&state.lock);
    let agree = |plan: &mut Plan| {
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
    // A summary alone says what happened if every skill was skipped.
    if args.manner.json || skipped.is_empty() || !plan.changes().is_empty() {
        Report { json: args.manner.json, done }.print(&door, &[&plan], more)?;
    }
    if !skipped.is_empty() && !args.manner.json {
        let is_updated = |one: &&Change| matches!(one, Change::New { .. } | Change::Updated { .. });
        let count = plan.changes().iter().filter(is_updated).count();
        let word = if done { "updated" } else { "would update" };
        output::text(&format!("{word} {count}, skipped {}\n", skipped.len()))?;
    }
    let conflicts =
        plan.changes().iter().filter(|one| matches!(one, Change::Conflict { .. })).count();
    if conflicts > 0 && done {
        let files = output::plural(conflicts, "file");
        output::note(&format!("{files} with conflict markers: edit them, or: savoir undo"));
        return Ok(ExitCode::FAILURE);
    }
    Ok(if skipped.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What an update changes in files, for a person.
fn changed_files(args: &Args, plan: &Plan) -> String {
    match (args.manner.json, args.diff) {
        (true, _) => String::new(),
        (false, true) => diff(plan),
        (false, false) => summary(plan),
    }
}

/// What registries say of versions that stay is remembered for `savoir status`: one may have been taken
/// down, and have no other to go to.
fn remember_what_stays(
    args: &Args,
    door: &Door,
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
        let kept = updates::remember_some(&door.cache, door.shelf.root(), &now, &found);
        not_remembered(kept);
    }
    Ok(())
}

fn not_remembered(kept: Result<(), FileError>) {
    if let Err(error) = kept {
        output::note(&format!("the result could not be stored: {error}"));
    }
}

/// Tells for which skills there is something newer, and remembers it for `savoir list`.
fn look(args: &Args, door: &Door, state: &State) -> Result<ExitCode, CommandError> {
    door.doing("looking for newer versions");
    let found = door.look(state, &args.ask)?;
    door.done();
    not_remembered(updates::remember(&door.cache, door.shelf.root(), state, &found));
    let ended =
        if no_source_was_read(state, &found) { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    if args.manner.json {
        let skills: Vec<Value> = found.iter().map(|(name, found)| told_as(name, found)).collect();
        output::json(&json!({ "skills": skills }))?;
        return Ok(ended);
    }
    let mut text = String::new();
    for (name, found) in &found {
        let locked = state.lock.skills.get(name).map(|locked| &locked.version);
        // Writing to a string cannot fail.
        let _ = match found {
            Availability::Current => Ok(()),
            Availability::Newer { version, .. } => {
                writeln!(text, "{}", output::cell(&newer(name, locked, version.as_ref())))
            }
            Availability::Published(published) => published_lines(name, state, published)
                .into_iter()
                .try_for_each(|line| writeln!(text, "{}", output::cell(&line))),
            Availability::Unknown(why) => {
                writeln!(text, "`{name}` could not be checked: {}", output::cell(why))
            }
        };
    }
    if text.is_empty() {
        text.push_str("nothing is newer\n");
    } else if found.values().any(can_be_had) {
        output::note(
            "`savoir update NAME` or `savoir update --all` shows the change and applies it",
        );
    }
    output::text(&text)?;
    Ok(ended)
}

/// Whether there are sources and none of them could be read. Adopted skills have none.
fn no_source_was_read(state: &State, found: &BTreeMap<String, Availability>) -> bool {
    let is_adopted = |name: &String| {
        let locked = state.lock.skills.get(name);
        locked.is_some_and(|locked| matches!(locked.source, LockedSource::Adopted { .. }))
    };
    let mut asked = found.iter().filter(|(name, _)| !is_adopted(name)).peekable();
    asked.peek().is_some() && asked.all(|(_, found)| matches!(found, Availability::Unknown(_)))
}

/// Whether an update gets something.
fn can_be_had(found: &Availability) -> bool {
    match found {
        Availability::Newer { .. } => true,
        Availability::Published(published) => published.newer.is_some(),
        Availability::Current | Availability::Unknown(_) => false,
    }
}

fn newer(name: &str, locked: Option<&Version>, version: Option<&Version>) -> String {
    match (locked, version) {
        (Some(locked), Some(version)) if locked != version => {
            format!("`{name}` could go from {locked} to {version}")
        }
        _ => format!("`{name}` has changed files at its source"),
    }
}

/// What a registry says of a skill that is installed from it.
fn published_lines(name: &str, state: &State, published: &Published) -> Vec<String> {
    let locked = state.lock.skills.get(name).map(|locked| &locked.version);
    let Published { newer: within, beyond, yanked, yanked_reason, deprecated, .. } = published;
    let mut lines = Vec::new();
    if within.is_some() {
        lines.push(newer(name, locked, within.as_ref()));
    }
    if let Some(beyond) = beyond {
        lines.push(out_of_range(name, state, beyond));
    }
    let installed = locked.map(|version| format!(" {version}")).unwrap_or_default();
    if *yanked {
        lines.push(withdrawn(&format!("`{name}`{installed}"), yanked_reason.as_deref()));
    }
    lines.extend(gone(name, &installed, published));
    if let Some(message) = deprecated {
        lines.push(format!("`{name}`{installed} is deprecated: {message}"));
    }
    lines
}

/// That nobody can have a version any more, and why.
fn gone(name: &str, installed: &str, published: &Published) -> Option<String> {
    let why = published.taken_down_reason.as_ref().map(|why| format!(": {why}"));
    if published.taken_down {
        let why = why.unwrap_or_default();
        return Some(format!(
            "`{name}`{installed} was taken down by its registry{why}; update it, or: savoir remove \
             {name}"
        ));
    }
    published.missing.then(|| {
        format!(
            "`{name}`{installed} is no longer in its registry, which gives no reason; ask its \
             operator, update it, or: savoir remove {name}"
        )
    })
}

/// Who keeps a version away, and what to do to get it.
fn out_of_range(name: &str, state: &State, beyond: &Version) -> String {
    let source = state.lock.skills.get(name).and_then(|locked| locked.source.published(name));
    let (address, published) = source.unwrap_or(("", name));
    let needs = |range: &VersionRange| !range.matches(beyond);
    if let Some(Wanted::Version { range, registry, .. }) = state.manifest.skills.get(name)
        && needs(range)
    {
        let registry = registry.as_deref().unwrap_or(address);
        return format!(
            "`{name}` has {beyond}, and `{name}` in savoir.toml asks for {range}; to get it: \
             savoir install {published}@^{beyond} --registry {registry}"
        );
    }
    let asks =
        |need: &&SkillRef| (need.name == name || need.name == published) && needs(&need.range);
    let mut others = state.lock.skills.iter().filter_map(|(other, locked)| {
        locked.dependencies.iter().find(asks).map(|need| (other, &need.range))
    });
    match others.next() {
        Some((other, range)) => format!(
            "`{name}` has {beyond}, and `{other}` needs {range} of it; a newer `{other}` may take it"
        ),
        None => format!(
            "`{name}` has {beyond}; to get it: savoir install {published}@^{beyond} --registry \
             {address}"
        ),
    }
}

fn told_as(name: &str, found: &Availability) -> Value {
    match found {
        Availability::Current => json!({ "name": name, "state": "current" }),
        Availability::Newer { version, .. } => json!({
            "name": name,
            "state": "newer",
            "version": version.as_ref().map(ToString::to_string),
        }),
        Availability::Published(published) => json!({
            "name": name,
            // A version beyond what is asked for is nothing that an update gets.
            "state": if published.newer.is_some() { "newer" } else { "current" },
            "version": published.newer.as_ref().map(ToString::to_string),
            "beyond": published.beyond.as_ref().map(ToString::to_string),
            "yanked": published.yanked,
            "yanked_reason": published.yanked_reason,
            "taken_down": published.taken_down,
            "taken_down_reason": published.taken_down_reason,
            "missing": published.missing,
            "deprecated": published.deprecated,
        }),
        Availability::Unknown(why) => json!({ "name": name, "state": "unknown", "why": why }),
    }
}
