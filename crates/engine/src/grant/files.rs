//! Turns permissions for files into path grants: `filesystem:read`, `filesystem:write`, and
//! `database` permissions for databases that are files.

mod missing;

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use savoir_sandbox::{Access, PathGrant};
use savoir_skill::permission::{
    Domain, Level, PROTECTED_IN_GIT, PROTECTED_IN_HOME, PROTECTED_IN_PROJECT, Permission, Tier,
};

use super::{
    Grants, LinkedWorktree, Refusal,
    glob::{self, PathShape},
    is_lowest_tier,
    protected_paths::{self, ProtectedPaths, WritePolicy},
};
use crate::{
    approval::{ExtraGrants, shell_word},
    limits,
    run_environment::RunEnvironment,
    secrets,
};

/// Adds the grants that the permissions for files ask for.
pub(super) fn add_file_grants(
    grants: &Grants<'_>,
    paths: &mut Vec<PathGrant>,
) -> Result<(), Refusal> {
    let start = paths.len();
    let mut missing = Vec::new();
    for permission in grants.permissions {
        let Some(access) = requested_access(permission) else { continue };
        let Some(scope) = &permission.scope else {
            if !is_narrowed(permission, grants.tier, grants.extra) {
                paths.extend(grants_without_scope(grants, permission, access)?);
            }
            continue;
        };
        if writes_whole_home(permission) && is_narrowed(permission, grants.tier, grants.extra) {
            continue;
        }
        let path = absolute_path(scope, grants.run_env);
        match glob::path_shape(&path) {
            PathShape::Tree(path) => {
                if access == Access::Write {
                    refuse_whole_home(grants, permission, &path)?;
                    let opened = opened_paths(grants);
                    refuse_protected_path(grants.run_env, &opened, permission, &path)?;
                }
                missing.extend(add_tree(grants, permission, (path.clone(), access), paths)?);
                if permission.domain == Domain::Database && access == Access::Write {
                    for file in database_side_files(&path) {
                        let file = add_tree(grants, permission, (file, access), paths)?;
                        missing.extend(file.filter(|file| missing::can_be_created(file, grants)));
                    }
                }
            }
            PathShape::Pattern { base, pattern } => {
                let files = glob::expand(&base, &pattern, limits::MAX_EXPANDED_FILES);
                let files = files.ok_or_else(|| {
                    let reason =
                        format!("it matches more than {} files", limits::MAX_EXPANDED_FILES);
                    Refusal::new(permission, reason, "grant a folder: end it with /**")
                })?;
                // A pattern for writing covers the files that exist: the sandbox cannot grant the
                // names of files that are created later.
                let opened = opened_paths(grants);
                let is_allowed = |path: &PathBuf| {
                    access == Access::Read
                        || refuse_protected_path(grants.run_env, &opened, permission, path).is_ok()
                };
                let files = files.into_iter().filter(is_allowed);
                paths.extend(files.map(|path| PathGrant { path, access }));
            }
        }
    }
    for (list, access) in [(&grants.extra.read, Access::Read), (&grants.extra.write, Access::Write)]
    {
        for scope in list {
            let path = absolute_path(scope.strip_suffix("/**").unwrap_or(scope), grants.run_env);
            missing.extend(add_tree(grants, scope, (path, access), paths)?);
        }
    }
    for path in missing {
        missing::grant_parent_folder(&path, grants, paths)?;
    }
    add_shared_repository(grants.run_env, paths);
    let writable: Vec<PathBuf> = paths[start..]
        .iter()
        .filter(|grant| matches!(grant.access, Access::Write | Access::CreateGranted))
        .map(|grant| grant.path.clone())
        .collect();
    let opened = opened_paths(grants);
    paths.extend(protect(grants.run_env, grants.folder, &writable, &opened)?);
    let protected = protect_names_in_writable_folders(grants.run_env, &writable, &opened, paths);
    paths.extend(protected);
    let is_shown = |folder: &PathBuf| paths.iter().any(|grant| folder.starts_with(&grant.path));
    let secrets: Vec<PathBuf> = stored_secrets(grants.run_env).filter(is_shown).collect();
    paths.extend(secrets.into_iter().map(PathGrant::hidden));
    Ok(())
}

