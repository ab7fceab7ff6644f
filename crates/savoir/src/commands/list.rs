//! `savoir list`: lists the skills on this machine, whichever tool installed them.

mod rows;

use std::{
    borrow::Cow,
    io::{self, IsTerminal as _},
    process::ExitCode,
};

use savoir_package::ledger::LedgerEntry;
use serde::Serialize;

use self::rows::{Row, rows};
use crate::{
    error::CommandError,
    installed::{ExaminedSkill, Installed, InstalledSkillJson, SeenBy, Selection, source, state},
    output::{self, Column},
    trust,
};

/// Widths of names and sources in the table on a terminal; a pipe gets them in full.
const MAX_NAME_WIDTH: usize = 32;
const MAX_SOURCE_WIDTH: usize = 34;

/// List the skills on this machine, whichever tool installed them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir list                            every skill that an agent sees here
  savoir list --agent claude-code        the skills that one agent sees
  savoir list --origin npx --long        every copy, with its state and folder
  savoir list pdf --json                 one skill as JSON

TRUST is the tier that the signatures attest, or unsigned. AGENTS are those in use on this machine;
(off) marks one for which the skill is disabled. Copies of a skill in several agents' folders are
one row; --long shows each.

Alias: ls.")]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Show every copy with its folder, and whether it was modified
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
    if args.long {
        let mut examined = installed.examine(&entries);
        examined.retain(|examined| args.selection.takes_origin(examined));
        if args.json {
            let skills =
                examined.iter().map(|examined| InstalledSkillJson::examined(examined, &installed));
            print_json(skills.collect(), &installed)?;
        } else {
            print(examined.len(), || long_table(&examined, &installed))?;
        }
    } else {
        let mut rows = rows(entries, &installed, &trust::trust_store_for_run()?)?;
        rows.retain(|row| args.selection.takes_word(row.origin()));
        if args.json {
            print_json(rows, &installed)?;
        } else {
            print(rows.len(), || table(&rows))?;
        }
    }
    if !args.json {
        installed.sync_hints().iter().for_each(|hint| output::note(hint));
    }
    // The program exits now, so no time is spent on freeing the memory of thousands of skills.
    std::mem::forget(installed);
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Document<T> {
    skills: Vec<T>,
    warnings: Vec<String>,
}

fn print_json<T: Serialize>(skills: Vec<T>, installed: &Installed) -> Result<(), CommandError> {
    output::json(&Document { skills, warnings: installed.warnings().collect() })
}

fn print(count: usize, table: impl Fn() -> String) -> Result<(), CommandError> {
    if count == 0 {
        return output::text("no skills\n");
    }
    output::long_text(&table())
}

fn table(rows: &[Row<'_>]) -> String {
    let rows: Vec<[Cow<'_, str>; 6]> = rows
        .iter()
        .map(|row| {
            [
                truncate_to_width(row.name, MAX_NAME_WIDTH),
                truncate_to_width(row.version.as_deref().unwrap_or("-"), MAX_NAME_WIDTH),
                row.trust.into(),
                truncate_to_width(row.short_source.as_deref().unwrap_or("-"), MAX_SOURCE_WIDTH),
                row.scope().into(),
                row.shown_agents().into(),
            ]
        })
        .collect();
    let columns = [
        Column::cut_to("NAME", 12),
        Column::cut_to("VERSION", 7),
        Column::fixed("TRUST"),
        Column::cut_to("SOURCE", 14).ranked(2),
        Column::fixed("SCOPE").ranked(1),
        Column::cut_to("AGENTS", 12),
    ];
    output::fit_table(columns, rows)
}

/// Untrusted text, cut to a width on a terminal.
fn truncate_to_width(text: &str, width: usize) -> Cow<'_, str> {
    let text = output::cell(text);
    if text.chars().count() <= width || !io::stdout().is_terminal() {
        return text;
    }
    let start: String = text.chars().take(width - 1).collect();
    Cow::Owned(format!("{start}…"))
}

fn long_table(examined: &[ExaminedSkill<'_>], installed: &Installed) -> String {
    let mut seen = SeenBy::default();
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
                folder_text(entry, installed),
            ]
        })
        .collect();
    let columns = [
        Column::cut_to("NAME", 12),
        Column::cut_to("VERSION", 7),
        Column::fixed("STATE"),
        Column::fixed("ORIGIN").ranked(1),
        Column::cut_to("SOURCE", 14).ranked(3),
        Column::cut_to("AGENTS", 12).ranked(2),
        Column::cut_to("FOLDER", 20),
    ];
    output::fit_table(columns, rows)
}

fn folder_text<'a>(entry: &'a LedgerEntry, installed: &Installed) -> Cow<'a, str> {
    match installed.shown(entry.path()) {
        Cow::Borrowed(path) => output::cell(path),
        Cow::Owned(path) => Cow::Owned(output::cell(&path).into_owned()),
    }
}
