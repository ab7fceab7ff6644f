//! Tests `install`, `sync`, `update`, `remove`, `undo` and `verify` in a temporary home and
//! project.

mod bad_sources;
mod consent;
mod copies;
mod counted_versions;
mod everyday;
mod git;
mod hints;
mod offline;
mod policy;
mod registry;
mod vendors;

use std::fs;

use crate::support::{GOOD, Sandbox, Transcript};

/// A test environment with a user who has Claude Code, and one project.
struct TestEnv {
    sandbox: Sandbox,
}

impl TestEnv {
    fn new() -> Self {
        let test_env = Self { sandbox: Sandbox::new() };
        for folder in ["home/.claude", "project/.git", "elsewhere"] {
            fs::create_dir_all(test_env.sandbox.path(folder)).expect("a folder");
        }
        test_env
    }

    fn run(&self, args: &[&str]) -> Transcript {
        self.sandbox.run_as("home", "project", args)
    }

    /// Runs a command that must succeed.
    fn run_ok(&self, args: &[&str]) -> Transcript {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{args:?}: {ran}");
        ran
    }

    fn skill(&self, folder: &str, version: &str, body: &str) {
        self.declared(folder, version, "", body);
    }

    /// Writes a skill with additional frontmatter.
    fn declared(&self, folder: &str, version: &str, head: &str, body: &str) {
        let name = folder.rsplit('/').next().expect("a name");
        let text = format!(
            "---\nname: {name}\ndescription: Does {name}. Use when needed.\nversion: \"{version}\"\n\
             {head}---\n\n# {name}\n\n{body}\n"
        );
        self.sandbox.write(&format!("{folder}/SKILL.md"), text);
    }

    fn has(&self, path: &str) -> bool {
        self.sandbox.path(path).exists()
    }

    fn read(&self, path: &str) -> String {
        self.sandbox.read(path)
    }

    /// Creates a project with `pdf` installed from a folder.
    fn with_pdf() -> Self {
        let test_env = Self::new();
        test_env.skill("elsewhere/pdf", "1.0.0", "one\ntwo\nthree\nfour\nfive");
        test_env.run_ok(&["install", "../elsewhere/pdf", "--allow-experimental"]);
        test_env
    }
}

const PDF: &str = "project/.claude/skills/pdf/SKILL.md";

#[test]
fn nothing_is_installed_without_consent() {
    let test_env = TestEnv::new();
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    let refused = test_env.run(&["install", "../elsewhere/pdf"]);
    assert_eq!(refused.code, 3, "{refused}");
    assert!(refused.stderr.contains("installing `pdf` needs your consent"), "{refused}");
    assert!(refused.stderr.contains("unsigned") && refused.stderr.contains("--yes"), "{refused}");
    for path in ["project/savoir.toml", "project/savoir.lock", "project/.claude"] {
        assert!(!test_env.has(path), "{path}");
    }
}

