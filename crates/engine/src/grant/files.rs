//! Files: `filesystem:read`, `filesystem:write`, and databases that are files.

use std::path::{Component, Path, PathBuf};

use savoir_sandbox::{Access, PathGrant};
use savoir_skill::permission::{Domain, Level, Permission};

use super::{
    Grants, Refusal,
    glob::{self, Shape},
    is_unproven,
};
use crate::{ground::Ground, limits};

/// What stays as it is even in a folder that a run may change, because others execute or obey it.
pub(super) const PROTECTED_IN_PROJECT: [&str; 10] = [
    // All of it: whoever writes `.git/commondir` makes git read another configuration, and run it.
    ".git",
    ".vscode",
    ".idea",
    ".claude",
    ".codex",
    ".cursor",
    ".agents",
    ".mcp.json",
    ".envrc",
    "savoir.lock",
];
const PROTECTED_IN_HOME: [&str; 23] = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".profile",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".zlogin",
    ".config/autostart",
    ".config/systemd",
    ".config/savoir",
    ".config/git",
    ".config/fish",
    ".cache/savoir",
    ".local/share/savoir",
    ".local/bin",
    ".ssh",
    ".gnupg",
    ".gitconfig",
    ".claude",
    ".codex",
    ".agents",
    ".vscode",
];

/// What stays as it is in a `.git` that a person opened for writing.
const PROTECTED_IN_GIT: [&str; 7] =
    ["hooks", "config", "config.worktree", "commondir", "info", "modules", "worktrees"];

/// Adds what the permissions say about files; gives the folders that must be made before a run.
pub(super) fn add(
    grants: &Grants<'_>,
    paths: &mut Vec<PathGrant>,
) -> Result<Vec<PathBuf>, Refusal> {
    let start = paths.len();
    let mut missing = Vec::new();
    for permission in grants.permissions {
        let Some(access) = access(permission) else { continue };
        let Some(scope) = &permission.scope else {
            paths.push(unscoped(grants, permission, access)?);
            continue;
        };
        if permission.domain == Domain::Database && !is_database_file(scope) {
            return Err(Refusal::new(
                permission,
                "no sandbox can hold a database behind the network",
                "name the file (database:read:./data/app.sqlite), or the host as network:write",
            ));
        }
        let path = absolute(scope, grants.ground);
        match glob::shape(&path) {
            Shape::Tree(path) => {
                let tree = Tree { path, is_folder: scope.ends_with("/**"), access };
                missing.extend(add_tree(grants, permission, tree, paths)?);
            }
            Shape::Pattern { base, pattern } if access == Access::Read => {
                let files = glob::expand(&base, &pattern, limits::EXPANDED_FILES);
                let files = files.ok_or_else(|| {
                    let reason = format!("it matches more than {} files", limits::EXPANDED_FILES);
                    Refusal::new(permission, reason, "grant a folder: end it with /**")
                })?;
                paths.extend(files.into_iter().map(PathGrant::read));
            }
            Shape::Pattern { .. } => {
                return Err(Refusal::new(
                    permission,
                    "a pattern cannot hold for files that do not exist yet",
                    "grant a folder for writing: end it with /**",
                ));
            }
        }
    }
    for (list, access) in [(&grants.extra.read, Access::Read), (&grants.extra.write, Access::Write)]
    {
        for scope in list {
            let path = absolute(scope.strip_suffix("/**").unwrap_or(scope), grants.ground);
            let tree = Tree { path, is_folder: true, access };
            missing.extend(add_tree(grants, scope, tree, paths)?);
        }
    }
    let writable: Vec<PathBuf> = paths[start..]
        .iter()
        .filter(|grant| grant.access == Access::Write)
        .map(|grant| grant.path.clone())
        .collect();
    paths.extend(protect(grants.ground, grants.folder, &writable, &opened(grants))?);
    Ok(missing)
}

/// A file or folder of a permission.
struct Tree {
    path: PathBuf,
    /// Whether the permission says that it is a folder.
    is_folder: bool,
    access: Access,
}

/// A scope that is a path, not the name of a host.
fn is_database_file(scope: &str) -> bool {
    let ends = [".sqlite", ".sqlite3", ".db", ".duckdb"];
    let is_path = scope.contains('/') || scope.starts_with('~');
    !scope.ends_with("**") && (is_path || ends.iter().any(|end| scope.ends_with(end)))
}

fn access(permission: &Permission) -> Option<Access> {
    match (permission.domain, permission.level) {
        (Domain::Filesystem | Domain::Database, Level::Read) => Some(Access::Read),
        (Domain::Filesystem | Domain::Database, Level::Write) => Some(Access::Write),
        _ => None,
    }
}

/// All files is never literally all: it is the user's home, and only for skills that someone
/// vouches for.
fn unscoped(
    grants: &Grants<'_>,
    permission: &Permission,
    access: Access,
) -> Result<PathGrant, Refusal> {
    let path = grants.ground.home.clone();
    if permission.domain == Domain::Database {
        let way_out = "name the file: database:read:./data/app.sqlite";
        return Err(Refusal::new(permission, "it does not say which database", way_out));
    }
    if is_unproven(grants.tier) || path.parent().is_none() {
        return Err(Refusal::new(
            permission,
            "it means every file, and nobody vouches for this skill",
            "name the folder in the skill (filesystem:read:./data/**), or grant one yourself: \
             savoir approve SKILL --allow-read FOLDER",
        ));
    }
    Ok(PathGrant { path, access })
}

