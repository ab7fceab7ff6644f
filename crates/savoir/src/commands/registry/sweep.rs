//! `savoir registry sweep`: removes stored files that no version uses.

use std::{process::ExitCode, time::Duration};

use savoir_store::registry::RegistryError;
use serde_json::json;

use crate::{
    error::CommandError,
    output::{self, plural},
    runtime,
    storage_args::StorageArgs,
};

/// Remove stored files that no version uses
#[derive(Debug, clap::Args)]
#[command(after_help = "\
An interrupted publish leaves files behind, and so does a version that was taken down. A server may
run during the sweep: uploads in progress are kept. Each database leaves a marker in its storage,
and nothing is removed if the storage has the marker of another database.

Examples:
  savoir registry sweep
  savoir registry sweep --data /srv/savoir --hours 1
  SAVOIR_DATABASE=postgres://… savoir registry sweep --storage s3://skills
  savoir registry sweep --forget 0199…   (this database no longer exists)")]
pub(crate) struct Args {
    /// Minimum age of the removed files
    #[arg(long, value_name = "HOURS", default_value_t = 24)]
    hours: u64,
    /// Remove the marker of a database that no longer exists; may be repeated
    #[arg(long, value_name = "DATABASE")]
    forget: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    storage: StorageArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    sweep(args)
}

fn sweep(args: &Args) -> Result<ExitCode, CommandError> {
    let location = args.storage.location()?;
    if !location.exists() {
        let message = format!("{} does not contain a registry", location.shown_database());
        return Err(CommandError::input(message)
            .with_code("registry_missing")
            .hint("name the storage of the server: --data, or --database and --storage"));
    }
    let removed = runtime::block_on(async {
        let (database, storage) = location.open().await?;
        let registry = database.registry(&storage);
        for name in &args.forget {
            if !registry.unmark(name).await.map_err(|error| sweep_error(&error))? {
                return Err(CommandError::input(format!("the storage has no marker of {name}"))
                    .with_code("unknown_database")
                    .hint("leave out --forget: the error lists the other databases"));
            }
        }
        let older_than = Duration::from_secs(args.hours.saturating_mul(3600));
        let removed = registry.sweep(older_than).await.map_err(|error| sweep_error(&error));
        database.close().await;
        removed
    })?;
    if args.json {
        output::json(&json!({ "removed": removed }))?;
    } else {
        output::text(&format!("removed {}\n", plural(removed as usize, "file")))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn sweep_error(error: &RegistryError) -> CommandError {
    let hint = match error {
        RegistryError::SharedStorage { .. } => {
            "give each database its own storage; if one no longer exists: --forget DATABASE"
        }
        RegistryError::Busy => "wait until the other process is done",
        _ => "see savoir registry sweep --help",
    };
    CommandError::findings(error).with_code(error.code()).hint(hint)
}