/// Lets a run that sees a linked worktree read the repository, as it could in the main worktree.
fn add_shared_repository(run_env: &RunEnvironment, paths: &mut Vec<PathGrant>) {
    let (Some(root), Some(worktree)) = (&run_env.repository, &run_env.worktree) else { return };
    let pointer = root.join(".git");
    let sees_it = |grant: &PathGrant| {
        matches!(grant.access, Access::Read | Access::Write) && pointer.starts_with(&grant.path)
    };
    if paths.iter().any(sees_it) {
        paths.push(PathGrant::read(&worktree.common));
    }
}

/// Folders in which Savoir stores secrets. No skill sees them, even if a folder around them is
/// granted.
fn agent_secret_folders(run_env: &RunEnvironment) -> impl Iterator<Item = PathBuf> {
    run_env.savoir_folders.iter().map(|folder| folder.join(secrets::FOLDER))
}

/// The folders with stored secrets that exist.
pub fn stored_secrets(run_env: &RunEnvironment) -> impl Iterator<Item = PathBuf> {
    agent_secret_folders(run_env).filter(|folder| folder.is_dir())
}

/// Protects the names in [`protected_paths`] below writable folders, unless they are granted by
/// name.
pub(crate) fn protect_names_in_writable_folders(
    run_env: &RunEnvironment,
    writable: &[PathBuf],
    opened: &[PathBuf],
    paths: &[PathGrant],
) -> Vec<PathGrant> {
    let protected = protected_paths_in_project(run_env).into_iter().filter(|path| {
        let is_named = opened.contains(path) || paths.iter().any(|grant| grant.path == *path);
        !is_named && writable.iter().any(|root| path.starts_with(root))
    });
    protected.map(|path| PathGrant::protected(first_link(path))).collect()
}

/// The first symlink in a path, or the path if it has none.
fn first_link(path: PathBuf) -> PathBuf {
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    above.into_iter().find(|step| step.is_symlink()).map(Path::to_owned).unwrap_or(path)
}

/// Files and folders that the user or the skill names for writing, whether they exist or not.
pub(super) fn paths_opened_for_writing(grants: &Grants<'_>) -> Vec<PathBuf> {
    let is_granted = |permission: &&Permission| {
        !writes_whole_home(permission) || !is_narrowed(permission, grants.tier, grants.extra)
    };
    let declared = grants.permissions.iter().filter(is_granted).filter_map(|permission| {
        let scope = permission
            .scope
            .as_ref()
            .filter(|_| requested_access(permission) == Some(Access::Write));
        let scope = scope?.strip_suffix("/**").unwrap_or(scope?);
        Some(absolute_path(scope, grants.run_env))
    });
    declared.chain(opened_paths(grants)).collect()
}

/// The protected names in the working directory and in its repository, such as hooks and settings.
fn protected_paths_in_project(run_env: &RunEnvironment) -> Vec<PathBuf> {
    let roots = [Some(&run_env.directory), run_env.repository.as_ref()];
    let mut paths = Vec::new();
    for root in roots.into_iter().flatten() {
        paths.extend(protected_paths::names().map(|(name, _)| root.join(name)));
        // A `HEAD` file, together with some other folders, makes a folder a repository.
        paths.extend((!root.join("HEAD").exists()).then(|| root.join("HEAD")));
    }
    paths.sort();
    paths.dedup();
    paths
}

/// Files that SQLite creates beside a database while it writes.
fn database_side_files(path: &Path) -> [PathBuf; 3] {
    ["-journal", "-wal", "-shm"].map(|end| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    })
}

fn requested_access(permission: &Permission) -> Option<Access> {
    match (permission.domain, permission.level) {
        (Domain::Filesystem | Domain::Database, Level::Read) => Some(Access::Read),
        (Domain::Filesystem | Domain::Database, Level::Write) => Some(Access::Write),
        _ => None,
    }
}

/// The grants for a permission without a scope. "All files" never means the whole machine: it means
/// the user's home and the working directory, and only for signed skills.
fn grants_without_scope(
    grants: &Grants<'_>,
    permission: &Permission,
    access: Access,
) -> Result<Vec<PathGrant>, Refusal> {
    refuse_unsigned(grants, permission)?;
    let RunEnvironment { directory, home, .. } = grants.run_env;
    let mut paths = vec![PathGrant { path: home.clone(), access }];
    // A folder around the home has the files of other users.
    if !home.starts_with(directory) && !directory.starts_with(home) {
        paths.push(PathGrant { path: directory.clone(), access });
    }
    Ok(paths)
}

