//! `savoir man`: prints the manual page, or writes one page per command.

use std::{fs, path::PathBuf, process::ExitCode};

use clap::CommandFactory as _;

use crate::{error::CommandError, output};

/// Print the manual page, or write one page per command
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  savoir man | man -l -\n  savoir man -o ~/.local/share/man/man1"
)]
pub(crate) struct Args {
    /// Write every page into this folder
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let command = super::Cli::command();
    if let Some(folder) = &args.output {
        let failed = |error| CommandError::input(format!("{}: {error}", folder.display()));
        fs::create_dir_all(folder).map_err(failed)?;
        clap_mangen::generate_to(command, folder).map_err(failed)?;
    } else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        output::text(&String::from_utf8_lossy(&page))?;
    }
    Ok(ExitCode::SUCCESS)
}
