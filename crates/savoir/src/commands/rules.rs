//! `savoir rules`: lists the rules of `savoir check` and `savoir scan`, or explains one.

use std::{fmt::Write as _, process::ExitCode};

use clap_complete::engine::ArgValueCandidates;
use savoir_lint::words::nearest;
use savoir_skill::{Safety, check};
use serde::Serialize;
use serde_json::json;

use crate::{completion, error::CommandError, output};

/// List the rules of `savoir check` and `savoir scan`, or explain one
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir rules
  savoir rules unquoted-colon
  savoir rules download-and-execute
  savoir rules --json")]
pub(crate) struct Args {
    /// The rule to explain
    #[arg(add = ArgValueCandidates::new(completion::rules))]
    code: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A rule of one of the commands.
#[derive(Serialize)]
pub(crate) struct Rule {
    pub(crate) code: &'static str,
    /// The command that reports it.
    pub(super) command: &'static str,
    pub(super) severity: String,
    pub(super) fix: Option<Safety>,
    pub(crate) summary: String,
    docs: String,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    match (&args.code, args.json) {
        (None, false) => output::text(&list(&all()))?,
        (None, true) => output::json(&json!({ "rules": all() }))?,
        (Some(code), false) => return explain(code),
        (Some(code), true) => output::json(&find(code)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the documentation of a rule.
pub(super) fn explain(code: &str) -> Result<ExitCode, CommandError> {
    output::text(&find(code)?.page())?;
    Ok(ExitCode::SUCCESS)
}

fn find(code: &str) -> Result<Rule, CommandError> {
    let rules = all();
    let near = nearest(code, rules.iter().map(|rule| rule.code));
    let error = CommandError::input(format!("there is no rule `{code}`")).hint(match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`savoir rules` lists all rules".to_owned(),
    });
    rules.into_iter().find(|rule| rule.code == code).ok_or(error)
}

/// Every rule of `savoir check`, then every rule of `savoir scan`.
pub(crate) fn all() -> Vec<Rule> {
    let check = check::all_rules().iter().map(|rule| Rule {
        code: rule.code,
        command: "check",
        severity: rule.severity.to_string(),
        fix: rule.fix,
        summary: rule.summary(),
        docs: rule.docs(),
    });
    let scan = savoir_scan::all_rules().iter().map(|rule| Rule {
        code: rule.id,
        command: "scan",
        severity: rule.severity.to_string(),
        fix: None,
        summary: format!("{}.", rule.title()),
        docs: rule.docs(),
    });
    check.chain(scan).collect()
}

impl Rule {
    /// The documentation as a Markdown page.
    pub(super) fn page(&self) -> String {
        let Self { code, command, severity, docs, .. } = self;
        let fix = match self.fix {
            Some(Safety::Safe) => "\n\nFix: `savoir check --fix`.",
            Some(Safety::Unsafe) => "\n\nFix: `savoir check --fix --unsafe`.",
            None => "",
        };
        format!(
            "# {code}\n\nReported by `savoir {command}`. Severity: {severity}.{fix}\n\n{docs}\n"
        )
    }
}

fn list(rules: &[Rule]) -> String {
    let width = rules.iter().map(|rule| rule.code.len()).max().unwrap_or(0);
    let mut text = String::new();
    for command in ["check", "scan"] {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "savoir {command}");
        for Rule { code, severity, summary, .. } in
            rules.iter().filter(|rule| rule.command == command)
        {
            let _ = writeln!(text, "  {code:width$}  {severity:8}  {summary}");
        }
    }
    text
}