/// Refuses a permission for every file, or for the whole home, to unsigned skills.
fn refuse_unsigned(grants: &Grants<'_>, permission: &Permission) -> Result<(), Refusal> {
    if is_lowest_tier(grants.tier) || grants.run_env.home.parent().is_none() {
        return Err(every_file(permission, permission.level));
    }
    Ok(())
}

fn whole_machine(permission: &impl ToString) -> Refusal {
    Refusal::new(permission, "it means every file", "name the folder that is needed")
}

/// The refusal of a permission for every file. `level` is the highest that the skill asks for.
fn every_file(permission: &Permission, level: Level) -> Refusal {
    let option = if level == Level::Write { "--allow-write" } else { "--allow-read" };
    Refusal::new(
        permission,
        "it means every file, and the skill is unsigned",
        format!(
            "name the folder in the skill, such as ./data/**, or grant one yourself: \
             savoir approve SKILL {option} FOLDER"
        ),
    )
}

/// Whether a permission names the whole home for writing, as one without a scope does.
fn writes_whole_home(permission: &Permission) -> bool {
    permission.domain == Domain::Filesystem
        && permission.level == Level::Write
        && matches!(permission.scope.as_deref(), Some("~" | "~/" | "~/**"))
}

/// Whether the folders that the user grants replace a permission for every file, which an unsigned
/// skill never gets as a whole.
fn is_narrowed(permission: &Permission, tier: Tier, extra: &ExtraGrants) -> bool {
    let is_granted = match permission.level {
        Level::Read => !extra.read.is_empty() || !extra.write.is_empty(),
        Level::Write => !extra.write.is_empty(),
        _ => false,
    };
    permission.domain == Domain::Filesystem && is_lowest_tier(tier) && is_granted
}

/// Refuses a permission for every file that no run of the skill gets.
pub(super) fn refuse_every_file(
    permissions: &[Permission],
    tier: Tier,
    extra: &ExtraGrants,
) -> Result<(), Refusal> {
    let files = permissions.iter().filter(|permission| {
        permission.domain == Domain::Filesystem && permission.level != Level::None
    });
    let is_root =
        |permission: &&Permission| matches!(permission.scope.as_deref(), Some("/" | "/**"));
    if let Some(root) = files.clone().find(is_root) {
        return Err(whole_machine(root));
    }
    let files = files.filter(|it| it.scope.is_none() || writes_whole_home(it));
    let refused: Vec<&Permission> = files
        .filter(|permission| is_lowest_tier(tier) && !is_narrowed(permission, tier, extra))
        .collect();
    // One folder that is granted for writing replaces all of them.
    let writes = refused.iter().any(|permission| permission.level == Level::Write);
    let level = if writes { Level::Write } else { Level::Read };
    refused.first().map_or(Ok(()), |permission| Err(every_file(permission, level)))
}

/// Applies the rule of [`grants_without_scope`] to a skill that names the whole home, or a folder above it.
fn refuse_whole_home(
    grants: &Grants<'_>,
    permission: &Permission,
    path: &Path,
) -> Result<(), Refusal> {
    let is_home = path.parent().is_some() && grants.run_env.home.starts_with(path);
    if grants.run_env.has_private_directory || !is_home {
        return Ok(());
    }
    refuse_unsigned(grants, permission)
}

/// Refuses a skill's own permission to write files that other programs run or take their rights
/// from. Only the user can grant that.
fn refuse_protected_path(
    run_env: &RunEnvironment,
    opened: &[PathBuf],
    permission: &Permission,
    path: &Path,
) -> Result<(), Refusal> {
    // A hint to grant such a path would lead to the next refusal.
    refuse_never_written(run_env, opened, permission, path)?;
    let roots = [Some(&run_env.directory), run_env.repository.as_ref(), Some(&run_env.home)];
    let root = roots.into_iter().flatten().find(|root| path.starts_with(root));
    let root = root.map_or(Path::new("/"), PathBuf::as_path);
    let is_opened = opened.iter().any(|opened| path.starts_with(opened));
    if is_opened || ProtectedPaths::of(run_env).strictest(path, root) != Some(WritePolicy::ReadOnly)
    {
        return Ok(());
    }
    Err(Refusal::new(
        permission,
        format!("other programs run or obey what is in {}", path.display()),
        format!(
            "write somewhere else; if you trust the skill: savoir approve SKILL --allow-write {}",
            shell_word(&path.to_string_lossy())
        ),
    ))
}

