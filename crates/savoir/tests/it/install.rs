//! `install`, `sync`, `update`, `remove`, `undo` and `verify`, on a machine that is made up.

mod bad_sources;
mod consent;
mod copies;
mod counted_versions;
mod git;
mod hints;
mod offline;
mod policy;
mod registry;
mod vendors;

use std::fs;

use crate::support::{GOOD, Sandbox, Transcript};

/// A machine with one user, who has Claude Code, and one project.
struct Machine {
    sandbox: Sandbox,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { sandbox: Sandbox::new() };
        for folder in ["home/.claude", "project/.git", "elsewhere"] {
            fs::create_dir_all(machine.sandbox.path(folder)).expect("a folder");
        }
        machine
    }

    fn run(&self, args: &[&str]) -> Transcript {
        self.sandbox.run_as("home", "project", args)
    }

    /// Runs it, and expects that it ends well.
    fn well(&self, args: &[&str]) -> Transcript {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{args:?}: {ran}");
        ran
    }

    fn skill(&self, folder: &str, version: &str, body: &str) {
        self.declared(folder, version, "", body);
    }

    /// A skill with more in its head.
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

    /// A project with `pdf` installed from a folder.
    fn with_pdf() -> Self {
        let machine = Self::new();
        machine.skill("elsewhere/pdf", "1.0.0", "one\ntwo\nthree\nfour\nfive");
        machine.well(&["install", "../elsewhere/pdf", "--allow-experimental"]);
        machine
    }
}

const PDF: &str = "project/.claude/skills/pdf/SKILL.md";

#[test]
fn nothing_is_installed_without_consent() {
    let machine = Machine::new();
    machine.skill("elsewhere/pdf", "1.0.0", "Read it.");
    let refused = machine.run(&["install", "../elsewhere/pdf"]);
    assert_eq!(refused.code, 3, "{refused}");
    assert!(refused.stderr.contains("installing `pdf` needs your consent"), "{refused}");
    assert!(refused.stderr.contains("unsigned") && refused.stderr.contains("--yes"), "{refused}");
    for path in ["project/savoir.toml", "project/savoir.lock", "project/.claude"] {
        assert!(!machine.has(path), "{path}");
    }
}

