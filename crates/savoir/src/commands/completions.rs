use std::{io, process::ExitCode};

use clap::CommandFactory as _;
use clap_complete::Shell;

/// Print completions for a shell
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  savoir completions bash > ~/.local/share/bash-completion/completions/savoir"
)]
pub(crate) struct Args {
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    clap_complete::generate(args.shell, &mut super::Cli::command(), "savoir", &mut io::stdout());
    ExitCode::SUCCESS
}