/// The path of a scope: `~` is the home, and relative paths start in the user's working directory.
pub(crate) fn absolute_path(scope: &str, run_env: &RunEnvironment) -> PathBuf {
    let path = if scope == "~" {
        run_env.home.clone()
    } else if let Some(rest) = scope.strip_prefix("~/") {
        run_env.home.join(rest)
    } else {
        run_env.directory.join(scope)
    };
    path.components().filter(|part| *part != Component::CurDir).collect()
}

/// Adds a grant for a file or folder. Returns the path instead if it is to be written and does not
/// exist.
fn add_tree(
    grants: &Grants<'_>,
    permission: &impl ToString,
    (path, access): (PathBuf, Access),
    paths: &mut Vec<PathGrant>,
) -> Result<Option<PathBuf>, Refusal> {
    let refuse = |reason: String, hint: &str| Err(Refusal::new(permission, reason, hint));
    if path.components().any(|part| part == Component::ParentDir) {
        return refuse("`..` is not allowed".to_owned(), "write the path without it");
    }
    if path.parent().is_none() {
        return Err(whole_machine(permission));
    }
    if agent_secret_folders(grants.run_env).any(|secrets| path.starts_with(secrets)) {
        let hint = "let the skill declare the variable: savoir secret list";
        return refuse("your stored secrets are in it".to_owned(), hint);
    }
    if access == Access::Write {
        refuse_never_written(grants.run_env, &opened_paths(grants), permission, &path)?;
        if path.symlink_metadata().is_err() {
            // The file would be created wherever the symlink leads.
            if let Some(link) = path.ancestors().find(|above| above.is_symlink()) {
                let reason = format!("{} is a link", link.display());
                return refuse(reason, "write the path that the link leads to");
            }
            return Ok(Some(path));
        }
    }
    paths.push(PathGrant { path, access });
    Ok(None)
}

/// Refuses to write a path that not even the user can open for writing.
fn refuse_never_written(
    run_env: &RunEnvironment,
    opened: &[PathBuf],
    permission: &impl ToString,
    path: &Path,
) -> Result<(), Refusal> {
    let Some(protected) = protected_parent(path, run_env, opened) else { return Ok(()) };
    let reason = format!("{} is never written by skills", protected.display());
    let worktree = run_env.worktree.as_ref();
    let pointer = run_env.repository.as_ref().map(|root| root.join(".git"));
    let hint = match worktree.filter(|_| pointer == Some(protected)) {
        Some(LinkedWorktree { common, .. }) => {
            let common = shell_word(&common.to_string_lossy());
            format!("the repository of this worktree is elsewhere: --allow-write {common}")
        }
        None => "write somewhere else".to_owned(),
    };
    Err(Refusal::new(permission, reason, hint))
}

/// Refuses paths for writing that no run gets, so that approving them is refused, too.
pub(super) fn refuse_protected_paths(
    permissions: &[Permission],
    extra: &ExtraGrants,
    run_env: &RunEnvironment,
) -> Result<(), Refusal> {
    let opened = paths_of_user(extra, run_env);
    for (scope, path) in extra.write.iter().zip(&opened) {
        refuse_never_written(run_env, &opened, scope, path).map_err(|refusal| Refusal {
            hint: format!(
                "{}; if it was approved before, remove it: savoir approve --revoke SKILL",
                refusal.hint
            ),
            ..refusal
        })?;
    }
    for permission in permissions {
        let Some(scope) = &permission.scope else { continue };
        if requested_access(permission) != Some(Access::Write) {
            continue;
        }
        if let PathShape::Tree(path) = glob::path_shape(&absolute_path(scope, run_env)) {
            refuse_protected_path(run_env, &opened, permission, &path)?;
        }
    }
    Ok(())
}

/// The protected path that equals a path or contains it.
fn protected_parent(path: &Path, run_env: &RunEnvironment, opened: &[PathBuf]) -> Option<PathBuf> {
    // A run may write in its own folder, even if that is inside a protected path.
    let is_own = run_env.has_private_directory && path.starts_with(&run_env.directory);
    let is_around = |protected: &Path| is_own && run_env.directory.starts_with(protected);
    protected_paths(run_env, opened)
        .into_iter()
        .find(|protected| path.starts_with(protected) && !is_around(protected))
}

