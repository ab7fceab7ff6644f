//! `savoir eval sign`: signs the results of an evaluation, and publishes the statement.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use savoir_eval::attest;
use savoir_package::{
    registry::{
        Client, Name,
        wire::{IndexLine, NewAttestation, PublishedAttestation},
    },
    trust::{PublicKey, StatementError, StatementKey, evaluation, oms::BundleKey, sign_statement},
};
use serde_json::{Value, json};

use crate::{
    commands::sign::AnyKey,
    error::CommandError,
    evaluations, output,
    remote::Remote,
    runtime,
    trust::{Keyring, SignedFolder},
    write,
};

/// Sign the results of an evaluation
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The statement is stored in .savoir/attestations/ of the skill's folder. It is valid as long as no
file of the skill changes; `savoir verify` checks it. With --publish, it is also added to the
version of a published skill that has the same files. Everyone with an account can do this: your
signature counts, not your account.

Examples:
  savoir eval sign results/ my-skill
  savoir eval sign results/ my-skill --key ~/.ssh/id_ed25519
  savoir eval sign results/ my-skill --publish acme/my-skill

Exit codes: 0 signed, 1 the results belong to other files, or the registry does not accept them; 2
wrong usage or unreadable input.")]
pub(super) struct Args {
    /// Folder with the results
    results: PathBuf,
    /// Folder of the skill
    path: PathBuf,
    /// Name of your key, or a file with an OpenSSH key
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "oms_key")]
    key: Option<String>,
    /// P-256 key in PEM format, for a bundle
    #[arg(long, value_name = "FILE")]
    oms_key: Option<PathBuf>,
    /// Add it to this published skill
    #[arg(long, value_name = "SKILL")]
    publish: Option<Name>,
    #[command(flatten)]
    remote: Remote,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let results = super::diff::read(&args.results)?;
    let skill = SignedFolder::read(&args.path)?;
    if skill.tree.integrity() != results.skill.integrity {
        let message = format!("{} is not as it was evaluated", skill.folder.display());
        return Err(CommandError::findings(message)
            .with_code("results-of-other-files")
            .hint("evaluate it again: savoir eval PATH --output DIR"));
    }
    let statement = attest::statement(&results).ok_or_else(|| {
        CommandError::input("the results name no digest").hint("evaluate the skill again")
    })?;
    let (signed, key) = sign(args, &statement)?;
    let path = write_statement(&skill.folder, &signed)?;
    evaluations::store(&results.skill.integrity, &signed);
    let published = match &args.publish {
        Some(name) => Some(publish(args, name, &results.skill.integrity, &signed, key.as_ref())?),
        None => None,
    };
    if args.json {
        let published = published.map(|(line, registry, one)| {
            json!({"registry": registry, "name": line.name, "version": line.version, "id": one.id})
        });
        output::json(&json!({"path": path, "statement": statement, "published": published}))?;
    } else {
        let published = published.map(|(line, registry, _)| {
            format!("published for {}@{} in {registry}\n", line.name, line.version)
        });
        let text = format!("signed {}\n{}", path.display(), published.unwrap_or_default());
        output::text(&output::sanitize(&text))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Signs a statement; returns the public key, too, unless the signature contains it.
fn sign(args: &Args, statement: &Value) -> Result<(Value, Option<PublicKey>), CommandError> {
    let failed = |error: StatementError| CommandError::input(&error).with_code(error.code());
    if let Some(path) = &args.oms_key {
        let key = BundleKey::read(path).map_err(|error| CommandError::input(&error))?;
        let public = key.public_key().map_err(|error| CommandError::input(&error))?;
        let signed = sign_statement(statement, StatementKey::Bundle(&key)).map_err(failed)?;
        return Ok((signed, Some(public)));
    }
    match AnyKey::named(&Keyring::of_user()?, args.key.as_deref())? {
        AnyKey::Own { key, .. } => {
            let signed = sign_statement(statement, StatementKey::Own(&key)).map_err(failed)?;
            Ok((signed, Some(key.public_key())))
        }
        AnyKey::Ssh(path) => {
            Ok((sign_statement(statement, StatementKey::Ssh(&path)).map_err(failed)?, None))
        }
    }
}

/// Writes a signed statement into the folder of a skill; returns its path.
fn write_statement(skill: &Path, signed: &Value) -> Result<PathBuf, CommandError> {
    let folder = skill.join(evaluation::FOLDER);
    let path = folder.join(evaluation::file_name(signed));
    let failed = |error: &dyn std::fmt::Display| {
        CommandError::input(format!("{} cannot be written: {error}", path.display()))
    };
    let is_link = folder.is_symlink() || folder.parent().is_some_and(Path::is_symlink);
    if is_link {
        return Err(failed(&"its folder is a symlink").hint("remove the symlink"));
    }
    fs::create_dir_all(&folder).map_err(|error| failed(&error))?;
    let text = serde_json::to_string_pretty(signed)? + "\n";
    write::replace(&path, &text).map_err(|error| failed(&error))?;
    Ok(path)
}

/// Adds a signed statement to the version of a published skill that has these files.
fn publish(
    args: &Args,
    name: &Name,
    integrity: &str,
    signed: &Value,
    key: Option<&PublicKey>,
) -> Result<(IndexLine, String, PublishedAttestation), CommandError> {
    let client = args.remote.client_of(name)?;
    let line = runtime::block_on(async { Ok(find_version(&client, name, integrity).await?) })?;
    let Some(line) = line else {
        let message = format!("no version of {name} in {} has these files", client.address());
        return Err(CommandError::findings(message)
            .with_code("not_published")
            .hint(format!("see its versions: savoir info {name}"))
            .hint("if it is your skill, publish it first: savoir publish PATH"));
    };
    let new = NewAttestation { statement: signed.clone(), public_key: key.map(PublicKey::to_text) };
    let added =
        runtime::block_on(async { Ok(client.add_attestation(name, &line.version, &new).await?) })?;
    Ok((line, client.address(), added))
}

async fn find_version(
    client: &Client,
    name: &Name,
    integrity: &str,
) -> Result<Option<IndexLine>, savoir_package::registry::RegistryError> {
    let Some(package) = client.index(name).await? else { return Ok(None) };
    let mut same = package.iter().filter(|line| line.integrity == integrity);
    Ok(same.next_back().cloned())
}
