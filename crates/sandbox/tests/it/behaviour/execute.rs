//! Tests what can be executed in granted folders, and folders that are mounted at another path.

use std::{fs, os::unix::fs::symlink, path::Path};

use savoir_sandbox::{
    ExtraPrograms, Mount, Network, PathGrant, Policy, ProcessEnd, Sandbox, SandboxError, Variable,
};

use crate::support::{self, Run, sandbox_is_supported};

const SHELL: &str = "/bin/sh";

/// Folders of each kind; the readable one contains a program.
fn policy(root: &Path, extra_programs: ExtraPrograms) -> Policy {
    for name in ["read", "write", "private"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::copy("/usr/bin/id", root.join("read/id")).unwrap();
    let programs = [SHELL, "/usr/bin/id", "/usr/bin/cp", "/usr/bin/chmod"].map(Into::into);
    let path = Variable::Plain("/usr/bin:/bin".to_owned());
    Policy {
        paths: vec![
            PathGrant::read(root.join("read")),
            PathGrant::write(root.join("write")),
            PathGrant::scratch(root.join("private")),
        ],
        programs: programs.to_vec(),
        extra_programs,
        network: Network::None,
        environment: [("PATH".to_owned(), path)].into(),
        directory: root.to_owned(),
        ..Policy::default()
    }
}

fn shell(policy: Policy, script: &str) -> (i32, String) {
    let arguments = ["-c".to_owned(), script.to_owned()];
    let process = Sandbox::new(policy).unwrap().start(SHELL.as_ref(), &arguments).unwrap();
    let run = Run::of(process, b"");
    let ProcessEnd::Exited(code) = run.outcome.end else { panic!("{:?}", run.outcome) };
    let error = String::from_utf8_lossy(&run.error);
    (code, String::from_utf8_lossy(&run.output).into_owned() + &error)
}

#[test]
fn granted_and_private_folders_are_executable_with_the_programs_of_the_system() {
    if !sandbox_is_supported() {
        return;
    }
    let folder = support::tempdir();
    let root = folder.path().canonicalize().unwrap();
    for (script, name) in [
        ("./read/id", "readable"),
        ("cp /usr/bin/id write/ && ./write/id", "writable"),
        ("cp /usr/bin/id private/ && ./private/id", "private"),
    ] {
        let (code, text) = shell(policy(&root, ExtraPrograms::System), script);
        assert_eq!(code, 0, "{name}: {text}");
        let (code, text) = shell(policy(&root, ExtraPrograms::None), script);
        assert_eq!(code, 126, "{name} with listed programs: {text}");
    }
}

#[test]
fn set_user_id_bits_have_no_effect_in_any_folder() {
    if !sandbox_is_supported() {
        return;
    }
    let folder = support::tempdir();
    let root = folder.path().canonicalize().unwrap();
    let policy = policy(&root, ExtraPrograms::System);
    let owned = root.join("read/id");
    support::mode(&owned, 0o6755);
    if support::is_root() {
        std::os::unix::fs::chown(&owned, Some(65534), Some(65534)).unwrap();
        support::mode(&owned, 0o6755);
    }
    let script = "id -u; ./read/id -u; cp /usr/bin/id private/x; chmod 6755 private/x; private/x -u; \
                  cp /usr/bin/id write/x; chmod 6755 write/x; write/x -u";
    let (_, text) = shell(policy, script);
    let mut users: Vec<&str> = text.lines().filter(|line| line.parse::<u32>().is_ok()).collect();
    assert!(users.len() >= 3, "{text}");
    users.dedup();
    assert_eq!(users.len(), 1, "{text}");
}

#[test]
fn a_folder_is_shown_at_another_path_and_cannot_be_changed() {
    if !sandbox_is_supported() {
        return;
    }
    let folder = support::tempdir();
    let root = folder.path().canonicalize().unwrap();
    let mut policy = policy(&root, ExtraPrograms::System);
    for name in ["skill/lib", "packages/deep"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::write(root.join("skill/lib/own"), "own").unwrap();
    fs::write(root.join("packages/deep/file"), "shown").unwrap();
    policy.paths.push(PathGrant::hidden(root.join("skill")));
    policy.paths.push(PathGrant::read(root.join("skill/lib")));
    policy.mounts.push(Mount { path: root.join("skill/modules"), source: root.join("packages") });
    let script = "cat skill/modules/deep/file skill/lib/own; ls packages; \
                  echo x > skill/modules/deep/file; echo x > skill/new; rmdir skill/lib";
    let (code, text) = shell(policy, script);
    assert_ne!(code, 0, "{text}");
    assert!(text.starts_with("shownown"), "{text}");
    assert!(text.matches("Read-only file system").count() >= 2, "{text}");
    assert!(!root.join("skill/modules").exists() && !root.join("skill/new").exists());
    assert_eq!(fs::read(root.join("packages/deep/file")).unwrap(), b"shown");
}

#[test]
fn a_mount_of_a_link_or_of_nothing_is_refused() {
    let folder = support::tempdir();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("secret")).unwrap();
    symlink(root.join("secret"), root.join("link")).unwrap();
    for source in ["link", "nothing"] {
        let mut policy = policy(&root, ExtraPrograms::System);
        policy.mounts.push(Mount { path: root.join("private/x"), source: root.join(source) });
        let started = Sandbox::new(policy).unwrap().start(SHELL.as_ref(), &[]);
        let error = started.map(drop).expect_err(source);
        let refused = matches!(error, SandboxError::Link { .. } | SandboxError::MissingPath { .. });
        assert!(refused, "{source}: {error}");
    }
}
