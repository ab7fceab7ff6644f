//! Tests hostile files.

use std::{os::unix::fs::symlink, process::Command};

use proptest::prelude::*;

use super::{super::FileUse, *};

/// Builds an ELF file for this machine with these libraries, this loader and these search folders.
fn forged(needed: &[&str], loader: &str, runpath: &str) -> Vec<u8> {
    const BASE: usize = 64 + 3 * 56;
    let Some(machine) = crate::program_files::elf::ELF_MACHINE else { return Vec::new() };
    let mut strings = vec![0];
    let mut put = |text: &str| {
        let at = strings.len() as u64;
        strings.extend(text.bytes().chain([0]));
        at
    };
    let mut dynamic: Vec<(u64, u64)> = needed.iter().map(|name| (1, put(name))).collect();
    dynamic.push((29, put(runpath)));
    let interpreter = put(loader);
    let table = 16 * (dynamic.len() + 3);
    let (names, length) = (BASE + table, strings.len());
    dynamic.extend([(5, names as u64), (10, length as u64), (0, 0)]);

    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    bytes.extend([3, 0]);
    bytes.extend(machine.to_le_bytes());
    bytes.resize(32, 0);
    bytes.extend(64_u64.to_le_bytes());
    bytes.resize(54, 0);
    bytes.extend([56, 0, 3, 0]);
    bytes.resize(64, 0);
    let whole = names + length;
    for (kind, offset, size) in
        [(1_u32, 0, whole), (2, BASE, table), (3, names + interpreter as usize, loader.len() + 1)]
    {
        let start = bytes.len();
        bytes.extend(kind.to_le_bytes());
        bytes.resize(start + 8, 0);
        for value in [offset, offset, offset, size, size, 8] {
            bytes.extend((value as u64).to_le_bytes());
        }
    }
    for (tag, value) in dynamic {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend(strings);
    bytes
}

const LOADER: &str = if cfg!(target_arch = "aarch64") {
    "/lib/ld-linux-aarch64.so.1"
} else {
    "/lib64/ld-linux-x86-64.so.2"
};

#[test]
fn files_that_are_not_programs_are_rejected() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let at = |name: &str| home.join(name);
    executable(&at("text"), "hello");
    executable(&at("empty"), "");
    fs::write(at("plain"), "#!/bin/sh\n").unwrap();
    fs::create_dir(at("folder")).unwrap();
    symlink("round", at("round")).unwrap();
    symlink("/proc/self/exe", at("magic")).unwrap();
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    fs::set_permissions(at("pipe"), fs::Permissions::from_mode(0o777)).unwrap();

    let path = at("text");
    assert_eq!(of(&path), Err(ProgramFilesError::NotAProgram { path }));
    let path = at("empty");
    assert_eq!(of(&path), Err(ProgramFilesError::NotAProgram { path }));
    for name in ["plain", "folder", "pipe"] {
        let path = at(name);
        assert_eq!(of(&path), Err(ProgramFilesError::NotExecutable { path }));
    }
    let path = at("round");
    assert_eq!(of(&path), Err(ProgramFilesError::LinkLoop { path }));
    let path = at("nothing");
    assert_eq!(of(&path), Err(ProgramFilesError::NotFound { path }));
    let path = PathBuf::from("bin/sh");
    assert_eq!(of(&path), Err(ProgramFilesError::NotAbsolute { path }));
    for path in ["/proc/self/exe", "/dev/null", "/usr/../proc/self/exe"] {
        assert_eq!(of(path), Err(ProgramFilesError::Reserved { path: path.into() }));
    }
    // A link through `/proc` would have another target inside the sandbox.
    assert!(matches!(of(at("magic")), Err(ProgramFilesError::Reserved { .. })));
}

#[test]
fn forged_program_needs_the_libraries_it_names() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let program = executable(&home.join("tool"), forged(&["libc.so.6"], LOADER, ""));
    let closure = of(&program).unwrap();
    assert!(closure.files().any(|(path, _)| path.ends_with("libc.so.6")), "{closure:#?}");

    let program = executable(&home.join("tool"), forged(&["libnone.so.1"], LOADER, "/usr/lib"));
    let library = "libnone.so.1".to_owned();
    assert_eq!(
        of(&program),
        Err(ProgramFilesError::MissingLibrary { library, needed_by: program })
    );
}

/// The reverse of the loader check: a program must not name another program as its library or
/// loader.
#[test]
fn program_named_as_library_is_rejected() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    for (needed, runpath) in [("/usr/bin/id", ""), ("id", "/usr/bin"), ("id", "$ORIGIN/away")] {
        symlink("/usr/bin", home.join("away")).ok();
        let program = executable(&home.join("tool"), forged(&[needed], LOADER, runpath));
        assert!(matches!(of(&program), Err(ProgramFilesError::MissingLibrary { .. })), "{needed}");
    }
    let program = executable(&home.join("tool"), forged(&[], "/usr/bin/id", ""));
    let loader = PathBuf::from("/usr/bin/id");
    assert_eq!(of(&program), Err(ProgramFilesError::NotALoader { program, loader }));
    // A file that is not code cannot be added as a library either.
    let secret = home.join("secret");
    fs::write(&secret, "key").unwrap();
    let program = executable(&home.join("tool"), forged(&[secret.to_str().unwrap()], LOADER, ""));
    assert!(matches!(of(&program), Err(ProgramFilesError::MissingLibrary { .. })));
}

