//! From permissions to a sandbox policy. What cannot be enforced is refused, never ignored.
//!
//! - [`unasked`] is what a dialect grants without a word, [`effective`] all that counts.
//! - `files`, `hosts`, `variables` and `programs` each turn one domain into a part of the policy.

mod files;
mod git;
mod glob;
mod hosts;
mod programs;
mod protected_paths;
mod variables;

use std::path::{Path, PathBuf};

use savoir_sandbox::{Access, Limits, PathGrant, Policy, Userland, Variable, Watch};
use savoir_skill::{
    Skill,
    dialect::DefaultFileAccess,
    permission::{Domain, Level, Permission, Tier},
};
use thiserror::Error;

pub use self::files::{is_protected, protect, stored_secrets};
pub(crate) use self::files::{never_written, protect_obeyed};
pub use self::git::led_by_repository;
pub use self::programs::{ProgramError, at, granted_names, resolve, search_path};
pub use self::protected_paths::{ProtectedPaths, SIGNS_OF_GIT, WritePolicy, is_repository};
pub use self::variables::is_variable_name;
pub(crate) use self::variables::{Visible, is_never, is_secret, visible_secrets};
use crate::{approval::ExtraGrants, loaded_skill::HISTORY, run_environment::RunEnvironment};

/// A permission that is not granted, and why.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{permission}` cannot be granted: {reason}")]
pub struct Refusal {
    /// As declared.
    pub permission: String,
    /// Why.
    pub reason: String,
    /// What can be done about it.
    pub hint: String,
}

impl Refusal {
    fn new(permission: &impl ToString, reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { permission: permission.to_string(), reason: reason.into(), hint: hint.into() }
    }
}

/// What a run is granted, before it becomes a policy.
#[derive(Clone, Debug)]
pub struct Grants<'a> {
    /// What the skill declares and what its dialect implies.
    pub permissions: &'a [Permission],
    /// What a person adds.
    pub extra: &'a ExtraGrants,
    /// Where it happens.
    pub run_env: &'a RunEnvironment,
    /// The skill's folder or file, as approvals have it.
    pub skill: &'a Path,
    /// The skill's folder, which can be read.
    pub folder: Option<&'a Path>,
    /// Folders and files that the run needs itself.
    pub support: &'a [PathBuf],
    /// How far the skill is trusted.
    pub tier: Tier,
    /// Programs by path.
    pub programs: &'a [PathBuf],
    /// Whether its dialect lets it start the programs of the system.
    pub runs_programs: bool,
    /// Names of variables that the skill requires.
    pub variables: &'a [String],
    /// Variables that the run sets itself.
    pub own_variables: &'a [(String, String)],
    /// Where it starts.
    pub directory: &'a Path,
}

/// What the dialect of a skill grants without a word, here.
pub fn unasked(skill: &Skill, run_env: &RunEnvironment) -> Vec<Permission> {
    let grant = |level, path: &Path| {
        let scope = Some(format!("{}/**", path.display()));
        Permission { domain: Domain::Filesystem, level, scope }
    };
    // Nobody gets a whole home or machine without a word, whatever is kept in a repository.
    let is_part = |path: &&PathBuf| **path != run_env.home && path.parent().is_some();
    let mut permissions = Vec::new();
    if wants_no_files(skill) {
        return permissions;
    }
    match skill.dialect.running().files {
        DefaultFileAccess::Nothing => {}
        DefaultFileAccess::Directory => {
            let directory = Some(&run_env.directory).filter(is_part);
            permissions.extend(directory.map(|directory| grant(Level::Read, directory)));
        }
        DefaultFileAccess::Repository => {
            if let Some(repository) = run_env.repository.as_ref().filter(is_part) {
                permissions.push(grant(Level::Read, repository));
                if skill.policy.read_only != Some(true) {
                    permissions.push(grant(Level::Write, repository));
                }
            } else {
                let directory = Some(&run_env.directory).filter(is_part);
                permissions.extend(directory.map(|directory| grant(Level::Read, directory)));
            }
        }
    }
    permissions
}

/// Whether a skill says that it touches no files: `filesystem: false`, `filesystem:none`.
fn wants_no_files(skill: &Skill) -> bool {
    let mut files = skill.permissions.iter().filter(|entry| entry.domain == Domain::Filesystem);
    files.any(|entry| entry.level == Level::None)
}

/// What the dialect of a skill grants without a word in other places than this one, where it grants
/// nothing so: an answer holds in all of them.
pub fn elsewhere(skill: &Skill, run_env: &RunEnvironment) -> Option<&'static str> {
    if wants_no_files(skill) {
        return None;
    }
    let files = skill.dialect.running().files;
    // Outside a repository, the folder can only be read.
    let is_all = run_env.repository.is_some() || files != DefaultFileAccess::Repository;
    if is_all && !unasked(skill, run_env).is_empty() {
        return None;
    }
    match files {
        DefaultFileAccess::Nothing => None,
        DefaultFileAccess::Directory => Some("reads the files below the folder in which it is run"),
        DefaultFileAccess::Repository if skill.policy.read_only == Some(true) => {
            Some("reads the files below the repository in which it is run")
        }
        DefaultFileAccess::Repository => Some(
            "reads, creates, changes and deletes files below the repository in which it is run",
        ),
    }
}

