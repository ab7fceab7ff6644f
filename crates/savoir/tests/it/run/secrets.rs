//! Stored secrets: who gets them, and where they are never seen.

mod keyring;

use std::{fs, io::Write as _, os::unix::fs::PermissionsExt as _, process::Stdio};

use super::{Stage, Transcript, holds, server::Server};

/// Nothing in its name tells that it is a secret.
const NAME: &str = "ACME_WORD";
const VALUE: &str = "open-sesame-4711";

/// Runs a command with something on its standard input.
fn with_input(stage: &Stage, arguments: &[&str], input: &str) -> Transcript {
    let mut command = stage.command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("savoir runs");
    // It may have refused already.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("an end");
    Transcript {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn store(stage: &Stage, options: &[&str]) {
    let run =
        with_input(stage, &[&["secret", "set", NAME], options].concat(), "open-sesame-4711\n");
    assert_eq!(run.code, 0, "{run}");
    assert!(!run.to_string().contains(VALUE), "{run}");
}

fn needs() -> String {
    format!("requirements:\n  env_vars: [{NAME}]\n")
}

/// How long the value is that a tool sees; null if it sees none.
fn seen(stage: &Stage, skill: &str) -> serde_json::Value {
    let code = format!("code=import os\nresult = len(os.environ.get('{NAME}', ''))");
    let run = stage.run(skill, &["--param", &code]);
    run.succeeds()["parsed"]["result"].clone()
}

#[test]
fn only_a_skill_that_declares_a_secret_gets_it() {
    let stage = Stage::new();
    stage.probe("declares", &[&format!("env:read:{NAME}")], "");
    stage.probe("needs", &[], &needs());
    stage.probe("other", &["env:read:OTHER"], "");
    stage.probe("pattern", &["env:read:ACME_*"], "");
    for skill in ["declares", "needs", "other", "pattern"] {
        stage.approve(skill);
    }
    let run = stage.run("needs", &["--param", "code=result = 1"]);
    run.fails(1, "missing-env-vars");
    run.says(&[&format!("savoir secret set {NAME}"), "a variable ACME_WORD of your environment"]);
    store(&stage, &[]);
    let length = VALUE.len();
    for (skill, expected) in [("declares", length), ("needs", length), ("other", 0), ("pattern", 0)]
    {
        assert_eq!(seen(&stage, skill), expected, "{skill}");
    }
    let file = stage.path(".savoir/data/secrets/secrets.json");
    let mode =
        |path: &std::path::Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().expect("a folder")), 0o700);
    let list = stage.savoir(&["secret", "list"]);
    assert!(list.stdout.contains(NAME) && !list.stdout.contains(VALUE), "{list}");
    assert!(!stage.savoir(&["secret", "list", "--json"]).stdout.contains(VALUE));
    let run = stage.savoir(&["secret", "remove", NAME]);
    assert_eq!(run.code, 0, "{run}");
    stage.run("needs", &["--param", "code=result = 1"]).fails(1, "missing-env-vars");
    assert_eq!(stage.savoir(&["secret", "remove", NAME]).code, 2);
}

#[test]
fn a_secret_of_one_skill_is_not_given_to_another_of_the_same_name() {
    let stage = Stage::new();
    stage.probe("acme", &[], &needs());
    stage.probe("stranger", &[], &needs());
    let text = stage.sandbox.read("skills/stranger/SKILL.md");
    stage.write("skills/stranger/SKILL.md", text.replace("name: stranger", "name: acme"));
    store(&stage, &["--skill", &stage.skill("acme")]);
    stage.approve("acme");
    stage.approve("stranger");
    assert_eq!(seen(&stage, "acme"), VALUE.len());
    stage.run("stranger", &["--param", "code=result = 1"]).fails(1, "missing-env-vars");
}

#[test]
fn the_environment_counts_before_a_stored_secret() {
    let mut stage = Stage::with_probe(&[&format!("env:read:{NAME}")]);
    store(&stage, &[]);
    stage.set(NAME, "four");
    assert_eq!(seen(&stage, "probe"), 4);
}

