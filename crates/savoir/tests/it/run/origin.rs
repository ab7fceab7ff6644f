//! Trust follows origin: what was installed from elsewhere is untrusted until it is signed or its
//! source is trusted.

use std::process::Command;

use super::{Stage, fingerprint};

const BANNER: &str = "UNTRUSTED SKILL";

/// A stage in whose working folder the skills of a repository are installed.
fn installed(prepare: impl FnOnce(&Stage)) -> Stage {
    let stage = Stage::new();
    prepare(&stage);
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"])
            .args(arguments)
            .current_dir(stage.path("skills"))
            .env("HOME", stage.path("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .expect("git runs");
        assert!(output.status.success(), "{output:?}");
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "Skills"]);
    git(&["clone", "--quiet", "--bare", ".", "../origin.git"]);
    let origin = stage.path("origin.git").display().to_string();
    let run = stage.savoir(&["install", &origin, "--all", "--agent", "claude-code", "-y"]);
    assert_eq!(run.code, 0, "{run}");
    stage
}

fn says_hello(stage: &Stage) {
    stage.commands("demo", "read_only: true\n", &[("hello", "", "echo hello")]);
}

/// A skill of scripts, in the base format.
fn prose(stage: &Stage) {
    let text = "---\nname: tools\ndescription: Works on files. Use when asked to.\nmetadata:\n  \
                version: \"1.0.0\"\n---\n\nRun it.\n";
    stage.write("skills/tools/SKILL.md", text);
    stage.write("skills/tools/scripts/a.sh", "echo ran\n");
}

#[test]
fn a_downloaded_skill_of_gibberish_asks_every_time_with_a_banner() {
    let stage = installed(says_hello);
    let target = ".claude/skills/demo/hello";
    let run = stage.savoir(&["run", target]);
    assert_eq!(run.code, 3, "{run}");
    assert!(run.stderr.contains(BANNER), "{run}");
    let digits = fingerprint(&run);
    assert_eq!(digits.len(), 32);
    let run = stage.savoir(&["approve", ".claude/skills/demo", "--yes"]);
    assert!(run.stdout.contains(BANNER) && run.stdout.contains("asked before every run"), "{run}");
    let run = stage.savoir(&["run", target]);
    assert_eq!(run.code, 3, "{run}");
    let run = stage.savoir(&["run", target, "--approve", &digits]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "hello\n"), "{run}");
    assert!(run.stderr.contains(BANNER), "{run}");
    assert_eq!(stage.record()["trust"], "untrusted");
}

#[test]
fn a_downloaded_skill_of_another_dialect_runs_once_it_is_approved() {
    let stage = installed(prose);
    let target = ".claude/skills/tools/scripts/a.sh";
    let run = stage.savoir(&["run", target]);
    assert_eq!(run.code, 3, "{run}");
    let run = stage.savoir(&["approve", ".claude/skills/tools", "--yes"]);
    assert_eq!(run.code, 0, "{run}");
    let run = stage.savoir(&["run", target]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "ran\n"), "{run}");
    assert!(run.stderr.contains(BANNER), "{run}");
    assert_eq!(stage.record()["trust"], "downloaded");
}

#[test]
fn a_signature_of_a_trusted_key_makes_it_trusted() {
    let stage = installed(|stage| {
        prose(stage);
        for arguments in
            [&["keys", "new", "ada"][..], &["sign", &stage.skill("tools"), "--key", "ada"]]
        {
            let run = stage.savoir(arguments);
            assert_eq!(run.code, 0, "{run}");
        }
    });
    let skill = ".claude/skills/tools";
    let page = stage.savoir(&["approve", skill]);
    assert!(page.stdout.contains(BANNER), "{page}");
    let key = stage.path(".config/savoir/keys/ada.pub").display().to_string();
    let run = stage.savoir(&["keys", "trust", &key, "--publisher", "Ada"]);
    assert_eq!(run.code, 0, "{run}");
    let page = stage.savoir(&["approve", skill]);
    assert!(!page.stdout.contains(BANNER), "{page}");
}

#[test]
fn the_text_of_a_downloaded_skill_is_shown_with_a_warning() {
    let stage = installed(prose);
    let run = stage.savoir(&["render", ".claude/skills/tools"]);
    assert_eq!((run.code, run.stdout.trim()), (0, "Run it."), "{run}");
    assert!(run.stderr.contains(BANNER) && run.stderr.contains("a model may follow"), "{run}");
    let run = stage.savoir(&["render", &stage.skill("tools")]);
    assert!(!run.stderr.contains(BANNER), "a skill of one's own: {run}");
}

#[test]
fn a_skill_installed_from_a_folder_of_the_user_is_the_users() {
    let stage = Stage::new();
    prose(&stage);
    let from = stage.skill("tools");
    let run = stage.savoir(&["install", &from, "--agent", "claude-code", "-y"]);
    assert_eq!(run.code, 0, "{run}");
    let page = stage.savoir(&["approve", ".claude/skills/tools"]);
    assert!(page.stdout.contains("trust        user") && !page.stdout.contains(BANNER), "{page}");
}

#[test]
fn a_tool_is_refused_in_a_mode_that_it_is_not_for() {
    let stage = Stage::with_commands("modes: [Dev]\nread_only: true\n", &[("mode", "", "env")]);
    let run = stage.run("demo/mode", &["--mode", "Meeting"]);
    run.fails(3, "not-in-mode");
    run.says(&["not available in the mode Meeting", "--mode Dev"]);
    for options in [&[][..], &["--mode", "dev"]] {
        let output = stage.run("demo/mode", options).succeeds()["output"].to_string();
        assert!(output.contains("GIBBERISH_MODE=Dev"), "{output}");
    }
}

#[test]
fn a_prompt_leaves_a_record() {
    let stage = Stage::new();
    prose(&stage);
    let run = stage.savoir(&["run", &stage.skill("tools"), "--model", "nobody:nothing"]);
    assert_ne!(run.code, 0, "{run}");
    let record = stage.record();
    assert_eq!((&record["skill"], &record["success"]), (&"tools".into(), &false.into()));
    assert_eq!(record["decision"]["verdict"], "run", "{record}");
    assert!(record["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{record}");
}
