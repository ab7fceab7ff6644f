//! `savoir completions`: prints shell completions.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::{error::CommandError, output};

/// Print shell completions
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  savoir completions bash > ~/.local/share/bash-completion/completions/savoir"
)]
pub(crate) struct Args {
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::Cli::command(), "savoir", &mut script);
    output::text(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
