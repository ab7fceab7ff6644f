//! `savoir context show`: prints the list of skills that a model gets, one line per skill.

use std::process::ExitCode;

use savoir_agent::{
    library::{CalledBy, FolderLibrary, SummaryCache},
    preamble::{Candidate, Preamble, UnusableSkill},
    usage::SkillUsageFile,
};
use savoir_engine::Home;
use savoir_lint::words::nearest;
use savoir_package::{Agent, ledger::LedgerEntry};

use crate::{
    agent_settings::DisabledSkills,
    error::CommandError,
    installed::{Installed, Selection, in_parallel},
    lookup::sort_by_precedence,
    output,
};

/// Print the list of skills that a model is given, one line per skill
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir context show                        skills that any agent sees here
  savoir context show --agent claude-code    skills of one agent
  savoir context show --budget 500           shorten descriptions to fit 500 tokens
  savoir context show --budget 500 --json    also list skills that did not fit

Tokens are estimated from the number of characters, because every model has its own tokenizer.")]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Approximate maximum number of tokens
    #[arg(long, value_name = "TOKENS")]
    budget: Option<usize>,
    /// Skills to list first
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pin: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let installed = Installed::open(args.selection.project.as_deref())?;
    installed.warn();
    let home = Home::from_environment()?;
    let wanted = args.selection.agents();
    let off = DisabledSkills::read(wanted, &installed, &home)?;
    let mut entries = sort_by_precedence(args.selection.entries(&installed)?, &installed);
    entries.retain(|entry| off.offers(wanted, entry));
    let (mut skills, mut hidden, mut unusable) = (Vec::new(), Vec::new(), Vec::new());
    let cache = SummaryCache::of(&home).ok();
    let read = |entry: &LedgerEntry| candidate(entry, cache.as_ref());
    for (entry, read) in entries.iter().zip(in_parallel(&entries, read)) {
        match read {
            Ok(Some(candidate)) => skills.push(candidate),
            Ok(None) => hidden.push(HiddenSkill::new(entry.name())),
            Err(reason) => unusable.push(UnusableSkill { name: entry.name().to_owned(), reason }),
        }
    }
    if let Some(cache) = &cache {
        cache.save();
    }
    skills.sort_by(|a, b| a.name.cmp(&b.name));
    skills.dedup_by(|a, b| a.name == b.name);
    hidden.sort_by(|a, b| a.name.cmp(&b.name));
    hidden.dedup_by(|a, b| a.name == b.name);
    let usage = SkillUsageFile::open(&home).ok();
    let used = usage.and_then(|usage| usage.all().ok()).unwrap_or_default();
    for name in &args.pin {
        if skills.binary_search_by(|skill| skill.name.as_str().cmp(name)).is_err() {
            let near = nearest(name, skills.iter().map(|skill| skill.name.as_str()));
            output::note(&unknown_pin(name, near));
        }
    }
    let without_description: Vec<String> = skills
        .iter()
        .filter(|skill| skill.has_no_description())
        .map(|skill| skill.name.clone())
        .collect();
    for skill in &mut skills {
        skill.pinned = args.pin.contains(&skill.name);
        skill.last_used = used.get(&skill.name).map(|used| used.last_used);
    }
    let preamble = Preamble { unusable, ..Preamble::new(skills, args.budget) };
    if args.json {
        output::json(&Shown { preamble: &preamble, hidden })?;
    } else {
        let text = preamble.text();
        // The lines have no control characters: see `Candidate`.
        output::long_text(&text)?;
        if text.is_empty() && hidden.is_empty() {
            output::note(&no_skills(wanted, &installed));
        }
        for name in &without_description {
            output::note(&format!(
                "{} has no description, so a model does not know when to use it; add `description` to \
                 its SKILL.md",
                output::cell(name)
            ));
        }
        for HiddenSkill { name, reason } in &hidden {
            output::note(&format!("{} is hidden from models: {reason}", output::cell(name)));
        }
        for UnusableSkill { name, reason } in &preamble.unusable {
            output::note(&format!("{} is left out: {}", output::cell(name), output::cell(reason)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The note for a pinned skill that is not among the listed ones.
fn unknown_pin(name: &str, near: Option<&str>) -> String {
    let name = output::cell(name);
    match near {
        Some(near) => {
            format!("--pin {name}: there is no such skill; did you mean `{}`?", output::cell(near))
        }
        None => format!("--pin {name}: there is no such skill; savoir list shows the names"),
    }
}

/// The note for an empty list. Skills of other agents may be installed here.
fn no_skills(wanted: &[&Agent], installed: &Installed) -> String {
    if wanted.is_empty() || installed.ledger.entries().is_empty() {
        return "no skills are installed here; install one: savoir install SOURCE".to_owned();
    }
    let agents: Vec<&str> = wanted.iter().map(|agent| agent.id).collect();
    let agents = agents.join(",");
    format!(
        "no skills are installed here for {agents}; `savoir list` lists those of other agents; \
         install one: savoir install SOURCE --agent {agents}"
    )
}

/// The list as JSON.
#[derive(serde::Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    preamble: &'a Preamble,
    /// Skills that only users can call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hidden: Vec<HiddenSkill>,
}

/// A skill that models do not see because its author decided so.
#[derive(serde::Serialize)]
struct HiddenSkill {
    name: String,
    reason: &'static str,
}

impl HiddenSkill {
    fn new(name: &str) -> Self {
        let reason = "only users call it, because it has `disable-model-invocation: true` \
                      (for Codex: `allow_implicit_invocation: false`)";
        Self { name: name.to_owned(), reason }
    }
}

/// The entry of a skill in the list; `None` for a skill that only users can call.
fn candidate(
    entry: &LedgerEntry,
    cache: Option<&SummaryCache>,
) -> Result<Option<Candidate>, String> {
    let read = || {
        // As `savoir chat` and `savoir mcp` read it, which use the same cache.
        let served = FolderLibrary::read_served(entry.name(), entry.path())?;
        Ok(CalledBy::Model.check(&served.skill).is_ok().then_some(served.skill))
    };
    match cache {
        Some(cache) => cache.get_or_read(entry.name(), entry.path(), read),
        None => Ok(read()?.map(|skill| Candidate::new(&skill))),
    }
}
