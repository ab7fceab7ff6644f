//! `savoir approve --list`: lists approved skills.

use std::{fmt::Write as _, process::ExitCode};

use savoir_engine::{
    Home,
    approval::{Approval, Approvals, printable},
};

use crate::{error::CommandError, output};

pub(crate) fn run(json: bool) -> Result<ExitCode, CommandError> {
    let approvals = Approvals::new(&Home::from_environment()?).list()?;
    if json {
        output::json(&serde_json::json!({ "approvals": approvals }))?;
    } else if approvals.is_empty() {
        output::text("no skill is approved; approve one with: savoir approve SKILL\n")?;
    } else {
        output::text(&approvals.iter().map(entry).collect::<String>())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One approval on two or three lines.
fn entry(approval: &Approval) -> String {
    let day = approval.approved_at.get(..10).unwrap_or(&approval.approved_at);
    let mut text = format!(
        "{}  {}\n  approved on {} by {}, fingerprint {}\n",
        printable(&approval.skill),
        printable(&approval.path.to_string_lossy()),
        printable(day),
        printable(&approval.by),
        printable(approval.fingerprint.short()),
    );
    let added: Vec<String> = [
        ("--allow-read", &approval.extra.read),
        ("--allow-write", &approval.extra.write),
        ("--allow-host", &approval.extra.hosts),
        ("--allow-private-host", &approval.extra.private_hosts),
        ("--allow-program", &approval.extra.programs),
        ("--allow-env", &approval.extra.env),
    ]
    .into_iter()
    .flat_map(|(option, list)| {
        list.iter().map(move |entry| format!("{option} {}", printable(entry)))
    })
    .collect();
    if !added.is_empty() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  with {}", added.join(" "));
    }
    text
}
