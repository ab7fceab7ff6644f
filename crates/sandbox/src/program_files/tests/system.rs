//! Compares the libraries with the output of `ldd`, which is safe for programs of the system.

use std::{collections::BTreeSet, process::Command, sync::Arc, time::Instant};

use super::{
    super::{Builder, FileUse, cache},
    *,
};
use crate::program_files::{elf::ElfFile, path_resolver::PathResolver};

/// The output of `ldd`, as real paths.
fn ldd(program: &Path) -> BTreeSet<PathBuf> {
    let output = Command::new("ldd").arg(program).output().unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
        .map(|path| fs::canonicalize(path).unwrap())
        .collect()
}

/// The libraries of a program, without files of helpers.
fn libraries(program: &Path) -> BTreeSet<PathBuf> {
    let mut builder = Builder::new(program);
    let resolved = PathResolver::default().resolve(program).unwrap();
    let image = Arc::new(ElfFile::open(&resolved.real).unwrap());
    builder.load_program(&resolved, &image).unwrap();
    let files = builder.program_files.files.into_iter();
    files.filter(|(_, kind)| *kind == FileUse::Library).map(|(path, _)| path).collect()
}

#[test]
fn libraries_match_ldd() {
    if find_trusted("ldd").is_none() {
        return;
    }
    let mut programs = installed(&[
        "true", "git", "python3", "bash", "node", "perl", "curl", "openssl", "ssh", "gdb", "vim",
        "ffmpeg", "gcc", "cmake", "sqlite3", "bwrap", "tar",
    ]);
    programs.extend(pythons());
    for program in programs {
        assert_eq!(libraries(&program), ldd(&program), "{}", program.display());
    }
}

/// Tests a sample of all programs of the system, because unusual ones are rare.
#[test]
fn libraries_match_ldd_for_every_tenth_program() {
    if find_trusted("ldd").is_none() {
        return;
    }
    let mut programs: Vec<_> = fs::read_dir("/usr/bin")
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| ElfFile::open(path).is_ok_and(|image| image.interpreter.is_some()))
        .collect();
    programs.sort();
    for program in programs.iter().step_by(10) {
        let expected = ldd(program);
        // Programs with missing libraries are skipped.
        let whole = of(program);
        if !matches!(whole, Err(ProgramFilesError::MissingLibrary { .. })) {
            assert_eq!(libraries(program), expected, "{}", program.display());
            whole.unwrap();
        }
    }
}

#[test]
fn true_needs_few_files() {
    let closure = of("/bin/true").unwrap();
    let code = closure.files().filter(|(_, kind)| *kind != FileUse::Data).count();
    assert!((1..=4).contains(&code), "{closure:#?}");
    assert!(
        closure.folders().all(|(_, contents)| contents == FolderContents::Data),
        "{closure:#?}"
    );
    for (link, _) in closure.links() {
        assert!(link.parent().unwrap().canonicalize().unwrap() == link.parent().unwrap());
    }
    for (path, _) in closure.files() {
        assert_eq!(path.canonicalize().unwrap(), path);
    }
}

#[test]
fn python_packages_are_hidden() {
    for python in pythons() {
        let closure = of(&python).unwrap();
        let library =
            closure.folders().find(|(_, contents)| *contents == FolderContents::Code).unwrap().0;
        let hidden: Vec<_> = closure.hidden().collect();
        assert_eq!(hidden, [library.join("site-packages")], "{}", python.display());
    }
}

#[test]
fn files_of_two_programs_are_merged() {
    let programs = installed(&["true", "bash"]);
    let both = ProgramFiles::of(&programs).unwrap();
    for program in &programs {
        let one = of(program).unwrap();
        assert!(one.files().all(|file| both.files().any(|other| other == file)));
        assert!(one.links().all(|link| both.links().any(|other| other == link)));
    }
    assert_eq!(ProgramFiles::of(&[]).unwrap(), ProgramFiles::default());
}

#[test]
fn changed_files_invalidate_the_cache() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let script = executable(&home.join("tool"), "#!/bin/sh\n");
    let before = of(&script).unwrap();
    assert_eq!(of(&script).unwrap(), before);
    executable(&script, "#!/usr/bin/env perl\n");
    if find_trusted("perl").is_some() {
        assert_ne!(of(&script).unwrap(), before);
    }
    fs::remove_file(&script).unwrap();
    assert_eq!(of(&script), Err(ProgramFilesError::NotFound { path: script }));
}

/// Run with `cargo test --release -p savoir-sandbox program_files_timings -- --ignored
/// --nocapture`.
#[test]
#[ignore = "a measurement"]
#[expect(clippy::print_stderr, reason = "a measurement")]
fn program_files_timings() {
    let mut programs =
        installed(&["true", "bash", "curl", "git", "python3", "node", "npm", "perl"]);
    programs.extend(pythons());
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    for program in programs {
        let time = || {
            let start = Instant::now();
            of(&program).unwrap();
            start.elapsed().as_secs_f64() * 1e9
        };
        let cold = median((0..50).map(|_| (cache::clear_all(), time()).1).collect());
        let warm = median((0..500).map(|_| time()).collect());
        eprintln!(
            "{:45} cold {:8.1} µs, warm {:7.1} µs",
            program.display(),
            cold / 1e3,
            warm / 1e3
        );
    }
}
