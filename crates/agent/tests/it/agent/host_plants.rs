//! Tests commands that try to hide the protected files that they create.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use futures::future::join_all;
use savoir_agent::{consent::Consent, host_tools::Autonomy, toolset::ToolAnswer};
use serde_json::json;

use super::host_tools::{Place, can_run};

fn place() -> Option<Place> {
    can_run().then(|| Place::with(Consent::Nobody, Autonomy::InWorkspace))
}

async fn run(place: &Place, command: &str) -> ToolAnswer {
    place.call("run_command", json!({"command": command})).await
}

/// Runs a command, and checks that the protected files that it created are moved aside.
async fn catches(place: &Place, command: &str, planted: &[&str]) {
    let answer = run(place, command).await;
    assert_eq!(answer.failure.as_deref(), Some("protected-path"), "{command}: {}", answer.text);
    for path in planted {
        assert!(place.work(path).symlink_metadata().is_err(), "{command}: {path}: {}", answer.text);
    }
}

#[tokio::test]
async fn fake_repository_is_searched() {
    let Some(place) = place() else { return };
    let sham = "mkdir -p sham/objects sham/refs sham/x/.claude && echo x > sham/HEAD && \
        echo evil > sham/x/.claude/settings.json";
    catches(&place, sham, &["sham/HEAD", "sham/x/.claude"]).await;
    // A folder that is moved aside is searched, too.
    let inner =
        "mkdir -p sub/.git/objects sub/.git/refs sub/.git/x/.claude && echo x > sub/.git/HEAD";
    catches(&place, inner, &["sub/.git", "sub/.git.held/HEAD", "sub/.git.held/x/.claude"]).await;
    assert!(place.work("sub/.git.held/x/.claude.held").is_dir());
    // `HEAD` is searched even if it is a folder.
    let head = "mkdir -p odd/objects odd/refs odd/HEAD/.claude";
    catches(&place, head, &["odd/HEAD", "odd/HEAD.held/.claude"]).await;
    // A folder that was already a repository stays one, and protected names in it cannot be
    // created.
    for folder in ["real/objects", "real/refs", "real/x"] {
        fs::create_dir_all(place.work(folder)).unwrap();
    }
    fs::write(place.work("real/HEAD"), "x").unwrap();
    let answer = run(&place, "mkdir -p real/x/.claude").await;
    assert_eq!(answer.failure.as_deref(), Some("command-failed"), "{}", answer.text);
    assert!(place.work("real/HEAD").exists() && !place.work("real/x/.claude").exists());
    // The workspace's own repository is searched, too.
    fs::create_dir_all(place.work(".git/objects")).unwrap();
    catches(&place, "mkdir -p .git/x/.claude && ln -s .git/x entry", &[".git/x/.claude"]).await;
}

