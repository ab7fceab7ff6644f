//! Tests files that no run may change, even with consent.

use std::{fs, process::Output};

use crate::support::Sandbox;

const TOUCH: &str = "---
name: toucher
version: 1.0.0
description: Touches a file. Use when testing.
author: Tests
modes: [Dev]
read_only: false
---

# Toucher

### touch

Touch a file.

#### Parameters

| Name | Type | Required | Description |
|------|------|----------|-------------|
| path | string | yes | Which file |

#### Command

```bash
touch {{path}}
```
";

/// A repository next to a skill, and a separate home.
fn run_env() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("skills/toucher/SKILL.md", TOUCH);
    sandbox.write("project/.git/HEAD", "ref: refs/heads/main\n");
    sandbox.write("project/.git/config", "[core]\n");
    sandbox.write("home/.bashrc", "");
    sandbox
}

fn savoir(sandbox: &Sandbox, folder: &str, args: &[&str]) -> Output {
    let mut command = sandbox.command(args);
    command.current_dir(sandbox.path(folder)).env("HOME", sandbox.path("home"));
    command.output().expect("savoir runs")
}

fn touch(sandbox: &Sandbox, folder: &str, path: &str, more: &[&str]) -> Output {
    let skill = sandbox.path("skills/toucher/touch");
    let param = format!("path={path}");
    let args = [&["run", skill.to_str().expect("UTF-8"), "--param", &param], more].concat();
    let refused = savoir(sandbox, folder, &args);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    let Some((_, digits)) = text.split_once("--approve ") else { return refused };
    savoir(sandbox, folder, &[&args[..], &["--approve", digits.trim()]].concat())
}

fn can_hold_sandboxes(sandbox: &Sandbox) -> bool {
    savoir(sandbox, "project", &["doctor"]).status.success()
}

#[test]
fn git_configuration_is_not_changed() {
    let sandbox = run_env();
    if !can_hold_sandboxes(&sandbox) {
        return;
    }
    for more in [&[][..], &["--record"][..]] {
        for path in ["config", "config.worktree", "commondir", "hooks/x", "modules", "worktrees"] {
            let path = format!(".git/{path}");
            let run = touch(&sandbox, "project", &path, more);
            assert_eq!(run.status.code(), Some(1), "{path} {more:?}: {run:?}");
        }
        assert!(touch(&sandbox, "project", "free", more).status.success(), "{more:?}");
        assert!(sandbox.path("project/free").exists());
        let mut left: Vec<_> = fs::read_dir(sandbox.path("project/.git"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["HEAD", "config"], "{more:?}");
    }
}

#[test]
fn a_recording_changes_neither_the_home_nor_the_approvals() {
    let sandbox = run_env();
    if !can_hold_sandboxes(&sandbox) {
        return;
    }
    // The parent folder contains the home and the approvals.
    for path in ["home/.bashrc", ".savoir/data/approvals.json", "skills/toucher/SKILL.md"] {
        let path = sandbox.path(path);
        let run = touch(&sandbox, "", path.to_str().unwrap(), &["--record"]);
        assert_eq!(run.status.code(), Some(1), "{}: {run:?}", path.display());
    }
}

#[test]
fn a_home_that_is_a_repository_is_not_shown() {
    let sandbox = run_env();
    if !can_hold_sandboxes(&sandbox) {
        return;
    }
    sandbox.write("home/.git/HEAD", "ref: refs/heads/main\n");
    let before = fs::metadata(sandbox.path("home/.bashrc")).unwrap().modified().unwrap();
    sandbox.write("home/work/note", "");
    touch(&sandbox, "home/work", ".bashrc", &[]);
    touch(&sandbox, "home/work", "new", &[]);
    assert_eq!(fs::metadata(sandbox.path("home/.bashrc")).unwrap().modified().unwrap(), before);
    assert!(!sandbox.path("home/new").exists());
}
