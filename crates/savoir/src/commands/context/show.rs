//! `savoir context show`: prints the list of skills that a model gets, one line per skill.

use std::process::ExitCode;

use savoir_agent::{
    disclosure::{Candidate, Preamble, UnusableSkill},
    library::{CalledBy, SkillIndex, prepare_skill},
    usage::Usage,
};
use savoir_engine::Home;
use savoir_package::ledger::LedgerEntry;

use crate::{
    agent_settings::DisabledSkills,
    error::CommandError,
    installed::{Installed, Selection, in_parallel},
    load,
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
    let (mut skills, mut unusable) = (Vec::new(), Vec::new());
    let index = SkillIndex::of(&home).ok();
    let read = |entry: &LedgerEntry| candidate(entry, index.as_ref());
    for (entry, read) in entries.iter().zip(in_parallel(&entries, read)) {
        match read {
            Ok(candidate) => skills.extend(candidate),
            Err(reason) => unusable.push(UnusableSkill { name: entry.name().to_owned(), reason }),
        }
    }
    if let Some(index) = &index {
        index.save();
    }
    skills.sort_by(|a, b| a.name.cmp(&b.name));
    skills.dedup_by(|a, b| a.name == b.name);
    let usage = Usage::of(&home).ok();
    let used = usage.and_then(|usage| usage.all().ok()).unwrap_or_default();
    for skill in &mut skills {
        skill.pinned = args.pin.contains(&skill.name);
        skill.last_used = used.get(&skill.name).map(|used| used.last);
    }
    let preamble = Preamble { unusable, ..Preamble::new(skills, args.budget) };
    if args.json {
        output::json(&preamble)?;
    } else {
        output::content(&output::sanitize(&preamble.text()))?;
        if preamble.text().is_empty() {
            output::note("no skills are installed here; install one: savoir install SOURCE");
        }
        for UnusableSkill { name, reason } in &preamble.unusable {
            output::note(&format!("{} is left out: {}", output::cell(name), output::cell(reason)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The entry of a skill in the list; `None` for a skill that only users can call.
fn candidate(entry: &LedgerEntry, index: Option<&SkillIndex>) -> Result<Option<Candidate>, String> {
    let read = || {
        let loaded = load::load(entry.path(), None).map_err(|error| error.to_string())?;
        let served = prepare_skill(entry.name(), &loaded.reading, loaded.folder.as_ref())?;
        Ok(CalledBy::Model.check(&served.skill).is_ok().then_some(served.skill))
    };
    match index {
        Some(index) => index.candidate(entry.name(), entry.path(), read),
        None => Ok(read()?.map(|skill| Candidate::new(&skill))),
    }
}