/// Paths that not even the user can open for writing.
pub(crate) fn always_protected(run_env: &RunEnvironment) -> Vec<PathBuf> {
    let roots = [Some(&run_env.directory), run_env.repository.as_ref(), Some(&run_env.home)];
    let mut repositories: Vec<PathBuf> =
        roots.into_iter().flatten().map(|root| root.join(".git")).collect();
    repositories.extend(run_env.worktree.iter().map(|worktree| worktree.common.clone()));
    protected_paths(run_env, &repositories)
}

/// Paths that the user opened for writing by name.
fn opened_paths(grants: &Grants<'_>) -> Vec<PathBuf> {
    paths_of_user(grants.extra, grants.run_env)
}

fn paths_of_user(extra: &ExtraGrants, run_env: &RunEnvironment) -> Vec<PathBuf> {
    let plain = |scope: &String| scope.strip_suffix("/**").unwrap_or(scope).to_owned();
    extra.write.iter().map(|scope| absolute_path(&plain(scope), run_env)).collect()
}

/// Paths that no grant makes writable, except for a `.git` in `opened`, of which only the names in
/// [`PROTECTED_IN_GIT`] are returned.
pub(super) fn protected_paths(run_env: &RunEnvironment, opened: &[PathBuf]) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for root in [Some(&run_env.directory), run_env.repository.as_ref(), Some(&run_env.home)] {
        for path in PROTECTED_IN_PROJECT.iter().filter_map(|name| Some(root?.join(name))) {
            let is_opened = opened.iter().any(|opened| opened.starts_with(&path));
            // In a linked worktree, `.git` is a file, which only names the repository.
            let is_folder = path.symlink_metadata().is_ok_and(|found| !found.is_file());
            if is_opened && path.ends_with(".git") && is_folder {
                paths.extend(PROTECTED_IN_GIT.map(|name| path.join(name)));
            } else {
                paths.push(path);
            }
        }
    }
    if let Some(worktree) = &run_env.worktree {
        if opened.iter().any(|opened| opened.starts_with(&worktree.common)) {
            paths.extend(protected_in_shared_repository(worktree));
        } else {
            paths.push(worktree.common.clone());
        }
    }
    paths.extend(PROTECTED_IN_HOME.iter().map(|name| run_env.home.join(name)));
    paths.extend(run_env.savoir_folders.iter().cloned());
    paths
}

/// The names that stay read-only in an opened repository of a linked worktree: those of any
/// repository, and the data of other worktrees.
fn protected_in_shared_repository(worktree: &LinkedWorktree) -> Vec<PathBuf> {
    let LinkedWorktree { git_dir, common } = worktree;
    let entries = fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
    let others = entries.map(|entry| entry.path()).filter(|path| path != git_dir);
    let shared = PROTECTED_IN_GIT.iter().filter(|name| **name != "worktrees");
    let shared = shared.map(|name| common.join(name));
    let own = PROTECTED_IN_GIT.iter().chain(&["gitdir"]).map(|name| git_dir.join(name));
    others.chain(shared).chain(own).collect()
}

/// Returns read-only grants below writable folders, for the protected names and the skill itself.
pub fn protect(
    run_env: &RunEnvironment,
    folder: Option<&Path>,
    writable: &[PathBuf],
    opened: &[PathBuf],
) -> Result<Vec<PathGrant>, Refusal> {
    let root_of = |path: &Path| writable.iter().find(|root| path.starts_with(root));
    let mut protected = Vec::new();
    for path in protected_paths(run_env, opened).into_iter().chain(folder.map(Path::to_owned)) {
        let Some(root) = root_of(&path) else { continue };
        let there = path.ancestors().find_map(|step| Some((step, step.symlink_metadata().ok()?)));
        match there {
            // A program that changes the target of the symlink changes what is at the protected
            // path.
            Some((link, metadata)) if metadata.is_symlink() && link != path => {
                return Err(Refusal::new(
                    &format!("filesystem:write:{}/**", root.display()),
                    format!("{} is a link, which cannot be protected", link.display()),
                    "replace the link by what it leads to, or grant a folder without it",
                ));
            }
            // In a worktree, `.git` is a file with the path of the repository.
            Some((file, metadata)) if !metadata.is_dir() => protected.push(file.to_owned()),
            _ => protected.push(path),
        }
    }
    protected.sort();
    protected.dedup();
    Ok(protected.into_iter().map(PathGrant::protected).collect())
}

/// Whether a folder is, or is inside, a path that no skill may write.
pub fn is_protected(path: &Path, run_env: &RunEnvironment) -> bool {
    protected_parent(path, run_env, &[]).is_some()
}
