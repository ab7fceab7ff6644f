//! `savoir undo`: undoes the last install, update, remove, sync or adopt.

use std::process::ExitCode;

use savoir_package::install::UserEdits;
use serde_json::Map;

use crate::{
    error::CommandError,
    install_context::{Report, ScopeArgs},
};

/// Undo the last install, update, remove, sync or adopt
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir undo
  savoir undo --dry-run                  show what would be restored
  savoir undo --user

This restores all skill folders, savoir.toml and savoir.lock. The last 20 changes of each project
can be undone, one after the other. Files edited after the change are kept, unless --force is given.")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(crate) struct Args {
    #[command(flatten)]
    scope: ScopeArgs,
    /// Accepted for scripts that pass it to every command: this command never asks
    #[arg(long, short, hide = true)]
    yes: bool,
    /// Discard edits that were made after the change
    #[arg(long, short)]
    force: bool,
    /// Show what would change without changing it
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    undo(args)
}

fn undo(args: &Args) -> Result<ExitCode, CommandError> {
    // Nothing is asked, with and without it.
    let _ = args.yes;
    let context = args.scope.open()?;
    let edits = if args.force { UserEdits::Discard } else { UserEdits::Keep };
    let plan = || Ok(context.skill_set.undo(edits)?);
    let (plan, done) = context.carry_out(plan, |_| Ok(!args.dry_run))?;
    Report { json: args.json, done }.print(&context, &[&plan], Map::new())?;
    Ok(ExitCode::SUCCESS)
}
