//! Tests denied access: how it is reported, what the user can allow, and what is never offered.

use super::{RunTestEnv, Transcript, server::Server};
use crate::support::terminal;

/// Creates an environment with an approved skill that has one shell script.
fn with_script(script: &str) -> RunTestEnv {
    let test_env = RunTestEnv::new();
    let text = "---\nname: tools\ndescription: Does things. Use in tests.\n---\n\nRun it.\n";
    test_env.write("skills/tools/SKILL.md", text);
    test_env.write("skills/tools/scripts/a.sh", script);
    test_env.approve("tools");
    test_env
}

fn run(test_env: &RunTestEnv, options: &[&str]) -> Transcript {
    test_env.savoir(&[&["run", &test_env.skill("tools/scripts/a.sh")], options].concat())
}

/// Runs the script on a terminal, with an answer to each question.
fn typed(test_env: &RunTestEnv, answers: &[&str]) -> Transcript {
    let steps: Vec<_> = answers.iter().map(|answer| ("run it again? ", *answer)).collect();
    let command = test_env.command(&["run", &test_env.skill("tools/scripts/a.sh")]);
    terminal::run_in_steps(command, &steps)
}

#[test]
fn denials_are_in_the_json() {
    let test_env = with_script("set -e\necho x > out.txt\n");
    let failed = run(&test_env, &["--json"]);
    let denied = &failed.json()["denied"];
    assert_eq!(denied[0]["what"], "writing out.txt", "{failed}");
    assert_eq!(denied[0]["allow"], "--allow-write out.txt", "{failed}");
}

#[test]
fn the_hint_for_a_new_file_names_it_unless_it_is_temporary() {
    for (script, value) in [
        ("set -e\necho x > report.txt\n", "report.txt"),
        ("set -e\nmkdir out\necho x > out/a.txt\n", "out"),
        // `sed` creates a temporary file with a random name.
        ("sed -i s/a/b/ notes.txt\n", "."),
    ] {
        let test_env = with_script(script);
        test_env.write("work/notes.txt", "a\n");
        let failed = run(&test_env, &[]);
        let hint = format!("--allow-write {value}\n");
        assert!(failed.stderr.contains(&hint), "{script}: {failed}");
        let skill = test_env.skill("tools");
        let approved = test_env.savoir(&["approve", &skill, "--yes", "--allow-write", value]);
        assert_eq!(approved.code, 0, "{approved}");
        let fine = run(&test_env, &[]);
        assert_eq!(fine.code, 0, "{script}: {fine}");
    }
}

#[test]
fn an_address_without_a_name_is_named_in_the_hint() {
    let server = Server::answering("fine");
    if !super::has_program("curl") {
        return;
    }
    for option in ["-sS", "-s"] {
        let command = format!("curl {option} http://127.0.0.1:{}/", server.port);
        let test_env =
            RunTestEnv::with_commands("read_only: true\n", &[("get", "", command.as_str())]);
        let failed = test_env.savoir(&["run", &test_env.skill("demo/get")]);
        assert_eq!(failed.code, 7, "{failed}");
        let value = format!("127.0.0.1:{}", server.port);
        let allow = format!("--allow-private-host {value}");
        assert!(failed.stderr.contains(&allow), "{failed}");
        let skill = test_env.skill("demo");
        let run = test_env.savoir(&["approve", &skill, "--yes", "--allow-private-host", &value]);
        assert_eq!(run.code, 0, "{run}");
        let fine = test_env.savoir(&["run", &test_env.skill("demo/get")]);
        assert_eq!((fine.code, fine.stdout.trim()), (0, "fine"), "{fine}");
    }
}

#[test]
fn a_variable_in_the_command_itself_is_named() {
    let mut test_env = RunTestEnv::with_commands(
        "read_only: true\n",
        &[("show", "", "sh -c 'test -n \"$ACME_API_TOKEN\"'")],
    );
    test_env.set("ACME_API_TOKEN", "x-1234");
    test_env.set("OTHER_TOKEN", "y-1234");
    let failed = test_env.savoir(&["run", &test_env.skill("demo/show")]);
    assert_eq!(failed.code, 1, "{failed}");
    assert!(failed.stderr.contains("--allow-env ACME_API_TOKEN"), "{failed}");
    assert!(!failed.stderr.contains("OTHER_TOKEN"), "{failed}");
}

