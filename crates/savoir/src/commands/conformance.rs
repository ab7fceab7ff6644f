//! `savoir conformance`: runs a file of conformance vectors against this program.

use std::{fs, io::Write as _, path::PathBuf, process::ExitCode};

use crate::{conformance, error::CommandError, output};

/// Run a file of conformance vectors against this program
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  savoir conformance conformance/vectors.json")]
pub(crate) struct Args {
    /// File of conformance vectors
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let shown = args.file.display();
    let text = fs::read_to_string(&args.file)
        .map_err(|error| CommandError::input(format!("{shown} cannot be read: {error}")))?;
    let vectors = conformance::VectorFile::parse(&text).map_err(|error| {
        CommandError::input(format!("{shown} is not a file of conformance vectors: {error}"))
            .hint("conformance/README.md describes the format")
    })?;
    let outcome = conformance::run(&vectors);
    let failed = !outcome.failed.is_empty();
    if args.json {
        output::json(&outcome)?;
    } else {
        let mut out = output::stdout();
        for failure in &outcome.failed {
            writeln!(
                out,
                "{}\n  expected {}\n  got      {}",
                failure.id, failure.expected, failure.got
            )?;
        }
        let (passed, failed, unsupported) =
            (outcome.passed.len(), outcome.failed.len(), outcome.unsupported.len());
        writeln!(out, "{passed} passed, {failed} failed, {unsupported} unsupported")?;
        output::flush(out)?;
    }
    Ok(ExitCode::from(u8::from(failed)))
}
