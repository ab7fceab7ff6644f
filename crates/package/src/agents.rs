//! The agents that Savoir knows, and the folders in which they look for skills.
//!
//! To add an agent, add a line to `agents/table.rs`.

mod folder_hints;
mod table;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use savoir_skill::{Dialect, Hint, name::MAX_COMPARED};
use serde::Serialize;
use thiserror::Error;

pub use folder_hints::{PLUGIN_FOLDER, hint_at, hint_of_path, is_in_plugin, plugin_hint};

/// A program that reads skills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The id that users type, such as `claude-code`.
    pub id: &'static str,
    /// Other accepted ids.
    pub aliases: &'static [&'static str],
    /// The display name.
    pub title: &'static str,
    /// Its folders in a project. Skills are written to the first.
    pub project: &'static [&'static str],
    /// Its folders outside of projects. Skills are written to the first.
    pub user: &'static [UserFolder],
    /// The folders of earlier releases. They are read, and written to if only the home folder of
    /// such a release exists.
    pub former: &'static [UserFolder],
    /// Folders of other agents that it also reads.
    pub also_reads: &'static [SharedFolder],
    /// The dialect that it supports best.
    pub dialect: Dialect,
    /// What it does with two skills of the same name.
    pub precedence: Precedence,
    /// How to detect that the agent is in use. If empty, its own folders are checked.
    pub signs: &'static [UsageSign],
    /// How deep its skills may be nested.
    pub depth: Depth,
}

/// A folder outside of projects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserFolder {
    pub base: FolderBase,
    /// The path below the base.
    pub path: &'static str,
}

impl UserFolder {
    /// Whether several agents use the folder.
    fn is_shared(self) -> bool {
        matches!(
            (self.base, self.path),
            (FolderBase::Home, ".agents/skills") | (FolderBase::Config, "agents/skills")
        )
    }
}

/// The base of a folder outside of projects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderBase {
    /// The user's home folder.
    Home,
    /// `$XDG_CONFIG_HOME`, else `~/.config`.
    Config,
    /// An environment variable that contains a path, else a folder in the home folder.
    Variable {
        name: &'static str,
        /// The folder below the home folder if the variable is not set.
        otherwise: &'static str,
    },
    /// The root of the file system, for skills that administrators provide.
    System,
}

/// A folder of another agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedFolder {
    Project(&'static str),
    /// Outside of projects.
    User(UserFolder),
}

/// What an agent does with two skills of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precedence {
    /// The skill in the project wins.
    ProjectFirst,
    /// The skill in the project wins, then the one in the shared folder, then the one in the
    /// agent's own folder.
    SharedFirst,
    /// The skill in the user's home folder wins.
    UserFirst,
    /// Both are shown.
    Both,
}

/// A sign that an agent is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageSign {
    /// A file or folder outside of projects exists.
    User(UserFolder),
    /// A file or folder in the project exists.
    Project(&'static str),
    /// A program is on the search path.
    Program(&'static str),
}

/// How deep the skills of an agent may be nested in its folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Directly in the folder.
    One,
    /// Also in category folders.
    Nested,
}

/// To whom the skills in a folder apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    Project,
    /// To a user, in every project.
    User,
    /// To all users of the machine.
    System,
}

/// A folder that an agent reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadFolder {
    /// The path; the folder need not exist.
    pub path: PathBuf,
    pub scope: Scope,
}

/// There is no agent with an id.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct UnknownAgent {
    pub word: String,
    /// The most similar id.
    pub near: Option<&'static str>,
}

impl std::fmt::Display for UnknownAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "unknown agent `{}`", self.word.escape_debug())?;
        match self.near {
            Some(near) => write!(f, "; did you mean `{near}`?"),
            None => f.write_str("; `savoir help --agents` lists all agents"),
        }
    }
}

impl Agent {
    pub const ALL: &'static [Self] = table::ALL;

