//! Tests the host tools with real files and the real sandbox.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use savoir_agent::{
    allowed_tools::{AllowedTools, CallGuard},
    consent::{Asker, Consent, HostQuestion, Nobody},
    host_tools::{Autonomy, HostTools},
    toolset::{ToolAnswer, Toolset},
};
use savoir_engine::{approval::ApprovalQuestion, run_environment::RunEnvironment};
use savoir_flow::workflow::HttpPolicy;
use savoir_sandbox::SandboxSupport;
use savoir_skill::{allow_list::AllowList, allowed_tools::split};
use serde_json::{Value, json};

/// Gives the same answer to every question, and stores the questions.
#[derive(Debug)]
struct Person(Consent, Mutex<Vec<HostQuestion>>);

impl Asker for Person {
    fn ask<'a>(&'a self, _: &'a ApprovalQuestion) -> BoxFuture<'a, Consent> {
        Box::pin(async { self.0 })
    }

    fn ask_host<'a>(&'a self, question: &'a HostQuestion) -> BoxFuture<'a, Consent> {
        self.1.lock().expect("a lock").push(question.clone());
        Box::pin(async { self.0 })
    }
}

pub(super) struct Place {
    dir: tempfile::TempDir,
    person: Arc<Person>,
    tools: HostTools,
}

impl Place {
    fn new(consent: Consent) -> Self {
        Self::with(consent, Autonomy::Asks)
    }

    pub(super) fn with(consent: Consent, autonomy: Autonomy) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        for folder in ["work/docs", "home"] {
            fs::create_dir_all(dir.path().join(folder)).expect("a file");
        }
        fs::write(dir.path().join("work/docs/a.txt"), "one two three\n").expect("a file");
        fs::write(dir.path().join("secret.txt"), "secret").expect("a file");
        let run_env = RunEnvironment::at(&dir.path().join("work"), &dir.path().join("home"));
        let person = Arc::new(Person(consent, Mutex::default()));
        let tools = HostTools::new(&dir.path().join("work"), &run_env, person.clone(), autonomy);
        Self { tools: tools.expect("a workspace"), person, dir }
    }

    pub(super) fn work(&self, path: &str) -> PathBuf {
        self.dir.path().join("work").join(path)
    }

    pub(super) async fn call(&self, name: &str, given: Value) -> ToolAnswer {
        self.tools
            .call(name, given.as_object().expect("an object"), CallGuard::unrestricted())
            .await
    }

    /// Calls a tool that must fail; returns the error code.
    async fn fails(&self, name: &str, given: Value) -> String {
        let answer = self.call(name, given.clone()).await;
        answer.failure.unwrap_or_else(|| panic!("{name} {given}: {}", answer.text))
    }

    fn asked(&self) -> usize {
        self.person.1.lock().expect("a lock").len()
    }
}

pub(super) fn can_run() -> bool {
    let held = SandboxSupport::detect().sandbox.is_available();
    if !held {
        eprintln!("SKIPPED: this machine has no sandbox");
    }
    held
}

#[tokio::test]
async fn files_are_read_listed_written_and_edited() {
    let place = Place::new(Consent::Once);
    assert_eq!(
        place.call("read_file", json!({"path": "docs/a.txt"})).await.text,
        "one two three\n"
    );
    let absolute = place.work("docs/a.txt").canonicalize().unwrap().display().to_string();
    assert_eq!(place.call("read_file", json!({"path": absolute})).await.failure, None);
    assert_eq!(place.call("list_dir", json!({})).await.text, "docs/");
    assert_eq!(place.asked(), 0, "reading is not asked about");
    let new = json!({"path": "new/deep/b.txt", "content": "hello"});
    let answer = place.call("write_file", new).await;
    assert_eq!(answer.text, "`new/deep/b.txt` is written, 5 bytes");
    let edit = json!({"path": "docs/a.txt", "old_text": "two", "new_text": "2"});
    assert_eq!(place.call("edit_file", edit).await.failure, None);
    assert_eq!(fs::read_to_string(place.work("docs/a.txt")).unwrap(), "one 2 three\n");
    assert_eq!(place.asked(), 2);
    assert_eq!(fs::read_dir(place.work("docs")).unwrap().count(), 1, "nothing is left behind");
}

