//! Defines an install plan: the planned changes of the installed skills.

use std::{
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
};

use savoir_skill::convert::FieldReport;
use semver::Version;

use super::{AdoptionObstacle, ProjectFiles, folder_contents::FolderContents};
use crate::{
    Agent, Tree, gaia_lock,
    lock::{self, AddedCapability, Capability, LockedSource},
    manifest,
    trust::Tier,
};

/// How to handle a folder with the name of the skill that Savoir did not write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OccupiedFolders {
    /// Leave the folder, and install nothing.
    #[default]
    Refuse,
    /// Replace the folder by the skill. The journal stores the old content.
    Replace,
}

/// How to handle files that the user edited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UserEdits {
    /// Leave the edits, and merge new versions into them.
    #[default]
    Keep,
    /// Discard the edits. The journal stores the old content.
    Discard,
}

#[derive(Clone, Debug, Default)]
pub struct InstallOptions {
    /// Whether to add these agents to `savoir.toml` if it names none.
    pub agents_are_kept: bool,
    /// The agents that get the requested skills, in addition to those that already have them.
    pub agents: Vec<&'static Agent>,
    pub occupied: OccupiedFolders,
    pub edits: UserEdits,
}

/// One change that a plan makes, or deliberately does not make, to show to the user.
#[derive(Clone, Debug, PartialEq)]
pub enum PlannedChange {
    /// A skill is installed.
    New {
        name: String,
        version: Version,
        /// The agents that get the skill.
        agents: Vec<String>,
    },
    /// A skill gets another version, or other files of the same version.
    Updated {
        name: String,
        /// The version that was installed.
        from: Version,
        /// The version that takes its place.
        to: Version,
    },
    /// The trust tier of a skill changes, because its signatures attest another tier under the keys
    /// that are trusted now.
    Tier {
        name: String,
        /// The tier in the lock.
        from: Tier,
        /// The new tier.
        to: Tier,
        /// The trusted signer, if there is one.
        by: Option<String>,
    },
    /// A skill is installed for more agents.
    AgentsAdded {
        name: String,
        /// The agents that get the skill.
        agents: Vec<String>,
    },
    /// A skill is removed.
    Removed { name: String, version: Version },
    /// A skill stays although its removal was requested, because other skills need it.
    StillNeeded {
        name: String,
        /// The skills that need it.
        by: Vec<String>,
    },
    /// A folder is repaired: its files are missing, or differ from the lock.
    Repaired(PathBuf),
    /// A folder that Savoir did not write is replaced.
    Replaced(PathBuf),
    /// A folder that Savoir wrote is removed, because nothing requires its skill any more.
    Orphan(PathBuf),
    /// A skill that another tool installed is added to the lock without changing its files.
    Adopted {
        name: String,
        version: Version,
        /// The agents that have the skill.
        agents: Vec<String>,
        /// The source that the lock names.
        source: LockedSource,
    },
    /// A skill that another tool installed is not added to the lock.
    Skipped {
        /// The folder of the skill.
        folder: PathBuf,
        /// The reason.
        why: AdoptionObstacle,
    },
    /// Undo restores the old content of a folder.
    Restored(PathBuf),
    /// Undo removes a folder that the change had created.
    Undone(PathBuf),
    /// A missing folder that the lock names is written.
    Written(PathBuf),
    /// A folder stays unchanged, because it is the source of the skill.
    SourceFolder(PathBuf),
    /// A folder was edited and stays unchanged.
    EditsLeft(PathBuf),
    /// The user's edits of a file and the new version were merged without conflict.
    Merged {
        /// The folder of the skill.
        folder: PathBuf,
        file: String,
    },
    /// The user's edits of a file conflict with the new version: the conflicts are marked in the
    /// file.
    Conflict {
        /// The folder of the skill.
        folder: PathBuf,
        file: String,
        /// The number of conflicts.
        places: usize,
    },
    /// A file that the user edited or deleted stays unchanged, though the new version changes it.
    EditsKept {
        /// The folder of the skill.
        folder: PathBuf,
        file: String,
    },
    /// A skill is converted to the dialect of an agent.
    Converted {
        name: String,
        /// The title of the agent.
        agent: &'static str,
        /// What happens to each field of the frontmatter.
        report: Vec<FieldReport>,
    },
}

