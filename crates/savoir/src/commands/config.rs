//! `savoir config`.

use std::{io::Write as _, path::Path, process::ExitCode};

use serde_json::json;

use crate::{config::Config, error::CommandError, output};

/// Show the effective settings and where each came from
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  savoir config --json")]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let config = Config::load(Path::new("."))?;
    let settings = config.effective();
    if args.json {
        let settings: serde_json::Map<_, _> = settings
            .into_iter()
            .map(|(name, value, origin)| (name, json!({"value": value, "from": origin})))
            .collect();
        output::json(&settings)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = output::stdout();
    for (name, value, origin) in settings {
        writeln!(out, "{name} = {value}  # {}", output::harmless(&origin))?;
    }
    output::flush(out)?;
    Ok(ExitCode::SUCCESS)
}
