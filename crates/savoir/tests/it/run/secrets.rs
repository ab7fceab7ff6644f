//! Tests stored secrets: which skills get them, and where they never appear.

mod keyring;

use std::{fs, io::Write as _, os::unix::fs::PermissionsExt as _, process::Stdio};

use super::{RunTestEnv, Transcript, find_containing, server::Server};

/// A name that does not look like a secret.
const NAME: &str = "ACME_WORD";
const VALUE: &str = "open-sesame-4711";

/// Runs a command with input on standard input.
fn with_input(test_env: &RunTestEnv, arguments: &[&str], input: &str) -> Transcript {
    let mut command = test_env.command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("savoir runs");
    // The command may have failed before it reads.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("an end");
    Transcript {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn store(test_env: &RunTestEnv, options: &[&str]) {
    let run =
        with_input(test_env, &[&["secret", "set", NAME], options].concat(), "open-sesame-4711\n");
    assert_eq!(run.code, 0, "{run}");
    assert!(!run.to_string().contains(VALUE), "{run}");
}

fn needs() -> String {
    format!("requirements:\n  env_vars: [{NAME}]\n")
}

/// The length of the value that a tool sees; 0 if it sees none.
fn seen(test_env: &RunTestEnv, skill: &str) -> serde_json::Value {
    let code = format!("code=import os\nresult = len(os.environ.get('{NAME}', ''))");
    let run = test_env.run(skill, &["--param", &code]);
    run.succeeds()["parsed"]["result"].clone()
}

#[test]
fn only_a_skill_that_declares_a_secret_gets_it() {
    let test_env = RunTestEnv::new();
    test_env.probe("declares", &[&format!("env:read:{NAME}")], "");
    test_env.probe("needs", &[], &needs());
    test_env.probe("other", &["env:read:OTHER"], "");
    test_env.probe("pattern", &["env:read:ACME_*"], "");
    for skill in ["declares", "needs", "other", "pattern"] {
        test_env.approve(skill);
    }
    let run = test_env.run("needs", &["--param", "code=result = 1"]);
    run.fails(1, "missing-env-vars");
    run.assert_error_contains(&[
        &format!("savoir secret set {NAME}"),
        "a variable ACME_WORD of your environment",
    ]);
    store(&test_env, &[]);
    let length = VALUE.len();
    for (skill, expected) in [("declares", length), ("needs", length), ("other", 0), ("pattern", 0)]
    {
        assert_eq!(seen(&test_env, skill), expected, "{skill}");
    }
    let file = test_env.path(".savoir/data/secrets/secrets.json");
    let mode =
        |path: &std::path::Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().expect("a folder")), 0o700);
    let list = test_env.savoir(&["secret", "list"]);
    assert!(list.stdout.contains(NAME) && !list.stdout.contains(VALUE), "{list}");
    assert!(!test_env.savoir(&["secret", "list", "--json"]).stdout.contains(VALUE));
    let run = test_env.savoir(&["secret", "remove", NAME]);
    assert_eq!(run.code, 0, "{run}");
    test_env.run("needs", &["--param", "code=result = 1"]).fails(1, "missing-env-vars");
    assert_eq!(test_env.savoir(&["secret", "remove", NAME]).code, 2);
}

#[test]
fn a_secret_of_one_skill_is_not_given_to_another_of_the_same_name() {
    let test_env = RunTestEnv::new();
    test_env.probe("acme", &[], &needs());
    test_env.probe("stranger", &[], &needs());
    let text = test_env.sandbox.read("skills/stranger/SKILL.md");
    test_env.write("skills/stranger/SKILL.md", text.replace("name: stranger", "name: acme"));
    store(&test_env, &["--skill", &test_env.skill("acme")]);
    test_env.approve("acme");
    test_env.approve("stranger");
    assert_eq!(seen(&test_env, "acme"), VALUE.len());
    test_env.run("stranger", &["--param", "code=result = 1"]).fails(1, "missing-env-vars");
}

#[test]
fn environment_variable_overrides_a_stored_secret() {
    let mut test_env = RunTestEnv::with_probe(&[&format!("env:read:{NAME}")]);
    store(&test_env, &[]);
    test_env.set(NAME, "four");
    assert_eq!(seen(&test_env, "probe"), 4);
}

