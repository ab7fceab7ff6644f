//! A temporary project with a user, and skills for it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use savoir_package::{
    Agent, Agents, File, InstallFailure, SkillSet, Tree,
    install::{
        CheckedSkill, FetchReason, FetchedSkill, InstallOptions, InstallPlan, PlannedChange,
        UserEdits,
    },
    manifest::{Scope, SkillRequirement},
    trust::{Role, SigningKey, TrustStore, TrustedKey, sign},
};

/// A project, the user's home folder and the user's data folder.
pub(crate) struct TestProject {
    place: PathBuf,
    _temporary: Option<tempfile::TempDir>,
    key: SigningKey,
}

impl TestProject {
    pub(crate) fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path().canonicalize().unwrap();
        Self { _temporary: Some(temporary), ..Self::at(&place) }
    }

    /// Uses a folder that the caller manages.
    pub(crate) fn at(place: &Path) -> Self {
        for folder in ["project", "home"] {
            fs::create_dir_all(place.join(folder)).unwrap();
        }
        let key = SigningKey::generate().unwrap();
        Self { place: place.to_owned(), _temporary: None, key }
    }

    pub(crate) fn skill_set(&self) -> SkillSet {
        self.skill_set_of(Scope::Project, &self.place.join("project"))
    }

    pub(crate) fn skill_set_of(&self, scope: Scope, root: &Path) -> SkillSet {
        let agents = Agents::new(&self.place.join("home"), |_| None);
        SkillSet::new(root, scope, agents, self.data())
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.place.join("data")
    }

    /// Returns a path in the project.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.place.join("project").join(path)
    }

    pub(crate) fn home(&self, path: &str) -> PathBuf {
        self.place.join("home").join(path)
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Returns every file of the project with its bytes, and every folder.
    pub(crate) fn everything(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut found = BTreeMap::new();
        walk(&self.place.join("project"), &mut found);
        found
    }

    /// Trusts the key of the test.
    pub(crate) fn trust(&self) -> TrustStore {
        let path = self.place.join("trusted-keys.json");
        let key = self.key.public_key();
        let key =
            TrustedKey { key, publisher: "acme".into(), role: Role::Publisher, namespaces: None };
        TrustStore::trust(&path, &key).unwrap();
        TrustStore::read(&path).unwrap()
    }

    /// Returns a skill with a trusted signature.
    pub(crate) fn signed(&self, name: &str, version: &str, tree: &Tree) -> Tree {
        let record = sign(tree, name, version, "acme", &self.key);
        with(tree, "signature.json", record)
    }

    pub(crate) fn ready(&self, tree: Tree, why: FetchReason) -> CheckedSkill {
        let source = "path+./source".parse().unwrap();
        let arrival = FetchedSkill { tree, called: "called".into(), source, why, counted: None };
        CheckedSkill::check(arrival, &self.trust()).unwrap()
    }

    pub(crate) fn plan(
        &self,
        ready: &[CheckedSkill],
        agents: &[&str],
    ) -> Result<InstallPlan, InstallFailure> {
        self.skill_set().install(ready, &install(agents))
    }

    /// Installs skills as requested by the user; returns the reported changes.
    pub(crate) fn install(&self, trees: Vec<Tree>, agents: &[&str]) -> Vec<PlannedChange> {
        let ready: Vec<CheckedSkill> =
            trees.into_iter().map(|tree| self.ready(tree, asked())).collect();
        self.apply(&self.plan(&ready, agents).unwrap())
    }

    pub(crate) fn apply(&self, plan: &InstallPlan) -> Vec<PlannedChange> {
        self.skill_set().apply(plan, &|| ()).unwrap();
        plan.changes().to_vec()
    }

    pub(crate) fn sync(&self, edits: UserEdits) -> InstallPlan {
        self.skill_set().sync(edits, &mut |_, _| Err("there is no network".into())).unwrap()
    }

    pub(crate) fn sync_plan(&self) -> Result<InstallPlan, InstallFailure> {
        self.skill_set().sync(UserEdits::Keep, &mut |_, _| Err("there is no network".into()))
    }

    /// Returns the verification problems as text.
    pub(crate) fn problems(&self) -> Vec<String> {
        let problems = self.skill_set().verify(&self.trust()).unwrap();
        let root = format!("{}/", self.path("").display()).replace("//", "/");
        problems.iter().map(|problem| problem.to_string().replace(&root, "")).collect()
    }
}

fn walk(folder: &Path, found: &mut BTreeMap<PathBuf, Option<Vec<u8>>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, found);
            found.insert(path, None);
        } else {
            found.insert(path.clone(), Some(fs::read(path).unwrap()));
        }
    }
}

pub(crate) fn asked() -> FetchReason {
    FetchReason::Requested(SkillRequirement::Path("./source".into()))
}

pub(crate) fn install(agents: &[&str]) -> InstallOptions {
    let agents = agents.iter().map(|id| Agent::by_id(id).unwrap()).collect();
    InstallOptions { agents, ..InstallOptions::default() }
}

/// Creates a skill in the base format.
pub(crate) fn skill(name: &str, version: &str, body: &str) -> Tree {
    let text = format!(
        "---\nname: {name}\ndescription: Does {name}. Use in tests.\nmetadata:\n  version: \
         \"{version}\"\n---\n{body}"
    );
    let mut tree = Tree::default();
    add(&mut tree, "SKILL.md", text.into_bytes());
    add(&mut tree, "scripts/run.sh", b"#!/bin/sh\necho hello\n".to_vec());
    tree
}

/// Creates a GAIA skill with permissions and dependencies.
pub(crate) fn gaia(name: &str, version: &str, permissions: &[&str], needs: &[&str]) -> Tree {
    let permissions = [&["network:read:example.com"], permissions].concat().join(", ");
    let needs: Vec<String> = needs.iter().map(|need| format!("{{name: {need}}}")).collect();
    let needs = needs.join(", ");
    let text = format!(
        "---\nname: {name}\nversion: {version}\ndescription: Does {name}. Use in tests.\nauthor: \
         acme\nlicense: MIT\npermissions: [{permissions}]\nrequirements:\n  skills: [{needs}]\n\
         tools:\n  - name: find_it\n    description: Finds something\n    parameters:\n      query: \
         {{type: string, required: true}}\n    returns: {{type: object}}\nsecurity_tier: \
         community\n---\n# {name}\n\nFind it.\n",
    );
    let mut tree = Tree::default();
    add(&mut tree, "SKILL.md", text.into_bytes());
    add(&mut tree, "tools.py", b"def find_it(query: str) -> dict:\n    return {}\n".to_vec());
    tree
}

/// Writes a skill into a new folder by hand.
pub(crate) fn put(folder: &Path, tree: &Tree) {
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    tree.write(folder).unwrap();
}

fn add(tree: &mut Tree, path: &str, bytes: Vec<u8>) {
    let executable = path.starts_with("scripts/");
    tree.add(path.to_owned(), File { bytes, executable }).unwrap();
}

/// Returns a tree with a file added or replaced.
pub(crate) fn with(tree: &Tree, path: &str, bytes: impl Into<Vec<u8>>) -> Tree {
    let mut changed = Tree::default();
    for (other, file) in tree.files().filter(|(other, _)| *other != path) {
        changed.add(other.to_owned(), file.clone()).unwrap();
    }
    add(&mut changed, path, bytes.into());
    changed
}
