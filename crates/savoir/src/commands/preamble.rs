//! `savoir preamble`.

use std::process::ExitCode;

use savoir_engine::{
    Home,
    agent::{
        library::{CalledBy, serve},
        usage::Usage,
    },
    disclosure::{Candidate, Preamble, Unusable},
};
use savoir_package::ledger::Entry;

use crate::{
    agent_settings::Off,
    error::CommandError,
    installed::{Installed, Selection, in_parallel},
    load,
    lookup::ordered,
    output,
};

/// Tell a model which skills there are, a line for each
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir preamble                        all skills that an agent sees here
  savoir preamble --agent claude-code    those of one agent
  savoir preamble --budget 500           what fits into 500 tokens, descriptions cut alike
  savoir preamble --budget 500 --json    with the names of those that did not fit

Tokens are estimated by letters, since every model counts with a tokenizer of its own.")]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// About how many tokens it may have
    #[arg(long, value_name = "TOKENS")]
    budget: Option<usize>,
    /// Skills that come first
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
    let off = Off::read(wanted, &installed, &home)?;
    let mut entries = ordered(args.selection.entries(&installed)?, &installed);
    entries.retain(|entry| off.offers(wanted, entry));
    let (mut skills, mut unusable) = (Vec::new(), Vec::new());
    for (entry, read) in entries.iter().zip(in_parallel(&entries, candidate)) {
        match read {
            Ok(candidate) => skills.extend(candidate),
            Err(reason) => unusable.push(Unusable { name: entry.name().to_owned(), reason }),
        }
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
        output::content(&output::harmless(&preamble.text()))?;
        for Unusable { name, reason } in &preamble.unusable {
            output::note(&format!("{} is left out: {}", output::cell(name), output::cell(reason)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A skill that a model is told of, by the name under which it is loaded; nothing for one that only
/// people call.
fn candidate(entry: &Entry) -> Result<Option<Candidate>, String> {
    let loaded = load::load(entry.path(), None).map_err(|error| error.to_string())?;
    let served = serve(entry.name(), &loaded.reading, loaded.folder.as_ref())?;
    let offered = CalledBy::Model.check(&served.skill).is_ok();
    Ok(offered.then(|| Candidate::new(&served.skill)))
}