#[test]
fn one_option_is_printed_once() {
    let command = "git config --global user.name";
    let test_env = RunTestEnv::with_commands("read_only: true\n", &[("name", "", command)]);
    test_env.repository();
    test_env.write("home/.gitconfig", "[user]\n\tname = Ada\n");
    let failed = test_env.savoir(&["run", &test_env.skill("demo/name")]);
    assert_ne!(failed.code, 0, "{failed}");
    let last = failed.stderr.lines().find(|line| line.contains("to allow it:"));
    let last = last.unwrap_or_else(|| panic!("no hint: {failed}"));
    assert_eq!(last.matches("--allow-read").count(), 1, "{failed}");
}

#[test]
fn missing_files_of_the_skill_have_fitting_hints() {
    for (command, hint) in [
        ("./scripts/none.sh", "the skill has no such file: add it"),
        (
            ".venv/bin/python -c 1",
            "write `python` in the command, and run it with: --allow python-env",
        ),
        ("no-such-program-1", "install no-such-program-1"),
    ] {
        let test_env = RunTestEnv::new();
        test_env.commands("demo", "read_only: true\n", &[("t", "", command)]);
        let failed = test_env.savoir(&["run", &test_env.skill("demo/t")]);
        assert_ne!(failed.code, 0, "{failed}");
        assert!(failed.stderr.contains(hint), "{command}: {failed}");
    }
}

#[test]
fn denied_host_is_reported_even_if_the_tool_succeeds() {
    let server = Server::answering("fine");
    let test_env = with_script(&format!("curl -sS http://localhost:{}/\nexit 0\n", server.port));
    if !super::has_program("curl") {
        return;
    }
    let fine = run(&test_env, &[]);
    assert_eq!(fine.code, 0, "{fine}");
    assert!(fine.stderr.contains("the sandbox denied connecting to localhost"), "{fine}");
    assert!(fine.stderr.contains("to allow it: savoir approve "), "{fine}");
}