#[tokio::test]
async fn paths_outside_the_workspace_are_refused() {
    let place = Place::new(Consent::Once);
    symlink("../secret.txt", place.work("link.txt")).unwrap();
    symlink("..", place.work("up")).unwrap();
    symlink("/etc", place.work("etc")).unwrap();
    let outside = place.dir.path().join("secret.txt").display().to_string();
    let beside = format!("{}x/a", place.work("").canonicalize().unwrap().display());
    for (path, code) in [
        ("../secret.txt", "path-outside-workspace"),
        ("docs/../../secret.txt", "path-outside-workspace"),
        ("/etc/passwd", "path-outside-workspace"),
        ("~/x", "path-outside-workspace"),
        ("..\\secret.txt", "path-outside-workspace"),
        ("a\0b", "path-outside-workspace"),
        (&outside, "path-outside-workspace"),
        (&beside, "path-outside-workspace"),
        ("link.txt", "link-not-followed"),
        ("up/secret.txt", "link-not-followed"),
        ("etc/passwd", "link-not-followed"),
        ("docs/a.txt/x", "link-not-followed"),
        ("docs", "no-such-file"),
        ("", "no-such-file"),
        ("nowhere", "no-such-file"),
    ] {
        assert_eq!(place.fails("read_file", json!({"path": path})).await, code, "{path:?}");
    }
    for path in ["link.txt", "up/new.txt", "etc/new", "../new.txt", "docs"] {
        let given = json!({"path": path, "content": "x"});
        place.fails("write_file", given).await;
    }
    assert_eq!(fs::read_to_string(place.dir.path().join("secret.txt")).unwrap(), "secret");
    assert!(!place.dir.path().join("new.txt").exists());
    assert_eq!(place.fails("list_dir", json!({"path": "up"})).await, "link-not-followed");
    assert_eq!(place.fails("list_dir", json!({"path": ".."})).await, "path-outside-workspace");
}

#[tokio::test]
async fn protected_files_are_not_written() {
    let place = Place::with(Consent::Once, Autonomy::InWorkspace);
    // With a `HEAD` file, git would recognize this folder as a repository.
    for folder in ["bare/objects", "bare/refs", "almost/objects", "almost/refs"] {
        fs::create_dir_all(place.work(folder)).unwrap();
    }
    fs::write(place.work("bare/HEAD"), "ref: refs/heads/main\n").unwrap();
    assert_eq!(
        place.fails("write_file", json!({"path": "almost/HEAD", "content": "x"})).await,
        "protected-path"
    );
    assert_eq!(
        place.call("write_file", json!({"path": "almost/x", "content": "x"})).await.failure,
        None
    );
    for path in [
        ".git/hooks/pre-commit",
        ".git/config",
        "sub/.git/config",
        ".gemini/skills/planted/SKILL.md",
        ".gemini/settings.json",
        ".github/skills/planted/SKILL.md",
        "skills/planted/SKILL.md",
        "sub/.GIT/config",
        ".claude/settings.json",
        ".vscode/tasks.json",
        ".mcp.json",
        "savoir.lock",
        ".qwen/settings.json",
        "opencode.json",
        "sub/.claude/skills/planted/SKILL.md",
        "sub/deep/.gemini/settings.json",
        "sub/.mcp.json",
        "bare/HEAD",
        "bare/config",
        "bare/deep/file",
    ] {
        let given = json!({"path": path, "content": "x"});
        assert_eq!(place.fails("write_file", given).await, "protected-path", "{path}");
    }
}

