//! Tests mistakes and questions of everyday use.

use std::fs;

use super::TestEnv;

#[test]
fn skill_of_a_local_repository_is_found_by_its_name() {
    let (test_env, url) = TestEnv::with_repository();
    test_env.git(&["clone", "-q", "--bare", ".", "../bare.git"]);
    let several = test_env.run(&["info", &url]);
    assert!(several.stderr.contains(&format!("{url}/mail")), "{several}");
    for source in [format!("{url}/mail"), "../elsewhere/bare.git/mail".to_owned()] {
        let info = test_env.run_ok(&["info", &source]);
        assert!(info.stdout.contains("Does mail."), "{info}");
        let scan = test_env.run(&["scan", &source]);
        assert!(scan.stdout.contains("verdict: allow"), "{scan}");
        let listed = test_env.run_ok(&["install", &source, "--list"]);
        assert!(listed.stdout.contains("mail") && !listed.stdout.contains("notes"), "{listed}");
    }
    let list = test_env.run(&["list", "../elsewhere/bare.git"]);
    assert!(list.stderr.contains("savoir install ../elsewhere/bare.git --list"), "{list}");
}

#[test]
fn text_file_is_not_installed_as_skill() {
    let test_env = TestEnv::new();
    test_env.sandbox.write("elsewhere/passwd", "root:x:0:0:root:/root:/bin/bash\n");
    let refused = test_env.run(&["install", "../elsewhere/passwd", "--yes"]);
    assert_ne!(refused.code, 0, "{refused}");
    assert!(refused.stderr.contains("neither Markdown nor an archive"), "{refused}");
    assert!(refused.stderr.contains("hint: name the folder of a skill"), "{refused}");
    let skill =
        "---\nname: notes\ndescription: Writes notes. Use for notes.\n---\n\n# Notes\n\nGo.\n";
    for file in ["elsewhere/notes.txt", "elsewhere/notes.md"] {
        test_env.sandbox.write(file, skill);
        test_env.run_ok(&["install", &format!("../{file}"), "--yes"]);
    }
}

#[test]
fn frozen_fails_without_a_lock() {
    let test_env = TestEnv::new();
    for frozen in [["sync", "--frozen"], ["install", "--frozen"]] {
        let missing = test_env.run(&frozen);
        assert_eq!(missing.code, 1, "{missing}");
        assert!(missing.stderr.contains("there is no savoir.lock in"), "{missing}");
    }
}

#[test]
fn enable_reports_that_the_project_disables_the_skill() {
    let test_env = TestEnv::with_pdf();
    test_env.run_ok(&["disable", "pdf", "--project"]);
    let enabled = test_env.run_ok(&["enable", "pdf"]);
    assert!(enabled.stderr.contains("savoir enable pdf --project"), "{enabled}");
    test_env.run_ok(&["enable", "pdf", "--project"]);
    let enabled = test_env.run_ok(&["enable", "pdf"]);
    assert!(!enabled.stderr.contains("--project"), "{enabled}");
}

#[test]
fn agent_of_a_shared_folder_still_sees_the_skill() {
    let test_env = TestEnv::new();
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    fs::create_dir_all(test_env.sandbox.path("project/.codex")).expect("a folder");
    let install = ["install", "../elsewhere/pdf", "--yes", "--agent", "codex,gemini-cli"];
    test_env.run_ok(&install);
    let removed = test_env.run_ok(&["remove", "pdf", "--agent", "codex"]);
    assert!(removed.stderr.contains("Codex still reads .agents/skills/pdf"), "{removed}");
    assert!(removed.stderr.contains("savoir disable pdf --agent codex"), "{removed}");
    let never = test_env.run_ok(&["remove", "pdf", "--agent", "claude-code"]);
    assert!(never.stderr.contains("is not installed for Claude Code"), "{never}");
}

#[test]
fn adopt_says_where_skills_of_the_agent_belong() {
    let test_env = TestEnv::new();
    test_env.skill("project/.cursor/skills/pdf", "1.0.0", "Read it.");
    for source in ["pdf", ".cursor/skills", ".cursor/skills/pdf"] {
        let refused = test_env.run(&["adopt", source]);
        assert!(refused.stdout.contains("installs skills of Cursor to"), "{refused}");
        assert!(refused.stdout.contains(".agents/skills; move it there"), "{refused}");
    }
}

