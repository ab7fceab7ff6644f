//! `savoir registry keys`: manages the keys that sign for a namespace.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
    process::ExitCode,
};

use savoir_package::{
    registry::wire::{KeyInfo, NewKey, RevokedKey},
    trust::{
        KeyKind, PublicKey, SigningKey,
        possession::{self, Purpose},
        ssh,
    },
};
use serde_json::json;

use super::{
    super::keys::public_key,
    common::{Common, NO_NAMESPACE_PREFIX, change_team, load_team, without_prefix},
};
use crate::{error::CommandError, output, trust::Keyring};

/// Manage the keys that sign for a namespace
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A version that one of these keys signed has the tier `community` in the registry. To trust the keys
on this machine: savoir keys trust --from-registry NAMESPACE.

If the private key is on this machine, `add` proves that you own it. Then nobody else can register
the public key.

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
    /// List keys, including revoked ones
    #[command(after_help = "\
Examples:
  savoir registry keys list acme
  savoir registry keys list acme --json")]
    List {
        /// The namespace
        #[arg(value_name = "NAMESPACE")]
        namespace: String,
        #[command(flatten)]
        common: Common,
    },
    /// Register a key
    #[command(after_help = "\
Examples:
  savoir registry keys add acme ~/.config/savoir/keys/ada.pub
  savoir registry keys add acme ~/.config/savoir/keys/ada.pub --label \"Ada's desk\"")]
    Add {
        /// The namespace
        #[arg(value_name = "NAMESPACE")]
        namespace: String,
        /// Public key, or a file with one
        #[arg(value_name = "FILE|TEXT")]
        key: String,
        /// Label of the key
        #[arg(long, value_name = "TEXT")]
        label: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Revoke a key; versions that it signed lose that signature
    #[command(after_help = "\
Example:
  savoir registry keys revoke acme 21fe31dfa154a261626bf854046fd227 --reason \"it was stolen\"")]
    Revoke {
        /// The namespace
        #[arg(value_name = "NAMESPACE")]
        namespace: String,
        /// ID of the key, as shown by `list`
        #[arg(value_name = "KEY_ID")]
        key_id: String,
        /// Reason, shown with the key
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
                let (public, text) = public_key(key)?;
                let own = own_key(&public, Path::new(key));
                let registry = client.address();
                let add = async |team: &str| {
                    let purpose = Purpose { owner_scope: team, registry: &registry };
                    let proof = own.as_ref().and_then(|own| own.prove(purpose));
                    let (proved, label) = (proof.is_some(), label.clone());
                    let mut new = NewKey { public_key: text.clone(), label, email: None, proof };
                    match client.add_key(team, &new).await {
                        // The registry may know itself by another URL, so a retry sends no proof.
                        Err(error) if proved && error.reason() == Some(WRONG_PROOF_CODE) => {
                            new.proof = None;
                            client.add_key(team, &new).await.map(|()| false)
                        }
                        done => done.map(|()| proved),
                    }
                };
                let (namespace, proved) = change_team(client, namespace, add).await?;
                let key_id = public.key_id();
                let value = json!({
                    "namespace": namespace, "key_id": key_id, "label": label, "proved": proved,
                });
                let unproved = if proved { "" } else { UNPROVEN_KEY_HINT };
                let shown = without_prefix(&namespace);
                Ok((value, format!("registered key {key_id} for {shown}\n{unproved}")))
            })
        }
        Command::Revoke { namespace, key_id, reason, common } => {
            common.with_namespace(namespace, async |client| {
                let key = RevokedKey { key_id: key_id.clone(), reason: reason.clone() };
                let revoke = async |team: &str| client.revoke_key(team, &key).await;
                let (namespace, ()) = change_team(client, namespace, revoke).await?;
                let value = json!({ "namespace": namespace, "key_id": key_id, "revoked": true });
                let shown = without_prefix(&namespace);
                Ok((value, format!("revoked key {key_id} of {shown}\n")))
            })
        }
    }
}

/// The reason with which a registry rejects an invalid proof.
const WRONG_PROOF_CODE: &str = "wrong_proof";
/// Printed if the registry has no proof of the private key.
const UNPROVEN_KEY_HINT: &str = "you did not prove that you own the private key: anyone who proves it can \
                        register the key instead\n";

/// A private key on this machine.
enum OwnKeyProof {
    Ours(SigningKey),
    Ssh(PathBuf),
}

impl OwnKeyProof {
    /// Signs a proof that the user has the private key.
    fn prove(&self, purpose: Purpose<'_>) -> Option<String> {
        match self {
            Self::Ours(key) => Some(possession::prove(key, purpose)),
            Self::Ssh(path) => ssh::sign(path, possession::statement(purpose).as_bytes()).ok(),
        }
    }
}

/// Finds the private key among the keys of `savoir keys`, or next to the public key file of OpenSSH.
fn own_key(public: &PublicKey, file: &Path) -> Option<OwnKeyProof> {
    if public.kind() == KeyKind::Ssh {
        let secret = file.with_extension("");
        let beside = file.extension().is_some_and(|end| end == "pub") && secret.is_file();
        return beside.then_some(OwnKeyProof::Ssh(secret));
    }
    let own = Keyring::of_user().ok()?.own_keys();
    let found = own.list().ok()?.into_iter().find(|one| one.key == *public)?;
    own.load(&found.name).ok().map(OwnKeyProof::Ours)
}

fn list(namespace: &str, common: &Common) -> Result<ExitCode, CommandError> {
    common.with_namespace(namespace, async |client| {
        let ask = async |team: &str| client.keys(team).await;
        let (mut namespace, mut keys) = load_team(namespace, ask).await?;
        // A namespace that does not exist has no keys either.
        let alone = format!("{NO_NAMESPACE_PREFIX}{namespace}");
        if keys.is_empty()
            && !namespace.starts_with(NO_NAMESPACE_PREFIX)
            && let Ok(found) = ask(&alone).await
            && !found.is_empty()
        {
            (namespace, keys) = (alone, found);
        }
        let text = table(&keys, &format!("{namespace} has no keys\n"));
        Ok((json!({ "namespace": namespace, "keys": keys }), text))
    })
}

/// Keys as a table, or the text `none` if there are no keys.
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
        (None, _) => "active".into(),
        (Some(when), None) => format!("revoked on {}", output::cell(when)).into(),
        (Some(when), Some(why)) => {
            format!("revoked on {}: {}", output::cell(when), output::cell(why)).into()
        }
    };
    [output::cell(&key.key_id), cell(&key.label), cell(&key.added_at), state]
}
