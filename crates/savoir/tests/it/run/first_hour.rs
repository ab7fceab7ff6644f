//! Tests common problems of new users: arguments, lost files, missing packages, pipes, misspelled
//! paths. Each hint is followed.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
};

use super::RunTestEnv;
use crate::support::Transcript;

const SKILL: &str =
    "---\nname: NAME\ndescription: Works on files. Use when asked to.\n---\n\nRun it.\n";

/// Writes a skill with scripts into a folder, without an approval.
fn skill(test_env: &RunTestEnv, folder: &str, files: &[(&str, &str)]) {
    let name = folder.rsplit('/').next().unwrap_or(folder);
    test_env.write(&format!("{folder}/SKILL.md"), SKILL.replace("NAME", name));
    for (file, content) in files {
        test_env.write(&format!("{folder}/{file}"), content);
    }
}

/// Creates an approved skill `tools` with scripts.
fn scripts(files: &[(&str, &str)]) -> RunTestEnv {
    let test_env = RunTestEnv::new();
    let files: Vec<(String, &str)> =
        files.iter().map(|(file, content)| (format!("scripts/{file}"), *content)).collect();
    let files: Vec<(&str, &str)> =
        files.iter().map(|(file, content)| (file.as_str(), *content)).collect();
    skill(&test_env, "skills/tools", &files);
    test_env.approve("tools");
    test_env
}

/// Runs `savoir` in a folder of the test environment.
fn run_in(test_env: &RunTestEnv, folder: &str, arguments: &[&str]) -> Transcript {
    let mut command = test_env.command(arguments);
    let output = command.current_dir(test_env.path(folder)).output().expect("savoir runs");
    Transcript {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs the command of the hint in a folder.
fn follow_hint(test_env: &RunTestEnv, folder: &str, run: &Transcript) {
    let hint = run.stderr.split("to allow it: savoir ").nth(1).and_then(|rest| rest.lines().next());
    let hint = hint.unwrap_or_else(|| panic!("no hint: {run}"));
    let words: Vec<&str> = hint.split(' ').chain(["--yes"]).collect();
    let approved = run_in(test_env, folder, &words);
    assert_eq!(approved.code, 0, "{approved}");
}

#[test]
fn arguments_follow_the_script() {
    let test_env = scripts(&[("a.sh", "printf '[%s]' \"$@\"\n")]);
    let target = test_env.skill("tools/scripts/a.sh");
    for (words, says) in [
        (&["one", "two words"][..], "[one][two words]"),
        (&["n=2", "--", "-x"], "[n=2][-x]"),
        (&["--", "--flag", "one"], "[--flag][one]"),
        (&["one", "--timeout", "5", "two"], "[one][two]"),
    ] {
        let run = test_env.savoir(&[&["run", &target], words].concat());
        assert_eq!((run.code, run.stdout.as_str()), (0, says), "{words:?}: {run}");
    }
}

#[test]
fn arguments_for_a_tool_or_a_prompt_are_an_error_with_the_option() {
    let rows = "| n | integer | yes | How many |";
    let test_env = RunTestEnv::with_commands("", &[("count", rows, "seq {{n}}")]);
    skill(&test_env, "skills/plain", &[]);
    for (target, words, says, hint) in [
        ("demo", &["n=2"][..], "arguments such as `n=2` are for a script", "--param n=2"),
        ("demo/count", &["n=2", "m=a b"], "are for a script", "--param n=2 --param 'm=a b'"),
        ("demo", &["two"], "arguments such as `two` are", "pass parameters of a tool with --param"),
        ("plain", &["a=b"], "arguments such as `a=b` are", "--input a=b"),
    ] {
        let run = test_env.savoir(&[&["run", &test_env.skill(target)], words].concat());
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stderr.contains(says), "{run}");
        assert!(run.stderr.ends_with(&format!("hint: {hint}\n")), "{run}");
    }
}

#[test]
fn a_granted_program_of_the_user_is_found() {
    let mut test_env = scripts(&[("a.sh", "mytool; ls ~/.local/bin; other || echo no other\n")]);
    test_env.script("home/.local/bin/mytool", "#!/bin/sh\necho mine\n");
    test_env.script("home/.local/bin/other", "#!/bin/sh\necho other\n");
    let bin = test_env.path("home/.local/bin");
    fs::set_permissions(&bin, fs::Permissions::from_mode(0o755)).expect("a mode");
    test_env.set("PATH", &format!("/usr/bin:/bin:{}", bin.display()));
    let skill = test_env.skill("tools");
    let run = test_env.savoir(&["approve", &skill, "--yes", "--allow-program", "mytool"]);
    assert_eq!(run.code, 0, "{run}");
    let run = test_env.savoir(&["run", &test_env.skill("tools/a.sh")]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "mine\nmytool\nno other\n"), "{run}");
}

