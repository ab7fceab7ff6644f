//! `savoir logout`: logs out of a registry: revokes the token and removes it from this machine.

use std::process::ExitCode;

use savoir_engine::approval::shell_word;
use savoir_package::registry::Client;
use serde_json::json;

use crate::{
    credentials::{self, StoredToken, TOKEN},
    error::CommandError,
    output,
    remote::Remote,
    runtime, session,
};

/// Log out of a registry: revoke the token and remove it from this machine
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir logout
  savoir logout --registry https://skills.example.com/registry
  savoir logout --email ada@example.com  revoke the token with your password
  savoir logout --end                    also revoke a token that was given to you

The token is removed from this machine even if the server cannot be reached or does not revoke it;
then the command prints how to revoke it. A token from `savoir login --token -` may be in use
elsewhere, so it is revoked only with --end or --email.

Exit codes: 2 wrong usage, 3 others can read credentials.toml.")]
pub(crate) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Revoke the token as this user; the password is prompted for
    #[arg(long, value_name = "EMAIL")]
    email: Option<String>,
    /// Also revoke a token from `savoir login --token -`, for everyone who uses it
    #[arg(long)]
    end: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Whether the token was revoked on the server.
enum Revocation {
    Done,
    /// It is still valid, for this reason.
    Failed(String),
    /// It is still valid, because it was given to the user and others may use it.
    NotOurs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let client = args.remote.trusted()?;
    let address = client.address();
    let Some(stored) = credentials::load_token(&address)? else {
        still_known(&address)?;
        return print(args, &address, None);
    };
    let password = match &args.email {
        Some(email) => Some((email.as_str(), session::secret("password")?)),
        None => None,
    };
    let ended = if stored.id.is_some() || args.end || password.is_some() {
        runtime::block_on(async { Ok(end(&client, &stored, password).await) })?
    } else {
        Revocation::NotOurs
    };
    credentials::forget(&address)?;
    still_known(&address)?;
    print(args, &address, Some((&stored, &ended)))
}

/// Warns about a token in the environment, which this program cannot unset.
fn still_known(address: &str) -> Result<(), CommandError> {
    if credentials::token(address, None)?.is_some() {
        output::note(&format!("{TOKEN} still logs you in to {address}; unset it"));
    }
    Ok(())
}

async fn end(
    client: &Client,
    stored: &StoredToken,
    password: Option<(&str, String)>,
) -> Revocation {
    match try_to_end(client, stored, password).await {
        Ok(()) => Revocation::Done,
        Err(error) => Revocation::Failed(error.to_string()),
    }
}

async fn try_to_end(
    client: &Client,
    stored: &StoredToken,
    password: Option<(&str, String)>,
) -> Result<(), CommandError> {
    let holder = || -> Result<Client, CommandError> { Ok(client.with_token(stored.token()?)?) };
    let id = match &stored.id {
        Some(id) => id.clone(),
        None => holder()?.whoami().await?.token_id.ok_or_else(|| {
            CommandError::findings("the registry did not return the id of the token")
        })?,
    };
    match password {
        Some((email, password)) => {
            let work = async |person: &Client| Ok(person.delete_token(&id).await?);
            session::with_password_session(client, email, &password, work).await
        }
        None => Ok(holder()?.delete_own_token(&id).await?),
    }
}

fn print(
    args: &Args,
    address: &str,
    gone: Option<(&StoredToken, &Revocation)>,
) -> Result<ExitCode, CommandError> {
    let forgotten = format!("the token for {address} is removed from this machine");
    let (text, ended, why) = match gone {
        None => (format!("you were not logged in to {address}\n"), None, None),
        Some((_, Revocation::Done)) => {
            (format!("logged out of {address}; the token is revoked\n"), Some(true), None)
        }
        Some((_, Revocation::NotOurs)) => {
            (format!("{forgotten}, and still valid: it was not created here\n"), Some(false), None)
        }
        Some((_, Revocation::Failed(why))) => {
            (format!("{forgotten}, but not revoked\n"), Some(false), Some(why))
        }
    };
    let id = gone.and_then(|(stored, _)| stored.id.as_deref());
    if let (Some((stored, Revocation::Failed(_) | Revocation::NotOurs)), false) = (gone, args.json)
    {
        if let Some(why) = why {
            output::note(why);
        }
        let login_options =
            session::account_options(stored.email.as_deref(), address, &args.remote);
        if id.is_none() {
            output::note(&format!("find it with: savoir registry tokens list {login_options}"));
        }
        let id = id.map_or_else(|| "ID".to_owned(), shell_word);
        output::note(&format!(
            "revoke it with: savoir registry tokens revoke {id} {login_options}"
        ));
    }
    if args.json {
        output::json(&json!({
            "registry": address, "forgotten": gone.is_some(), "ended": ended, "why": why, "id": id,
        }))?;
    } else {
        output::text(&output::sanitize(&text))?;
    }
    Ok(ExitCode::SUCCESS)
}
