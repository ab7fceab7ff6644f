//! Tests that ordinary scripts run without changes, as they do without a sandbox.

mod cases;
mod suite;

use std::{fs, io::Write as _, process::Stdio};

use super::RunTestEnv;

/// Creates a skill with scripts and without declared permissions.
fn scripts(files: &[(&str, &str)]) -> RunTestEnv {
    let test_env = RunTestEnv::new();
    let text =
        "---\nname: tools\ndescription: Works on files. Use when asked to.\n---\n\nRun it.\n";
    test_env.write("skills/tools/SKILL.md", text);
    for (name, content) in files {
        test_env.write(&format!("skills/tools/scripts/{name}"), content);
    }
    test_env.approve("tools");
    test_env
}

/// The output of a script with these arguments.
fn printed(test_env: &RunTestEnv, script: &str, words: &[&str]) -> String {
    let target = test_env.skill(&format!("tools/scripts/{script}"));
    let run = test_env.savoir(&[&["run", &target, "--"], words].concat());
    assert_eq!(run.code, 0, "{script}: {run}");
    run.stdout
}

#[test]
fn system_programs_are_available() {
    let test_env = scripts(&[(
        "report.sh",
        "#!/bin/bash\nset -euo pipefail\nmkdir -p /tmp/work && cd /tmp/work\n\
         printf 'b 2\\na 1\\n' | sort | awk '{print $2}' | sed s/1/one/ | tr '\\n' ' '\n\
         find /usr/bin -name env | xargs basename\ndate +%Y | grep -c 20\n",
    )]);
    assert_eq!(printed(&test_env, "report.sh", &[]), "one 2 env\n1\n");
}

#[test]
fn scripts_need_no_execute_bit() {
    let test_env = scripts(&[
        ("a.sh", "echo shell $1\n"),
        ("b.py", "import sys\nprint('python', sys.argv[1])\n"),
        ("c.py", "#!/usr/bin/env python3\nimport sys\nprint('python', sys.argv[1])\n"),
        ("d", "#!/usr/bin/env -S bash -e\necho bash $1\n"),
        ("e.pl", "print \"perl $ARGV[0]\\n\";\n"),
    ]);
    for (script, says) in [
        ("a.sh", "shell x\n"),
        ("b.py", "python x\n"),
        ("c.py", "python x\n"),
        ("d", "bash x\n"),
        ("e.pl", "perl x\n"),
    ] {
        assert_eq!(printed(&test_env, script, &["x"]), says, "{script}");
    }
}

#[test]
fn paths_in_commands_lead_into_the_skill_or_the_system() {
    let test_env = RunTestEnv::with_commands(
        "",
        &[
            ("script", "", "python3 scripts/where.py one"),
            ("option", "", "bash -e scripts/where.sh"),
            ("system", "", "/usr/bin/basename /a/b"),
        ],
    );
    test_env
        .write("skills/demo/scripts/where.py", "import sys, os\nprint(sys.argv[1], os.getcwd())\n");
    test_env.write("skills/demo/scripts/where.sh", "pwd\n");
    test_env.approve("demo");
    let work = test_env.path("work").canonicalize().expect("a folder").display().to_string();
    for (tool, says) in
        [("script", format!("one {work}")), ("option", work), ("system", "b".into())]
    {
        let envelope = test_env.run(&format!("demo/{tool}"), &[]).succeeds();
        assert_eq!(envelope["output"], says, "{tool}");
    }
}

#[test]
fn stdin_and_exit_code_are_passed_through() {
    let test_env = scripts(&[("count.sh", "wc -l\nexit 7\n")]);
    let target = test_env.skill("tools/scripts/count.sh");
    let mut child = test_env
        .command(&["run", &target])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("savoir runs");
    child.stdin.take().expect("a pipe").write_all(b"a\nb\nc\n").expect("it reads");
    let output = child.wait_with_output().expect("an end");
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "3");
}

#[test]
fn a_file_that_may_not_be_written_is_an_error_and_not_lost() {
    let test_env = scripts(&[("write.sh", "set -e\ncat given.txt\necho made > made.txt\n")]);
    test_env.write("work/given.txt", "given\n");
    let target = test_env.skill("tools/scripts/write.sh");
    let run = test_env.savoir(&["run", &target]);
    assert_eq!((run.code, run.stdout.as_str()), (1, "given\n"), "{run}");
    assert!(run.stderr.contains("Read-only file system"), "{run}");
    assert!(run.stderr.contains("the sandbox denied writing made.txt\n"), "{run}");
    follow_hint(&test_env, &run.stderr);
    let run = test_env.savoir(&["run", &target]);
    assert_eq!(run.code, 0, "{run}");
    let made = fs::read_to_string(test_env.path("work/made.txt")).expect("a file");
    assert_eq!(made, "made\n");
}

