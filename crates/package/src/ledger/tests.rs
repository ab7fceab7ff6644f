use std::{ffi::OsString, fs, os::unix::fs::symlink};

use super::*;
use crate::{agents::Agent, tree::Tree};

/// A machine with one user and one project.
struct TestMachine {
    place: tempfile::TempDir,
}

impl TestMachine {
    fn new() -> Self {
        let machine = Self { place: tempfile::tempdir().unwrap() };
        fs::create_dir(machine.path("home")).unwrap();
        fs::create_dir(machine.path("project")).unwrap();
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        self.place.path().canonicalize().unwrap().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn skill(&self, folder: &str) {
        let name = folder.rsplit('/').next().unwrap();
        let text = format!("---\nname: {name}\ndescription: Does {name}.\n---\n# {name}\n");
        self.write(&format!("{folder}/SKILL.md"), &text);
    }

    fn link(&self, target: &str, link: &str) {
        let link = self.path(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(target, link).unwrap();
    }

    fn roots(&self) -> SearchRoots {
        let none = |_: &str| -> Option<OsString> { None };
        SearchRoots {
            agents: Agents::new(&self.path("home"), none),
            project: Some(self.path("project")),
            nested_folders: Vec::new(),
            installed_by_savoir: HashMap::new(),
        }
    }

    fn open(&self) -> Ledger {
        Ledger::open(&self.roots())
    }
}

fn names(ledger: &Ledger) -> Vec<&str> {
    ledger.entries().iter().map(LedgerEntry::name).collect()
}

fn only<'a>(ledger: &'a Ledger, name: &str) -> &'a LedgerEntry {
    let [entry] = ledger.named(name) else { panic!("{name}: {:?}", ledger.named(name)) };
    entry
}

