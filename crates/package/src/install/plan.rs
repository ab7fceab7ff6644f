//! A planned change of the installed skills.

use std::{
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
};

use savoir_skill::convert::FieldReport;
use semver::Version;

use super::{AdoptionObstacle, ProjectFiles, folder_contents::FolderContents};
use crate::{
    Agent, Tree,
    lock::{AddedCapability, Capability, LockedSource},
    trust::Tier,
};

/// What becomes of a folder that Savoir did not fill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OccupiedFolders {
    /// It stays, and nothing is installed.
    #[default]
    Refuse,
    /// The skill takes its place. The journal keeps what was there.
    Replace,
}

/// What becomes of files that their owner edited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UserEdits {
    /// They stay; what is new is merged into them.
    #[default]
    Keep,
    /// They go. The journal keeps what was there.
    Discard,
}

/// How skills are installed.
#[derive(Clone, Debug, Default)]
pub struct InstallOptions {
    /// Whether `savoir.toml` is to name these agents if it names none.
    pub agents_are_kept: bool,
    /// The agents that get those that were asked for, beside those that have them already.
    pub agents: Vec<&'static Agent>,
    /// What becomes of folders that Savoir did not fill.
    pub occupied: OccupiedFolders,
    /// What becomes of edits.
    pub edits: UserEdits,
}

/// One thing that a plan does, or does not do, for people to read.
#[derive(Clone, Debug, PartialEq)]
pub enum PlannedChange {
    /// A skill is installed.
    New {
        /// Which one.
        name: String,
        /// Its version.
        version: Version,
        /// The agents that get it.
        agents: Vec<String>,
    },
    /// A skill gets another version, or other files.
    Updated {
        /// Which one.
        name: String,
        /// The version that was installed.
        from: Version,
        /// The version that takes its place.
        to: Version,
    },
    /// The signatures of a skill attest something else under the keys that are trusted now.
    Tier {
        /// Which one.
        name: String,
        /// The tier that the lock has.
        from: Tier,
        /// The tier that counts now.
        to: Tier,
        /// The trusted signer, if there is one.
        by: Option<String>,
    },
    /// A skill is put into further agents.
    AgentsAdded {
        /// Which one.
        name: String,
        /// The agents that get it.
        agents: Vec<String>,
    },
    /// A skill is removed.
    Removed {
        /// Which one.
        name: String,
        /// Its version.
        version: Version,
    },
    /// A skill stays although it was to go: others need it.
    StillNeeded {
        /// Which one.
        name: String,
        /// Who needs it.
        by: Vec<String>,
    },
    /// A folder is put right: its files are missing, or not what the lock says.
    Repaired(PathBuf),
    /// A folder that Savoir did not fill is replaced.
    Replaced(PathBuf),
    /// A folder is removed that Savoir filled with a skill for which nothing asks any more.
    Orphan(PathBuf),
    /// A skill that others put there is taken under the lock as it lies there.
    Adopted {
        /// Which one.
        name: String,
        /// Its version.
        version: Version,
        /// The agents that have it.
        agents: Vec<String>,
        /// Where it comes from.
        source: LockedSource,
    },
    /// A skill that others put there is not taken under the lock.
    Skipped {
        /// Its folder.
        folder: PathBuf,
        /// Why not.
        why: AdoptionObstacle,
    },
    /// A folder goes back to what it was.
    Restored(PathBuf),
    /// A folder that the change had made is removed.
    Undone(PathBuf),
    /// A folder that the lock names and that is missing is written.
    Written(PathBuf),
    /// A folder stays as it is: the skill comes from there.
    SourceFolder(PathBuf),
    /// A folder was edited and stays as it is.
    EditsLeft(PathBuf),
    /// Edits of a file and the new version go together.
    Merged {
        /// The folder of the skill.
        folder: PathBuf,
        /// The file.
        file: String,
    },
    /// Edits of a file and the new version do not go together: the places are marked.
    Conflict {
        /// The folder of the skill.
        folder: PathBuf,
        /// The file.
        file: String,
        /// How many places.
        places: usize,
    },
    /// A file that its owner edited or deleted stays as it is, though it is new, too.
    EditsKept {
        /// The folder of the skill.
        folder: PathBuf,
        /// The file.
        file: String,
    },
    /// A skill is written in another dialect.
    Converted {
        /// Which one.
        name: String,
        /// For which agent.
        agent: &'static str,
        /// What becomes of its fields.
        report: Vec<FieldReport>,
    },
}

