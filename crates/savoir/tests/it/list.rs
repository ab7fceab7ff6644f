//! Tests `list`, `status` and `info` in a temporary home and project.

use std::{fs, os::unix::fs::symlink};

use savoir_package::Tree;
use serde_json::{Value, json};

use crate::support::{Sandbox, Transcript};

/// A home with one user and one project.
struct TestEnv {
    sandbox: Sandbox,
}

impl TestEnv {
    fn new() -> Self {
        let test_env = Self { sandbox: Sandbox::new() };
        for folder in ["home", "project/.git"] {
            fs::create_dir_all(test_env.sandbox.path(folder)).expect("a folder");
        }
        test_env
    }

    fn run(&self, args: &[&str]) -> Transcript {
        self.sandbox.run_as("home", "project", args)
    }

    fn write(&self, path: &str, text: &str) {
        self.sandbox.write(path, text);
    }

    fn skill(&self, folder: &str) {
        let name = folder.rsplit('/').next().expect("a name");
        let text = format!("---\nname: {name}\ndescription: Does {name}.\n---\n# {name}\n");
        self.write(&format!("{folder}/SKILL.md"), &text);
    }

    fn link(&self, target: &str, link: &str) {
        let link = self.sandbox.path(link);
        fs::create_dir_all(link.parent().expect("a folder")).expect("folders");
        symlink(target, link).expect("a link");
    }

    /// Creates a skill of each origin.
    fn with_all() -> Self {
        let test_env = Self::new();
        test_env.skill("home/.agents/skills/pdf");
        test_env.link("../../.agents/skills/pdf", "home/.claude/skills/pdf");
        test_env.write(
            "home/.agents/.skill-lock.json",
            r#"{"version": 3, "skills": {"pdf": {"source": "ada/skills", "sourceType": "github",
                "skillFolderHash": "0000000000000000000000000000000000000000", "ref": "main"}}}"#,
        );
        test_env.write("project/.claude/skills/filter/SKILL.md", BY_GH);
        test_env.skill("project/skills/weather");
        test_env.write(
            "project/skills/weather/.clawhub/origin.json",
            r#"{"version": 1, "registry": "https://clawhub.ai", "slug": "weather",
                "ownerHandle": "bob", "installedVersion": "1.2.0", "installedAt": 1}"#,
        );
        test_env.write(
            "project/.clawhub/lock.json",
            r#"{"version": 1, "skills": {"weather": {"version": "1.2.0", "installedAt": 1}}}"#,
        );
        test_env.write("home/.openclaw/openclaw.json", "{}");
        test_env.skill("home/.claude/skills/notes");
        test_env
    }

    /// Writes a lock of Savoir with one skill.
    fn lock(&self, place: &str, name: &str, integrity: &str, agents: &str) {
        self.write(
            &format!("{place}/savoir.lock"),
            &format!(
                "version = 1\norder = [\"{name}\"]\n\n[[skill]]\nname = \"{name}\"\nversion = \"1.0.0\"\n\
                 source = \"registry+https://skills.example.com\"\nintegrity = \"{integrity}\"\n\
                 tier = \"community\"\nsigner = \"Acme\"\nagents = [{agents}]\n"
            ),
        );
    }

    fn integrity(&self, folder: &str) -> String {
        Tree::read(&self.sandbox.path(folder)).expect("a skill").integrity()
    }
}

const BY_GH: &str = "---\nname: filter\ndescription: Filters.\nmetadata:\n  \
     github-ref: refs/tags/v1.0.0\n  github-repo: https://github.com/dotnet/skills\n  \
     version: 1.0.0\n---\n# Filter\n";

fn names(skills: &Value) -> Vec<&str> {
    let skills = skills["skills"].as_array().expect("skills");
    skills.iter().map(|skill| skill["name"].as_str().expect("a name")).collect()
}

