//! `savoir approve --revoke`: revokes an approval.

use std::{fmt::Write as _, process::ExitCode};

use savoir_engine::{
    Home,
    approval::{Approvals, printable},
};

use crate::{error::CommandError, output};

/// Removes the approval of a skill, or all of them.
pub(crate) fn run(skill: Option<&str>) -> Result<ExitCode, CommandError> {
    let approvals = Approvals::new(&Home::from_environment()?);
    let revoked = match skill {
        Some(skill) => approvals.revoke(skill)?,
        None => approvals.revoke_all()?,
    };
    if let (Some(skill), true) = (skill, revoked.is_empty()) {
        return Err(CommandError::input(format!("`{skill}` is not approved"))
            .hint("list approved skills with: savoir approve --list"));
    }
    let mut text = String::new();
    for approval in &revoked {
        let path = approval.path.to_string_lossy();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "revoked {}  {}", printable(&approval.skill), printable(&path));
    }
    if revoked.is_empty() {
        text.push_str("no skill was approved\n");
    }
    output::text(&text)?;
    Ok(ExitCode::SUCCESS)
}
