//! `savoir registry auditors`: manages the keys of auditors, who countersign versions.

use std::process::ExitCode;

use savoir_package::registry::wire::{NewKey, RevokedKey};
use serde_json::json;

use super::{super::keys::public_key, common::Common, keys::table, review::Admin};
use crate::error::CommandError;

/// Manage the keys of auditors, who countersign versions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A version that its publisher and an auditor signed is `verified`. Auditors sign with:
savoir registry sign NAME@VERSION. Only administrators can add and revoke keys.

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
    /// List keys, including revoked ones
    #[command(after_help = "\
Example:
  savoir registry auditors list --json")]
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Add the key of an auditor
    #[command(after_help = "\
Example:
  savoir registry auditors add eve.pub --account eve@example.com --email root@example.com")]
    Add {
        /// Public key, or a file with one
        #[arg(value_name = "FILE|TEXT")]
        key: String,
        /// Email of the auditor's account; only this account can upload signatures of the key
        #[arg(long, value_name = "EMAIL")]
        account: Option<String>,
        /// Label of the key
        #[arg(long, value_name = "TEXT")]
        label: Option<String>,
        #[command(flatten)]
        admin: Admin,
    },
    /// Revoke a key; versions that it signed lose that signature
    #[command(after_help = "\
Example:
  savoir registry auditors revoke 21fe31dfa154a261626bf854046fd227 --email root@example.com")]
    Revoke {
        /// ID of the key, as shown by `list`
        #[arg(value_name = "KEY_ID")]
        key_id: String,
        /// Reason, shown with the key
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
            Ok((json!({ "keys": keys }), table(&keys, "no auditor keys\n")))
        }),
        Command::Add { key, account, label, admin } => admin.at(None, async |client| {
            let (key, public_key) = public_key(key)?;
            let new =
                NewKey { public_key, label: label.clone(), email: account.clone(), proof: None };
            client.add_auditor_key(&new).await?;
            let key_id = key.key_id();
            let value = json!({ "key_id": key_id, "label": label, "account": account });
            Ok((value, format!("added auditor key {key_id}\n")))
        }),
        Command::Revoke { key_id, reason, admin } => admin.at(None, async |client| {
            let key = RevokedKey { key_id: key_id.clone(), reason: reason.clone() };
            client.revoke_auditor_key(&key).await?;
            let value = json!({ "key_id": key_id, "revoked": true });
            Ok((value, format!("revoked auditor key {key_id}\n")))
        }),
    }
}
