//! Closures of programs of this machine, of hostile files, and in a root of their own.

mod bubble;
mod hostile;
mod scripts;
mod system;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use super::{Closure, ClosureError, Contents, TRUSTED_PATH, find};

fn find_trusted(name: &str) -> Option<PathBuf> {
    find(name, &TRUSTED_PATH.map(PathBuf::from))
}

/// Programs that a machine may or may not have; tests say what they did not find by doing nothing.
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

fn of(program: impl AsRef<Path>) -> Result<Closure, ClosureError> {
    Closure::of(&[program.as_ref().to_path_buf()])
}

#[test]
fn closures_hide_only_what_neither_shows() {
    let mut hiding = Closure::default();
    hiding.put_folder("/lib/python".into(), Contents::Code);
    hiding.hidden.insert("/lib/python/packages".into());
    let mut showing = Closure::default();
    showing.put_folder("/lib/python".into(), Contents::Code);
    let mut elsewhere = Closure::default();
    elsewhere.put_folder("/lib/python/packages/one".into(), Contents::Data);
    elsewhere.put_folder("/lib/python/other".into(), Contents::Data);

    for (first, second) in [(&hiding, &showing), (&showing, &hiding)] {
        let mut both = first.clone();
        both.add(second);
        assert_eq!(both.hidden().count(), 0);
    }
    let mut both = hiding.clone();
    both.add(&hiding);
    assert_eq!(both, hiding);
    both.add(&elsewhere);
    both.tidy();
    let folders: Vec<_> = both.folders().map(|(path, _)| path).collect();
    assert_eq!(folders, [Path::new("/lib/python"), Path::new("/lib/python/packages/one")]);
    assert_eq!(both.hidden().count(), 1);
}