/// The permissions that count: those of the skill, and those that its dialect grants unasked.
pub fn effective(skill: &Skill, run_env: &RunEnvironment) -> Vec<Permission> {
    skill.permissions.iter().cloned().chain(unasked(skill, run_env)).collect()
}

impl Grants<'_> {
    /// The policy that holds exactly this.
    pub fn policy(&self, limits: Limits, watch: Watch) -> Result<Policy, Refusal> {
        for permission in self.permissions {
            check_domain(permission)?;
        }
        let network = hosts::network(self.permissions, self.extra)?;
        let mut policy = Policy {
            paths: self.base_paths(),
            programs: self.programs.to_vec(),
            userland: programs::userland(self.permissions, self.runs_programs),
            directory: self.directory.to_owned(),
            limits,
            watch,
            ..Policy::default()
        };
        let base = policy.paths.len();
        files::add(self, &mut policy.paths)?;
        let granted: Vec<PathBuf> =
            policy.paths[base..].iter().map(|grant| grant.path.clone()).collect();
        policy.paths.extend(self.history(&granted));
        uncover(&mut policy.paths);
        drop_weaker(&mut policy.paths);
        let added = programs::granted(self.permissions, self.extra)?;
        policy.programs.extend(added.iter().cloned());
        if policy.userland == Userland::System {
            policy.programs.extend(programs::of_environments(&granted));
        }
        let secrets = if network == savoir_sandbox::Network::None {
            variables::Secrets::Plain
        } else {
            variables::Secrets::Masked
        };
        policy.environment = variables::build(self, &added, secrets)?;
        policy.network = network;
        for (name, value) in self.own_variables {
            policy.environment.insert(name.clone(), Variable::Plain(value.clone()));
        }
        Ok(policy)
    }

    /// What other programs obey here, without what was granted by its name.
    pub(crate) fn protected(&self) -> ProtectedPaths {
        ProtectedPaths::of(self.run_env).opening(files::named_for_writing(self))
    }

    /// The history of version control in the skill's folder does not count for an approval, so it
    /// is not shown either, unless the folder is the user's own working ground.
    fn history(&self, granted: &[PathBuf]) -> Vec<PathGrant> {
        let own = self.folder.filter(|folder| !granted.iter().any(|path| folder.starts_with(path)));
        let places = own.into_iter().flat_map(|folder| HISTORY.map(|name| folder.join(name)));
        let there = places.filter(|path| path.symlink_metadata().is_ok_and(|found| found.is_dir()));
        there.map(PathGrant::private).collect()
    }

    /// The home of the run, where writing is allowed and nothing is kept. If the user is in the
    /// home, a tool would lose what it writes there, so it gets another one.
    fn private_home(&self) -> &Path {
        let RunEnvironment { directory, home, .. } = self.run_env;
        if directory == home { Path::new("/tmp/home") } else { home }
    }

    /// What every run has: its own temporary folder and home, the skill, and what runs it.
    fn base_paths(&self) -> Vec<PathGrant> {
        // Processes that share memory need the second one.
        let mut paths = vec![PathGrant::private("/tmp"), PathGrant::private("/dev/shm")];
        let home = self.private_home();
        if home.parent().is_some() {
            paths.push(PathGrant::private(home));
        }
        paths.extend(self.run_env.is_own.then(|| PathGrant::write(&self.run_env.directory)));
        paths.extend(self.folder.map(PathGrant::read));
        paths.extend(self.support.iter().map(PathGrant::read));
        paths
    }
}

/// Whoever is granted the home or the temporary folder as a whole does not get an empty one in its
/// place.
fn uncover(paths: &mut Vec<PathGrant>) {
    let is_shown = |grant: &&PathGrant| matches!(grant.access, Access::Read | Access::Write);
    let shown: Vec<PathBuf> =
        paths.iter().filter(is_shown).map(|grant| grant.path.clone()).collect();
    paths.retain(|grant| {
        // A folder that does not exist cannot be mounted below a folder of the host.
        let has_place = || !shown.iter().any(|shown| grant.path.starts_with(shown));
        grant.access != Access::Private
            || !shown.contains(&grant.path) && (grant.path.is_dir() || has_place())
    });
}

/// What can be read and lies in something that can be written can be written, too: the folder that the user is
/// in may lie in a repository that was granted.
fn drop_weaker(paths: &mut Vec<PathGrant>) {
    let strong: Vec<PathGrant> =
        paths.iter().filter(|grant| grant.access != Access::Read).cloned().collect();
    paths.retain(|grant| {
        let above = strong.iter().filter(|other| grant.path.starts_with(&other.path));
        let nearest = above.max_by_key(|other| (other.path.components().count(), other.access));
        grant.access != Access::Read
            || nearest.is_none_or(|nearest| nearest.access != Access::Write)
    });
}

/// Domains that a sandbox cannot hold.
fn check_domain(permission: &Permission) -> Result<(), Refusal> {
    if permission.level == Level::None {
        return Ok(());
    }
    if let Some(problem) = permission.scope_problem() {
        let hint = "savoir check says how to write it";
        return Err(Refusal::new(permission, problem, hint));
    }
    match permission.refusal() {
        Some((reason, hint)) => Err(Refusal::new(permission, reason, hint)),
        None => Ok(()),
    }
}

/// Whether nothing but a person's signature stands behind the skill.
fn is_unproven(tier: Tier) -> bool {
    tier == Tier::Experimental
}