#[test]
fn a_stored_secret_is_never_shown() {
    let stage = Stage::new();
    store(&stage, &[]);
    stage.probe("probe", &[&format!("env:read:{NAME}")], "");
    stage.write(
        "skills/tell/SKILL.md",
        format!(
            "---\nname: tell\nversion: 1.0.0\ndescription: Tells. Use in tests.\nmetadata:\n  openclaw:\n    requires:\n      env: [{NAME}]\n---\n\nRun it.\n"
        ),
    );
    stage.write(
        "skills/tell/scripts/tell.sh",
        format!("printf 'a %s b' \"${{{NAME}%%-*}}\"; printf '%s\\n' \"-${{{NAME}#*-}}\"; echo ${NAME} >&2; exit 1\n"),
    );
    stage.approve("probe");
    stage.approve("tell");
    for code in [
        format!("import os; raise RuntimeError('it is ' + os.environ['{NAME}'])"),
        format!("import os; result = {{'a': ['x' + os.environ['{NAME}']]}}"),
        format!("import os; print(os.environ['{NAME}']); os._exit(1)"),
    ] {
        let run = stage.run("probe", &["--param", &format!("code={code}")]);
        assert!(!run.0.to_string().contains(VALUE), "{}", run.0);
    }
    let target = stage.skill("tell/scripts/tell.sh");
    for options in [&[][..], &["--json"]] {
        let run = stage.savoir(&[&["run", &target], options].concat());
        assert_eq!(run.code, 1, "{run}");
        assert!(!run.to_string().contains(VALUE), "{run}");
        assert!(run.to_string().contains("[secret]"), "{run}");
    }
    fs::remove_dir_all(stage.path(".savoir/data/secrets")).expect("a folder");
    assert_eq!(holds(&stage.path(".savoir"), VALUE), None);
}

#[test]
fn a_stored_secret_goes_to_declared_hosts_only() {
    let stage = Stage::new();
    store(&stage, &[]);
    let server = Server::answering("ok");
    let network = format!("network:read:{}", server.url(""));
    stage.probe("probe", &[&format!("env:read:{NAME}"), &network], "");
    stage.approve("probe");
    let code = format!(
        "import os, urllib.request\nword = os.environ['{NAME}']\n\
         request = urllib.request.Request('{}', headers={{'X-Word': word}})\n\
         result = [word, urllib.request.urlopen(request).read().decode()]\n",
        server.url("/x")
    );
    let result = stage.execute(&code);
    assert_eq!(result[1], "ok");
    assert_ne!(result[0], VALUE, "the program sees a placeholder");
    assert_eq!(server.seen()[0].header("x-word"), Some(VALUE));
}

#[test]
fn a_variable_that_is_set_and_not_granted_is_named_with_the_grant() {
    let mut stage = Stage::with_probe(&[]);
    stage.set("ACME_API_TOKEN", "abc-123-def");
    let code = "code=raise RuntimeError('set ACME_API_TOKEN')";
    let target = stage.skill("probe");
    let run = stage.savoir(&["run", &target, "--param", code]);
    let grant = format!("savoir approve {target} --allow-env ACME_API_TOKEN");
    assert!(run.stderr.contains(&grant), "{run}");
    let run = stage.savoir(&["approve", &target, "--allow-env", "ACME_API_TOKEN", "--yes"]);
    assert_eq!(run.code, 0, "{run}");
    // The user chose to show it.
    let value = stage.execute("import os\nresult = os.environ['ACME_API_TOKEN']");
    assert_eq!(value, "abc-123-def");
}

#[test]
fn a_value_or_a_bad_name_is_refused() {
    let stage = Stage::new();
    for name in ["NAME=value", "LD_PRELOAD", "PATH", "1X", "A-B", ""] {
        let run = with_input(&stage, &["secret", "set", name], "x\n");
        assert_eq!(run.code, 2, "{name}: {run}");
    }
    let run = with_input(&stage, &["secret", "set", NAME], "");
    assert_eq!(run.code, 2, "{run}");
    let run = with_input(&stage, &["secret", "set", NAME, VALUE], "x\n");
    assert_eq!(run.code, 2, "{run}");
    store(&stage, &[]);
    let file = stage.path(".savoir/data/secrets/secrets.json");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("a mode");
    let run = stage.savoir(&["secret", "list"]);
    assert_ne!(run.code, 0, "{run}");
    assert!(run.stderr.contains("chmod 600"), "{run}");
}
