//! `savoir import`: adds a SKILL.md, a zip or a folder to the skills of `savoir serve`.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use savoir_package::{Tree, limits::MAX_ARCHIVE_BYTES};
use savoir_server::personal::{
    ImportSource, Item, Package, ResourceSelection, SkillWriter, from_bytes, from_manifest,
    from_tree,
};
use savoir_skill::folder::is_skill_file;
use savoir_store::Database;

use crate::{error::CommandError, output, runtime, storage_args::StorageArgs};

/// Add a SKILL.md, a zip or a folder to the skills of `savoir serve`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
An existing skill of the same name and owner is replaced with all its files. Without --owner the
skill belongs to all users. Other users can have a skill of the same name. From a zip, tools.py and
files in references/, scripts/ and assets/ are stored; from a folder, all files. Binary files and
files of more than 256 KiB are skipped. A skill in which the scan finds something is disabled until
a user has reviewed it.

Examples:
  savoir import weekly-report/SKILL.md --owner ada@example.com
  savoir import weekly-report.zip
  savoir import ./weekly-report --json

The server may be running. To install skills for the agents on this machine: savoir install")]
pub(crate) struct Args {
    /// SKILL.md, zip file or folder
    path: PathBuf,
    /// Email address of the owner's account
    #[arg(long, value_name = "EMAIL")]
    owner: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    storage: StorageArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let package = read_package(&args.path)?;
    let location = args.storage.location()?;
    runtime::block_on(async {
        let (database, storage) = location.open().await?;
        let skill_writer = SkillWriter::new(storage.skills(), database.clone());
        let result = import_and_print(&skill_writer, package, args).await;
        database.close().await;
        result
    })
}

fn read_package(path: &Path) -> Result<Package, CommandError> {
    let shown = path.display();
    let import_error = |why: &dyn std::fmt::Display| {
        CommandError::input(format!("{shown} cannot be imported: {why}"))
    };
    let name = path.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_owned()));
    let name = name.unwrap_or_default().to_string_lossy().into_owned();
    if path.is_dir() {
        let tree = Tree::read(path).map_err(|error| import_error(&error))?;
        return from_tree(Some(&name), &tree, ResourceSelection::All)
            .map_err(|error| import_error(&error));
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path);
    let read = file.and_then(|file| file.take(MAX_ARCHIVE_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| CommandError::input(format!("{shown} cannot be read: {error}")))?;
    let folder = path.canonicalize().ok();
    let folder = folder.as_deref().and_then(Path::parent).and_then(Path::file_name);
    let package = match folder {
        Some(folder) if is_skill_file(&name) => from_manifest(&folder.to_string_lossy(), &bytes),
        _ => from_bytes(Some(&name), &bytes),
    };
    package.map_err(|error| import_error(&error))
}

async fn import_and_print(
    skill_writer: &SkillWriter,
    package: Package,
    args: &Args,
) -> Result<ExitCode, CommandError> {
    let owner_id = owner_id(skill_writer.database(), args.owner.as_deref()).await?;
    let (requested_name, notes) = (package.name.clone(), package.notes.clone());
    let (imported, report) = skill_writer
        .import(package, owner_id, ImportSource::Person, None)
        .await
        .map_err(CommandError::input)?;
    let name = imported.file.name();
    let paths = skill_writer.paths(&imported.file.key).await?;
    if args.json {
        let item = Item::new(&imported.file, &imported.facts, paths)
            .with_notes(notes)
            .with_verdict(Some(report.verdict));
        let item = serde_json::to_value(item).map_err(CommandError::input)?;
        output::json(&item)?;
    } else {
        let what = if imported.is_new { "was added" } else { "was replaced" };
        let files =
            if paths.is_empty() { String::new() } else { format!(", with {} files", paths.len()) };
        let disabled = match (imported.facts.enabled, imported.is_new) {
            (true, _) => "",
            (false, true) => "; it is disabled",
            (false, false) => "; it is still disabled",
        };
        let renamed = if name == requested_name {
            String::new()
        } else {
            format!("; the name {requested_name} belongs to another skill")
        };
        for note in &notes {
            output::note(note);
        }
        if let Some(finding) = report.reason() {
            let place = format!("{}:{}", finding.path, finding.line);
            output::note(&format!("{place}: {} ({})", finding.message, finding.rule.id));
            output::note("a user can review and enable it on its page in the web app");
        }
        output::text(&output::sanitize(&format!("{name} {what}{files}{disabled}{renamed}\n")))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the id of the account with this email address, as skills store it.
pub(super) async fn owner_id(
    database: &Database,
    email: Option<&str>,
) -> Result<Option<String>, CommandError> {
    let Some(email) = email else { return Ok(None) };
    match database.accounts().by_email(&email.trim().to_ascii_lowercase()).await? {
        Some((user, _)) => Ok(Some(user.id.to_string())),
        None => Err(CommandError::input(format!("account {email} does not exist"))
            .hint("list all accounts with: savoir admin list")),
    }
}
