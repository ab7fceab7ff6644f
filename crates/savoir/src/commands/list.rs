//! `savoir list`.

use std::{borrow::Cow, process::ExitCode};

use savoir_package::ledger::Entry;
use serde::Serialize;

use crate::{
    error::CommandError,
    installed::{Examined, Installed, Json, Seen, Selection, source, state},
    output,
};

/// List every skill on this machine, however it came
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir list                            every skill that an agent sees here
  savoir list --agent claude-code        what one agent sees
  savoir list --origin npx --long        with versions, sources and changes
  savoir list pdf --long --json          everything about one, for a program

ORIGIN is savoir, npx, gh, clawhub or plain; a dash says that no ledger names the skill. Files of
skills are read only with --long or --origin. AGENTS are those in use on this machine; --json has
all.")]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Read every skill: its version, its source, and whether it was modified
    #[arg(long, short)]
    long: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let installed = Installed::open(args.selection.project.as_deref())?;
    installed.warn();
    let entries = args.selection.entries(&installed)?;
    if args.long || args.selection.origin.is_some() {
        let mut examined = installed.examine(&entries);
        examined.retain(|examined| args.selection.takes_origin(examined));
        if args.json {
            let skills = examined.iter().map(|examined| Json::examined(examined, &installed));
            print_json(skills.collect(), &installed)?;
        } else {
            print(examined.len(), || long_table(&examined, &installed))?;
        }
    } else if args.json {
        let skills = entries.iter().map(|entry| Json::seen(entry, &installed));
        print_json(skills.collect(), &installed)?;
    } else {
        print(entries.len(), || table(&entries, &installed))?;
    }
    // The program ends here: giving back the memory of ten thousand skills is not worth the time.
    std::mem::forget(installed);
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Document<'a> {
    skills: Vec<Json<'a>>,
    warnings: Vec<String>,
}

fn print_json(skills: Vec<Json<'_>>, installed: &Installed) -> Result<(), CommandError> {
    output::json(&Document { skills, warnings: installed.warnings().collect() })
}

fn print(count: usize, table: impl Fn() -> String) -> Result<(), CommandError> {
    if count == 0 {
        return output::text("no skills\n");
    }
    output::long_text(&table())
}

fn table(entries: &[&Entry], installed: &Installed) -> String {
    let mut seen = Seen::default();
    let rows: Vec<[Cow<'_, str>; 4]> = entries
        .iter()
        .map(|entry| {
            let origin = entry.recorded().map_or("-", |origin| origin.word());
            [
                output::cell(entry.name()),
                origin.into(),
                seen.by(entry, installed).into(),
                place(entry, installed),
            ]
        })
        .collect();
    output::table(["NAME", "ORIGIN", "AGENTS", "PLACE"], &rows)
}

fn long_table(examined: &[Examined<'_>], installed: &Installed) -> String {
    let mut seen = Seen::default();
    let rows: Vec<[Cow<'_, str>; 7]> = examined
        .iter()
        .map(|examined| {
            let (entry, origin) = (examined.entry, examined.origin());
            let version = examined.details.as_ref().ok();
            let version = version.and_then(|details| details.version.as_deref());
            let source = source(origin, installed.locked_at(entry)).unwrap_or("-".into());
            [
                output::cell(entry.name()),
                match &examined.newer {
                    Some(newer) => Cow::Owned(format!(
                        "{} → {}",
                        output::cell(version.unwrap_or("-")),
                        output::cell(newer)
                    )),
                    None => output::cell(version.unwrap_or("-")),
                },
                state(examined).0.into(),
                origin.map_or("plain", |origin| origin.word()).into(),
                output::cell(&source).into_owned().into(),
                seen.by(entry, installed).into(),
                place(entry, installed),
            ]
        })
        .collect();
    output::table(["NAME", "VERSION", "STATE", "ORIGIN", "SOURCE", "AGENTS", "PLACE"], &rows)
}

fn place<'a>(entry: &'a Entry, installed: &Installed) -> Cow<'a, str> {
    match installed.shown(entry.path()) {
        Cow::Borrowed(path) => output::cell(path),
        Cow::Owned(path) => Cow::Owned(output::cell(&path).into_owned()),
    }
}
