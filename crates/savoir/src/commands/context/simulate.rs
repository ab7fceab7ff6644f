//! `savoir context simulate`: shows which skills an agent shows to its model and which it cuts.

use std::{
    borrow::Cow,
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use savoir_agent::preamble::hosts::{
    HOSTS, HostRules, InstalledSkill as Shown, ShownDescription, Simulation, SkillFiles,
    SkillScope, SkillVisibility,
};
use savoir_engine::Home;
use savoir_package::{
    Agent,
    agents::Scope,
    ledger::{LedgerEntry, SkillLocation},
};
use serde::Serialize;

use crate::{
    agent_settings::DisabledSkills,
    error::CommandError,
    installed::{Installed, in_parallel},
    load, output,
};

/// Show which skills an agent shows to its model and which it cuts
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir context simulate --agent claude-code
  savoir context simulate --agent codex --context 128000
  savoir context simulate --agent codex --check pdf    exit code 1 if the model does not see it
  savoir context simulate --agent codex --without pdf  what changes if pdf is disabled
  savoir context simulate --agent claude-code --json   include the rules and their sources

If there are many skills, agents drop descriptions or leave out skills without a warning.")]
pub(crate) struct Args {
    /// Agent to simulate
    #[arg(long, value_name = "ID", value_parser = super::super::agents(&SIMULATED_AGENTS))]
    agent: &'static Agent,
    /// Context size of the model
    #[arg(long, value_name = "TOKENS", default_value_t = 200_000)]
    context: usize,
    /// Fail if the model does not see one of these skills [default: all skills]
    #[arg(long, value_name = "NAME", num_args = 0.., value_delimiter = ',')]
    check: Option<Vec<String>>,
    /// Simulate as if these skills were disabled, and list what changes
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    without: Vec<String>,
    /// The project [default: the nearest folder above with savoir.toml, a lock or .git]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The agents whose rules are known.
const SIMULATED_AGENTS: [&str; HOSTS.len()] = {
    let mut served = [""; HOSTS.len()];
    let mut at = 0;
    while at < served.len() {
        served[at] = HOSTS[at].agent;
        at += 1;
    }
    served
};

fn rules(agent: &Agent) -> Result<&'static HostRules, CommandError> {
    HostRules::of(agent.id).ok_or_else(|| {
        CommandError::input(format!("the rules of {} are not known", agent.title))
            .hint(format!("use one of {}", SIMULATED_AGENTS.join(", ")))
    })
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let host = rules(args.agent)?;
    let installed = Installed::open(args.project.as_deref())?;
    installed.warn();
    let sees = |entry: &&LedgerEntry| entry.agents().contains(&args.agent);
    let entries: Vec<&LedgerEntry> = installed.ledger.entries().iter().filter(sees).collect();
    let off = DisabledSkills::read(&[args.agent], &installed, &Home::from_environment()?)?;
    let skills = in_parallel(&entries, |entry| {
        let shown = read_as_agent(entry, args.agent, host);
        match off.agents(entry.name(), &[entry.path().to_owned()]).next() {
            Some(_) => Shown { hidden: Some("it is disabled".to_owned()), ..shown },
            None => shown,
        }
    });
    let (simulation, difference) = simulate(host, skills, args)?;
    if args.json {
        output::json(&Report { simulation: &simulation, difference: difference.as_ref() })?;
    } else {
        let difference = difference.as_ref().map(describe_difference).unwrap_or_default();
        output::long_text(&format!("{}{difference}", table(&simulation)))?;
    }
    let Some(wanted) = &args.check else { return Ok(ExitCode::SUCCESS) };
    let missing = missing(&simulation, wanted);
    if missing.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    if !args.json {
        let names = missing.join(", ");
        output::note(&format!("the model of {} does not see: {names}", args.agent.id));
    }
    Ok(ExitCode::from(1))
}

/// The JSON output.
#[derive(Debug, Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    simulation: &'a Simulation,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<&'a Difference>,
}

/// What would change if some skills were disabled.
#[derive(Debug, Serialize)]
struct Difference {
    without: Vec<String>,
    /// Tokens of the catalog now.
    tokens_before: usize,
    tokens_after: usize,
    /// The other skills of which the model would see more or less.
    changes: Vec<Change>,
}

#[derive(Debug, Serialize)]
struct Change {
    name: String,
    path: String,
    /// `whole`, `cut`, `name only` or `no`
    before: &'static str,
    after: &'static str,
}

/// Simulates the catalog, without the skills that the user leaves out.
fn simulate(
    host: &HostRules,
    skills: Vec<Shown>,
    args: &Args,
) -> Result<(Simulation, Option<Difference>), CommandError> {
    if args.without.is_empty() {
        return Ok((host.simulate(skills, args.context), None));
    }
    let before = host.simulate(skills.clone(), args.context);
    let left_out =
        |path: &str, name: &str| args.without.iter().any(|word| is_named(name, path, word));
    for word in &args.without {
        if !before.skills.iter().any(|skill| has_name(skill, word)) {
            let agent = args.agent.title;
            return Err(CommandError::input(format!("{agent} has no skill `{word}` here"))
                .hint("list the skills with: savoir list"));
        }
    }
    let skills = skills.into_iter().map(|skill| {
        let hidden =
            left_out(&skill.path, &skill.name).then(|| "it is left out with --without".to_owned());
        Shown { hidden: hidden.or(skill.hidden), ..skill }
    });
    let after = host.simulate(skills.collect(), args.context);
    let changes = before.skills.iter().filter_map(|skill| {
        let now = after.skills.iter().find(|other| other.path == skill.path)?;
        let (was, is) = (visibility(skill), visibility(now));
        let changed = was != is && !left_out(&skill.path, &skill.name);
        let (name, path) = (skill.name.clone(), skill.path.clone());
        changed.then_some(Change { name, path, before: was, after: is })
    });
    let difference = Difference {
        without: args.without.clone(),
        tokens_before: before.tokens,
        tokens_after: after.tokens,
        changes: changes.collect(),
    };
    Ok((after, Some(difference)))
}

