//! `savoir revoke`.

use std::{fmt::Write as _, process::ExitCode};

use savoir_engine::{
    Home,
    approval::{Approvals, shown},
};

use crate::{error::CommandError, output};

/// Take an approval back
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir revoke my-skill
  savoir revoke skills/my-skill
  savoir revoke --all")]
pub(crate) struct Args {
    /// A skill's folder or file, or its name
    #[arg(value_name = "PATH|NAME", required_unless_present = "all", conflicts_with = "all")]
    skill: Option<String>,
    /// Take all approvals back
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let approvals = Approvals::new(&Home::from_environment()?);
    let revoked = match &args.skill {
        Some(skill) => approvals.revoke(skill)?,
        None => approvals.revoke_all()?,
    };
    if let (Some(skill), true) = (&args.skill, revoked.is_empty()) {
        return Err(CommandError::input(format!("`{skill}` is not approved"))
            .hint("`savoir approvals` lists what is"));
    }
    let mut text = String::new();
    for kept in &revoked {
        let path = kept.path.to_string_lossy();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "revoked {}  {}", shown(&kept.skill), shown(&path));
    }
    if revoked.is_empty() {
        text.push_str("nothing was approved\n");
    }
    output::text(&text)?;
    Ok(ExitCode::SUCCESS)
}
