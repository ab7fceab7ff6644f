//! `savoir schema`: prints the JSON Schema of a dialect's frontmatter.

use std::{path::PathBuf, process::ExitCode};

use savoir_skill::Dialect;

use crate::{error::CommandError, output, write};

/// Print the JSON Schema of a dialect's frontmatter
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  savoir schema skillrt > skillrt.json\n  savoir schema --all schemas"
)]
pub(crate) struct Args {
    /// The dialect
    #[arg(value_parser = super::dialects(), required_unless_present = "all")]
    dialect: Option<Dialect>,
    /// Write the schema of every dialect into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "dialect")]
    all: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    if let Some(dialect) = args.dialect {
        output::json(&dialect.schema())?;
    }
    if let Some(folder) = &args.all {
        for dialect in Dialect::ALL {
            let text = serde_json::to_string_pretty(&dialect.schema())? + "\n";
            write::file_in(folder, &format!("{dialect}.json"), text.as_bytes())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
