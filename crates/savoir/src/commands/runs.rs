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
  savoir runs show 20261115-0601
  savoir runs 20261115-0601              the same"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Show all details of this run: its ID, or the beginning of it
    #[arg(value_name = "ID", conflicts_with = "limit")]
    id: Option<String>,
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
    let shown = match &args.command {
        Some(Command::Show { id, json }) => Some((id, *json)),
        None => args.id.as_ref().map(|id| (id, args.json)),
    };
    if let Some((id, json)) = shown {
        let record = records.find(id)?;
        if json {
            output::json(&record)?;
        } else {
            output::text(&page(&serde_json::to_value(&record)?))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let listing = records.list(args.limit)?;
    for problem in &listing.problems {
        // The readable runs are still listed.
        let _ = writeln!(io::stderr(), "warning: {}", output::sanitize(&problem.to_string()));
    }
    if args.json {
        output::json(&json!({ "runs": listing.records }))?;
    } else if listing.records.is_empty() {
        output::text("nothing has been run yet\n")?;
    } else {
        output::text(&listing.records.iter().map(row).collect::<String>())?;
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
    for (index, line) in value_lines(value).iter().enumerate() {
        let label = if index == 0 { label } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{label:13} {}", visible(line));
    }
}

/// A value as lines: each item of a list, and each filled member of an object.
fn value_lines(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().map(inline).collect(),
        Value::Object(map) => {
            map.iter().flat_map(|(key, value)| member_lines(key, value)).collect()
        }
        value => Some(inline(value)).filter(|text| !text.is_empty()).into_iter().collect(),
    }
}

fn member_lines(key: &str, value: &Value) -> Vec<String> {
    let inner = value_lines(value);
    match value {
        _ if inner.is_empty() => Vec::new(),
        Value::Array(_) | Value::Object(_) => std::iter::once(format!("{key}:"))
            .chain(inner.iter().map(|line| format!("  {line}")))
            .collect(),
        value => vec![format!("{key}: {}", inline(value))],
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(inline).collect::<Vec<_>>().join(", "),
        Value::Object(map) => {
            let members = map.iter().map(|(key, value)| match value {
                Value::Object(_) => format!("{key} ({})", inline(value)),
                value => format!("{key} {}", inline(value)),
            });
            members.collect::<Vec<_>>().join(", ")
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_lines_instead_of_json() {
        let record = json!({
            "id": "1", "error": null, "success": true,
            "policy": {
                "paths": [{"path": "/tmp", "access": "private"}], "hosts": [],
                "limits": {"wall": {"secs": 600}, "processes": 256},
            },
        });
        let page = page(&record);
        let lines: Vec<&str> = page.lines().collect();
        let expected = [
            "id            1",
            "success       true",
            "policy        paths:",
            "                path /tmp, access private",
            "              limits:",
            "                wall:",
            "                  secs: 600",
            "                processes: 256",
        ];
        assert_eq!(lines, expected);
    }
}
