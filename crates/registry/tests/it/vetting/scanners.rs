//! Tests of external scanners, and of programs that only pretend to be scanners.

use std::{
    env, fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    time::Duration,
};

use savoir_registry::vetting::{
    Detonation, EngineOutcome, Limits, Options, Vetting, VettingReport,
};
use savoir_scan::{Severity, Verdict};

use super::{can_detonate, gaia, look, options, tree};

/// Returns the folder of installed scanners; prints a note if there is none.
fn installed() -> Option<PathBuf> {
    let folder = env::var_os("SAVOIR_TEST_SCANNERS").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("note: SAVOIR_TEST_SCANNERS is not set, so this test checks nothing here");
    }
    folder
}

fn outcome<'a>(vetted: &'a VettingReport, name: &str) -> &'a EngineOutcome {
    &vetted.engines.iter().find(|run| run.name == name).expect("a run").outcome
}

fn quiet(folder: &Path) -> Options {
    Options { folders: vec![folder.to_owned()], detonation: Detonation::Off, ..options() }
}

#[test]
fn installed_scanners_find_problems() {
    let Some(folder) = installed().filter(|_| can_detonate()) else { return };
    let vetting = Vetting::detect(quiet(&folder));
    let token = ["ghp_", "A1b2C3d4E5f6G7h8I9j0", "K1l2M3n4O5p6Q7r8"].concat();
    let body = format!(
        "import subprocess\nsubprocess.run(query, shell=True)  # nosec\nkey = '{token}'  # pragma: allowlist secret"
    );
    let files = gaia(&["shell:execute:sh"], "", &look(&body));
    let mut files = files;
    let settings = b"[bandit]\nskips = B602\nexclude = tools.py\n".to_vec();
    files
        .add(".bandit".into(), savoir_package::File { bytes: settings, executable: false })
        .unwrap();
    let vetted = vetting.vet_here(&files);
    let find = |rule: &str| vetted.findings.iter().find(|one| one.rule == rule);
    let shell = find("bandit:B602").unwrap_or_else(|| panic!("{vetted:#?}"));
    assert_eq!((shell.file.as_deref(), shell.severity), (Some("tools.py"), Severity::High));
    assert_eq!(shell.line, Some(6));
    let secret = find("detect-secrets:github-token").unwrap_or_else(|| panic!("{vetted:#?}"));
    assert_eq!((secret.file.as_deref(), secret.line), (Some("tools.py"), Some(7)));
    for name in ["bandit", "detect-secrets"] {
        assert_eq!(*outcome(&vetted, name), EngineOutcome::Ran, "{vetted:#?}");
        let run = vetted.engines.iter().find(|run| run.name == name).unwrap();
        assert!(run.version.as_deref().is_some_and(|version| version.contains('.')), "{run:?}");
    }
    assert!(vetted.verdict >= Verdict::Review);

    let vetted = vetting.vet_here(&gaia(&[], "", &look("query = query.upper()")));
    assert_eq!(vetted.verdict, Verdict::Allow, "{vetted:#?}");
    let broken = gaia(&[], "", "def (\n");
    let vetted = vetting.vet_here(&broken);
    assert!(matches!(outcome(&vetted, "bandit"), EngineOutcome::Failed(_)), "{vetted:#?}");
    assert!(vetted.verdict >= Verdict::Review);
    let text = "---\nname: demo\ndescription: Says how. Use for tests.\n---\n\nRead the file.\n";
    let vetted = vetting.vet_here(&tree(&[("SKILL.md", text)]));
    assert!(matches!(outcome(&vetted, "bandit"), EngineOutcome::NotNeeded(_)), "{vetted:#?}");
}

#[test]
fn missing_scanners_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    // A script outside of a Python environment cannot be mounted in the sandbox alone.
    let script = folder.path().join("bandit");
    fs::write(&script, "#!/bin/sh\ntrue\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let vetted = Vetting::detect(quiet(folder.path())).vet_here(&gaia(&[], "", &look("")));
    assert_eq!(*outcome(&vetted, "bandit"), EngineOutcome::Missing);
    assert_eq!(vetted.verdict, Verdict::Allow, "{vetted:#?}");
}

/// Creates an environment whose `bandit` is this module.
fn pretender(root: &Path, module: &str) -> PathBuf {
    let python = fs::canonicalize("/usr/bin/python3")
        .or_else(|_| fs::canonicalize("/usr/local/bin/python3"));
    let python = python.expect("an environment");
    let version = python.file_name().expect("an environment").to_string_lossy().into_owned();
    let bin = root.join("bin");
    let packages = root.join("lib").join(&version).join("site-packages");
    fs::create_dir_all(&bin).expect("an environment");
    fs::create_dir_all(&packages).expect("an environment");
    let settings = format!(
        "home = {}\ninclude-system-site-packages = false\nversion = {}\n",
        python.parent().expect("an environment").display(),
        version.trim_start_matches("python"),
    );
    fs::write(root.join("pyvenv.cfg"), settings).expect("an environment");
    symlink(&python, bin.join("python")).expect("an environment");
    fs::write(bin.join("bandit"), "#!/bin/sh\n").expect("an environment");
    fs::set_permissions(bin.join("bandit"), fs::Permissions::from_mode(0o755))
        .expect("an environment");
    fs::write(packages.join("bandit.py"), module).expect("an environment");
    bin
}

#[test]
fn failed_scanner_is_reported() {
    if !can_detonate() {
        return;
    }
    let report = |file: &str| {
        format!(
            "print('{{\"errors\": [], \"results\": [{{\"filename\": \"{file}\", \"line_number\": 1, \"test_id\": \"B1\", \"issue_severity\": \"HIGH\", \"issue_confidence\": \"HIGH\", \"issue_text\": \"x\"}}]}}')\n"
        )
    };
    for (module, expected) in [
        ("print('hello')\n".to_owned(), "not its report"),
        ("raise SystemExit(2)\n".to_owned(), "ended with 2"),
        ("import os\nos.abort()\n".to_owned(), "it was ended"),
        ("while True:\n    pass\n".to_owned(), "took too long"),
        ("while True:\n    print('x' * 65536)\n".to_owned(), "printed too much"),
        (report("/etc/passwd"), "a file that is not there"),
        (report("../../x"), "a file that is not there"),
        ("import socket\nsocket.create_connection(('1.1.1.1', 80))\n".to_owned(), "not its report"),
        ("open('file00000.py', 'w')\n".to_owned(), "not its report"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let bin = pretender(folder.path(), &module);
        let limits = Limits { scanner: Duration::from_secs(4), ..Limits::default() };
        let options = Options { limits, ..quiet(&bin) };
        let vetted = Vetting::detect(options).vet_here(&gaia(&[], "", &look("")));
        let EngineOutcome::Failed(why) = outcome(&vetted, "bandit") else {
            panic!("{module}\n{vetted:#?}");
        };
        assert!(why.contains(expected), "{module}\n{why}");
        assert_eq!(vetted.verdict, Verdict::Review);
    }
    let folder = tempfile::tempdir().unwrap();
    let bin = pretender(folder.path(), &report("./file00000.py"));
    let vetted = Vetting::detect(quiet(&bin)).vet_here(&gaia(&[], "", &look("")));
    assert_eq!(vetted.findings[0].rule, "bandit:B1", "{vetted:#?}");
}
