//! `savoir keys` and `savoir keygen`.

mod from_registry;

use std::{fmt::Write as _, fs, os::unix::fs::PermissionsExt as _, path::Path, process::ExitCode};

use clap::ValueEnum;
use savoir_engine::approval::printable;
use savoir_package::trust::{
    KeyRevocation, PublicKey, PublicKeyError, Role, TrustStore, TrustedKey,
};
use serde_json::{Value, json};

use crate::{error::CommandError, output, remote::Remote, trust::Keyring};

/// Maximum size of a public key file: OpenPGP keys can have many signatures.
const MAX_KEY_BYTES: u64 = 1024 * 1024;

/// Manage signing keys and trusted keys
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A skill signed with a trusted key has the tier `community`, or `verified` if the key has the role
amd. OpenSSH keys, PEM keys and certificates, and OpenPGP keys can also be trusted.

Examples:
  savoir keys new ada
  savoir keys trust acme.pub --publisher Acme --namespace 'acme-*'
  savoir keys trust \"ssh-ed25519 AAAA…\" --publisher Grace
  savoir keys trust lab.pub --publisher Lab --role evaluator
  savoir keys list
  savoir keys revoke 21fe31dfa154a261626bf854046fd227 --reason \"the laptop was stolen\"")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    New(New),
    List(List),
    Trust(Trust),
    Distrust(Distrust),
    Revoke(Revoke),
}

/// Create a signing key
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir keys new ada
  savoir sign my-skill --key ada")]
pub(crate) struct New {
    /// Name of the key: letters, digits, `.`, `_` and `-`
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// List your keys, trusted keys and revoked keys
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Trust a public key
#[derive(Debug, clap::Args)]
#[command(after_help = "\
If the key is already trusted, its publisher, role and namespaces are replaced.

Examples:
  savoir keys trust acme.pub --publisher Acme
  savoir keys trust ~/.ssh/id_ed25519.pub --publisher Ada --namespace 'ada-*' --namespace web
  savoir keys trust --from-registry acme  the keys that a registry has for a namespace

With --from-registry, you are asked before keys are trusted. A key that is already trusted keeps its
publisher and role; skills are added to those that it is trusted for. The tier of a skill depends on
the keys that you trust, not on what a registry says.

Exit codes: 1 the registry cannot be reached or has no key, 2 wrong usage or not a key, 3 not
confirmed, or the key is revoked on this machine.")]
pub(crate) struct Trust {
    /// Public key, or a file with one: a line of Savoir or OpenSSH, or a PEM or PGP block
    #[arg(value_name = "FILE|TEXT", required_unless_present = "from_registry")]
    pub(super) key: Option<String>,
    /// Trust the keys that a registry lists for this namespace
    #[arg(long, value_name = "NAMESPACE", conflicts_with_all = ["key", "role"])]
    pub(super) from_registry: Option<String>,
    #[command(flatten)]
    pub(super) remote: Remote,
    /// Trust the keys of the registry without asking
    #[arg(long, short, requires = "from_registry")]
    pub(super) yes: bool,
    /// Publisher of the key [default with --from-registry: the namespace]
    #[arg(long, value_name = "NAME", value_parser = super::publisher,
          required_unless_present = "from_registry")]
    pub(super) publisher: Option<String>,
    /// Role of the key
    #[arg(long, default_value = "publisher")]
    pub(super) role: RoleName,
    /// Trust it only for these skills: a name, or a prefix followed by `*`
    #[arg(long = "namespace", value_name = "NAME")]
    pub(super) namespaces: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Stop trusting a key; skills that it signed become experimental
#[derive(Debug, clap::Args)]
#[command(after_help = "\
If a key was stolen, revoke it instead: savoir keys revoke KEY_ID --reason WHY

Example:
  savoir keys distrust 21fe31dfa154a261626bf854046fd227")]
pub(crate) struct Distrust {
    /// Id of the key, from `savoir keys list`
    pub(super) key_id: String,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Reject everything that a key signed, permanently
#[derive(Debug, clap::Args)]
#[command(after_help = "\
This applies to this machine, whether the key was trusted or not, and cannot be undone.

Example:
  savoir keys revoke 21fe31dfa154a261626bf854046fd227 --reason \"the laptop was stolen\"")]