#[test]
fn always_stores_only_the_shown_permissions() {
    let test_env = with_script("set -e\necho x > out.txt\n");
    // The skill is already approved, so the answer adds one permission to the approval.
    let run = typed(&test_env, &["a\n"]);
    assert_eq!((run.code, test_env.sandbox.read("work/out.txt").as_str()), (0, "x\n"), "{run}");
    assert_eq!(super::denials::run(&test_env, &[]).code, 0);

    let test_env =
        with_script("set -e\nmkdir -p ../one\necho x > ../one/out.txt\necho x > out.txt\n");
    test_env.write("one/there", "");
    // The first answer is for one run, so the second answer cannot be stored for both.
    let run = typed(&test_env, &["o\n", "o\n", "o\n"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(run.stderr.matches("[a]lways").count(), 1, "{run}");
    assert_ne!(super::denials::run(&test_env, &[]).code, 0, "nothing is kept");
}

#[test]
fn executable_paths_are_never_suggested_as_write_grants() {
    let test_env = with_script("set -e\necho evil > .husky/pre-commit\n");
    test_env.write("work/.husky/pre-commit", "mine\n");
    let skill = test_env.skill("tools");
    let approved = test_env.savoir(&["approve", &skill, "--yes", "--allow-write", "."]);
    assert_eq!(approved.code, 0, "{approved}");
    let run = typed(&test_env, &["o\n", "o\n"]);
    assert_ne!(run.code, 0, "{run}");
    assert!(!run.stderr.contains("[o]nce"), "{run}");
    assert!(run.stderr.contains("which other programs run or obey"), "{run}");
    assert_eq!(test_env.sandbox.read("work/.husky/pre-commit"), "mine\n");
}

#[test]
fn settings_of_git_are_named_without_an_option() {
    let test_env = with_script("set -e\ngit config user.name Somebody\n");
    test_env.repository();
    let skill = test_env.skill("tools");
    let approved = test_env.savoir(&["approve", &skill, "--yes", "--allow", "git"]);
    assert_eq!(approved.code, 0, "{approved}");
    let run = run(&test_env, &[]);
    assert_ne!(run.code, 0, "{run}");
    assert!(run.stderr.contains("no skill may write there"), "{run}");
    assert!(!run.stderr.contains("--allow-write .git"), "{run}");
}

#[test]
fn a_folder_called_like_the_home_is_not_the_home() {
    let test_env = with_script("set -e\necho x > ./~/notes\n");
    test_env.write("work/~/old", "");
    test_env.write("home/.ssh/id_ed25519", "private");
    let run = typed(&test_env, &["o\n"]);
    assert!(run.stderr.contains("./~"), "{run}");
    assert_eq!((run.code, test_env.sandbox.read("work/~/notes").as_str()), (0, "x\n"), "{run}");
}

#[test]
fn skills_cannot_declare_access_to_programs_of_others() {
    for scope in ["./.husky/**", "./mise.toml", "./sub/.git/hooks/**", "./sub/.vscode/**"] {
        let test_env = RunTestEnv::new();
        test_env.probe("probe", &[&format!("filesystem:write:{scope}")], "");
        let approve = test_env.savoir(&["approve", &test_env.skill("probe"), "--yes"]);
        assert_eq!(approve.code, 3, "{scope}: {approve}");
        assert!(approve.stderr.contains("other programs run or obey"), "{scope}: {approve}");
        let run = test_env.run("probe", &["--param", "code=result = 1"]);
        assert_eq!(run.0.code, 3, "{scope}: {}", run.0);
        run.assert_error_contains(&["other programs run or obey"]);
    }
}

#[test]
fn the_whole_home_is_not_granted_by_its_name() {
    for scope in ["filesystem:write:~/**", "filesystem:write:~"] {
        let test_env = RunTestEnv::new();
        test_env.probe("probe", &[scope], "");
        let run = test_env.run("probe", &["--param", "code=result = 1"]);
        assert_eq!(run.0.code, 3, "{scope}: {}", run.0);
        run.assert_error_contains(&["it means every file"]);
    }
}

#[test]
fn links_and_dots_cannot_widen_a_grant() {
    let test_env = RunTestEnv::with_probe(&["filesystem:write:./out.txt"]);
    test_env.write("work/notes.txt", "mine");
    let work = test_env.path("work").canonicalize().expect("a folder");
    let (name, work) = (work.file_name().expect("a name").to_owned(), work.display());
    let code = format!(
        "import os\nos.symlink('{work}', '/tmp/l')\nresult = []\n\
         for path in ['/tmp/l/../{name}/Makefile', '/tmp/l/Makefile', 'sub/../Makefile']:\n  \
         try:\n    open(path, 'w').write('evil'); result.append(path)\n  \
         except OSError: pass\n\
         open('out.txt', 'w').write('fine')",
        name = name.to_string_lossy()
    );
    assert_eq!(test_env.execute(&code), serde_json::json!([]));
    assert!(!test_env.path("work/Makefile").exists());
    assert_eq!(test_env.sandbox.read("work/out.txt"), "fine");
}

#[test]
fn too_large_folder_is_not_suggested() {
    let test_env = with_script("echo x > out.txt\n");
    let mut deep = test_env.path("work");
    for _ in 0..230 {
        deep.push("d");
    }
    std::fs::create_dir_all(deep).expect("folders");
    let skill = test_env.skill("tools");
    test_env.savoir(&["approve", &skill, "--yes", "--allow-write", "."]);
    let refused = run(&test_env, &[]);
    assert_eq!(refused.code, 3, "{refused}");
    assert!(refused.stderr.contains("folders in one another"), "{refused}");
    assert!(!test_env.path("work/out.txt").exists());
}