#[test]
fn folder_is_installed_listed_verified_and_undone() {
    let test_env = TestEnv::with_pdf();
    assert_eq!(test_env.read(PDF), test_env.read("elsewhere/pdf/SKILL.md"));
    assert_eq!(
        test_env.read("project/savoir.toml"),
        "[agents]\nuse = [\"claude-code\"]\n\n[skills]\npdf = { path = \"../elsewhere/pdf\" }\n"
    );
    let lock = test_env.read("project/savoir.lock");
    for line in ["source = \"path+../elsewhere/pdf\"", "agents = [\"claude-code\"]"] {
        assert!(lock.contains(line), "{lock}");
    }
    let listed = test_env.run_ok(&["list", "--long"]);
    assert!(listed.stdout.contains("unmodified"), "{listed}");
    assert_eq!(test_env.run_ok(&["verify"]).stdout, "1 skill: every file matches savoir.lock\n");
    assert_eq!(
        test_env.run_ok(&["install", "../elsewhere/pdf", "--allow-experimental"]).stdout,
        "nothing to do\n"
    );
    test_env.run_ok(&["undo"]);
    for path in ["project/savoir.toml", "project/savoir.lock", "project/.claude"] {
        assert!(!test_env.has(path), "{path}");
    }
    let nothing = test_env.run(&["undo"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (1, ""), "{nothing}");
}

#[test]
fn install_prints_json() {
    let test_env = TestEnv::new();
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    let refused = test_env.run(&["install", "../elsewhere/pdf", "--json"]);
    assert_eq!((refused.code, &refused.json()["error"]["code"]), (3, &"not_agreed".into()));
    let shown =
        test_env.run_ok(&["install", "../elsewhere/pdf", "--allow-experimental", "--dry-run"]);
    assert!(shown.stdout.starts_with("nothing was changed"), "{shown}");
    let dry = ["install", "../elsewhere/pdf", "--json", "--allow-experimental", "--dry-run"];
    let output = test_env.run_ok(&dry).json();
    assert_eq!((&output["done"], test_env.has("project/savoir.lock")), (&false.into(), false));
    let output = test_env.run_ok(&dry[..4]).json();
    assert_eq!(output["done"], true);
    assert_eq!(output["changes"][0]["change"], "new");
    assert_eq!(output["changes"][0]["agents"][0], "claude-code");
    assert_eq!(output["skills"][0]["tier"], "experimental");
    assert_eq!(test_env.run_ok(&["verify", "--json"]).json()["ok"], true);
    assert_eq!(test_env.run_ok(&["sync", "--check", "--json"]).json()["in_sync"], true);
    let output = test_env.run_ok(&["remove", "pdf", "--json"]).json();
    assert_eq!(output["changes"][0]["change"], "removed");
}

#[test]
fn some_of_several_skills_can_be_selected() {
    let test_env = TestEnv::new();
    for name in ["pdf", "notes", "mail"] {
        test_env.skill(&format!("elsewhere/skills/{name}"), "1.0.0", "Do it.");
    }
    let source = "../elsewhere/skills";
    let listed = test_env.run_ok(&["install", source, "--list"]);
    assert_eq!(listed.stdout.lines().count(), 4, "{listed}");
    let open = test_env.run(&["install", source, "--allow-experimental"]);
    assert_eq!(open.code, 2, "{open}");
    assert!(open.stderr.contains("3 skills: mail, notes, pdf"), "{open}");
    let unknown = test_env.run(&["install", source, "--skill", "mial", "--allow-experimental"]);
    assert!(
        unknown.code == 2 && unknown.stderr.contains("available skills: mail, notes, pdf"),
        "{unknown}"
    );
    test_env.run_ok(&["add", source, "--skill", "pdf,mail", "--allow-experimental"]);
    let there = |name: &str| test_env.has(&format!("project/.claude/skills/{name}"));
    assert_eq!((there("pdf"), there("mail"), there("notes")), (true, true, false));
    test_env.run_ok(&["install", source, "--all", "--allow-experimental"]);
    assert!(there("notes"));
}

#[test]
fn skill_is_installed_and_removed_per_agent() {
    let test_env = TestEnv::new();
    test_env.sandbox.write("elsewhere/tea.md", "# Tea\n\nGreen tea wants water of 80 degrees.\n");
    let install =
        ["install", "../elsewhere/tea.md", "--allow-experimental", "--agent", "claude-code,codex"];
    test_env.run_ok(&install);
    let (claude, codex) =
        ("project/.claude/skills/tea/SKILL.md", "project/.agents/skills/tea/SKILL.md");
    assert!(test_env.read(claude).starts_with("# Tea\n"), "Claude Code reads prose as it is");
    assert!(test_env.read(codex).starts_with("---\nname: tea\n"), "prose is converted for Codex");
    let listed = test_env.run_ok(&["list", "--long"]);
    assert!(
        !listed.stdout.contains("modified  ") || listed.stdout.contains("unmodified"),
        "{listed}"
    );
    test_env.run_ok(&["status", "--check"]);
    test_env.run_ok(&["remove", "tea", "--agent", "codex"]);
    assert!(test_env.has(claude) && !test_env.has(codex));
    assert!(test_env.read("project/savoir.toml").contains("tea"));
    test_env.run_ok(&["remove", "tea", "--agent", "claude-code"]);
    assert!(!test_env.has(claude));
    assert!(!test_env.read("project/savoir.toml").contains("tea"));
    let gone = test_env.run(&["remove", "tea"]);
    assert!(
        gone.code == 2 && gone.stderr.contains("`tea` is not installed in this project"),
        "{gone}"
    );
}

#[test]
fn a_skill_with_a_title_is_called_after_its_folder() {
    let test_env = TestEnv::new();
    let text = "---\nname: Site Shots\ndescription: Takes pictures of pages.\n\
                metadata: {\"openclaw\": {\"emoji\": \"x\"}}\n---\nTake them.\n";
    test_env.sandbox.write("elsewhere/site-shots/SKILL.md", text);
    test_env.run_ok(&["install", "../elsewhere/site-shots", "--allow-experimental"]);
    assert_eq!(test_env.read("project/.claude/skills/site-shots/SKILL.md"), text);
    test_env.run_ok(&["verify"]);
    test_env.run_ok(&["sync", "--frozen"]);
    assert_eq!(test_env.run_ok(&["update", "site-shots"]).stdout, "nothing to do\n");
}

#[test]
fn gaia_finds_its_lock_beside_its_skills() {
    let test_env = TestEnv::new();
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    let install =
        ["install", "../elsewhere/pdf", "--global", "--allow-experimental", "--layout", "gaia"];
    test_env.run_ok(&install);
    assert!(test_env.has("home/.gaia/skills/pdf/SKILL.md"));
    let lock: serde_json::Value =
        serde_json::from_str(&test_env.read("home/.gaia/skills/skill-lock.json")).expect("JSON");
    assert_eq!(lock["skills"]["pdf"]["security_tier"], "experimental", "{lock:#}");
    assert!(test_env.has("home/.claude/skills/pdf/SKILL.md"), "others get it, too");
    test_env.run_ok(&["undo", "--global"]);
    assert!(!test_env.has("home/.gaia/skills/skill-lock.json"));
}

#[test]
fn user_skills_are_visible_in_every_project() {
    let test_env = TestEnv::new();
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    test_env.run_ok(&["install", "../elsewhere/pdf", "--global", "--allow-experimental"]);
    assert!(test_env.has("home/.claude/skills/pdf/SKILL.md"));
    assert!(test_env.has("home/.config/savoir/savoir.lock"));
    assert!(!test_env.has("project/savoir.lock"));
    test_env.run_ok(&["verify", "--global"]);
    let home = test_env.sandbox.run_as("home", "home", &["install", "../elsewhere/pdf"]);
    assert!(home.code == 2 && home.stderr.contains("--user"), "{home}");
}

#[test]
fn dependencies_are_installed() {
    let test_env = TestEnv::new();
    let needs = "runtime: {type: markdown-skill}\ndependencies:\n  skills: [\"paper@^1.0\"]\n";
    test_env.declared("elsewhere/s/pdf", "1.0.0", needs, "Read it.");
    test_env.declared("elsewhere/s/paper", "1.2.0", "", "Fold it.");
    let unasked = test_env.run(&["install", "../elsewhere/s", "--skill", "pdf"]);
    assert_eq!(unasked.code, 3, "{unasked}");
    assert!(unasked.stderr.contains("paper 1.2.0"), "it is on the same screen: {unasked}");
    test_env.run_ok(&["install", "../elsewhere/s", "--skill", "pdf", "-y"]);
    let stays = test_env.run_ok(&["remove", "paper"]);
    assert!(stays.stdout.contains("`paper` stays, since it is needed by pdf"), "{stays}");
    test_env.run_ok(&["remove", "pdf", "paper"]);
    for name in ["pdf", "paper"] {
        assert!(!test_env.has(&format!("project/.claude/skills/{name}")), "{name} is left");
    }
}

#[test]
fn sync_installs_what_the_lock_pins() {
    let test_env = TestEnv::with_pdf();
    fs::remove_dir_all(test_env.sandbox.path("project/.claude")).expect("it was there");
    let differs = test_env.run(&["sync", "--check"]);
    assert_eq!((differs.code, test_env.has(PDF)), (1, false), "{differs}");
    let repaired = test_env.run_ok(&["sync", "--frozen"]);
    assert_eq!(repaired.stdout, ".claude/skills/pdf is installed\n");
    assert!(test_env.has(PDF));
    // Edits are kept and reported.
    test_env.sandbox.write(PDF, GOOD);
    let left = test_env.run_ok(&["sync"]);
    assert!(left.stdout.contains("was edited and is left unchanged"), "{left}");
    let faults = test_env.run(&["verify"]);
    assert_eq!(faults.code, 1);
    assert!(faults.stdout.contains(".claude/skills/pdf/SKILL.md was changed"), "{faults}");
    test_env.run_ok(&["sync", "--force"]);
    test_env.run_ok(&["verify"]);
    test_env.run_ok(&["undo"]);
    assert_eq!(test_env.read(PDF), GOOD, "nothing is lost");
}

#[test]
fn skills_are_verified_by_name() {
    let test_env = TestEnv::with_pdf();
    test_env.skill("elsewhere/mail", "1.0.0", "Send it.");
    test_env.run_ok(&["install", "../elsewhere/mail", "--allow-experimental"]);
    test_env.sandbox.write("project/.claude/skills/mail/SKILL.md", GOOD);
    assert_eq!(
        test_env.run_ok(&["verify", "pdf"]).stdout,
        "`pdf` is unsigned, experimental\n1 skill: every file matches savoir.lock\n"
    );
    assert_eq!(test_env.run(&["verify", "mail"]).code, 1);
    assert_eq!(test_env.run(&["verify", "--all"]).code, 1);
    let unknown = test_env.run(&["verify", "maps"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("`maps`"), "{unknown}");
}

#[test]
fn verify_lists_skills_without_a_lock_entry() {
    let test_env = TestEnv::with_pdf();
    test_env.sandbox.write("project/.claude/skills/pdf/__pycache__/helper.cpython-312.pyc", "x");
    let verified = test_env.run_ok(&["verify"]);
    assert!(
        verified.stdout.contains(".claude/skills/pdf/__pycache__ is not in savoir.lock"),
        "{verified}"
    );
    let lock = test_env.read("project/savoir.lock");
    let lock = lock.replace("agents = ", "tools = [\"Bash\"]\nagents = ");
    test_env.sandbox.write("project/savoir.lock", lock);
    let edited = test_env.run(&["verify"]);
    assert!(edited.code == 3 && edited.stdout.contains("tools"), "{edited}");
}

#[test]
fn frozen_refuses_edited_files() {
    let test_env = TestEnv::with_pdf();
    let good = test_env.read(PDF);
    test_env.sandbox.write(PDF, GOOD);
    for frozen in [&["sync", "--frozen"][..], &["install", "--frozen"]] {
        let edited = test_env.run(frozen);
        assert_eq!(edited.code, 1, "{edited}");
        assert!(edited.stderr.contains("edited since it was installed"), "{edited}");
        assert!(edited.stderr.contains("savoir sync --frozen --force"), "{edited}");
        assert_eq!(test_env.read(PDF), GOOD, "nothing was changed");
    }
    test_env.run_ok(&["sync", "--frozen", "--force"]);
    assert_eq!(test_env.read(PDF), good);
    assert_eq!(test_env.run_ok(&["install", "--frozen"]).stdout, "nothing to do\n");
}

#[test]
fn verify_of_a_name_shows_its_signature() {
    let unsigned = TestEnv::with_pdf().run_ok(&["verify", "pdf"]);
    assert!(unsigned.stdout.starts_with("`pdf` is unsigned, experimental\n"), "{unsigned}");
    let test_env = TestEnv::new();
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    test_env.run_ok(&["keys", "new", "ada"]);
    test_env.run_ok(&["sign", "../elsewhere/pdf", "--key", "ada"]);
    test_env.run_ok(&["install", "../elsewhere/pdf", "--allow-experimental"]);
    let stranger = test_env.run_ok(&["verify", "pdf"]);
    assert!(
        stranger.stdout.contains(", which you do not trust for it, experimental"),
        "{stranger}"
    );
    let public = test_env.sandbox.path("home/.config/savoir/keys/ada.pub").display().to_string();
    test_env.run_ok(&["keys", "trust", &public, "--publisher", "Ada"]);
    test_env.run_ok(&["sync"]);
    let known = test_env.run_ok(&["verify", "pdf"]);
    assert!(known.stdout.starts_with("`pdf` is signed by Ada, ed25519:"), "{known}");
    assert!(known.stdout.contains(", 1 signed with a key that you trust\n"), "{known}");
    let json = test_env.run_ok(&["verify", "pdf", "--json"]).json();
    assert_eq!(json["signatures"][0]["signer"], "Ada", "{json}");
    assert_eq!(json["signatures"][0]["tier"], "community", "{json}");
}

#[test]
fn wrong_signature_is_not_installed() {
    let test_env = TestEnv::new();
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    test_env.run_ok(&["keys", "new", "ada"]);
    test_env.run_ok(&["sign", "../elsewhere/pdf", "--key", "ada"]);
    let install = ["install", "../elsewhere/pdf", "--yes"];
    let record = test_env.read("elsewhere/pdf/signature.json");
    let wrong = record.replace("\"algorithm\": \"ed25519\"", "\"algorithm\": \"rsa\"");
    assert_ne!(wrong, record);
    test_env.sandbox.write("elsewhere/pdf/signature.json", &wrong);
    let refused = test_env.run(&install);
    assert!(refused.code == 3 && refused.stderr.contains("`algorithm` is \"rsa\""), "{refused}");
    test_env.sandbox.write("elsewhere/pdf/signature.json", &record);
    test_env.skill("elsewhere/pdf", "1.0.0", "Read something else.");
    let refused = test_env.run(&install);
    assert!(refused.code == 3 && refused.stderr.contains("is not what was signed"), "{refused}");
    assert!(!test_env.has(PDF));
    // The new version has no signature, and the update warns about it.
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    test_env.run_ok(&install);
    test_env.skill("elsewhere/pdf", "1.1.0", "Read more.");
    std::fs::remove_file(test_env.sandbox.path("elsewhere/pdf/signature.json")).expect("a file");
    let updated = test_env.run_ok(&["update", "pdf", "--yes"]);
    assert!(updated.stderr.contains("1.0.0 was signed by "), "{updated}");
    assert!(updated.stderr.contains("and this version is not signed"), "{updated}");
}

#[test]
fn outdated_lock_is_updated_or_rejected() {
    let test_env = TestEnv::with_pdf();
    test_env.skill("elsewhere/notes", "1.0.0", "Write it.");
    let mut manifest = test_env.read("project/savoir.toml");
    manifest.push_str("notes = { path = \"../elsewhere/notes\" }\n");
    test_env.sandbox.write("project/savoir.toml", &manifest);
    for frozen in [["sync", "--frozen"], ["install", "--frozen"]] {
        let stale = test_env.run(&frozen);
        assert_eq!(stale.code, 1, "{stale}");
        assert!(stale.stderr.contains("`notes` is not in the lock"), "{stale}");
    }
    assert_eq!(test_env.run(&["sync"]).code, 3, "it is unsigned");
    test_env.run_ok(&["sync", "--allow-experimental"]);
    assert!(test_env.has("project/.claude/skills/notes/SKILL.md"));
    assert_eq!(test_env.read("project/savoir.toml"), manifest);
    test_env.run_ok(&["sync", "--frozen"]);
    // Dependencies that are no longer needed are removed.
    test_env.sandbox.write("project/savoir.toml", "[skills]\n");
    test_env.run_ok(&["sync"]);
    assert!(!test_env.has("project/.claude/skills/notes"));
    assert!(!test_env.has(PDF));
}

#[test]
fn updates_merge_with_edits() {
    let test_env = TestEnv::with_pdf();
    let edited = test_env.read(PDF).replace("one", "one, by me");
    test_env.sandbox.write(PDF, &edited);
    test_env.skill("elsewhere/pdf", "1.1.0", "one\ntwo\nthree\nfour\nfive and a half");
    let looked = test_env.run_ok(&["outdated"]);
    assert_eq!(looked.stdout, "`pdf` can be updated from 1.0.0 to 1.1.0\n");
    let listed = test_env.run_ok(&["list", "--long"]);
    assert!(listed.stdout.contains("1.0.0 → 1.1.0"), "{listed}");
    let status = test_env.run_ok(&["status"]);
    assert!(status.stdout.contains("pdf (1.1.0)"), "{status}");
    assert_eq!(test_env.read(PDF), edited, "looking changes nothing");
    let json = test_env.run_ok(&["update", "pdf", "--diff", "--dry-run", "--json"]);
    assert!(json.stdout.contains(r"\n+five and a half\n"), "{json}");
    assert!(!json.stdout.contains("u001b"), "no color codes: {json}");
    let shown = test_env.run_ok(&["update", "pdf", "--diff"]);
    assert!(shown.stderr.contains("+five and a half") && shown.stderr.contains("--yes"), "{shown}");
    assert_eq!(test_env.read(PDF), edited, "a script sees the changes first");
    test_env.run_ok(&["update", "pdf", "--diff", "--yes"]);
    let merged = test_env.read(PDF);
    assert!(merged.contains("one, by me") && merged.contains("five and a half"), "{merged}");
    test_env.run_ok(&["undo"]);
    assert_eq!(test_env.read(PDF), edited);
    // A change of the same line on both sides is a conflict, which the user must resolve.
    test_env.skill("elsewhere/pdf", "1.2.0", "one, by them\ntwo\nthree\nfour\nfive");
    let conflict = test_env.run(&["update", "--all"]);
    assert_eq!(conflict.code, 1, "{conflict}");
    assert!(conflict.stdout.contains("has 1 conflict"), "{conflict}");
    let marked = test_env.read(PDF);
    assert!(marked.contains("<<<<<<<") && marked.contains("one, by them"), "{marked}");
    test_env.run_ok(&["undo"]);
    assert_eq!(test_env.read(PDF), edited);
}

#[test]
fn dependencies_are_updated() {
    let test_env = TestEnv::new();
    let needs = "runtime: {type: markdown-skill}\ndependencies:\n  skills: [\"paper@^1.0\"]\n";
    test_env.declared("elsewhere/s/pdf", "1.0.0", needs, "Read it.");
    test_env.declared("elsewhere/s/paper", "1.0.0", "", "Fold it.");
    test_env.run_ok(&["install", "../elsewhere/s", "--all", "--allow-experimental"]);
    test_env.declared("elsewhere/s/paper", "1.1.0", "", "Fold it twice.");
    let updated = test_env.run_ok(&["update", "--all"]);
    assert!(updated.stdout.contains("`paper` goes from 1.0.0 to 1.1.0"), "{updated}");
    // A new version may have new dependencies.
    let more = "runtime: {type: markdown-skill}\ndependencies:\n  skills: [\"paper@^1.0\", \"ink@^1.0\"]\n";
    test_env.declared("elsewhere/s/pdf", "1.1.0", more, "Read it.");
    test_env.declared("elsewhere/s/ink", "1.0.0", "", "Spill it.");
    let refused = test_env.run(&["update", "pdf"]);
    assert_eq!(refused.code, 3, "{refused}");
    assert!(refused.stderr.contains("`ink`"), "{refused}");
}

#[test]
fn installing_does_not_replace_a_skill_of_another_source() {
    let test_env = TestEnv::new();
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    test_env.skill("elsewhere/mail", "1.0.0", "Send it.");
    let install = ["install", "../elsewhere/pdf", "../elsewhere/mail", "--allow-experimental"];
    test_env.run_ok(&install);
    let text = test_env.read("elsewhere/mail/SKILL.md").replace("name: mail", "name: pdf");
    test_env.sandbox.write("elsewhere/mail/SKILL.md", text);
    let refused = test_env.run(&["update", "mail", "--yes"]);
    assert_ne!(refused.code, 0, "{refused}");
    assert_eq!(test_env.read(PDF), test_env.read("elsewhere/pdf/SKILL.md"));
}

#[test]
fn a_skill_of_an_agent_is_adopted_and_not_installed() {
    let test_env = TestEnv::new();
    test_env.skill("project/.claude/skills/pdf", "1.0.0", "Read it.");
    let before = test_env.read(PDF);
    let there = test_env.run(&["install", "./.claude/skills/pdf", "--allow-experimental"]);
    assert!(there.code == 2 && there.stderr.contains("savoir adopt pdf"), "{there}");
    let looked = test_env.run_ok(&["adopt"]);
    assert!(looked.stdout.contains("`pdf` 1.0.0 is adopted"), "{looked}");
    assert!(!test_env.has("project/savoir.lock"), "looking changes nothing");
    test_env.run_ok(&["adopt", "pdf"]);
    assert_eq!(test_env.read(PDF), before);
    test_env.run_ok(&["verify"]);
    assert!(test_env.run_ok(&["list", "--long"]).stdout.contains("savoir"));
    let again = test_env.run(&["adopt", "pdf"]);
    assert_eq!(again.code, 2, "{again}");
    // The user edited the folder, so it is kept.
    test_env.sandbox.write(PDF, before.replace("Read it.", "Read it well."));
    assert_eq!(test_env.run_ok(&["update", "--all"]).stdout, "nothing to do\n");
    let removed = test_env.run_ok(&["remove", "pdf"]);
    assert!(removed.stdout.contains("it is the source of the skill"), "{removed}");
    assert!(test_env.read(PDF).contains("Read it well."));
    test_env.sandbox.write(PDF, &before);
    test_env.run_ok(&["undo"]);
    test_env.run_ok(&["undo"]);
    assert!(!test_env.has("project/savoir.lock"));
    assert_eq!(test_env.read(PDF), before);
}

#[test]
fn new_permissions_need_consent() {
    let test_env = TestEnv::new();
    let tool = "allowed-tools: Read\n";
    test_env.declared("elsewhere/pdf", "1.0.0", tool, "Read it.");
    test_env.run_ok(&["install", "../elsewhere/pdf", "--allow-experimental"]);
    test_env.declared("elsewhere/pdf", "1.1.0", "allowed-tools: Read Bash\n", "Read it.");
    let before = test_env.read(PDF);
    let refused = test_env.run(&["update", "pdf", "--yes"]);
    assert_eq!(refused.code, 3, "{refused}");
    assert!(refused.stderr.contains("wants the tool `Bash`"), "{refused}");
    assert!(refused.stderr.contains("--accept Bash"), "{refused}");
    // Running the command again does not bypass the check.
    let again = test_env.run(&["install", "../elsewhere/pdf", "--allow-experimental", "--force"]);
    assert_eq!(again.code, 3, "{again}");
    assert_eq!(test_env.read(PDF), before);
    let other = test_env.run(&["update", "pdf", "--accept", "Write"]);
    assert_eq!(other.code, 3, "{other}");
    test_env.run_ok(&["update", "pdf", "--accept", "Bash"]);
    assert!(test_env.read(PDF).contains("Bash"));
}

#[test]
fn foreign_folders_are_not_replaced() {
    let test_env = TestEnv::new();
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    test_env.sandbox.write(PDF, GOOD);
    let install = ["install", "../elsewhere/pdf", "--allow-experimental"];
    let refused = test_env.run(&install);
    assert!(refused.code == 1 && refused.stderr.contains("--force"), "{refused}");
    assert_eq!(test_env.read(PDF), GOOD);
    test_env.run_ok(&[&install[..], &["--force"]].concat());
    assert_ne!(test_env.read(PDF), GOOD);
    test_env.run_ok(&["undo"]);
    assert_eq!(test_env.read(PDF), GOOD);
}

#[test]
fn two_concurrent_installs_both_succeed() {
    let test_env = TestEnv::new();
    let names: Vec<String> = (0..8).map(|at| format!("skill-{at}")).collect();
    for name in &names {
        test_env.skill(&format!("elsewhere/{name}"), "1.0.0", "Do it.");
    }
    std::thread::scope(|scope| {
        for name in &names {
            let source = format!("../elsewhere/{name}");
            let test_env = &test_env;
            scope.spawn(move || test_env.run_ok(&["install", &source, "--allow-experimental"]));
        }
    });
    test_env.run_ok(&["verify"]);
    let lock = test_env.read("project/savoir.lock");
    for name in &names {
        assert!(lock.contains(&format!("name = \"{name}\"")), "{name}");
        assert!(test_env.has(&format!("project/.claude/skills/{name}/SKILL.md")), "{name}");
    }
}

#[test]
fn removing_an_edited_skill_needs_force() {
    let test_env = TestEnv::with_pdf();
    test_env.sandbox.write(PDF, GOOD);
    let (manifest, lock) =
        (test_env.read("project/savoir.toml"), test_env.read("project/savoir.lock"));
    for args in [&["remove", "pdf"][..], &["remove", "pdf", "--agent", "claude-code"]] {
        let refused = test_env.run(args);
        assert_eq!(refused.code, 3, "{refused}");
        assert!(refused.stderr.contains(".claude/skills/pdf was edited"), "{refused}");
        assert!(refused.stderr.contains("--force"), "{refused}");
    }
    assert_eq!(test_env.read("project/savoir.toml"), manifest);
    assert_eq!(test_env.read("project/savoir.lock"), lock);
    assert_eq!(test_env.read(PDF), GOOD);
    test_env.run_ok(&["remove", "pdf", "--force"]);
    assert!(!test_env.has("project/.claude/skills/pdf"));
    test_env.run_ok(&["undo"]);
    assert_eq!(test_env.read(PDF), GOOD, "nothing is lost");
}

#[test]
fn agent_that_reads_the_source_folder_is_skipped() {
    let test_env = TestEnv::new();
    test_env.skill("project/skills/pdf", "1.0.0", "Read it.");
    let agents = "claude-code,openclaw";
    let args = ["install", "./skills/pdf", "--agent", agents, "--allow-experimental"];
    let installed = test_env.run_ok(&args);
    assert!(installed.stderr.contains("OpenClaw already reads pdf there"), "{installed}");
    assert!(test_env.has(PDF), "{installed}");
}
