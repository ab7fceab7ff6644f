//! `savoir update`.

use std::process::ExitCode;

use savoir_package::{
    manifest::Wanted,
    shelf::{Install, Plan, Ready, State, Why},
    source::Offer,
};
use serde_json::{Map, json};

use crate::{
    ask,
    error::CommandError,
    output,
    shelf::{Consent, Door, Manner, Report, Whose, arrived, diff, summary, told},
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
the new version meet are marked. `savoir undo` takes it back.")]
pub(crate) struct Args {
    /// The names of the skills
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// All skills that savoir.toml names
    #[arg(long, conflicts_with = "names")]
    all: bool,
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
    told(args.manner.json, update(args))
}

fn update(args: &Args) -> Result<ExitCode, CommandError> {
    let door = args.whose.open()?;
    let state = door.shelf.state()?;
    let ready = newer(args, &door, &state)?;
    let only_looks = args.manner.dry_run || !args.all && args.names.is_empty();
    if !only_looks {
        args.consent.to(&ready, &state.lock)?;
    }
    let edits = args.manner.edits();
    let how = Install { edits, ..Install::default() };
    let plan = || -> Result<Plan, CommandError> {
        let mut plan = door.shelf.install(&ready, &how)?;
        let accepted = args.consent.accept(&mut plan);
        if accepted.is_err() {
            show(args, &plan);
        }
        accepted.map(|()| plan)
    };
    let agree = |plan: &Plan| {
        show(args, plan);
        if only_looks || plan.is_empty() || args.consent.yes || !ask::can_ask() {
            return Ok(!only_looks);
        }
        Ok(ask::line("Update? [y]es, [N]o: ", &ask::yes_or_no)? == Some(true))
    };
    let (plan, done) = door.carry_out(plan, agree)?;
    let mut more = Map::new();
    more.insert("skills".into(), ready.iter().map(arrived).collect());
    if args.manner.json && args.diff {
        more.insert("diff".into(), json!(diff(&plan)));
    }
    Report { json: args.manner.json, done }.print(&door, &plan, more)?;
    Ok(ExitCode::SUCCESS)
}

fn show(args: &Args, plan: &Plan) {
    if !args.manner.json {
        output::aside(&if args.diff { diff(plan) } else { summary(plan) });
    }
}

/// Fetches the skills that were named, and keeps those that are not what is installed.
fn newer(args: &Args, door: &Door, state: &State) -> Result<Vec<Ready>, CommandError> {
    let mut offers: Vec<(Offer, Why)> = Vec::new();
    for (name, wanted) in wanted(args, state)? {
        offers.push((door.newest(name, wanted)?, Why::Newer));
    }
    let mut ready = door.arrive(&offers)?;
    door.done();
    ready.retain(|ready| {
        let locked = state.lock.skills.get(&ready.card.name);
        locked.is_none_or(|locked| locked.integrity != ready.tree.integrity())
    });
    Ok(ready)
}

fn wanted<'a>(
    args: &Args,
    state: &'a State,
) -> Result<Vec<(&'a String, &'a Wanted)>, CommandError> {
    if args.names.is_empty() {
        return Ok(state.manifest.skills.iter().collect());
    }
    let find = |name: &String| {
        state.manifest.skills.get_key_value(name).ok_or_else(|| {
            CommandError::input(format!("savoir.toml asks for no skill `{name}`"))
                .named("not_installed")
                .hint("skills that only others need are updated with these")
        })
    };
    args.names.iter().map(find).collect()
}
