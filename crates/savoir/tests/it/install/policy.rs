//! Sources that are trusted once and for all, and policies that forbid.

use super::Machine;

const USER: &str = "home/.config/savoir/config.toml";
const CLAUDE: &str = "project/.claude/skills";

/// A machine on which `https://github.com/` leads to local repositories, as git's settings can say.
fn with_github() -> Machine {
    let machine = Machine::new();
    for name in ["pdf", "notes"] {
        machine.skill(&format!("elsewhere/repo/skills/{name}"), "1.0.0", "Use it.");
    }
    machine.git(&["init", "-q", "-b", "main", "."]);
    machine.commit("first");
    for place in ["../github/acme/skills", "../github/other/skills"] {
        machine.git(&["clone", "-q", "--bare", ".", place]);
    }
    let folder = machine.sandbox.path("elsewhere/github");
    let config = format!(
        "[url \"file://{}/\"]\n\tinsteadOf = https://github.com/\n[protocol \"file\"]\n\tallow = always\n",
        folder.display()
    );
    machine.sandbox.write("home/.gitconfig", config);
    machine
}

#[test]
fn a_trusted_owner_is_installed_without_a_question() {
    let machine = with_github();
    let asked = machine.run(&["install", "github:acme/skills", "--all"]);
    assert!(asked.code == 3 && asked.stderr.contains("--yes"), "{asked}");
    machine.well(&["trust", "add", "github:acme"]);
    machine.well(&["install", "github:acme/skills", "--all"]);
    assert!(machine.has(&format!("{CLAUDE}/pdf/SKILL.md")));
    machine.well(&["undo"]);
    // Another owner is not covered, and neither is a local copy of the same files.
    for source in ["github:other/skills", "../elsewhere/repo", "../elsewhere/github/acme/skills"] {
        let asked = machine.run(&["install", source, "--all"]);
        assert!(
            asked.code == 3 && asked.stderr.contains("needs your consent"),
            "{source}: {asked}"
        );
    }
    machine.well(&["trust", "remove", "github:acme"]);
    assert_eq!(machine.run(&["install", "github:acme/skills", "--all"]).code, 3);
}

#[test]
fn a_policy_of_the_user_forbids_unsigned_skills() {
    let machine = Machine::new();
    machine.skill("elsewhere/skills/pdf", "1.0.0", "Use it.");
    machine.skill("elsewhere/skills/notes", "1.0.0", "Use it.");
    machine.sandbox.write(USER, "[policy]\nrequire = \"signed\"\n");
    let named = machine.run(&["install", "../elsewhere/skills/pdf", "-y"]);
    assert!(named.code == 3 && named.stderr.contains("config.toml"), "{named}");
    assert!(named.stderr.contains("forbids `pdf`"), "{named}");
    let all = machine.run(&["install", "../elsewhere/skills", "--all", "-y"]);
    assert!(all.code == 1 && all.stdout.contains("installed 0, skipped 2"), "{all}");
    // A project cannot loosen what the user's policy forbids.
    machine.sandbox.write("project/savoir.toml", "[policy]\nsources = [\"local\"]\n");
    assert_eq!(machine.run(&["install", "../elsewhere/skills/pdf", "-y"]).code, 3);
    machine.sandbox.write(USER, "");
    machine.well(&["install", "../elsewhere/skills/pdf", "-y"]);
    // What is installed already is neither laid out again nor run.
    machine.sandbox.write(USER, "[policy]\ndeny = [\"pdf\"]\n");
    for command in [&["sync"][..], &["run", "pdf"], &["approve", "pdf", "--yes"]] {
        let refused = machine.run(command);
        assert!(refused.code == 3 && refused.stderr.contains("forbids `pdf`"), "{refused}");
    }
}

#[test]
fn a_project_may_tighten() {
    let machine = Machine::new();
    machine.skill("elsewhere/pdf", "1.0.0", "Use it.");
    machine.sandbox.write("project/savoir.toml", "[policy]\nsources = [\"github:acme\"]\n");
    let refused = machine.run(&["install", "../elsewhere/pdf", "-y"]);
    assert!(refused.code == 3 && refused.stderr.contains("savoir.toml"), "{refused}");
}

#[test]
fn a_wrong_signature_of_a_stranger_says_nothing() {
    let machine = Machine::new();
    machine.skill("elsewhere/pdf", "1.0.0", "Use it.");
    machine.well(&["keys", "new", "ada"]);
    machine.well(&["sign", "../elsewhere/pdf", "--key", "ada"]);
    machine.skill("elsewhere/pdf", "1.0.0", "Use it otherwise.");
    // Somebody else has never heard of the key.
    std::fs::remove_dir_all(machine.sandbox.path("home/.config/savoir")).expect("it was there");
    let ran = machine.well(&["install", "../elsewhere/pdf", "-y"]);
    assert!(ran.stderr.contains("its signature does not match"), "{ran}");
    assert!(machine.read("project/savoir.lock").contains("tier = \"experimental\""));
}