/// Runs the command in a hint, and approves it.
fn follow_hint(test_env: &RunTestEnv, printed: &str) {
    let hint = printed.split("to allow it: savoir ").nth(1).and_then(|rest| rest.lines().next());
    let hint = hint.unwrap_or_else(|| panic!("no hint: {printed}"));
    let words: Vec<&str> = hint.split(' ').chain(["--yes"]).collect();
    let run = test_env.savoir(&words);
    assert_eq!(run.code, 0, "{run}");
}

#[test]
fn common_needs_have_a_preset() {
    let test_env = scripts(&[
        ("env.py", "import ours\nprint(ours.WORD)\n"),
        (
            "commit.sh",
            "set -e\necho x > new.txt\ngit add -A\ngit commit -qm new\ngit log --oneline | wc -l\n",
        ),
    ]);
    test_env.write("work/.venv/pyvenv.cfg", "home = /usr/bin\n");
    test_env.write("work/.venv/lib/python3.11/site-packages/ours.py", "WORD = 'ours'\n");
    test_env.write("home/.gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.com\n");
    test_env.repository();
    let skill = test_env.skill("tools");
    for (need, script, says) in [("python-env", "env.py", "ours"), ("git", "commit.sh", "1")] {
        let approved = test_env.savoir(&["approve", &skill, "--yes", "--allow", need]);
        assert_eq!(approved.code, 0, "{approved}");
        assert!(
            approved.stderr.contains(&format!("--allow {need} expands to: --allow-")),
            "{approved}"
        );
        assert_eq!(printed(&test_env, script, &[]).trim(), says);
    }
    let missing = test_env.savoir(&["run", &skill, "--allow", "gti"]);
    assert_eq!(missing.code, 2, "{missing}");
    assert!(missing.stderr.contains("values: git,"), "{missing}");
}

#[test]
fn a_granted_repository_can_be_written_from_a_folder_in_it() {
    let test_env = scripts(&[("a.sh", "echo x > here.txt && echo y > ../there.txt\n")]);
    test_env.repository();
    let sub = test_env.path("work/sub");
    fs::create_dir(&sub).expect("a folder");
    let (skill, script) = (test_env.skill("tools"), test_env.skill("tools/a.sh"));
    for words in [vec!["approve", &skill, "--yes", "--allow", "project"], vec!["run", &script]] {
        let output = test_env.command(&words).current_dir(&sub).output().expect("savoir runs");
        assert!(output.status.success(), "{words:?}: {output:?}");
    }
    assert!(sub.join("here.txt").exists() && test_env.path("work/there.txt").exists());
}

#[test]
fn timeout_option_limits_the_run() {
    let test_env = scripts(&[("slow.sh", "echo begun; sleep 30\n")]);
    let run = test_env.savoir(&["run", &test_env.skill("tools/slow.sh"), "--timeout", "1"]);
    assert_eq!((run.code, run.stdout.as_str()), (124, "begun\n"), "{run}");
}

#[test]
fn files_in_the_home_folder_are_not_lost() {
    let test_env = scripts(&[("a.sh", "echo x > made.txt && echo y > ~/cache && cat ~/cache\n")]);
    test_env.write("home/mine.txt", "mine");
    let target = test_env.skill("tools/a.sh");
    let mut command = test_env.command(&["run", &target]);
    let output = command.current_dir(test_env.path("home")).output().expect("savoir runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("Read-only file system"),
        "{output:?}"
    );
    // Files in the private home are deleted after the run, and a note says so.
    let test_env = scripts(&[("a.sh", "echo x > ~/report.txt\n")]);
    let run = test_env.savoir(&["run", &test_env.skill("tools/a.sh")]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stderr.contains("report.txt into a temporary home, which was deleted"), "{run}");
}

#[test]
fn additions_stay_when_a_skill_is_approved_again() {
    let test_env = scripts(&[("a.sh", "echo x > a.txt && cat ../outside/file.txt\n")]);
    test_env.write("outside/file.txt", "outside\n");
    let target = test_env.skill("tools/scripts/a.sh");
    // There are two denials, one after the other; the second hint includes the first permission.
    for _ in 0..2 {
        let run = test_env.savoir(&["run", &target]);
        assert_ne!(run.code, 0, "{run}");
        follow_hint(&test_env, &run.stderr);
    }
    let run = test_env.savoir(&["run", &target]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "outside\n"), "{run}");
}

#[test]
fn a_script_is_found_without_its_folder() {
    let test_env = scripts(&[("hello.sh", "echo hello $1\n")]);
    let run = test_env.savoir(&["run", &test_env.skill("tools/hello.sh"), "--", "Ada"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "hello Ada\n"), "{run}");
}
