//! Finds a program by its bare name in folders that only the system can write to.

use std::{
    ffi::OsStr,
    fs,
    path::{Component, Path, PathBuf},
};

use super::permissions;

/// The folders in which programs are searched, independent of the caller's `PATH`. A skill cannot
/// write to any of them.
pub const TRUSTED_PATH: [&str; 6] =
    ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Returns the first regular file with this name in the folders of `path` that this user may
/// execute.
///
/// Names with a slash, empty names and relative folders find nothing.
pub fn find_program(name: &str, path: &[PathBuf]) -> Option<PathBuf> {
    if !is_plain_name(name.as_ref()) {
        return None;
    }
    path.iter().find_map(|folder| {
        let candidate = folder.join(name);
        let meta = fs::metadata(&candidate).ok()?;
        (folder.is_absolute() && meta.is_file() && permissions::may_execute(&meta))
            .then_some(candidate)
    })
}

/// Returns whether a name is a single path component, other than `.` and `..`.
pub(super) fn is_plain_name(name: &OsStr) -> bool {
    matches!(Path::new(name).components().next(), Some(Component::Normal(part)) if part == name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn finds_executable_files_by_bare_names_only() {
        let home = tempfile::tempdir().unwrap();
        let (first, second) = (home.path().join("first"), home.path().join("second"));
        for folder in [&first, &second] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("tool"), "").unwrap();
        }
        fs::create_dir(first.join("folder")).unwrap();
        fs::set_permissions(second.join("tool"), fs::Permissions::from_mode(0o755)).unwrap();
        let path = [PathBuf::from("relative"), first, second.clone()];
        assert_eq!(find_program("tool", &path), Some(second.join("tool")));
        for name in ["", ".", "..", "./tool", "tool/", "/bin/sh", "folder", "other", "a\0b"] {
            assert_eq!(find_program(name, &path), None, "{name:?}");
        }
    }
}
