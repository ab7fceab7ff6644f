use std::{io, process::ExitCode};

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::error::CommandError;

/// Print completions for a shell
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  savoir completions bash > ~/.local/share/bash-completion/completions/savoir"
)]
pub(crate) struct Args {
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    clap_complete::generate(args.shell, &mut super::Cli::command(), "savoir", &mut io::stdout());
    Ok(ExitCode::SUCCESS)
}