fn ids(agents: &[&'static Agent]) -> Vec<&'static str> {
    agents.iter().map(|agent| agent.id).collect()
}

#[test]
fn symlinked_skill_is_one_entry() {
    let machine = TestMachine::new();
    machine.skill("home/.agents/skills/pdf");
    machine.skill("elsewhere/notes");
    machine.link("../../.agents/skills/pdf", "home/.claude/skills/pdf");
    machine.link("../../.claude/skills/pdf", "home/.roo/skills/pdf-again");
    machine.link("../../../elsewhere/notes", "home/.claude/skills/notes");
    machine.link("../../../elsewhere/notes", "home/.roo/skills/notes");
    machine.link("nowhere", "home/.claude/skills/broken");
    machine.write("home/.claude/skills/README.md", "no skill");
    machine.write("home/.claude/skills/.trash/old/SKILL.md", "");
    let ledger = machine.open();
    assert_eq!(names(&ledger), ["notes", "pdf"]);
    let pdf = only(&ledger, "pdf");
    assert_eq!(pdf.path(), machine.path("home/.agents/skills/pdf"));
    let links: Vec<Option<&Path>> = pdf.places().iter().map(SkillLocation::link).collect();
    let first = machine.path("home/.claude/skills/pdf");
    let second = machine.path("home/.roo/skills/pdf-again");
    assert_eq!(links, [None, Some(first.as_path()), Some(second.as_path())]);
    let seen = ids(&pdf.agents());
    assert!(["claude-code", "codex", "roo", "zed"].iter().all(|id| seen.contains(id)), "{seen:?}");
    assert!(!seen.contains(&"windsurf"), "{seen:?}");
    let notes = only(&ledger, "notes");
    assert_eq!(notes.path(), machine.path("elsewhere/notes"));
    assert_eq!(notes.places().len(), 2);
    let [warning] = ledger.warnings() else { panic!("{:?}", ledger.warnings()) };
    assert_eq!(warning.path, machine.path("home/.claude/skills/broken"));
    assert!(warning.reason.starts_with("this link leads nowhere"), "{warning}");
}

#[test]
fn two_paths_to_one_folder_are_one_entry() {
    let machine = TestMachine::new();
    machine.skill("home/.agents/skills/pdf");
    machine.link("../.agents/skills", "home/.claude/skills");
    let ledger = machine.open();
    let pdf = only(&ledger, "pdf");
    assert_eq!(pdf.path(), machine.path("home/.agents/skills/pdf"));
    let seen = ids(&pdf.agents());
    assert!(seen.contains(&"claude-code") && seen.contains(&"warp"), "{seen:?}");
}

#[test]
fn nested_category_folders_are_searched() {
    let machine = TestMachine::new();
    machine.skill("home/.hermes/skills/office/deep/pdf");
    machine.skill("home/.hermes/skills/mail");
    machine.skill("project/skills/@ada/notes");
    machine.write(
        "project/.clawhub/lock.json",
        r#"{"version": 1, "skills": {"@ada/notes": {"version": "1.2.0", "installedAt": 1}}}"#,
    );
    let ledger = machine.open();
    assert_eq!(names(&ledger), ["mail", "notes", "pdf"]);
    let Some(Origin::ClawHub(origin)) = only(&ledger, "notes").recorded() else { panic!() };
    assert_eq!((origin.owner.as_deref(), origin.slug.as_str()), (Some("ada"), "notes"));
}

/// GAIA's key files are beside its skills.
#[test]
fn gaia_files_beside_skills_are_not_skills() {
    let machine = TestMachine::new();
    machine.skill("home/.gaia/skills/notes");
    machine.write("home/.gaia/skills/skill-lock.json", "{}");
    machine.write("home/.gaia/skills/keys/ada.key", "secret");
    let ledger = machine.open();
    assert_eq!(names(&ledger), ["notes"]);
    assert_eq!(ids(&only(&ledger, "notes").agents()), ["gaia"]);
}

#[test]
fn same_name_twice_is_a_clash() {
    let machine = TestMachine::new();
    machine.skill("home/.claude/skills/pdf");
    machine.skill("project/.claude/skills/pdf");
    machine.skill("home/.agents/skills/mail");
    machine.skill("project/.agents/skills/mail");
    machine.write("project/.agents/skills/mail/more.md", "x");
    let ledger = machine.open();
    let clashes = ledger.clashes();
    let of = |name: &str, id: &str| {
        let mut found = clashes.iter().filter(|clash| clash.name == name);
        found.find(|clash| ids(&clash.agents).contains(&id)).unwrap()
    };
    let pdf = of("pdf", "claude-code");
    assert_eq!(pdf.entries[0].path(), machine.path("home/.claude/skills/pdf"));
    assert_eq!(pdf.outcome, ClashOutcome::FirstWins);
    assert!(pdf.is_identical().unwrap());
    let pdf = of("pdf", "opencode");
    assert_eq!(pdf.entries[0].path(), machine.path("project/.claude/skills/pdf"));
    let mail = of("mail", "warp");
    assert_eq!(mail.entries[0].path(), machine.path("project/.agents/skills/mail"));
    assert!(!mail.is_identical().unwrap());
    assert_eq!(of("mail", "codex").outcome, ClashOutcome::AllShown);
}

#[test]
fn missing_ledger_skills_are_reported() {
    let machine = TestMachine::new();
    machine.skill("project/.agents/skills/pdf");
    machine.skill("home/.agents/skills/mail");
    machine.skill("elsewhere/notes-of-ada");
    machine.link("../../../elsewhere/notes-of-ada", "project/.claude/skills/notes");
    let record = r#"{"source": "a/b", "sourceType": "github"}"#;
    machine.write(
        "project/skills-lock.json",
        &format!(
            r#"{{"version": 1, "skills": {{"pdf": {record}, "mail": {record}, "notes": {record}}}}}"#
        ),
    );
    machine.write(
        "home/.agents/.skill-lock.json",
        &format!(r#"{{"version": 3, "skills": {{"gone": {record}, "mail": {record}}}}}"#),
    );
    let ledger = machine.open();
    let (user, project) =
        (machine.path("home/.agents/.skill-lock.json"), machine.path("project/skills-lock.json"));
    let expected = [(user.as_path(), "gone"), (project.as_path(), "mail")];
    assert_eq!(ledger.missing(), expected, "a skill of the user is none of the project");
}

#[test]
fn broken_ledgers_are_warnings() {
    let machine = TestMachine::new();
    machine.skill("project/.agents/skills/pdf");
    machine.skill("project/.agents/skills/mail");
    machine.skill("home/.agents/skills/notes");
    machine.write(
        "project/skills-lock.json",
        r#"{"version": 1, "skills": {"pdf": {"source": 7}, "mail": {"source": "a/b", "sourceType": "github", "computedHash": "x"}}}"#,
    );
    machine.write("home/.agents/.skill-lock.json", r#"{"version": 2, "skills": {}}"#);
    machine.write("project/.clawhub/lock.json", "{");
    let ledger = machine.open();
    assert_eq!(names(&ledger), ["mail", "notes", "pdf"]);
    let warnings: Vec<String> = ledger.warnings().iter().map(ToString::to_string).collect();
    let root = machine.path("").display().to_string();
    let mut warnings: Vec<&str> =
        warnings.iter().filter_map(|warning| warning.strip_prefix(&root)).collect();
    warnings.sort_unstable();
    assert_eq!(
        warnings,
        [
            "home/.agents/.skill-lock.json: version 2 of this file is not known",
            "project/.clawhub/lock.json: it is not JSON: EOF while parsing an object at line 1 column 1",
            "project/skills-lock.json: `skills.pdf`: invalid type: integer `7`, expected a string",
        ]
    );
    assert!(only(&ledger, "pdf").recorded().is_none());
    assert_eq!(only(&ledger, "mail").recorded().map(Origin::word), Some("npx"));
    assert_eq!(only(&ledger, "mail").drift(), Drift::Modified);
}

const BY_GH: &str = "---\ndescription: Filters.\nmetadata:\n    github-path: plugins/test/filter\n    \
     github-pinned: v1.0.0\n    github-ref: refs/tags/v1.0.0\n    \
     github-repo: https://github.com/dotnet/skills\n    \
     github-tree-sha: 852508c90bde5e11124f12fd97ec579a1bd5a65d\n    version: 1.0.0\nname: filter\n---\n";

#[test]
fn gh_origin_is_read_from_frontmatter() {
    let machine = TestMachine::new();
    machine.write("project/.claude/skills/filter/SKILL.md", BY_GH);
    machine.write(
        "project/skills-lock.json",
        r#"{"version": 1, "skills": {"filter": {"source": "dotnet/skills", "sourceType": "github", "computedHash": "00"}}}"#,
    );
    let ledger = machine.open();
    let filter = only(&ledger, "filter");
    let details = filter.details().unwrap();
    assert_eq!(details.version.as_deref(), Some("1.0.0"));
    assert_eq!((details.origin.word(), details.claims[0].word()), ("gh", "npx"));
    assert_eq!(filter.drift(), Drift::Unknown(UnknownDrift::Rewritten));
    let adoption = filter.adoption().unwrap();
    assert_eq!(
        adoption.source,
        Source::Git {
            url: "https://github.com/dotnet/skills".into(),
            reference: Some("v1.0.0".into()),
            path: "plugins/test/filter".into(),
            tree_sha: Some("852508c90bde5e11124f12fd97ec579a1bd5a65d".into()),
        }
    );
    assert_eq!(adoption.integrity, Tree::read(filter.path()).unwrap().integrity());
}

#[test]
fn savoir_and_plain_origins() {
    let machine = TestMachine::new();
    machine.skill("project/.agents/skills/own");
    machine.skill("project/.agents/skills/plain");
    fs::create_dir_all(machine.path("project/.agents/skills/empty")).unwrap();
    let own = machine.path("project/.agents/skills/own");
    let mut roots = machine.roots();
    let integrity = Tree::read(&own).unwrap().integrity();
    roots.installed_by_savoir.insert(own.clone(), Some(integrity.clone()));
    let ledger = Ledger::open(&roots);
    assert_eq!(
        only(&ledger, "own").recorded(),
        Some(&Origin::Savoir { integrity: Some(integrity) })
    );
    assert_eq!(only(&ledger, "own").drift(), Drift::Unmodified);
    fs::write(own.join("more"), "x").unwrap();
    assert_eq!(only(&ledger, "own").drift(), Drift::Modified);
    let plain = only(&ledger, "plain");
    assert_eq!(plain.recorded(), None);
    assert_eq!(plain.details().unwrap().origin, Origin::Plain);
    assert_eq!(plain.drift(), Drift::Unknown(UnknownDrift::NotRecorded));
    assert_eq!(plain.adoption().unwrap().source, Source::Folder(plain.path().to_owned()));
    roots.installed_by_savoir.insert(own.clone(), None);
    let ledger = Ledger::open(&roots);
    assert_eq!(only(&ledger, "own").drift(), Drift::Unknown(UnknownDrift::Converted));
    let error = only(&ledger, "empty").details().unwrap_err();
    assert!(matches!(error, EntryError::NoSkillFile(_)), "{error}");
}

/// Writes a skill with file names that are hard to sort.
fn write_many(machine: &TestMachine, folder: &str) {
    machine.skill(folder);
    for path in ["README.md", "scripts/Run.sh", "scripts/run_all.sh", "a b.txt", "_x", "größe.md"]
    {
        machine.write(&format!("{folder}/{path}"), path);
    }
}

#[test]
fn npx_hash_detects_drift() {
    let machine = TestMachine::new();
    write_many(&machine, "project/.agents/skills/pdf");
    // The hash that `computeSkillFolderHash` of skills 1.5.18 computes for these files.
    machine.write(
        "project/skills-lock.json",
        r#"{"version": 1, "skills": {"PDF": {"source": "../pdf", "sourceType": "local",
            "computedHash": "1b47671640fbaf174a0c66d0d6eb8ca698b864333388bdf7a9da49a14d879f62"}}}"#,
    );
    let ledger = machine.open();
    let pdf = only(&ledger, "pdf");
    assert_eq!(pdf.drift(), Drift::Unmodified);
    machine.write("project/.agents/skills/pdf/__pycache__/x.pyc", "x");
    assert_eq!(pdf.drift(), Drift::Unmodified, "what use leaves behind is not a change");
    assert_eq!(pdf.adoption().unwrap().source, Source::Folder(machine.path("pdf")));
    machine.write("project/.agents/skills/pdf/_x", "y");
    assert_eq!(pdf.drift(), Drift::Modified);
    machine.write("project/.agents/skills/pdf/名前.md", "y");
    assert_eq!(pdf.drift(), Drift::Unknown(UnknownDrift::Order("名前.md".into())));
}

#[test]
fn git_tree_ids_with_and_without_modes() {
    use std::os::unix::fs::PermissionsExt as _;

    let machine = TestMachine::new();
    machine.skill("home/.agents/skills/pdf");
    machine.write("home/.agents/skills/pdf/run.sh", "#!/bin/sh\n");
    let program = machine.path("home/.agents/skills/pdf/run.sh");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let items = files::read(&machine.path("home/.agents/skills/pdf")).unwrap();
    let items: Vec<&files::Item> = items.iter().collect();
    let hash = git::tree(&items, git::FileModes::Kept);
    machine.write(
        "home/.agents/.skill-lock.json",
        &format!(
            r#"{{"version": 3, "skills": {{"pdf": {{"source": "a/b", "sourceType": "github",
                "sourceUrl": "https://github.com/a/b.git", "skillPath": "skills/pdf/SKILL.md",
                "skillFolderHash": "{hash}", "pinnedRef": "v1", "ref": "main"}}}}}}"#
        ),
    );
    let ledger = machine.open();
    let pdf = only(&ledger, "pdf");
    assert_eq!(pdf.drift(), Drift::Unmodified);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(pdf.drift(), Drift::Unmodified, "a download has no modes");
    let source = Source::Git {
        url: "https://github.com/a/b.git".into(),
        reference: Some("v1".into()),
        path: "skills/pdf".into(),
        tree_sha: Some(hash),
    };
    assert_eq!(pdf.adoption().unwrap().source, source);
    fs::write(&program, "#!/bin/bash\n").unwrap();
    assert_eq!(pdf.drift(), Drift::Modified);
}