#[test]
fn the_hint_for_a_program_of_the_user_works() {
    let mut test_env = scripts(&[("a.sh", "mytool\n")]);
    test_env.script("home/.local/bin/mytool", "#!/bin/sh\necho mine\n");
    test_env.set("PATH", &format!("/usr/bin:/bin:{}", test_env.path("home/.local/bin").display()));
    let target = test_env.skill("tools/a.sh");
    let run = test_env.savoir(&["run", &target]);
    assert_eq!(run.code, 127, "{run}");
    follow_hint(&test_env, "work", &run);
    let run = test_env.savoir(&["run", &target]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "mine\n"), "{run}");
}

#[test]
fn lost_files_are_reported() {
    let test_env = scripts(&[
        ("todo.sh", "echo milk >> ~/.todo.txt\n"),
        ("said.sh", "echo x > /tmp/report.md && echo 'wrote /tmp/report.md.'\n"),
        ("given.sh", "echo x > \"$1\"\n"),
    ]);
    for (script, words, lost) in [
        ("todo.sh", &[][..], "/home/.todo.txt into a temporary home, which was deleted"),
        ("said.sh", &[], "it wrote /tmp/report.md into a temporary /tmp, which was deleted"),
        ("given.sh", &["/tmp/out.csv"], "it wrote /tmp/out.csv into a temporary /tmp"),
    ] {
        let target = test_env.skill(&format!("tools/{script}"));
        let run = test_env.savoir(&[&["run", &target], words].concat());
        assert_eq!(run.code, 0, "{run}");
        assert!(run.stderr.contains(lost), "{run}");
        assert!(run.stderr.contains("--allow-write"), "{run}");
    }
}

#[test]
fn lost_caches_are_not_reported() {
    let test_env = scripts(&[(
        "a.sh",
        "mkdir -p ~/.cache/x ~/.config ~/.mytool && echo x > ~/.cache/x/y && echo x > ~/.mytool/y\n\
         echo x > ~/.config/z && echo x > /tmp/scratch && echo x > /tmp/report.md\n\
         echo see /tmp/report.md.bak\n",
    )]);
    let run = test_env.savoir(&["run", &test_env.skill("tools/a.sh")]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run}");
}

#[test]
fn a_missing_package_has_a_hint() {
    let test_env = scripts(&[
        ("a.py", "import yaml_of_nobody.deep\n"),
        ("b.py", "import PIL\n"),
        ("own.py", "import helper_elsewhere\n"),
        ("lib/helper_elsewhere.py", ""),
        ("c.js", "require('left-pad-of-nobody/x')\n"),
        ("d.mjs", "import '@nobody/thing/x'\n"),
        ("e.js", "require('./nowhere')\n"),
    ]);
    let python = |module: &str| {
        format!(
            "add the package of `{module}` to a requirements.txt beside SKILL.md, or to the `# ///"
        )
    };
    for (script, hint) in [
        ("a.py", Some(python("yaml_of_nobody"))),
        ("b.py", Some("add the package `Pillow` to".to_owned())),
        ("own.py", None),
        ("c.js", Some("Node package `left-pad-of-nobody` is not installed: add it to".to_owned())),
        ("d.mjs", Some("Node package `@nobody/thing` is not installed: add it to".to_owned())),
        ("e.js", None),
    ] {
        let run = test_env.savoir(&["run", &test_env.skill(&format!("tools/scripts/{script}"))]);
        assert_eq!(run.code, 1, "{run}");
        match hint {
            Some(hint) => assert!(run.stderr.contains(&hint), "{script}: {run}"),
            None => assert!(!run.stderr.contains("Savoir installs it"), "{script}: {run}"),
        }
    }
}

