//! `savoir registry auditors`.

use std::process::ExitCode;

use savoir_package::registry::wire::{NewKey, RevokedKey};
use serde_json::json;

use super::{super::keys::public_key, common::Common, keys::table, review::Admin};
use crate::error::CommandError;

/// Say whose keys countersign in a registry
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A version that its publisher and an auditor signed is `verified`. An auditor signs with: savoir
registry sign NAME@VERSION. Only administrators add and revoke keys.

Examples:
  savoir registry auditors list
  savoir registry auditors add eve.pub --account eve@example.com --email root@example.com
  savoir registry auditors revoke 21fe31dfa154a261626bf854046fd227 --email root@example.com

Exit codes: 1 the registry refuses or cannot be reached, 2 wrong usage, 3 wrong password.")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the keys, those too that are revoked
    #[command(after_help = "\
Example:
  savoir registry auditors list --json")]
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Let a key countersign
    #[command(after_help = "\
Example:
  savoir registry auditors add eve.pub --account eve@example.com --email root@example.com")]
    Add {
        /// A public key, or a file with one
        #[arg(value_name = "FILE|TEXT")]
        key: String,
        /// The address of the auditor's account, who alone may send what it signed
        #[arg(long, value_name = "EMAIL")]
        account: Option<String>,
        /// What you call it
        #[arg(long, value_name = "TEXT")]
        label: Option<String>,
        #[command(flatten)]
        admin: Admin,
    },
    /// A key countersigns no more, and what it signed loses that signature
    #[command(after_help = "\
Example:
  savoir registry auditors revoke 21fe31dfa154a261626bf854046fd227 --email root@example.com")]
    Revoke {
        /// Which key, as `list` shows it
        #[arg(value_name = "KEY_ID")]
        key_id: String,
        /// Why, for whoever meets the key later
        #[arg(long, value_name = "WHY")]
        reason: Option<String>,
        #[command(flatten)]
        admin: Admin,
    },
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::List { common } => common.with_registry(async |client| {
            let keys = client.auditor_keys().await?;
            Ok((json!({ "keys": keys }), table(&keys, "nobody countersigns\n")))
        }),
        Command::Add { key, account, label, admin } => admin.at(None, async |client| {
            let (key, public_key) = public_key(key)?;
            let new =
                NewKey { public_key, label: label.clone(), email: account.clone(), proof: None };
            client.add_auditor_key(&new).await?;
            let key_id = key.key_id();
            let value = json!({ "key_id": key_id, "label": label, "account": account });
            Ok((value, format!("{key_id} countersigns now\n")))
        }),
        Command::Revoke { key_id, reason, admin } => admin.at(None, async |client| {
            let key = RevokedKey { key_id: key_id.clone(), reason: reason.clone() };
            client.revoke_auditor_key(&key).await?;
            let value = json!({ "key_id": key_id, "revoked": true });
            Ok((value, format!("{key_id} countersigns no more\n")))
        }),
    }
}
