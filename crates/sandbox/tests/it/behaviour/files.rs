//! Tests paths that change during the start, and the records of opened files.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use savoir_sandbox::{
    PathGrant, Policy, Process, ProcessEnd, RecordOpenedFiles, Sandbox, SandboxError,
};

use super::read_text;
use crate::{
    check::calls::{address, c_path, call},
    support::{self, Run, SECRET, sandbox_is_supported},
};

const CAT: &str = "/usr/bin/cat";
const EXCHANGE: usize = 2;

fn exchange(one: &Path, other: &Path) {
    let (one, other) = (c_path(one), c_path(other));
    let here = libc::AT_FDCWD as usize;
    let (one, other) = (address(one.to_bytes_with_nul()), address(other.to_bytes_with_nul()));
    call(libc::SYS_renameat2, &[here, one, here, other, EXCHANGE]).unwrap();
}

#[test]
fn path_replaced_by_a_link_is_not_followed() {
    if !sandbox_is_supported() {
        return;
    }
    let folder = support::tempdir();
    let at = |name: &str| folder.path().join(name);
    for name in ["granted", "secret"] {
        fs::create_dir(at(name)).unwrap();
    }
    fs::write(at("granted/file"), "public").unwrap();
    fs::write(at("secret/file"), SECRET).unwrap();
    symlink(at("secret"), at("link")).unwrap();
    let file = at("granted/file");
    let policy = Policy {
        paths: vec![PathGrant::read(at("granted"))],
        programs: vec![CAT.into()],
        directory: "/".into(),
        ..Policy::default()
    };
    let sandbox = Sandbox::new(policy).unwrap();
    let over = AtomicBool::new(false);
    let (mut shown, mut refused) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            // A start takes some milliseconds, so some of the changes happen during a start.
            for number in 0_u64.. {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                exchange(&at("granted"), &at("link"));
                thread::sleep(Duration::from_micros(number % 41 * 250));
            }
        });
        let clock = Instant::now();
        while shown + refused < 200 || (shown < 100 && clock.elapsed() < Duration::from_secs(8)) {
            let arguments = [file.to_str().unwrap().to_owned()];
            match sandbox.start(CAT.as_ref(), &arguments) {
                Ok(process) => {
                    let run = Run::of(process, b"");
                    let text = String::from_utf8_lossy(&run.output).into_owned();
                    if text.contains(SECRET) {
                        over.store(true, Ordering::Relaxed);
                        panic!("the private file was shown");
                    }
                    shown += usize::from(text == "public");
                }
                Err(SandboxError::Link { .. } | SandboxError::Build { .. }) => refused += 1,
                Err(error) => {
                    over.store(true, Ordering::Relaxed);
                    panic!("{error}");
                }
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(shown > 0 && refused > 0, "{shown} shown, {refused} refused: nothing was tried");
}

#[test]
fn the_folder_in_which_roots_are_built_can_be_granted() {
    if !sandbox_is_supported() {
        return;
    }
    let folder = support::tempdir();
    let file = folder.path().join("file");
    fs::write(&file, "as it is outside").unwrap();
    for grant in [PathGrant::read("/tmp"), PathGrant::write("/tmp")] {
        let policy = Policy {
            paths: vec![grant.clone()],
            programs: vec![CAT.into()],
            directory: "/tmp".into(),
            ..Policy::default()
        };
        let process = Sandbox::new(policy)
            .unwrap()
            .start(CAT.as_ref(), &[file.to_str().unwrap().to_owned()])
            .unwrap();
        let run = Run::of(process, b"");
        let error = String::from_utf8_lossy(&run.error);
        assert_eq!(run.output, b"as it is outside", "{grant:?}: {error}");
    }
}

#[test]
fn opened_files_are_recorded() {
    const COPY: &str = "/usr/bin/cp";
    if !sandbox_is_supported() {
        return;
    }
    let folder = support::tempdir();
    let at = |name: &str| folder.path().join(name);
    for name in ["read", "write", "secret", "private"] {
        fs::create_dir(at(name)).unwrap();
    }
    for name in ["read/file", "read/other", "write/kept", "secret/file"] {
        fs::write(at(name), "text").unwrap();
    }
    let policy = Policy {
        paths: vec![
            PathGrant::read(at("read")),
            PathGrant::write(at("write")),
            PathGrant::protected(at("write/kept")),
            PathGrant::scratch(at("private")),
        ],
        programs: vec![CAT.into(), COPY.into()],
        directory: at("read"),
        record_opened_files: RecordOpenedFiles::On,
        ..Policy::default()
    };
    let sandbox = Sandbox::new(policy).unwrap();
    let run = |program: &str, arguments: &[&str]| {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        Run::of(sandbox.start(program.as_ref(), &arguments).unwrap(), b"").outcome
    };
    let text = |name: &str| at(name).to_str().unwrap().to_owned();
    let outcome = run(CAT, &["file", &text("secret/file"), &text("missing"), "../secret/none"]);
    assert_eq!(outcome.end, ProcessEnd::Exited(1));
    assert!(outcome.enforcement.watched);
    assert_eq!(outcome.files.read, [at("read/file")].into());
    assert_eq!(outcome.files.written, [].into());
    assert_eq!(outcome.files.denied, [at("secret/file")].into());
    assert_eq!(outcome.files.more, 0);
    let outcome = run(COPY, &["file", &text("write/new")]);
    assert_eq!(outcome.end, ProcessEnd::Exited(0));
    assert_eq!(read_text(&at("write/new")), "text");
    assert!(outcome.files.read.contains(&at("read/file")), "{:?}", outcome.files);
    assert_eq!(outcome.files.written, [at("write/new")].into());
    for target in ["write/kept", "read/other", "read/new"] {
        let outcome = run(COPY, &["file", &text(target)]);
        assert_eq!(outcome.end, ProcessEnd::Exited(1), "{target}");
        assert_eq!(outcome.files.denied, [at(target)].into());
        assert_eq!(outcome.files.written, [].into());
    }
    // Access to private scratch folders is not recorded as written files.
    let outcome = run(COPY, &["file", &text("private/new")]);
    assert_eq!(outcome.end, ProcessEnd::Exited(0));
    assert_eq!(outcome.files.written, [].into());
    assert!(!at("private/new").exists());
}

#[test]
fn concurrent_runs_can_share_a_folder() {
    const TRUE: &str = "/usr/bin/true";
    if !sandbox_is_supported() {
        return;
    }
    let folder = support::tempdir();
    let missing = folder.path().join("missing");
    let policy = Policy {
        paths: vec![PathGrant::write(folder.path()), PathGrant::protected(&missing)],
        programs: vec![TRUE.into()],
        directory: "/".into(),
        ..Policy::default()
    };
    let sandbox = Sandbox::new(policy).unwrap();
    let errors: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    (0..40)
                        .filter_map(|_| sandbox.start(TRUE.as_ref(), &[]).map(Process::stop).err())
                        .map(|error| error.to_string())
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(errors.is_empty(), "{} of 160 starts: {}", errors.len(), errors[0]);
    assert!(!missing.exists(), "nothing is made");
}

#[test]
fn accesses_through_own_links_are_recorded() {
    const LINK: &str = "/usr/bin/ln";
    const SHELL: &str = "/bin/sh";
    if !sandbox_is_supported() {
        return;
    }
    let folder = support::tempdir();
    let at = |name: &str| folder.path().join(name);
    for name in ["read", "private", "write"] {
        fs::create_dir(at(name)).unwrap();
    }
    fs::write(at("read/file"), "text").unwrap();
    let policy = Policy {
        paths: vec![
            PathGrant::read(at("read")),
            PathGrant::write(at("write")),
            PathGrant::scratch(at("private")),
        ],
        programs: [CAT, LINK, SHELL].map(Into::into).to_vec(),
        directory: at("read"),
        record_opened_files: RecordOpenedFiles::On,
        ..Policy::default()
    };
    let sandbox = Sandbox::new(policy).unwrap();
    let there = at("read").to_str().unwrap().to_owned();
    for place in ["private", "write"].map(|name| at(name).to_str().unwrap().to_owned()) {
        for script in [
            format!("{LINK} -s {there}/file {place}/other && {CAT} {place}/other"),
            format!("{LINK} -s {there} {place}/folder && {CAT} {place}/folder/file"),
            format!("cd {place} && {CAT} /proc/self/root{there}/file"),
        ] {
            let arguments = ["-c".to_owned(), script.clone()];
            let run = Run::of(sandbox.start(SHELL.as_ref(), &arguments).unwrap(), b"");
            assert_eq!(run.outcome.end, ProcessEnd::Exited(0), "{script}");
            let files = run.outcome.files;
            assert!(files.read.contains(&at("read/file")), "{script}: {files:?}");
        }
    }
    let new = folder.path().join("outside");
    let arguments = ["-c".to_owned(), format!("echo > {}", new.display())];
    let run = Run::of(sandbox.start(SHELL.as_ref(), &arguments).unwrap(), b"");
    assert!(run.outcome.files.denied.contains(&new), "{:?}", run.outcome.files);
}
