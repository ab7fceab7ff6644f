//! Tests policies and programs that are refused, each with an error that names the reason.

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
    path::{Path, PathBuf},
};

use savoir_sandbox::{PathGrant, Policy, ProgramFilesError, Sandbox, SandboxError, Variable};

use crate::{
    check::calls,
    support::{self, sandbox_is_supported},
};

const TRUE: &str = "/usr/bin/true";

fn policy() -> Policy {
    Policy { programs: vec![TRUE.into()], directory: "/".into(), ..Policy::default() }
}

fn start(policy: Policy, arguments: &[String]) -> SandboxError {
    let result = Sandbox::new(policy).and_then(|sandbox| sandbox.start(TRUE.as_ref(), arguments));
    result.expect_err("it started")
}

fn granting(grant: PathGrant) -> SandboxError {
    start(Policy { paths: vec![grant], ..policy() }, &[])
}

#[test]
fn paths_that_cannot_be_granted() {
    if !sandbox_is_supported() {
        return;
    }
    let folder = support::tempdir();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    symlink(at("folder"), at("link")).unwrap();
    let error = granting(PathGrant::write(at("missing")));
    assert!(matches!(&error, SandboxError::MissingPath { path } if *path == at("missing")));
    for path in ["relative", "", "/", "/tmp/../etc"].map(PathBuf::from) {
        let error = granting(PathGrant::read(&path));
        assert!(matches!(&error, SandboxError::BadPath { path: bad } if *bad == path), "{error}");
    }
    for grant in [
        PathGrant::read(at("link")),
        PathGrant::write(at("link")),
        PathGrant::scratch(at("link")),
        PathGrant::protected(at("link")),
        PathGrant::read(at("link/below")),
    ] {
        let error = granting(grant);
        assert!(
            matches!(&error, SandboxError::Link { link, .. } if *link == at("link")),
            "{error}"
        );
    }
    calls::make_pipe(&at("pipe")).unwrap();
    let _listener = UnixListener::bind(at("socket")).unwrap();
    for path in [at("pipe"), at("socket"), PathBuf::from("/dev/tty")] {
        for grant in [PathGrant::read(&path), PathGrant::write(&path)] {
            let error = granting(grant);
            let names = error.to_string().contains(&*path.to_string_lossy());
            assert!(matches!(error, SandboxError::Build { .. }) && names, "{error}");
        }
    }
    let error = granting(PathGrant::scratch("/tmp/a\0b"));
    assert!(matches!(error, SandboxError::Nul { what: "a path" }), "{error}");
}

#[test]
fn hidden_working_directories_are_rejected() {
    if !sandbox_is_supported() {
        return;
    }
    let folder = support::tempdir();
    for directory in [folder.path(), Path::new("/nonexistent"), Path::new("/etc/passwd")] {
        let error = start(Policy { directory: directory.to_owned(), ..policy() }, &[]);
        let expected =
            matches!(&error, SandboxError::HiddenDirectory { path } if path == directory);
        assert!(expected, "{error}");
    }
}

#[test]
fn programs_that_cannot_be_started() {
    if !sandbox_is_supported() {
        return;
    }
    let folder = support::tempdir();
    let text = folder.path().join("text");
    fs::write(&text, "no program").unwrap();
    let of = |program: &Path| {
        let policy = Policy { programs: vec![program.to_owned()], ..policy() };
        Sandbox::new(policy).expect_err("it is ready")
    };
    let error = of(&folder.path().join("missing"));
    assert!(matches!(error, SandboxError::Program(ProgramFilesError::NotFound { .. })), "{error}");
    for path in [&*text, folder.path()] {
        let error = of(path);
        let refused =
            matches!(error, SandboxError::Program(ProgramFilesError::NotExecutable { .. }));
        assert!(refused, "{error}");
    }
    support::mode(&text, 0o755);
    let error = of(&text);
    assert!(
        matches!(error, SandboxError::Program(ProgramFilesError::NotAProgram { .. })),
        "{error}"
    );
    let error = of(Path::new("true"));
    assert!(
        matches!(error, SandboxError::Program(ProgramFilesError::NotAbsolute { .. })),
        "{error}"
    );
    // A program that exists but is not listed in the policy.
    let sandbox = Sandbox::new(policy()).unwrap();
    let error = sandbox.start("/usr/bin/id".as_ref(), &[]).expect_err("it started");
    let expected =
        matches!(&error, SandboxError::Execute { program, .. } if program.ends_with("id"));
    assert!(expected, "{error}");
}

#[test]
fn invalid_arguments_and_variables_are_rejected() {
    if !sandbox_is_supported() {
        return;
    }
    let error = start(policy(), &["a\0b".to_owned()]);
    assert!(matches!(error, SandboxError::Nul { what: "an argument" }), "{error}");
    let with = |name: &str, value: &str| {
        let mut policy = policy();
        policy.environment.insert(name.to_owned(), Variable::Plain(value.to_owned()));
        start(policy, &[])
    };
    let error = with("NAME", "a\0b");
    assert!(matches!(error, SandboxError::Nul { what: "a variable" }), "{error}");
    for bad in ["", "A=B", "A\0B"] {
        let error = with(bad, "value");
        assert!(matches!(&error, SandboxError::BadVariable { name } if name == bad), "{error}");
    }
}
