//! `savoir context`: shows what a model sees of the installed skills.

pub(crate) mod show;
pub(crate) mod simulate;

use std::process::ExitCode;

use crate::error::CommandError;

/// Show what a model sees of the installed skills
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir context show                        skills that any agent sees here
  savoir context simulate --agent codex      what one agent shows and cuts")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Show(show::Args),
    Simulate(simulate::Args),
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::Show(args) => show::run(args),
        Command::Simulate(args) => simulate::run(args),
    }
}
