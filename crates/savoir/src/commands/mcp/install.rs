//! `savoir mcp install` and `savoir mcp uninstall`.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::builder::TypedValueParser;
use savoir_engine::Home;
use savoir_skill::digest;
use serde::{Deserialize, Serialize};
use similar::TextDiff;

use super::{
    super::agents,
    clients::{Client, ConfigScope},
};
use crate::{
    agent_settings::{must_be, put, read, write_error},
    ask,
    error::CommandError,
    installed::{home, project_around},
    output,
};

/// The folder of stored changes, in the user's data folder.
const CHANGES_FOLDER: &str = "mcp";

/// Add Savoir to the MCP settings of an agent
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir mcp install --agent claude-code
  savoir mcp install --agent codex --dry-run         show what would change
  savoir mcp install --agent vscode --scope project --yes

The change is shown first, and nothing else in the file changes. A copy of the old file is stored,
and `savoir mcp uninstall` undoes the change.")]
pub(crate) struct Install {
    #[command(flatten)]
    place: ServerArgs,
    /// Show the change without making it
    #[arg(long)]
    dry_run: bool,
}

/// Remove Savoir from the MCP settings of an agent
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir mcp uninstall --agent claude-code
  savoir mcp uninstall --agent vscode --scope project --yes

If the file did not change since `savoir mcp install`, its old content is restored. Otherwise only
the entry is removed.")]
pub(crate) struct Uninstall {
    #[command(flatten)]
    place: ServerArgs,
    /// Show the change without making it
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, clap::Args)]
struct ServerArgs {
    /// Agent to configure
    #[arg(long, value_name = "ID", value_parser = clients())]
    agent: Client,
    /// Settings to change
    #[arg(long, value_name = "SCOPE", default_value = "user")]
    scope: ConfigScope,
    /// Name of the server in the settings
    #[arg(long, value_name = "NAME", default_value = "savoir", value_parser = server_name)]
    name: String,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

/// The agents whose settings can be changed, by id or alias.
fn clients() -> impl TypedValueParser<Value = Client> {
    agents(&Client::AGENTS)
        .try_map(|agent| Client::of(agent).ok_or("Savoir cannot change its settings"))
}

fn server_name(name: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if (1..=64).contains(&name.len()) && name.chars().all(good) {
        Ok(name.to_owned())
    } else {
        Err("use up to 64 letters, digits, - and _".to_owned())
    }
}

/// A stored change, so that it can be undone.
#[derive(Debug, Serialize, Deserialize)]
struct StoredChange {
    file: PathBuf,
    /// `None` if the file did not exist.
    before: Option<String>,
    after: String,
}

pub(super) fn install(args: &Install) -> Result<ExitCode, CommandError> {
    let ServerArgs { agent, name, .. } = &args.place;
    let file = args.place.file()?;
    let before = read(&file)?;
    let text = before.as_deref().unwrap_or_default();
    let there = agent.command(text, name).map_err(|wrong| wrong.in_file(&file))?;
    if let Some(words) = there.as_ref().filter(|words| !is_savoir_entry(words)) {
        let shown = output::sanitize(&words.join(" "));
        return Err(CommandError::refused(format!(
            "{}: `{name}` is already the name of another server: {shown}",
            file.display()
        ))
        .with_code("name-taken")
        .hint("choose another name: --name NAME"));
    }
    let command = command(args.place.scope)?;
    // Arguments that the user added are kept.
    let words = there.map(|words| words[1..].to_vec());
    let after =
        agent.with_server(text, name, &command, &words.unwrap_or_else(|| vec!["mcp".to_owned()]));
    let after = after.map_err(|wrong| wrong.in_file(&file))?;
    if !agent
        .command(&after, name)
        .is_ok_and(|words| words.is_some_and(|words| is_savoir_entry(&words)))
    {
        let message =
            format!("{}: the server cannot be added without damaging the file", file.display());
        return Err(CommandError::refused(message)
            .with_code("settings-unclear")
            .hint(format!("add it by hand: `{name}` runs `{command} mcp`")));
    }
    if before.as_ref() == Some(&after) {
        output::note(&format!("{}: Savoir is already installed", file.display()));
        return Ok(ExitCode::SUCCESS);
    }
    show(&file, text, &after)?;
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    args.place.confirm_change()?;
    must_be(&file, before.as_deref())?;
    let changes = StoredChangeFile::of(&args.place, &file)?;
    // `uninstall` restores the content from before the first install.
    let first = changes.read().filter(|known| Some(&known.after) == before.as_ref());
    let before = first.map_or(before, |known| known.before);
    changes.write(&StoredChange { file: file.clone(), before, after: after.clone() })?;
    put(&file, &after)?;
    output::note(&format!("{} now starts Savoir; restart it", agent.id()));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn uninstall(args: &Uninstall) -> Result<ExitCode, CommandError> {
    let ServerArgs { agent, name, .. } = &args.place;
    let file = args.place.file()?;
    let Some(before) = read(&file)? else { return Err(not_installed_error(&file, name)) };
    let words = agent.command(&before, name).map_err(|wrong| wrong.in_file(&file))?;
    if !words.is_some_and(|words| is_savoir_entry(&words)) {
        return Err(not_installed_error(&file, name));
    }
    let changes = StoredChangeFile::of(&args.place, &file)?;
    let untouched = changes.read().filter(|known| known.after == before);
    let after = match untouched {
        Some(known) => known.before,
        None => Some(agent.without_server(&before, name).map_err(|wrong| wrong.in_file(&file))?),
    };
    show(&file, &before, after.as_deref().unwrap_or_default())?;
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    args.place.confirm_change()?;
    must_be(&file, Some(&before))?;
    if let Some(after) = after {
        put(&file, &after)?;
    } else {
        // A symlink is kept, and its target is removed.
        let real = file.canonicalize().unwrap_or_else(|_| file.clone());
        fs::remove_file(&real).map_err(|error| write_error(&file, &error.kind()))?;
    }
    changes.delete();
    output::note(&format!("{} no longer starts Savoir", agent.id()));
    Ok(ExitCode::SUCCESS)
}

impl ServerArgs {
    fn file(&self) -> Result<PathBuf, CommandError> {
        let home = home()?;
        let project = project_around(&home).unwrap_or_else(|| PathBuf::from("."));
        self.agent.file(self.scope, &home, &project).ok_or_else(|| {
            CommandError::input(format!("{} has no project settings", self.agent.id()))
                .hint("omit --scope")
        })
    }

    fn confirm_change(&self) -> Result<(), CommandError> {
        if self.yes {
            return Ok(());
        }
        if !ask::can_ask() {
            return Err(CommandError::refused("cannot ask for confirmation without a terminal")
                .hint("confirm the change with --yes"));
        }
        match ask::line("Make this change? [y]es, [N]o: ", &ask::yes_or_no)? {
            Some(true) => Ok(()),
            _ => Err(CommandError::refused("nothing was changed").with_code("declined")),
        }
    }
}

/// Whether a server is this program.
fn is_savoir_entry(words: &[String]) -> bool {
    let program = words.first().map(Path::new).and_then(Path::file_stem);
    program.is_some_and(|program| program == "savoir")
        && words.get(1).is_some_and(|word| word == "mcp")
}

/// The command that starts this program. Project settings are shared, so they have no local path.
fn command(scope: ConfigScope) -> Result<String, CommandError> {
    if scope == ConfigScope::Project {
        return Ok("savoir".to_owned());
    }
    let path = env::current_exe().map_err(|error| {
        CommandError::input(format!("the path of this program is unknown: {error}"))
    })?;
    path.to_str().map(str::to_owned).ok_or_else(|| {
        CommandError::input(format!("{} is not valid UTF-8", path.display()))
            .hint("move the program to another folder")
    })
}

fn not_installed_error(file: &Path, name: &str) -> CommandError {
    CommandError::input(format!("{}: Savoir is not installed as `{name}`", file.display()))
        .with_code("not-installed")
        .hint("use the name and scope of the install: --name NAME, --scope user|project")
}

fn show(file: &Path, before: &str, after: &str) -> Result<(), CommandError> {
    let name = file.display().to_string();
    let diff = TextDiff::from_lines(before, after);
    let text = diff.unified_diff().context_radius(3).header(&name, &name).to_string();
    output::text(&output::sanitize(&text))
}

/// The stored change of one settings file.
struct StoredChangeFile {
    path: PathBuf,
}

impl StoredChangeFile {
    fn of(place: &ServerArgs, file: &Path) -> Result<Self, CommandError> {
        let folder = Home::from_environment()?.data_folder(CHANGES_FOLDER)?;
        let key = format!("{}\0{}", file.display(), place.name);
        let digits = digest::sha256_hex(key.as_bytes());
        let name = format!("{}-{}.json", place.agent.id(), digits.get(..16).unwrap_or(&digits));
        Ok(Self { path: folder.join(name) })
    }

    fn read(&self) -> Option<StoredChange> {
        serde_json::from_str(&fs::read_to_string(&self.path).ok()?).ok()
    }

    /// Settings may contain secrets, so only the user can read the copy.
    fn write(&self, change: &StoredChange) -> Result<(), CommandError> {
        let write = || -> io::Result<()> {
            let folder = self.path.parent().unwrap_or(Path::new("."));
            let file = tempfile::NamedTempFile::new_in(folder)?;
            serde_json::to_writer(file.as_file(), change)?;
            file.as_file().sync_all()?;
            file.persist(&self.path)?;
            Ok(())
        };
        write().map_err(|error| write_error(&self.path, &error))
    }

    fn delete(&self) {
        if let Err(error) = fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            output::note(&format!("{} cannot be removed: {error}", self.path.display()));
        }
    }
}