impl fmt::Display for PlannedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New { name, version, agents } => {
                write!(f, "`{name}`{} is new in {}", shown(version), agents.join(", "))
            }
            Self::Updated { name, from, to } if from == to => {
                write!(f, "`{name}`{} is updated: its files changed", shown(to))
            }
            Self::Updated { name, from, to } if to < from => {
                write!(f, "`{name}` is downgraded from {from} to {to}")
            }
            Self::Updated { name, from, to } => write!(f, "`{name}` goes from {from} to {to}"),
            Self::Tier { name, from, to, by: Some(by) } => {
                write!(f, "`{name}` is {to} now, signed by {by}; it was {from}")
            }
            Self::Tier { name, from, to, by: None } => {
                write!(f, "`{name}` is {to} now: no key that you trust signed it; it was {from}")
            }
            Self::AgentsAdded { name, agents } => {
                write!(f, "`{name}` is installed for {}", agents.join(", "))
            }
            Self::Removed { name, version } => write!(f, "`{name}`{} is removed", shown(version)),
            Self::StillNeeded { name, by } => {
                write!(f, "`{name}` stays, since it is needed by {}", by.join(", "))
            }
            Self::Repaired(folder) => write!(f, "{} is repaired", folder.display()),
            Self::Replaced(folder) => write!(f, "{} is replaced", folder.display()),
            Self::Orphan(folder) => {
                write!(f, "{} is removed, since nothing needs it", folder.display())
            }
            Self::Adopted { name, version, agents, source } => {
                write!(f, "`{name}` {version} is adopted in {}", agents.join(", "))?;
                if let Some(from) = source.adopted_from() {
                    write!(f, "; it came from {from}")?;
                }
                f.write_str(if source.is_out_of_reach() {
                    ", where savoir cannot fetch it yet"
                } else {
                    ""
                })
            }
            Self::Skipped { folder, why } => {
                write!(f, "{} is not adopted: {why}", folder.display())
            }
            Self::Restored(folder) => write!(f, "{} is restored", folder.display()),
            Self::Undone(folder) => write!(f, "{} is removed", folder.display()),
            Self::Written(folder) => write!(f, "{} is installed", folder.display()),
            Self::SourceFolder(folder) => {
                write!(f, "{} is left unchanged: it is the source of the skill", folder.display())
            }
            Self::EditsLeft(folder) => {
                write!(f, "{} was edited and is left unchanged", folder.display())
            }
            Self::Merged { folder, file } => {
                write!(f, "{} is merged with your edits", folder.join(file).display())
            }
            Self::Conflict { folder, file, places } => {
                let places =
                    if *places == 1 { "1 conflict".into() } else { format!("{places} conflicts") };
                write!(f, "{} has {places}", folder.join(file).display())
            }
            Self::EditsKept { folder, file } => {
                write!(f, "{} keeps your edits", folder.join(file).display())
            }
            Self::Converted { name, agent, .. } => write!(f, "`{name}` is converted for {agent}"),
        }
    }
}

/// A version behind a blank; nothing where a skill has none.
fn shown(version: &Version) -> String {
    if *version == Version::new(0, 0, 0) { String::new() } else { format!(" {version}") }
}