#[test]
fn skill_without_another_source_is_reported_by_outdated_and_update() {
    let test_env = TestEnv::new();
    test_env.skill("project/.claude/skills/pdf", "1.0.0", "Read it.");
    test_env.run_ok(&["adopt", "pdf"]);
    for command in ["outdated", "update"] {
        let ran = test_env.run_ok(&[command]);
        assert!(ran.stderr.contains("`pdf` has no source besides its folder"), "{ran}");
    }
}

#[test]
fn list_shows_full_sources_in_a_pipe_and_skills_of_the_user() {
    let test_env = TestEnv::with_pdf();
    let folder = format!("elsewhere/{}/mail", "long-name".repeat(5));
    test_env.skill(&folder, "1.0.0", "Send it.");
    test_env.run_ok(&["install", &format!("../{folder}"), "--yes", "--user"]);
    let listed = test_env.run_ok(&["list", "--user"]);
    assert!(listed.stdout.contains(&"long-name".repeat(5)), "{listed}");
    assert!(listed.stdout.contains("mail") && !listed.stdout.contains("pdf"), "{listed}");
}

#[test]
fn status_lists_a_skill_of_two_agents_once() {
    let test_env = TestEnv::new();
    fs::create_dir_all(test_env.sandbox.path("project/.cursor")).expect("a folder");
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    let agents = "claude-code,codex,cursor";
    test_env.run_ok(&["install", "../elsewhere/pdf", "--yes", "--agent", agents]);
    let status = test_env.run_ok(&["status"]);
    assert_eq!(status.stdout, "1 skill: 1 unmodified\n", "{status}");
    test_env.skill("elsewhere/pdf", "1.1.0", "Read it well.");
    test_env.run_ok(&["outdated"]);
    let status = test_env.run_ok(&["status"]);
    assert_eq!(
        status.stdout,
        "updates at the last `savoir outdated`\n  pdf (1.1.0)\n\n1 skill: 1 unmodified\n"
    );
    // Copies that differ are still listed: the agent sees only one of them.
    test_env.sandbox.write("project/.claude/skills/pdf/more.md", "more");
    let status = test_env.run_ok(&["status"]);
    assert!(status.stdout.contains("duplicates\n  pdf"), "{status}");
}

