//! `savoir __extract`: reads one PDF in the sandbox, for another savoir process.

use std::{io, process::ExitCode};

use savoir_knowledge::extract::child_main;

use crate::error::CommandError;

pub(crate) fn run() -> Result<ExitCode, CommandError> {
    child_main(io::stdin().lock(), io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}
