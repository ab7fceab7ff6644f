//! Scripts as people write them run at the first try, as they do without a sandbox.

mod cases;
mod suite;

use std::{fs, io::Write as _, process::Stdio};

use super::Stage;

/// A skill of scripts, without a line about permissions.
fn scripts(files: &[(&str, &str)]) -> Stage {
    let stage = Stage::new();
    let text =
        "---\nname: tools\ndescription: Works on files. Use when asked to.\n---\n\nRun it.\n";
    stage.write("skills/tools/SKILL.md", text);
    for (name, content) in files {
        stage.write(&format!("skills/tools/scripts/{name}"), content);
    }
    stage.approve("tools");
    stage
}

/// What a script prints with these words.
fn printed(stage: &Stage, script: &str, words: &[&str]) -> String {
    let target = stage.skill(&format!("tools/scripts/{script}"));
    let run = stage.savoir(&[&["run", &target, "--"], words].concat());
    assert_eq!(run.code, 0, "{script}: {run}");
    run.stdout
}

#[test]
fn programs_of_the_system_are_there() {
    let stage = scripts(&[(
        "report.sh",
        "#!/bin/bash\nset -euo pipefail\nmkdir -p /tmp/work && cd /tmp/work\n\
         printf 'b 2\\na 1\\n' | sort | awk '{print $2}' | sed s/1/one/ | tr '\\n' ' '\n\
         find /usr/bin -name env | xargs basename\ndate +%Y | grep -c 20\n",
    )]);
    assert_eq!(printed(&stage, "report.sh", &[]), "one 2 env\n1\n");
}

