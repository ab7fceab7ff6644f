//! `savoir registry sign`: signs a published version.

use std::process::ExitCode;

use savoir_engine::approval::shell_word;
use savoir_package::{
    File, Tree,
    registry::{
        Client, RegistryError,
        wire::{IndexLine, NewSignature},
    },
    trust::{self, Tier, TrustStore},
};
use serde_json::json;

use super::{
    super::{
        publisher,
        sign::{AnyKey, key_id_of},
    },
    common::{Common, VersionTarget},
};
use crate::{error::CommandError, output, trust::Keyring};

/// File name of a signature in a skill.
const SIGNATURE_FILE: &str = "signature.json";

/// Sign a published version with your key
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The archive is downloaded and checked against the index, its files are signed as with `savoir sign`,
and only the signature is uploaded. Review the skill first: savoir install NAME@VERSION, savoir
scan.

Examples:
  savoir registry sign acme/pdf@1.2.0
  savoir registry sign acme/pdf@1.2.0 --key auditor --publisher \"Example Audits\"
  savoir registry sign acme/pdf@1.2.0 --key ~/.ssh/id_ed25519

Exit codes: 1 the registry refuses or cannot be reached, 2 wrong usage or no key, 3 the files do
not match the index or their signature, or others can read the key.")]
pub(super) struct Args {
    /// The version
    #[arg(value_name = "NAME@VERSION")]
    target: VersionTarget,
    /// Key of yours, as listed by `savoir keys list`, or an OpenSSH key file [default: your only key]
    #[arg(long, value_name = "NAME|FILE")]
    key: Option<String>,
    /// Your name in the signature [default: the name of the key]
    #[arg(long, value_name = "NAME", value_parser = publisher)]
    publisher: Option<String>,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    args.common.with(&args.target, async |client| {
        let keyring = Keyring::of_user()?;
        let key = AnyKey::named(&keyring, args.key.as_deref())?;
        let line = line(client, &args.target).await?;
        let tree = client.download(&line).await?;
        let publisher = args.publisher.as_deref();
        let record = sign_version(&line, &tree, publisher, &key, &keyring.trusted()?)?;
        let key_id = key_id_of(&record);
        let publisher = match (&key, publisher) {
            (_, Some(publisher)) => publisher,
            (AnyKey::Own { name, .. }, None) => name,
            (AnyKey::Ssh(_), None) => "OpenSSH",
        };
        let signer = signer(client, &line, &key_id).await?;
        let record = serde_json::from_slice(&record).map_err(CommandError::findings)?;
        let signature = NewSignature { signer: signer.to_owned(), record };
        let judged = client
            .add_signature(&line.name, &line.version, &signature)
            .await
            .map_err(|error| unregistered_key_error(error, client, &line, &key_id, &key))?;
        let (name, version) = (&line.name, &line.version);
        let files = output::plural(tree.files().count(), "file");
        let text = format!(
            "signed         {name} {version}, {files}\nby             {publisher}, key {key_id}\n\
             integrity      {}\ntier           {}\n",
            line.integrity, judged.security_tier
        ) + low_tier_reason(judged.security_tier, signer);
        let value = json!({
            "name": name, "version": version.to_string(), "key_id": key_id,
            "publisher": publisher, "integrity": line.integrity, "tier": judged.security_tier,
        });
        Ok((value, text))
    })
}

/// The role of a key: publisher if it is registered for the namespace, else auditor.
async fn signer(
    client: &Client,
    line: &IndexLine,
    key_id: &str,
) -> Result<&'static str, CommandError> {
    let keys = match line.name.namespace() {
        Some(namespace) => client.keys(namespace).await?,
        None => client.keys_of(&line.name).await?,
    };
    let own = keys.iter().any(|known| known.key_id == key_id);
    Ok(if own { "publisher" } else { "auditor" })
}

/// Why a version that was just signed has the lowest tier.
fn low_tier_reason(tier: Tier, signer: &str) -> &'static str {
    match (tier, signer) {
        (Tier::Community | Tier::Verified, _) => "",
        (_, "auditor") => {
            "because        no key of its publisher signed it, or the scan of the registry blocks it; \
             savoir info shows which\n"
        }
        _ => {
            "because        the scan of the registry found something; savoir info lists the findings\n"
        }
    }
}

/// Explains that a key is registered neither for the owner of the skill nor for an auditor.
fn unregistered_key_error(
    error: RegistryError,
    client: &Client,
    line: &IndexLine,
    key_id: &str,
    key: &AnyKey,
) -> CommandError {
    let is_unknown =
        error.reason() == Some("not_admin") || matches!(error.code(), "unknown_key" | "not_admin");
    if !is_unknown {
        return error.into();
    }
    let team = line.name.namespace().unwrap_or(line.name.last());
    let address = client.address();
    CommandError::findings(format!(
        "the key {key_id} is not registered for `{team}` in {address}, and is not an auditor's key"
    ))
    .with_code("unknown_key")
    .hint(format!(
        "if you publish the skill, register the key, then sign again: savoir registry keys add \
         {team} {} --registry {address}",
        shell_word(&key.public_text())
    ))
    .hint("if you audit skills, an administrator adds you: savoir registry auditors add")
}

/// The index line of a version.
async fn line(client: &Client, target: &VersionTarget) -> Result<IndexLine, CommandError> {
    let VersionTarget { name, version } = target;
    let package = client.index(name).await?;
    let unknown = || RegistryError::Unknown { name: name.clone(), registry: client.address() };
    let package = package.ok_or_else(unknown)?;
    let line = package.iter().find(|line| line.version == *version);
    let none = || RegistryError::NoFit {
        name: name.clone(),
        range: version.to_string(),
        registry: client.address(),
    };
    Ok(line.ok_or_else(none)?.clone())
}

/// Signs the files, and verifies the signature.
fn sign_version(
    line: &IndexLine,
    tree: &Tree,
    publisher: Option<&str>,
    key: &AnyKey,
    store: &TrustStore,
) -> Result<Vec<u8>, CommandError> {
    let (name, version) = (line.name.last(), line.version.to_string());
    let wrong = |error: &dyn std::fmt::Display| {
        CommandError::refused(format!("`{}` {version}: {error}", line.name))
            .with_code("signature")
            .hint("nothing was signed; do not use these files, and inform the registry operator")
    };
    // Files with an invalid signature are not signed.
    trust::verify(tree, name, &version, store).map_err(|error| wrong(&error))?;
    let record = key.sign(tree, name, &version, publisher)?;
    let place = trust::file_name(tree).unwrap_or(SIGNATURE_FILE);
    let own = File { bytes: record.clone(), executable: false };
    let whole = tree.with_file(place, own).map_err(|error| wrong(&error))?;
    trust::verify(&whole, name, &version, store).map_err(|error| wrong(&error))?;
    Ok(record)
}
