//! `savoir mcp install` and `savoir mcp uninstall`.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use savoir_engine::Home;
use savoir_package::{Agent, agents::Agents};
use savoir_skill::digest;
use serde::{Deserialize, Serialize};
use similar::TextDiff;

use super::clients::{Client, ConfigScope};
use crate::{
    agent_settings::{must_be, put, read, write_error},
    ask,
    error::CommandError,
    install_context::agent,
    installed::{home, project_around},
    output,
};

/// The folder of stored changes, in the user's data folder.
const CHANGES_FOLDER: &str = "mcp";

/// Add Savoir to the MCP settings of an agent
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir mcp install                                 for the agents in use
  savoir mcp install --agent claude-code,cursor
  savoir mcp install --agent codex --dry-run         show what would change
  savoir mcp install --agent vscode --scope project --yes

It can configure claude-code, codex, cursor, gemini-cli, opencode, qwen-code, github-copilot and
windsurf. The change is shown first, and nothing else in the file changes. A copy of the old file
is stored, and `savoir mcp uninstall` undoes the change.")]
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
    /// Agents to configure; may be repeated [default: those in use that Savoir can configure]
    #[arg(long, short, value_name = "AGENT", value_delimiter = ',', value_parser = agent, add = ArgValueCandidates::new(completions))]
    agent: Vec<&'static Agent>,
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

/// Completions of --agent.
fn completions() -> Vec<CompletionCandidate> {
    Client::AGENTS.iter().map(CompletionCandidate::new).collect()
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

/// A change of the settings of one agent.
struct PlannedChange {
    agent: ConfigurableAgent,
    file: PathBuf,
    /// `None` if the file does not exist.
    before: Option<String>,
    /// `None` if the file is removed.
    after: Option<String>,
}

/// An agent whose settings can be changed.
#[derive(Clone, Copy)]
struct ConfigurableAgent {
    id: &'static str,
    client: Client,
}

impl ConfigurableAgent {
    fn of(agent: &'static Agent) -> Option<Self> {
        Some(Self { id: agent.id, client: Client::of(agent)? })
    }

    fn named(agent: &'static Agent) -> Result<Self, CommandError> {
        Self::of(agent).ok_or_else(|| {
            let message = format!("Savoir cannot change the MCP settings of {}", agent.id);
            CommandError::input(message)
                .with_code("unsupported-agent")
                .hint("add a server that runs `savoir mcp` to its settings by hand")
                .hint(format!("Savoir can change those of {}", Client::AGENTS.join(", ")))
        })
    }
}

pub(super) fn install(args: &Install) -> Result<ExitCode, CommandError> {
    let mut changes = Vec::new();
    for agent in args.place.agents(|_| true)? {
        changes.extend(plan_install(&args.place, agent)?);
    }
    if !args.place.agree(&changes, args.dry_run)? {
        return Ok(ExitCode::SUCCESS);
    }
    for change in changes {
        let PlannedChange { agent, file, before, after } = change;
        let after = after.unwrap_or_default();
        must_be(&file, before.as_deref())?;
        let stored = StoredChangeFile::of(&args.place, agent, &file)?;
        // `uninstall` restores the content from before the first install.
        let first = stored.read().filter(|known| Some(&known.after) == before.as_ref());
        let before = first.map_or(before, |known| known.before);
        stored.write(&StoredChange { file: file.clone(), before, after: after.clone() })?;
        put(&file, &after)?;
        output::note(&format!("{} now starts Savoir; restart it", agent.id));
    }
    Ok(ExitCode::SUCCESS)
}

/// The change that adds Savoir; `None` if it is already installed.
fn plan_install(
    place: &ServerArgs,
    agent: ConfigurableAgent,
) -> Result<Option<PlannedChange>, CommandError> {
    let (client, name) = (agent.client, &place.name);
    let file = place.file(agent)?;
    let before = read(&file)?;
    let text = before.as_deref().unwrap_or_default();
    let there = client.command(text, name).map_err(|wrong| wrong.in_file(&file))?;
    if let Some(words) = there.as_ref().filter(|words| !is_savoir_entry(words)) {
        let shown = output::sanitize(&words.join(" "));
        return Err(CommandError::refused(format!(
            "{}: `{name}` is already the name of another server: {shown}",
            file.display()
        ))
        .with_code("name-taken")
        .hint("choose another name: --name NAME"));
    }
    let command = command(place.scope)?;
    // Arguments that the user added are kept.
    let words = there.map(|words| words[1..].to_vec());
    let after =
        client.with_server(text, name, &command, &words.unwrap_or_else(|| vec!["mcp".to_owned()]));
    let after = after.map_err(|wrong| wrong.in_file(&file))?;
    if !client
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
        return Ok(None);
    }
    Ok(Some(PlannedChange { agent, file, before, after: Some(after) }))
}