#[test]
fn python_falls_back_to_python3() {
    let mut test_env = RunTestEnv::with_commands("", &[("run_it", "", "python scripts/a.py")]);
    test_env.set("PATH", "/usr/bin:/bin");
    test_env.write("skills/demo/scripts/a.py", "print('tool')\n");
    test_env.script("skills/demo/scripts/b", "#!/usr/bin/env python\nprint('executable')\n");
    test_env.write("skills/demo/scripts/c.py", "#!/usr/bin/python -u\nprint('plain file')\n");
    test_env.approve("demo");
    for (target, says) in
        [("run_it", "tool\n"), ("scripts/b", "executable\n"), ("scripts/c.py", "plain file\n")]
    {
        let run = test_env.savoir(&["run", &test_env.skill(&format!("demo/{target}"))]);
        assert_eq!((run.code, run.stdout.as_str()), (0, says), "{target}: {run}");
    }
}

#[test]
fn command_that_needs_a_shell_is_an_error() {
    let test_env = RunTestEnv::with_commands(
        "",
        &[
            ("piped", "", "echo a | cat > out.txt && echo b"),
            ("quoted", "", "echo a '|' \"&&\" {{x:;}}"),
            ("shell", "", "bash -c 'echo a | cat'"),
        ],
    );
    let run = test_env.savoir(&["run", &test_env.skill("demo/piped")]);
    assert_eq!(run.code, 0, "{run}");
    for problem in [
        "`|` is a pipe, which needs a shell; there is none",
        "`>` is a redirection, which needs a shell",
        "`&&` is several commands in one, which needs a shell",
    ] {
        assert!(run.stderr.contains(problem), "{run}");
    }
    assert!(
        run.stderr.contains("put the line into a script of the skill, or use bash -c"),
        "{run}"
    );
    for tool in ["quoted", "shell"] {
        let run = test_env.savoir(&["run", &test_env.skill(&format!("demo/{tool}"))]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{tool}: {run}");
    }
}

/// Runs a shell line on a new terminal, and types into it; `None` without `script`. The terminal's
/// content is in `stdout`.
fn on_a_terminal(test_env: &RunTestEnv, line: &str, typed: &str) -> Option<Transcript> {
    let savoir = test_env.command(&[]);
    let program = savoir.get_program().to_string_lossy().into_owned();
    let mut command = Command::new("script");
    command.args(["-qec", &line.replace("savoir", &program), "/dev/null"]);
    command.current_dir(test_env.path("work"));
    for (name, value) in savoir.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env("SHELL", "/bin/sh");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    child.stdin.take()?.write_all(typed.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    Some(Transcript {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).replace('\r', ""),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

#[test]
fn user_is_asked_on_the_terminal_despite_a_pipe() {
    let test_env = RunTestEnv::new();
    skill(&test_env, "skills/tools", &[("scripts/count.sh", "echo lines: $(wc -l)\n")]);
    let target = test_env.skill("tools/scripts/count.sh");
    let line = format!("printf 'y\\ny\\ny\\n' | savoir run {target}");
    let Some(run) = on_a_terminal(&test_env, &line, "n\n") else { return };
    assert_eq!(run.code, 3, "the pipe says yes, the user no: {run}");
    assert!(run.stdout.contains("Run it? [y]es once"), "{run}");
    let run = on_a_terminal(&test_env, &line, "y\n").expect("a terminal");
    assert!(run.code == 0 && run.stdout.contains("lines: 3"), "{run}");
    // A closed standard input cannot answer.
    let run = on_a_terminal(&test_env, &format!("savoir run {target} < /dev/null"), "y\n");
    let run = run.expect("a terminal");
    assert!(run.code == 3 && run.stdout.contains("no terminal to ask on"), "{run}");
}

#[test]
fn piped_input_does_not_answer_questions() {
    let test_env = RunTestEnv::new();
    skill(&test_env, "skills/tools", &[("scripts/count.sh", "wc -l\n")]);
    let mut command = test_env.command(&["run", &test_env.skill("tools/scripts/count.sh")]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("savoir runs");
    // The process may have ended before it reads.
    let _ = child.stdin.take().expect("a pipe").write_all(b"y\ny\n");
    let output = child.wait_with_output().expect("an end");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("no terminal to ask on"));
}

/// A script that writes a report into its working folder.
const REPORT: (&str, &str) = ("scripts/report.sh", "echo report > report.md && cat report.md\n");

#[test]
fn a_folder_called_skills_is_a_folder_of_the_project() {
    for is_repository in [true, false] {
        let test_env = RunTestEnv::new();
        skill(&test_env, "work/skills/csv-report", &[REPORT]);
        if is_repository {
            test_env.repository();
        }
        let script = "csv-report/scripts/report.sh";
        for allowed in [&["--allow", "project"], &["--allow-write", "."]] {
            let approve = ["approve", "csv-report", "--yes", allowed[0], allowed[1]];
            let approved = run_in(&test_env, "work/skills", &approve);
            assert_eq!(approved.code, 0, "{approved}");
            let run = run_in(&test_env, "work/skills", &["run", script]);
            assert_eq!((run.code, run.stdout.as_str()), (0, "report\n"), "{allowed:?}: {run}");
            fs::remove_file(test_env.path("work/skills/report.md")).expect("a report");
            let revoked = run_in(&test_env, "work/skills", &["revoke", "csv-report"]);
            assert_eq!(revoked.code, 0, "{revoked}");
        }
    }
}

#[test]
fn folders_of_agents_stay_as_they_are() {
    let test_env = RunTestEnv::new();
    let script = "mkdir -p .claude/skills/x; echo x > .claude/skills/new.md\n";
    skill(&test_env, "skills/tools", &[("scripts/a.sh", script)]);
    test_env.repository();
    fs::create_dir_all(test_env.path("work/.claude/skills")).expect("folders");
    let tools = test_env.skill("tools");
    let run = test_env.savoir(&["approve", &tools, "--yes", "--allow", "project"]);
    assert_eq!(run.code, 0, "{run}");
    let run = test_env.savoir(&["run", &format!("{tools}/scripts/a.sh")]);
    assert_ne!(run.code, 0, "{run}");
    assert!(!test_env.path("work/.claude/skills/new.md").exists(), "{run}");
}

#[test]
fn the_hint_for_a_new_file_works_in_a_folder_that_agents_read() {
    let script = "echo x > skills/report.md\necho y > skills/kept/SKILL.md || exit 1\n";
    let test_env = RunTestEnv::new();
    skill(&test_env, "skills/tools", &[("scripts/a.sh", script)]);
    skill(&test_env, "work/skills/kept", &[]);
    let (tools, target) = (test_env.skill("tools"), test_env.skill("tools/scripts/a.sh"));
    let run = test_env.savoir(&["approve", &tools, "--yes", "--allow", "project"]);
    assert_eq!(run.code, 0, "{run}");
    let run = test_env.savoir(&["run", &target]);
    assert_eq!(run.code, 1, "{run}");
    let hint = "--allow-write skills/report.md";
    assert!(run.stderr.contains(hint), "{run}");
    let run = test_env.savoir(&["approve", &tools, "--yes", "--allow-write", "skills/report.md"]);
    assert_eq!(run.code, 0, "{run}");
    let run = test_env.savoir(&["run", &target]);
    assert_eq!(run.code, 1, "the skill beside it stays as it is: {run}");
    assert_eq!(fs::read_to_string(test_env.path("work/skills/report.md")).expect("a file"), "x\n");
    let kept = fs::read_to_string(test_env.path("work/skills/kept/SKILL.md")).expect("a file");
    assert!(kept.contains("name: kept"), "{kept}");
}

#[test]
fn tools_lists_scripts_of_a_skill_without_tools() {
    let test_env = RunTestEnv::new();
    let files = [REPORT, ("scripts/README.md", "About."), ("scripts/data.json", "{}")];
    skill(&test_env, "work/skills/csv-report", &files);
    skill(&test_env, "work/skills/plain", &[]);
    let run = test_env.savoir(&["tools", "skills/csv-report"]);
    let says = "csv-report\n  no tools; run its scripts:\n      savoir run skills/csv-report/scripts/report.sh\n";
    assert_eq!((run.code, run.stdout.as_str()), (0, says), "{run}");
    let run = test_env.savoir(&["tools", "skills/plain"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "no tools\n"), "{run}");
    let run = test_env.savoir(&["tools", "skills/csv-report", "--json"]);
    assert_eq!(run.json()["tools"], serde_json::json!([]), "{run}");
}

#[test]
fn a_script_is_named_in_the_folder_of_its_skill() {
    let test_env = RunTestEnv::new();
    skill(&test_env, "work/skills/tools", &[("scripts/a.sh", "echo ran $1\n")]);
    assert_eq!(test_env.savoir(&["approve", "skills/tools", "--yes"]).code, 0);
    for (folder, target) in [
        ("work/skills/tools", "scripts/a.sh"),
        ("work/skills/tools", "./scripts/a.sh"),
        ("work/skills/tools/scripts", "a.sh"),
        ("work/skills/tools/scripts", "./a.sh"),
    ] {
        let run = run_in(&test_env, folder, &["run", target, "it"]);
        assert_eq!((run.code, run.stdout.as_str()), (0, "ran it\n"), "{folder} {target}: {run}");
    }
}

#[test]
fn a_misspelled_folder_is_corrected() {
    let test_env = RunTestEnv::new();
    skill(&test_env, "work/skills/text-filters", &[REPORT]);
    for (typed, meant) in [
        ("skills/text-filter/column", "skills/text-filters/column"),
        ("./skill/text-filters", "./skills/text-filters"),
        ("skills/text-filtres", "skills/text-filters"),
    ] {
        let run = test_env.savoir(&["run", typed]);
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stderr.contains(&format!("hint: did you mean {meant}?\n")), "{run}");
        assert!(!run.stderr.contains("no installed skill is called"), "{run}");
    }
    let run = test_env.savoir(&["run", "skills/xyz/column"]);
    assert!(run.code == 2 && !run.stderr.contains("is called"), "{run}");
}

#[test]
fn a_time_of_zero_is_an_error() {
    let test_env = scripts(&[("a.sh", "echo ran\n")]);
    let run = test_env.savoir(&["run", &test_env.skill("tools/a.sh"), "--timeout", "0"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run}");
    assert!(run.stderr.contains("0 is not in 1.."), "{run}");
}

#[test]
fn a_missing_package_of_a_function_has_a_hint_with_its_field() {
    let test_env = RunTestEnv::new();
    let import = "import requests_of_nobody\n";
    for python in [format!("{import}{}", super::PROBE), super::PROBE.to_owned()] {
        test_env.gaia("probe", &[], "", &python);
        test_env.approve("probe");
        let target = test_env.skill("probe");
        let code = format!("code={}", import.trim());
        let run = test_env.savoir(&["run", &target, "--param", &code]);
        assert_eq!(run.code, 1, "{run}");
        let hint = "add the package of `requests_of_nobody` to `dependencies` under `requirements`";
        assert!(run.stderr.contains(hint), "{run}");
    }
    let run = test_env.savoir(&["run", &test_env.skill("probe"), "--param", "code={}['x']"]);
    assert!(run.stderr.contains("KeyError"), "{run}");
    assert!(!run.stderr.contains("--allow-read"), "{run}");
}

#[test]
fn prompt_without_a_model_names_a_script_that_can_be_run() {
    let files = [("__init__.py", ""), ("a.xsd", "<a/>"), ("fill.py", "print('filled')\n")];
    let test_env = scripts(&files);
    let run = test_env.savoir(&["run", &test_env.skill("tools")]);
    assert!(run.stderr.contains("tools/scripts/fill.py"), "{run}");
}

/// The text of a skill that cannot be read has no hint, so that none is printed.
#[cfg(target_os = "linux")]
#[test]
fn error_without_a_hint_prints_no_empty_hint() {
    let test_env = RunTestEnv::new();
    let show = run_in(&test_env, ".", &["show", "/proc/self/mem"]);
    assert!(show.code == 2 && !show.stderr.contains("hint:"), "{show}");
}

#[test]
fn a_missing_script_is_the_error_whatever_its_arguments_are() {
    let test_env = scripts(&[("a.sh", "true\n")]);
    for words in [&[][..], &["one"]] {
        let target = test_env.skill("tools/scripts/b.shh");
        let run = test_env.savoir(&[&["run", &target], words].concat());
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stderr.contains("the file scripts/b.shh does not exist"), "{run}");
    }
}
