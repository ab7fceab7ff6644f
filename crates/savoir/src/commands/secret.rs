//! `savoir secret`: stores values that skills get as environment variables.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _, Read as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use savoir_engine::{
    Home,
    approval::{printable, shell_word},
    secrets::{SecretLocation, Secrets, StoredSecret},
};
use savoir_skill::variable_name::is_variable_name;
use serde_json::json;

use crate::{
    error::CommandError,
    lookup::{self, SkillTarget},
    output, session,
};

/// Maximum size of a value: it must fit into the environment of a program.
const MAX_SECRET_BYTES: u64 = 64 << 10;

/// Store values that skills get as environment variables
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A skill gets the value only if it declares the variable and you approved the skill. A variable of
the same name in your environment has precedence. The value is replaced by [secret] in output and
records, and sent only to hosts that the skill declares.

Examples:
  savoir secret set ACME_API_TOKEN                  asks for the value
  savoir secret set ACME_API_TOKEN < token.txt
  savoir secret set ACME_API_TOKEN --skill acme     only for this skill
  savoir secret list
  savoir secret remove ACME_API_TOKEN

Values are stored in the keyring of your system (Secret Service). Without a keyring, they are stored
in secrets/secrets.json in Savoir's data folder, which only you can read.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Set(Set),
    List(List),
    Remove(Remove),
}