pub(crate) struct Revoke {
    /// Id of the key, from `savoir keys list` or `savoir verify`
    key_id: String,
    /// Reason, shown when a signature of the key is rejected
    #[arg(long, value_name = "WHY")]
    reason: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum RoleName {
    /// Its skills get the tier community
    Publisher,
    /// Its skills get the tier verified
    Amd,
    /// Its evaluations of skills count, its signatures of skills do not
    Evaluator,
}

impl From<RoleName> for Role {
    fn from(role: RoleName) -> Self {
        match role {
            RoleName::Publisher => Self::Publisher,
            RoleName::Amd => Self::Amd,
            RoleName::Evaluator => Self::Evaluator,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::New(args) => make(args),
        Command::List(args) => list(args),
        Command::Trust(args) => add(args),
        Command::Distrust(args) => remove(args),
        Command::Revoke(args) => revoke(args),
    }
}

pub(crate) fn make(args: &New) -> Result<ExitCode, CommandError> {
    let keyring = Keyring::of_user()?;
    let public = keyring.own_keys().create(&args.name)?.public_key();
    let path = |end: &str| keyring.keys().join(format!("{}.{end}", args.name));
    let (secret, passed_on) = (path("key"), path("pub"));
    let mode = fs::metadata(&secret).map(|metadata| metadata.permissions().mode() & 0o777);
    let mode = format!("{:o}", mode.map_err(|error| unreadable(&secret, &error))?);
    if args.json {
        return print(&json!({
            "name": args.name, "key_id": public.key_id(), "public_key": public.to_base64(),
            "private_file": secret, "public_file": passed_on, "mode": mode,
        }));
    }
    output::text(&output::sanitize(&format!(
        "key id         {}\npublic key     {}\n               {}\nprivate key    {}, mode {mode}\n\n\
         keep the private key secret; to trust skills that it signs, others run:\n  \
         savoir keys trust {} --publisher {}\n",
        public.key_id(),
        public.to_base64(),
        passed_on.display(),
        secret.display(),
        public.to_base64(),
        args.name,
    )))?;
    Ok(ExitCode::SUCCESS)
}

fn list(args: &List) -> Result<ExitCode, CommandError> {
    if args.json {
        return print(&list_json()?);
    }
    let mut text = list_text()?;
    if text.is_empty() {
        text.push_str("no keys; create one with: savoir keys new NAME\n");
    }
    output::text(text.trim_start_matches('\n'))?;
    Ok(ExitCode::SUCCESS)
}

/// Your keys, trusted keys and revoked keys as JSON.
pub(super) fn list_json() -> Result<Value, CommandError> {
    let keyring = Keyring::of_user()?;
    let (own, store) = (keyring.own_keys().list()?, keyring.trusted()?);
    let own = own.iter().map(|own| {
        json!({"name": own.name, "key_id": own.key.key_id(), "public_key": own.key.to_base64()})
    });
    Ok(json!({
        "own": own.collect::<Vec<_>>(),
        "trusted": store.keys().iter().map(as_json).collect::<Vec<_>>(),
        "revoked": store.revoked(),
    }))
}

/// The same as text; empty without keys.
pub(super) fn list_text() -> Result<String, CommandError> {
    let keyring = Keyring::of_user()?;
    let (own, store) = (keyring.own_keys().list()?, keyring.trusted()?);
    let own = own.iter().map(|own| format!("{}  {}", own.key.key_id(), own.name));
    let mut text = section("your keys", own);
    text.push_str(&section("trusted", store.keys().iter().map(line)));
    text.push_str(&section("revoked", store.revoked().iter().map(revoked_key_text)));
    Ok(text)
}

/// A heading and its lines; empty without lines.
pub(super) fn section(heading: &str, lines: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    for line in lines {
        if text.is_empty() {
            let _ = writeln!(text, "\n{heading}");
        }
        let _ = writeln!(text, "  {line}");
    }
    text
}

fn line(trusted: &TrustedKey) -> String {
    let mut line = format!(
        "{}  {}, {}: {}",
        trusted.key.key_id(),
        printable(&trusted.publisher),
        trusted.role.as_str(),
        trusted.role.tier(),
    );
    if let Some(namespaces) = &trusted.namespaces {
        let _ = write!(line, ", only for {}", printable(&namespaces.join(", ")));
    }
    line
}

fn revoked_key_text(revoked: &KeyRevocation) -> String {
    let KeyRevocation { key_id, revoked_at, reason } = revoked;
    let day = revoked_at.get(..10).unwrap_or(revoked_at);
    format!("{}  on {}: {}", printable(key_id), printable(day), printable(reason))
}

fn as_json(trusted: &TrustedKey) -> Value {
    json!({
        "key_id": trusted.key.key_id(),
        "type": trusted.key.kind(),
        "publisher": trusted.publisher,
        "role": trusted.role,
        "tier": trusted.role.tier(),
        "namespaces": trusted.namespaces,
    })
}

pub(super) fn add(args: &Trust) -> Result<ExitCode, CommandError> {
    if let Some(namespace) = &args.from_registry {
        return from_registry::run(namespace, args);
    }
    let trusted = TrustedKey {
        key: public_key(args.key.as_deref().unwrap_or_default())?.0,
        publisher: args.publisher.clone().unwrap_or_default(),
        role: args.role.into(),
        namespaces: Some(args.namespaces.clone()).filter(|namespaces| !namespaces.is_empty()),
    };
    let keyring = Keyring::of_user()?;
    let before = keyring.trusted()?.get(&trusted.key.key_id()).cloned();
    TrustStore::trust(&keyring.list(), &trusted)?;
    let before = before.filter(|before| *before != trusted);
    if args.json {
        let mut value = as_json(&trusted);
        if let Some(before) = &before {
            value["replaced"] = as_json(before);
        }
        return print(&value);
    }
    let replaced = before.map(|before| format!("it replaces {}\n", line(&before)));
    output::text(&format!("trusted {}\n{}", line(&trusted), replaced.unwrap_or_default()))?;
    Ok(ExitCode::SUCCESS)
}

/// The key in a file or in the argument itself, and its text.
pub(super) fn public_key(file_or_text: &str) -> Result<(PublicKey, String), CommandError> {
    let path = Path::new(file_or_text);
    if !path.is_file() {
        let key = PublicKey::parse(file_or_text).map_err(|error| {
            let message = match error {
                // A private key must not be printed.
                PublicKeyError::Private => error.to_string(),
                _ => format!(
                    "file `{}` does not exist, and as a key {error}",
                    printable(file_or_text)
                ),
            };
            CommandError::input(message).with_code("public_key")
        })?;
        return Ok((key, file_or_text.trim().to_owned()));
    }
    let fail = |why: &dyn std::fmt::Display| {
        CommandError::input(format!("{}: {why}", path.display())).with_code("public_key")
    };
    // Our private and public keys have the same format, so only the file name tells them apart.
    if path.extension().is_some_and(|end| end == "key") {
        let public = path.with_extension("pub");
        return Err(fail(&PublicKeyError::Private).hint(format!("use {}", public.display())));
    }
    let length = fs::metadata(path).map_err(|error| unreadable(path, &error))?.len();
    if length > MAX_KEY_BYTES {
        return Err(fail(&format!("it has {length} bytes, which is too large for a public key")));
    }
    let text = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    let key = PublicKey::parse(&text).map_err(|error| fail(&error))?;
    Ok((key, text.trim().to_owned()))
}

fn unreadable(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::input(format!("{} cannot be read: {error}", path.display()))
}

pub(super) fn remove(args: &Distrust) -> Result<ExitCode, CommandError> {
    let keyring = Keyring::of_user()?;
    // For an unknown key, the list is not written.
    let known = keyring.trusted()?.get(&args.key_id).is_some();
    if !known || !TrustStore::distrust(&keyring.list(), &args.key_id)? {
        return Err(CommandError::input(format!("`{}` is not trusted", printable(&args.key_id)))
            .hint("`savoir keys list` lists trusted keys"));
    }
    if args.json {
        return print(&json!({"key_id": args.key_id, "trusted": false}));
    }
    output::text(&format!("{} is no longer trusted\n", args.key_id))?;
    Ok(ExitCode::SUCCESS)
}

fn revoke(args: &Revoke) -> Result<ExitCode, CommandError> {
    let keyring = Keyring::of_user()?;
    if !is_key_id(&args.key_id) {
        let message = format!("`{}` is not a key id", printable(&args.key_id));
        return Err(CommandError::input(message)
            .hint("`savoir keys list` and `savoir verify PATH` show key ids"));
    }
    // Trusted keys are listed in lower case.
    let key_id = if args.key_id.starts_with("SHA256:") {
        args.key_id.clone()
    } else {
        args.key_id.to_ascii_lowercase()
    };
    TrustStore::revoke(&keyring.list(), &key_id, &args.reason)?;
    let store = keyring.trusted()?;
    // Revoking a key again keeps the first reason.
    let Some(revocation) = store.revocation(&key_id) else {
        return Err(CommandError::input(format!("{key_id} was not revoked")));
    };
    if args.json {
        return print(&json!(revocation));
    }
    output::text(&format!("revoked {}\n", revoked_key_text(revocation)))?;
    Ok(ExitCode::SUCCESS)
}

/// Whether a text has the form of a key id, so that a typo is not stored as a revocation.
pub(super) fn is_key_id(text: &str) -> bool {
    let is_hex = |text: &str, lengths: &[usize]| {
        lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    match text.split_once(':') {
        None => is_hex(text, &[32]),
        Some(("SHA256", digest)) => digest.len() == 43,
        Some(("oms" | "x509", digest)) => is_hex(digest, &[64]),
        Some(("openpgp", fingerprint)) => is_hex(fingerprint, &[40, 64]),
        Some(_) => false,
    }
}

fn print(value: &Value) -> Result<ExitCode, CommandError> {
    output::json(value)?;
    Ok(ExitCode::SUCCESS)
}
