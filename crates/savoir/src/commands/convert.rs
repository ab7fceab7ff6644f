//! `savoir convert`: converts a skill to the format of another system.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anstream::{AutoStream, ColorChoice};
use savoir_skill::{
    Dialect, Skill,
    convert::{self, Conversion, FieldOutcome, FieldReport},
    skill::Runner,
};

use crate::{error::CommandError, load, lookup, output, write};

/// Convert a skill to the format of another system
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir convert my-skill --to codex -o out/my-skill
  savoir convert my-skill --to gaia --report json
  savoir convert my-skill/SKILL.md --to agentskills > SKILL.md

Fields that the other system does not have are kept in `metadata`. Converting back restores them.")]
pub(crate) struct Args {
    /// Folder or file of a skill, or the name of an installed skill
    path: PathBuf,
    /// Dialect to convert to
    #[arg(long, value_name = "DIALECT", value_parser = super::dialects())]
    to: Dialect,
    /// Write the whole skill folder to DIR instead of printing SKILL.md
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Format of the report on converted fields
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json", "none"])]
    report: String,
    /// Fail if `savoir check` has any finding
    #[arg(long)]
    strict: bool,
    /// Read the file in this dialect instead of detecting it
    #[arg(long, value_name = "DIALECT", value_parser = super::dialects())]
    dialect: Option<Dialect>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let found = lookup::find(&args.path)?;
    let loaded = load::load(&found, args.dialect)?;
    if args.strict {
        load::require_clean(&loaded)?;
    }
    let mut conversion = convert::convert(&loaded.reading, loaded.folder.as_ref(), args.to)
        .map_err(|error| {
            let path = loaded.path.display();
            let failed = CommandError::findings(format!("{path} cannot be converted: {error}"));
            match error.help() {
                Some(help) => failed.hint(help),
                None => failed.hint(format!("list the problems with: savoir check {path}")),
            }
        })?;
    // The report on standard error lists them as well.
    if args.output.is_some() || args.report != "text" {
        for repair in &conversion.repairs {
            output::note(&format!("the input was repaired: {repair}"));
        }
    }
    match &args.output {
        Some(folder) => {
            let left_out = write_folder(folder, &loaded, &conversion)?;
            conversion.report.extend(left_out);
            report(args, &conversion.report, true)?;
        }
        None => {
            // If the text goes to standard output, the report goes to standard error.
            if args.report == "json" {
                report(args, &conversion.report, true)?;
            } else {
                let text = conversion.files.first().map_or("", |file| file.text.as_str());
                output::content(text)?;
                report(args, &conversion.report, false)?;
            }
        }
    }
    if let Some(warning) = missing_functions(args, &loaded.reading.skill) {
        output::print_to_stderr(&output::sanitize(&warning));
    }
    Ok(ExitCode::SUCCESS)
}

/// The warning that a converted skill cannot be used, because GAIA calls functions that the source
/// does not have.
fn missing_functions(args: &Args, skill: &Skill) -> Option<String> {
    let commands = skill.tools.iter().filter(|tool| !matches!(tool.runner, Runner::Python { .. }));
    let names: Vec<String> = commands.map(|tool| format!("`{}`", tool.name)).collect();
    if args.to != Dialect::GAIA || names.is_empty() {
        return None;
    }
    let file = args.output.as_deref().unwrap_or(Path::new("")).join("tools.py");
    Some(format!(
        "warning: GAIA cannot use this skill yet, because it calls Python functions\n\
         hint: write {} in {}\n",
        names.join(", "),
        file.display()
    ))
}

/// Writes the converted files and copies all other files of the skill. Returns files that were not
/// copied.
fn write_folder(
    folder: &Path,
    loaded: &load::Loaded,
    conversion: &Conversion,
) -> Result<Vec<FieldReport>, CommandError> {
    let mut left_out = Vec::new();
    write::new_folder(folder, |staging| {
        if let Some(from) = &loaded.folder {
            left_out = write::copy_tree(from.root(), staging)?;
        }
        if let Some(name) = loaded.path.file_name().filter(|name| *name != "SKILL.md") {
            // A folder with both SKILL.md and `skill.md` would be ambiguous.
            let _ = fs::remove_file(staging.join(name));
        }
        for path in &conversion.removed {
            // A folder that is empty now was added together with the file.
            let path = staging.join(path);
            let _ = fs::remove_file(&path);
            let _ = path.parent().map(fs::remove_dir);
        }
        for file in &conversion.files {
            write::file_in(staging, &file.path, file.text.as_bytes())?;
        }
        Ok(())
    })?;
    Ok(left_out.into_iter().map(|(path, why)| not_copied(path, why)).collect())
}

fn not_copied(path: String, why: &str) -> FieldReport {
    FieldReport {
        field: "file".into(),
        from: Some(path),
        to: None,
        how: FieldOutcome::Dropped,
        why: why.into(),
    }
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

/// One line per field that changed.
fn text(report: &[FieldReport]) -> String {
    let is_unchanged = |field: &&FieldReport| {
        field.how == FieldOutcome::Kept && field.field != "file" // A file that stays is listed.
    };
    let unchanged_count = report.iter().filter(is_unchanged).count();
    let mut text = String::new();
    for field in report.iter().filter(|field| !is_unchanged(field)) {
        let how = match field.how {
            FieldOutcome::Kept => "kept",
            FieldOutcome::Moved => "moved",
            FieldOutcome::Approximated => "approximated",
            FieldOutcome::Dropped => "dropped",
        };
        let place = match (&field.from, &field.to) {
            (Some(from), Some(to)) => format!("{from} -> {to}"),
            (None, Some(to)) => format!("added {to}"),
            (Some(from), None) => from.clone(),
            (None, None) => field.field.clone(),
        };
        let why = if field.why.is_empty() { String::new() } else { format!(": {}", field.why) };
        text.push_str(&output::sanitize(&format!("{how:12}  {place}{why}\n")));
    }
    text + &format!("{} kept\n", output::plural(unchanged_count, "field"))
}
