//! `savoir enable` and `savoir disable`.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap_complete::engine::ArgValueCandidates;
use savoir_engine::Home;
use savoir_package::{
    Agent,
    agents::Scope,
    ledger::{LedgerEntry, SkillLocation},
};
use serde_json::{Value, json};

use crate::{
    agent_settings::{
        DisableSetting, SavoirDisableList, SettingsScope, Skill, check_link_stays_inside, must_be,
        put, read,
    },
    completion,
    error::CommandError,
    install_context::agent,
    installed::{Installed, Locked},
    lookup::unknown,
    output,
};

/// Enable skills that were disabled
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir enable pdf
  savoir enable pdf --agent codex
  savoir enable pdf --project            in the settings of this project

This removes what `savoir disable` wrote into the settings of agents.")]
pub(crate) struct Enable {
    #[command(flatten)]
    args: Args,
}

/// Stop agents from using skills without removing them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir disable pdf                     for every agent in use that sees it, and for Savoir
  savoir disable pdf --agent claude-code
  savoir disable pdf --project           in the settings of this project

This changes the settings of each agent and moves no files: Claude Code (permissions.deny), Codex
(skills.config), Gemini CLI (skills.disabled), OpenCode (permission.skill) and OpenClaw
(skills.entries). Other agents have no such setting; `savoir remove NAME --agent AGENT` removes a
skill from one of them. Without --agent, `savoir mcp` and `savoir chat` do not offer it either.")]
pub(crate) struct Disable {
    #[command(flatten)]
    args: Args,
}

#[derive(Debug, clap::Args)]
struct Args {
    /// Names of the skills
    #[arg(required = true, value_name = "NAME", add = ArgValueCandidates::new(completion::installed_skills))]
    names: Vec<String>,
    /// Only for these agents [default: those in use that see the skill, and Savoir]
    #[arg(long, short, value_name = "AGENT", value_delimiter = ',', value_parser = agent, add = ArgValueCandidates::new(completion::agents))]
    agent: Vec<&'static Agent>,
    /// Change the settings of this project instead of yours
    #[arg(long)]
    project: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DesiredState {
    Enabled,
    Disabled,
}

impl DesiredState {
    fn word(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Disabled => "disabled",
        }
    }
}

pub(crate) fn enable(command: &Enable) -> Result<ExitCode, CommandError> {
    run(&command.args, DesiredState::Enabled)
}

pub(crate) fn disable(command: &Disable) -> Result<ExitCode, CommandError> {
    run(&command.args, DesiredState::Disabled)
}

/// A change to a settings file.
struct Edit {
    skill: String,
    agent: &'static Agent,
    file: PathBuf,
    before: Option<String>,
    after: String,
}

impl Edit {
    fn changes(&self) -> bool {
        self.before.as_deref().unwrap_or_default() != self.after
    }
}