fn describe_difference(difference: &Difference) -> String {
    let Difference { without, tokens_before, tokens_after, changes } = difference;
    let names = output::sanitize(&without.join(", "));
    let mut text = format!(
        "\nWithout {names}, the skill list takes {tokens_after} instead of {tokens_before} tokens; {}\n",
        if changes.is_empty() { "no other skill changes" } else { "other skills change:" }
    );
    for Change { name, before, after, .. } in changes {
        // Writing into a string does not fail.
        let _ = writeln!(text, "  {}: {before} -> {after}", output::sanitize(name));
    }
    text
}

/// Reads a skill as the agent does, even if it is invalid.
fn read_as_agent(entry: &LedgerEntry, agent: &'static Agent, host: &HostRules) -> Shown {
    let unread = |path: PathBuf, why: String| Shown {
        name: entry.name().to_owned(),
        path: path.to_string_lossy().into_owned(),
        hidden: Some(why),
        ..Shown::default()
    };
    let Ok(path) = load::skill_file(entry.path()) else {
        return unread(entry.path().to_owned(), "it has no SKILL.md".to_owned());
    };
    let source = match load::source(&path, load::origin_of(&path)) {
        Ok(source) => source,
        Err(problem) => return unread(path, format!("it cannot be read: {}", problem.message)),
    };
    let side = host.side_file().map(|file| entry.path().join(file));
    let side = side.and_then(|side| load::source(&side, load::origin_of(&side)).ok());
    let place = first_place(entry, agent);
    let file = path.file_name().unwrap_or_default();
    let seen = place.and_then(SkillLocation::link).map_or(path.clone(), |link| link.join(file));
    let folder = seen.parent().and_then(Path::file_name).unwrap_or_default();
    let user = place.is_some_and(|place| place.scope() == Scope::User);
    host.read(&SkillFiles {
        folder: &folder.to_string_lossy(),
        path: &seen.to_string_lossy(),
        root: &place.map_or(Path::new(""), SkillLocation::folder).to_string_lossy(),
        scope: if user { SkillScope::User } else { SkillScope::Project },
        text: source.text(),
        side: side.as_ref().map(savoir_skill::Source::text),
    })
}

/// The location where the agent finds the skill first: agents read the user's folders before
/// others.
fn first_place<'a>(entry: &'a LedgerEntry, agent: &'static Agent) -> Option<&'a SkillLocation> {
    let places = entry.places().iter();
    let read = places.filter(|place| place.agents().any(|reader| reader == agent));
    read.min_by_key(|place| place.scope() != Scope::User)
}

/// Whether a word is the name of the skill or of its folder.
fn has_name(visibility: &SkillVisibility, word: &str) -> bool {
    is_named(&visibility.name, &visibility.path, word)
}

fn is_named(name: &str, path: &str, word: &str) -> bool {
    let folder = Path::new(path).parent().and_then(Path::file_name);
    name == word || folder.is_some_and(|folder| folder == word)
}

/// The wanted skills that are not visible. If none is named, all skills are wanted.
fn missing(simulation: &Simulation, wanted: &[String]) -> Vec<String> {
    let visible = |word: &str| {
        simulation.skills.iter().any(|visibility| visibility.visible && has_name(visibility, word))
    };
    let all: Vec<&String> = match wanted {
        [] => simulation.skills.iter().map(|visibility| &visibility.name).collect(),
        some => some.iter().collect(),
    };
    all.into_iter().filter(|name| !visible(name)).cloned().collect()
}

fn table(simulation: &Simulation) -> String {
    let Simulation { agent, version, context, budget, tokens, skills, .. } = simulation;
    let seen = skills.iter().filter(|visibility| visibility.visible).count();
    let mut text = format!(
        "{agent} {version} with {context} tokens: the skill list takes about {tokens} of {budget} tokens; \
         {seen} of {} {} visible\n",
        output::plural(skills.len(), "skill"),
        if skills.len() == 1 { "is" } else { "are" }
    );
    let rows: Vec<[Cow<'_, str>; 3]> = skills.iter().map(row).collect();
    if !rows.is_empty() {
        text.push('\n');
        text.push_str(&output::table(["NAME", "VISIBLE", "REASON"], &rows));
    }
    text
}

/// How much of a skill a model sees.
fn visibility(skill: &SkillVisibility) -> &'static str {
    match skill.description {
        Some(ShownDescription::Whole) => "whole",
        Some(ShownDescription::Cut) => "cut",
        Some(ShownDescription::Dropped) => "name only",
        None => "no",
    }
}

fn row(skill: &SkillVisibility) -> [Cow<'_, str>; 3] {
    [
        output::cell(&skill.name),
        visibility(skill).into(),
        output::cell(skill.why.as_deref().unwrap_or("")),
    ]
}