impl fmt::Display for PlannedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New { name, version, agents } => {
                write!(f, "`{name}`{} is installed for {}", shown(version), agents.join(", "))
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

/// Formats a version with a leading space; returns nothing for 0.0.0, which means no version.
fn shown(version: &Version) -> String {
    if *version == Version::new(0, 0, 0) { String::new() } else { format!(" {version}") }
}

/// A file that a plan changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange<'a> {
    /// The folder of the skill.
    pub folder: &'a Path,
    /// The path of the file in the folder.
    pub path: &'a str,
    /// The old bytes; `None` if the file is new.
    pub before: Option<&'a [u8]>,
    /// The new bytes; `None` if the file is removed.
    pub after: Option<&'a [u8]>,
}

/// The change of one folder.
#[derive(Clone, Debug)]
pub(super) struct FolderStep {
    pub(super) folder: PathBuf,
    /// The content when the plan was made.
    pub(super) was: FolderContents,
    /// The new content.
    pub(super) put: FolderContents,
}

/// A planned change of a skill set, which [`SkillSet::apply`](super::SkillSet::apply) applies.
#[derive(Clone, Debug)]
pub struct InstallPlan {
    pub(super) root: PathBuf,
    pub(super) before: ProjectFiles,
    pub(super) after: ProjectFiles,
    pub(super) steps: Vec<FolderStep>,
    /// The skills to add to the store.
    pub(super) keep: Vec<Tree>,
    /// Folders that another program already changed to match the lock.
    pub(super) confirmed: Vec<PathBuf>,
    pub(super) changes: Vec<PlannedChange>,
    pub(super) growth: Vec<AddedCapability>,
    /// The journal record that the plan undoes.
    pub(super) undoes: Option<PathBuf>,
    /// Folders to remove if they are empty afterwards.
    pub(super) remove_if_empty: Vec<PathBuf>,
}

impl InstallPlan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        !self.changes_project() && self.keep.is_empty()
    }

    /// Whether `savoir.toml`, `savoir.lock` or installed files change. The store may change without
    /// them.
    pub fn changes_project(&self) -> bool {
        self.before != self.after || self.undoes.is_some() || !self.steps.is_empty()
    }

    /// The names of the files of the project that change, besides skills.
    pub fn changed_files(&self) -> Vec<&'static str> {
        let (before, after) = (&self.before, &self.after);
        let files = [
            (manifest::FILE, before.manifest != after.manifest),
            (lock::FILE, before.lock != after.lock),
            (gaia_lock::FILE, before.gaia != after.gaia),
        ];
        files.into_iter().filter(|(_, changes)| *changes).map(|(file, _)| file).collect()
    }

    /// The changes to show to the user.
    pub fn changes(&self) -> &[PlannedChange] {
        &self.changes
    }

    /// Edited folders that the plan does not change.
    pub fn edited_folders(&self) -> impl Iterator<Item = &Path> {
        let left = self.changes.iter().filter_map(|change| match change {
            PlannedChange::EditsLeft(folder) => Some(folder.as_path()),
            _ => None,
        });
        left.filter(|folder| self.steps.iter().all(|step| step.folder != *folder))
    }

    /// The names of the skills whose files the plan writes.
    pub fn written_skills(&self) -> BTreeSet<String> {
        let written = self.steps.iter().filter(|step| matches!(step.put, FolderContents::Tree(_)));
        let names = written.filter_map(|step| step.folder.file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    /// The capabilities that new versions request and the user has not accepted yet.
    pub fn added_capabilities(&self) -> &[AddedCapability] {
        &self.growth
    }

    /// Accepts a permission or a tool for all new versions; returns whether any requested it.
    pub fn accept(&mut self, word: &str) -> bool {
        let before = self.growth.len();
        self.growth.retain(|growth| match &growth.capability {
            Capability::Permission(permission) => permission.to_string() != word,
            Capability::Tool(tool) => tool != word,
        });
        self.growth.len() < before
    }

    /// The changed files with old and new content, for example to show a diff.
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

    /// The folders that the plan changes.
    pub fn folders(&self) -> impl Iterator<Item = &PathBuf> {
        self.steps.iter().map(|step| &step.folder)
    }
}

fn bytes<'a>(tree: Option<&'a Tree>, path: &str) -> Option<&'a [u8]> {
    tree?.get(path).map(|file| file.bytes.as_slice())
}
