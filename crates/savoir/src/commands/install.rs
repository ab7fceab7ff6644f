//! `savoir install`.

use std::{env, process::ExitCode};

use savoir_package::{
    manifest::Wanted,
    registry::Asked,
    resolve::Update,
    shelf::{self, Install, Plan, Ready, State, Why},
    source::{Offer, Place, Source},
};
use serde_json::Map;

use super::sync;
use crate::{
    error::CommandError,
    shelf::{
        Ask, Choice, Consent, Door, ForAgents, Manner, Report, Stall, Whose, agent, arrived,
        duplicate, lacks_needs, list, told,
    },
};

/// Install skills, and give them to every agent
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Sources:
  ./pdf, ../skills, pdf.zip, notes.md       a folder, an archive or a Markdown file
  owner/repo, owner/repo/path@v1.2          a repository on GitHub, or a folder of it
  gitlab:owner/repo, git@host:owner/repo    a repository elsewhere
  https://host/pdf.zip                      an archive on the web
  https://docs.example.com                  a site that lists its skills
  pdf, pdf@^1.2, acme/pdf@1.2.0             a skill of a registry

Examples:
  savoir install ./my-skill --allow-experimental
  savoir install owner/repo --list
  savoir install owner/repo --skill pdf --agent claude-code,codex
  savoir install owner/repo --all --global
  savoir install --frozen                   exactly what savoir.lock says

What a skill may do, who vouches for it and what the scan found is shown before anything is written.
Exit codes: 1 it failed, 2 wrong usage, 3 refused: not agreed to, blocked, or not what was signed.")]
pub(crate) struct Args {
    /// Where the skills come from; without any, what savoir.toml and savoir.lock say is installed
    #[arg(value_name = "SOURCE")]
    sources: Vec<String>,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    ask: Ask,
    /// Only list the skills of the sources
    #[arg(long, conflicts_with_all = ["all", "skill", "dry_run"])]
    list: bool,
    #[command(flatten)]
    agents: ForAgents,
    /// Put them where GAIA looks, too, and keep its skill-lock.json: the same as --agent gaia
    #[arg(long, value_name = "LAYOUT", value_parser = ["gaia"])]
    layout: Option<String>,
    #[command(flatten)]
    whose: Whose,
    #[command(flatten)]
    consent: Consent,
    /// Install exactly what the lock says, or fail
    #[arg(long, conflicts_with_all = ["sources", "skill", "all", "list", "agent"])]
    frozen: bool,
    #[command(flatten)]
    manner: Manner,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    told(args.manner.json, || install(args))
}

