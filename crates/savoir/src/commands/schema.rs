use std::process::ExitCode;

use savoir_skill::Dialect;

use crate::{error::CommandError, output};

/// Print the JSON Schema of a dialect's frontmatter
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// agentskills, claude-code, codex, openclaw, agent-flow, gibberish, gaia, skillrt, personal-agent
    #[arg(value_parser = super::dialect)]
    dialect: Dialect,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    output::json(&args.dialect.schema())?;
    Ok(ExitCode::SUCCESS)
}
