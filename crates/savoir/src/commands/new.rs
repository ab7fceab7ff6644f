//! `savoir new`: creates a new skill.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use savoir_skill::{Dialect, name::NameGrammar};

use crate::{error::CommandError, output, write};

/// Create a new skill
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir new weather-report
  savoir new git-helper --dialect gibberish
  savoir new invoice --dialect gaia --description \"Reads invoices\"")]
pub(crate) struct Args {
    /// Name of the skill: lower-case letters, digits and single hyphens
    name: String,
    /// Dialect of the skill
    #[arg(long, value_name = "DIALECT", value_parser = super::dialects(), default_value = "agentskills")]
    dialect: Dialect,
    /// What the skill does and when to use it
    #[arg(long)]
    description: Option<String>,
    /// Folder in which to create the skill's folder
    #[arg(long, value_name = "DIR", default_value = ".")]
    path: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    NameGrammar::Published.check(&args.name).map_err(|problem| {
        let error = CommandError::input(format!(
            "`{}` is not a valid skill name: {problem}",
            args.name.escape_debug()
        ));
        match savoir_skill::name::slugify(&args.name) {
            Some(slug) if NameGrammar::Published.check(&slug).is_ok() => {
                error.hint(format!("try `{slug}`"))
            }
            _ => error
                .hint("use lower-case letters, digits and single hyphens, and start with a letter"),
        }
    })?;
    let description = args.description.clone().unwrap_or_else(|| {
        format!("Describe what {} does. Use when the user asks for it.", args.name)
    });
    let folder = args.path.join(&args.name);
    let files = args.dialect.scaffold(&args.name, &description);
    write::new_folder(&folder, |staging: &Path| {
        for file in &files {
            write::file_in(staging, &file.path, file.text.as_bytes())?;
        }
        Ok(())
    })?;
    let mut text = String::new();
    for file in &files {
        let _ = writeln!(text, "created {}", folder.join(&file.path).display());
    }
    let _ = writeln!(text, "check it with: savoir check {}", folder.display());
    output::text(&output::sanitize(&text))?;
    Ok(ExitCode::SUCCESS)
}
