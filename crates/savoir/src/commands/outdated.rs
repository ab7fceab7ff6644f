//! `savoir outdated`: lists skills that have newer versions, without changing anything.

use std::{collections::BTreeMap, fmt::Write as _, process::ExitCode};

use savoir_package::{
    install::{
        State,
        updates::{self, Availability},
    },
    lock::LockedSource,
    manifest::SkillRequirement,
    registry::PublishedStatus,
};
use savoir_skill::version::{SkillRef, VersionRange};
use semver::Version;
use serde_json::{Value, json};

use super::update::warn_if_not_stored;
use crate::{
    error::CommandError,
    install_context::{InstallContext, RegistryArgs, ScopeArgs, no_other_source, withdrawn},
    output,
};

/// List skills that have newer versions, without changing anything
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir outdated
  savoir outdated --user --json

Exit codes: 0 checked, also if there are updates; 1 no source could be read.")]
pub(crate) struct Args {
    #[command(flatten)]
    ask: RegistryArgs,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let context = args.scope.open()?.with_registry_args(&args.ask);
    let state = context.skill_set.state()?;
    list_outdated(args, &context, &state)
}

/// Lists skills with newer versions, and stores the result for `savoir list`.
fn list_outdated(
    args: &Args,
    context: &InstallContext,
    state: &State,
) -> Result<ExitCode, CommandError> {
    context.doing("checking for newer versions");
    let found = context.check_updates(state, &args.ask)?;
    context.done();
    warn_if_not_stored(updates::save_updates(
        &context.cache,
        context.skill_set.root(),
        state,
        &found,
    ));
    let ended = if no_source_error(state, &found) { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    if args.json {
        let skills: Vec<Value> =
            found.iter().map(|(name, found)| newer_version_text(name, found)).collect();
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
            Availability::Published(published) => published_lines(name, context, state, published)
                .into_iter()
                .try_for_each(|line| writeln!(text, "{}", output::cell(&line))),
            Availability::Unknown(why) => {
                writeln!(text, "`{name}` could not be checked: {}", output::cell(why))
            }
        };
    }
    for (name, locked) in &state.lock.skills {
        if context.is_own_source(name, locked)? {
            output::note(&no_other_source(name));
        }
    }
    if text.is_empty() {
        text.push_str("all skills are up to date\n");
    }
    output::text(&text)?;
    if found.values().any(is_available) {
        output::note("`savoir update` or `savoir update NAME` shows the changes and applies them");
    }
    Ok(ended)
}

/// The error if no source could be read. Adopted skills have no source.
fn no_source_error(state: &State, found: &BTreeMap<String, Availability>) -> bool {
    let is_adopted = |name: &String| {
        let locked = state.lock.skills.get(name);
        locked.is_some_and(|locked| matches!(locked.source, LockedSource::Adopted { .. }))
    };
    let mut checked_skills = found.iter().filter(|(name, _)| !is_adopted(name)).peekable();
    checked_skills.peek().is_some()
        && checked_skills.all(|(_, found)| matches!(found, Availability::Unknown(_)))
}

/// Whether `savoir update` would install something.
fn is_available(found: &Availability) -> bool {
    match found {
        Availability::Newer { .. } => true,
        Availability::Published(published) => published.newer.is_some(),
        Availability::Current | Availability::Unknown(_) => false,
    }
}

fn newer(name: &str, locked: Option<&Version>, version: Option<&Version>) -> String {
    match (locked, version) {
        (Some(locked), Some(version)) if locked != version => {
            format!("`{name}` can be updated from {locked} to {version}")
        }
        _ => format!("`{name}` has changed files at its source"),
    }
}

/// The lines about a skill from a registry.
fn published_lines(
    name: &str,
    context: &InstallContext,
    state: &State,
    published: &PublishedStatus,
) -> Vec<String> {
    let locked = state.lock.skills.get(name).map(|locked| &locked.version);
    let PublishedStatus { newer: within, beyond, yanked, yanked_reason, deprecated, .. } =
        published;
    let mut lines = Vec::new();
    if within.is_some() {
        lines.push(newer(name, locked, within.as_ref()));
    }
    if let Some(beyond) = beyond {
        lines.push(out_of_range_line(name, context, state, beyond));
    }
    let installed = locked.map(|version| format!(" {version}")).unwrap_or_default();
    if *yanked {
        lines.push(withdrawn(&format!("`{name}`{installed}"), yanked_reason.as_deref()));
    }
    lines.extend(removed_version_line(name, &installed, published));
    if let Some(message) = deprecated {
        lines.push(format!("`{name}`{installed} is deprecated: {message}"));
    }
    lines
}

/// The line about a newer version that `savoir update` does not install.
pub(super) fn beyond_line(
    name: &str,
    context: &InstallContext,
    state: &State,
    found: &Availability,
) -> Option<String> {
    let Availability::Published(published) = found else { return None };
    let beyond = published.beyond.as_ref().filter(|_| published.newer.is_none())?;
    Some(out_of_range_line(name, context, state, beyond))
}

/// A line about an installed version that the registry removed.
fn removed_version_line(
    name: &str,
    installed: &str,
    published: &PublishedStatus,
) -> Option<String> {
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

/// Why a newer version is not an update, and how to install it.
fn out_of_range_line(
    name: &str,
    context: &InstallContext,
    state: &State,
    beyond: &Version,
) -> String {
    let scope = if context.is_global() { " --user" } else { "" };
    let source = state.lock.skills.get(name).and_then(|locked| locked.source.published(name));
    let (address, published) = source.unwrap_or(("", name));
    let needs = |range: &VersionRange| !range.matches(beyond);
    if let Some(SkillRequirement::Version { range, registry, .. }) = state.manifest.skills.get(name)
        && needs(range)
    {
        let registry = registry.as_deref().unwrap_or(address);
        return format!(
            "`{name}` {beyond} is available, but savoir.toml asks for {range}; to get it: \
             savoir install {published}@^{beyond}{scope} --registry {registry}"
        );
    }
    let asks =
        |need: &&SkillRef| (need.name == name || need.name == published) && needs(&need.range);
    let mut others = state.lock.skills.iter().filter_map(|(other, locked)| {
        locked.dependencies.iter().find(asks).map(|need| (other, &need.range))
    });
    match others.next() {
        Some((other, range)) => format!(
            "`{name}` {beyond} is available, but `{other}` needs {range}; a newer `{other}` may \
             allow it"
        ),
        None => format!(
            "`{name}` {beyond} is available; to get it: savoir install \
             {published}@^{beyond}{scope} --registry {address}"
        ),
    }
}

fn newer_version_text(name: &str, found: &Availability) -> Value {
    match found {
        Availability::Current => json!({ "name": name, "state": "current" }),
        Availability::Newer { version, .. } => json!({
            "name": name,
            "state": "newer",
            "version": version.as_ref().map(ToString::to_string),
        }),
        Availability::Published(published) => json!({
            "name": name,
            // `savoir update` does not install versions outside of the wanted range.
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
