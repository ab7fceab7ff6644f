//! `savoir eval list` and `savoir eval show`: the results that are stored on this machine.

use std::{
    borrow::Cow,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use savoir_engine::Home;
use savoir_eval::{report::points, results::Results, store};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{diff, render};
use crate::{error::CommandError, output};

/// Most results that are listed, the newest.
const MAX_LISTED: usize = 100;
/// The folder of results in the data folder.
pub(super) const FOLDER: &str = "evals";
/// The file that names another folder, which `--output` named.
const LINK_FILE: &str = "output";

/// List the results of evaluations on this machine, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Results in a folder of --output are listed as long as the folder exists.

Examples:
  savoir eval list
  savoir eval show 019a7f30-66b4-7c51-b8f4-5f1f2b9b0c11")]
pub(super) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Show the results of an evaluation
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir eval show results/
  savoir eval show 019a7f30-66b4-7c51-b8f4-5f1f2b9b0c11 --json")]
pub(super) struct ShowArgs {
    /// Folder with the results, or an id of `savoir eval list`
    results: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lists the results in a folder that the user chose.
pub(super) fn link(home: &Home, folder: &Path) -> Result<(), CommandError> {
    let Ok(folder) = folder.canonicalize() else { return Ok(()) };
    let entry = home.data_folder(FOLDER)?.join(Uuid::now_v7().to_string());
    let failed = |error: std::io::Error| {
        CommandError::input(format!("{} cannot be written: {error}", entry.display()))
    };
    fs::create_dir_all(&entry).map_err(failed)?;
    fs::write(entry.join(LINK_FILE), folder.to_string_lossy().as_bytes()).map_err(failed)
}

/// The folder of the results with an id. Only the file names another folder: symlinks are not
/// followed.
fn folder_of(entry: &Path) -> Option<PathBuf> {
    if !fs::symlink_metadata(entry).is_ok_and(|entry| entry.is_dir()) {
        return None;
    }
    let file = entry.join(LINK_FILE);
    match fs::symlink_metadata(&file) {
        Ok(found) if found.is_file() => fs::read_to_string(&file).ok().map(PathBuf::from),
        Ok(_) => None,
        Err(_) => Some(entry.to_owned()),
    }
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let found = stored()?;
    if args.json {
        let items: Vec<Value> = found.iter().map(as_json).collect();
        output::json(&json!({ "evaluations": items }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        output::text("no evaluations on this machine\n")?;
        output::note("hint: savoir eval SKILL");
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<[Cow<'_, str>; 5]> = found
        .iter()
        .map(|(id, _, results)| {
            [
                id.into(),
                output::cell(&results.skill.name),
                results.conclusion.verdict.as_str().into(),
                points(results.main().and_then(|main| main.uplift)).into(),
                output::cell(&results.host.model),
            ]
        })
        .collect();
    output::text(&output::table(["ID", "SKILL", "VERDICT", "UPLIFT", "MODEL"], &rows))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn show(args: &ShowArgs) -> Result<ExitCode, CommandError> {
    let is_id = args.results.to_str().is_some_and(|text| Uuid::parse_str(text).is_ok());
    let folder = if is_id && !args.results.exists() {
        let entry = Home::from_environment()?.data().join(FOLDER).join(&args.results);
        folder_of(&entry).unwrap_or(entry)
    } else {
        args.results.clone()
    };
    let results = diff::read(&folder)?;
    if args.json {
        output::json(&results)?;
    } else {
        output::text(&output::sanitize(&render::summary(&results)))?;
        output::note(&format!("report: {}", folder.join(store::HTML_FILE).display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// The results with their ids and folders, newest first. Unreadable ones are skipped.
fn stored() -> Result<Vec<(String, PathBuf, Results)>, CommandError> {
    let Ok(entries) = fs::read_dir(Home::from_environment()?.data().join(FOLDER)) else {
        return Ok(Vec::new());
    };
    // The ids sort by time.
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut ids: Vec<String> = names.filter(|name| Uuid::parse_str(name).is_ok()).collect();
    ids.sort_unstable_by(|one, other| other.cmp(one));
    let root = Home::from_environment()?.data().join(FOLDER);
    let read = |id: String| {
        let folder = folder_of(&root.join(&id))?;
        let results = store::read_results(&folder).ok()?;
        Some((id, folder, results))
    };
    let mut found: Vec<_> = Vec::new();
    for one in ids.into_iter().filter_map(read) {
        // A folder that was used twice has only the last results.
        if !found.iter().any(|(_, folder, _): &(String, PathBuf, Results)| *folder == one.1) {
            found.push(one);
        }
        if found.len() >= MAX_LISTED {
            break;
        }
    }
    Ok(found)
}

fn as_json((id, folder, results): &(String, PathBuf, Results)) -> Value {
    let main = results.main();
    json!({
        "id": id,
        "folder": folder,
        "report": folder.join(store::HTML_FILE),
        "skill": results.skill.name,
        "version": results.skill.version,
        "verdict": results.conclusion.verdict,
        "uplift": main.and_then(|main| main.uplift),
        "trials": results.trials,
        "all_trials": results.conclusion.all_trials,
        "invalid_trials": results.conclusion.invalid_trials,
        "host": results.host,
        "finished": results.finished,
    })
}
