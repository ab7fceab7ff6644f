//! `savoir registry backup`: backs up the registry into one file.

use std::{path::PathBuf, process::ExitCode};

use savoir_registry::backup;
use serde_json::json;

use crate::{
    error::CommandError,
    output::{self, plural},
    progress::Progress,
    runtime,
    storage_args::StorageArgs,
};

/// Back up the registry into one file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The file is a tar with all versions, signatures, keys, members, clearances, log entries and
archives. It is a consistent snapshot, even while a server runs, and is created only if it is
complete. It has the email addresses of accounts, but no passwords, chats, knowledge or workflows.

Examples:
  savoir registry backup registry.tar
  savoir registry backup /backups/$(date +%F).tar --data /srv/savoir
  SAVOIR_DATABASE=postgres://… savoir registry backup registry.tar --storage s3://skills --force")]
pub(crate) struct Args {
    /// File to write
    file: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    storage: StorageArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let (file, location) = (&args.file, args.storage.location()?);
    if file.is_dir() {
        return Err(CommandError::input(format!("{} is a folder", file.display()))
            .with_code("is_a_folder")
            .hint(format!("name a file: {}", file.join("registry.tar").display())));
    }
    if !args.force && file.exists() {
        return Err(CommandError::input(format!("{} already exists", file.display()))
            .with_code("file_exists")
            .hint("name another file, or replace this one: --force"));
    }
    if !location.exists() {
        let message = format!("{} does not contain a registry", location.shown_database());
        return Err(CommandError::input(message)
            .with_code("registry_missing")
            .hint("name the storage of the server: --data, or --database and --storage"));
    }
    let end = runtime::block_on(async {
        let (database, storage) = location.open().await?;
        let mut progress = Progress::new();
        let tell = |done, total| progress.update(|| format!("{done} of {total} blobs"));
        let written = backup::write(database.registry(&storage), file, tell).await;
        drop(progress);
        database.close().await;
        Ok(written?)
    })?;
    if args.json {
        output::json(&json!({
            "file": file, "records": end.records, "packages": end.packages,
            "versions": end.versions, "blobs": end.blobs, "bytes": end.bytes,
        }))?;
    } else {
        let packages = plural(end.packages as usize, "package");
        let versions = plural(end.versions as usize, "version");
        let text =
            format!("{}: {packages}, {versions}, {} bytes of files\n", file.display(), end.bytes);
        output::text(&output::sanitize(&text))?;
    }
    Ok(ExitCode::SUCCESS)
}
