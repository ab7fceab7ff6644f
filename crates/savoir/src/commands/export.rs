//! `savoir export`: exports a personal skill from a server for use in other agents.

use std::{
    fs,
    io::{self, IsTerminal as _, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use savoir_lint::words::nearest;
use savoir_server::personal::{Exported, SkillWriter, to_others};
use savoir_skill::dialect::agent_flow::{Purpose, StoredSkillFile};
use savoir_store::name_of_key;
use serde_json::json;

use super::import;
use crate::{error::CommandError, output, runtime, storage_args::StorageArgs};

/// Maximum number of names in the hint for an unknown one.
const MAX_LISTED_NAMES: usize = 10;

/// Export a personal skill from a server for use in other agents
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A skill that is only a SKILL.md is exported as such, other skills as a zip file of the folder. The
owner is removed. Only what other agents would not read is changed: allowed tools and
`context: fork` get the portable form, invalid YAML is repaired, a `metadata` that is not a map
becomes one, and a description is cut after 1,024 characters. If a field changes, the known fields
come first.

Examples:
  savoir export weekly-report
  savoir export weekly-report -o weekly-report.zip
  savoir export weekly-report --owner ada@example.com --json -o SKILL.md

The server can keep running.")]
pub(crate) struct Args {
    /// Name of the skill
    name: String,
    /// File to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Email address of the owner's account [default: the shared skill, else the oldest]
    #[arg(long, value_name = "EMAIL")]
    owner: Option<String>,
    /// Print what was written as JSON; needs --output
    #[arg(long, requires = "output")]
    json: bool,
    #[command(flatten)]
    storage: StorageArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let location = args.storage.location()?;
    let exported = runtime::block_on(async {
        let (database, storage) = location.open().await?;
        let skill_writer = SkillWriter::new(storage.skills(), database.clone());
        let exported = export(&skill_writer, args).await;
        database.close().await;
        exported
    })?;
    let (kind, bytes) = match exported {
        Exported::Text(text) => ("markdown", text.into_bytes()),
        Exported::Zip(bytes) => ("zip", bytes),
    };
    match &args.output {
        None if kind == "zip" && io::stdout().is_terminal() => {
            let message =
                format!("{} is exported as a zip file, which a terminal cannot show", args.name);
            return Err(CommandError::input(message).hint("write it to a file: -o FILE.zip"));
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

async fn export(skill_writer: &SkillWriter, args: &Args) -> Result<Exported, CommandError> {
    let name = &args.name;
    let missing = || CommandError::input(format!("the server has no skill `{name}`"));
    let owner_id = import::owner_id(skill_writer.database(), args.owner.as_deref()).await?;
    let key = match (&owner_id, skill_writer.find_key(name, owner_id.as_deref()).await?) {
        (None, None) => {
            let oldest = skill_writer.find_all(name).await?.into_iter().next();
            oldest.map(|file| file.key)
        }
        (_, key) => key,
    };
    let Some(key) = key else {
        let names = skill_writer.files().keys().await?;
        return Err(missing().hint(other_names(name, &names)));
    };
    let file = skill_writer.files().read(&key).await?.ok_or_else(missing)?;
    let stored = StoredSkillFile::read(name, &file.text, Purpose::LoadImported)
        .map_err(CommandError::input)?;
    if owner_id.is_some() && stored.owner != owner_id {
        return Err(missing());
    }
    let resources = skill_writer.resources(&file.key).await?;
    to_others(name, &file.text, resources).map_err(CommandError::input)
}

/// The hint for a name that the server does not have.
fn other_names(name: &str, keys: &[String]) -> String {
    let mut names: Vec<&str> = keys.iter().map(|key| name_of_key(key)).collect();
    names.sort_unstable();
    names.dedup();
    if let Some(near) = nearest(name, names.iter().copied()) {
        return format!("did you mean `{near}`?");
    }
    let rest = names.split_off(names.len().min(MAX_LISTED_NAMES));
    match (names.is_empty(), rest.len()) {
        (true, _) => "it has no skills; add one with: savoir import PATH".to_owned(),
        (false, 0) => format!("its skills are {}", names.join(", ")),
        (false, more) => format!("its skills are {} and {more} more", names.join(", ")),
    }
}
