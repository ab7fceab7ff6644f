//! `savoir rules`.

use std::{fmt::Write as _, process::ExitCode};

use savoir_skill::{
    Safety,
    check::{self, Rule},
};
use serde_json::json;

use crate::{error::CommandError, output};

/// List the rules of `savoir check`, or explain one
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  savoir rules\n  savoir rules unquoted-colon")]
pub(crate) struct Args {
    /// The rule to explain
    code: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print the documentation page of all rules
    #[arg(long, hide = true, conflicts_with_all = ["json", "code"])]
    markdown: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    if args.markdown {
        output::text(&markdown())?;
        return Ok(ExitCode::SUCCESS);
    }
    // `savoir scan` has its own rules.
    if let Some(page) = args.code.as_deref().filter(|_| !args.json).and_then(super::scan::page) {
        output::text(&page)?;
        return Ok(ExitCode::SUCCESS);
    }
    let rules = match &args.code {
        Some(code) => vec![check::rule(code).ok_or_else(|| unknown(code))?],
        None => check::all_rules().to_vec(),
    };
    if args.json {
        let rules: Vec<_> = rules.iter().map(|rule| as_json(rule)).collect();
        if args.code.is_some() {
            output::json(&rules.first())?;
        } else {
            output::json(&rules)?;
        }
    } else if args.code.is_some() {
        output::text(&rules.iter().map(|rule| page(rule)).collect::<String>())?;
    } else {
        output::text(&list(&rules))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn unknown(code: &str) -> CommandError {
    let error = CommandError::input(format!("there is no rule `{code}`"));
    match check::nearest_rule(code) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint("`savoir rules` lists them all"),
    }
}

fn fix(rule: &Rule) -> &'static str {
    match rule.fix {
        Some(Safety::Safe) => "safe",
        Some(Safety::Unsafe) => "unsafe",
        None => "none",
    }
}

fn as_json(rule: &Rule) -> serde_json::Value {
    json!({
        "code": rule.code,
        "severity": rule.severity,
        "fix": rule.fix,
        "summary": rule.summary(),
        "docs": rule.docs(),
    })
}

fn list(rules: &[&Rule]) -> String {
    let width = rules.iter().map(|rule| rule.code.len()).max().unwrap_or(0);
    let mut text = String::new();
    for rule in rules {
        let (code, severity) = (rule.code, rule.severity.to_string());
        let _ = writeln!(text, "{code:width$}  {severity:7}  {}", rule.summary());
    }
    text
}

fn page(rule: &Rule) -> String {
    format!(
        "# {}\n\nSeverity: {}. Fix: {}.\n\n{}\n",
        rule.code,
        rule.severity,
        fix(rule),
        rule.docs()
    )
}

/// The documentation page of all rules, `docs/reference/rules.md`.
pub(crate) fn markdown() -> String {
    let rules = check::all_rules();
    let mut text = String::from(
        "# Rules\n\nGenerated from the rules' own documentation by `savoir rules --markdown`; do not edit.\n\n\
         | Code | Severity | Fix | What it finds |\n| --- | --- | --- | --- |\n",
    );
    for rule in rules {
        let code = rule.code;
        let summary = rule.summary().replace('|', "\\|");
        let _ = writeln!(
            text,
            "| [`{code}`](#{code}) | {} | {} | {summary} |",
            rule.severity,
            fix(rule)
        );
    }
    for rule in rules {
        let docs = rule.docs().replace("\n## ", "\n### ");
        let _ = write!(
            text,
            "\n## {}\n\nSeverity: {}. Fix: {}.\n\n{docs}\n",
            rule.code,
            rule.severity,
            fix(rule)
        );
    }
    text
}
