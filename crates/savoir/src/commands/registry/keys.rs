//! `savoir registry keys`.

use std::{borrow::Cow, process::ExitCode};

use savoir_package::registry::wire::{KeyInfo, NewKey, RevokedKey};
use serde_json::json;

use super::{
    super::keys::public_key,
    common::{ALONE, Common, change_team, of_team},
};
use crate::{error::CommandError, output};

/// Say which keys sign for a namespace
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A version that one of these keys signed is `community` in the registry. Whether you believe them on
this machine is another matter: savoir keys trust --from-registry NAMESPACE.

Examples:
  savoir registry keys list acme
  savoir registry keys add acme ~/.config/savoir/keys/ada.pub --label \"Ada's desk\"
  savoir registry keys revoke acme 21fe31dfa154a261626bf854046fd227 --reason \"it was stolen\"

Exit codes: 1 the registry refuses or cannot be reached, 2 wrong usage.")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the keys, those too that are revoked
    #[command(after_help = "\
Examples:
  savoir registry keys list acme
  savoir registry keys list acme --json")]
    List {
        /// Which namespace
        #[arg(value_name = "NAMESPACE")]
        namespace: String,
        #[command(flatten)]
        common: Common,
    },
    /// Let a key sign
    #[command(after_help = "\
Examples:
  savoir registry keys add acme ~/.config/savoir/keys/ada.pub
  savoir registry keys add acme ~/.config/savoir/keys/ada.pub --label \"Ada's desk\"")]
    Add {
        /// Which namespace
        #[arg(value_name = "NAMESPACE")]
        namespace: String,
        /// A public key, or a file with one
        #[arg(value_name = "FILE|TEXT")]
        key: String,
        /// What you call it
        #[arg(long, value_name = "TEXT")]
        label: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// A key signs no more, and what it signed loses that signature
    #[command(after_help = "\
Example:
  savoir registry keys revoke acme 21fe31dfa154a261626bf854046fd227 --reason \"it was stolen\"")]
    Revoke {
        /// Which namespace
        #[arg(value_name = "NAMESPACE")]
        namespace: String,
        /// Which key, as `list` shows it
        #[arg(value_name = "KEY_ID")]
        key_id: String,
        /// Why, for whoever meets the key later
        #[arg(long, value_name = "WHY")]
        reason: Option<String>,
        #[command(flatten)]
        common: Common,
    },
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::List { namespace, common } => list(namespace, common),
        Command::Add { namespace, key, label, common } => {
            common.with_namespace(namespace, async |client| {
                let (key, text) = public_key(key)?;
                let new = NewKey { public_key: text, label: label.clone(), email: None };
                let add = async |team: &str| client.add_key(team, &new).await;
                let (namespace, ()) = change_team(client, namespace, add).await?;
                let key_id = key.key_id();
                let value = json!({ "namespace": namespace, "key_id": key_id, "label": label });
                Ok((value, format!("{key_id} signs for {namespace} now\n")))
            })
        }
        Command::Revoke { namespace, key_id, reason, common } => {
            common.with_namespace(namespace, async |client| {
                let key = RevokedKey { key_id: key_id.clone(), reason: reason.clone() };
                let revoke = async |team: &str| client.revoke_key(team, &key).await;
                let (namespace, ()) = change_team(client, namespace, revoke).await?;
                let value = json!({ "namespace": namespace, "key_id": key_id, "revoked": true });
                Ok((value, format!("{key_id} signs for {namespace} no more\n")))
            })
        }
    }
}

fn list(namespace: &str, common: &Common) -> Result<ExitCode, CommandError> {
    common.with_namespace(namespace, async |client| {
        let ask = async |team: &str| client.keys(team).await;
        let (mut namespace, mut keys) = of_team(namespace, ask).await?;
        // A namespace that is not there has no keys, either.
        let alone = format!("{ALONE}{namespace}");
        if keys.is_empty()
            && !namespace.starts_with(ALONE)
            && let Ok(found) = ask(&alone).await
            && !found.is_empty()
        {
            (namespace, keys) = (alone, found);
        }
        let text = table(&keys, &format!("no key signs for {namespace}\n"));
        Ok((json!({ "namespace": namespace, "keys": keys }), text))
    })
}

/// Keys for people, or what is said if there are none.
pub(super) fn table(keys: &[KeyInfo], none: &str) -> String {
    let rows: Vec<[Cow<'_, str>; 4]> = keys.iter().map(row).collect();
    match rows.as_slice() {
        [] => none.to_owned(),
        rows => output::table(["KEY", "LABEL", "SINCE", "STATE"], rows),
    }
}

fn row(key: &KeyInfo) -> [Cow<'_, str>; 4] {
    let cell = |text: &Option<String>| {
        output::cell(text.as_deref().unwrap_or_default()).into_owned().into()
    };
    let state = match (&key.revoked_at, &key.revoked_reason) {
        (None, _) => "good".into(),
        (Some(when), None) => format!("revoked on {}", output::cell(when)).into(),
        (Some(when), Some(why)) => {
            format!("revoked on {}: {}", output::cell(when), output::cell(why)).into()
        }
    };
    [output::cell(&key.key_id), cell(&key.label), cell(&key.added_at), state]
}