fn install(args: &Args) -> Result<ExitCode, CommandError> {
    let door = args.whose.open()?;
    if args.sources.is_empty() {
        let Args { agents, consent, ask, manner, .. } = args;
        let wish = sync::Wish { agents, consent, ask, only_looks: manner.dry_run };
        return sync::sync(&door, &wish, args.manner, args.frozen);
    }
    let (asked, sources) = parsed(args, &door)?;
    let stalls = stalls(&door, sources)?;
    if args.list {
        list(&stalls, door.shelf.root(), args.manner.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = if stalls.is_empty() { Vec::new() } else { args.choice.of(&stalls)? };
    let ready = ready(&door, chosen, &stalls)?;
    let ready = published(&door, ready, asked, &args.ask)?;
    args.consent.to(&ready, &door.shelf.state()?.lock)?;
    let how = how(args, &door)?;
    door.refuse_own_folders(&ready, &how.agents)?;
    let plan = || -> Result<Plan, CommandError> {
        let mut plan = door.shelf.install(&ready, &how)?;
        args.consent.accept(&mut plan)?;
        Ok(plan)
    };
    let (plan, done) = door.carry_out(plan, |_| Ok(!args.manner.dry_run))?;
    let mut more = Map::new();
    more.insert("skills".into(), ready.iter().map(arrived).collect());
    Report { json: args.manner.json, done }.print(&door, &[&plan], more)?;
    Ok(ExitCode::SUCCESS)
}

/// A source, and how it was typed.
type Typed = (String, Source);

/// What is asked for by name, and the other sources.
fn parsed(args: &Args, door: &Door) -> Result<(Vec<Asked>, Vec<Typed>), CommandError> {
    let here = env::current_dir().map_err(|error| {
        CommandError::input(format!("the current folder cannot be read: {error}"))
    })?;
    let (mut asked, mut sources) = (Vec::new(), Vec::new());
    for text in &args.sources {
        let source = Source::parse(&args.ask.meant(text, door)?, &here)?;
        match args.ask.named(&source)? {
            Some(named) => asked.push(named),
            None => sources.push((text.clone(), source)),
        }
    }
    Ok((asked, sources))
}

/// What the sources have.
fn stalls(door: &Door, sources: Vec<Typed>) -> Result<Vec<Stall>, CommandError> {
    let mut stalls = Vec::with_capacity(sources.len());
    for (typed, source) in sources {
        door.doing(&format!("looking at {typed}"));
        let offers = door.wait(door.fetcher.offers(&source))?;
        let pinned = matches!(source, Source::Url { digest: Some(_), .. });
        stalls.push(Stall { typed, offers, pinned });
    }
    door.done();
    Ok(stalls)
}

/// Adds what registries have: what is asked for by name, and what skills need that is nowhere else.
fn published(
    door: &Door,
    mut ready: Vec<Ready>,
    asked: Vec<Asked>,
    ask: &Ask,
) -> Result<Vec<Ready>, CommandError> {
    let state = door.shelf.state()?;
    let needed =
        lacks_needs(&ready, &state) && door.registries(&state, ask)?.clients().next().is_some();
    if !asked.is_empty() || needed {
        let more = door.gather(&state, &ready, asked, Update::Nothing, ask)?;
        ready.extend(more);
    }
    Ok(ready)
}

/// Fetches and checks what was chosen, and what that needs of the same sources.
fn ready(door: &Door, chosen: Vec<Offer>, stalls: &[Stall]) -> Result<Vec<Ready>, CommandError> {
    let root = door.shelf.root();
    let is_pinned =
        |offer: &Offer| stalls.iter().any(|stall| stall.pinned && stall.offers.contains(offer));
    let state = door.shelf.state()?;
    let asked = |offer: Offer| {
        let mut wanted = shelf::wanted(&offer.place, root);
        if let (Wanted::Url { url, integrity }, Place::Url { digest, .. }) =
            (&mut wanted, &offer.place)
        {
            let found = digest.integrity();
            *integrity = pin(&state, url).or_else(|| is_pinned(&offer).then(|| found.clone()));
            if integrity.as_ref().is_some_and(|pinned| *pinned != found) {
                return Err(CommandError::refused(format!(
                    "{url} is not what savoir.toml says: its integrity is {found}"
                ))
                .named("integrity")
                .hint("if you trust the change, write the new `integrity` into savoir.toml"));
            }
        }
        Ok((offer, Why::Asked(wanted)))
    };
    let chosen: Vec<(Offer, Why)> = chosen.into_iter().map(asked).collect::<Result<_, _>>()?;
    let ready = door.arrive(&chosen)?;
    if let Some(error) = duplicate(&ready) {
        return Err(error);
    }
    let offers: Vec<Offer> = stalls.iter().flat_map(|stall| stall.offers.clone()).collect();
    let ready = door.with_needs(ready, &offers, &door.shelf.state()?.lock)?;
    door.done();
    Ok(ready)
}

/// What `savoir.toml` says that an address must be.
fn pin(state: &State, address: &str) -> Option<String> {
    state.manifest.skills.values().find_map(|wanted| match wanted {
        Wanted::Url { url, integrity } if url == address => integrity.clone(),
        _ => None,
    })
}

fn how(args: &Args, door: &Door) -> Result<Install, CommandError> {
    let state = door.shelf.state()?;
    let (occupied, edits) = (args.manner.occupied(), args.manner.edits());
    let mut agents = door.agents(&args.agents, &state.manifest)?;
    if let Some(layout) = &args.layout {
        agents.push(agent(layout).map_err(CommandError::input)?);
    }
    Ok(Install { agents, occupied, edits, agents_are_kept: true })
}
