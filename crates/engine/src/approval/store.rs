//! Stores approvals on disk.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use savoir_skill::permission::Permission;
use serde::{Deserialize, Serialize};

use super::{ExtraGrants, Fingerprint, Program, Request};
use crate::{
    clock,
    home::Home,
    store::{self, Existing, StoreError},
};

/// A stored "yes, always": the approved skill and permissions, the time and the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The fingerprint of the approved request.
    pub fingerprint: Fingerprint,
    /// The skill's folder or file.
    pub path: PathBuf,
    /// The name of the skill.
    pub skill: String,
    /// SHA-256 of the content of the skill.
    pub digest: String,
    pub permissions: Vec<Permission>,
    pub programs: Vec<Program>,
    /// Permissions that the user added.
    #[serde(default)]
    pub extra: ExtraGrants,
    /// The files of the skill with the first digits of their SHA-256; empty if there are too many.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// The time of the approval, RFC 3339 in UTC.
    pub approved_at: String,
    /// The name of the user who approved.
    pub by: String,
}

impl Approval {
    /// Creates an approval of the request, with the current time.
    pub fn new(request: &Request, by: impl Into<String>) -> Self {
        let mut permissions = request.permissions.clone();
        permissions.sort();
        permissions.dedup();
        let mut programs = request.programs.clone();
        programs.sort();
        programs.dedup();
        Self {
            fingerprint: Fingerprint::of(request),
            path: request.path.clone(),
            skill: request.skill.clone(),
            digest: request.digest.clone(),
            permissions,
            programs,
            extra: request.extra.sorted(),
            files: request.files.clone(),
            approved_at: clock::rfc3339(SystemTime::now()),
            by: by.into(),
        }
    }
}

/// Returns the name of the user from the environment, or from the list of users of the system.
pub fn user_name() -> String {
    let is_name = |name: &String| !name.trim().is_empty();
    let variable = |name: &&str| env::var(name).ok().filter(is_name);
    let named = ["USER", "LOGNAME", "USERNAME"].iter().find_map(variable);
    // A service and a container have no such variable.
    let listed = || {
        let users = fs::read_to_string("/etc/passwd").ok()?;
        name_of_user(&users, rustix::process::getuid().as_raw())
    };
    named.or_else(listed).unwrap_or_else(|| "unknown".to_owned())
}

/// The name of a user id in the text of `/etc/passwd`.
fn name_of_user(users: &str, id: u32) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(id) && !name.is_empty()).then(|| name.to_owned())
    })
}

/// The format of the file.
const FORMAT_VERSION: u64 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct ApprovalsFile {
    version: u64,
    approvals: Vec<Approval>,
}

/// The store of approvals, `approvals.json`, with at most one approval for each path.
#[derive(Clone, Debug)]
pub struct Approvals {
    home: Home,
}

impl Approvals {
    /// Creates the store of a home; reads nothing yet.
    pub fn new(home: &Home) -> Self {
        Self { home: home.clone() }
    }

    /// The path of the file, which may not exist.
    pub fn file(&self) -> PathBuf {
        self.home.data().join("approvals.json")
    }

    /// All approvals, sorted by path.
    pub fn list(&self) -> Result<Vec<Approval>, StoreError> {
        #[derive(Deserialize)]
        struct Format {
            version: u64,
        }
        let path = self.file();
        store::refuse_exposed(self.home.data())?;
        store::refuse_exposed(&path)?;
        // The version is read first: nothing else is known about a newer format.
        match store::read_json::<Format>(&path)? {
            None => return Ok(Vec::new()),
            Some(Format { version }) if version > FORMAT_VERSION => {
                return Err(StoreError::Newer { path, found: version, known: FORMAT_VERSION });
            }
            Some(_) => {}
        }
        Ok(store::read_json::<ApprovalsFile>(&path)?.map(|file| file.approvals).unwrap_or_default())
    }

    /// The approval of the skill at a path, valid or outdated.
    pub fn get(&self, path: &Path) -> Result<Option<Approval>, StoreError> {
        Ok(self.list()?.into_iter().find(|stored| stored.path == path))
    }

    /// The permissions that the user added for the skill at a path. They are valid only if the
    /// fingerprint of the request that includes them is the approved one.
    pub fn extra_for(&self, path: &Path) -> Result<ExtraGrants, StoreError> {
        Ok(self.get(path)?.map(|stored| stored.extra).unwrap_or_default())
    }

    /// Stores an approval; replaces the one for the same path.
    pub fn save(&self, approval: Approval) -> Result<(), StoreError> {
        self.change(|approvals| {
            approvals.retain(|stored| stored.path != approval.path);
            approvals.push(approval);
        })
    }

    /// Removes the approvals of a path or of a skill name; returns the removed ones.
    pub fn revoke(&self, path_or_name: &str) -> Result<Vec<Approval>, StoreError> {
        let stored_path = stored_path(path_or_name);
        self.remove_matching(|stored| {
            stored.skill == path_or_name
                || stored_path.as_ref().is_some_and(|stored_path| stored.path == *stored_path)
        })
    }

    /// Removes all approvals; returns them.
    pub fn revoke_all(&self) -> Result<Vec<Approval>, StoreError> {
        self.remove_matching(|_| true)
    }

    fn remove_matching(
        &self,
        matches: impl Fn(&Approval) -> bool,
    ) -> Result<Vec<Approval>, StoreError> {
        // Does not create the file if there is nothing to remove.
        if !self.list()?.iter().any(&matches) {
            return Ok(Vec::new());
        }
        let mut removed = Vec::new();
        self.change(|approvals| {
            removed = approvals.extract_if(.., |stored| matches(stored)).collect();
        })?;
        Ok(removed)
    }

    /// Reads, changes and writes the file under a lock.
    fn change(&self, change: impl FnOnce(&mut Vec<Approval>)) -> Result<(), StoreError> {
        self.home.data_folder("")?;
        let path = self.file();
        let _lock = store::lock_file(&path)?;
        let mut approvals = self.list()?;
        change(&mut approvals);
        approvals.sort_by(|a, b| a.path.cmp(&b.path));
        store::write_json(
            &path,
            &ApprovalsFile { version: FORMAT_VERSION, approvals },
            Existing::Replace,
        )
    }
}

/// The path of a skill as approvals store it. The skill may have been deleted, so the path need not
/// exist.
fn stored_path(text: &str) -> Option<PathBuf> {
    let path = Path::new(text);
    let path = path.canonicalize().or_else(|_| std::path::absolute(path)).ok()?;
    let names_skill = path.file_name().and_then(|name| name.to_str());
    match path.parent() {
        Some(folder) if names_skill.is_some_and(savoir_skill::folder::is_skill_file) => {
            Some(folder.to_owned())
        }
        // `components` drops a trailing slash that the user may have typed.
        _ => Some(path.components().collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_named_by_their_id() {
        let users = "root:x:0:0:root:/root:/bin/sh\nbroken\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(name_of_user(users, 0).as_deref(), Some("root"));
        assert_eq!(name_of_user(users, 1000).as_deref(), Some("ada"));
        assert_eq!(name_of_user(users, 7), None);
    }
}
