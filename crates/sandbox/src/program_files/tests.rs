//! Tests the file lists of this machine's programs, of hostile files, and inside bubblewrap.

mod bubblewrap;
mod hostile;
mod scripts;
mod system;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use super::{FolderContents, ProgramFiles, ProgramFilesError, TRUSTED_PATH, find_program};

fn find_trusted(name: &str) -> Option<PathBuf> {
    find_program(name, &TRUSTED_PATH.map(PathBuf::from))
}

/// Programs that a machine may or may not have; tests skip those that are missing.
fn installed(names: &[&str]) -> Vec<PathBuf> {
    let mut programs: Vec<_> = names.iter().filter_map(|name| find_trusted(name)).collect();
    programs.extend(["/usr/bin/git"].map(PathBuf::from).into_iter().filter(|path| path.exists()));
    programs
}

/// Interpreters that pyenv built.
fn pythons() -> Vec<PathBuf> {
    let versions = fs::read_dir("/root/.pyenv/versions").into_iter().flatten().flatten();
    let mut pythons: Vec<_> = versions
        .map(|version| version.path().join("bin/python3"))
        .filter(|path| path.exists())
        .collect();
    pythons.sort();
    pythons
}

fn executable(path: &Path, content: impl AsRef<[u8]>) -> PathBuf {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_path_buf()
}

fn of(program: impl AsRef<Path>) -> Result<ProgramFiles, ProgramFilesError> {
    ProgramFiles::of(&[program.as_ref().to_path_buf()])
}

#[test]
fn merged_lists_hide_only_folders_that_neither_list_shows() {
    let mut hiding = ProgramFiles::default();
    hiding.add_folder("/lib/python".into(), FolderContents::Code);
    hiding.hidden.insert("/lib/python/packages".into());
    let mut showing = ProgramFiles::default();
    showing.add_folder("/lib/python".into(), FolderContents::Code);
    let mut elsewhere = ProgramFiles::default();
    elsewhere.add_folder("/lib/python/packages/one".into(), FolderContents::Data);
    elsewhere.add_folder("/lib/python/other".into(), FolderContents::Data);

    for (first, second) in [(&hiding, &showing), (&showing, &hiding)] {
        let mut both = first.clone();
        both.merge(second);
        assert_eq!(both.hidden().count(), 0);
    }
    let mut both = hiding.clone();
    both.merge(&hiding);
    assert_eq!(both, hiding);
    both.merge(&elsewhere);
    both.remove_redundant();
    let folders: Vec<_> = both.folders().map(|(path, _)| path).collect();
    assert_eq!(folders, [Path::new("/lib/python"), Path::new("/lib/python/packages/one")]);
    assert_eq!(both.hidden().count(), 1);
}
