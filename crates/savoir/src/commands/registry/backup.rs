//! `savoir registry backup`.

use std::{path::PathBuf, process::ExitCode};

use serde_json::json;

use crate::{
    error::CommandError,
    output::{self, plural},
    place::PlaceArgs,
    progress::Progress,
    registry_backup, runtime,
    shelf::told,
};

/// Write everything of the registry into one file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The file is a tar with every version, signature, key, member, clearance and entry of the log, and
with every artefact. It is that of one moment, also while a server runs, and it appears only when it
is whole. Accounts are in it as addresses, without passwords; chats, knowledge and workflows are not
in it.

Examples:
  savoir registry backup registry.tar
  savoir registry backup /backups/$(date +%F).tar --data /srv/savoir
  SAVOIR_DATABASE=postgres://… savoir registry backup registry.tar --storage s3://skills --force")]
pub(crate) struct Args {
    /// The file to write
    file: PathBuf,
    /// Replace a file that is there
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    told(args.json, || backup(args))
}

fn backup(args: &Args) -> Result<ExitCode, CommandError> {
    let (file, place) = (&args.file, args.place.place()?);
    if file.is_dir() {
        return Err(CommandError::input(format!("{} is a folder", file.display()))
            .named("is_a_folder")
            .hint(format!("name a file: {}", file.join("registry.tar").display())));
    }
    if !args.force && file.exists() {
        return Err(CommandError::input(format!("{} is there already", file.display()))
            .named("file_exists")
            .hint("name another file, or replace this one: --force"));
    }
    if !place.exists() {
        let message = format!("{} has no registry", place.shown_database());
        return Err(CommandError::input(message)
            .named("registry_missing")
            .hint("say where the server keeps things: --data, or --database and --storage"));
    }
    let end = runtime::block_on(async {
        let (database, storage) = place.open().await?;
        let mut progress = Progress::new();
        let tell = |done, total| progress.tell(|| format!("{done} of {total} blobs"));
        let written = registry_backup::write(database.registry(&storage), file, tell).await;
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
        output::text(&output::harmless(&text))?;
    }
    Ok(ExitCode::SUCCESS)
}
