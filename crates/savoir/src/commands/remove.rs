//! `savoir remove`.

use std::process::ExitCode;

use savoir_package::Agent;
use serde_json::Map;

use crate::{
    error::CommandError,
    shelf::{Manner, Report, Whose, agent, told},
};

/// Remove skills that Savoir installed, and what only they needed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir remove pdf
  savoir remove pdf --agent codex        only there; other agents keep it
  savoir remove pdf notes --global

Folders that were edited stay, unless --force is given. What other skills need stays, too.
`savoir undo` reverts it.")]
pub(crate) struct Args {
    /// The names of the skills
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Remove them only for these agents
    #[arg(long, short, value_name = "AGENT", value_delimiter = ',', value_parser = agent)]
    agent: Vec<&'static Agent>,
    #[command(flatten)]
    whose: Whose,
    #[command(flatten)]
    manner: Manner,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    told(args.manner.json, || remove(args))
}

fn remove(args: &Args) -> Result<ExitCode, CommandError> {
    let door = args.whose.open()?;
    door.check_installed(&args.names, "remove")?;
    let edits = args.manner.edits();
    let plan = || {
        Ok(if args.agent.is_empty() {
            door.shelf.remove(&args.names, edits)?
        } else {
            door.shelf.withdraw(&args.names, &args.agent, edits)?
        })
    };
    let (plan, done) = door.carry_out(plan, |_| Ok(!args.manner.dry_run))?;
    Report { json: args.manner.json, done }.print(&door, &[&plan], Map::new())?;
    Ok(ExitCode::SUCCESS)
}