/// A file that a plan changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange<'a> {
    /// The folder of the skill.
    pub folder: &'a Path,
    /// The file.
    pub path: &'a str,
    /// Its bytes now; nothing if it is new.
    pub before: Option<&'a [u8]>,
    /// Its bytes then; nothing if it goes.
    pub after: Option<&'a [u8]>,
}

/// A folder that is changed.
#[derive(Clone, Debug)]
pub(super) struct FolderStep {
    pub(super) folder: PathBuf,
    /// What lay there when the plan was made.
    pub(super) was: FolderContents,
    /// What is to lie there.
    pub(super) put: FolderContents,
}

/// What is going to be changed.
#[derive(Clone, Debug)]
pub struct InstallPlan {
    pub(super) root: PathBuf,
    pub(super) before: ProjectFiles,
    pub(super) after: ProjectFiles,
    pub(super) steps: Vec<FolderStep>,
    /// What the store gets.
    pub(super) keep: Vec<Tree>,
    /// Folders that somebody else brought to what the lock says.
    pub(super) confirmed: Vec<PathBuf>,
    pub(super) changes: Vec<PlannedChange>,
    pub(super) growth: Vec<AddedCapability>,
    /// The record of the journal that is taken back.
    pub(super) undoes: Option<PathBuf>,
    /// Folders that are removed if they are empty then.
    pub(super) remove_if_empty: Vec<PathBuf>,
}

impl InstallPlan {
    /// Whether nothing is to do.
    pub fn is_empty(&self) -> bool {
        !self.changes_project() && self.keep.is_empty()
    }

    /// Whether savoir.toml, savoir.lock or installed files change. The store may change without that.
    pub fn changes_project(&self) -> bool {
        self.before != self.after || self.undoes.is_some() || !self.steps.is_empty()
    }

    /// What it does, for people.
    pub fn changes(&self) -> &[PlannedChange] {
        &self.changes
    }

    /// Folders that were edited, and that it does not touch.
    pub fn edited_folders(&self) -> impl Iterator<Item = &Path> {
        let left = self.changes.iter().filter_map(|change| match change {
            PlannedChange::EditsLeft(folder) => Some(folder.as_path()),
            _ => None,
        });
        left.filter(|folder| self.steps.iter().all(|step| step.folder != *folder))
    }

    /// The names of the skills of which it writes files.
    pub fn written_skills(&self) -> BTreeSet<String> {
        let written = self.steps.iter().filter(|step| matches!(step.put, FolderContents::Tree(_)));
        let names = written.filter_map(|step| step.folder.file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    /// What new versions want and nobody accepted yet.
    pub fn added_capabilities(&self) -> &[AddedCapability] {
        &self.growth
    }

    /// Accepts that new versions want this permission or this tool; says whether any did.
    pub fn accept(&mut self, word: &str) -> bool {
        let before = self.growth.len();
        self.growth.retain(|growth| match &growth.capability {
            Capability::Permission(permission) => permission.to_string() != word,
            Capability::Tool(tool) => tool != word,
        });
        self.growth.len() < before
    }

    /// The files that it changes, for those who want to see every line.
    pub fn files(&self) -> Vec<FileChange<'_>> {
        let mut files = Vec::new();
        for step in &self.steps {
            let (was, put) = (step.was.tree(), step.put.tree());
            let paths = was.into_iter().chain(put).flat_map(Tree::files);
            let paths: BTreeSet<&str> = paths.map(|(path, _)| path).collect();
            for path in paths {
                let (before, after) = (bytes(was, path), bytes(put, path));
                if before != after {
                    files.push(FileChange { folder: &step.folder, path, before, after });
                }
            }
        }
        files
    }

    /// The folders that it changes.
    pub fn folders(&self) -> impl Iterator<Item = &PathBuf> {
        self.steps.iter().map(|step| &step.folder)
    }
}

fn bytes<'a>(tree: Option<&'a Tree>, path: &str) -> Option<&'a [u8]> {
    tree?.get(path).map(|file| file.bytes.as_slice())
}