#[test]
fn a_folder_is_installed_listed_checked_and_taken_back() {
    let machine = Machine::with_pdf();
    assert_eq!(machine.read(PDF), machine.read("elsewhere/pdf/SKILL.md"));
    assert_eq!(
        machine.read("project/savoir.toml"),
        "[agents]\nuse = [\"claude-code\"]\n\n[skills]\npdf = { path = \"../elsewhere/pdf\" }\n"
    );
    let lock = machine.read("project/savoir.lock");
    for line in ["source = \"path+../elsewhere/pdf\"", "agents = [\"claude-code\"]"] {
        assert!(lock.contains(line), "{lock}");
    }
    let listed = machine.well(&["list", "--long"]);
    assert!(listed.stdout.contains("unmodified"), "{listed}");
    assert_eq!(machine.well(&["verify"]).stdout, "1 skill: every file matches savoir.lock\n");
    assert_eq!(
        machine.well(&["install", "../elsewhere/pdf", "--allow-experimental"]).stdout,
        "nothing to do\n"
    );
    machine.well(&["undo"]);
    for path in ["project/savoir.toml", "project/savoir.lock", "project/.claude"] {
        assert!(!machine.has(path), "{path}");
    }
    let nothing = machine.run(&["undo"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (1, ""), "{nothing}");
}

#[test]
fn programs_get_json() {
    let machine = Machine::new();
    machine.skill("elsewhere/pdf", "1.0.0", "Read it.");
    let refused = machine.run(&["install", "../elsewhere/pdf", "--json"]);
    assert_eq!((refused.code, &refused.json()["error"]["code"]), (3, &"not_agreed".into()));
    let shown = machine.well(&["install", "../elsewhere/pdf", "--allow-experimental", "--dry-run"]);
    assert!(shown.stdout.starts_with("nothing was changed"), "{shown}");
    let dry = ["install", "../elsewhere/pdf", "--json", "--allow-experimental", "--dry-run"];
    let told = machine.well(&dry).json();
    assert_eq!((&told["done"], machine.has("project/savoir.lock")), (&false.into(), false));
    let told = machine.well(&dry[..4]).json();
    assert_eq!(told["done"], true);
    assert_eq!(told["changes"][0]["change"], "new");
    assert_eq!(told["changes"][0]["agents"][0], "claude-code");
    assert_eq!(told["skills"][0]["tier"], "experimental");
    assert_eq!(machine.well(&["verify", "--json"]).json()["ok"], true);
    assert_eq!(machine.well(&["sync", "--check", "--json"]).json()["in_sync"], true);
    let told = machine.well(&["remove", "pdf", "--json"]).json();
    assert_eq!(told["changes"][0]["change"], "removed");
}

#[test]
fn of_several_skills_some_are_chosen() {
    let machine = Machine::new();
    for name in ["pdf", "notes", "mail"] {
        machine.skill(&format!("elsewhere/skills/{name}"), "1.0.0", "Do it.");
    }
    let source = "../elsewhere/skills";
    let listed = machine.well(&["install", source, "--list"]);
    assert_eq!(listed.stdout.lines().count(), 4, "{listed}");
    let open = machine.run(&["install", source, "--allow-experimental"]);
    assert_eq!(open.code, 2, "{open}");
    assert!(open.stderr.contains("3 skills: mail, notes, pdf"), "{open}");
    let unknown = machine.run(&["install", source, "--skill", "mial", "--allow-experimental"]);
    assert!(
        unknown.code == 2 && unknown.stderr.contains("available skills: mail, notes, pdf"),
        "{unknown}"
    );
    machine.well(&["add", source, "--skill", "pdf,mail", "--allow-experimental"]);
    let there = |name: &str| machine.has(&format!("project/.claude/skills/{name}"));
    assert_eq!((there("pdf"), there("mail"), there("notes")), (true, true, false));
    machine.well(&["install", source, "--all", "--allow-experimental"]);
    assert!(there("notes"));
}

#[test]
fn each_agent_gets_its_own_and_can_lose_it() {
    let machine = Machine::new();
    machine.sandbox.write("elsewhere/tea.md", "# Tea\n\nGreen tea wants water of 80 degrees.\n");
    let install =
        ["install", "../elsewhere/tea.md", "--allow-experimental", "--agent", "claude-code,codex"];
    machine.well(&install);
    let (claude, codex) =
        ("project/.claude/skills/tea/SKILL.md", "project/.agents/skills/tea/SKILL.md");
    assert!(machine.read(claude).starts_with("# Tea\n"), "Claude Code reads prose as it is");
    assert!(machine.read(codex).starts_with("---\nname: tea\n"), "prose is converted for Codex");
    let listed = machine.well(&["list", "--long"]);
    assert!(
        !listed.stdout.contains("modified  ") || listed.stdout.contains("unmodified"),
        "{listed}"
    );
    machine.well(&["status", "--check"]);
    machine.well(&["remove", "tea", "--agent", "codex"]);
    assert!(machine.has(claude) && !machine.has(codex));
    assert!(machine.read("project/savoir.toml").contains("tea"));
    machine.well(&["remove", "tea", "--agent", "claude-code"]);
    assert!(!machine.has(claude));
    assert!(!machine.read("project/savoir.toml").contains("tea"));
    let gone = machine.run(&["remove", "tea"]);
    assert!(
        gone.code == 2 && gone.stderr.contains("`tea` is not installed in this project"),
        "{gone}"
    );
}

#[test]
fn a_skill_with_a_title_is_called_after_its_folder() {
    let machine = Machine::new();
    let text = "---\nname: Site Shots\ndescription: Takes pictures of pages.\n\
                metadata: {\"openclaw\": {\"emoji\": \"x\"}}\n---\nTake them.\n";
    machine.sandbox.write("elsewhere/site-shots/SKILL.md", text);
    machine.well(&["install", "../elsewhere/site-shots", "--allow-experimental"]);
    assert_eq!(machine.read("project/.claude/skills/site-shots/SKILL.md"), text);
    machine.well(&["verify"]);
    machine.well(&["sync", "--frozen"]);
    assert_eq!(machine.well(&["update", "site-shots"]).stdout, "nothing to do\n");
}

#[test]
fn gaia_finds_its_lock_beside_its_skills() {
    let machine = Machine::new();
    machine.skill("elsewhere/pdf", "1.0.0", "Read it.");
    let install =
        ["install", "../elsewhere/pdf", "--global", "--allow-experimental", "--layout", "gaia"];
    machine.well(&install);
    assert!(machine.has("home/.gaia/skills/pdf/SKILL.md"));
    let lock: serde_json::Value =
        serde_json::from_str(&machine.read("home/.gaia/skills/skill-lock.json")).expect("JSON");
    assert_eq!(lock["skills"]["pdf"]["security_tier"], "experimental", "{lock:#}");
    assert!(machine.has("home/.claude/skills/pdf/SKILL.md"), "others get it, too");
    machine.well(&["undo", "--global"]);
    assert!(!machine.has("home/.gaia/skills/skill-lock.json"));
}

#[test]
fn skills_of_a_person_are_seen_everywhere() {
    let machine = Machine::new();
    machine.skill("elsewhere/pdf", "1.0.0", "Read it.");
    machine.well(&["install", "../elsewhere/pdf", "--global", "--allow-experimental"]);
    assert!(machine.has("home/.claude/skills/pdf/SKILL.md"));
    assert!(machine.has("home/.config/savoir/savoir.lock"));
    assert!(!machine.has("project/savoir.lock"));
    machine.well(&["verify", "--global"]);
    let home = machine.sandbox.run_as("home", "home", &["install", "../elsewhere/pdf"]);
    assert!(home.code == 2 && home.stderr.contains("--user"), "{home}");
}

#[test]
fn dependencies_are_installed() {
    let machine = Machine::new();
    let needs = "runtime: {type: markdown-skill}\ndependencies:\n  skills: [\"paper@^1.0\"]\n";
    machine.declared("elsewhere/s/pdf", "1.0.0", needs, "Read it.");
    machine.declared("elsewhere/s/paper", "1.2.0", "", "Fold it.");
    let unasked = machine.run(&["install", "../elsewhere/s", "--skill", "pdf"]);
    assert_eq!(unasked.code, 3, "{unasked}");
    assert!(unasked.stderr.contains("paper 1.2.0"), "it is on the same screen: {unasked}");
    machine.well(&["install", "../elsewhere/s", "--skill", "pdf", "-y"]);
    let stays = machine.well(&["remove", "paper"]);
    assert!(stays.stdout.contains("`paper` stays, since it is needed by pdf"), "{stays}");
    machine.well(&["remove", "pdf", "paper"]);
    for name in ["pdf", "paper"] {
        assert!(!machine.has(&format!("project/.claude/skills/{name}")), "{name} is left");
    }
}

#[test]
fn sync_installs_what_the_lock_pins() {
    let machine = Machine::with_pdf();
    fs::remove_dir_all(machine.sandbox.path("project/.claude")).expect("it was there");
    let differs = machine.run(&["sync", "--check"]);
    assert_eq!((differs.code, machine.has(PDF)), (1, false), "{differs}");
    let mended = machine.well(&["sync", "--frozen"]);
    assert_eq!(mended.stdout, ".claude/skills/pdf is installed\n");
    assert!(machine.has(PDF));
    // Edits stay, and are told.
    machine.sandbox.write(PDF, GOOD);
    let left = machine.well(&["sync"]);
    assert!(left.stdout.contains("was edited and is left unchanged"), "{left}");
    let faults = machine.run(&["verify"]);
    assert_eq!(faults.code, 1);
    assert!(faults.stdout.contains(".claude/skills/pdf/SKILL.md was changed"), "{faults}");
    machine.well(&["sync", "--force"]);
    machine.well(&["verify"]);
    machine.well(&["undo"]);
    assert_eq!(machine.read(PDF), GOOD, "nothing is lost");
}

#[test]
fn skills_are_verified_by_name() {
    let machine = Machine::with_pdf();
    machine.skill("elsewhere/mail", "1.0.0", "Send it.");
    machine.well(&["install", "../elsewhere/mail", "--allow-experimental"]);
    machine.sandbox.write("project/.claude/skills/mail/SKILL.md", GOOD);
    assert_eq!(
        machine.well(&["verify", "pdf"]).stdout,
        "1 skill: every file matches savoir.lock\n"
    );
    assert_eq!(machine.run(&["verify", "mail"]).code, 1);
    assert_eq!(machine.run(&["verify", "--all"]).code, 1);
    let unknown = machine.run(&["verify", "maps"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("`maps`"), "{unknown}");
}

#[test]
fn verify_lists_skills_without_a_lock_entry() {
    let machine = Machine::with_pdf();
    machine.sandbox.write("project/.claude/skills/pdf/__pycache__/helper.cpython-312.pyc", "x");
    let verified = machine.well(&["verify"]);
    assert!(
        verified.stdout.contains(".claude/skills/pdf/__pycache__ is not in savoir.lock"),
        "{verified}"
    );
    let lock = machine.read("project/savoir.lock");
    let lock = lock.replace("agents = ", "tools = [\"Bash\"]\nagents = ");
    machine.sandbox.write("project/savoir.lock", lock);
    let edited = machine.run(&["verify"]);
    assert!(edited.code == 3 && edited.stdout.contains("tools"), "{edited}");
}

#[test]
fn a_lock_that_does_not_fit_is_made_to_fit_or_refused() {
    let machine = Machine::with_pdf();
    machine.skill("elsewhere/notes", "1.0.0", "Write it.");
    let mut manifest = machine.read("project/savoir.toml");
    manifest.push_str("notes = { path = \"../elsewhere/notes\" }\n");
    machine.sandbox.write("project/savoir.toml", &manifest);
    for frozen in [["sync", "--frozen"], ["install", "--frozen"]] {
        let stale = machine.run(&frozen);
        assert_eq!(stale.code, 1, "{stale}");
        assert!(stale.stderr.contains("`notes` is not in the lock"), "{stale}");
    }
    assert_eq!(machine.run(&["sync"]).code, 3, "it is unsigned");
    machine.well(&["sync", "--allow-experimental"]);
    assert!(machine.has("project/.claude/skills/notes/SKILL.md"));
    assert_eq!(machine.read("project/savoir.toml"), manifest);
    machine.well(&["sync", "--frozen"]);
    // What nothing asks for any more goes.
    machine.sandbox.write("project/savoir.toml", "[skills]\n");
    machine.well(&["sync"]);
    assert!(!machine.has("project/.claude/skills/notes"));
    assert!(!machine.has(PDF));
}

#[test]
fn updates_merge_with_edits() {
    let machine = Machine::with_pdf();
    let edited = machine.read(PDF).replace("one", "one, by me");
    machine.sandbox.write(PDF, &edited);
    machine.skill("elsewhere/pdf", "1.1.0", "one\ntwo\nthree\nfour\nfive and a half");
    let looked = machine.well(&["outdated"]);
    assert_eq!(looked.stdout, "`pdf` can be updated from 1.0.0 to 1.1.0\n");
    let listed = machine.well(&["list", "--long"]);
    assert!(listed.stdout.contains("1.0.0 → 1.1.0"), "{listed}");
    let status = machine.well(&["status"]);
    assert!(status.stdout.contains("pdf (1.1.0)"), "{status}");
    assert_eq!(machine.read(PDF), edited, "looking changes nothing");
    let shown = machine.well(&["update", "pdf", "--diff"]);
    assert!(shown.stderr.contains("+five and a half"), "{shown}");
    let merged = machine.read(PDF);
    assert!(merged.contains("one, by me") && merged.contains("five and a half"), "{merged}");
    machine.well(&["undo"]);
    assert_eq!(machine.read(PDF), edited);
    // The same line on both sides is for a person to decide.
    machine.skill("elsewhere/pdf", "1.2.0", "one, by them\ntwo\nthree\nfour\nfive");
    let conflict = machine.run(&["update", "--all"]);
    assert_eq!(conflict.code, 1, "{conflict}");
    assert!(conflict.stdout.contains("has 1 conflict"), "{conflict}");
    let marked = machine.read(PDF);
    assert!(marked.contains("<<<<<<<") && marked.contains("one, by them"), "{marked}");
    machine.well(&["undo"]);
    assert_eq!(machine.read(PDF), edited);
}

#[test]
fn what_others_need_is_updated_too() {
    let machine = Machine::new();
    let needs = "runtime: {type: markdown-skill}\ndependencies:\n  skills: [\"paper@^1.0\"]\n";
    machine.declared("elsewhere/s/pdf", "1.0.0", needs, "Read it.");
    machine.declared("elsewhere/s/paper", "1.0.0", "", "Fold it.");
    machine.well(&["install", "../elsewhere/s", "--all", "--allow-experimental"]);
    machine.declared("elsewhere/s/paper", "1.1.0", "", "Fold it twice.");
    let updated = machine.well(&["update", "--all"]);
    assert!(updated.stdout.contains("`paper` goes from 1.0.0 to 1.1.0"), "{updated}");
    // A new version may need what was not needed before.
    let more = "runtime: {type: markdown-skill}\ndependencies:\n  skills: [\"paper@^1.0\", \"ink@^1.0\"]\n";
    machine.declared("elsewhere/s/pdf", "1.1.0", more, "Read it.");
    machine.declared("elsewhere/s/ink", "1.0.0", "", "Spill it.");
    let refused = machine.run(&["update", "pdf"]);
    assert_eq!(refused.code, 3, "{refused}");
    assert!(refused.stderr.contains("`ink`"), "{refused}");
}

#[test]
fn installing_does_not_replace_a_skill_of_another_source() {
    let machine = Machine::new();
    machine.skill("elsewhere/pdf", "1.0.0", "Read it.");
    machine.skill("elsewhere/mail", "1.0.0", "Send it.");
    let install = ["install", "../elsewhere/pdf", "../elsewhere/mail", "--allow-experimental"];
    machine.well(&install);
    let text = machine.read("elsewhere/mail/SKILL.md").replace("name: mail", "name: pdf");
    machine.sandbox.write("elsewhere/mail/SKILL.md", text);
    let refused = machine.run(&["update", "mail", "--yes"]);
    assert_ne!(refused.code, 0, "{refused}");
    assert_eq!(machine.read(PDF), machine.read("elsewhere/pdf/SKILL.md"));
}

#[test]
fn a_skill_of_an_agent_is_adopted_and_not_installed() {
    let machine = Machine::new();
    machine.skill("project/.claude/skills/pdf", "1.0.0", "Read it.");
    let before = machine.read(PDF);
    let there = machine.run(&["install", "./.claude/skills/pdf", "--allow-experimental"]);
    assert!(there.code == 2 && there.stderr.contains("savoir adopt pdf"), "{there}");
    let looked = machine.well(&["adopt"]);
    assert!(looked.stdout.contains("`pdf` 1.0.0 is adopted"), "{looked}");
    assert!(!machine.has("project/savoir.lock"), "looking changes nothing");
    machine.well(&["adopt", "pdf"]);
    assert_eq!(machine.read(PDF), before);
    machine.well(&["verify"]);
    assert!(machine.well(&["list", "--long"]).stdout.contains("savoir"));
    let again = machine.run(&["adopt", "pdf"]);
    assert_eq!(again.code, 2, "{again}");
    // It is somebody's own work, and stays that.
    machine.sandbox.write(PDF, before.replace("Read it.", "Read it well."));
    assert_eq!(machine.well(&["update", "--all"]).stdout, "nothing to do\n");
    let removed = machine.well(&["remove", "pdf"]);
    assert!(removed.stdout.contains("it is the source of the skill"), "{removed}");
    assert!(machine.read(PDF).contains("Read it well."));
    machine.sandbox.write(PDF, &before);
    machine.well(&["undo"]);
    machine.well(&["undo"]);
    assert!(!machine.has("project/savoir.lock"));
    assert_eq!(machine.read(PDF), before);
}

#[test]
fn new_permissions_need_consent() {
    let machine = Machine::new();
    let tool = "allowed-tools: Read\n";
    machine.declared("elsewhere/pdf", "1.0.0", tool, "Read it.");
    machine.well(&["install", "../elsewhere/pdf", "--allow-experimental"]);
    machine.declared("elsewhere/pdf", "1.1.0", "allowed-tools: Read Bash\n", "Read it.");
    let before = machine.read(PDF);
    let refused = machine.run(&["update", "pdf", "--yes"]);
    assert_eq!(refused.code, 3, "{refused}");
    assert!(refused.stderr.contains("wants the tool `Bash`"), "{refused}");
    assert!(refused.stderr.contains("--accept Bash"), "{refused}");
    // Asking for it anew is no way around.
    let again = machine.run(&["install", "../elsewhere/pdf", "--allow-experimental", "--force"]);
    assert_eq!(again.code, 3, "{again}");
    assert_eq!(machine.read(PDF), before);
    let other = machine.run(&["update", "pdf", "--accept", "Write"]);
    assert_eq!(other.code, 3, "{other}");
    machine.well(&["update", "pdf", "--accept", "Bash"]);
    assert!(machine.read(PDF).contains("Bash"));
}

#[test]
fn what_savoir_did_not_put_there_is_not_replaced() {
    let machine = Machine::new();
    machine.skill("elsewhere/pdf", "1.0.0", "Read it.");
    machine.sandbox.write(PDF, GOOD);
    let install = ["install", "../elsewhere/pdf", "--allow-experimental"];
    let refused = machine.run(&install);
    assert!(refused.code == 1 && refused.stderr.contains("--force"), "{refused}");
    assert_eq!(machine.read(PDF), GOOD);
    machine.well(&[&install[..], &["--force"]].concat());
    assert_ne!(machine.read(PDF), GOOD);
    machine.well(&["undo"]);
    assert_eq!(machine.read(PDF), GOOD);
}

#[test]
fn two_concurrent_installs_both_succeed() {
    let machine = Machine::new();
    let names: Vec<String> = (0..8).map(|at| format!("skill-{at}")).collect();
    for name in &names {
        machine.skill(&format!("elsewhere/{name}"), "1.0.0", "Do it.");
    }
    std::thread::scope(|scope| {
        for name in &names {
            let source = format!("../elsewhere/{name}");
            let machine = &machine;
            scope.spawn(move || machine.well(&["install", &source, "--allow-experimental"]));
        }
    });
    machine.well(&["verify"]);
    let lock = machine.read("project/savoir.lock");
    for name in &names {
        assert!(lock.contains(&format!("name = \"{name}\"")), "{name}");
        assert!(machine.has(&format!("project/.claude/skills/{name}/SKILL.md")), "{name}");
    }
}

#[test]
fn removing_an_edited_skill_needs_force() {
    let machine = Machine::with_pdf();
    machine.sandbox.write(PDF, GOOD);
    let (manifest, lock) =
        (machine.read("project/savoir.toml"), machine.read("project/savoir.lock"));
    for args in [&["remove", "pdf"][..], &["remove", "pdf", "--agent", "claude-code"]] {
        let refused = machine.run(args);
        assert_eq!(refused.code, 3, "{refused}");
        assert!(refused.stderr.contains(".claude/skills/pdf was edited"), "{refused}");
        assert!(refused.stderr.contains("--force"), "{refused}");
    }
    assert_eq!(machine.read("project/savoir.toml"), manifest);
    assert_eq!(machine.read("project/savoir.lock"), lock);
    assert_eq!(machine.read(PDF), GOOD);
    machine.well(&["remove", "pdf", "--force"]);
    assert!(!machine.has("project/.claude/skills/pdf"));
    machine.well(&["undo"]);
    assert_eq!(machine.read(PDF), GOOD, "nothing is lost");
}

#[test]
fn an_agent_that_reads_the_source_folder_does_not_stop_the_others() {
    let machine = Machine::new();
    machine.skill("project/skills/pdf", "1.0.0", "Read it.");
    let agents = "claude-code,openclaw";
    let args = ["install", "./skills/pdf", "--agent", agents, "--allow-experimental"];
    let installed = machine.well(&args);
    assert!(installed.stderr.contains("OpenClaw already reads pdf there"), "{installed}");
    assert!(machine.has(PDF), "{installed}");
}
