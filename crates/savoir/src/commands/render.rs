//! `savoir render`: prints the prompt of a skill with its inputs filled in.

use std::{fs, path::PathBuf, process::ExitCode};

use clap_complete::engine::ArgValueCompleter;
use savoir_engine::approval::Trust;
use savoir_skill::{
    Dialect,
    render::{self, RenderError},
};
use serde_json::{Map, Value};

use crate::{completion, error::CommandError, load, lookup, output, trust};

/// Print the prompt of a skill with its inputs filled in
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir render summary --input text=\"Long text\" --input tone=dry
  savoir render summary --inputs values.json
  savoir render fix-issue --input ARGUMENTS=\"123 urgent\"

Nothing is executed.")]
pub(crate) struct Args {
    /// A skill's folder or file, or the name of an installed skill
    #[arg(add = ArgValueCompleter::new(completion::skills_and_paths))]
    path: PathBuf,
    /// Input of the prompt; may be repeated
    #[arg(long = "input", value_name = "NAME=VALUE")]
    input: Vec<String>,
    /// JSON file with inputs
    #[arg(long, value_name = "FILE")]
    inputs: Option<PathBuf>,
    /// Fail if the skill has any finding
    #[arg(long)]
    strict: bool,
    /// Read the file in this dialect instead of detecting it
    #[arg(long, value_name = "DIALECT", value_parser = super::dialects())]
    dialect: Option<Dialect>,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CommandError> {
    let found = lookup::find(&args.path)?;
    let loaded = load::load(&found, args.dialect)?;
    load::require_usable(&loaded)?;
    if args.strict {
        load::require_clean(&loaded)?;
    }
    let mut values = match &args.inputs {
        Some(file) => from_file(file)?,
        None => Map::new(),
    };
    for pair in args.input {
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            CommandError::input(format!("`{pair}` is not an input"))
                .hint("write --input name=value")
        })?;
        values.insert(name.to_owned(), Value::String(value.to_owned()));
    }
    // The prompt may be used in another folder, so the path is absolute.
    let directory = loaded.folder.as_ref().map(|folder| {
        let root = folder.root();
        root.canonicalize().unwrap_or_else(|_| root.to_owned())
    });
    let directory = directory.as_ref().map(|root| root.to_string_lossy());
    let wrong = |problems: &[RenderError]| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let message = format!("{}: {}", loaded.path.display(), problems.join("; "));
        CommandError::input(message).hint("pass an input with --input NAME=VALUE")
    };
    let prompt = render::render(&loaded.reading.skill, &values, directory.as_deref());
    let prompt = prompt.map_err(|error| {
        match render::problems(&loaded.reading.skill, &values).as_slice() {
            [] => wrong(&[error]),
            all => wrong(all),
        }
    })?;
    let how = if found.fetched.is_some() { Trust::Untrusted } else { Trust::User };
    // A skill that cannot run can still be rendered.
    if let Ok(loaded_skill) = trust::load_skill(&loaded, how, &trust::trust_store_for_run()?) {
        trust::warn_of_text(loaded_skill.trust);
    }
    output::content(&prompt)?;
    Ok(ExitCode::SUCCESS)
}

fn from_file(file: &PathBuf) -> Result<Map<String, Value>, CommandError> {
    let shown = file.display();
    let text = fs::read_to_string(file)
        .map_err(|error| CommandError::input(format!("{shown} cannot be read: {error}")))?;
    match serde_json::from_str(&text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(CommandError::input(format!("{shown} is not a JSON object"))
            .hint("write {\"name\": \"value\"}")),
        Err(error) => Err(CommandError::input(format!("{shown} is not JSON: {error}"))),
    }
}
