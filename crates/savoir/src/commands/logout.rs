//! `savoir logout`.

use std::process::ExitCode;

use savoir_engine::approval::shell_word;
use savoir_package::registry::Client;
use serde_json::json;

use crate::{
    credentials::{self, Kept, TOKEN},
    error::CommandError,
    output,
    remote::Remote,
    runtime, session,
    shelf::told,
};

/// Log out of a registry: the token that `savoir login` made ends, and is forgotten here
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir logout
  savoir logout --registry https://skills.example.com/registry
  savoir logout --email ada@example.com  where only a person may end a token
  savoir logout --end                    also if the token was given to you

The token is forgotten here even if the server cannot be reached or does not let it end itself;
you are told then how to end it there. One that was given with `savoir login --token -` may be in
use elsewhere: it is only forgotten here, unless you say --end or who you are.

Exit codes: 2 wrong usage, 3 others can read credentials.toml.")]
pub(crate) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// End it as a person with this address; the password is asked for
    #[arg(long, value_name = "EMAIL")]
    email: Option<String>,
    /// End a token that was given with `savoir login --token -`, too, for everybody who uses it
    #[arg(long)]
    end: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What became of the token at the server.
enum Ended {
    /// It is good for nothing now.
    Yes,
    /// It still is, for this reason.
    No(String),
    /// It still is: others may use it, and nobody wants it to end.
    Given,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    told(args.json, || logout(args))
}

fn logout(args: &Args) -> Result<ExitCode, CommandError> {
    let client = args.remote.trusted()?;
    let address = client.address();
    let Some(kept) = credentials::kept(&address)? else {
        still_known(&address)?;
        return print(args, &address, None);
    };
    let password = match &args.email {
        Some(email) => Some((email.as_str(), session::secret("password")?)),
        None => None,
    };
    let ended = if kept.id.is_some() || args.end || password.is_some() {
        runtime::block_on(async { Ok(end(&client, &kept, password).await) })?
    } else {
        Ended::Given
    };
    credentials::forget(&address)?;
    still_known(&address)?;
    print(args, &address, Some((&kept, &ended)))
}

/// A program cannot change its environment for others.
fn still_known(address: &str) -> Result<(), CommandError> {
    if credentials::token(address, None)?.is_some() {
        output::note(&format!("{TOKEN} still tells {address} who you are; unset it"));
    }
    Ok(())
}

async fn end(client: &Client, kept: &Kept, password: Option<(&str, String)>) -> Ended {
    match try_to_end(client, kept, password).await {
        Ok(()) => Ended::Yes,
        Err(error) => Ended::No(error.to_string()),
    }
}

async fn try_to_end(
    client: &Client,
    kept: &Kept,
    password: Option<(&str, String)>,
) -> Result<(), CommandError> {
    let holder = || -> Result<Client, CommandError> { Ok(client.as_holder_of(kept.token()?)?) };
    let id = match &kept.id {
        Some(id) => id.clone(),
        None => holder()?.whoami().await?.token_id.ok_or_else(|| {
            CommandError::findings("the registry does not tell by which id it knows the token")
        })?,
    };
    match password {
        Some((email, password)) => {
            let work = async |person: &Client| Ok(person.delete_token(&id).await?);
            session::as_person(client, email, &password, work).await
        }
        None => Ok(holder()?.end_own_token(&id).await?),
    }
}

fn print(
    args: &Args,
    address: &str,
    gone: Option<(&Kept, &Ended)>,
) -> Result<ExitCode, CommandError> {
    let forgotten = format!("the token for {address} is forgotten here");
    let (text, ended, why) = match gone {
        None => (format!("you were not logged in to {address}\n"), None, None),
        Some((_, Ended::Yes)) => {
            (format!("logged out of {address}; the token has ended\n"), Some(true), None)
        }
        Some((_, Ended::Given)) => {
            (format!("{forgotten}, and goes on there: it was not made here\n"), Some(false), None)
        }
        Some((_, Ended::No(why))) => {
            (format!("{forgotten}, and has not ended there\n"), Some(false), Some(why))
        }
    };
    let id = gone.and_then(|(kept, _)| kept.id.as_deref());
    if let (Some((kept, Ended::No(_) | Ended::Given)), false) = (gone, args.json) {
        if let Some(why) = why {
            output::note(why);
        }
        let whose = session::as_whom(kept.email.as_deref(), address, &args.remote);
        if id.is_none() {
            output::note(&format!("find it with: savoir registry tokens list {whose}"));
        }
        let id = id.map_or_else(|| "ID".to_owned(), shell_word);
        output::note(&format!("end it as a person: savoir registry tokens revoke {id} {whose}"));
    }
    if args.json {
        output::json(&json!({
            "registry": address, "forgotten": gone.is_some(), "ended": ended, "why": why, "id": id,
        }))?;
    } else {
        output::text(&output::harmless(&text))?;
    }
    Ok(ExitCode::SUCCESS)
}