#[test]
fn scripts_need_no_execute_bit() {
    let stage = scripts(&[
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
        assert_eq!(printed(&stage, script, &["x"]), says, "{script}");
    }
}

#[test]
fn paths_in_commands_lead_into_the_skill_or_the_system() {
    let stage = Stage::with_commands(
        "",
        &[
            ("script", "", "python3 scripts/where.py one"),
            ("option", "", "bash -e scripts/where.sh"),
            ("system", "", "/usr/bin/basename /a/b"),
        ],
    );
    stage
        .write("skills/demo/scripts/where.py", "import sys, os\nprint(sys.argv[1], os.getcwd())\n");
    stage.write("skills/demo/scripts/where.sh", "pwd\n");
    stage.approve("demo");
    let work = stage.path("work").canonicalize().expect("a folder").display().to_string();
    for (tool, says) in
        [("script", format!("one {work}")), ("option", work), ("system", "b".into())]
    {
        let envelope = stage.run(&format!("demo/{tool}"), &[]).succeeds();
        assert_eq!(envelope["output"], says, "{tool}");
    }
}

#[test]
fn input_is_passed_on_and_the_exit_code_comes_back() {
    let stage = scripts(&[("count.sh", "wc -l\nexit 7\n")]);
    let target = stage.skill("tools/scripts/count.sh");
    let mut child = stage
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
    let stage = scripts(&[("write.sh", "set -e\ncat given.txt\necho made > made.txt\n")]);
    stage.write("work/given.txt", "given\n");
    let target = stage.skill("tools/scripts/write.sh");
    let run = stage.savoir(&["run", &target]);
    assert_eq!((run.code, run.stdout.as_str()), (1, "given\n"), "{run}");
    assert!(run.stderr.contains("Read-only file system"), "{run}");
    assert!(run.stderr.contains("the sandbox denied writing made.txt in this folder\n"), "{run}");
    follow_hint(&stage, &run.stderr);
    let run = stage.savoir(&["run", &target]);
    assert_eq!(run.code, 0, "{run}");
    let made = fs::read_to_string(stage.path("work/made.txt")).expect("a file");
    assert_eq!(made, "made\n");
}

/// Runs the command that a hint gives, and agrees.
fn follow_hint(stage: &Stage, printed: &str) {
    let hint = printed.split("to allow it: savoir ").nth(1).and_then(|rest| rest.lines().next());
    let hint = hint.unwrap_or_else(|| panic!("no hint: {printed}"));
    let words: Vec<&str> = hint.split(' ').chain(["--yes"]).collect();
    let run = stage.savoir(&words);
    assert_eq!(run.code, 0, "{run}");
}

#[test]
fn common_needs_have_a_name() {
    let stage = scripts(&[
        ("env.py", "import ours\nprint(ours.WORD)\n"),
        (
            "commit.sh",
            "set -e\necho x > new.txt\ngit add -A\ngit commit -qm new\ngit log --oneline | wc -l\n",
        ),
    ]);
    stage.write("work/.venv/pyvenv.cfg", "home = /usr/bin\n");
    stage.write("work/.venv/lib/python3.11/site-packages/ours.py", "WORD = 'ours'\n");
    stage.write("home/.gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.com\n");
    stage.repository();
    let skill = stage.skill("tools");
    for (need, script, says) in [("python-env", "env.py", "ours"), ("git", "commit.sh", "1")] {
        let approved = stage.savoir(&["approve", &skill, "--yes", "--allow", need]);
        assert_eq!(approved.code, 0, "{approved}");
        assert!(
            approved.stderr.contains(&format!("--allow {need} stands for: --allow-")),
            "{approved}"
        );
        assert_eq!(printed(&stage, script, &[]).trim(), says);
    }
    let missing = stage.savoir(&["run", &skill, "--allow", "gti"]);
    assert_eq!(missing.code, 2, "{missing}");
    assert!(missing.stderr.contains("values: git,"), "{missing}");
}

#[test]
fn a_granted_repository_can_be_written_from_a_folder_in_it() {
    let stage = scripts(&[("a.sh", "echo x > here.txt && echo y > ../there.txt\n")]);
    stage.repository();
    let sub = stage.path("work/sub");
    fs::create_dir(&sub).expect("a folder");
    let (skill, script) = (stage.skill("tools"), stage.skill("tools/a.sh"));
    for words in [vec!["approve", &skill, "--yes", "--allow", "project"], vec!["run", &script]] {
        let output = stage.command(&words).current_dir(&sub).output().expect("savoir runs");
        assert!(output.status.success(), "{words:?}: {output:?}");
    }
    assert!(sub.join("here.txt").exists() && stage.path("work/there.txt").exists());
}

#[test]
fn time_is_limited_as_a_person_says() {
    let stage = scripts(&[("slow.sh", "echo begun; sleep 30\n")]);
    let run = stage.savoir(&["run", &stage.skill("tools/slow.sh"), "--timeout", "1"]);
    assert_eq!((run.code, run.stdout.as_str()), (124, "begun\n"), "{run}");
}

#[test]
fn a_home_is_no_working_folder_that_loses_files() {
    let stage = scripts(&[("a.sh", "echo x > made.txt && echo y > ~/cache && cat ~/cache\n")]);
    stage.write("home/mine.txt", "mine");
    let target = stage.skill("tools/a.sh");
    let mut command = stage.command(&["run", &target]);
    let output = command.current_dir(stage.path("home")).output().expect("savoir runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("Read-only file system"),
        "{output:?}"
    );
    // What is written into the home of the run itself is gone, and that is said.
    let stage = scripts(&[("a.sh", "echo x > ~/report.txt\n")]);
    let run = stage.savoir(&["run", &stage.skill("tools/a.sh")]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stderr.contains("report.txt into a temporary home, which was deleted"), "{run}");
}

#[test]
fn additions_stay_when_a_skill_is_approved_again() {
    let stage = scripts(&[("a.sh", "echo x > a.txt && cat ../outside/file.txt\n")]);
    stage.write("outside/file.txt", "outside\n");
    let target = stage.skill("tools/scripts/a.sh");
    // Two denials, one after the other; each hint adds to what was allowed before.
    for _ in 0..2 {
        let run = stage.savoir(&["run", &target]);
        assert_ne!(run.code, 0, "{run}");
        follow_hint(&stage, &run.stderr);
    }
    let run = stage.savoir(&["run", &target]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "outside\n"), "{run}");
}

#[test]
fn a_script_is_found_without_its_folder() {
    let stage = scripts(&[("hello.sh", "echo hello $1\n")]);
    let run = stage.savoir(&["run", &stage.skill("tools/hello.sh"), "--", "Ada"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "hello Ada\n"), "{run}");
}
