//! Turns permissions into a sandbox policy. A permission that cannot be enforced is refused, never
//! ignored.
//!
//! - [`implicit_permissions`] returns the permissions that a dialect grants without declaration or question;
//!   [`effective_permissions`] returns these together with the declared ones.
//! - `files`, `hosts`, `variables` and `programs` each turn one domain into a part of the policy.
//! - `protected_paths` and `git` list files that other programs execute or obey.

mod files;
mod git;
mod glob;
mod hosts;
mod programs;
mod protected_paths;
mod variables;

use std::path::{Path, PathBuf};

use savoir_sandbox::{
    Access, ExtraPrograms, Limits, PathGrant, Policy, RecordOpenedFiles, Variable,
};
use savoir_skill::{
    Skill,
    dialect::DefaultFileAccess,
    permission::{Domain, Level, Permission, Tier},
    skill::Runner,
};
use thiserror::Error;

pub(crate) use self::files::{absolute_path, always_protected, protect_names_in_writable_folders};
pub use self::files::{is_protected, protect, stored_secrets};
pub use self::git::{LinkedWorktree, paths_from_git_config};
pub use self::programs::{ProgramError, granted_names, program_at, resolve, search_path};
pub use self::protected_paths::{GIT_MARKERS, ProtectedPaths, WritePolicy, is_repository};
pub(crate) use self::variables::{VisibleSecrets, is_secret, visible_secrets};
use crate::{
    approval::ExtraGrants, loaded_skill::HISTORY_FOLDERS, run_environment::RunEnvironment,
};

/// A permission that is not granted, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{permission}` cannot be granted: {reason}")]
pub struct Refusal {
    /// The permission as the skill declares it.
    pub permission: String,
    pub reason: String,
    /// What the user can do about it.
    pub hint: String,
}

impl Refusal {
    fn new(permission: &impl ToString, reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { permission: permission.to_string(), reason: reason.into(), hint: hint.into() }
    }
}

/// Everything that a run is granted, from which [`Grants::policy`] builds the policy.
#[derive(Clone, Debug)]
pub struct Grants<'a> {
    /// The permissions that the skill declares and those that its dialect implies.
    pub permissions: &'a [Permission],
    /// Permissions that the user adds.
    pub extra: &'a ExtraGrants,
    /// The folder, repository, home and variables of the user who starts the run.
    pub run_env: &'a RunEnvironment,
    /// The skill's folder or file, with the path under which approvals are stored.
    pub skill: &'a Path,
    /// The skill's folder, which the run may read; none if the skill is a single file.
    pub folder: Option<&'a Path>,
    /// Files and folders that the run itself needs for reading, such as an interpreter.
    pub support: &'a [PathBuf],
    /// How far the skill is trusted.
    pub tier: Tier,
    /// Paths of programs that the run may start.
    pub programs: &'a [PathBuf],
    /// Whether the skill's dialect allows it to start the programs of the system.
    pub runs_programs: bool,
    /// Names of variables that the skill requires.
    pub variables: &'a [String],
    /// Environment variables that the run itself sets.
    pub own_variables: &'a [(String, String)],
    /// The working directory of the tool.
    pub directory: &'a Path,
}

