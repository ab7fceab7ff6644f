//! `savoir eval diff`: compares two evaluations.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use savoir_eval::{
    compare,
    report::{points, share},
    results::Results,
    store,
};

use crate::{error::CommandError, output};

/// Compare two evaluations
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir eval diff before/ after/
  savoir eval diff before/results.json after/results.json --json")]
pub(super) struct Args {
    /// Folder with the results before a change
    before: PathBuf,
    /// Folder with the results after it
    after: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn read(path: &Path) -> Result<Results, CommandError> {
    store::read_results(path).map_err(|error| {
        CommandError::input(format!("the results cannot be read: {error}"))
            .with_code("results-unreadable")
            .hint("name a folder that `savoir eval SKILL --output DIR` wrote")
    })
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let diff = compare::diff(&read(&args.before)?, &read(&args.after)?);
    if args.json {
        output::json(&diff)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    // Writing to a string cannot fail.
    for one in &diff.differs {
        let _ = writeln!(text, "differs        {one}");
    }
    if let Some((before, after)) = &diff.description {
        let _ = writeln!(text, "description    - {}", output::cell(before));
        let _ = writeln!(text, "               + {}", output::cell(after));
    }
    let _ = writeln!(text, "uplift         {} -> {}", points(diff.uplift.0), points(diff.uplift.1));
    let percent = |rate: Option<f64>| {
        rate.map_or_else(|| "not measured".to_owned(), |rate| format!("{:.0} %", 100.0 * rate))
    };
    for one in &diff.cases {
        let _ =
            writeln!(text, "case {}: {} -> {}", one.case, percent(one.before), percent(one.after));
    }
    for one in &diff.triggers {
        let _ = writeln!(
            text,
            "{} skills: precision {} -> {}, recall {} -> {}",
            one.catalogue,
            share(one.precision.0),
            share(one.precision.1),
            share(one.recall.0),
            share(one.recall.1)
        );
    }
    output::text(&output::sanitize(&text))?;
    for hint in &diff.hints {
        output::note(&format!("hint: {hint}"));
    }
    Ok(ExitCode::SUCCESS)
}
