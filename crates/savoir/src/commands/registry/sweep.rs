//! `savoir registry sweep`.

use std::{process::ExitCode, time::Duration};

use savoir_store::registry::RegistryError;
use serde_json::json;

use crate::{
    error::CommandError,
    output::{self, plural},
    place::PlaceArgs,
    runtime,
    shelf::told,
};

/// Remove bytes that no version refers to
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A publish that broke off leaves its bytes behind, and so does a version that was withdrawn. A server
may run meanwhile: what is being published stays. Each database leaves a mark in its storage, and
nothing is removed where another one has left its own, too.

Examples:
  savoir registry sweep
  savoir registry sweep --data /srv/savoir --hours 1
  SAVOIR_DATABASE=postgres://… savoir registry sweep --storage s3://skills
  savoir registry sweep --forget 0199…   (the database of that name is gone)")]
pub(crate) struct Args {
    /// Only what was written so many hours ago, or earlier
    #[arg(long, value_name = "HOURS", default_value_t = 24)]
    hours: u64,
    /// First take away the mark of a database that is gone
    #[arg(long, value_name = "DATABASE")]
    forget: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    told(args.json, || sweep(args))
}

fn sweep(args: &Args) -> Result<ExitCode, CommandError> {
    let place = args.place.place()?;
    if !place.exists() {
        let message = format!("{} has no registry", place.shown_database());
        return Err(CommandError::input(message)
            .named("registry_missing")
            .hint("say where the server keeps things: --data, or --database and --storage"));
    }
    let removed = runtime::block_on(async {
        let (database, storage) = place.open().await?;
        let registry = database.registry(&storage);
        for name in &args.forget {
            if !registry.unmark(name).await.map_err(|error| refused(&error))? {
                return Err(CommandError::input(format!("no database {name} left a mark here"))
                    .named("unknown_database")
                    .hint("leave out --forget: a refusal names those that did"));
            }
        }
        let older_than = Duration::from_secs(args.hours.saturating_mul(3600));
        let removed = registry.sweep(older_than).await.map_err(|error| refused(&error));
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

fn refused(error: &RegistryError) -> CommandError {
    let hint = match error {
        RegistryError::SharedStorage { .. } => {
            "give each database a storage of its own; if one is gone, forget it: --forget DATABASE"
        }
        RegistryError::Busy => "wait for it",
        _ => "savoir registry sweep --help",
    };
    CommandError::findings(error).named(error.code()).hint(hint)
}
