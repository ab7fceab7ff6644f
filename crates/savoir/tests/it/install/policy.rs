//! Tests trusted sources and policies.

use super::TestEnv;

const USER: &str = "home/.config/savoir/config.toml";
const CLAUDE: &str = "project/.claude/skills";

/// Creates a home whose git settings map `https://github.com/` to local repositories.
fn with_github() -> TestEnv {
    let test_env = TestEnv::new();
    for name in ["pdf", "notes"] {
        test_env.skill(&format!("elsewhere/repo/skills/{name}"), "1.0.0", "Use it.");
    }
    test_env.git(&["init", "-q", "-b", "main", "."]);
    test_env.commit("first");
    for place in ["../github/acme/skills", "../github/other/skills"] {
        test_env.git(&["clone", "-q", "--bare", ".", place]);
    }
    let folder = test_env.sandbox.path("elsewhere/github");
    let config = format!(
        "[url \"file://{}/\"]\n\tinsteadOf = https://github.com/\n[protocol \"file\"]\n\tallow = always\n",
        folder.display()
    );
    test_env.sandbox.write("home/.gitconfig", config);
    test_env
}

#[test]
fn a_trusted_owner_is_installed_without_a_question() {
    let test_env = with_github();
    let asked = test_env.run(&["install", "github:acme/skills", "--all"]);
    assert!(asked.code == 3 && asked.stderr.contains("--yes"), "{asked}");
    test_env.run_ok(&["trust", "add", "github:acme"]);
    test_env.run_ok(&["install", "github:acme/skills", "--all"]);
    assert!(test_env.has(&format!("{CLAUDE}/pdf/SKILL.md")));
    test_env.run_ok(&["undo"]);
    // Another owner is not trusted, and neither is a local copy of the same files.
    for source in ["github:other/skills", "../elsewhere/repo", "../elsewhere/github/acme/skills"] {
        let asked = test_env.run(&["install", source, "--all"]);
        assert!(
            asked.code == 3 && asked.stderr.contains("needs your consent"),
            "{source}: {asked}"
        );
    }
    test_env.run_ok(&["trust", "remove", "github:acme"]);
    assert_eq!(test_env.run(&["install", "github:acme/skills", "--all"]).code, 3);
}

#[test]
fn a_policy_of_the_user_forbids_unsigned_skills() {
    let test_env = TestEnv::new();
    test_env.skill("elsewhere/skills/pdf", "1.0.0", "Use it.");
    test_env.skill("elsewhere/skills/notes", "1.0.0", "Use it.");
    test_env.sandbox.write(USER, "[policy]\nrequire = \"signed\"\n");
    let named = test_env.run(&["install", "../elsewhere/skills/pdf", "-y"]);
    assert!(named.code == 3 && named.stderr.contains("config.toml"), "{named}");
    assert!(named.stderr.contains("forbids `pdf`"), "{named}");
    let all = test_env.run(&["install", "../elsewhere/skills", "--all", "-y"]);
    assert!(all.code == 1 && all.stdout.contains("installed 0, skipped 2"), "{all}");
    // A project cannot loosen what the user's policy forbids.
    test_env.sandbox.write("project/savoir.toml", "[policy]\nsources = [\"local\"]\n");
    assert_eq!(test_env.run(&["install", "../elsewhere/skills/pdf", "-y"]).code, 3);
    test_env.sandbox.write(USER, "");
    test_env.run_ok(&["install", "../elsewhere/skills/pdf", "-y"]);
    // Skills that are already installed can neither be synced nor run.
    test_env.sandbox.write(USER, "[policy]\ndeny = [\"pdf\"]\n");
    for command in [&["sync"][..], &["run", "pdf"], &["approve", "pdf", "--yes"]] {
        let refused = test_env.run(command);
        assert!(refused.code == 3 && refused.stderr.contains("forbids `pdf`"), "{refused}");
    }
}

#[test]
fn project_policy_can_be_stricter() {
    let test_env = TestEnv::new();
    test_env.skill("elsewhere/pdf", "1.0.0", "Use it.");
    test_env.sandbox.write("project/savoir.toml", "[policy]\nsources = [\"github:acme\"]\n");
    let refused = test_env.run(&["install", "../elsewhere/pdf", "-y"]);
    assert!(refused.code == 3 && refused.stderr.contains("savoir.toml"), "{refused}");
}

#[test]
fn invalid_signature_of_an_unknown_key_is_refused() {
    let test_env = TestEnv::new();
    test_env.skill("elsewhere/pdf", "1.0.0", "Use it.");
    test_env.run_ok(&["keys", "new", "ada"]);
    test_env.run_ok(&["sign", "../elsewhere/pdf", "--key", "ada"]);
    test_env.skill("elsewhere/pdf", "1.0.0", "Use it otherwise.");
    // Another user does not have the key.
    std::fs::remove_dir_all(test_env.sandbox.path("home/.config/savoir")).expect("it was there");
    let ran = test_env.run(&["install", "../elsewhere/pdf", "-y"]);
    assert_eq!(ran.code, 3, "{ran}");
    assert!(ran.stderr.contains("is not what was signed in signature.json"), "{ran}");
    assert!(!test_env.sandbox.path("project/savoir.lock").exists());
}
