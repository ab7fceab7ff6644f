//! `--record`: its output makes the same run pass, or names what the dialect cannot express.

use super::Stage;

/// Leaves a file in a new folder, with a program of the system.
const MAKES: &str = "set -e\nmkdir -p out\nsort notes.txt > out/sorted.txt\n";

fn follow(stage: &Stage, printed: &str) {
    let command =
        printed.split("cannot declare: savoir ").nth(1).and_then(|rest| rest.lines().next());
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

#[test]
fn a_commit_is_recorded() {
    let stage = Stage::new();
    let text = "---\nname: tools\ndescription: Does things. Use in tests.\n---\n\nRun it.\n";
    stage.write("skills/tools/SKILL.md", text);
    let script = "set -e\necho more >> notes.txt\ngit add notes.txt\n\
        git -c user.name=A -c user.email=a@example.org commit -q -m more\n";
    stage.write("skills/tools/scripts/commit.sh", script);
    stage.repository();
    stage.write("work/notes.txt", "a\n");
    let tool = stage.skill("tools/scripts/commit.sh");
    let asked = stage.savoir(&["run", &tool, "--record", "--allow", "git"]);
    let digits = super::fingerprint(&asked);
    let recorded =
        stage.savoir(&["run", &tool, "--record", "--allow", "git", "--approve", &digits]);
    assert_eq!(recorded.code, 0, "{recorded}");
    follow(&stage, &recorded.stderr);
    let again = stage.savoir(&["run", &tool]);
    assert_eq!(again.code, 0, "{again}");
}

#[test]
fn a_recording_keeps_stored_secrets_to_itself() {
    let stage = Stage::new();
    stage.probe("probe", &["env:read:ACME_TOKEN"], "");
    let mut set = stage.command(&["secret", "set", "ACME_TOKEN"]);
    set.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
    let mut set = set.spawn().expect("savoir starts");
    let mut stdin = set.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut stdin, b"acme-secret\nof two lines\n").expect("it reads");
    drop(stdin);
    assert!(set.wait().expect("an end").success());
    let file = super::holds(&stage.path(".savoir"), "acme-secret").expect("it is stored");
    let code = format!(
        "code=import os\nvalue = os.environ['ACME_TOKEN']\ntry:\n  text = open('{}').read()\n\
         except OSError: text = ''\nresult = ['two lines' in value, 'acme' in text]",
        file.display()
    );
    let run = stage.run_agreed("probe", &["--param", &code, "--record"]);
    assert_eq!(run.succeeds()["parsed"]["result"], serde_json::json!([false, false]));
}