/// The path of a scope: `~` is the home, everything relative starts where the user is.
fn absolute(scope: &str, ground: &Ground) -> PathBuf {
    let path = if scope == "~" {
        ground.home.clone()
    } else if let Some(rest) = scope.strip_prefix("~/") {
        ground.home.join(rest)
    } else {
        ground.directory.join(scope)
    };
    path.components().filter(|part| *part != Component::CurDir).collect()
}

/// Adds a file or folder; gives it back if it must be made before a run.
fn add_tree(
    grants: &Grants<'_>,
    permission: &impl ToString,
    tree: Tree,
    paths: &mut Vec<PathGrant>,
) -> Result<Option<PathBuf>, Refusal> {
    let Tree { path, is_folder, access } = tree;
    let refuse = |reason: String, way_out: &str| Err(Refusal::new(permission, reason, way_out));
    if path.components().any(|part| part == Component::ParentDir) {
        return refuse("`..` is not allowed".to_owned(), "write the path without it");
    }
    if path.parent().is_none() {
        return refuse("it means every file".to_owned(), "name the folder that is needed");
    }
    let mut missing = None;
    if access == Access::Write {
        if let Some(protected) = protected_above(&path, grants.ground, &opened(grants)) {
            let reason = format!("{} is never written by skills", protected.display());
            return refuse(reason, "write somewhere else");
        }
        if path.symlink_metadata().is_err() {
            // It would be made wherever the link leads.
            if let Some(link) = path.ancestors().find(|above| above.is_symlink()) {
                let reason = format!("{} is a link", link.display());
                return refuse(reason, "write the path that the link leads to");
            }
            let own = [&grants.ground.directory, &grants.ground.home];
            if !is_folder || !own.iter().any(|place| path.starts_with(place)) {
                let reason = format!("{} does not exist", path.display());
                return refuse(reason, "make it first, or grant its folder: end it with /**");
            }
            missing = Some(path.clone());
        }
    }
    paths.push(PathGrant { path, access });
    Ok(missing)
}

/// The protected path that a path is, or lies in.
fn protected_above(path: &Path, ground: &Ground, opened: &[PathBuf]) -> Option<PathBuf> {
    protected_paths(ground, opened).into_iter().find(|protected| path.starts_with(protected))
}

/// What a person opened for writing by name.
fn opened(grants: &Grants<'_>) -> Vec<PathBuf> {
    let plain = |scope: &String| scope.strip_suffix("/**").unwrap_or(scope).to_owned();
    grants.extra.write.iter().map(|scope| absolute(&plain(scope), grants.ground)).collect()
}

pub(super) fn protected_paths(ground: &Ground, opened: &[PathBuf]) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for root in [Some(&ground.directory), ground.repository.as_ref(), Some(&ground.home)] {
        for path in PROTECTED_IN_PROJECT.iter().filter_map(|name| Some(root?.join(name))) {
            let is_opened = opened.iter().any(|opened| opened.starts_with(&path));
            if is_opened && path.ends_with(".git") {
                paths.extend(PROTECTED_IN_GIT.map(|name| path.join(name)));
            } else {
                paths.push(path);
            }
        }
    }
    paths.extend(PROTECTED_IN_HOME.iter().map(|name| ground.home.join(name)));
    paths.extend(ground.kept.iter().cloned());
    paths
}

/// What stays as it is below writable folders: the protected names, and the skill itself.
pub(crate) fn protect(
    ground: &Ground,
    folder: Option<&Path>,
    writable: &[PathBuf],
    opened: &[PathBuf],
) -> Result<Vec<PathGrant>, Refusal> {
    let root_of = |path: &Path| writable.iter().find(|root| path.starts_with(root));
    let mut protected = Vec::new();
    for path in protected_paths(ground, opened).into_iter().chain(folder.map(Path::to_owned)) {
        let Some(root) = root_of(&path) else { continue };
        let there = path.ancestors().find_map(|step| Some((step, step.symlink_metadata().ok()?)));
        match there {
            // Nothing can lie on a link, so it could be replaced by something else.
            Some((link, metadata)) if metadata.is_symlink() => {
                return Err(Refusal::new(
                    &format!("filesystem:write:{}/**", root.display()),
                    format!("{} is a link, which cannot be protected", link.display()),
                    "replace the link by what it leads to, or grant a folder without it",
                ));
            }
            // In a worktree, `.git` is a file that leads to the repository.
            Some((file, metadata)) if !metadata.is_dir() => protected.push(file.to_owned()),
            _ => protected.push(path),
        }
    }
    protected.sort();
    protected.dedup();
    Ok(protected.into_iter().map(PathGrant::protected).collect())
}

/// Removes what runs left that were killed while they held places below a folder.
pub(crate) fn remove_abandoned(ground: &Ground, root: &Path) {
    let opened = [root.join(".git")];
    let mut protected = protected_paths(ground, &opened);
    protected.extend(protected_paths(ground, &[]));
    let below = |path: PathBuf| {
        let ways: Vec<PathBuf> = path.ancestors().map(Path::to_owned).collect();
        ways.into_iter().take_while(|way| way != root).collect::<Vec<_>>()
    };
    let inside = protected.into_iter().filter(|path| path.starts_with(root));
    let mut places: Vec<PathBuf> = inside.flat_map(below).collect();
    places.sort();
    places.dedup();
    savoir_sandbox::remove_abandoned(places.iter().rev().map(PathBuf::as_path));
}

/// Whether a folder is, or lies in, something that no skill writes to.
pub(crate) fn is_protected(path: &Path, ground: &Ground) -> bool {
    protected_above(path, ground, &[]).is_some()
}
