//! Finds programs on the search path.

use std::{
    env,
    ffi::OsStr,
    path::{Component, Path, PathBuf},
};

/// The programs that are not on `path`, each once, in their order.
pub fn missing_programs(names: &[impl AsRef<str>], path: &OsStr) -> Vec<String> {
    let mut missing: Vec<String> = Vec::new();
    for name in names.iter().map(AsRef::as_ref) {
        if !missing.iter().any(|known| known == name) && find_program(name, path).is_none() {
            missing.push(name.to_owned());
        }
    }
    missing
}

/// Finds a program by its bare name.
///
/// A name that contains a folder is never found. Relative folders of the path are skipped, because
/// their content depends on the working folder.
pub fn find_program(name: &str, path: &OsStr) -> Option<PathBuf> {
    let mut parts = Path::new(name).components();
    let bare = matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name);
    if !bare || name.contains('\0') {
        return None;
    }
    let folders = env::split_paths(path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).find(|candidate| is_program(candidate))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file() || path.with_extension("exe").is_file()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[cfg(unix)]
    #[test]
    fn only_bare_names_of_executables_are_found() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        for (name, mode) in [("runs", 0o755), ("text", 0o644)] {
            let file = folder.path().join(name);
            fs::write(&file, "x").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::create_dir(folder.path().join("folder")).unwrap();
        let path = folder.path().as_os_str();
        let wanted = [
            "runs", "text", "folder", "gone", "gone", "./runs", "../x", "/bin/sh", "", ".", "runs/",
        ];
        let missing = ["text", "folder", "gone", "./runs", "../x", "/bin/sh", "", ".", "runs/"];
        assert_eq!(missing_programs(&wanted, path), missing);
        assert_eq!(find_program("runs", path), Some(folder.path().join("runs")));
    }

    #[test]
    fn relative_folders_are_ignored() {
        assert_eq!(find_program("Cargo.toml", OsStr::new(":.:src")), None);
    }
}
