//! `savoir registry tokens`: manages tokens for programs, for example CI builds that publish.

use std::{borrow::Cow, process::ExitCode};

use savoir_engine::approval::shell_word;
use savoir_package::registry::{Client, Name, wire::TokenInfo};
use serde_json::{Value, json};

use super::common::Common;
use crate::{
    error::CommandError,
    output, runtime,
    session::{self, Account, TokenArgs},
};

/// Manage tokens for programs, for example CI builds that publish
#[derive(Debug, clap::Args)]
#[command(after_help = "\
These commands need your password; a token cannot create or revoke tokens.

Examples:
  savoir registry tokens list --email ada@example.com
  savoir registry tokens create \"build\" --namespace acme --days 30 --email ada@example.com
  savoir registry tokens revoke 6f1c… --email ada@example.com < password.txt

Exit codes: 1 the registry refuses or cannot be reached, 2 wrong usage, 3 wrong password.")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List your tokens without their secrets
    #[command(after_help = "\
Example:
  savoir registry tokens list --email ada@example.com")]
    List {
        #[command(flatten)]
        account: Account,
        #[command(flatten)]
        common: Common,
    },
    /// Create a token and print it once
    #[command(after_help = "\
Examples:
  savoir registry tokens create \"build\" --namespace acme --days 30 --email ada@example.com
  savoir registry tokens create \"installs\" --read-only --email ada@example.com < password.txt")]
    Create {
        /// Name of the token
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        rights: TokenArgs,
        #[command(flatten)]
        account: Account,
        #[command(flatten)]
        common: Common,
    },
    /// Revoke a token
    #[command(after_help = "\
Example:
  savoir registry tokens revoke 6f1c… --email ada@example.com")]
    Revoke {
        /// ID of the token, as shown by `list`
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        account: Account,
        #[command(flatten)]
        common: Common,
    },
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::List { account, common } => {
            with_password_session(&account.email, None, common, async |person| {
                let tokens = person.tokens().await?;
                let rows: Vec<[Cow<'_, str>; 5]> = tokens.iter().map(row).collect();
                let text = match rows.as_slice() {
                    [] => "you have no tokens\n".to_owned(),
                    rows => output::table(["ID", "NAME", "EXPIRES", "LAST USED", "SCOPES"], rows),
                };
                Ok((json!({ "tokens": tokens }), text))
            })
        }
        Command::Create { name, rights, account, common } => {
            with_password_session(&account.email, None, common, async |person| {
                let (info, token) = person.create_token(&rights.wanted(name.clone())).await?;
                let mut value = serde_json::to_value(&info).unwrap_or_default();
                value["token"] = json!(token.secret());
                if !common.json {
                    let (email, address) = (account.email.as_str(), person.address());
                    let login_options =
                        session::account_options(Some(email), &address, &common.remote);
                    let end = info.expires_at.as_deref().unwrap_or("it is revoked");
                    output::note(&format!(
                        "keep the token secret: it is shown only once and is valid until {end}; to \
                         revoke it: savoir registry tokens revoke {} {login_options}",
                        shell_word(&info.id)
                    ));
                }
                Ok((value, format!("{}\n", token.secret())))
            })
        }
        Command::Revoke { id, account, common } => {
            with_password_session(&account.email, None, common, async |person| {
                person.delete_token(id).await?;
                Ok((json!({ "id": id, "revoked": true }), format!("revoked {id}\n")))
            })
        }
    }
}

/// Runs `work` in a session with a password, at the registry of a skill or at the default registry.
pub(super) fn with_password_session(
    email: &str,
    name: Option<&Name>,
    common: &Common,
    work: impl AsyncFnOnce(&Client) -> Result<(Value, String), CommandError>,
) -> Result<ExitCode, CommandError> {
    common.print_result(|| {
        let remote = &common.remote;
        let client = name.map_or_else(|| remote.trusted(), |name| remote.trusted_of(name))?;
        if !common.json {
            output::note(&format!("the password is sent to {}", client.address()));
        }
        let password = session::secret("password")?;
        runtime::block_on(session::with_password_session(&client, email, &password, work))
    })
}

fn row(token: &TokenInfo) -> [Cow<'_, str>; 5] {
    let cell = |text: &Option<String>, none: &'static str| {
        output::cell(text.as_deref().unwrap_or(none)).into_owned().into()
    };
    [
        output::cell(&token.id),
        cell(&token.name, ""),
        cell(&token.expires_at, "never"),
        cell(&token.last_used_at, "never"),
        output::cell(&token.scopes.join(", ")).into_owned().into(),
    ]
}