#[test]
fn repository_to_trust_needs_its_host() {
    let test_env = TestEnv::new();
    let refused = test_env.run(&["trust", "add", "acme/skills"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.stderr.contains("did you mean `github:acme/skills`?"), "{refused}");
    test_env.run_ok(&["trust", "add", "github:acme/skills"]);
    for other in ["../skills", "git.acme.example:team/skills", "acme"] {
        let refused = test_env.run(&["trust", "add", other]);
        assert!(!refused.stderr.contains("did you mean"), "{refused}");
    }
}

/// Of a team, one changes a skill of the repository, and another clones it.
#[test]
fn changed_source_is_accepted_by_an_update_on_a_new_machine() {
    let test_env = TestEnv::with_pdf();
    test_env.skill("elsewhere/mail", "1.0.0", "Send it.");
    test_env.run_ok(&["install", "../elsewhere/mail", "--yes"]);
    for folder in ["project/.claude", "home/.local/share/savoir"] {
        fs::remove_dir_all(test_env.sandbox.path(folder)).expect("it was there");
    }
    let absent = test_env.run(&["update", "pdf"]);
    assert_eq!(absent.code, 1, "{absent}");
    assert!(absent.stderr.contains("hint: run savoir sync"), "{absent}");
    test_env.skill("elsewhere/pdf", "1.1.0", "Read it well.");
    let refused = test_env.run(&["sync"]);
    assert_eq!(refused.code, 3, "{refused}");
    assert!(refused.stderr.contains("accept it: savoir update"), "{refused}");
    let updated = test_env.run(&["update", "--yes"]);
    assert!(updated.stdout.contains("`pdf` goes from 1.0.0 to 1.1.0"), "{updated}");
    assert!(updated.stderr.contains("skipped mail"), "{updated}");
    test_env.run_ok(&["sync"]);
    assert!(test_env.read(super::PDF).contains("Read it well."));
    assert!(test_env.has("project/.claude/skills/mail/SKILL.md"));
}

#[test]
fn lock_with_conflicts_of_a_merge_is_repaired_by_the_hint() {
    let (test_env, url) = TestEnv::with_repository();
    test_env.run_ok(&["install", &url, "--skill", "pdf", "--yes"]);
    let one = test_env.read("project/savoir.lock");
    test_env.run_ok(&["install", &url, "--skill", "mail", "--yes"]);
    let other = test_env.read("project/savoir.lock");
    let both = format!("<<<<<<< HEAD\n{one}=======\n{other}>>>>>>> mail\n");
    test_env.sandbox.write("project/savoir.lock", both);
    let broken = test_env.run(&["sync"]);
    assert_eq!(broken.code, 2, "{broken}");
    assert!(broken.stderr.contains("git checkout --theirs savoir.lock"), "{broken}");
    test_env.sandbox.write("project/savoir.lock", one);
    // The skill that is not in the lock needs consent.
    test_env.run_ok(&["sync", "--yes"]);
    assert_eq!(test_env.read("project/savoir.lock"), other);
}

#[test]
fn folder_is_named_if_no_agent_is_found() {
    let test_env = TestEnv::new();
    fs::remove_dir(test_env.sandbox.path("home/.claude")).expect("an empty folder");
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    let installed = test_env.run_ok(&["install", "../elsewhere/pdf", "--yes"]);
    assert!(installed.stderr.contains("skills go to .agents/skills"), "{installed}");
    assert!(test_env.has("project/.agents/skills/pdf/SKILL.md"));
    let user = test_env.run_ok(&["install", "../elsewhere/pdf", "--yes", "--user"]);
    assert!(user.stderr.contains("skills go to ~/.agents/skills"), "{user}");
}

#[test]
fn unchanged_skills_are_not_scanned_again() {
    let test_env = TestEnv::new();
    test_env.run_ok(&["keys", "new", "ada"]);
    for name in ["signed", "plain"] {
        test_env.skill(&format!("elsewhere/{name}"), "1.0.0", "Do it.");
    }
    test_env.run_ok(&["sign", "../elsewhere/signed"]);
    for name in ["signed", "plain"] {
        test_env.run_ok(&["install", &format!("../elsewhere/{name}"), "--yes"]);
    }
    let scans = test_env.sandbox.path("home/.cache/savoir/scans");
    assert!(scans.is_dir());
    fs::remove_dir_all(&scans).expect("a folder");
    for args in [&["sync", "--check"][..], &["sync", "--frozen"], &["install", "--frozen"]] {
        test_env.run_ok(args);
        assert!(!scans.exists(), "{args:?}");
    }
    // The first of these scans the signed skill, because it may have got another signature.
    let update = ["update", "--dry-run"];
    test_env.run_ok(&update);
    let mut count = 0;
    for folder in fs::read_dir(&scans).expect("a folder").flatten() {
        for file in fs::read_dir(folder.path()).expect("a folder").flatten() {
            count += 1;
            let finding = r#"{"verdict":"block","findings":[{"rule":"download-and-execute","path":"SKILL.md","line":9,"column":1,"excerpt":"","severity":"critical","confidence":"high","message":"a stored message"}]}"#;
            fs::write(file.path(), finding).expect("a file");
        }
    }
    assert_eq!(count, 1);
    let shown = test_env.run_ok(&[
        "install", "../elsewhere/signed", "--dry-run", "--json", "--allow-blocked", "signed",
    ]);
    assert_eq!(shown.json()["skills"][0]["scan"]["verdict"], "block", "{shown}");
}

#[test]
fn commands_that_never_ask_accept_yes() {
    let test_env = TestEnv::with_pdf();
    test_env.run_ok(&["remove", "pdf", "-y"]);
    test_env.run_ok(&["undo", "--yes"]);
    assert!(test_env.has(super::PDF));
    test_env.run_ok(&["remove", "pdf", "--yes"]);
    test_env.run_ok(&["undo", "-y"]);
    assert!(test_env.has(super::PDF));
}

#[test]
fn install_without_project_files_says_so() {
    let test_env = TestEnv::new();
    let bare = test_env.run_ok(&["install"]);
    assert!(bare.stderr.contains("there is neither savoir.toml nor savoir.lock in"), "{bare}");
    assert!(!TestEnv::with_pdf().run_ok(&["install"]).stderr.contains("there is neither"));
}

#[test]
fn check_without_a_lock_is_an_error() {
    let test_env = TestEnv::new();
    let checked = test_env.run(&["sync", "--check"]);
    assert_eq!(checked.code, 1, "{checked}");
    assert!(checked.stderr.contains("there is no savoir.lock in"), "{checked}");
}

#[test]
fn clone_leads_to_sync() {
    let test_env = TestEnv::new();
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    let agents = "claude-code,codex,cursor";
    test_env.run_ok(&["install", "../elsewhere/pdf", "--yes", "--agent", agents]);
    for folder in [".claude", ".agents", ".cursor"] {
        let _ = fs::remove_dir_all(test_env.sandbox.path(&format!("project/{folder}")));
    }
    let hint = "1 skill of savoir.lock is not installed; to install: savoir sync";
    let listed = test_env.run_ok(&["list"]);
    assert!(listed.stderr.contains(hint), "{listed}");
    let status = test_env.run_ok(&["status"]);
    assert!(status.stdout.contains(hint), "{status}");
    assert!(status.stdout.ends_with("0 skills; 1 missing\n"), "{status}");
    assert_eq!(test_env.run_ok(&["status", "--json"]).json()["summary"]["missing"], 1);
    let info = test_env.run(&["info", "pdf"]);
    assert!(info.stderr.contains("`pdf` is listed in savoir.lock and not installed"), "{info}");
    assert!(info.stderr.contains("savoir sync"), "{info}");
    test_env.run_ok(&["sync"]);
    assert!(!test_env.run_ok(&["list"]).stderr.contains("savoir sync"));
}

#[test]
fn update_that_adds_a_script_needs_consent() {
    let test_env = TestEnv::with_pdf();
    test_env.skill("elsewhere/pdf", "1.1.0", "Run scripts/read.py.");
    test_env.sandbox.write("elsewhere/pdf/scripts/read.py", "print(1)\n");
    let refused = test_env.run(&["update"]);
    assert_eq!(refused.code, 3, "{refused}");
    assert!(refused.stderr.contains("because it adds scripts"), "{refused}");
    assert!(refused.stderr.contains("adds       scripts/read.py"), "{refused}");
    test_env.run_ok(&["update", "--yes"]);
    // A change of a script that the user agreed to is an ordinary update.
    test_env.sandbox.write("elsewhere/pdf/scripts/read.py", "print(2)\n");
    test_env.run_ok(&["update"]);
}

#[test]
fn disable_names_a_remedy_that_works() {
    let test_env = TestEnv::with_pdf();
    fs::create_dir_all(test_env.sandbox.path("project/.cursor")).expect("a folder");
    let disabled = test_env.run_ok(&["disable", "pdf"]);
    assert!(disabled.stderr.contains("it reads .claude/skills/pdf, too"), "{disabled}");
    assert!(!disabled.stderr.contains("--agent cursor"), "{disabled}");
    let enabled = test_env.run_ok(&["enable", "pdf"]);
    assert!(!enabled.stderr.contains("Cursor"), "{enabled}");
}

#[test]
fn all_skills_are_removed_at_once() {
    let test_env = TestEnv::with_pdf();
    test_env.skill("elsewhere/mail", "1.0.0", "Send it.");
    test_env.run_ok(&["install", "../elsewhere/mail", "--yes"]);
    test_env.run_ok(&["remove", "--all"]);
    assert!(test_env.run_ok(&["list"]).stdout.contains("no skills"));
    assert_eq!(test_env.run(&["remove"]).code, 2);
}

#[test]
fn misspelled_folder_of_a_repository_gets_a_suggestion() {
    let (test_env, url) = TestEnv::with_repository();
    let wrong = test_env.run(&["install", &format!("{url}/mial"), "--yes"]);
    assert!(wrong.stderr.contains("did you mean `skills/mail`?"), "{wrong}");
    let other = test_env.run(&["install", &format!("{url}/zzz"), "--yes"]);
    assert!(!other.stderr.contains("it has"), "{other}");
}