#[tokio::test]
async fn unreadable_folders_are_moved_aside() {
    let Some(place) = place() else { return };
    for mode in ["000", "111", "400", "300"] {
        let command = format!(
            "mkdir -p m{mode}/in/.claude && chmod {mode} m{mode}/in && chmod {mode} m{mode}"
        );
        let answer = run(&place, &command).await;
        assert_eq!(answer.failure.as_deref(), Some("protected-path"), "{mode}: {}", answer.text);
        let folder = place.work(&format!("m{mode}"));
        let had = fs::metadata(&folder).unwrap().permissions().mode() & 0o777;
        assert_eq!(format!("{had:03o}"), mode, "it is as closed as it was");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(folder.join("in"), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(folder.join("in/.claude.held").is_dir() && !folder.join("in/.claude").exists());
    }
    // A command can open a folder that had no permissions; the folder is then searched.
    fs::create_dir_all(place.work("mine")).unwrap();
    fs::set_permissions(place.work("mine"), fs::Permissions::from_mode(0o000)).unwrap();
    let command = "chmod 700 mine && mkdir mine/.claude && chmod 000 mine";
    let answer = run(&place, command).await;
    assert_eq!(answer.failure.as_deref(), Some("protected-path"), "{}", answer.text);
    assert_eq!(run(&place, "true").await.failure, None);
}

#[tokio::test]
async fn long_and_deep_paths_are_searched() {
    let Some(place) = place() else { return };
    let long = "n=$(printf 'x%.0s' {1..200}); for i in {1..30}; do mkdir $n && cd $n || exit 9; \
        done; mkdir .claude && echo evil > .claude/settings.json";
    let answer = run(&place, long).await;
    assert_eq!(answer.failure.as_deref(), Some("protected-path"), "{}", answer.text);
    let deep = "for i in {1..450}; do mkdir d && cd d || exit 9; done; mkdir .claude";
    let answer = run(&place, deep).await;
    assert_eq!(answer.failure.as_deref(), Some("protected-path"), "{}", answer.text);
    let mut find = std::process::Command::new("find");
    let found = find.arg(place.work("")).args(["-name", ".claude"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    assert_eq!(run(&place, "true").await.failure, None, "the work goes on");
}

#[tokio::test]
async fn existing_links_keep_their_targets() {
    let Some(place) = place() else { return };
    // The link is dangling at first.
    symlink("real", place.work(".qwen")).unwrap();
    catches(&place, "mkdir real && echo evil > real/settings.json", &[".qwen"]).await;
    // A link in the middle of the path is replaced.
    for (folder, text) in [("one", "mine"), ("two", "evil")] {
        fs::create_dir_all(place.work(folder)).unwrap();
        fs::write(place.work(folder).join("settings.json"), text).unwrap();
    }
    symlink("way", place.work(".gemini")).unwrap();
    symlink("one", place.work("way")).unwrap();
    assert_eq!(run(&place, "true").await.failure, None);
    catches(&place, "rm way && ln -s two way", &[".gemini"]).await;
    // The target of a link inside a protected folder is protected, too.
    fs::create_dir_all(place.work(".claude/hooks")).unwrap();
    fs::write(place.work("hook.sh"), "mine").unwrap();
    symlink("../../hook.sh", place.work(".claude/hooks/hook.sh")).unwrap();
    for command in ["echo evil > hook.sh", "echo evil > new && mv -f new hook.sh"] {
        let answer = run(&place, command).await;
        assert_eq!(answer.failure.as_deref(), Some("command-failed"), "{}", answer.text);
        assert_eq!(fs::read_to_string(place.work("hook.sh")).unwrap(), "mine");
    }
    // The same for several links in a row.
    for folder in ["cfg/hooks", "scripts"] {
        fs::create_dir_all(place.work(folder)).unwrap();
    }
    fs::write(place.work("scripts/x.sh"), "mine").unwrap();
    symlink("../cfg", place.work("docs/.codex")).unwrap();
    symlink("../../scripts/x.sh", place.work("cfg/hooks/x.sh")).unwrap();
    let answer = run(&place, "echo evil > scripts/x.sh").await;
    assert_eq!(answer.failure.as_deref(), Some("command-failed"), "{}", answer.text);
    // A page that an instruction link leads to counts as instructions.
    fs::write(place.work("docs/guide.md"), "mine").unwrap();
    symlink("docs/guide.md", place.work("CLAUDE.md")).unwrap();
    assert_eq!(run(&place, "cat CLAUDE.md").await.failure, None);
    catches(&place, "echo evil >> docs/guide.md", &["docs/guide.md"]).await;
    // Writing through another hard link of a protected file is detected.
    fs::write(place.work("plain.json"), "mine").unwrap();
    fs::hard_link(place.work("plain.json"), place.work(".mcp.json")).unwrap();
    catches(&place, "echo evil > plain.json", &[".mcp.json"]).await;
}

#[tokio::test]
async fn planted_files_are_moved_even_if_names_are_taken() {
    let Some(place) = place() else { return };
    let command = "mkdir -p sub/.git && cd sub && touch .git.held && \
        for i in {1..1100}; do echo .git.held-$i; done | xargs touch";
    catches(&place, command, &["sub/.git"]).await;
}

#[tokio::test]
async fn paths_of_git_settings_are_protected() {
    let Some(place) = place() else { return };
    for folder in [".git/objects", ".git/refs", "sub/.git", "hooks", "team"] {
        fs::create_dir_all(place.work(folder)).unwrap();
    }
    for (path, text) in [
        (".git/HEAD", "ref: refs/heads/main\n"),
        (".git/config", "[core]\n\thooksPath = hooks\n[include]\n\tpath = ../team/gitconfig\n"),
        ("hooks/pre-commit", "mine"),
        ("team/gitconfig", "[alias]\nx = status\n"),
        ("sub/.git/config", "[core] hooksPath = \"my hooks\" # later\n"),
    ] {
        fs::write(place.work(path), text).unwrap();
    }
    for command in [
        "echo evil > hooks/pre-commit",
        "echo evil > hooks/post-checkout",
        "echo evil > team/gitconfig",
        "echo evil > team/new && mv -f team/new team/gitconfig",
    ] {
        let answer = run(&place, command).await;
        assert_eq!(answer.failure.as_deref(), Some("command-failed"), "{command}: {}", answer.text);
    }
    let hooks = "mkdir 'sub/my hooks' && echo evil > 'sub/my hooks/pre-commit'";
    catches(&place, hooks, &["sub/my hooks"]).await;
    for path in ["hooks/pre-commit", "team/gitconfig", "sub/my hooks/pre-commit"] {
        let given = json!({"path": path, "content": "x"});
        let answer = place.call("write_file", given).await;
        assert_eq!(answer.failure.as_deref(), Some("protected-path"), "{path}: {}", answer.text);
    }
    catches(
        &place,
        "mkdir .git/rebase-merge && echo 'exec evil' > .git/rebase-merge/git-rebase-todo",
        &[".git/rebase-merge"],
    )
    .await;
}

#[tokio::test]
async fn only_file_tools_write_instructions_and_workflows() {
    let Some(place) = place() else { return };
    let files = ["AGENTS.md", "sub/CLAUDE.md", ".github/workflows/ci.yml"];
    for path in files {
        let given = json!({"path": path, "content": "mine\n"});
        let answer = place.call("write_file", given).await;
        assert_eq!(answer.failure, None, "{path}: {}", answer.text);
        assert_eq!(run(&place, &format!("cat {path} && touch x")).await.failure, None, "{path}");
        catches(&place, &format!("echo evil >> {path}"), &[path]).await;
        let held = fs::read_to_string(place.work(&format!("{path}.held"))).unwrap();
        assert_eq!(held, "mine\nevil\n", "nothing is lost");
        catches(&place, &format!("echo evil > {path}"), &[path]).await;
    }
    catches(&place, "echo x > .github/workflows/new.yml", &[".github/workflows/new.yml"]).await;
    for path in [".cursorrules", "sub/mise.toml", "x.code-workspace", ".husky/pre-commit"] {
        catches(&place, &format!("mkdir -p .husky && echo evil > {path}"), &[path]).await;
    }
    // Renaming an unprotected folder to a protected name is detected.
    fs::create_dir_all(place.work("sub/.github/workflows")).unwrap();
    fs::write(place.work("sub/.github/workflows/config.toml"), "evil").unwrap();
    catches(&place, "mv sub/.github/workflows sub/.codex", &["sub/.codex"]).await;
    // Instruction files are compared case-sensitively, so `agents.md` is an ordinary page.
    let page = "mkdir -p docs && echo x > docs/agents.md && echo x > .github/dependabot.yml";
    assert_eq!(run(&place, page).await.failure, None);
}

#[tokio::test]
async fn file_written_by_a_tool_during_a_command_stays() {
    let Some(place) = place() else { return };
    let command = run(&place, "touch begun && while [ ! -e go ]; do sleep 0.02; done");
    let write = async {
        while !place.work("begun").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        for path in ["AGENTS.md", ".github/workflows/ci.yml"] {
            let given = json!({"path": path, "content": "mine"});
            assert_eq!(place.call("write_file", given).await.failure, None);
        }
        fs::write(place.work("go"), "").unwrap();
    };
    let (answer, ()) = tokio::join!(command, write);
    assert_eq!(answer.failure, None, "{}", answer.text);
    assert!(place.work("AGENTS.md").exists() && place.work(".github/workflows/ci.yml").exists());
}

#[tokio::test]
async fn links_to_git_setting_paths_are_checked() {
    let Some(place) = place() else { return };
    fs::create_dir_all(place.work(".git")).unwrap();
    let settings =
        "[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = ../conf/team/gitconfig\n";
    fs::write(place.work(".git/config"), settings).unwrap();
    // Both the link and its target are new.
    let command = "mkdir -p other/hooks && echo x > other/hooks/pre-commit && ln -s other tools";
    catches(&place, command, &["tools"]).await;
    // The link existed before.
    fs::create_dir_all(place.work("c2")).unwrap();
    symlink("c2", place.work("conf")).unwrap();
    catches(&place, "mkdir c2/team && echo x > c2/team/gitconfig", &["c2/team/gitconfig"]).await;
    assert!(place.work("conf").symlink_metadata().is_ok());
    // Other files in the same folder can be written.
    let answer = run(&place, "mkdir -p c2/more other/more && echo x > c2/more/x").await;
    assert_eq!(answer.failure, None, "{}", answer.text);
}

#[tokio::test]
async fn links_and_hard_links_cannot_change_protected_files() {
    let Some(place) = place() else { return };
    let command = "mkdir -p stuff/hooks && echo x > stuff/hooks/h.json && ln -s stuff .github";
    catches(&place, command, &[".github"]).await;
    fs::create_dir_all(place.work(".claude")).unwrap();
    fs::write(place.work("s.json"), "{}").unwrap();
    fs::hard_link(place.work("s.json"), place.work(".claude/settings.json")).unwrap();
    let answer = run(&place, "cat s.json").await;
    assert_eq!(answer.failure, None, "{}", answer.text);
    catches(&place, "echo evil > s.json", &[".claude/settings.json"]).await;
    // A file that the user may agree to elsewhere counts as a new protected file here.
    fs::create_dir_all(place.work("example/.github/workflows")).unwrap();
    fs::write(place.work("example/.github/workflows/ci.yml"), "x").unwrap();
    let moved = "mv example/.github .github";
    catches(&place, moved, &[".github/workflows/ci.yml"]).await;
}

#[tokio::test]
async fn branch_named_like_instructions_is_allowed() {
    let Some(place) = place() else { return };
    let command = "mkdir -p .git/refs/heads/fix && echo x > .git/refs/heads/fix/AGENTS.md";
    fs::create_dir_all(place.work(".git/refs")).unwrap();
    let answer = run(&place, command).await;
    assert_eq!(answer.failure, None, "{}", answer.text);
    assert!(place.work(".git/refs/heads/fix/AGENTS.md").is_file());
}

#[tokio::test]
async fn programs_can_start_others_through_the_shell() {
    let Some(place) = place() else { return };
    let answer =
        run(&place, "perl -e 'exit(system(\"true && true\") >> 8)' && /bin/sh -c true").await;
    assert_eq!(answer.failure, None, "{}", answer.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_commands_cannot_create_a_repository() {
    let Some(place) = place() else { return };
    let plant = "sleep 0.4; mkdir -p .git/objects .git/refs/heads; \
        echo 'ref: refs/heads/x' > .git/HEAD";
    let (first, second, planted) =
        tokio::join!(run(&place, "sleep 1"), run(&place, "sleep 0.9"), run(&place, plant));
    assert!(planted.failure.is_some(), "{}", planted.text);
    assert_eq!((first.failure, second.failure), (None, None), "{}{}", first.text, second.text);
    assert!(!place.work(".git").exists(), "{}", planted.text);
    // The placeholders for protected paths disappear with the last command, in whatever order the
    // commands end.
    for _ in 0..3 {
        let commands: Vec<String> = (0..8).map(|n| format!("sleep 0.{n}; echo hi")).collect();
        let ran = join_all(commands.iter().map(|command| run(&place, command))).await;
        for answer in ran {
            assert_eq!(answer.failure, None, "{}", answer.text);
        }
        let left = fs::read_dir(place.work("")).unwrap().map(|entry| entry.unwrap().file_name());
        let is_new = |name: &std::ffi::OsString| !name.to_string_lossy().contains(".held-");
        assert_eq!(left.filter(is_new).collect::<Vec<_>>(), ["docs"]);
    }
}
