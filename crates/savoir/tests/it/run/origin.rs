//! Tests trust by origin: skills from other sources are untrusted until they are signed or their
//! source is trusted.

use std::process::Command;

use super::{RunTestEnv, fingerprint};

const BANNER: &str = "UNTRUSTED SKILL";

/// A test environment with skills of a repository installed in its working folder.
fn installed(prepare: impl FnOnce(&RunTestEnv)) -> RunTestEnv {
    let test_env = RunTestEnv::new();
    prepare(&test_env);
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"])
            .args(arguments)
            .current_dir(test_env.path("skills"))
            .env("HOME", test_env.path("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .expect("git runs");
        assert!(output.status.success(), "{output:?}");
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "Skills"]);
    git(&["clone", "--quiet", "--bare", ".", "../origin.git"]);
    let origin = test_env.path("origin.git").display().to_string();
    let run = test_env.savoir(&["install", &origin, "--all", "--agent", "claude-code", "-y"]);
    assert_eq!(run.code, 0, "{run}");
    test_env
}

fn says_hello(test_env: &RunTestEnv) {
    test_env.commands("demo", "read_only: true\n", &[("hello", "", "echo hello")]);
}

/// Writes a skill with scripts in the base format.
fn prose(test_env: &RunTestEnv) {
    let text = "---\nname: tools\ndescription: Works on files. Use when asked to.\nmetadata:\n  \
                version: \"1.0.0\"\n---\n\nRun it.\n";
    test_env.write("skills/tools/SKILL.md", text);
    test_env.write("skills/tools/scripts/a.sh", "echo ran\n");
}

#[test]
fn a_downloaded_skill_of_gibberish_asks_every_time_with_a_banner() {
    let test_env = installed(says_hello);
    let target = ".claude/skills/demo/hello";
    let run = test_env.savoir(&["run", target]);
    assert_eq!(run.code, 3, "{run}");
    assert!(run.stderr.contains(BANNER), "{run}");
    let digits = fingerprint(&run);
    assert_eq!(digits.len(), 32);
    let run = test_env.savoir(&["approve", ".claude/skills/demo", "--yes"]);
    assert!(run.stdout.contains(BANNER) && run.stdout.contains("asked before every run"), "{run}");
    let run = test_env.savoir(&["run", target]);
    assert_eq!(run.code, 3, "{run}");
    let run = test_env.savoir(&["run", target, "--approve", &digits]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "hello\n"), "{run}");
    assert!(run.stderr.contains(BANNER), "{run}");
    assert_eq!(test_env.record()["trust"], "untrusted");
}

#[test]
fn a_downloaded_skill_of_another_dialect_runs_once_it_is_approved() {
    let test_env = installed(prose);
    let target = ".claude/skills/tools/scripts/a.sh";
    let run = test_env.savoir(&["run", target]);
    assert_eq!(run.code, 3, "{run}");
    let run = test_env.savoir(&["approve", ".claude/skills/tools", "--yes"]);
    assert_eq!(run.code, 0, "{run}");
    let run = test_env.savoir(&["run", target]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "ran\n"), "{run}");
    assert!(run.stderr.contains(BANNER), "{run}");
    assert_eq!(test_env.record()["trust"], "downloaded");
}

#[test]
fn a_signature_of_a_trusted_key_makes_it_trusted() {
    let test_env = installed(|test_env| {
        prose(test_env);
        for arguments in
            [&["keys", "new", "ada"][..], &["sign", &test_env.skill("tools"), "--key", "ada"]]
        {
            let run = test_env.savoir(arguments);
            assert_eq!(run.code, 0, "{run}");
        }
    });
    let skill = ".claude/skills/tools";
    let page = test_env.savoir(&["approve", skill]);
    assert!(page.stdout.contains(BANNER), "{page}");
    let key = test_env.path(".config/savoir/keys/ada.pub").display().to_string();
    let run = test_env.savoir(&["keys", "trust", &key, "--publisher", "Ada"]);
    assert_eq!(run.code, 0, "{run}");
    let page = test_env.savoir(&["approve", skill]);
    assert!(!page.stdout.contains(BANNER), "{page}");
}

