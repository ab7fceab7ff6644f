use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anstream::{AutoStream, ColorChoice};
use savoir_skill::{
    Dialect, Folder,
    convert::{self, Conversion, FieldReport, How},
    folder::is_skill_file,
};

use crate::{error::CommandError, load, output, write};

/// Write a skill for another system
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir convert my-skill --to codex -o out/my-skill
  savoir convert my-skill --to gaia --report json
  savoir convert my-skill/SKILL.md --to agentskills > SKILL.md

What the other system has no field for is kept in `metadata`, so that converting back restores it.")]
pub(crate) struct Args {
    /// A skill's folder or file
    path: PathBuf,
    /// The dialect to write
    #[arg(long, value_name = "DIALECT", value_parser = super::dialect)]
    to: Dialect,
    /// Write the whole skill folder here instead of printing SKILL.md
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// How to report what happened to each field
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json", "none"])]
    report: String,
    /// Read the file in this dialect instead of finding out
    #[arg(long, value_name = "DIALECT", value_parser = super::dialect)]
    dialect: Option<Dialect>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let loaded = load::load(&args.path, args.dialect)?;
    let conversion =
        convert::convert(&loaded.reading, loaded.folder.as_ref(), args.to).map_err(|error| {
            CommandError::findings(format!(
                "{} cannot be converted: {error}",
                loaded.path.display()
            ))
            .hint(format!("see what is wrong with: savoir check {}", loaded.path.display()))
        })?;
    match &args.output {
        Some(folder) => {
            write_folder(folder, &loaded, &conversion)?;
            report(args, &conversion.report, true)?;
        }
        None => {
            // The report goes beside the text when the text goes to standard output.
            if args.report == "json" {
                report(args, &conversion.report, true)?;
            } else {
                let text = conversion.files.first().map_or("", |file| file.text.as_str());
                output::text(text)?;
                report(args, &conversion.report, false)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The converted files, and every other file of the skill as it is.
fn write_folder(
    folder: &Path,
    loaded: &load::Loaded,
    conversion: &Conversion,
) -> Result<(), CommandError> {
    write::new_folder(folder, |staging| {
        let written = |path: &str| conversion.files.iter().any(|file| file.path == path);
        for file in loaded.folder.iter().flat_map(Folder::files) {
            if written(&file.path) || is_skill_file(&file.path) || file.link {
                continue;
            }
            let bytes =
                loaded.folder.as_ref().map_or_else(|| Ok(Vec::new()), |from| from.read(&file.path));
            let bytes = bytes.map_err(|error| {
                CommandError::input(format!("{} cannot be read: {error}", file.path))
            })?;
            write::file_in(staging, &file.path, &bytes)?;
        }
        for file in &conversion.files {
            write::file_in(staging, &file.path, file.text.as_bytes())?;
        }
        Ok(())
    })
}

fn report(args: &Args, report: &[FieldReport], to_stdout: bool) -> Result<(), CommandError> {
    match args.report.as_str() {
        "none" => Ok(()),
        "json" => output::json(&report),
        _ => {
            let text = text(report);
            if to_stdout {
                return output::text(&text);
            }
            let mut err = AutoStream::new(std::io::stderr(), ColorChoice::Auto);
            err.write_all(text.as_bytes())?;
            Ok(())
        }
    }
}

/// One line per field that did not simply stay.
fn text(report: &[FieldReport]) -> String {
    let kept = report.iter().filter(|field| field.how == How::Kept).count();
    let mut text = String::new();
    for field in report.iter().filter(|field| field.how != How::Kept) {
        let how = match field.how {
            How::Kept => "kept",
            How::Moved => "moved",
            How::Approximated => "approximated",
            How::Dropped => "dropped",
        };
        let place = match (&field.from, &field.to) {
            (Some(from), Some(to)) => format!("{from} -> {to}"),
            (None, Some(to)) => format!("added {to}"),
            (Some(from), None) => from.clone(),
            (None, None) => field.field.clone(),
        };
        let why = if field.why.is_empty() { String::new() } else { format!(": {}", field.why) };
        text.push_str(&output::harmless(&format!("{how:12}  {place}{why}\n")));
    }
    let word = if kept == 1 { "field" } else { "fields" };
    text + &format!("{kept} {word} kept as they are\n")
}
