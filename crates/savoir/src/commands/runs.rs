//! `savoir runs`: shows past runs, their permissions and their results.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    process::ExitCode,
};

use savoir_engine::{
    Home,
    approval::printable,
    record::{RunRecord, RunRecords},
};
use savoir_lint::visible;
use serde_json::{Value, json};

use crate::{error::CommandError, output};

/// Show past runs, their permissions and their results
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  savoir runs
  savoir runs --limit 5 --json
  savoir runs show 20261115-0601"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Number of runs to list, newest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show all details of one run
    Show {
        /// ID of the run, or the beginning of it
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let records = RunRecords::new(&Home::from_environment()?);
    match &args.command {
        Some(Command::Show { id, json }) => {
            let record = records.find(id)?;
            if *json {
                output::json(&record)?;
            } else {
                output::text(&page(&serde_json::to_value(&record)?))?;
            }
        }
        None => {
            let listing = records.list(args.limit)?;
            for problem in &listing.problems {
                // Still list the runs that can be read.
                let _ =
                    writeln!(io::stderr(), "warning: {}", output::sanitize(&problem.to_string()));
            }
            if args.json {
                output::json(&json!({ "runs": listing.records }))?;
            } else if listing.records.is_empty() {
                output::text("nothing has been run yet\n")?;
            } else {
                output::text(&listing.records.iter().map(row).collect::<String>())?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// `20261115-060102-3f9a2c  ok                120 ms  git-helper git_log`
fn row(record: &RunRecord) -> String {
    let outcome = match &record.error {
        _ if record.success => "ok".to_owned(),
        Some(error) => printable(&error.code),
        None => record.exit_code.map_or("failed".to_owned(), |code| format!("exit {code}")),
    };
    let tool = record.tool.as_deref().map(printable).unwrap_or_default();
    let text = format!(
        "{}  {outcome:16}  {:>7} ms  {} {tool}",
        printable(&record.id),
        record.duration_ms,
        printable(&record.skill),
    );
    format!("{}\n", text.trim_end())
}

/// Every field that is not empty, on one line each; lists and maps continue on the next lines.
fn page(record: &Value) -> String {
    let mut text = String::new();
    for (field, value) in record.as_object().into_iter().flatten() {
        lines(&mut text, field, value);
    }
    text
}

fn lines(text: &mut String, label: &str, value: &Value) {
    let mut line = |label: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{label:13} {}", visible(value));
    };
    match value {
        Value::Null => {}
        Value::String(value) if value.is_empty() => {}
        Value::String(value) => line(label, value),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let item = item.as_str().map_or_else(|| item.to_string(), ToOwned::to_owned);
                line(if index == 0 { label } else { "" }, &item);
            }
        }
        Value::Object(map) => {
            let is_empty = |value: &Value| match value {
                Value::Null => true,
                Value::String(text) => text.is_empty(),
                Value::Array(items) => items.is_empty(),
                _ => false,
            };
            let filled = map.iter().filter(|(_, value)| !is_empty(value));
            for (index, (key, value)) in filled.enumerate() {
                let value = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
                line(if index == 0 { label } else { "" }, &format!("{key}: {value}"));
            }
        }
        Value::Bool(_) | Value::Number(_) => line(label, &value.to_string()),
    }
}