/// Store a value, read from the terminal or from standard input
#[derive(Debug, clap::Args)]
struct Set {
    #[command(flatten)]
    which: Which,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// List stored secrets without their values
#[derive(Debug, clap::Args)]
struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Remove a stored value
#[derive(Debug, clap::Args)]
struct Remove {
    #[command(flatten)]
    which: Which,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Which {
    /// Name of the environment variable
    name: String,
    /// Only for the skill with this folder or name; like an approval, it is stored for the folder
    #[arg(long, value_name = "PATH|NAME")]
    skill: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let secrets = Secrets::new(&Home::from_environment()?);
    match &args.command {
        Command::Set(args) => set(args, &secrets),
        Command::List(args) => list(args, &secrets),
        Command::Remove(args) => remove(args, &secrets),
    }
}

fn set(args: &Set, secrets: &Secrets) -> Result<ExitCode, CommandError> {
    let Which { name, skill } = &args.which;
    check_name(name)?;
    let skill = skill.as_deref().map(approved_path).transpose()?;
    let value = value()?;
    let place = secrets.set(StoredSecret::new(name, skill.as_deref(), value))?;
    if args.json {
        let place = storage_name(place);
        return print(&json!({ "name": name, "skill": skill, "stored": true, "in": place }));
    }
    let place = match place {
        SecretLocation::Keyring => "the keyring".to_owned(),
        SecretLocation::File => secrets.file().display().to_string(),
    };
    output::text(&format!("stored {name} in {place} for {}\n", receiver(skill.as_deref())))?;
    Ok(ExitCode::SUCCESS)
}

/// Reads a value: prompts on a terminal, else reads all of standard input, because keys have
/// several lines.
fn value() -> Result<String, CommandError> {
    if io::stdin().is_terminal() {
        return session::secret("value");
    }
    let failed = |error: &dyn std::fmt::Display| {
        CommandError::input(format!("the value cannot be read: {error}"))
            .hint(format!("give at most {MAX_SECRET_BYTES} bytes of UTF-8 on standard input"))
    };
    let mut text = String::new();
    let input = io::stdin().lock().take(MAX_SECRET_BYTES + 1).read_to_string(&mut text);
    input.map_err(|error| failed(&error))?;
    if text.len() as u64 > MAX_SECRET_BYTES || text.contains('\0') {
        return Err(failed(&"it is too long or contains a NUL byte"));
    }
    let value = text.strip_suffix('\n').unwrap_or(&text);
    let value = value.strip_suffix('\r').unwrap_or(value);
    if value.is_empty() {
        return Err(CommandError::input("the value is empty")
            .hint("give it on standard input, or run this on a terminal"));
    }
    Ok(value.to_owned())
}

fn list(args: &List, secrets: &Secrets) -> Result<ExitCode, CommandError> {
    let found = secrets.list()?;
    if args.json {
        let shown = found.iter().map(|secret| {
            let StoredSecret { name, skill, stored_at, .. } = secret;
            let place = storage_name(secret.location());
            json!({ "name": name, "skill": skill, "stored_at": stored_at, "in": place })
        });
        return print(&json!({ "secrets": shown.collect::<Vec<_>>() }));
    }
    let width = found.iter().map(|secret| secret.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for secret in &found {
        let StoredSecret { name, skill, stored_at, .. } = secret;
        let day = stored_at.get(..10).unwrap_or(stored_at);
        let place = storage_name(secret.location());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:width$}  {day}  {place:7}  {}", receiver(skill.as_deref()));
    }
    if found.is_empty() {
        text.push_str("no secrets are stored; `savoir secret set NAME` stores one\n");
    }
    output::text(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn remove(args: &Remove, secrets: &Secrets) -> Result<ExitCode, CommandError> {
    let Which { name, skill } = &args.which;
    // The skill may have been removed already.
    let skill = skill.as_deref().map(|text| {
        approved_path(text)
            .unwrap_or_else(|_| std::path::absolute(text).unwrap_or_else(|_| text.into()))
    });
    if !secrets.remove(name, skill.as_deref())? {
        return Err(not_stored(name, skill.as_deref(), &secrets.list()?));
    }
    if args.json {
        return print(&json!({ "name": name, "skill": skill, "stored": false }));
    }
    output::text(&format!("removed {name}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Checks that the name can be passed to a run as an environment variable.
fn check_name(name: &str) -> Result<(), CommandError> {
    if is_variable_name(name) {
        return Ok(());
    }
    let wrong =
        CommandError::input(format!("`{}` cannot be the name of a secret", printable(name)));
    Err(match name.split_once('=') {
        Some((name, _)) => {
            wrong.hint(format!("the value is read from standard input: savoir secret set {}", shell_word(name)))
        }
        None => wrong.hint(
            "use letters, digits and _; names such as LD_PRELOAD, PATH and PYTHONPATH are not allowed",
        ),
    })
}

/// The folder or file for which approvals are stored.
fn approved_path(text: &str) -> Result<PathBuf, CommandError> {
    let SkillTarget { skill, tool } = lookup::target(text)?;
    if skill.fetched.is_some() || tool.is_some() {
        return Err(CommandError::input(format!(
            "`{}` is not an installed skill",
            printable(text)
        ))
        .hint("name a skill's folder, or install it first"));
    }
    let loaded = crate::load::load(&skill, None)?;
    let folder = loaded.folder.as_ref().map(|folder| folder.root().to_owned());
    let path = folder.unwrap_or(loaded.path);
    path.canonicalize().map_err(|error| CommandError::input(format!("{}: {error}", path.display())))
}

fn storage_name(place: SecretLocation) -> &'static str {
    match place {
        SecretLocation::Keyring => "keyring",
        SecretLocation::File => "file",
    }
}

/// The error for a secret that is not stored for these skills, with the skills that have it.
fn not_stored(name: &str, skill: Option<&Path>, stored: &[StoredSecret]) -> CommandError {
    let message = format!("{} is not stored for {}", printable(name), receiver(skill));
    let others: Vec<&StoredSecret> = stored.iter().filter(|one| one.name == *name).collect();
    let error = CommandError::input(message);
    if others.is_empty() {
        return error.hint("`savoir secret list` lists stored secrets");
    }
    others.iter().fold(error, |error, other| {
        let option = match &other.skill {
            Some(skill) => format!(" --skill {}", shell_word(&skill.to_string_lossy())),
            None => String::new(),
        };
        error.hint(format!("it is stored: savoir secret remove {}{option}", printable(name)))
    })
}

fn receiver(skill: Option<&Path>) -> String {
    match skill {
        Some(path) => format!("the skill in {}", printable(&path.to_string_lossy())),
        None => "any skill that declares it".to_owned(),
    }
}

fn print(value: &serde_json::Value) -> Result<ExitCode, CommandError> {
    output::json(value)?;
    Ok(ExitCode::SUCCESS)
}