#[tokio::test]
async fn large_and_binary_files_have_distinct_errors() {
    let place = Place::new(Consent::Once);
    fs::write(place.work("big.txt"), vec![b'x'; 10 << 20]).unwrap();
    fs::write(place.work("picture.bin"), [0xff, 0, 0xfe]).unwrap();
    assert_eq!(place.fails("read_file", json!({"path": "big.txt"})).await, "file-too-large");
    assert_eq!(place.fails("read_file", json!({"path": "picture.bin"})).await, "file-not-text");
    let huge = json!({"path": "x", "content": "x".repeat(5 << 20)});
    assert_eq!(place.fails("write_file", huge).await, "file-too-large");
    for given in [json!({}), json!({"path": 1}), json!({"path": ["a"]})] {
        assert_eq!(place.fails("read_file", given).await, "missing-argument");
    }
    // Opening a pipe would block.
    let made = std::process::Command::new("mkfifo").arg(place.work("pipe")).status().unwrap();
    assert!(made.success());
    assert_eq!(place.fails("read_file", json!({"path": "pipe"})).await, "no-such-file");
}

#[tokio::test]
async fn edited_passage_must_occur_exactly_once() {
    let place = Place::new(Consent::Once);
    for (old, code) in
        [("four", "passage-not-found"), ("e", "passage-not-found"), ("", "passage-not-found")]
    {
        let given = json!({"path": "docs/a.txt", "old_text": old, "new_text": "x"});
        assert_eq!(place.fails("edit_file", given).await, code, "{old}");
    }
    assert_eq!(place.asked(), 0, "what cannot be done is not asked about");
    fs::set_permissions(place.work("docs/a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    let given = json!({"path": "docs/a.txt", "old_text": "one", "new_text": "$0 \\1"});
    assert_eq!(place.call("edit_file", given).await.failure, None);
    assert_eq!(fs::read_to_string(place.work("docs/a.txt")).unwrap(), "$0 \\1 two three\n");
    let mode = fs::metadata(place.work("docs/a.txt")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755, "who may execute it stays as it was");
}

#[tokio::test]
async fn changes_need_consent() {
    let write = |path: &str| json!({"path": path, "content": "x"});
    let place = Place::new(Consent::Declined);
    assert_eq!(place.fails("write_file", write("x")).await, "declined");
    assert_eq!(place.fails("run_command", json!({"command": "touch x"})).await, "declined");
    assert!(!place.work("x").exists());
    let place = Place::new(Consent::Nobody);
    assert_eq!(place.fails("write_file", write("x")).await, "approval-needed");
    let place = Place::new(Consent::Always);
    place.call("write_file", write("x")).await;
    place.call("write_file", write("y")).await;
    assert_eq!(place.asked(), 1, "a lasting yes is for all files");
    place.call("run_command", json!({"command": "true"})).await;
    place.call("run_command", json!({"command": "true"})).await;
    place.call("run_command", json!({"command": "true; true"})).await;
    assert_eq!(place.asked(), 3, "and for one command");
    // With autonomy inside the workspace, the user is still asked about actions that leave it.
    let place = Place::with(Consent::Declined, Autonomy::InWorkspace);
    assert_eq!(place.call("write_file", write("x")).await.failure, None);
    assert_eq!(place.fails("web_fetch", json!({"url": "https://example.com"})).await, "declined");
    let question = place.person.1.lock().unwrap()[0].lines();
    assert_eq!((question[0].label, question[0].text.as_str()), ("fetch", "https://example.com/"));
}

#[tokio::test]
async fn commands_cannot_write_outside_the_workspace() {
    if !can_run() {
        return;
    }
    let place = Place::with(Consent::Nobody, Autonomy::InWorkspace);
    let run = async |command: &str| place.call("run_command", json!({"command": command})).await;
    let answer = run("cat docs/a.txt | tr a-z A-Z && echo err >&2 && touch made").await;
    assert_eq!(
        (answer.failure.as_deref(), place.work("made").exists()),
        (None, true),
        "{answer:?}"
    );
    assert!(answer.text.contains("ONE TWO THREE\n") && answer.text.ends_with("[exit code 0]"));
    let secret = place.dir.path().join("secret.txt");
    for command in [
        format!("cat {}", secret.display()),
        "cat ../secret.txt".to_owned(),
        "echo x > /usr/x".to_owned(),
        "cat /etc/shadow".to_owned(),
        "exit 3".to_owned(),
        "exec 3<>/dev/tcp/127.0.0.1/80".to_owned(),
    ] {
        let answer = run(&command).await;
        assert_eq!(answer.failure.as_deref(), Some("command-failed"), "{command}: {}", answer.text);
        assert!(!answer.text.contains("secret\n"), "{command}: {}", answer.text);
    }
    let plant = "mkdir -p .git/hooks && echo x > .git/hooks/pre-commit";
    assert_eq!(run(plant).await.failure.as_deref(), Some("protected-path"));
    assert!(!place.work(".git").exists());
    // The sandbox replaces the folder around the workspace by a temporary one.
    run("echo x > ../new.txt").await;
    assert!(!place.dir.path().join("new.txt").exists());
    // The target of a link that leads out does not exist in the sandbox.
    run("ln -s ../secret.txt link").await;
    assert_eq!(run("cat link").await.failure.as_deref(), Some("command-failed"));
    assert_eq!(place.fails("read_file", json!({"path": "link"})).await, "link-not-followed");
}

#[tokio::test]
async fn commands_cannot_create_protected_files() {
    if !can_run() {
        return;
    }
    let place = Place::with(Consent::Nobody, Autonomy::InWorkspace);
    let run = async |command: &str| place.call("run_command", json!({"command": command})).await;
    for path in [
        ".gemini/settings.json",
        ".gemini/skills/evil/SKILL.md",
        ".qwen/settings.json",
        "opencode.json",
        "skills/evil/SKILL.md",
        ".github/skills/evil/SKILL.md",
        "sub/.claude/skills/evil/SKILL.md",
        "sub/.agents/skills/evil/SKILL.md",
        "sub/.codex/config.toml",
        "sub/.cursor/mcp.json",
        "sub/.vscode/tasks.json",
        "sub/.mcp.json",
        "sub/deep/.git/hooks/pre-commit",
    ] {
        let answer = run(&format!("mkdir -p $(dirname {path}) && echo evil > {path}")).await;
        assert_eq!(answer.failure.as_deref(), Some("protected-path"), "{path}: {}", answer.text);
        assert!(!place.work(path).exists(), "{path}");
        assert!(answer.text.contains(".held"), "{path}: {}", answer.text);
    }
    let kept = fs::read_to_string(place.work("sub/deep/.git.held/hooks/pre-commit")).unwrap();
    assert_eq!(kept, "evil\n", "nothing is lost");
    for (path, command) in [
        (
            "moved/.git",
            "mkdir -p a/hooks moved && echo evil > a/hooks/post-checkout && mv a moved/.git",
        ),
        ("linked/.claude", "mkdir -p linked evil && ln -s ../evil linked/.claude"),
        ("closed/.git", "mkdir -p closed/.git && chmod 555 closed"),
        ("again/.git", "mkdir -p again/.git again/.git.held"),
        ("bare/HEAD", "mkdir -p bare/objects bare/refs && echo x | tee bare/HEAD > bare/config"),
    ] {
        let answer = run(command).await;
        assert_eq!(answer.failure.as_deref(), Some("protected-path"), "{path}: {}", answer.text);
        assert!(place.work(path).symlink_metadata().is_err(), "{path}");
    }
    let answer =
        run("mkdir -p src/skills && echo fine > src/skills/a && echo x > .gitignore").await;
    assert_eq!(answer.failure, None, "{}", answer.text);
}

#[tokio::test]
async fn existing_protected_files_stay_unchanged() {
    if !can_run() {
        return;
    }
    let place = Place::with(Consent::Nobody, Autonomy::InWorkspace);
    let files = ["sub/deep/.git/config", ".gemini/settings.json", "opencode.json", "real/hooks/x"];
    for path in files {
        fs::create_dir_all(place.work(path).parent().unwrap()).unwrap();
        fs::write(place.work(path), "mine").unwrap();
    }
    symlink("real", place.work(".qwen")).unwrap();
    let run = async |command: &str| place.call("run_command", json!({"command": command})).await;
    for command in [
        "echo evil > sub/deep/.git/config",
        "rm -rf sub/deep/.git",
        "mv sub other && mkdir -p sub/deep/.git && echo evil > sub/deep/.git/config",
        "mv sub/deep sub/other && mkdir -p sub/deep/.git && echo evil > sub/deep/.git/config",
        "echo evil > .gemini/settings.json",
        "echo evil > .gemini/more.json",
        "echo evil > opencode.json",
        "echo evil > new && mv -f new opencode.json",
        "echo evil > .qwen/hooks/x",
        "echo evil > real/hooks/x",
    ] {
        let answer = run(command).await;
        assert!(answer.failure.is_some(), "{command}: {}", answer.text);
        for path in files {
            assert_eq!(fs::read_to_string(place.work(path)).unwrap(), "mine", "{command}: {path}");
        }
    }
    // Unprotected paths around it can be changed.
    let answer = run("echo x > sub/deep/file && rm -f new && cat sub/deep/.git/config").await;
    assert_eq!(answer.failure, None, "{}", answer.text);
}

#[tokio::test]
async fn cancelled_command_cannot_create_protected_files() {
    if !can_run() {
        return;
    }
    let place = Place::with(Consent::Nobody, Autonomy::InWorkspace);
    let given = json!({"command": "mkdir -p sub/.git && touch begun && sleep 30"});
    let waiting = place.call("run_command", given);
    let begun = async {
        while !place.work("begun").exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        answer = waiting => panic!("it ended: {}", answer.text),
        () = begun => {}
    }
    place.tools.wait_for_commands().await;
    assert!(!place.work("sub/.git").exists() && place.work("sub/.git.held").exists());
}

/// Calls a command while a skill with this allow-list is active.
async fn run_with(place: &Place, list: &str, command: &str) -> ToolAnswer {
    let allowed_tools = AllowedTools::of("finder", AllowList::new(Some(&split(list))));
    let (specs, snapshots) = (place.tools.tools(), [allowed_tools.snapshot()]);
    let spec = specs.iter().find(|spec| spec.definition.name == "run_command").expect("a tool");
    let given = json!({"command": command});
    let given = given.as_object().expect("an object");
    let call_guard = CallGuard::new(&allowed_tools, &snapshots, spec, given);
    place.tools.call("run_command", given, call_guard).await
}

#[tokio::test]
async fn ambiguous_command_needs_consent_even_with_autonomy() {
    if !can_run() {
        return;
    }
    let (list, deletes) = ("Bash(find:*)", "find docs -delete");
    let nobody = Place::with(Consent::Nobody, Autonomy::InWorkspace);
    assert_eq!(run_with(&nobody, list, "find docs -name a.txt").await.failure, None);
    assert_eq!(nobody.asked(), 0);
    let answer = run_with(&nobody, list, deletes).await;
    assert_eq!(answer.failure.as_deref(), Some("approval-needed"), "{}", answer.text);
    assert!(answer.text.contains("`find -delete`"), "{}", answer.text);
    assert!(nobody.work("docs/a.txt").exists());

    let place = Place::with(Consent::Always, Autonomy::InWorkspace);
    assert_eq!(place.call("run_command", json!({"command": deletes})).await.failure, None);
    assert_eq!(place.asked(), 0, "without a list nothing is in doubt");
    assert_eq!(run_with(&place, list, "find . -delete").await.failure, None);
    let asked = place.person.1.lock().unwrap()[0].clone();
    assert!(asked.doubt.is_some_and(|doubt| doubt.contains("Bash(find:*)")));
    run_with(&place, list, "find . -delete").await;
    assert_eq!(place.asked(), 1, "always is for the same command");
    run_with(&place, list, "find . -type f -delete").await;
    assert_eq!(place.asked(), 2);
}

/// Agrees to every question, after loading a skill that may only read.
#[derive(Debug)]
struct Slow(Arc<AllowedTools>);

impl Asker for Slow {
    fn ask<'a>(&'a self, _: &'a ApprovalQuestion) -> BoxFuture<'a, Consent> {
        Box::pin(async { Consent::Nobody })
    }

    fn ask_host<'a>(&'a self, _: &'a HostQuestion) -> BoxFuture<'a, Consent> {
        self.0.follow("reader", AllowList::new(Some(&split("Read"))));
        Box::pin(async { Consent::Once })
    }
}

#[tokio::test]
async fn list_loaded_during_a_question_applies() {
    let Place { dir, .. } = Place::new(Consent::Once);
    let work = dir.path().join("work");
    let allowed_tools = Arc::<AllowedTools>::default();
    let run_env = RunEnvironment::at(&work, &dir.path().join("home"));
    let person = Arc::new(Slow(Arc::clone(&allowed_tools)));
    let tools = HostTools::new(&work, &run_env, person, Autonomy::Asks).unwrap();
    for (name, given) in [
        ("write_file", json!({"path": "x", "content": "x"})),
        ("edit_file", json!({"path": "docs/a.txt", "old_text": "two", "new_text": "2"})),
        ("run_command", json!({"command": "touch x"})),
        ("web_fetch", json!({"url": "https://example.com"})),
    ] {
        allowed_tools.follow("free", None);
        let (specs, snapshots) = (tools.tools(), [allowed_tools.snapshot()]);
        let spec = specs.iter().find(|spec| spec.definition.name == name).unwrap();
        let given = given.as_object().unwrap();
        let call_guard = CallGuard::new(&allowed_tools, &snapshots, spec, given);
        assert!(call_guard.check().is_ok(), "{name}");
        let answer = tools.call(name, given, call_guard).await;
        assert_eq!(answer.failure.as_deref(), Some("tool-not-allowed"), "{name}: {}", answer.text);
    }
    assert!(!work.join("x").exists());
    assert_eq!(fs::read_to_string(work.join("docs/a.txt")).unwrap(), "one two three\n");
}

#[tokio::test]
async fn commands_end_at_limits_or_when_cancelled() {
    if !can_run() {
        return;
    }
    let place = Place::with(Consent::Nobody, Autonomy::InWorkspace);
    let given = json!({"command": "sleep 30", "seconds": 1});
    assert_eq!(place.fails("run_command", given).await, "timeout");
    let answer = place.call("run_command", json!({"command": "yes"})).await;
    assert_eq!(answer.failure.as_deref(), Some("output-limit"));
    assert!(answer.text.len() < 100_000, "{}", answer.text.len());
    let given = json!({"command": "sleep 2; touch late"});
    let begun = Instant::now();
    let waiting = place.call("run_command", given);
    assert!(tokio::time::timeout(Duration::from_millis(500), waiting).await.is_err());
    tokio::time::sleep(Duration::from_secs(3).saturating_sub(begun.elapsed())).await;
    assert!(!place.work("late").exists(), "it was ended");
}

#[tokio::test]
async fn git_works_in_the_repository_of_the_workspace() {
    if !can_run() {
        return;
    }
    let place = Place::with(Consent::Nobody, Autonomy::InWorkspace);
    let mut init = std::process::Command::new("git");
    let Ok(status) = init.args(["init", "-q"]).current_dir(place.work("")).status() else {
        eprintln!("SKIPPED: there is no git");
        return;
    };
    assert!(status.success());
    let command =
        "git add docs && git -c user.name=a -c user.email=a@b commit -qm x && git log --oneline";
    let answer = place.call("run_command", json!({"command": command})).await;
    assert_eq!(answer.failure, None, "{}", answer.text);
    for command in [
        "git config core.hooksPath /tmp",
        "echo x > .git/hooks/pre-commit",
        "rm -rf .git/hooks",
        "mv .git/hooks .git/other",
    ] {
        let answer = place.call("run_command", json!({"command": command})).await;
        assert!(answer.failure.is_some(), "{command}: {}", answer.text);
    }
    assert!(place.work(".git/hooks").is_dir());
}

#[tokio::test]
async fn only_public_servers_are_fetched() {
    let place = Place::new(Consent::Once);
    for url in [
        "http://127.0.0.1:1/",
        "http://localhost/",
        "http://169.254.169.254/latest/meta-data",
        "http://[::1]/",
        "http://2130706433/",
        "http://10.0.0.1/",
        "file:///etc/passwd",
        "https://user@example.com/",
        "example.com",
        "",
    ] {
        assert_eq!(place.fails("web_fetch", json!({"url": url})).await, "not-fetched", "{url}");
    }
}

#[tokio::test]
async fn pages_are_read_and_redirects_are_returned() {
    use std::io::{Read as _, Write as _};

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = [0; 1024];
            let read = stream.read(&mut asked).unwrap();
            let asked = String::from_utf8_lossy(&asked[..read]).into_owned();
            let answer = if asked.starts_with("GET /moved ") {
                "HTTP/1.1 302 Found\r\nLocation: /page\r\nContent-Length: 0\r\n\r\n".to_owned()
            } else if asked.starts_with("GET /page ") {
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_owned()
            } else if asked.starts_with("GET /html ") {
                let page = "<html><head><title>t</title></head><body><h1>Head</h1><script>evil()\
                    </script><ul><li><a href='/next?a=1&amp;b=2'>Next <b>page</b></a><li>\
                    <a href='javascript:x'>no</a></ul></body></html>";
                let length = page.len();
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\
                     Content-Length: {length}\r\n\r\n{page}"
                )
            } else {
                "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnope".to_owned()
            };
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let Place { dir, tools, .. } = Place::new(Consent::Once);
    let tools = tools.with_http_policy(HttpPolicy { private: true, ..HttpPolicy::default() });
    let fetch = async |path: &str| {
        let given = json!({"url": format!("http://{address}{path}")});
        tools.call("web_fetch", given.as_object().unwrap(), CallGuard::unrestricted()).await
    };
    assert_eq!(fetch("/page").await.text, "HTTP 200\n\nhello");
    assert_eq!(
        fetch("/html").await.text,
        format!("HTTP 200\n\n# Head\n\n- [Next page](http://{address}/next?a=1&b=2)\n- no")
    );
    let moved = fetch("/moved").await;
    assert_eq!(moved.failure.as_deref(), Some("redirected"));
    assert!(moved.text.contains(&format!("http://{address}/page")), "{}", moved.text);
    assert_eq!(fetch("/missing").await.failure.as_deref(), Some("http-status"));
    drop(dir);
}

#[test]
fn home_and_root_are_refused_as_workspace() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home/me");
    fs::create_dir_all(&home).unwrap();
    let run_env = RunEnvironment::at(&home, &home);
    for (path, code) in [
        (Path::new("/"), "workspace-too-large"),
        (&home, "workspace-too-large"),
        (dir.path(), "workspace-too-large"),
        (&home.join("nowhere"), "workspace-unusable"),
    ] {
        let tools = HostTools::new(path, &run_env, Arc::new(Nobody), Autonomy::Asks);
        assert_eq!(tools.unwrap_err().code(), code, "{}", path.display());
    }
}