/// Folders beside a program that look like git's or Python's, and lead to private folders of the
/// user.
#[test]
fn helper_folders_that_link_elsewhere_are_left_out() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let (skill, keys) = (home.join("skill"), home.join("keys"));
    for folder in [skill.join("bin"), skill.join("lib"), skill.join("lib64"), keys.clone()] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::write(keys.join("os.py"), "").unwrap();
    fs::write(keys.join("id"), "").unwrap();
    symlink(&keys, skill.join("lib/git-core")).unwrap();
    symlink(&keys, skill.join("share")).unwrap();
    symlink(&keys, skill.join("lib/python3.99")).unwrap();
    symlink(keys.join("id"), skill.join("pyvenv.cfg")).unwrap();
    for name in ["git", "python3.99", "perl", "ruby", "node"] {
        let program = executable(&skill.join("bin").join(name), forged(&["libc.so.6"], LOADER, ""));
        let closure = of(&program).unwrap();
        assert!(closure.files().all(|(path, _)| !path.starts_with(&keys)), "{closure:#?}");
        assert!(closure.folders().all(|(path, _)| !path.starts_with(&home)), "{closure:#?}");
    }
}

#[test]
fn number_of_libraries_is_limited() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    // A tree of libraries, each of which needs two more.
    for index in 0..700 {
        let names = [format!("l{}", index * 2 + 1), format!("l{}", index * 2 + 2)];
        let needed: Vec<_> = names.iter().map(String::as_str).collect();
        fs::write(home.join(format!("l{index}")), forged(&needed, LOADER, "$ORIGIN")).unwrap();
    }
    let program = executable(&home.join("tool"), forged(&["l0"], LOADER, "$ORIGIN"));
    assert!(
        matches!(of(&program), Err(ProgramFilesError::TooMany { program: named, .. }) if named == program)
    );
}

#[test]
fn own_libraries_are_libraries() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    fs::create_dir(home.join("bin")).unwrap();
    fs::create_dir(home.join("lib")).unwrap();
    fs::write(home.join("lib/libown.so"), forged(&[], LOADER, "")).unwrap();
    symlink("libown.so", home.join("lib/libown.so.1")).unwrap();
    let program =
        executable(&home.join("bin/tool"), forged(&["libown.so.1"], LOADER, "$ORIGIN/../lib"));
    let closure = of(&program).unwrap();
    assert!(closure.files().any(|file| file == (&home.join("lib/libown.so"), FileUse::Library)));
    assert!(closure.links().any(|(link, _)| link == home.join("lib/libown.so.1")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes_terminate(bytes in prop::collection::vec(any::<u8>(), 0..2048), lead in 0..4_usize) {
        let home = tempfile::tempdir().unwrap();
        let lead: &[u8] = [b"".as_slice(), b"#!", b"\x7fELF\x02\x01\x01", b"#!/usr/bin/env "][lead];
        let program = executable(&home.path().join("tool"), [lead, &bytes].concat());
        let _ = of(program);
    }

    #[test]
    fn mutated_program_terminates(
        changes in prop::collection::vec((0..1_000_usize, any::<u8>()), 1..12),
        words in prop::collection::vec((0..120_usize, prop_oneof![Just(u64::MAX), Just(1 << 63), Just(u64::MAX - 7), any::<u64>()]), 0..3),
        cut in 0..1_000_usize,
        name in prop::sample::select(vec!["tool", "git", "python3.11", "perl"]),
    ) {
        let home = tempfile::tempdir().unwrap();
        let mut bytes = forged(&["libc.so.6", "libm.so.6"], LOADER, "$ORIGIN/../lib:/usr/lib");
        for (at, byte) in changes {
            if let Some(place) = bytes.get_mut(at) { *place = byte; }
        }
        for (at, word) in words {
            if let Some(place) = bytes.get_mut(at * 8..at * 8 + 8) { place.copy_from_slice(&word.to_le_bytes()); }
        }
        if cut < 300 { bytes.truncate(bytes.len().saturating_sub(cut)); }
        let program = executable(&home.path().join(name), bytes);
        let _ = of(program);
    }

    #[test]
    fn any_ld_cache_bytes_are_handled(bytes in prop::collection::vec(any::<u8>(), 0..512), count in any::<u32>()) {
        let mut list = b"glibc-ld.so.cache1.1".to_vec();
        list.extend((count % 24).to_le_bytes());
        list.extend(bytes);
        if let Some(list) = crate::program_files::ld_cache::LdCache::parse(list) {
            let _ = list.find("libc.so.6".as_ref());
        }
    }
}
