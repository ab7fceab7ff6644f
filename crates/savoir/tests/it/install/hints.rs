//! Tests errors for invalid names and options, and that their hints work.

use super::TestEnv;

#[test]
fn choosing_skills_without_a_source_is_an_error() {
    let test_env = TestEnv::with_pdf();
    for args in [&["--skill", "pdf"][..], &["--all"], &["--list"], &["--path", "skills"]] {
        let ran = test_env.run(&[&["install"], args].concat());
        assert_eq!(ran.code, 2, "{args:?}: {ran}");
        assert!(ran.stderr.contains("no source"), "{args:?}: {ran}");
        assert!(ran.stderr.contains(&format!("savoir install SOURCE {}", args.join(" "))), "{ran}");
    }
    test_env.run_ok(&["install"]);
}

#[test]
fn a_misspelled_skill_of_a_source_gets_a_suggestion() {
    let test_env = TestEnv::new();
    for name in ["mail", "notes", "pdf"] {
        test_env.skill(&format!("elsewhere/skills/{name}"), "1.0.0", "Do it.");
    }
    let wrong = test_env.run(&["install", "../elsewhere/skills", "--skill", "ntoes", "-y"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("did you mean `notes`?"), "{wrong}");
}

#[test]
fn a_misspelled_installed_skill_gets_a_suggestion() {
    let test_env = TestEnv::with_pdf();
    for command in ["remove", "update"] {
        let wrong = test_env.run(&[command, "pfd"]);
        assert_eq!(wrong.code, 2, "{command}: {wrong}");
        assert!(wrong.stderr.contains("`pfd` is not installed in this project"), "{wrong}");
        assert!(wrong.stderr.contains("did you mean `pdf`?"), "{wrong}");
    }
    let agent = test_env.run(&["remove", "pfd", "--agent", "claude-code"]);
    assert!(agent.stderr.contains("did you mean `pdf`?"), "{agent}");
}

#[test]
fn a_skill_of_the_user_is_not_removed_from_the_project() {
    let test_env = TestEnv::with_pdf();
    test_env.skill("elsewhere/mail", "1.0.0", "Send it.");
    test_env.run_ok(&["install", "../elsewhere/mail", "--global", "-y"]);
    for command in ["remove", "update"] {
        let here = test_env.run(&[command, "mail"]);
        assert!(here.code == 2, "{here}");
        assert!(here.stderr.contains(&format!("savoir {command} mail --user")), "{here}");
        let there = test_env.run(&[command, "pdf", "--global"]);
        assert!(there.stderr.contains("`pdf` is not installed for the user"), "{there}");
        assert!(there.stderr.contains(&format!("savoir {command} pdf\n")), "{there}");
    }
}

#[test]
fn a_skill_for_two_agents_counts_once() {
    let test_env = TestEnv::new();
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    test_env.run_ok(&["install", "../elsewhere/pdf", "-a", "claude-code,codex", "-y"]);
    let status = test_env.run_ok(&["status"]);
    assert!(status.stdout.ends_with("1 skill: 1 unmodified\n"), "{status}");
    test_env.sandbox.write("project/.agents/skills/pdf/SKILL.md", "---\nname: pdf\n---\nMine.\n");
    let status = test_env.run_ok(&["status"]);
    assert!(status.stdout.ends_with("1 skill: 1 modified\n"), "{status}");
    let output = test_env.run_ok(&["status", "--json"]).json();
    assert_eq!(
        (&output["summary"]["skills"], &output["summary"]["modified"]),
        (&1.into(), &1.into())
    );
    assert_eq!(output["skills"].as_array().map(Vec::len), Some(2), "each folder has its own state");
}

#[test]
fn skill_that_savoir_did_not_install_is_neither_removed_nor_updated() {
    let test_env = TestEnv::with_pdf();
    test_env.skill("project/.claude/skills/mine", "1.0.0", "Do it.");
    test_env.skill("home/.claude/skills/mine", "1.0.0", "Do it.");
    for command in ["remove", "update"] {
        let refused = test_env.run(&[command, "mine"]);
        assert_eq!(refused.code, 2, "{refused}");
        assert!(refused.stderr.contains("`mine` was not installed by savoir"), "{refused}");
        assert!(refused.stderr.contains("it is in .claude/skills/mine: "), "{refused}");
        let refused = test_env.run(&[command, "mine", "--user"]);
        assert!(refused.stderr.contains("savoir adopt mine --user"), "{refused}");
    }
    test_env.run_ok(&["adopt", "mine"]);
    test_env.run_ok(&["adopt", "mine", "--user"]);
}
