//! `savoir undo`.

use std::process::ExitCode;

use serde_json::Map;

use crate::{
    error::CommandError,
    shelf::{Manner, Report, Whose, told},
};

/// Take back the last change of the skills: install, update, remove, sync or adopt
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir undo
  savoir undo --dry-run                  see what would go back
  savoir undo --global

Every folder, savoir.toml and savoir.lock get the bytes that they had. The last 20 changes of each
project can be taken back, one after the other. What was edited since is not touched without --force.")]
pub(crate) struct Args {
    #[command(flatten)]
    whose: Whose,
    #[command(flatten)]
    manner: Manner,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    told(args.manner.json, undo(args))
}

fn undo(args: &Args) -> Result<ExitCode, CommandError> {
    let door = args.whose.open()?;
    let edits = args.manner.edits();
    let plan = || Ok(door.shelf.undo(edits)?);
    let (plan, done) = door.carry_out(plan, |_| Ok(!args.manner.dry_run))?;
    Report { json: args.manner.json, done }.print(&door, &plan, Map::new())?;
    Ok(ExitCode::SUCCESS)
}
