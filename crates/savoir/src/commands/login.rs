//! `savoir login`: logs in to a registry to publish skills and to read private ones.

use std::process::ExitCode;

use savoir_package::registry::{Client, Token, wire::WhoAmI};
use serde_json::json;

use crate::{
    credentials::{self, StoredToken},
    error::CommandError,
    output,
    remote::Remote,
    runtime,
    session::{self, TokenArgs},
};

/// Log in to a registry to publish skills and to read private ones
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir login --registry https://skills.example.com/registry --email ada@example.com
  savoir login --email ada@example.com < password.txt
  savoir login --registry house --email ada@example.com --namespace acme --days 7
  savoir login --email root@example.com --scope admin     for operators of the registry
  savoir login --token - < token.txt     an existing token

This creates a token for this machine and stores it in credentials.toml in your settings folder,
which only you can read. The token is sent only to this registry. The password is not stored.
Without --registry, the registry is SAVOIR_REGISTRY or the first one in your own settings, never
one that only a project names.

In scripts, set SAVOIR_TOKEN to a token and SAVOIR_REGISTRY to its registry instead.

Exit codes: 1 the registry cannot be reached or refuses, 2 wrong usage, 3 wrong password, or others
can read credentials.toml.")]
pub(crate) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Email address of your account; the password is prompted for, or the first line of stdin
    #[arg(long, value_name = "EMAIL", required_unless_present = "token")]
    email: Option<String>,
    /// Use an existing token: `-` reads it from the first line of stdin
    #[arg(long, value_name = "-", value_parser = ["-"],
          conflicts_with_all = ["email", "owner", "scope", "read_only", "namespace", "days"])]
    token: Option<String>,
    #[command(flatten)]
    rights: TokenArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let client = args.remote.trusted()?;
    let address = client.address();
    let (stored, who) = if let Some(email) = &args.email {
        if !args.json {
            output::note(&format!("logging in to {address}"));
        }
        let password = session::secret("password")?;
        runtime::block_on(create_token(&client, email, &password, args))?
    } else {
        let token = session::token()?;
        let who = runtime::block_on(check_token(&client, token.clone()))?;
        (StoredToken::new(&token).of(who.email.clone()), who)
    };
    let file = credentials::save(&address, &stored)?;
    if args.json {
        output::json(&json!({
            "registry": address, "email": who.email, "scopes": who.scopes,
            "namespaces": who.namespaces, "expires_at": stored.expires_at, "file": file,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let account = who.email.as_deref().unwrap_or("an unknown account");
    let end = stored.expires_at.as_deref().map(|end| format!(" until {end}")).unwrap_or_default();
    output::text(&output::sanitize(&format!(
        "logged in to {address} as {account}{end}\nthe token is stored in {}\n",
        file.display()
    )))?;
    Ok(ExitCode::SUCCESS)
}

/// Creates a token for this machine and deletes its previous one.
async fn create_token(
    client: &Client,
    email: &str,
    password: &str,
    args: &Args,
) -> Result<(StoredToken, WhoAmI), CommandError> {
    let old = credentials::load_token(&client.address())?.and_then(|stored| stored.id);
    let wanted = args.rights.wanted(format!("savoir on {}", session::host()));
    session::with_password_session(client, email, password, async |person: &Client| {
        let (info, token) = person.create_token(&wanted).await?;
        let who = match check_token(client, token.clone()).await {
            Ok(who) => who,
            Err(error) => {
                // The new token cannot be used, so it is deleted.
                let _ = person.delete_token(&info.id).await;
                return Err(error);
            }
        };
        if let Some(old) = old {
            // Ignored, because the old token may have expired.
            let _ = person.delete_token(&old).await;
        }
        let email = who.email.clone().or_else(|| Some(email.to_owned()));
        let stored = StoredToken::new(&token).of(email).known_as(info.id, info.expires_at);
        Ok((stored, who))
    })
    .await
}

/// Asks the registry for the account of a token.
async fn check_token(client: &Client, token: Token) -> Result<WhoAmI, CommandError> {
    Ok(client.with_token(token)?.whoami().await?)
}
