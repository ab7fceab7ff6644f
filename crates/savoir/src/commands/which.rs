//! `savoir which`: shows which skill a name refers to, and others of the same name.

use std::{borrow::Cow, path::PathBuf, process::ExitCode};

use serde_json::{Value, json};

use crate::{
    completion,
    error::CommandError,
    installed::limit_names,
    lookup::{Candidate, Lookup},
    output::{self, Column},
};
use clap_complete::engine::ArgValueCandidates;

/// Digits of a digest to show.
const DIGEST_DIGITS: usize = 12;

/// Show which skill a name refers to, and others of the same name
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir which pdf
  savoir which pdf@1.2.0
  savoir which pdf --json

`savoir run pdf` and all other commands use the first one, marked with *. The order is: a path, the
project (savoir.lock, then the folders of agents), the user (the same), the skills of `savoir
serve`. Copies with the same files are one skill.

Exit codes: 0 found, 2 not found.")]
pub(crate) struct Args {
    /// Name of a skill, with or without a version
    #[arg(value_name = "NAME[@VERSION]", add = ArgValueCandidates::new(completion::installed_skills))]
    name: String,
    /// The project [default: the nearest folder above with savoir.toml, a lock or .git]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let lookup = Lookup::open(args.project.as_deref())?;
    lookup.installed.warn();
    let candidates = lookup.all(&args.name);
    if candidates.is_empty() {
        return Err(lookup.unknown(&args.name));
    }
    if args.json {
        let all: Vec<Value> =
            candidates.iter().enumerate().map(|(at, one)| as_json(one, at == 0, &lookup)).collect();
        output::json(&json!({ "name": args.name, "candidates": all }))?;
    } else {
        output::text(&table(&candidates, &lookup))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(candidate: &Candidate, wins: bool, lookup: &Lookup) -> Value {
    let Candidate { name, path, scope, agents, version, source, tier, integrity, copies, .. } =
        candidate;
    let in_use = agents.iter().filter(|agent| lookup.installed.in_use.contains(agent));
    json!({
        "name": name,
        "path": path,
        "wins": wins,
        "scope": scope,
        "agents": agents.iter().map(|agent| agent.id).collect::<Vec<_>>(),
        "in_use": in_use.map(|agent| agent.id).collect::<Vec<_>>(),
        "version": version,
        "source": source,
        "tier": tier,
        "integrity": integrity,
        "copies": copies,
    })
}

fn table(candidates: &[Candidate], lookup: &Lookup) -> String {
    let mut rows: Vec<[Cow<'_, str>; 7]> = Vec::new();
    for (at, candidate) in candidates.iter().enumerate() {
        let shown = |path: &PathBuf| {
            let path = lookup.installed.shown(path);
            Cow::Owned(output::cell(&path).into_owned())
        };
        let text = |text: &Option<String>| {
            Cow::Owned(output::cell(text.as_deref().unwrap_or("-")).into_owned())
        };
        let in_use =
            |agent: &&&'static savoir_package::Agent| lookup.installed.in_use.contains(agent);
        let agents = candidate.agents.iter().filter(in_use).map(|agent| agent.id);
        rows.push([
            if at == 0 { "*" } else { " " }.into(),
            shown(&candidate.path),
            candidate.scope.as_str().into(),
            limit_names(agents).into(),
            text(&candidate.version),
            text(&candidate.source),
            short_digest(candidate.integrity.as_deref()).into(),
        ]);
        for copy in &candidate.copies {
            let empty = || Cow::Borrowed("");
            rows.push([empty(), shown(copy), "copy".into(), empty(), empty(), empty(), empty()]);
        }
    }
    let columns = [
        Column::fixed(" "),
        Column::cut_to("PATH", 24),
        Column::fixed("SCOPE"),
        Column::cut_to("AGENTS", 12).ranked(1),
        Column::cut_to("VERSION", 8),
        Column::cut_to("SOURCE", 16).ranked(2),
        Column::fixed("DIGEST").ranked(3),
    ];
    output::fit_table(columns, rows)
}

/// The first digits of a digest, without its algorithm.
fn short_digest(integrity: Option<&str>) -> String {
    let digits = integrity.and_then(|text| text.split_once('-')).map_or("-", |(_, digits)| digits);
    digits.chars().take(DIGEST_DIGITS).collect()
}