fn run(args: &Args, wanted: DesiredState) -> Result<ExitCode, CommandError> {
    let installed = Installed::open(None)?;
    let job = SwitchJob { args, wanted, installed: &installed };
    // All edits are prepared before anything is written.
    let (mut edits, mut unserved) = (Vec::<Edit>::new(), Vec::new());
    for name in &args.names {
        let entries = job.entries(name)?;
        for agent in job.agents(name, &entries) {
            match job.edit(name, agent, &entries, &edits)? {
                Some(edit) => edits.push(edit),
                None => unserved.push((name.as_str(), agent)),
            }
        }
    }
    if let ([], [(name, agent), ..], false) =
        (edits.as_slice(), unserved.as_slice(), args.agent.is_empty())
    {
        return Err(job.no_setting(name, agent));
    }
    let home = Home::from_environment()?;
    let mut disable_list = SavoirDisableList::read(&home)?;
    let project = args.project.then(|| installed.project()).flatten();
    let mut changed_own = Vec::new();
    for name in args.names.iter().filter(|_| args.agent.is_empty()) {
        let changed = match wanted {
            DesiredState::Disabled => disable_list.disable(name, project),
            DesiredState::Enabled => disable_list.enable(name, project),
        };
        changed_own.extend(changed.then_some(name.as_str()));
    }
    let mut still_disabled = Vec::new();
    for name in &args.names {
        if job.is_disabled_in_project(name, &edits, &disable_list)? {
            still_disabled.push(name);
        }
    }
    let changes = |name: &str| {
        changed_own.contains(&name) || edits.iter().any(|edit| edit.skill == name && edit.changes())
    };
    let is_installed = |name: &str| !installed.ledger.named(name).is_empty();
    // A removed skill can still be enabled if a setting disables it.
    if let Some(name) = args.names.iter().find(|name| !is_installed(name) && !changes(name)) {
        return Err(unknown(name, &installed));
    }
    for edit in edits.iter().filter(|edit| edit.changes()) {
        // If two skills change the same file, the second change starts from the result of the
        // first.
        must_be(&edit.file, edit.before.as_deref())?;
        put(&edit.file, &edit.after)?;
    }
    if !changed_own.is_empty() {
        disable_list.write(&home)?;
    }
    report(&job, &edits, &unserved, &changed_own)?;
    for name in still_disabled {
        output::note(&format!(
            "`{name}` is disabled in this project; to enable it: savoir enable {name} --project"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

struct SwitchJob<'a> {
    args: &'a Args,
    wanted: DesiredState,
    installed: &'a Installed,
}

impl SwitchJob<'_> {
    fn project(&self) -> &Path {
        self.installed.project().unwrap_or(Path::new("."))
    }

    /// Whether `enable` without --project leaves a skill disabled by the settings of the project.
    fn is_disabled_in_project(
        &self,
        name: &str,
        edits: &[Edit],
        own: &SavoirDisableList,
    ) -> Result<bool, CommandError> {
        if self.args.project || self.wanted == DesiredState::Disabled {
            return Ok(false);
        }
        let entries: Vec<&LedgerEntry> = self.installed.ledger.named(name).iter().collect();
        for edit in edits.iter().filter(|edit| edit.skill == name) {
            let Some(switch) = DisableSetting::of(edit.agent) else { continue };
            let home = self.installed.home();
            let Some(file) = switch.file(SettingsScope::Project, home, self.project()) else {
                continue;
            };
            let Some(text) = read(&file)? else { continue };
            let folders = folders(&entries, edit.agent);
            let enabled = switch.enable(&text, Skill { name, folders: &folders });
            if enabled.is_ok_and(|enabled| enabled != text) {
                return Ok(true);
            }
        }
        Ok(self.args.agent.is_empty() && own.is_disabled(name, self.installed.project()))
    }

    /// The installed skills of a name; with --project, those that the project has.
    fn entries(&self, name: &str) -> Result<Vec<&LedgerEntry>, CommandError> {
        let found = self.installed.ledger.named(name);
        if found.is_empty() && self.wanted == DesiredState::Disabled {
            return Err(unknown(name, self.installed));
        }
        let is_here = |entry: &&LedgerEntry| {
            !self.args.project
                || entry.places().iter().map(SkillLocation::scope).any(|s| s == Scope::Project)
        };
        Ok(found.iter().filter(is_here).collect())
    }

    /// The agents from --agent, else the agents in use that see the skill. `enable` also includes
    /// agents with a setting for a skill that they no longer see.
    fn agents(&self, name: &str, entries: &[&LedgerEntry]) -> Vec<&'static Agent> {
        if !self.args.agent.is_empty() {
            return self.args.agent.clone();
        }
        let has_rule = |agent: &Agent| {
            let rules = DisableSetting::of(agent);
            let rules = rules.map(|switch| switch.rules(self.installed.home(), self.project()));
            rules.is_some_and(|rules| rules.has(name, folders(entries, agent).into_iter()))
        };
        // Settings of a project also apply to skills that are installed for the user.
        let sees = |agent: &&&'static Agent| {
            let all = self.installed.ledger.named(name).iter();
            let seen = all.flat_map(LedgerEntry::agents).any(|known| known == **agent);
            seen || self.wanted == DesiredState::Enabled && has_rule(agent)
        };
        self.installed.in_use.iter().filter(sees).copied().collect()
    }

    /// The change to the settings of an agent; nothing if the agent has no such setting.
    fn edit(
        &self,
        name: &str,
        agent: &'static Agent,
        entries: &[&LedgerEntry],
        earlier: &[Edit],
    ) -> Result<Option<Edit>, CommandError> {
        let Some(switch) = DisableSetting::of(agent) else { return Ok(None) };
        let home = self.installed.home();
        let scope = if self.args.project { SettingsScope::Project } else { SettingsScope::User };
        let file = switch.file(scope, home, self.project());
        if let (SettingsScope::Project, Some(file)) = (scope, &file) {
            check_link_stays_inside(self.project(), file)?;
        }
        // Codex only has user settings, in which skills are listed by folder.
        let file = file.or_else(|| match switch {
            DisableSetting::Codex => switch.file(SettingsScope::User, home, self.project()),
            _ => None,
        });
        let Some(file) = file else { return Ok(None) };
        let before = match earlier.iter().rev().find(|edit| edit.file == file) {
            Some(edit) => Some(edit.after.clone()),
            None => read(&file)?,
        };
        let text = before.as_deref().unwrap_or_default();
        let folders = folders(entries, agent);
        let skill = Skill { name, folders: &folders };
        let after = match self.wanted {
            DesiredState::Disabled => switch.disable(text, skill),
            DesiredState::Enabled => switch.enable(text, skill),
        };
        let after = after.map_err(|wrong| wrong.in_file(&file))?;
        Ok(Some(Edit { skill: name.to_owned(), agent, file, before, after }))
    }
}

