//! `savoir approvals`.

use std::{fmt::Write as _, process::ExitCode};

use savoir_engine::{
    Home,
    approval::{Approval, Approvals, shown},
};

use crate::{error::CommandError, output};

/// List the skills that may run without a question
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir approvals
  savoir approvals --json")]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let approvals = Approvals::new(&Home::from_environment()?).list()?;
    if args.json {
        output::json(&approvals)?;
    } else if approvals.is_empty() {
        output::text("nothing is approved; `savoir approve PATH` does it\n")?;
    } else {
        output::text(&approvals.iter().map(entry).collect::<String>())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One approval on two or three lines.
fn entry(kept: &Approval) -> String {
    let day = kept.approved_at.get(..10).unwrap_or(&kept.approved_at);
    let mut text = format!(
        "{}  {}\n  approved on {} by {}, fingerprint {}\n",
        shown(&kept.skill),
        shown(&kept.path.to_string_lossy()),
        shown(day),
        shown(&kept.by),
        shown(kept.fingerprint.short()),
    );
    let added: Vec<String> = [
        ("--allow-read", &kept.extra.read),
        ("--allow-write", &kept.extra.write),
        ("--allow-host", &kept.extra.hosts),
        ("--allow-private-host", &kept.extra.private_hosts),
        ("--allow-program", &kept.extra.programs),
        ("--allow-env", &kept.extra.env),
    ]
    .into_iter()
    .flat_map(|(option, list)| list.iter().map(move |entry| format!("{option} {}", shown(entry))))
    .collect();
    if !added.is_empty() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  with {}", added.join(" "));
    }
    text
}
