//! `savoir registry restore`: restores a backup into an empty registry.

use std::{fmt::Write as _, path::PathBuf, process::ExitCode};

use savoir_registry::backup::{self, ExistingAccounts, Restored};
use serde_json::json;

use crate::{
    error::CommandError,
    output::{self, plural},
    progress::Progress,
    runtime,
    storage_args::StorageArgs,
};

/// Restore a backup into an empty registry
#[derive(Debug, clap::Args)]
#[command(after_help = "\
First, the whole file is read and all digests are verified. Then everything becomes visible at once,
or nothing if there is an error. The database and the storage may be of another kind than before.

All accounts are restored with what they own, and administrators are administrators again. Accounts
that do not exist yet are created without a usable password; set one with
`savoir admin reset-password EMAIL`. If an account already exists whose email address owns something
in the backup, nothing is restored, because anyone may have created it. With --keep-accounts, such
accounts keep their passwords and get what they own in the backup. They do not become
administrators; those that were administrators in the backup are listed.

Examples:
  savoir registry restore registry.tar
  savoir registry restore registry.tar --data /srv/savoir
  savoir registry restore registry.tar --check          only verify the backup

Exit codes: 0 restored, 1 the backup is damaged or the registry is not empty, 2 wrong usage.")]
pub(crate) struct Args {
    /// File of `savoir registry backup`
    file: PathBuf,
    /// Verify the backup without restoring it
    #[arg(long)]
    check: bool,
    /// Let existing accounts keep their passwords and get what they own in the backup
    #[arg(long)]
    keep_accounts: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    storage: StorageArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    restore(args)
}

fn restore(args: &Args) -> Result<ExitCode, CommandError> {
    let file = &args.file;
    if !file.is_file() {
        return Err(CommandError::input(format!("{}: the file does not exist", file.display()))
            .with_code("file_missing")
            .hint("name a file of `savoir registry backup`"));
    }
    let mut progress = Progress::new();
    let end = backup::check(file, |done| {
        progress.update(|| format!("verified {done} blobs"));
    })?;
    if args.check {
        drop(progress);
        let text = format!(
            "{} is complete: {}, {}\n",
            file.display(),
            plural(end.packages as usize, "package"),
            plural(end.versions as usize, "version")
        );
        let value = json!({"whole": true, "packages": end.packages, "versions": end.versions});
        return print(args, &value, &text);
    }
    let location = args.storage.location()?;
    let accounts =
        if args.keep_accounts { ExistingAccounts::Keep } else { ExistingAccounts::Refuse };
    let restored = runtime::block_on(async {
        let (database, storage) = location.open().await?;
        let total = end.blobs;
        let report = |done| progress.update(|| format!("{done} of {total} blobs"));
        let registry = database.registry(&storage);
        let restored = backup::restore(registry, file, accounts, report).await;
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
    print(args, &value, &summary_text(&restored, &location.storage_options()))
}

fn print(args: &Args, value: &serde_json::Value, text: &str) -> Result<ExitCode, CommandError> {
    if args.json {
        output::json(value)?;
    } else {
        output::text(&output::sanitize(text))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn summary_text(restored: &Restored, storage_options: &str) -> String {
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
            "created {made} without a password; set a password for each: savoir admin \
             reset-password {first}{storage_options}"
        );
    }
    for email in &imported.not_administrators {
        let _ = writeln!(
            text,
            "{email} was an administrator in the backup, but stays a normal user here; to create an \
             administrator with another address: savoir admin create EMAIL{storage_options}"
        );
    }
    text
}