    /// Returns the agent with an id or alias.
    ///
    /// ```
    /// use savoir_package::agents::Agent;
    ///
    /// assert_eq!(Agent::by_id("zenflow")?.id, "zencoder");
    /// let unknown = Agent::by_id("claud-code").unwrap_err();
    /// assert_eq!(unknown.near, Some("claude-code"));
    /// # Ok::<(), savoir_package::agents::UnknownAgent>(())
    /// ```
    pub fn by_id(word: &str) -> Result<&'static Self, UnknownAgent> {
        let lower = word.to_ascii_lowercase();
        let named = |agent: &&Self| agent.id == lower || agent.aliases.contains(&lower.as_str());
        let unknown = || UnknownAgent { word: word.to_owned(), near: nearest_agent_id(word) };
        Self::ALL.iter().find(named).ok_or_else(unknown)
    }

    /// Returns the dialect hint for a skill that is installed for this agent.
    pub fn hint(&self) -> Hint {
        Hint { dialect: self.dialect, why: format!("it is installed for {}", self.title) }
    }

    /// Returns the folder of a project to which skills are written.
    pub fn project_folder(&self, project: &Path) -> Option<PathBuf> {
        self.project.first().map(|folder| project.join(folder))
    }
}

/// Returns the most similar agent id: one with the word as a part between hyphens, else one that
/// differs in few letters.
fn nearest_agent_id(word: &str) -> Option<&'static str> {
    let lower = word.to_lowercase();
    let words = || Agent::ALL.iter().flat_map(|agent| [&[agent.id], agent.aliases].concat());
    let part = words().find(|known| known.split('-').any(|part| part == lower));
    let similar = words()
        .filter(|_| lower.len() <= MAX_COMPARED)
        .map(|known| (strsim::damerau_levenshtein(&lower, known), known))
        .filter(|(distance, known)| {
            *distance <= (known.len() / 3).max(1) && *distance < known.len()
        })
        .min_by_key(|(distance, _)| *distance);
    part.or(similar.map(|(_, known)| known))
}

/// The agents on this machine for one user.
#[derive(Clone, Debug)]
pub struct Agents {
    home: PathBuf,
    config: PathBuf,
    /// The environment variables of the agent table that are set.
    variables: Vec<(&'static str, PathBuf)>,
    search_path: Vec<PathBuf>,
    state: Option<PathBuf>,
}

impl Agents {
    /// Reads the environment. A variable that is empty or not an absolute path counts as not set.
    pub fn new(home: &Path, env: impl Fn(&str) -> Option<OsString>) -> Self {
        let folder = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let config = folder("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let mut variables: Vec<(&'static str, PathBuf)> = Vec::new();
        for name in table::variables() {
            if variables.iter().all(|(known, _)| *known != name)
                && let Some(path) = folder(name)
            {
                variables.push((name, path));
            }
        }
        let search_path = env("PATH").map(|path| std::env::split_paths(&path).collect());
        let search_path = search_path.unwrap_or_default();
        let state = folder("XDG_STATE_HOME");
        Self { home: home.to_owned(), config, variables, search_path, state }
    }

    pub fn home(&self) -> &Path {
        &self.home
    }

    /// `$XDG_STATE_HOME`, if it is set.
    pub(crate) fn state(&self) -> Option<&Path> {
        self.state.as_deref()
    }

    /// Returns the agents that are in use on this machine or in a project.
    pub fn detected(&self, project: &Path) -> Vec<&'static Agent> {
        Agent::ALL.iter().filter(|agent| self.is_detected(agent, project)).collect()
    }

    /// Whether an agent is in use on this machine or in a project.
    pub fn is_detected(&self, agent: &Agent, project: &Path) -> bool {
        if !agent.signs.is_empty() {
            return agent.signs.iter().any(|sign| self.is_sign_present(sign, project));
        }
        let own = agent.project.iter().filter(|folder| table::is_agent_specific(folder));
        own.map(|folder| project.join(folder)).any(|folder| has_parent_folder(&folder))
            || self.has_home(agent)
    }

