//! Builds requests for the tests of approvals.

mod decide;
mod fingerprint;
mod question_text;
mod store;
mod tiers;

use super::*;

pub(super) fn permissions(entries: &[&str]) -> Vec<Permission> {
    entries.iter().map(|entry| entry.parse().unwrap()).collect()
}

pub(super) fn program(name: &str) -> Program {
    Program {
        name: name.to_owned(),
        path: format!("/usr/bin/{name}").into(),
        sha256: "ab".repeat(32),
    }
}

/// A skill of the user that may run git.
pub(super) fn request() -> Request {
    Request {
        skill: "git-helper".to_owned(),
        version: Some("1.0.0".to_owned()),
        description: "Looks at a git repository.".to_owned(),
        path: "/home/me/skills/git-helper".into(),
        dialect: "gibberish".to_owned(),
        tool: Some("git_log".to_owned()),
        command: ["git", "log", "-n", "10"].map(ToOwned::to_owned).to_vec(),
        tools: Vec::new(),
        programs: vec![program("git")],
        permissions: permissions(&["shell:execute:git", "filesystem:read:~/data/**"]),
        implicit_permissions: Vec::new(),
        implicit_elsewhere: None,
        implied_programs: Vec::new(),
        packages: Vec::new(),
        needs: Vec::new(),
        extra: ExtraGrants::default(),
        digest: "cd".repeat(32),
        files: BTreeMap::new(),
        secrets: Vec::new(),
        trust: Trust::User,
        tier: Tier::Experimental,
        signed: None,
        uncovered: Vec::new(),
        read_only: false,
        always_ask: false,
    }
}
