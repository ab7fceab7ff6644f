//! Tests that skills of the real tools are adopted, and that the tools still recognize them.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _};

use savoir_package::{
    Agent, Agents, SkillSet, Tree,
    install::{
        CheckedSkill, FetchReason, FetchedSkill, InstallOptions, PlannedChange, UserEdits,
        updates::{self, Availability},
    },
    lock::Lock,
    manifest::{Scope, SkillRequirement},
    source::{Fetcher, OfferedSkill, Settings},
    trust::TrustStore,
};
use serde_json::Value;

use super::{LedgerEntry, Path, PathBuf, Registry, TestMachine};

impl TestMachine {
    fn skill_set(&self) -> SkillSet {
        let agents = Agents::new(&self.path("home"), |_| None);
        SkillSet::new(&self.path("project"), Scope::Project, agents, self.path("data"))
    }

    /// Creates a fetcher whose git finds the test repository under its HTTPS address.
    fn fetcher(&self) -> Fetcher {
        let script = format!(
            "#!/bin/sh\nexport HOME='{}' GIT_ALLOW_PROTOCOL=file\nexec git \"$@\"\n",
            self.path("home").display()
        );
        let git = self.path("git.sh");
        fs::write(&git, script).unwrap();
        fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
        let mut settings = Settings::new(self.path("cache"));
        settings.git = git;
        Fetcher::new(settings)
    }

    /// Adopts everything, and checks that neither skills nor ledgers changed.
    async fn adopt(&self, fetcher: Option<&Fetcher>) -> Vec<PlannedChange> {
        let before = self.project();
        let ledger = self.open();
        let entries: Vec<&LedgerEntry> = ledger.entries().iter().collect();
        let trust = TrustStore::default();
        let found = self.skill_set().find_adoptable(&entries, fetcher, &trust).await.unwrap();
        let plan = self.skill_set().adopt(&found).unwrap();
        self.skill_set().apply(&plan, &|| ()).unwrap();
        let mut after = self.project();
        after.retain(|path, _| !path.ends_with("savoir.toml") && !path.ends_with("savoir.lock"));
        assert_eq!(after, before);
        plan.changes().to_vec()
    }

    fn problems(&self) -> Vec<String> {
        let problems = self.skill_set().verify(&TrustStore::default()).unwrap();
        problems.iter().map(ToString::to_string).collect()
    }

    fn locked(&self) -> Lock {
        Lock::read(&self.path("project/savoir.lock")).unwrap()
    }

    /// Returns the output of `skills list` without its order.
    fn listed(&self) -> Vec<(String, String)> {
        let text = self.run("skills", &["list", "--json"]);
        let listed: Vec<Value> = serde_json::from_str(&text).unwrap();
        let text = |skill: &Value, key: &str| skill[key].as_str().unwrap().to_owned();
        let mut listed: Vec<_> =
            listed.iter().map(|skill| (text(skill, "name"), text(skill, "path"))).collect();
        listed.sort();
        listed
    }

    /// Returns every file and link of the project.
    fn project(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        walk(&self.path("project"), &mut found);
        found
    }
}

fn walk(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            found.insert(path, target.into_os_string().into_encoded_bytes());
        } else if path.is_dir() {
            walk(&path, found);
        } else {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
}

#[tokio::test]
async fn skills_of_npx_are_adopted() {
    let Some(machine) = TestMachine::new("npx skills, adopted") else { return };
    machine.publish();
    let first = machine.git(&["rev-parse", "HEAD"]);
    let agents = ["-y", "-a", "claude-code", "-a", "codex"];
    machine.run("skills", &[&["add", "https://gitlab.com/ada/papers"][..], &agents].concat());
    let listed = machine.listed();
    assert_eq!(listed.len(), 1);
    let fetcher = machine.fetcher();
    let changes = machine.adopt(Some(&fetcher)).await;
    assert!(
        matches!(&changes[..], [PlannedChange::Adopted { name, .. }] if name == "pdf"),
        "{changes:?}"
    );
    let pdf = &machine.locked().skills["pdf"];
    let expected = format!("git+https://gitlab.com/ada/papers.git#{first}:skills/pdf");
    assert_eq!(pdf.source.to_string(), expected);
    assert_eq!(pdf.agents, ["claude-code", "universal"]);
    assert_eq!(machine.problems(), [""; 0]);
    assert_eq!(machine.listed(), listed, "the tool knows it as before");

    fs::write(machine.path("source/skills/pdf/more.md"), "more").unwrap();
    machine.commit();
    let (skill_set, state) = (machine.skill_set(), machine.skill_set().state().unwrap());
    let found = updates::check_sources(&fetcher, skill_set.root(), &state).await;
    let Availability::Newer { place, .. } = found["pdf"].clone() else { panic!("{found:?}") };
    let offer =
        OfferedSkill { name: "pdf".into(), description: None, source: place, content: None };
    update(&machine, &fetcher, &offer).await;
    for folder in [".agents", ".claude"] {
        let file = machine.path("project").join(folder).join("skills/pdf/more.md");
        assert_eq!(fs::read_to_string(file).unwrap(), "more");
    }
    assert_eq!(machine.problems(), [""; 0]);
    assert_eq!(machine.listed(), listed);

    machine.run("skills", &["remove", "pdf", "-y"]);
    assert!(!machine.path("project/.agents/skills/pdf").exists());
    assert!(!machine.problems().is_empty(), "others took it away");
    let plan =
        skill_set.sync(UserEdits::Keep, &mut |_, _| Err("it is in the store".into())).unwrap();
    skill_set.apply(&plan, &|| ()).unwrap();
    assert_eq!(machine.problems(), [""; 0]);
    assert!(machine.listed().iter().any(|(name, _)| name == "pdf"));
}

