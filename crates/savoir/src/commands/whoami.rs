//! `savoir whoami`: shows the account and permissions of the user at a registry.

use std::process::ExitCode;

use serde_json::json;

use super::show::Page;
use crate::{error::CommandError, output, remote::Remote, runtime};

/// Show your account and permissions at a registry
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir whoami
  savoir whoami --registry https://skills.example.com/registry --json

Exit codes: 1 you are not logged in, or the registry cannot be reached, 2 wrong usage, 3 other users
can read credentials.toml.")]
pub(crate) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    whoami(args)
}

fn whoami(args: &Args) -> Result<ExitCode, CommandError> {
    let client = args.remote.client()?;
    let address = client.address();
    if !client.has_token() {
        return Err(CommandError::findings(format!("you are not logged in to {address}"))
            .with_code("not_logged_in")
            .hint(format!("savoir login --registry {address} --email EMAIL")));
    }
    let who = runtime::block_on(async { Ok(client.whoami().await?) })?;
    if args.json {
        output::json(&json!({
            "registry": address, "email": who.email, "role": who.role, "scopes": who.scopes,
            "namespaces": who.namespaces,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = Page::default();
    page.field("registry", &address);
    page.field("email", who.email.as_deref().unwrap_or_default());
    page.field("role", who.role.as_deref().unwrap_or_default());
    page.list("scopes", who.scopes.into_iter());
    page.list("namespaces", who.namespaces.into_iter());
    output::text(&output::sanitize(&page.text))?;
    Ok(ExitCode::SUCCESS)
}
