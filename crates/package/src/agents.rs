//! The agents that read skills, and the folders in which they look.
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
    /// The word that users type, such as `claude-code`.
    pub id: &'static str,
    /// Other words for it.
    pub aliases: &'static [&'static str],
    /// Its name.
    pub title: &'static str,
    /// Its folders in a project. Skills are written to the first.
    pub project: &'static [&'static str],
    /// Its folders outside of projects. Skills are written to the first.
    pub user: &'static [UserFolder],
    /// Where earlier releases of it kept their skills: read, and written to where only the home of
    /// such a release is there.
    pub former: &'static [UserFolder],
    /// Folders of others that it reads, too.
    pub also_reads: &'static [SharedFolder],
    /// The dialect that it understands best.
    pub dialect: Dialect,
    /// What it does with two skills of one name.
    pub precedence: Precedence,
    /// How to know that it is in use. Where there are none, its own folders are the signs.
    pub signs: &'static [UsageSign],
    /// How deep its skills may lie.
    pub depth: Depth,
}

/// A folder outside of projects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserFolder {
    /// What its path begins with.
    pub base: FolderBase,
    /// The rest of its path.
    pub path: &'static str,
}

impl UserFolder {
    /// Whether it belongs to no agent in particular.
    fn is_shared(self) -> bool {
        matches!(
            (self.base, self.path),
            (FolderBase::Home, ".agents/skills") | (FolderBase::Config, "agents/skills")
        )
    }
}

/// What the path of a folder outside of projects begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderBase {
    /// The user's home.
    Home,
    /// `$XDG_CONFIG_HOME`, else `~/.config`.
    Config,
    /// A variable that names a folder, else a folder in the user's home.
    Variable {
        /// The variable.
        name: &'static str,
        /// The folder below the home where it is not set.
        otherwise: &'static str,
    },
    /// The root of the system: what administrators provide.
    System,
}

/// A folder of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedFolder {
    /// In a project.
    Project(&'static str),
    /// Elsewhere.
    User(UserFolder),
}

/// What an agent does with two skills of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precedence {
    /// The one in the project wins.
    ProjectFirst,
    /// The one in the project wins, then the one in a folder that agents share, then its own.
    SharedFirst,
    /// The one in the user's home wins.
    UserFirst,
    /// Both are shown.
    Both,
}

/// What tells that an agent is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageSign {
    /// A file or folder outside of projects.
    User(UserFolder),
    /// A file or folder in the project.
    Project(&'static str),
    /// A program on the search path.
    Program(&'static str),
}

/// How deep the skills of an agent may lie in its folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Directly in the folder.
    One,
    /// In folders for categories, too.
    Nested,
}

/// Whose skills a folder holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Those of a project.
    Project,
    /// Those of a user, in every project.
    User,
    /// Those of everyone on the machine.
    System,
}

/// A folder that an agent reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadFolder {
    /// Where it is, or would be.
    pub path: PathBuf,
    /// Whose skills it holds.
    pub scope: Scope,
}

/// A word that names no agent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct UnknownAgent {
    /// The word.
    pub word: String,
    /// What may have been meant.
    pub near: Option<&'static str>,
}

impl std::fmt::Display for UnknownAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "unknown agent `{}`", self.word.escape_debug())?;
        match self.near {
            Some(near) => write!(f, "; did you mean `{near}`?"),
            None => f.write_str("; known are claude-code, codex, cursor and about 80 others"),
        }
    }
}

impl Agent {
    /// Every agent.
    pub const ALL: &'static [Self] = table::ALL;

    /// The agent that a word names.
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

    /// What is known about the dialect of a skill that is installed for it.
    pub fn hint(&self) -> Hint {
        Hint { dialect: self.dialect, why: format!("it is installed for {}", self.title) }
    }

    /// The folder of a project to which its skills are written.
    pub fn project_folder(&self, project: &Path) -> Option<PathBuf> {
        self.project.first().map(|folder| project.join(folder))
    }
}

/// The agent that a word may have meant: one that has it as a part of its name, or a similar one.
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

/// The agents on one machine, for one user.
#[derive(Clone, Debug)]
pub struct Agents {
    home: PathBuf,
    config: PathBuf,
    /// The variables of the table that are set.
    variables: Vec<(&'static str, PathBuf)>,
    search_path: Vec<PathBuf>,
    state: Option<PathBuf>,
}

impl Agents {
    /// The agents of the user with a home and an environment. A variable that is empty or holds no
    /// absolute path counts as not set.
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

    /// The user's home.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// `$XDG_STATE_HOME`, where it is set.
    pub(crate) fn state(&self) -> Option<&Path> {
        self.state.as_deref()
    }

    /// The agents that are in use on this machine or in a project.
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

    /// The folder outside of projects to which the skills of an agent are written.
    pub fn user_folder(&self, agent: &Agent) -> Option<PathBuf> {
        let present = self.resolve_user_folder(*agent.user.first()?);
        if has_parent_folder(&present) {
            return Some(present);
        }
        let mut former = agent.former.iter().map(|folder| self.resolve_user_folder(*folder));
        former.find(|folder| has_parent_folder(folder)).or(Some(present))
    }

    /// Every folder that an agent reads, whether it is there or not; of two skills of one name that
    /// in the earlier folder wins, unless the agent shows both.
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

    /// Where a folder outside of projects is.
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