impl SwitchJob<'_> {
    fn no_setting(&self, name: &str, agent: &Agent) -> CommandError {
        CommandError::input(format!("{} has no setting that disables a skill", agent.title))
            .with_code("no-setting")
            .hint(self.removal_hint(name, agent))
            .hint(format!("agents with such a setting: {}", DisableSetting::AGENTS.join(", ")))
    }

    /// How to hide a skill from an agent without a setting for that.
    fn removal_hint(&self, name: &str, agent: &Agent) -> String {
        let locked: Vec<&Locked> =
            self.installed.locked.iter().filter(|locked| locked.name == name).collect();
        if locked.iter().flat_map(|locked| &locked.skill.agents).any(|id| id == agent.id) {
            let (title, id) = (agent.title, agent.id);
            return format!("to remove it from {title}: savoir remove {name} --agent {id}");
        }
        let sees = |entry: &&LedgerEntry| entry.agents().iter().any(|seen| seen.id == agent.id);
        let Some(entry) = self.installed.ledger.named(name).iter().find(sees) else {
            return format!("{} does not see `{name}`", agent.title);
        };
        let folder = self.installed.shown(entry.path());
        if locked.is_empty() {
            return format!("it reads {folder}; to hide the skill from it, move that folder away");
        }
        format!(
            "it reads {folder}, too, which belongs to another agent; to remove the skill from both: \
             savoir remove {name}"
        )
    }
}

/// The folders in which an agent sees a skill.
fn folders(entries: &[&LedgerEntry], agent: &Agent) -> Vec<PathBuf> {
    let seen = entries.iter().filter(|entry| entry.agents().iter().any(|a| a.id == agent.id));
    seen.map(|entry| entry.path().to_owned()).collect()
}

fn report(
    job: &SwitchJob<'_>,
    edits: &[Edit],
    unserved: &[(&str, &'static Agent)],
    own: &[&str],
) -> Result<(), CommandError> {
    let state = job.wanted.word();
    if job.args.json {
        let edits: Vec<Value> = edits
            .iter()
            .map(|edit| {
                json!({
                    "skill": edit.skill, "agent": edit.agent.id, "file": edit.file,
                    "changed": edit.changes(),
                })
            })
            .collect();
        let unserved: Vec<Value> = unserved
            .iter()
            .map(|(name, agent)| json!({ "skill": name, "agent": agent.id }))
            .collect();
        return output::json(
            &json!({ "state": state, "settings": edits, "savoir": own, "no_setting": unserved }),
        );
    }
    let mut page = String::new();
    for edit in edits {
        let file = job.installed.shown(&edit.file);
        let (name, title) = (&edit.skill, edit.agent.title);
        // Writing to a string cannot fail.
        let _ = if edit.changes() {
            writeln!(page, "{state} `{name}` for {title}: {file}")
        } else {
            writeln!(page, "`{name}` was already {state} for {title} in {file}")
        };
    }
    for name in own {
        let _ = writeln!(page, "{state} `{name}` for savoir mcp and savoir chat");
    }
    if page.is_empty() {
        page.push_str("nothing to do\n");
    }
    output::text(&output::sanitize(&page))?;
    let hidden = unserved.iter().filter(|_| job.wanted == DesiredState::Disabled);
    for (name, agent) in hidden {
        let hint = job.removal_hint(name, agent);
        output::note(&format!("{} has no setting for this; {hint}", agent.title));
    }
    Ok(())
}
