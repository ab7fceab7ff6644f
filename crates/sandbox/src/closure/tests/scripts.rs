//! Scripts and what interprets them.

use super::{super::Kind, *};

fn kinds(closure: &Closure, kind: Kind) -> Vec<PathBuf> {
    closure.files().filter(|(_, own)| *own == kind).map(|(path, _)| path.to_path_buf()).collect()
}

#[test]
fn closure_of_a_script_has_its_interpreter() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let script = executable(&home.join("tool"), "#!/bin/sh -e\necho\n");
    let closure = of(&script).unwrap();
    assert_eq!(kinds(&closure, Kind::Program), [script]);
    let shell = fs::canonicalize("/bin/sh").unwrap();
    assert_eq!(kinds(&closure, Kind::Interpreter), [shell]);
}

#[test]
fn closure_of_env_has_what_env_starts() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    for line in ["#!/usr/bin/env sh", "#!/usr/bin/env -S A=1 sh -e", "#!/usr/bin/env /bin/sh"] {
        let script = executable(&home.join("tool"), line);
        let closure = of(&script).unwrap();
        let mut expected =
            ["/usr/bin/env", "/bin/sh"].map(|path| fs::canonicalize(path).unwrap()).to_vec();
        expected.sort();
        assert_eq!(kinds(&closure, Kind::Interpreter), expected, "{line}");
    }
    let script = executable(&home.join("tool"), "#!/usr/bin/env no-such-program\n");
    let interpreter = "no-such-program".to_owned();
    assert_eq!(of(&script), Err(ClosureError::MissingInterpreter { script, interpreter }));
}

#[test]
fn closure_of_a_chain_of_scripts_ends() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    executable(&home.join("0"), "#!/bin/sh\n");
    for depth in 1..6 {
        let line = format!("#!{}\n", home.join((depth - 1).to_string()).display());
        executable(&home.join(depth.to_string()), line);
    }
    assert!(of(home.join("3")).is_ok());
    assert_eq!(of(home.join("5")), Err(ClosureError::TooDeep { path: home.join("5") }));
    let own = home.join("own");
    executable(&own, format!("#!{}\n", own.display()));
    assert_eq!(of(&own), Err(ClosureError::TooDeep { path: own }));
}

#[test]
fn closure_refuses_interpreters_that_are_not_there() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    for interpreter in ["/no/such/shell", "relative/shell"] {
        let script = executable(&home.join("tool"), format!("#!{interpreter}\n"));
        let interpreter = interpreter.to_owned();
        assert_eq!(of(&script), Err(ClosureError::MissingInterpreter { script, interpreter }));
    }
}
