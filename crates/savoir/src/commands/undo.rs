//! `savoir undo`.

use std::process::ExitCode;

use savoir_package::shelf::Edits;
use serde_json::Map;

use crate::{
    error::CommandError,
    shelf::{Report, Whose, told},
};

/// Undo the last change of the skills: install, update, remove, sync or adopt
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir undo
  savoir undo --dry-run                  show what would be restored
  savoir undo --global

Every folder, savoir.toml and savoir.lock are restored. The last 20 changes of each project can be
undone, one after the other. Files that were edited after the change are kept without --force.")]
pub(crate) struct Args {
    #[command(flatten)]
    whose: Whose,
    /// Discard edits that were made after the change
    #[arg(long, short)]
    force: bool,
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    told(args.json, || undo(args))
}

fn undo(args: &Args) -> Result<ExitCode, CommandError> {
    let door = args.whose.open()?;
    let edits = if args.force { Edits::Discard } else { Edits::Keep };
    let plan = || Ok(door.shelf.undo(edits)?);
    let (plan, done) = door.carry_out(plan, |_| Ok(!args.dry_run))?;
    Report { json: args.json, done }.print(&door, &[&plan], Map::new())?;
    Ok(ExitCode::SUCCESS)
}
