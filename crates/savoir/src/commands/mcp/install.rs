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
    clients::{Client, Whose},
};
use crate::{
    agent_settings::{must_be, put, read, unwritten},
    ask,
    error::CommandError,
    installed::{home, project_around},
    output,
};

/// Where it is written down what was changed, below the data of the user.
const CHANGES: &str = "mcp";

/// Write Savoir into the settings of an agent
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir mcp install --agent claude-code
  savoir mcp install --agent codex --dry-run         show what would change
  savoir mcp install --agent vscode --scope project --yes

The change is shown first, and nothing else in the file changes. A copy from before is kept, and
`savoir mcp uninstall` takes the change back.")]
pub(crate) struct Install {
    #[command(flatten)]
    place: Place,
    /// Show the change, and make none
    #[arg(long)]
    dry_run: bool,
}

/// Take Savoir out of the settings of an agent
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir mcp uninstall --agent claude-code
  savoir mcp uninstall --agent vscode --scope project --yes

If nobody changed the file since `savoir mcp install`, it becomes what it was before. Otherwise only
the entry is taken out.")]
pub(crate) struct Uninstall {
    #[command(flatten)]
    place: Place,
    /// Show the change, and make none
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, clap::Args)]
struct Place {
    /// The agent
    #[arg(long, value_name = "ID", value_parser = clients())]
    agent: Client,
    /// Whose settings
    #[arg(long, value_name = "SCOPE", default_value = "user")]
    scope: Whose,
    /// What the agent calls it
    #[arg(long, value_name = "NAME", default_value = "savoir", value_parser = server_name)]
    name: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

/// The agents whose settings are known, by every word that names them.
fn clients() -> impl TypedValueParser<Value = Client> {
    agents(&Client::AGENTS).try_map(|agent| Client::of(agent).ok_or("its settings are not known"))
}

fn server_name(name: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if (1..=64).contains(&name.len()) && name.chars().all(good) {
        Ok(name.to_owned())
    } else {
        Err("write it with letters, digits, - and _".to_owned())
    }
}

/// What was changed, so that it can be taken back.
#[derive(Debug, Serialize, Deserialize)]
struct Change {
    file: PathBuf,
    /// `None` if there was no file.
    before: Option<String>,
    after: String,
}

pub(super) fn install(args: &Install) -> Result<ExitCode, CommandError> {
    let Place { agent, name, .. } = &args.place;
    let file = args.place.file()?;
    let before = read(&file)?;
    let text = before.as_deref().unwrap_or_default();
    let there = agent.command(text, name).map_err(|wrong| wrong.within(&file))?;
    if let Some(words) = there.as_ref().filter(|words| !is_ours(words)) {
        let shown = output::harmless(&words.join(" "));
        return Err(CommandError::refused(format!(
            "{}: `{name}` is another server there: {shown}",
            file.display()
        ))
        .named("name-taken")
        .hint("choose another name: --name NAME"));
    }
    let command = command(args.place.scope)?;
    // What a person added to the words of the server stays.
    let words = there.map(|words| words[1..].to_vec());
    let after = agent.with(text, name, &command, &words.unwrap_or_else(|| vec!["mcp".to_owned()]));
    let after = after.map_err(|wrong| wrong.within(&file))?;
    if !agent.command(&after, name).is_ok_and(|words| words.is_some_and(|words| is_ours(&words))) {
        let message = format!("{}: nothing can be added there without harm", file.display());
        return Err(CommandError::refused(message)
            .named("settings-unclear")
            .hint(format!("add it yourself: `{name}` starts `{command} mcp`")));
    }
    if before.as_ref() == Some(&after) {
        output::note(&format!("{}: it is there already", file.display()));
        return Ok(ExitCode::SUCCESS);
    }
    show(&file, text, &after)?;
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    args.place.agree()?;
    must_be(&file, before.as_deref())?;
    let changes = Changes::of(&args.place, &file)?;
    // What was there before the first time is what `uninstall` brings back.
    let first = changes.read().filter(|known| Some(&known.after) == before.as_ref());
    let before = first.map_or(before, |known| known.before);
    changes.keep(&Change { file: file.clone(), before, after: after.clone() })?;
    put(&file, &after)?;
    output::note(&format!("{} starts Savoir from now on; start it again", agent.id()));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn uninstall(args: &Uninstall) -> Result<ExitCode, CommandError> {
    let Place { agent, name, .. } = &args.place;
    let file = args.place.file()?;
    let Some(before) = read(&file)? else { return Err(not_there(&file, name)) };
    let words = agent.command(&before, name).map_err(|wrong| wrong.within(&file))?;
    if !words.is_some_and(|words| is_ours(&words)) {
        return Err(not_there(&file, name));
    }
    let changes = Changes::of(&args.place, &file)?;
    let untouched = changes.read().filter(|known| known.after == before);
    let after = match untouched {
        Some(known) => known.before,
        None => Some(agent.without(&before, name).map_err(|wrong| wrong.within(&file))?),
    };
    show(&file, &before, after.as_deref().unwrap_or_default())?;
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    args.place.agree()?;
    must_be(&file, Some(&before))?;
    if let Some(after) = after {
        put(&file, &after)?;
    } else {
        // A link stays a link.
        let real = file.canonicalize().unwrap_or_else(|_| file.clone());
        fs::remove_file(&real).map_err(|error| unwritten(&file, &error.kind()))?;
    }
    changes.forget();
    output::note(&format!("{} does not start Savoir any more", agent.id()));
    Ok(ExitCode::SUCCESS)
}

impl Place {
    fn file(&self) -> Result<PathBuf, CommandError> {
        let home = home()?;
        let project = project_around(&home).unwrap_or_else(|| PathBuf::from("."));
        self.agent.file(self.scope, &home, &project).ok_or_else(|| {
            CommandError::input(format!("{} has no settings of a project", self.agent.id()))
                .hint("leave --scope out")
        })
    }

    fn agree(&self) -> Result<(), CommandError> {
        if self.yes {
            return Ok(());
        }
        if !ask::can_ask() {
            return Err(CommandError::refused("nobody can be asked without a terminal")
                .hint("agree to the change with --yes"));
        }
        match ask::line("Change it? [y]es, [N]o: ", &ask::yes_or_no)? {
            Some(true) => Ok(()),
            _ => Err(CommandError::refused("nothing was changed").named("declined")),
        }
    }
}

/// Whether a server is this program.
fn is_ours(words: &[String]) -> bool {
    let program = words.first().map(Path::new).and_then(Path::file_stem);
    program.is_some_and(|program| program == "savoir")
        && words.get(1).is_some_and(|word| word == "mcp")
}

/// How this program is started. What others share has no path of this machine in it.
fn command(whose: Whose) -> Result<String, CommandError> {
    if whose == Whose::Project {
        return Ok("savoir".to_owned());
    }
    let path = env::current_exe()
        .map_err(|error| CommandError::input(format!("this program has no path: {error}")))?;
    path.to_str().map(str::to_owned).ok_or_else(|| {
        CommandError::input(format!("{} is no text in UTF-8", path.display()))
            .hint("move the program to another folder")
    })
}

fn not_there(file: &Path, name: &str) -> CommandError {
    CommandError::input(format!("{}: Savoir is not there as `{name}`", file.display()))
        .named("not-installed")
        .hint("name it as it was installed: --name NAME, --scope user|project")
}

fn show(file: &Path, before: &str, after: &str) -> Result<(), CommandError> {
    let name = file.display().to_string();
    let diff = TextDiff::from_lines(before, after);
    let text = diff.unified_diff().context_radius(3).header(&name, &name).to_string();
    output::text(&output::harmless(&text))
}

/// Where it is written down what was changed in one file.
struct Changes {
    path: PathBuf,
}

impl Changes {
    fn of(place: &Place, file: &Path) -> Result<Self, CommandError> {
        let folder = Home::from_environment()?.data_folder(CHANGES)?;
        let key = format!("{}\0{}", file.display(), place.name);
        let digits = digest::sha256_hex(key.as_bytes());
        let name = format!("{}-{}.json", place.agent.id(), digits.get(..16).unwrap_or(&digits));
        Ok(Self { path: folder.join(name) })
    }

    fn read(&self) -> Option<Change> {
        serde_json::from_str(&fs::read_to_string(&self.path).ok()?).ok()
    }

    /// Settings may hold secrets: nobody else reads the copy.
    fn keep(&self, change: &Change) -> Result<(), CommandError> {
        let keep = || -> io::Result<()> {
            let folder = self.path.parent().unwrap_or(Path::new("."));
            let file = tempfile::NamedTempFile::new_in(folder)?;
            serde_json::to_writer(file.as_file(), change)?;
            file.as_file().sync_all()?;
            file.persist(&self.path)?;
            Ok(())
        };
        keep().map_err(|error| unwritten(&self.path, &error))
    }

    fn forget(&self) {
        if let Err(error) = fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            output::note(&format!("{} is left: {error}", self.path.display()));
        }
    }
}