async fn update(machine: &TestMachine, fetcher: &Fetcher, offer: &OfferedSkill) {
    let skill_set = machine.skill_set();
    let arrival = FetchedSkill {
        tree: fetcher.fetch(offer).await.unwrap(),
        called: "pdf".into(),
        source: savoir_package::install::locked_source(&offer.source, skill_set.root()).unwrap(),
        why: FetchReason::Update,
        counted: None,
    };
    let ready = [CheckedSkill::check(arrival, &TrustStore::default()).unwrap()];
    let plan = skill_set.install(&ready, &InstallOptions::default()).unwrap();
    skill_set.apply(&plan, &|| ()).unwrap();
}

#[tokio::test]
async fn skills_that_npx_copied_from_folder_are_adopted() {
    let Some(machine) = TestMachine::new("npx skills, copies adopted") else { return };
    let agents = ["-y", "--copy", "-a", "claude-code", "-a", "roo"];
    machine.run("skills", &[&["add", "../source/skills/pdf"][..], &agents].concat());
    let listed = machine.listed();
    machine.adopt(None).await;
    let pdf = &machine.locked().skills["pdf"];
    assert_eq!(pdf.source.to_string(), "path+../source/skills/pdf");
    assert_eq!(pdf.agents, ["claude-code", "roo"]);
    assert_eq!(machine.problems(), [""; 0]);
    assert_eq!(machine.listed(), listed);
}

fn install(machine: &TestMachine, agents: &[&str]) {
    let tree = Tree::read(&machine.path("source/skills/pdf")).unwrap();
    let arrival = FetchedSkill {
        tree,
        called: "pdf".into(),
        source: "path+../source/skills/pdf".parse().unwrap(),
        why: FetchReason::Requested(SkillRequirement::Path("../source/skills/pdf".into())),
        counted: None,
    };
    let ready = [CheckedSkill::check(arrival, &TrustStore::default()).unwrap()];
    let agents = agents.iter().map(|id| Agent::by_id(id).unwrap()).collect();
    let how = InstallOptions { agents, ..InstallOptions::default() };
    let skill_set = machine.skill_set();
    skill_set.apply(&skill_set.install(&ready, &how).unwrap(), &|| ()).unwrap();
}

#[test]
fn npx_skills_lists_what_savoir_installed() {
    let Some(machine) = TestMachine::new("npx skills, a list") else { return };
    install(&machine, &["claude-code", "codex"]);
    let listed = machine.listed();
    assert!(!listed.is_empty() && listed.iter().all(|(name, _)| name == "pdf"), "{listed:?}");
    let text = machine.run("skills", &["list", "--json"]);
    assert!(text.contains("Claude Code"), "{text}");
    assert_eq!(machine.problems(), [""; 0]);
}

#[tokio::test]
async fn skills_of_clawhub_are_adopted() {
    let Some(machine) = TestMachine::new("clawhub, adopted") else { return };
    let registry = Registry::start(&machine);
    let workdir = machine.path("project");
    let options = ["--registry", &registry.address, "--workdir", workdir.to_str().unwrap()];
    machine.run("clawhub", &[&options[..], &["install", "pdf"]].concat());
    let listed = machine.run("clawhub", &[&options[..], &["list"]].concat());
    assert!(listed.contains("pdf") && listed.contains("1.2.0"), "{listed}");
    machine.adopt(None).await;
    let pdf = &machine.locked().skills["pdf"];
    assert_eq!(pdf.source.to_string(), "adopted+./skills/pdf#clawhub:pdf@1.2.0");
    assert_eq!(
        (pdf.version.to_string().as_str(), &pdf.agents[..]),
        ("1.2.0", &["openclaw".to_owned()][..])
    );
    assert_eq!(machine.problems(), [""; 0]);
    assert_eq!(machine.run("clawhub", &[&options[..], &["list"]].concat()), listed);
}

#[test]
fn clawhub_lists_what_savoir_installed() {
    let Some(machine) = TestMachine::new("clawhub, a list") else { return };
    install(&machine, &["openclaw"]);
    let workdir = machine.path("project");
    let listed = machine.run("clawhub", &["--workdir", workdir.to_str().unwrap(), "list"]);
    assert!(listed.contains("pdf"), "{listed}");
    assert_eq!(machine.problems(), [""; 0]);
}
