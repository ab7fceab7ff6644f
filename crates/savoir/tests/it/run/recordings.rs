//! Tests `--record`: its output makes the same run pass, or names what the dialect cannot express.

use super::RunTestEnv;

/// Writes a file into a new folder, with a program of the system.
const MAKES: &str = "set -e\nmkdir -p out\nsort notes.txt > out/sorted.txt\n";

fn follow(test_env: &RunTestEnv, printed: &str) {
    let command =
        printed.split("cannot declare: savoir ").nth(1).and_then(|rest| rest.lines().next());
    let command = command.unwrap_or_else(|| panic!("no command: {printed}"));
    let words: Vec<&str> = command.split(' ').chain(["--yes"]).collect();
    let run = test_env.savoir(&words);
    assert_eq!(run.code, 0, "{run}");
}

fn remove_made(test_env: &RunTestEnv) {
    std::fs::remove_dir_all(test_env.path("work/out")).expect("the recording made it");
}

#[test]
fn flags_of_gibberish() {
    for in_repository in [true, false] {
        let test_env =
            RunTestEnv::with_commands("read_only: true\n", &[("make", "", "bash make.sh")]);
        test_env.write("skills/demo/make.sh", MAKES);
        test_env.write("work/notes.txt", "b\na\n");
        if in_repository {
            test_env.repository();
        }
        test_env.approve("demo");
        assert_ne!(test_env.run("demo/make", &[]).0.code, 0, "it may not write");
        let recorded = test_env.run_agreed("demo/make", &["--record", "--write"]);
        recorded.succeeds();
        remove_made(&test_env);
        let text = test_env.sandbox.read("skills/demo/SKILL.md");
        assert!(text.contains("read_only: false"), "{text}");
        test_env.approve("demo");
        if !in_repository {
            // Outside of a repository, this dialect grants no write access.
            let again = test_env.savoir(&["run", &test_env.skill("demo/make")]);
            assert_ne!(again.code, 0, "{again}");
            let printed = test_env.savoir(&["run", &test_env.skill("demo/make"), "--record"]);
            let digits = super::fingerprint(&printed);
            let tool = test_env.skill("demo/make");
            let printed = test_env.savoir(&["run", &tool, "--record", "--approve", &digits]);
            remove_made(&test_env);
            follow(&test_env, &printed.stderr);
        }
        test_env.run("demo/make", &[]).succeeds();
        assert_eq!(test_env.sandbox.read("work/out/sorted.txt"), "a\nb\n");
    }
}

#[test]
fn permissions_of_gaia() {
    let test_env = RunTestEnv::with_probe(&[]);
    test_env.write("work/notes.txt", "b\na\n");
    let code = "code=import os, subprocess\nos.makedirs('out', exist_ok=True)\n\
        open('out/x', 'w').write(open('notes.txt').read())\n\
        result = subprocess.check_output(['sort', 'out/x'], text=True)";
    let recorded = test_env.run_agreed("probe", &["--param", code, "--record", "--write"]);
    recorded.succeeds();
    remove_made(&test_env);
    test_env.approve("probe");
    let envelope = test_env.run("probe", &["--param", code]).succeeds();
    assert_eq!(envelope["parsed"]["result"], "a\nb\n");
}

#[test]
fn recording_without_permission_fields_prints_a_command() {
    let test_env = RunTestEnv::new();
    let text = "---\nname: tools\ndescription: Does things. Use in tests.\n---\n\nRun it.\n";
    test_env.write("skills/tools/SKILL.md", text);
    test_env.write("skills/tools/make.sh", MAKES);
    test_env.write("work/notes.txt", "b\na\n");
    test_env.approve("tools");
    let script = test_env.skill("tools/make.sh");
    let refused = test_env.savoir(&["run", &script, "--record"]);
    let digits = super::fingerprint(&refused);
    let printed = test_env.savoir(&["run", &script, "--record", "--approve", &digits]);
    assert_eq!(printed.code, 0, "{printed}");
    remove_made(&test_env);
    follow(&test_env, &printed.stderr);
    let run = test_env.savoir(&["run", &script]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(test_env.sandbox.read("work/out/sorted.txt"), "a\nb\n");
}

#[test]
fn a_commit_is_recorded() {
    let test_env = RunTestEnv::new();
    let text = "---\nname: tools\ndescription: Does things. Use in tests.\n---\n\nRun it.\n";
    test_env.write("skills/tools/SKILL.md", text);
    let script = "set -e\necho more >> notes.txt\ngit add notes.txt\n\
        git -c user.name=A -c user.email=a@example.org commit -q -m more\n";
    test_env.write("skills/tools/scripts/commit.sh", script);
    test_env.repository();
    test_env.write("work/notes.txt", "a\n");
    let tool = test_env.skill("tools/scripts/commit.sh");
    let asked = test_env.savoir(&["run", &tool, "--record", "--allow", "git"]);
    let digits = super::fingerprint(&asked);
    let recorded =
        test_env.savoir(&["run", &tool, "--record", "--allow", "git", "--approve", &digits]);
    assert_eq!(recorded.code, 0, "{recorded}");
    follow(&test_env, &recorded.stderr);
    let again = test_env.savoir(&["run", &tool]);
    assert_eq!(again.code, 0, "{again}");
}

#[test]
fn recording_does_not_show_stored_secrets() {
    let test_env = RunTestEnv::new();
    test_env.probe("probe", &["env:read:ACME_TOKEN"], "");
    let mut set = test_env.command(&["secret", "set", "ACME_TOKEN"]);
    set.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
    let mut set = set.spawn().expect("savoir starts");
    let mut stdin = set.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut stdin, b"acme-secret\nof two lines\n").expect("it reads");
    drop(stdin);
    assert!(set.wait().expect("an end").success());
    let file =
        super::find_containing(&test_env.path(".savoir"), "acme-secret").expect("it is stored");
    let code = format!(
        "code=import os\nvalue = os.environ['ACME_TOKEN']\ntry:\n  text = open('{}').read()\n\
         except OSError: text = ''\nresult = ['two lines' in value, 'acme' in text]",
        file.display()
    );
    let run = test_env.run_agreed("probe", &["--param", &code, "--record"]);
    assert_eq!(run.succeeds()["parsed"]["result"], serde_json::json!([false, false]));
}

