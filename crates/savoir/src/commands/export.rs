//! `savoir export`.

use std::{
    fs,
    io::{self, IsTerminal as _, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use savoir_server::personal::{Exported, Keeper, to_others};
use savoir_skill::dialect::agent_flow::{Purpose, Stored};
use serde_json::json;

use super::import;
use crate::{error::CommandError, output, place::PlaceArgs, runtime};

/// Take a skill out of where the server has its own, for any other agent
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A skill without other files is a SKILL.md, one with files is a zip of its folder. Its owner is left
out, its tools are written as the portable format has them, and nothing else is changed.

Examples:
  savoir export weekly-report
  savoir export weekly-report -o weekly-report.zip
  savoir export weekly-report --owner ada@example.com --json -o SKILL.md

A server may run meanwhile.")]
pub(crate) struct Args {
    /// The skill
    name: String,
    /// Where to write it [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Only if it belongs to the account with this address
    #[arg(long, value_name = "EMAIL")]
    owner: Option<String>,
    /// Tell in JSON what was written; needs --output
    #[arg(long, requires = "output")]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let place = args.place.place()?;
    let exported = runtime::block_on(async {
        let (database, storage) = place.open().await?;
        let keeper = Keeper::new(storage.skills(), database.clone());
        let exported = export(&keeper, args).await;
        database.close().await;
        exported
    })?;
    let (kind, bytes) = match exported {
        Exported::Text(text) => ("markdown", text.into_bytes()),
        Exported::Zip(bytes) => ("zip", bytes),
    };
    match &args.output {
        None if kind == "zip" && io::stdout().is_terminal() => {
            let message = format!("{} has other files, and a zip is nothing to read", args.name);
            return Err(CommandError::input(message).hint("say where to: -o FILE.zip"));
        }
        None => io::stdout().write_all(&bytes).map_err(CommandError::input)?,
        Some(path) => {
            let wrong = |error: io::Error| {
                CommandError::input(format!("{} cannot be written: {error}", path.display()))
            };
            fs::write(path, &bytes).map_err(wrong)?;
            if args.json {
                let (name, size) = (&args.name, bytes.len());
                output::json(&json!({"name": name, "kind": kind, "file": path, "size": size}))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn export(keeper: &Keeper, args: &Args) -> Result<Exported, CommandError> {
    let name = &args.name;
    let missing = || {
        CommandError::input(format!("there is no skill `{name}` of `savoir serve`"))
            .hint(format!("`savoir which {name}` shows installed skills of that name"))
    };
    let owner = import::owner(keeper.database(), args.owner.as_deref()).await?;
    let file = keeper.files().read(name).await?.ok_or_else(missing)?;
    let stored = Stored::read(name, &file.text, Purpose::Load).map_err(CommandError::input)?;
    if owner.is_some() && stored.owner != owner {
        return Err(missing());
    }
    let resources = keeper.resources(name).await?;
    to_others(name, &file.text, resources).map_err(CommandError::input)
}