#[test]
fn the_text_of_a_downloaded_skill_is_shown_with_a_warning() {
    let test_env = installed(prose);
    let run = test_env.savoir(&["render", ".claude/skills/tools"]);
    assert_eq!((run.code, run.stdout.trim()), (0, "Run it."), "{run}");
    assert!(run.stderr.contains(BANNER) && run.stderr.contains("a model may follow"), "{run}");
    let run = test_env.savoir(&["render", &test_env.skill("tools")]);
    assert!(!run.stderr.contains(BANNER), "a skill of one's own: {run}");
}

#[test]
fn skill_installed_from_a_local_folder_is_not_a_download() {
    let test_env = RunTestEnv::new();
    prose(&test_env);
    let from = test_env.skill("tools");
    let run = test_env.savoir(&["install", &from, "--agent", "claude-code", "-y"]);
    assert_eq!(run.code, 0, "{run}");
    let page = test_env.savoir(&["approve", ".claude/skills/tools"]);
    assert!(page.stdout.contains("trust        user") && !page.stdout.contains(BANNER), "{page}");
}

/// Packs a skill as `FOLDER/SKILL.md`, as most archives are.
fn pack(test_env: &RunTestEnv, folder: &str, ending: &str) -> String {
    let file = format!("{folder}{ending}");
    let mut command = match ending {
        ".zip" | ".skill" => {
            let mut command = Command::new("python3");
            command.args(["-m", "zipfile", "-c", &file, folder]);
            command
        }
        _ => {
            let mut command = Command::new("tar");
            command.args([if ending == ".tar" { "-cf" } else { "-czf" }, &file, folder]);
            command
        }
    };
    let output = command.current_dir(test_env.path("skills")).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    test_env.skill(&file)
}

#[test]
fn a_skill_in_a_folder_of_an_archive_is_a_download() {
    let same = [".zip", ".skill", ".tar", ".tar.gz", ".tgz"].map(|ending| (ending, ending));
    for (kind, ending) in same.into_iter().chain([(".zip", ".ZIP"), (".zip", ".download")]) {
        let test_env = RunTestEnv::new();
        says_hello(&test_env);
        let source = test_env.skill(&format!("demo{ending}"));
        std::fs::rename(pack(&test_env, "demo", kind), &source).expect("a new name");
        let run = test_env.savoir(&["install", &source, "--agent", "claude-code", "-y"]);
        assert_eq!(run.code, 0, "{ending}: {run}");
        let page = test_env.savoir(&["approve", ".claude/skills/demo", "--yes"]);
        assert!(page.stdout.contains("trust        untrusted"), "{ending}: {page}");
        let run = test_env.savoir(&["run", ".claude/skills/demo/hello"]);
        assert_eq!(run.code, 3, "{ending}: {run}");
        assert!(run.stderr.contains(BANNER), "{ending}: {run}");
    }
}

#[test]
fn the_text_of_a_skill_in_an_archive_is_shown_with_a_warning() {
    let test_env = RunTestEnv::new();
    prose(&test_env);
    let source = pack(&test_env, "tools", ".zip");
    let run = test_env.savoir(&["install", &source, "--agent", "claude-code", "-y"]);
    assert_eq!(run.code, 0, "{run}");
    let run = test_env.savoir(&["render", ".claude/skills/tools"]);
    assert!(run.stderr.contains(BANNER) && run.stderr.contains("a model may follow"), "{run}");
}

#[test]
fn a_tool_is_refused_in_a_mode_that_it_is_not_for() {
    let test_env =
        RunTestEnv::with_commands("modes: [Dev]\nread_only: true\n", &[("mode", "", "env")]);
    let run = test_env.run("demo/mode", &["--mode", "Meeting"]);
    run.fails(3, "not-in-mode");
    run.assert_error_contains(&["not available in the mode Meeting", "--mode Dev"]);
    for options in [&[][..], &["--mode", "dev"]] {
        let output = test_env.run("demo/mode", options).succeeds()["output"].to_string();
        assert!(output.contains("GIBBERISH_MODE=Dev"), "{output}");
    }
}

#[test]
fn a_prompt_leaves_a_record() {
    let test_env = RunTestEnv::new();
    prose(&test_env);
    let run = test_env.savoir(&["run", &test_env.skill("tools"), "--model", "nobody:nothing"]);
    assert_ne!(run.code, 0, "{run}");
    let record = test_env.record();
    assert_eq!((&record["skill"], &record["success"]), (&"tools".into(), &false.into()));
    assert_eq!(record["decision"]["verdict"], "run", "{record}");
    assert!(record["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{record}");
}
