//! What a run is denied: how it is told to people and programs, what is offered, and what never is.

use super::{Stage, Transcript, server::Server};
use crate::support::terminal;

/// A skill of the base format with one shell script, approved.
fn with_script(script: &str) -> Stage {
    let stage = Stage::new();
    let text = "---\nname: tools\ndescription: Does things. Use in tests.\n---\n\nRun it.\n";
    stage.write("skills/tools/SKILL.md", text);
    stage.write("skills/tools/scripts/a.sh", script);
    stage.approve("tools");
    stage
}

fn run(stage: &Stage, options: &[&str]) -> Transcript {
    stage.savoir(&[&["run", &stage.skill("tools/scripts/a.sh")], options].concat())
}

/// The same by somebody who sits before a terminal and answers each question.
fn typed(stage: &Stage, answers: &[&str]) -> Transcript {
    let steps: Vec<_> = answers.iter().map(|answer| ("run it again? ", *answer)).collect();
    let command = stage.command(&["run", &stage.skill("tools/scripts/a.sh")]);
    terminal::run_in_steps(command, &steps)
}

#[test]
fn programs_are_told_what_was_denied() {
    let stage = with_script("set -e\necho x > out.txt\n");
    let failed = run(&stage, &["--json"]);
    let denied = &failed.json()["denied"];
    assert_eq!(denied[0]["what"], "writing out.txt in this folder", "{failed}");
    assert_eq!(denied[0]["allow"], "--allow-write .", "{failed}");
}

#[test]
fn a_denied_host_is_named_although_the_tool_does_not_mind() {
    let server = Server::answering("fine");
    let stage = with_script(&format!("curl -sS http://localhost:{}/\nexit 0\n", server.port));
    if !super::has_program("curl") {
        return;
    }
    let fine = run(&stage, &[]);
    assert_eq!(fine.code, 0, "{fine}");
    assert!(fine.stderr.contains("the sandbox denied connecting to localhost"), "{fine}");
    assert!(fine.stderr.contains("to allow it: savoir approve "), "{fine}");
}

#[test]
fn always_keeps_only_what_the_question_named() {
    let stage = with_script("set -e\necho x > out.txt\n");
    // The skill is approved, so this adds one right to an approval.
    let run = typed(&stage, &["a\n"]);
    assert_eq!((run.code, stage.sandbox.read("work/out.txt").as_str()), (0, "x\n"), "{run}");
    assert_eq!(super::denials::run(&stage, &[]).code, 0);

    let stage = with_script("set -e\nmkdir -p ../one\necho x > ../one/out.txt\necho x > out.txt\n");
    stage.write("one/there", "");
    // The first answer holds once, so that the second cannot be kept for both.
    let run = typed(&stage, &["o\n", "o\n", "o\n"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(run.stderr.matches("[a]lways").count(), 1, "{run}");
    assert_ne!(super::denials::run(&stage, &[]).code, 0, "nothing is kept");
}

#[test]
fn what_others_run_is_never_offered() {
    let stage = with_script("set -e\necho evil > .husky/pre-commit\n");
    stage.write("work/.husky/pre-commit", "mine\n");
    let skill = stage.skill("tools");
    let approved = stage.savoir(&["approve", &skill, "--yes", "--allow-write", "."]);
    assert_eq!(approved.code, 0, "{approved}");
    let run = typed(&stage, &["o\n", "o\n"]);
    assert_ne!(run.code, 0, "{run}");
    assert!(!run.stderr.contains("[o]nce"), "{run}");
    assert!(run.stderr.contains("which other programs run or obey"), "{run}");
    assert_eq!(stage.sandbox.read("work/.husky/pre-commit"), "mine\n");
}

#[test]
fn settings_of_git_are_named_without_an_option() {
    let stage = with_script("set -e\ngit config user.name Somebody\n");
    stage.repository();
    let skill = stage.skill("tools");
    let approved = stage.savoir(&["approve", &skill, "--yes", "--allow", "git"]);
    assert_eq!(approved.code, 0, "{approved}");
    let run = run(&stage, &[]);
    assert_ne!(run.code, 0, "{run}");
    assert!(run.stderr.contains("no skill may write there"), "{run}");
    assert!(!run.stderr.contains("--allow-write .git"), "{run}");
}

#[test]
fn a_folder_called_like_the_home_is_not_the_home() {
    let stage = with_script("set -e\necho x > ./~/notes\n");
    stage.write("work/~/old", "");
    stage.write("home/.ssh/id_ed25519", "private");
    let run = typed(&stage, &["o\n"]);
    assert!(run.stderr.contains("./~"), "{run}");
    assert_eq!((run.code, stage.sandbox.read("work/~/notes").as_str()), (0, "x\n"), "{run}");
}

#[test]
fn skills_do_not_open_for_themselves_what_others_run() {
    for scope in ["./.husky/**", "./mise.toml", "./sub/.git/hooks/**", "./sub/.vscode/**"] {
        let stage = Stage::new();
        stage.probe("probe", &[&format!("filesystem:write:{scope}")], "");
        stage.approve("probe");
        let run = stage.run("probe", &["--param", "code=result = 1"]);
        assert_eq!(run.0.code, 3, "{scope}: {}", run.0);
        run.says(&["other programs run or obey"]);
    }
}

#[test]
fn the_whole_home_is_not_granted_by_its_name() {
    for scope in ["filesystem:write:~/**", "filesystem:write:~"] {
        let stage = Stage::new();
        stage.probe("probe", &[scope], "");
        let run = stage.run("probe", &["--param", "code=result = 1"]);
        assert_eq!(run.0.code, 3, "{scope}: {}", run.0);
        run.says(&["it means every file"]);
    }
}

#[test]
fn links_and_dots_lead_to_nothing_new() {
    let stage = Stage::with_probe(&["filesystem:write:./out.txt"]);
    stage.write("work/notes.txt", "mine");
    let work = stage.path("work").canonicalize().expect("a folder");
    let (name, work) = (work.file_name().expect("a name").to_owned(), work.display());
    let code = format!(
        "import os\nos.symlink('{work}', '/tmp/l')\nresult = []\n\
         for path in ['/tmp/l/../{name}/Makefile', '/tmp/l/Makefile', 'sub/../Makefile']:\n  \
         try:\n    open(path, 'w').write('evil'); result.append(path)\n  \
         except OSError: pass\n\
         open('out.txt', 'w').write('fine')",
        name = name.to_string_lossy()
    );
    assert_eq!(stage.execute(&code), serde_json::json!([]));
    assert!(!stage.path("work/Makefile").exists());
    assert_eq!(stage.sandbox.read("work/out.txt"), "fine");
}

#[test]
fn a_folder_that_cannot_be_looked_through_is_not_opened() {
    let stage = with_script("echo x > out.txt\n");
    let mut deep = stage.path("work");
    for _ in 0..230 {
        deep.push("d");
    }
    std::fs::create_dir_all(deep).expect("folders");
    let skill = stage.skill("tools");
    stage.savoir(&["approve", &skill, "--yes", "--allow-write", "."]);
    let refused = run(&stage, &[]);
    assert_eq!(refused.code, 3, "{refused}");
    assert!(refused.stderr.contains("folders in one another"), "{refused}");
    assert!(!stage.path("work/out.txt").exists());
}
