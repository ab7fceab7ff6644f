//! `savoir eval new`: writes a first file with evaluations.

use std::{io::Write as _, path::PathBuf, process::ExitCode};

use savoir_engine::approval::shell_word;
use savoir_eval::{formats, template};
use serde_json::json;

use crate::{error::CommandError, load, output};

/// Write evals/evals.json from the text of a skill
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The file is a beginning: edit each text that begins with EDIT. An existing file is never replaced.

Examples:
  savoir eval new my-skill")]
pub(super) struct Args {
    /// Folder of a skill
    path: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let loaded = load::load(&args.path, None)?;
    let Some(folder) = &loaded.folder else {
        let message = format!("{} is a file, and evaluations need a folder", args.path.display());
        return Err(CommandError::input(message).hint("name a folder with a SKILL.md"));
    };
    let path = folder.root().join(formats::FILE);
    let failed = |error: &dyn std::fmt::Display| {
        CommandError::input(format!("{} cannot be written: {error}", path.display()))
    };
    let parent = folder.root().join(formats::FOLDER);
    if parent.is_symlink() {
        return Err(failed(&"its folder is a symlink").hint("remove the symlink"));
    }
    std::fs::create_dir_all(&parent).map_err(|error| failed(&error))?;
    // Also fails for a symlink, because its target would be overwritten.
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
    let mut file = file.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            CommandError::input(format!("{} already exists", path.display()))
                .with_code("evals-exist")
                .hint("edit it, or remove it first")
        }
        _ => failed(&error),
    })?;
    let text = template::new_evals(&loaded.reading.skill);
    file.write_all(text.as_bytes()).map_err(|error| failed(&error))?;
    if args.json {
        output::json(&json!({"path": path}))?;
    } else {
        output::text(&output::sanitize(&format!("created {}\n", path.display())))?;
        let skill = shell_word(&args.path.display().to_string());
        output::note(&format!(
            "edit each text that begins with EDIT, then run: savoir eval {skill}"
        ));
    }
    Ok(ExitCode::SUCCESS)
}
