//! `savoir completions`: prints shell completions.

use std::process::ExitCode;

use clap_complete::{Shell, env::Shells};

use crate::{completion, error::CommandError, output};

/// Print shell completions, also for the names of installed skills
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  savoir completions bash > ~/.local/share/bash-completion/completions/savoir"
)]
pub(crate) struct Args {
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let name = args.shell.to_string();
    let shells = Shells::builtins();
    let shell = shells.completer(&name).ok_or_else(|| {
        CommandError::input(format!("there are no completions for {name}"))
            .hint(format!("known shells: {}", shells.names().collect::<Vec<_>>().join(", ")))
    })?;
    let mut script = Vec::new();
    shell.write_registration(completion::VARIABLE, "savoir", "savoir", "savoir", &mut script)?;
    output::text(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