#[test]
fn clawhub_fingerprints() {
    let machine = TestMachine::new();
    write_many(&machine, "project/skills/pdf");
    let origin = |fingerprint: &str| {
        format!(
            r#"{{"version": 1, "registry": "https://clawhub.ai", "slug": "pdf",
                "installedVersion": "1.2.0", "installedAt": 1, "fingerprint": "{fingerprint}"}}"#
        )
    };
    // The hash that `hashSkillFiles` of clawhub 0.23.3 computes for these files.
    machine.write(
        "project/skills/pdf/.clawhub/origin.json",
        &origin("197533d0306072a09738a833b75c946c487b06961258f51079ebf9c9265302d5"),
    );
    machine.write(
        "project/.clawhub/lock.json",
        r#"{"version": 1, "skills": {"pdf": {"version": "1.2.0", "installedAt": 1, "pinned": true}}}"#,
    );
    let ledger = machine.open();
    let pdf = only(&ledger, "pdf");
    let details = pdf.details().unwrap();
    let Origin::ClawHub(found) = &details.origin else { panic!("{details:?}") };
    assert_eq!(found.registry.as_deref(), Some("https://clawhub.ai"));
    assert!(found.pinned && details.claims.is_empty());
    assert_eq!(details.version.as_deref(), Some("1.2.0"));
    assert_eq!(pdf.drift(), Drift::Unmodified);
    let before = pdf.adoption().unwrap().integrity;
    machine.write("project/skills/pdf/.clawhub/origin.json", &origin("00"));
    assert_eq!(pdf.adoption().unwrap().integrity, before, "its own file is not part of the skill");
    assert_eq!(pdf.drift(), Drift::Modified);
    machine.write("project/skills/pdf/.gitignore", "*.md");
    assert_eq!(pdf.drift(), Drift::Unknown(UnknownDrift::LeftOut));
    machine.write("project/skills/pdf/.clawhub/origin.json", "[]");
    assert!(matches!(pdf.drift(), Drift::Unknown(UnknownDrift::Unreadable(_))));
    assert_eq!(pdf.details().unwrap().warnings.len(), 1);
}