pub(super) fn uninstall(args: &Uninstall) -> Result<ExitCode, CommandError> {
    let has_savoir = |agent: &ConfigurableAgent| {
        let text = args.place.file(*agent).ok().and_then(|file| read(&file).ok().flatten());
        let words = text.and_then(|text| agent.client.command(&text, &args.place.name).ok());
        words.flatten().is_some_and(|words| is_savoir_entry(&words))
    };
    let mut changes = Vec::new();
    for agent in args.place.agents(has_savoir)? {
        changes.push(plan_uninstall(&args.place, agent)?);
    }
    if !args.place.agree(&changes, args.dry_run)? {
        return Ok(ExitCode::SUCCESS);
    }
    for change in changes {
        let PlannedChange { agent, file, before, after } = change;
        must_be(&file, before.as_deref())?;
        if let Some(after) = after {
            put(&file, &after)?;
        } else {
            // A symlink is kept, and its target is removed.
            let real = file.canonicalize().unwrap_or_else(|_| file.clone());
            fs::remove_file(&real).map_err(|error| write_error(&file, &error.kind()))?;
        }
        StoredChangeFile::of(&args.place, agent, &file)?.delete();
        output::note(&format!("{} no longer starts Savoir", agent.id));
    }
    Ok(ExitCode::SUCCESS)
}

fn plan_uninstall(
    place: &ServerArgs,
    agent: ConfigurableAgent,
) -> Result<PlannedChange, CommandError> {
    let (client, name) = (agent.client, &place.name);
    let file = place.file(agent)?;
    let Some(before) = read(&file)? else { return Err(not_installed_error(&file, name)) };
    let words = client.command(&before, name).map_err(|wrong| wrong.in_file(&file))?;
    if !words.is_some_and(|words| is_savoir_entry(&words)) {
        return Err(not_installed_error(&file, name));
    }
    let stored = StoredChangeFile::of(place, agent, &file)?;
    let untouched = stored.read().filter(|known| known.after == before);
    let after = match untouched {
        Some(known) => known.before,
        None => Some(client.without_server(&before, name).map_err(|wrong| wrong.in_file(&file))?),
    };
    Ok(PlannedChange { agent, file, before: Some(before), after })
}

impl ServerArgs {
    /// The agents of --agent, else those in use whose settings can be changed and that `is_meant`
    /// accepts.
    fn agents(
        &self,
        is_meant: impl Fn(&ConfigurableAgent) -> bool,
    ) -> Result<Vec<ConfigurableAgent>, CommandError> {
        if !self.agent.is_empty() {
            let mut named: Vec<ConfigurableAgent> = Vec::new();
            for agent in &self.agent {
                let agent = ConfigurableAgent::named(agent)?;
                if named.iter().all(|known| known.client != agent.client) {
                    named.push(agent);
                }
            }
            return Ok(named);
        }
        let home = home()?;
        let project = project_around(&home).unwrap_or_else(|| PathBuf::from("."));
        let found = Agents::new(&home, |name| env::var_os(name)).detected(&project);
        let found = found.into_iter().filter_map(ConfigurableAgent::of);
        let found: Vec<ConfigurableAgent> = found
            .filter(|agent| agent.client.file(self.scope, &home, &project).is_some())
            .filter(is_meant)
            .collect();
        if found.is_empty() {
            return Err(CommandError::input("no agent was found whose settings to change")
                .with_code("no-agent")
                .hint(format!("name agents with --agent: {}", Client::AGENTS.join(", "))));
        }
        Ok(found)
    }

    fn file(&self, agent: ConfigurableAgent) -> Result<PathBuf, CommandError> {
        let home = home()?;
        let project = project_around(&home).unwrap_or_else(|| PathBuf::from("."));
        agent.client.file(self.scope, &home, &project).ok_or_else(|| {
            CommandError::input(format!("{} has no project settings", agent.id))
                .hint("omit --scope")
        })
    }

    /// Shows changes, and asks whether to make them.
    fn agree(&self, changes: &[PlannedChange], dry_run: bool) -> Result<bool, CommandError> {
        for PlannedChange { file, before, after, .. } in changes {
            show(
                file,
                before.as_deref().unwrap_or_default(),
                after.as_deref().unwrap_or_default(),
            )?;
        }
        if dry_run || changes.is_empty() {
            return Ok(false);
        }
        self.confirm_changes(changes.len())?;
        Ok(true)
    }

    fn confirm_changes(&self, count: usize) -> Result<(), CommandError> {
        if self.yes {
            return Ok(());
        }
        if !ask::can_ask() {
            return Err(CommandError::refused("cannot ask for confirmation without a terminal")
                .hint("confirm the change with --yes"));
        }
        let what = if count == 1 { "this change" } else { "these changes" };
        match ask::line(&format!("Make {what}? [y]es, [N]o: "), &ask::yes_or_no)? {
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
    fn of(place: &ServerArgs, agent: ConfigurableAgent, file: &Path) -> Result<Self, CommandError> {
        let folder = Home::from_environment()?.data_folder(CHANGES_FOLDER)?;
        let key = format!("{}\0{}", file.display(), place.name);
        let digits = digest::sha256_hex(key.as_bytes());
        let name = format!("{}-{}.json", agent.client.id(), digits.get(..16).unwrap_or(&digits));
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
