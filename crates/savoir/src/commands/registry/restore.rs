//! `savoir registry restore`.

use std::{fmt::Write as _, path::PathBuf, process::ExitCode};

use serde_json::json;

use crate::{
    error::CommandError,
    output::{self, plural},
    place::PlaceArgs,
    progress::Progress,
    registry_backup::{self, Accounts, Restored},
    runtime,
    shelf::told,
};

/// Put a backup into an empty registry
#[derive(Debug, clap::Args)]
#[command(after_help = "\
First the whole file is read, and everything in it is held against its digest. Then all of it
becomes visible at once, or nothing if something goes wrong. The database and the storage may be of
another kind than those that the backup was made of.

All accounts come back by their address, with what they own, and administrators are administrators
again. Who has no account here gets one without a password that anybody knows; `savoir admin
reset-password EMAIL` gives it one. If an account is here already whose address owns something in
the backup, nothing is restored: anybody may have made it. With --keep-accounts these accounts keep
their passwords, and get what the backup says they own. None of them becomes an administrator by it;
who was one in the backup is told.

Examples:
  savoir registry restore registry.tar
  savoir registry restore registry.tar --data /srv/savoir
  savoir registry restore registry.tar --check          only see whether it is whole

Exit codes: 0 restored, 1 the backup is damaged or the registry is not empty, 2 wrong usage.")]
pub(crate) struct Args {
    /// What `savoir registry backup` wrote
    file: PathBuf,
    /// Only see whether the backup is whole
    #[arg(long)]
    check: bool,
    /// Accounts that are here already keep their passwords, and get what the backup says they own
    #[arg(long)]
    keep_accounts: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    told(args.json, || restore(args))
}

fn restore(args: &Args) -> Result<ExitCode, CommandError> {
    let file = &args.file;
    if !file.is_file() {
        return Err(CommandError::input(format!("{}: there is no such file", file.display()))
            .named("file_missing")
            .hint("name a file that `savoir registry backup` wrote"));
    }
    let mut progress = Progress::new();
    let end = registry_backup::check(file, |done| {
        progress.tell(|| format!("{done} blobs are as they must be"));
    })?;
    if args.check {
        drop(progress);
        let text = format!(
            "{} is whole: {}, {}\n",
            file.display(),
            plural(end.packages as usize, "package"),
            plural(end.versions as usize, "version")
        );
        let value = json!({"whole": true, "packages": end.packages, "versions": end.versions});
        return print(args, &value, &text);
    }
    let place = args.place.place()?;
    let accounts = if args.keep_accounts { Accounts::Keep } else { Accounts::Refuse };
    let restored = runtime::block_on(async {
        let (database, storage) = place.open().await?;
        let total = end.blobs;
        let tell = |done| progress.tell(|| format!("{done} of {total} blobs"));
        let registry = database.registry(&storage);
        let restored = registry_backup::restore(registry, file, accounts, tell).await;
        database.close().await;
        Ok(restored?)
    })?;
    drop(progress);
    let Restored { imported, blobs } = &restored;
    let value = json!({
        "packages": imported.packages, "versions": imported.versions, "blobs": blobs,
        "accounts_made": imported.accounts, "administrators_made": imported.administrators,
        "administrators_not_made": imported.not_administrators,
    });
    print(args, &value, &words(&restored, &place.words()))
}

fn print(args: &Args, value: &serde_json::Value, text: &str) -> Result<ExitCode, CommandError> {
    if args.json {
        output::json(value)?;
    } else {
        output::text(&output::harmless(text))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn words(restored: &Restored, place: &str) -> String {
    let imported = &restored.imported;
    let mut text = format!(
        "restored {} with {}\n",
        plural(imported.packages as usize, "package"),
        plural(imported.versions as usize, "version")
    );
    if let Some(first) = imported.administrators.first().or(imported.accounts.first()) {
        let made = plural(imported.accounts.len(), "account");
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "made {made} that cannot log in yet; give each a password: savoir admin \
             reset-password {first}{place}"
        );
    }
    for email in &imported.not_administrators {
        let _ = writeln!(
            text,
            "{email} was an administrator in the backup and is a plain user here, as before; make an \
             administrator of another address: savoir admin create EMAIL{place}"
        );
    }
    text
}
