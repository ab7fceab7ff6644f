//! `savoir config`: shows the effective settings and where they come from.

use std::{io::Write as _, path::Path, process::ExitCode};

use serde_json::{Map, Value, json};

use crate::{
    config::{self, Config},
    error::CommandError,
    output,
};

/// Show the effective settings and where they come from
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
        output::json(&as_json(settings))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = output::stdout();
    writeln!(out, "# your settings: {}", output::sanitize(&config::shown_user_file()))?;
    for (name, value, origin) in settings {
        writeln!(out, "{name} = {value}  # {}", output::sanitize(&origin))?;
    }
    output::flush(out)?;
    Ok(ExitCode::SUCCESS)
}

/// Settings by name. Every file adds to a policy, so the settings of a policy are lists.
fn as_json(settings: Vec<(String, Value, String)>) -> Map<String, Value> {
    let mut known = Map::new();
    for (name, value, origin) in settings {
        let setting = json!({"value": value, "from": origin});
        match known.get_mut(&name) {
            Some(Value::Array(settings)) => settings.push(setting),
            _ if name.starts_with("policy.") => {
                known.insert(name, json!([setting]));
            }
            _ => {
                known.insert(name, setting);
            }
        }
    }
    known
}