#[test]
fn a_stored_secret_is_never_shown() {
    let test_env = RunTestEnv::new();
    store(&test_env, &[]);
    test_env.probe("probe", &[&format!("env:read:{NAME}")], "");
    test_env.write(
        "skills/tell/SKILL.md",
        format!(
            "---\nname: tell\nversion: 1.0.0\ndescription: Tells. Use in tests.\nmetadata:\n  openclaw:\n    requires:\n      env: [{NAME}]\n---\n\nRun it.\n"
        ),
    );
    test_env.write(
        "skills/tell/scripts/tell.sh",
        format!("printf 'a %s b' \"${{{NAME}%%-*}}\"; printf '%s\\n' \"-${{{NAME}#*-}}\"; echo ${NAME} >&2; exit 1\n"),
    );
    test_env.approve("probe");
    test_env.approve("tell");
    for code in [
        format!("import os; raise RuntimeError('it is ' + os.environ['{NAME}'])"),
        format!("import os; result = {{'a': ['x' + os.environ['{NAME}']]}}"),
        format!("import os; print(os.environ['{NAME}']); os._exit(1)"),
    ] {
        let run = test_env.run("probe", &["--param", &format!("code={code}")]);
        assert!(!run.0.to_string().contains(VALUE), "{}", run.0);
    }
    let target = test_env.skill("tell/scripts/tell.sh");
    for options in [&[][..], &["--json"]] {
        let run = test_env.savoir(&[&["run", &target], options].concat());
        assert_eq!(run.code, 1, "{run}");
        assert!(!run.to_string().contains(VALUE), "{run}");
        assert!(run.to_string().contains("[secret]"), "{run}");
    }
    fs::remove_dir_all(test_env.path(".savoir/data/secrets")).expect("a folder");
    assert_eq!(find_containing(&test_env.path(".savoir"), VALUE), None);
}

#[test]
fn a_stored_secret_goes_to_declared_hosts_only() {
    let test_env = RunTestEnv::new();
    store(&test_env, &[]);
    let server = Server::answering("ok");
    let network = format!("network:read:{}", server.url(""));
    test_env.probe("probe", &[&format!("env:read:{NAME}"), &network], "");
    test_env.approve("probe");
    let code = format!(
        "import os, urllib.request\nword = os.environ['{NAME}']\n\
         request = urllib.request.Request('{}', headers={{'X-Word': word}})\n\
         result = [word, urllib.request.urlopen(request).read().decode()]\n",
        server.url("/x")
    );
    let result = test_env.execute(&code);
    assert_eq!(result[1], "ok");
    assert_ne!(result[0], VALUE, "the program sees a placeholder");
    assert_eq!(server.seen()[0].header("x-word"), Some(VALUE));
}

#[test]
fn a_variable_that_is_set_and_not_granted_is_named_with_the_grant() {
    let mut test_env = RunTestEnv::with_probe(&[]);
    test_env.set("ACME_API_TOKEN", "abc-123-def");
    let code = "code=raise RuntimeError('set ACME_API_TOKEN')";
    let target = test_env.skill("probe");
    let run = test_env.savoir(&["run", &target, "--param", code]);
    let grant = format!("savoir approve {target} --allow-env ACME_API_TOKEN");
    assert!(run.stderr.contains(&grant), "{run}");
    let run = test_env.savoir(&["approve", &target, "--allow-env", "ACME_API_TOKEN", "--yes"]);
    assert_eq!(run.code, 0, "{run}");
    // The user chose to show the value with `--allow-env`.
    let value = test_env.execute("import os\nresult = os.environ['ACME_API_TOKEN']");
    assert_eq!(value, "abc-123-def");
}

#[test]
fn a_value_or_a_bad_name_is_refused() {
    let test_env = RunTestEnv::new();
    for name in ["NAME=value", "LD_PRELOAD", "PATH", "1X", "A-B", ""] {
        let run = with_input(&test_env, &["secret", "set", name], "x\n");
        assert_eq!(run.code, 2, "{name}: {run}");
    }
    let run = with_input(&test_env, &["secret", "set", NAME], "");
    assert_eq!(run.code, 2, "{run}");
    let run = with_input(&test_env, &["secret", "set", NAME, VALUE], "x\n");
    assert_eq!(run.code, 2, "{run}");
    store(&test_env, &[]);
    let file = test_env.path(".savoir/data/secrets/secrets.json");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("a mode");
    let run = test_env.savoir(&["secret", "list"]);
    assert_ne!(run.code, 0, "{run}");
    assert!(run.stderr.contains("chmod 600"), "{run}");
}
