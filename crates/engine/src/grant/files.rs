//! Files: `filesystem:read`, `filesystem:write`, and databases that are files.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use savoir_sandbox::{Access, PathGrant};
use savoir_skill::permission::{Domain, Level, Permission};

use super::{
    Grants, Refusal,
    glob::{self, Shape},
    is_unproven,
};
use crate::{ground::Ground, limits};

/// What stays as it is even in a folder that a run may change, because others execute or obey it.
const PROTECTED_IN_PROJECT: [&str; 12] = [
    ".git/hooks",
    ".git/config",
    ".git/info",
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
const PROTECTED_IN_HOME: [&str; 20] = [
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

/// Adds what the permissions say about files.
pub(super) fn add(grants: &Grants<'_>, paths: &mut Vec<PathGrant>) -> Result<(), Refusal> {
    let start = paths.len();
    for permission in grants.permissions {
        let Some(access) = access(permission) else { continue };
        let Some(scope) = &permission.scope else {
            paths.push(unscoped(grants, permission, access)?);
            continue;
        };
        let path = absolute(scope, grants.ground);
        match glob::shape(&path) {
            Shape::Tree(path) => add_tree(grants, permission, path, access, paths)?,
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
            add_tree(grants, scope, path, access, paths)?;
        }
    }
    protect(grants, start, paths);
    Ok(())
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

fn add_tree(
    grants: &Grants<'_>,
    permission: &impl ToString,
    path: PathBuf,
    access: Access,
    paths: &mut Vec<PathGrant>,
) -> Result<(), Refusal> {
    let refuse = |reason: String, way_out: &str| Err(Refusal::new(permission, reason, way_out));
    if path.components().any(|part| part == Component::ParentDir) {
        return refuse("`..` is not allowed".to_owned(), "write the path without it");
    }
    if path.parent().is_none() {
        return refuse("it means every file".to_owned(), "name the folder that is needed");
    }
    if access == Access::Write {
        if let Some(protected) = protected_above(&path, grants.ground) {
            let reason = format!("{} is never written by skills", protected.display());
            return refuse(reason, "write somewhere else");
        }
        if !path.exists()
            && let Err(error) = make_folder(&path, grants.ground)
        {
            return refuse(
                format!("{} does not exist and cannot be made: {error}", path.display()),
                "make the folder first",
            );
        }
    }
    paths.push(PathGrant { path, access });
    Ok(())
}

/// A folder that may be written may be made, but only below the user's own places.
fn make_folder(path: &Path, ground: &Ground) -> std::io::Result<()> {
    let own = path.starts_with(&ground.directory) || path.starts_with(&ground.home);
    if own { fs::create_dir_all(path) } else { Err(std::io::ErrorKind::NotFound.into()) }
}

/// The protected path that a path is, or lies in.
fn protected_above(path: &Path, ground: &Ground) -> Option<PathBuf> {
    protected_paths(ground).find(|protected| path.starts_with(protected))
}

fn protected_paths(ground: &Ground) -> impl Iterator<Item = PathBuf> {
    let projects = [Some(&ground.directory), ground.repository.as_ref(), Some(&ground.home)];
    let in_projects = projects
        .into_iter()
        .flatten()
        .flat_map(|root| PROTECTED_IN_PROJECT.iter().map(move |name| root.join(name)));
    in_projects.chain(PROTECTED_IN_HOME.iter().map(|name| ground.home.join(name)))
}

/// Protects what lies below a writable folder.
fn protect(grants: &Grants<'_>, start: usize, paths: &mut Vec<PathGrant>) {
    let writable: Vec<PathBuf> = paths[start..]
        .iter()
        .filter(|grant| grant.access == Access::Write)
        .map(|grant| grant.path.clone())
        .collect();
    let inside = |path: &Path| writable.iter().any(|root| path.starts_with(root));
    let mut protected: Vec<PathBuf> =
        protected_paths(grants.ground).filter(|path| inside(path)).collect();
    protected.extend(grants.folder.filter(|folder| inside(folder)).map(Path::to_owned));
    protected.sort();
    protected.dedup();
    // What leads elsewhere is not there inside, and cannot be put there by a link of the host.
    protected.retain(|path| !path.is_symlink());
    paths.extend(protected.into_iter().map(PathGrant::protected));
}
