//! Tests scripts and their interpreters.

use super::{super::FileUse, *};

fn kinds(closure: &ProgramFiles, kind: FileUse) -> Vec<PathBuf> {
    closure.files().filter(|(_, own)| *own == kind).map(|(path, _)| path.to_path_buf()).collect()
}

#[test]
fn script_needs_its_interpreter() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let script = executable(&home.join("tool"), "#!/bin/sh -e\necho\n");
    let closure = of(&script).unwrap();
    assert_eq!(kinds(&closure, FileUse::Program), [script]);
    let shell = fs::canonicalize("/bin/sh").unwrap();
    assert_eq!(kinds(&closure, FileUse::Interpreter), [shell]);
}

#[test]
fn env_script_needs_the_program_that_env_starts() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    for line in ["#!/usr/bin/env sh", "#!/usr/bin/env -S A=1 sh -e", "#!/usr/bin/env /bin/sh"] {
        let script = executable(&home.join("tool"), line);
        let closure = of(&script).unwrap();
        let mut expected =
            ["/usr/bin/env", "/bin/sh"].map(|path| fs::canonicalize(path).unwrap()).to_vec();
        expected.sort();
        assert_eq!(kinds(&closure, FileUse::Interpreter), expected, "{line}");
    }
    let script = executable(&home.join("tool"), "#!/usr/bin/env no-such-program\n");
    let interpreter = "no-such-program".to_owned();
    assert_eq!(of(&script), Err(ProgramFilesError::MissingInterpreter { script, interpreter }));
}

#[test]
fn nested_scripts_are_limited() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    executable(&home.join("0"), "#!/bin/sh\n");
    for depth in 1..6 {
        let line = format!("#!{}\n", home.join((depth - 1).to_string()).display());
        executable(&home.join(depth.to_string()), line);
    }
    assert!(of(home.join("3")).is_ok());
    assert_eq!(of(home.join("5")), Err(ProgramFilesError::TooDeep { path: home.join("5") }));
    let own = home.join("own");
    executable(&own, format!("#!{}\n", own.display()));
    assert_eq!(of(&own), Err(ProgramFilesError::TooDeep { path: own }));
}

#[test]
fn missing_interpreters_are_rejected() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    for interpreter in ["/no/such/shell", "relative/shell"] {
        let script = executable(&home.join("tool"), format!("#!{interpreter}\n"));
        let interpreter = interpreter.to_owned();
        assert_eq!(of(&script), Err(ProgramFilesError::MissingInterpreter { script, interpreter }));
    }
}
