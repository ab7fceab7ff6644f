use std::{io::Write as _, path::Path, process::ExitCode};

use serde_json::json;

use crate::{config::Config, error::CommandError, output};

/// Show the effective settings and where each came from
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let config = Config::load(Path::new("."))?;
    if args.json {
        let settings: serde_json::Map<_, _> = config
            .origins
            .iter()
            .map(|(name, value, origin)| (name.clone(), json!({"value": value, "from": origin})))
            .collect();
        output::json(&settings)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = output::stdout();
    if config.origins.is_empty() {
        writeln!(
            out,
            "nothing is set; `savoir.toml` can set `[check]` select, ignore, strict, target, dialect"
        )?;
    }
    for (name, value, origin) in &config.origins {
        writeln!(out, "{name} = {value}  # {origin}")?;
    }
    output::flush(out)?;
    Ok(ExitCode::SUCCESS)
}
