//! `savoir eval sign`: signs the results of an evaluation.

use std::{fs, path::PathBuf, process::ExitCode};

use savoir_eval::attest;
use savoir_package::trust::{StatementError, StatementKey, oms::BundleKey, sign_statement};
use serde_json::json;

use crate::{
    commands::sign::AnyKey,
    error::CommandError,
    output,
    trust::{Keyring, SignedFolder},
    write,
};

/// Sign the results of an evaluation
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The statement is stored in .savoir/attestations/ of the skill's folder. It is valid as long as no
file of the skill changes; `savoir verify` checks it.

Examples:
  savoir eval sign results/ my-skill
  savoir eval sign results/ my-skill --key ~/.ssh/id_ed25519

Exit codes: 0 signed, 1 the results belong to other files, 2 wrong usage or unreadable input.")]
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
            .named("results-of-other-files")
            .hint("evaluate it again: savoir eval PATH --output DIR"));
    }
    let statement = attest::statement(&results).ok_or_else(|| {
        CommandError::input("the results name no digest").hint("evaluate the skill again")
    })?;
    let signed = match &args.oms_key {
        Some(path) => {
            let key = BundleKey::read(path).map_err(|error| CommandError::input(&error))?;
            sign_statement(&statement, StatementKey::Bundle(&key))
        }
        None => match AnyKey::named(&Keyring::of_user()?, args.key.as_deref())? {
            AnyKey::Own { key, .. } => sign_statement(&statement, StatementKey::Own(&key)),
            AnyKey::Ssh(path) => sign_statement(&statement, StatementKey::Ssh(&path)),
        },
    };
    let signed =
        signed.map_err(|error: StatementError| CommandError::input(&error).named(error.code()))?;
    let path = attest::path_of(&skill.folder, &signed);
    let failed = |error: &dyn std::fmt::Display| {
        CommandError::input(format!("{} cannot be written: {error}", path.display()))
    };
    let folder = path.parent().unwrap_or(&skill.folder);
    let is_link = folder.is_symlink() || folder.parent().is_some_and(std::path::Path::is_symlink);
    if is_link {
        return Err(failed(&"its folder is a symlink").hint("remove the symlink"));
    }
    fs::create_dir_all(folder).map_err(|error| failed(&error))?;
    let text = serde_json::to_string_pretty(&signed)? + "\n";
    write::replace(&path, &text).map_err(|error| failed(&error))?;
    if args.json {
        output::json(&json!({"path": path, "statement": statement}))?;
    } else {
        output::text(&output::sanitize(&format!("signed {}\n", path.display())))?;
    }
    Ok(ExitCode::SUCCESS)
}