/// Returns the file permissions that the dialect of a skill grants without declaration or question,
/// in the folder or repository of `run_env`.
pub fn implicit_permissions(skill: &Skill, run_env: &RunEnvironment) -> Vec<Permission> {
    let grant = |level, path: &Path| {
        let scope = Some(format!("{}/**", path.display()));
        Permission { domain: Domain::Filesystem, level, scope }
    };
    // The whole home or the root is never granted this way, even if it is a repository.
    let is_part = |path: &&PathBuf| **path != run_env.home && path.parent().is_some();
    let mut permissions = Vec::new();
    if wants_no_files(skill) {
        return permissions;
    }
    match default_file_access(skill) {
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

/// What the dialect of a skill grants by default. A skill with actions of OpenClaw gets what GAIA
/// grants to it, which is nothing that it does not declare: the same skill gets no more files before
/// it is migrated than afterwards.
fn default_file_access(skill: &Skill) -> DefaultFileAccess {
    let has_actions = skill.tools.iter().any(|tool| matches!(tool.runner, Runner::Handler { .. }));
    if has_actions { DefaultFileAccess::Nothing } else { skill.dialect.running().files }
}

/// Whether a skill declares that it touches no files: `filesystem: false`, `filesystem:none`.
fn wants_no_files(skill: &Skill) -> bool {
    let mut files = skill.permissions.iter().filter(|entry| entry.domain == Domain::Filesystem);
    files.any(|entry| entry.level == Level::None)
}

/// Describes what the dialect would grant without a question in other folders, if it grants less or
/// nothing in this one. The question shows it, because an approval is valid in all folders.
pub fn describe_implicit_elsewhere(
    skill: &Skill,
    run_env: &RunEnvironment,
) -> Option<&'static str> {
    if wants_no_files(skill) {
        return None;
    }
    let files = default_file_access(skill);
    // Outside a repository, the folder can only be read, so the description is needed there.
    let is_all = run_env.repository.is_some() || files != DefaultFileAccess::Repository;
    if is_all && !implicit_permissions(skill, run_env).is_empty() {
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

/// The permissions that a run has: those that the skill declares, and those of [`implicit_permissions`].
pub fn effective_permissions(skill: &Skill, run_env: &RunEnvironment) -> Vec<Permission> {
    skill.permissions.iter().cloned().chain(implicit_permissions(skill, run_env)).collect()
}

impl Grants<'_> {
    /// Builds the policy that allows exactly these grants.
    pub fn policy(
        &self,
        limits: Limits,
        record_opened_files: RecordOpenedFiles,
    ) -> Result<Policy, Refusal> {
        for permission in self.permissions {
            check_domain(permission)?;
        }
        let network = hosts::network(self.permissions, self.extra)?;
        let mut policy = Policy {
            paths: self.base_paths(),
            programs: self.programs.to_vec(),
            extra_programs: programs::extra_programs(self.permissions, self.runs_programs),
            directory: self.directory.to_owned(),
            limits,
            record_opened_files,
            ..Policy::default()
        };
        let base = policy.paths.len();
        files::add_file_grants(self, &mut policy.paths)?;
        let granted: Vec<PathBuf> =
            policy.paths[base..].iter().map(|grant| grant.path.clone()).collect();
        policy.paths.extend(self.history(&granted));
        show_granted_folders(&mut policy.paths);
        remove_weaker_grants(&mut policy.paths);
        let added = programs::granted_programs(self.permissions, self.extra)?;
        policy.programs.extend(added.iter().cloned());
        if policy.extra_programs == ExtraPrograms::System {
            policy.programs.extend(programs::environment_programs(&granted));
        }
        let secrets = if network == savoir_sandbox::Network::None {
            variables::SecretForm::Plain
        } else {
            variables::SecretForm::Masked
        };
        policy.environment = variables::build(self, &added, secrets)?;
        policy.network = network;
        for (name, value) in self.own_variables {
            policy.environment.insert(name.clone(), Variable::Plain(value.clone()));
        }
        Ok(policy)
    }

    /// Files that other programs execute or obey here, without those that are granted by name.
    pub(crate) fn protected(&self) -> ProtectedPaths {
        ProtectedPaths::of(self.run_env).with_opened(files::paths_opened_for_writing(self))
    }

    /// Hides the version control history in the skill's folder. An approval does not cover the
    /// history, so a run must not read it, unless the user also granted the folder as a place to
    /// work in.
    fn history(&self, granted: &[PathBuf]) -> Vec<PathGrant> {
        let own = self.folder.filter(|folder| !granted.iter().any(|path| folder.starts_with(path)));
        let places =
            own.into_iter().flat_map(|folder| HISTORY_FOLDERS.map(|name| folder.join(name)));
        let there = places.filter(|path| path.symlink_metadata().is_ok_and(|found| found.is_dir()));
        there.map(PathGrant::scratch).collect()
    }

    /// The home of the run: an empty writable folder that is deleted afterwards. If the user's
    /// working directory is the home, a tool would lose what it writes there, so the run gets
    /// another path.
    fn private_home(&self) -> &Path {
        let RunEnvironment { directory, home, .. } = self.run_env;
        if directory == home { Path::new("/tmp/home") } else { home }
    }

    /// The grants of every run: its own temporary folder and home, the skill, and the files that it
    /// needs to start.
    fn base_paths(&self) -> Vec<PathGrant> {
        // `/dev/shm` is for processes that share memory.
        let mut paths = vec![PathGrant::scratch("/tmp"), PathGrant::scratch("/dev/shm")];
        let home = self.private_home();
        if home.parent().is_some() {
            paths.push(PathGrant::scratch(home));
        }
        paths.extend(
            self.run_env.has_private_directory.then(|| PathGrant::write(&self.run_env.directory)),
        );
        paths.extend(self.folder.map(PathGrant::read));
        paths.extend(self.support.iter().map(PathGrant::read));
        paths
    }
}

/// Removes the private, empty folder where a run is granted the real home or temporary folder.
fn show_granted_folders(paths: &mut Vec<PathGrant>) {
    let is_shown = |grant: &&PathGrant| matches!(grant.access, Access::Read | Access::Write);
    let shown: Vec<PathBuf> =
        paths.iter().filter(is_shown).map(|grant| grant.path.clone()).collect();
    paths.retain(|grant| {
        // A folder that does not exist on the host cannot be mounted below a granted folder.
        let has_place = || !shown.iter().any(|shown| grant.path.starts_with(shown));
        grant.access != Access::Scratch
            || !shown.contains(&grant.path) && (grant.path.is_dir() || has_place())
    });
}

/// Removes read grants below write grants, so that they do not make a part of a writable folder
/// read-only: the user's working directory may be in a repository that was granted for writing.
fn remove_weaker_grants(paths: &mut Vec<PathGrant>) {
    let strong: Vec<PathGrant> =
        paths.iter().filter(|grant| grant.access != Access::Read).cloned().collect();
    paths.retain(|grant| {
        let above = strong.iter().filter(|other| grant.path.starts_with(&other.path));
        let nearest = above.max_by_key(|other| (other.path.components().count(), other.access));
        grant.access != Access::Read
            || nearest.is_none_or(|nearest| nearest.access != Access::Write)
    });
}

/// Refuses permissions that no run of the skill gets, so that approving it is refused, too. Invalid
/// scopes are left to [`decide`](fn@crate::approval::decide), which describes them.
pub fn refuse_never_granted(
    permissions: &[Permission],
    tier: Tier,
    extra: &ExtraGrants,
    run_env: &RunEnvironment,
) -> Result<(), Refusal> {
    let has_valid_scope = |permission: &&Permission| permission.scope_problem().is_none();
    let valid: Vec<Permission> = permissions.iter().filter(has_valid_scope).cloned().collect();
    hosts::network(&valid, &ExtraGrants::default())?;
    variables::check_names(&valid)?;
    files::refuse_every_file(&valid, tier, extra)?;
    files::refuse_protected_paths(&valid, extra, run_env)
}

/// Refuses permissions with an invalid scope, and domains that a sandbox cannot enforce.
fn check_domain(permission: &Permission) -> Result<(), Refusal> {
    if permission.level == Level::None {
        return Ok(());
    }
    if let Some(problem) = permission.scope_problem() {
        return Err(Refusal::new(permission, problem.reason, problem.hint));
    }
    match permission.refusal() {
        Some((reason, hint)) => Err(Refusal::new(permission, reason, hint)),
        None => Ok(()),
    }
}

/// Whether a skill is in the lowest tier, which unsigned skills have.
fn is_lowest_tier(tier: Tier) -> bool {
    tier == Tier::Experimental
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_that_no_run_gets_are_refused() {
        let is_refused = |text: &str, extra: &ExtraGrants| {
            let permission = text.parse().unwrap();
            let run_env = RunEnvironment::at(Path::new("/w"), Path::new("/h"));
            refuse_never_granted(&[permission], Tier::Experimental, extra, &run_env).is_err()
        };
        let none = ExtraGrants::default();
        for text in [
            "env:read:LD_*", "network:read:*.com", "filesystem:read:/", "filesystem:read",
            "filesystem:write:~/**", "filesystem:write:~/.bashrc", "filesystem:write:~/.ssh/**",
            "filesystem:write:.git/hooks", "filesystem:write:./.claude", "filesystem:write:.husky",
        ] {
            assert!(is_refused(text, &none), "{text}");
        }
        for text in ["env:read:FOO", "network:read", "filesystem:write:./out/**"] {
            assert!(!is_refused(text, &none), "{text}");
        }
        let both = ["filesystem:read:~/**", "filesystem:read", "filesystem:write:~/**"];
        let both = both.map(|text| text.parse().unwrap());
        let run_env = RunEnvironment::at(Path::new("/w"), Path::new("/h"));
        let refusal = refuse_never_granted(&both, Tier::Experimental, &none, &run_env).unwrap_err();
        assert!(refusal.hint.ends_with("--allow-write FOLDER"), "{refusal:?}");
        let write = ["out".to_owned()].into_iter().collect();
        let folder = ExtraGrants { write, ..ExtraGrants::default() };
        assert!(!is_refused("filesystem:write:~/**", &folder));
        assert!(is_refused("filesystem:write:/**", &folder));
        let opened = |path: &str| {
            let write = [path.to_owned()].into_iter().collect();
            ExtraGrants { write, ..ExtraGrants::default() }
        };
        assert!(!is_refused("filesystem:write:.husky", &opened(".husky")));
        for path in ["~/.ssh", "~/.bashrc", ".claude"] {
            assert!(is_refused("network:none", &opened(path)), "{path}");
        }
    }
}
