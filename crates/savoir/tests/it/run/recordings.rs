//! `--record`: what it prints makes the same run pass, or says what the dialect cannot.

use super::Stage;

/// Leaves a file in a new folder, with a program of the system.
const MAKES: &str = "set -e\nmkdir -p out\nsort notes.txt > out/sorted.txt\n";

fn follow(stage: &Stage, printed: &str) {
    let command = printed.split("cannot say: savoir ").nth(1).and_then(|rest| rest.lines().next());
    let command = command.unwrap_or_else(|| panic!("no command: {printed}"));
    let words: Vec<&str> = command.split(' ').chain(["--yes"]).collect();
    let run = stage.savoir(&words);
    assert_eq!(run.code, 0, "{run}");
}

fn remove_made(stage: &Stage) {
    std::fs::remove_dir_all(stage.path("work/out")).expect("the recording made it");
}

#[test]
fn flags_of_gibberish() {
    for in_repository in [true, false] {
        let stage = Stage::with_commands("read_only: true\n", &[("make", "", "bash make.sh")]);
        stage.write("skills/demo/make.sh", MAKES);
        stage.write("work/notes.txt", "b\na\n");
        if in_repository {
            stage.repository();
        }
        stage.approve("demo");
        assert_ne!(stage.run("demo/make", &[]).0.code, 0, "it may not write");
        let recorded = stage.run_agreed("demo/make", &["--record", "--write"]);
        recorded.succeeds();
        remove_made(&stage);
        let text = stage.sandbox.read("skills/demo/SKILL.md");
        assert!(text.contains("read_only: false"), "{text}");
        stage.approve("demo");
        if !in_repository {
            // Outside a repository this dialect grants no writing.
            let again = stage.savoir(&["run", &stage.skill("demo/make")]);
            assert_ne!(again.code, 0, "{again}");
            let printed = stage.savoir(&["run", &stage.skill("demo/make"), "--record"]);
            let digits = super::fingerprint(&printed);
            let tool = stage.skill("demo/make");
            let printed = stage.savoir(&["run", &tool, "--record", "--approve", &digits]);
            remove_made(&stage);
            follow(&stage, &printed.stderr);
        }
        stage.run("demo/make", &[]).succeeds();
        assert_eq!(stage.sandbox.read("work/out/sorted.txt"), "a\nb\n");
    }
}

#[test]
fn permissions_of_gaia() {
    let stage = Stage::with_probe(&[]);
    stage.write("work/notes.txt", "b\na\n");
    let code = "code=import os, subprocess\nos.makedirs('out', exist_ok=True)\n\
        open('out/x', 'w').write(open('notes.txt').read())\n\
        result = subprocess.check_output(['sort', 'out/x'], text=True)";
    let recorded = stage.run_agreed("probe", &["--param", code, "--record", "--write"]);
    recorded.succeeds();
    remove_made(&stage);
    stage.approve("probe");
    let envelope = stage.run("probe", &["--param", code]).succeeds();
    assert_eq!(envelope["parsed"]["result"], "a\nb\n");
}

#[test]
fn a_command_where_there_are_no_fields() {
    let stage = Stage::new();
    let text = "---\nname: tools\ndescription: Does things. Use in tests.\n---\n\nRun it.\n";
    stage.write("skills/tools/SKILL.md", text);
    stage.write("skills/tools/make.sh", MAKES);
    stage.write("work/notes.txt", "b\na\n");
    stage.approve("tools");
    let script = stage.skill("tools/make.sh");
    let refused = stage.savoir(&["run", &script, "--record"]);
    let digits = super::fingerprint(&refused);
    let printed = stage.savoir(&["run", &script, "--record", "--approve", &digits]);
    assert_eq!(printed.code, 0, "{printed}");
    remove_made(&stage);
    follow(&stage, &printed.stderr);
    let run = stage.savoir(&["run", &script]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(stage.sandbox.read("work/out/sorted.txt"), "a\nb\n");
}
