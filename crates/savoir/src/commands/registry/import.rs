//! `savoir registry import`: imports a mirror or a folder of skills into a registry.

use std::{fmt::Write as _, path::PathBuf, process::ExitCode};

use savoir_registry::import::{self, ImportMode, ImportPlan, ImportRefusal, ImportSummary};
use savoir_store::{Database, registry::Namespace};
use serde_json::json;

use crate::{
    error::CommandError,
    output::{self, plural},
    progress::Progress,
    runtime,
    storage_args::StorageArgs,
};

/// Import a mirror or a folder of skills into your registry
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The folder is a mirror of `savoir registry mirror`, or has folders and zips of skills at any depth.
A mirror is imported with its names, versions, times and yanks; versions that were taken down there
cannot be published here. Other skills are packed and published under their names. With --namespace
anon, each Markdown file is a skill as well, unless it is part of a skill or a README: its name is
its first heading or its file name, and the registry assigns its versions. Digests are computed
again, every version is scanned, and its tier depends on this registry, not on the mirror.

Existing versions with the same bytes are skipped, so an interrupted import can be run again.
Existing versions with other bytes are refused. A server may run during the import.

Examples:
  savoir registry import mirror/
  savoir registry import skills/ --namespace acme --owner ada@example.com
  savoir registry import texts/ --namespace anon
  savoir registry import skills/ --dry-run --json

Exit codes: 0 all imported, 1 some were refused, 2 wrong usage, unreadable input, or no skills.")]
pub(crate) struct Args {
    /// Mirror, or folder with skills
    folder: PathBuf,
    /// Publish in this namespace
    #[arg(long, value_name = "NS")]
    namespace: Option<String>,
    /// Account that owns new skills
    #[arg(long, value_name = "EMAIL")]
    owner: Option<String>,
    /// Show what would be imported without importing it
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    storage: StorageArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    import(args)
}

fn import(args: &Args) -> Result<ExitCode, CommandError> {
    let folder = &args.folder;
    if !folder.is_dir() {
        return Err(CommandError::input(format!(
            "{}: the folder does not exist",
            folder.display()
        ))
        .with_code("folder_missing")
        .hint("name a mirror, or a folder with skills"));
    }
    let namespace = args.namespace.as_deref().map(Namespace::parse).transpose();
    let namespace = namespace.map_err(|error| {
        CommandError::input(format!("--namespace: {error}"))
            .with_code("invalid_namespace")
            .hint("for example: --namespace acme")
    })?;
    if namespace.is_some() && import::is_mirror(folder) {
        return Err(CommandError::input("--namespace cannot be used with a mirror")
            .with_code("mirror_keeps_names")
            .hint("leave out --namespace"));
    }
    let location = args.storage.location()?;
    let done = runtime::block_on(async {
        let (database, storage) = location.open().await?;
        let plan = ImportPlan {
            namespace,
            owner: owner(&database, args.owner.as_deref()).await?,
            mode: if args.dry_run { ImportMode::DryRun } else { ImportMode::Write },
        };
        let mut progress = Progress::new();
        let report = |done, total| progress.update(|| format!("{done} of {total} skills"));
        let done = import::import(database.registry(&storage), folder, &plan, report).await;
        drop(progress);
        database.close().await;
        Ok(done?)
    })?;
    if done.published + done.skipped + done.taken_down == 0 && done.refused.is_empty() {
        return Err(no_skills_error(args, &done));
    }
    if args.json {
        output::json(&json!({
            "dry_run": args.dry_run, "published": done.published, "skipped": done.skipped,
            "yanked": done.yanked, "taken_down": done.taken_down, "refused": done.refused,
        }))?;
    } else {
        output::text(&output::sanitize(&text(args, &done)))?;
    }
    Ok(ExitCode::from(u8::from(!done.refused.is_empty())))
}

/// The error for a folder without skills.
fn no_skills_error(args: &Args, done: &ImportSummary) -> CommandError {
    let error = CommandError::input(format!("{} has no skills", args.folder.display()))
        .with_code("no_skills")
        .hint("name a mirror, or a folder with folders or zips of skills, at any depth");
    if done.texts == 0 {
        return error;
    }
    let texts = plural(done.texts, "text");
    error.hint(format!("it has {texts}; to import texts without frontmatter: --namespace anon"))
}

async fn owner(database: &Database, email: Option<&str>) -> Result<Option<i64>, CommandError> {
    let Some(email) = email else { return Ok(None) };
    match database.accounts().by_email(email).await? {
        Some((user, _)) => Ok(Some(user.id)),
        None => Err(CommandError::input(format!("--owner: the account {email} does not exist"))
            .with_code("account_missing")
            .hint(format!("create it: savoir admin create {email} --role user"))),
    }
}

fn text(args: &Args, done: &ImportSummary) -> String {
    let mut text = String::new();
    for ImportRefusal { path, line, reason, .. } in &done.refused {
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "refused {path}{line}: {reason}");
    }
    let count = |number: u64| plural(number as usize, "version");
    let did = if args.dry_run { "would publish" } else { "published" };
    let _ = write!(text, "{did} {}, {} already exist", count(done.published), done.skipped);
    if done.yanked > 0 {
        let _ = write!(text, ", yanked {}", done.yanked);
    }
    if done.taken_down > 0 {
        let _ = write!(text, ", {} taken down", done.taken_down);
    }
    let _ = writeln!(text, ", {} refused", done.refused.len());
    text
}