    fn has_home(&self, agent: &Agent) -> bool {
        let own = agent.user.iter().chain(agent.former);
        let own = own.filter(|folder| !folder.is_shared());
        own.map(|folder| self.resolve_user_folder(*folder)).any(|folder| has_parent_folder(&folder))
    }

    fn is_sign_present(&self, sign: &UsageSign, project: &Path) -> bool {
        match sign {
            UsageSign::User(folder) => self.resolve_user_folder(*folder).exists(),
            UsageSign::Project(path) => project.join(path).exists(),
            UsageSign::Program(name) => {
                self.search_path.iter().any(|path| path.join(name).is_file())
            }
        }
    }

    /// Returns the folder outside of projects to which skills of an agent are written.
    pub fn user_folder(&self, agent: &Agent) -> Option<PathBuf> {
        let present = self.resolve_user_folder(*agent.user.first()?);
        if has_parent_folder(&present) {
            return Some(present);
        }
        let mut former = agent.former.iter().map(|folder| self.resolve_user_folder(*folder));
        former.find(|folder| has_parent_folder(folder)).or(Some(present))
    }

    /// Returns all folders that an agent reads, existing or not, in the order of precedence: if two
    /// skills have the same name, the one in the earlier folder wins, unless the agent shows both.
    pub fn reads(&self, agent: &Agent, project: &Path) -> Vec<ReadFolder> {
        let own = agent.project.iter().copied();
        let foreign = agent.also_reads.iter().filter_map(|foreign| match foreign {
            SharedFolder::Project(path) => Some(*path),
            SharedFolder::User(_) => None,
        });
        let in_project = own.chain(foreign).map(|path| project.join(path));
        let in_project = in_project.map(|path| ReadFolder { path, scope: Scope::Project });
        let mut folders: Vec<ReadFolder> = in_project.collect();
        let outside = self.reads_outside(agent);
        match agent.precedence {
            Precedence::UserFirst => folders.splice(0..0, outside).for_each(drop),
            _ => folders.extend(outside),
        }
        let mut seen: Vec<PathBuf> = Vec::new();
        folders.retain(|folder| {
            let new = !seen.contains(&folder.path);
            seen.push(folder.path.clone());
            new
        });
        folders
    }

    fn reads_outside(&self, agent: &Agent) -> Vec<ReadFolder> {
        let foreign = agent.also_reads.iter().filter_map(|foreign| match foreign {
            SharedFolder::Project(_) => None,
            SharedFolder::User(folder) => Some(folder),
        });
        let own = agent.user.iter().chain(agent.former);
        let mut folders: Vec<&UserFolder> = own.chain(foreign).collect();
        if agent.precedence == Precedence::SharedFirst {
            folders.sort_by_key(|folder| !folder.is_shared());
        }
        let outside = folders.into_iter().map(|folder| ReadFolder {
            path: self.resolve_user_folder(*folder),
            scope: if folder.base == FolderBase::System { Scope::System } else { Scope::User },
        });
        outside.collect()
    }

    /// Returns the path of a folder outside of projects.
    fn resolve_user_folder(&self, folder: UserFolder) -> PathBuf {
        let base = match folder.base {
            FolderBase::Home => self.home.clone(),
            FolderBase::Config => self.config.clone(),
            FolderBase::System => PathBuf::from("/"),
            FolderBase::Variable { name, otherwise } => {
                let set = self.variables.iter().find(|(known, _)| *known == name);
                set.map_or_else(|| self.home.join(otherwise), |(_, path)| path.clone())
            }
        };
        base.join(folder.path)
    }
}

fn has_parent_folder(path: &Path) -> bool {
    path.parent().is_some_and(Path::is_dir)
}

#[cfg(test)]
mod tests;
