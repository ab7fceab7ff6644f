//! `savoir registry import`.

use std::{fmt::Write as _, path::PathBuf, process::ExitCode};

use savoir_store::{Database, registry::Namespace};
use serde_json::json;

use crate::{
    error::CommandError,
    output::{self, plural},
    place::PlaceArgs,
    progress::Progress,
    registry_import::{self, Done, Mode, Plan, Refusal},
    runtime,
    shelf::told,
};

/// Put a whole tree of skills into the registry of this machine
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The folder is a mirror, as `savoir registry mirror` writes it: then everything is kept, names,
versions, times, and what was yanked; numbers that were taken down stay taken. Or it has folders and
zips of skills at any depth: then each is packed and published under its name. With --namespace anon
each Markdown file is a skill, too, unless it lies in one or is a README: it is called by its first
heading, else by its file, and its versions are counted. Digests are worked out again, every version
is scanned, and its tier is what it earns here, whatever the mirror says.

What is there already with the same bytes is passed over, so that an import goes on where it was
broken off; what is there with other bytes is refused. A server may run meanwhile.

Examples:
  savoir registry import mirror/
  savoir registry import skills/ --namespace acme --owner ada@example.com
  savoir registry import texts/ --namespace anon
  savoir registry import skills/ --dry-run --json

Exit codes: 0 all is there, 1 some were refused, 2 wrong usage, unreadable input, or no skills.")]
pub(crate) struct Args {
    /// A mirror, or a folder with skills
    folder: PathBuf,
    /// Publish into this namespace
    #[arg(long, value_name = "NS")]
    namespace: Option<String>,
    /// The account that owns what is new
    #[arg(long, value_name = "EMAIL")]
    owner: Option<String>,
    /// Only tell what would happen
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    told(args.json, || import(args))
}

fn import(args: &Args) -> Result<ExitCode, CommandError> {
    let folder = &args.folder;
    if !folder.is_dir() {
        return Err(CommandError::input(format!("{}: there is no such folder", folder.display()))
            .named("folder_missing")
            .hint("name a mirror, or a folder with skills"));
    }
    let namespace = args.namespace.as_deref().map(Namespace::parse).transpose();
    let namespace = namespace.map_err(|error| {
        CommandError::input(format!("--namespace: {error}"))
            .named("invalid_namespace")
            .hint("write it as acme")
    })?;
    if namespace.is_some() && registry_import::is_mirror(folder) {
        return Err(CommandError::input("a mirror keeps its names")
            .named("mirror_keeps_names")
            .hint("leave out --namespace"));
    }
    let place = args.place.place()?;
    let done = runtime::block_on(async {
        let (database, storage) = place.open().await?;
        let plan = Plan {
            namespace,
            owner: owner(&database, args.owner.as_deref()).await?,
            mode: if args.dry_run { Mode::Look } else { Mode::Write },
        };
        let mut progress = Progress::new();
        let tell = |done, total| progress.tell(|| format!("{done} of {total} skills"));
        let done = registry_import::import(database.registry(&storage), folder, &plan, tell).await;
        drop(progress);
        database.close().await;
        Ok(done?)
    })?;
    if done.published + done.skipped + done.taken_down == 0 && done.refused.is_empty() {
        return Err(nothing(args, &done));
    }
    if args.json {
        output::json(&json!({
            "dry_run": args.dry_run, "published": done.published, "skipped": done.skipped,
            "yanked": done.yanked, "taken_down": done.taken_down, "refused": done.refused,
        }))?;
    } else {
        output::text(&output::harmless(&text(args, &done)))?;
    }
    Ok(ExitCode::from(u8::from(!done.refused.is_empty())))
}

/// Who imports a folder thinks that there is something in it.
fn nothing(args: &Args, done: &Done) -> CommandError {
    let told = CommandError::input(format!("{} has no skills", args.folder.display()))
        .named("no_skills")
        .hint("name a mirror, or a folder with folders or zips of skills, at any depth");
    if done.texts == 0 {
        return told;
    }
    let texts = plural(done.texts, "text");
    told.hint(format!("it has {texts}: those without frontmatter go to --namespace anon"))
}

async fn owner(database: &Database, email: Option<&str>) -> Result<Option<i64>, CommandError> {
    let Some(email) = email else { return Ok(None) };
    match database.accounts().by_email(email).await? {
        Some((user, _)) => Ok(Some(user.id)),
        None => Err(CommandError::input(format!("--owner: there is no account {email}"))
            .named("account_missing")
            .hint(format!("make one: savoir admin create {email} --role user"))),
    }
}

fn text(args: &Args, done: &Done) -> String {
    let mut text = String::new();
    for Refusal { path, line, reason, .. } in &done.refused {
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "refused {path}{line}: {reason}");
    }
    let count = |number: u64| plural(number as usize, "version");
    let did = if args.dry_run { "would publish" } else { "published" };
    let _ = write!(text, "{did} {}, {} there already", count(done.published), done.skipped);
    if done.yanked > 0 {
        let _ = write!(text, ", yanked {}", done.yanked);
    }
    if done.taken_down > 0 {
        let _ = write!(text, ", {} taken down", done.taken_down);
    }
    let _ = writeln!(text, ", {} refused", done.refused.len());
    text
}