/// The words of every line.
fn words(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn skills_of_every_installer_are_listed() {
    let run = TestEnv::with_all().run(&["list"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run}");
    let lines = words(&run.stdout);
    assert_eq!(lines[0], ["NAME", "VERSION", "TRUST", "SOURCE", "SCOPE", "AGENTS"]);
    let source = "dotnet/skills@v1.0.0";
    assert_eq!(lines[1], ["filter", "1.0.0", "unsigned", source, "project", "claude-code"]);
    assert_eq!(lines[2], ["notes", "-", "unsigned", "-", "user", "claude-code"]);
    let agents = ["claude-code,", "openclaw"];
    assert_eq!(lines[3], ["pdf", "-", "unsigned", "ada/skills@main", "user", agents[0], agents[1]]);
    assert_eq!(lines[4], ["weather", "1.2.0", "unsigned", "@bob/weather", "project", "openclaw"]);
    assert_eq!(lines.len(), 5, "{run}");
}

#[test]
fn the_long_list_reads_every_skill() {
    let run = TestEnv::with_all().run(&["list", "--long"]);
    let lines = words(&run.stdout);
    assert_eq!(lines[0], ["NAME", "VERSION", "STATE", "ORIGIN", "SOURCE", "AGENTS", "FOLDER"]);
    assert_eq!(lines[1][..5], ["filter", "1.0.0", "unknown", "gh", "dotnet/skills@v1.0.0"]);
    assert_eq!(lines[2][..5], ["notes", "-", "unknown", "plain", "-"]);
    assert_eq!(lines[3][..5], ["pdf", "-", "modified", "npx", "ada/skills@main"]);
    assert_eq!(lines[4][..5], ["weather", "1.2.0", "unknown", "clawhub", "@bob/weather"]);
}

#[test]
fn lists_are_filtered() {
    let test_env = TestEnv::with_all();
    let list = |args: &[&str]| {
        let run = test_env.run(&[&["list", "--json"], args].concat());
        assert_eq!(run.code, 0, "{run}");
        names(&run.json()).join(" ")
    };
    assert_eq!(list(&[]), "filter notes pdf weather");
    assert_eq!(list(&["--agent", "codex"]), "pdf");
    assert_eq!(list(&["--agent", "codex,openclaw"]), "pdf weather");
    assert_eq!(list(&["--scope", "project"]), "filter weather");
    assert_eq!(list(&["--scope", "user"]), "notes pdf");
    for (origin, found) in [
        ("gh", "filter"),
        ("plain", "notes"),
        ("npx", "pdf"),
        ("clawhub", "weather"),
        ("savoir", ""),
    ] {
        assert_eq!(list(&["--origin", origin]), found);
    }
    assert_eq!(list(&["pdf", "notes"]), "pdf notes");
    assert_eq!(test_env.run(&["list", "--origin", "savoir"]).stdout, "no skills\n");
    let elsewhere = test_env.sandbox.path("home/.claude");
    let run = test_env.run(&["list", "--project", elsewhere.to_str().expect("a path")]);
    assert!(!run.stdout.contains("filter") && run.stdout.contains("notes"), "{run}");
}

#[test]
fn invalid_filter_values_are_rejected() {
    let test_env = TestEnv::with_all();
    let run = test_env.run(&["list", "pd"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run}");
    assert_eq!(run.stderr, "error: there is no skill `pd`\nhint: did you mean `pdf`?\n");
    let run = test_env.run(&["list", "--agent", "claud-code"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("did you mean `claude-code`?"), "{run}");
    let run = test_env.run(&["status", "--project", "nowhere"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("hint: --project takes the folder of a project"), "{run}");
    assert_eq!(test_env.run(&["info", "nothing-like-it"]).code, 2);
}

#[test]
fn json_has_details_after_reading_skills() {
    let test_env = TestEnv::with_all();
    let quick = test_env.run(&["list", "pdf", "--json"]).json();
    let pdf = &quick["skills"][0];
    assert_eq!(pdf["origin"]["by"], "npx");
    assert_eq!(pdf["origin"]["source"], "ada/skills");
    assert_eq!(
        (&pdf["scopes"], &pdf["in_use"]),
        (&json!(["user"]), &json!(["claude-code", "openclaw"]))
    );
    assert!(pdf["agents"].as_array().is_some_and(|agents| agents.contains(&json!("codex"))));
    assert_eq!(pdf["links"].as_array().map(Vec::len), Some(1));
    assert_eq!(pdf.get("state"), None);
    let long = test_env.run(&["list", "filter", "--long", "--json"]).json();
    let filter = &long["skills"][0];
    assert_eq!(filter["origin"]["by"], "gh");
    assert_eq!((&filter["version"], &filter["state"]), (&json!("1.0.0"), &json!("unknown")));
    assert!(filter["why"].as_str().is_some_and(|why| why.contains("rewrote the frontmatter")));
}

#[test]
fn a_broken_ledger_is_a_warning() {
    let test_env = TestEnv::with_all();
    test_env.write("project/skills-lock.json", "{");
    test_env.write("project/savoir.lock", "version = 1\nskill = 7\n");
    test_env.link("nowhere", "home/.claude/skills/broken");
    let run = test_env.run(&["list", "--json"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(names(&run.json()), ["filter", "notes", "pdf", "weather"]);
    let warnings = run.json()["warnings"].as_array().expect("warnings").len();
    assert_eq!((warnings, run.stderr.lines().count()), (3, 3), "{run}");
    assert!(run.stderr.lines().all(|line| line.starts_with("warning: ")), "{run}");
    assert!(run.stderr.contains("project/skills-lock.json: it is not JSON"), "{run}");
    assert_eq!(test_env.run(&["status"]).code, 0);
    assert_eq!(test_env.run(&["status", "notes", "--check"]).code, 1, "a ledger is broken");
}

#[test]
fn status_lists_modified_skills() {
    let test_env = TestEnv::with_all();
    test_env.skill("project/.claude/skills/notes");
    test_env.write("project/.claude/skills/notes/more.md", "more");
    fs::create_dir_all(test_env.sandbox.path("project/.claude/skills/empty")).expect("a folder");
    test_env.write(
        "project/skills-lock.json",
        r#"{"version": 1, "skills": {"gone": {"source": "a/b", "sourceType": "github"}}}"#,
    );
    let run = test_env.run(&["status"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run}");
    let empty = test_env.sandbox.path("project/.claude/skills/empty");
    let expected = format!(
        "modified since installation\n  pdf (npx)  ~/.agents/skills/pdf\n\n\
         missing\n  gone  listed in skills-lock.json\n\n\
         broken\n  {} has no SKILL.md\n\n\
         duplicates\n  notes  ~/.claude/skills/notes hides .claude/skills/notes in claude-code; \
         different files\n\n\
         unknown whether modified\n  \
         filter: `gh skill` rewrote the frontmatter, so that its hash is not that of the files\n  \
         notes, weather: no hash was written down when it was installed\n\n\
         6 skills: 1 modified, 4 unknown, 1 broken; 1 missing\n",
        empty.canonicalize().expect("a folder").display()
    );
    assert_eq!(run.stdout, expected);
    assert_eq!(test_env.run(&["status", "--check"]).code, 1);
    assert_eq!(test_env.run(&["status", "filter", "--check"]).code, 0);
    let status = test_env.run(&["status", "--json"]).json();
    assert_eq!(status["summary"]["broken"], 1);
    let clash = &status["clashes"][0];
    assert_eq!((&clash["identical"], &clash["name"]), (&json!(false), &json!("notes")));
    assert_eq!(status["missing"][0]["name"], "gone");
}

#[test]
fn locked_skills_are_compared_with_the_lock() {
    let test_env = TestEnv::new();
    test_env.skill("project/.agents/skills/maps");
    test_env.skill("project/.claude/skills/maps");
    let integrity = test_env.integrity("project/.agents/skills/maps");
    test_env.lock("project", "maps", &integrity, "\"claude-code\", \"zed\", \"roo\"");
    test_env.skill("home/.claude/skills/mail");
    let integrity = test_env.integrity("home/.claude/skills/mail");
    test_env.lock("home/.config/savoir", "mail", &integrity, "\"claude-code\"");
    let run = test_env.run(&["status"]);
    assert!(
        run.stdout.contains("missing\n  maps  .roo/skills/maps, listed in savoir.lock\n"),
        "{run}"
    );
    assert!(run.stdout.ends_with("2 skills: 2 unmodified; 1 missing\n"), "{run}");
    // No lockfile contains the skill, so both changed copies are listed as such.
    test_env.write("project/.claude/skills/maps/more.md", "x");
    test_env.write("project/.agents/skills/maps/more.md", "x");
    let long = test_env.run(&["list", "maps", "--long", "--json"]).json();
    let states = [&long["skills"][0]["state"], &long["skills"][1]["state"]];
    assert_eq!(states, [&json!("modified"), &json!("modified")], "{long:#}");
    assert_eq!(long["skills"][0]["source"], "registry+https://skills.example.com");
    let info = test_env.run(&["info", "mail"]).stdout;
    assert!(info.contains("locked by      ~/.config/savoir/savoir.lock\n"), "{info}");
    assert!(info.contains("tier           community\nsigned by      Acme\n"), "{info}");
    test_env.lock("project", "maps", &integrity, "\"claude-code\", \"nobody\"");
    let run = test_env.run(&["list"]);
    assert!(run.stderr.contains("savoir.lock: unknown agent `nobody`"), "{run}");
}

#[test]
fn info_shows_all_details() {
    let test_env = TestEnv::with_all();
    test_env.write("project/.claude/skills/filter/notes.txt", "four");
    let run = test_env.run(&["info", "filter"]);
    assert_eq!(run.code, 0, "{run}");
    let integrity = test_env.integrity("project/.claude/skills/filter");
    for line in [
        "name           filter",
        "version        1.0.0",
        "folder         .claude/skills/filter",
        "origin         gh",
        "source         dotnet/skills@v1.0.0",
        &format!("integrity      {integrity}"),
        "               notes.txt  4 bytes",
    ] {
        assert!(run.stdout.lines().any(|shown| shown == line), "{line}: {run}");
    }
    assert_eq!(test_env.run(&["info", ".claude/skills/filter"]).stdout, run.stdout);
    assert_eq!(test_env.run(&["info", ".claude/skills/filter/SKILL.md"]).stdout, run.stdout);
    let json = test_env.run(&["info", "filter", "--json"]).json();
    assert_eq!(json["skills"][0]["integrity"], integrity.as_str());
    assert_eq!(json["skills"][0]["files"][1], json!({ "path": "notes.txt", "bytes": 4 }));
}

#[test]
fn info_shows_which_copy_takes_precedence() {
    let test_env = TestEnv::new();
    test_env.skill("home/.claude/skills/notes");
    test_env.skill("project/.claude/skills/notes");
    let info = test_env.run(&["info", "notes"]).stdout;
    assert!(info.contains("hides          .claude/skills/notes in claude-code\n"), "{info}");
    assert!(info.contains("hidden by      ~/.claude/skills/notes in claude-code\n"), "{info}");
    let json = test_env.run(&["info", "notes", "--json"]).json();
    assert_eq!(json["skills"][0]["clashes"][0]["outcome"], "first-wins");
}

#[test]
fn info_of_a_skill_outside_agent_folders() {
    let test_env = TestEnv::new();
    test_env.write(
        "project/drafts/maps/SKILL.md",
        "---\nname: maps\ndescription: Draws maps.\nversion: 1.0.0\nsecurity_tier: community\n\
         permissions: [network:read:example.com]\ntools: []\n---\n# Maps\n",
    );
    let run = test_env.run(&["info", "drafts/maps"]);
    // It has no author, license and tools.
    assert_eq!(run.code, 1, "{run}");
    for line in [
        "agents         no agent sees it",
        "claimed tier   community",
        "permissions    network:read:example.com",
        "state          unknown: no hash was written down when it was installed",
    ] {
        assert!(run.stdout.lines().any(|shown| shown == line), "{line}: {run}");
    }
    fs::create_dir_all(test_env.sandbox.path("project/drafts/empty")).expect("a folder");
    let run = test_env.run(&["info", "drafts/empty"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stdout.contains("state          broken: "), "{run}");
}

#[test]
fn names_are_escaped_on_a_terminal() {
    let test_env = TestEnv::new();
    test_env.skill("home/.claude/skills/evil\u{1b}[31m\nname");
    for command in ["list", "status"] {
        let run = test_env.run(&[command]);
        assert!(!run.stdout.contains('\u{1b}'), "{run}");
        assert!(run.stdout.contains("evil\\u{1b}[31m\\nname"), "{run}");
    }
}

#[test]
fn list_is_empty_without_skills() {
    let test_env = TestEnv::new();
    assert_eq!(test_env.run(&["list"]).stdout, "no skills\n");
    assert_eq!(
        test_env.run(&["status", "--check"]).to_string(),
        "exit code 0\n----- stdout -----\n0 skills\n"
    );
    // The home folder is not a project.
    test_env.skill("home/.claude/skills/notes");
    let run = test_env.sandbox.run_as("home", "home", &["list", "--json"]);
    assert_eq!(run.json()["skills"][0]["scopes"], json!(["user"]));
}

#[test]
fn sources_of_the_repository_are_not_listed_as_installed() {
    let test_env = TestEnv::new();
    for name in ["alpha", "beta"] {
        test_env.skill(&format!("project/skills/{name}"));
    }
    let list = test_env.run(&["list"]);
    assert_eq!(list.stdout, "no skills\n", "{list}");
    let install = ["install", "./skills/alpha", "-a", "claude-code", "-y"];
    assert_eq!(test_env.run(&install).code, 0);
    let list = test_env.run(&["list"]);
    assert_eq!(list.stdout.lines().count(), 2, "{list}");
    assert!(list.stdout.contains("alpha") && list.stdout.contains("claude-code"), "{list}");
    let status = test_env.run(&["status"]);
    assert!(status.stdout.contains("1 skill"), "{status}");
    assert!(!status.stdout.contains("unknown"), "{status}");
    // A skill that is named is shown wherever it is.
    assert!(test_env.run(&["list", "beta"]).stdout.contains("beta"));
    // OpenClaw reads the folder.
    fs::create_dir_all(test_env.sandbox.path("home/.openclaw")).expect("a folder");
    assert!(test_env.run(&["list"]).stdout.contains("beta"));
}