#[test]
fn a_single_file_is_recorded_by_its_name() {
    for (script, expected) in [
        ("set -e\necho x > report.txt\n", "./report.txt"),
        // Replacing a file needs write access to its folder.
        ("set -e\necho x > new.txt\nmv new.txt report.txt\n", "./**"),
    ] {
        let test_env = RunTestEnv::new();
        let text = "---\nname: tools\nversion: 1.0.0\ndescription: Does things. Use in tests.\n\
            runtime: {type: markdown-skill}\n---\n\nRun it.\n";
        test_env.write("skills/tools/SKILL.md", text);
        test_env.write("skills/tools/scripts/x.sh", script);
        let tool = test_env.skill("tools/scripts/x.sh");
        let asked = test_env.savoir(&["run", &tool, "--record", "--write"]);
        let digits = super::fingerprint(&asked);
        let recorded =
            test_env.savoir(&["run", &tool, "--record", "--write", "--approve", &digits]);
        assert_eq!(recorded.code, 0, "{recorded}");
        let used = format!("filesystem:write:{expected}\n");
        assert!(recorded.stderr.contains(&used), "{recorded}");
        std::fs::remove_file(test_env.path("work/report.txt")).expect("the recording made it");
        test_env.approve("tools");
        let again = test_env.savoir(&["run", &tool]);
        assert_eq!(again.code, 0, "{again}");
        assert_eq!(test_env.sandbox.read("work/report.txt"), "x\n");
    }
}

#[test]
fn nothing_is_added_to_what_the_dialect_grants() {
    let test_env = RunTestEnv::with_commands("read_only: true\n", &[("make", "", "bash make.sh")]);
    test_env.write("skills/demo/make.sh", "echo x > report.txt\n");
    test_env.repository();
    let tool = test_env.skill("demo/make");
    let asked = test_env.savoir(&["run", &tool, "--record", "--write"]);
    let digits = super::fingerprint(&asked);
    let recorded = test_env.savoir(&["run", &tool, "--record", "--write", "--approve", &digits]);
    assert_eq!(recorded.code, 0, "{recorded}");
    assert!(!recorded.stderr.contains("--allow-write"), "{recorded}");
    test_env.approve("demo");
    test_env.run("demo/make", &[]).succeeds();
}

#[test]
fn code_blocks_are_recorded_together() {
    let test_env = RunTestEnv::new();
    let text = "---\nname: tools\nversion: 1.0.0\ndescription: Does things. Use in tests.\n\
        runtime: {type: markdown-skill}\ninputs: [{name: to, type: string, default: b.txt}]\n---\n\n\
        ```bash\nset -e\ncat notes.txt > a.txt\n```\n\n```python\nimport os\n\
        open(os.environ['INPUT_TO'], 'w').write('y')\n```\n";
    test_env.write("skills/tools/SKILL.md", text);
    test_env.write("work/notes.txt", "x\n");
    let skill = test_env.skill("tools");
    let hint = test_env.savoir(&["run", &skill, "--record"]);
    assert_eq!(hint.code, 2, "{hint}");
    assert!(hint.stderr.contains("add --exec-fences"), "{hint}");
    let options = ["run", &skill, "--exec-fences", "--record", "--write"];
    let digits = super::fingerprint(&test_env.savoir(&options));
    let recorded = test_env.savoir(&[&options[..], &["--approve", &digits]].concat());
    assert_eq!(recorded.code, 0, "{recorded}");
    let notes = test_env.sandbox.read("skills/tools/.savoir/observed.json");
    assert!(notes.contains("code blocks") && notes.contains("./b.txt"), "{notes}");
    for name in ["a.txt", "b.txt"] {
        std::fs::remove_file(test_env.path("work").join(name)).expect("the recording made it");
    }
    test_env.approve("tools");
    let again = test_env.savoir(&["run", &skill, "--exec-fences"]);
    assert_eq!(again.code, 0, "{again}");
    assert_eq!(test_env.sandbox.read("work/b.txt"), "y");
}
