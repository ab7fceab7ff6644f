//! Tests of the registry client with local registries: static files on a small server, and mock
//! servers.

mod api;
mod evaluations;
mod examples;
mod hostile;
mod http_responses;
mod many_skills;
mod mirror;
mod name_confusion;
mod plain_texts;
mod random_registries;
mod site;
mod taken_down;
mod team;
mod unresponsive;
mod update_check;
mod version_choice;

use std::path::Path;

use savoir_package::{
    install::{CheckedSkill, InstallPlan},
    registry::{
        Client, GatherError, GatherRequest, GatheredSkills, Name, Registries, RegistryEntry,
        RequestedSkill, Settings, gather,
    },
    resolve::Update,
};
use savoir_skill::version::VersionRange;

use crate::install::test_project::{TestProject, install};

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn asked(text: &str) -> RequestedSkill {
    let (name, range) = text.split_once('@').unwrap_or((text, "*"));
    let range = VersionRange::parse(range).unwrap();
    RequestedSkill { name: Name::parse(name).unwrap(), range, registry: None }
}

fn settings(cache: &Path) -> Settings {
    Settings::new(cache.join("cache"))
}

fn client(cache: &Path, address: &str) -> Client {
    Client::new(settings(cache), address, None).unwrap()
}

/// Creates a client with registries in this order.
fn registries(project: &TestProject, entries: Vec<RegistryEntry>) -> Registries {
    Registries::new(settings(&project.data()), entries).unwrap()
}

async fn gathered(
    project: &TestProject,
    registries: &Registries,
    wanted: &[&str],
    update: Update,
) -> Result<GatheredSkills, GatherError> {
    let state = project.skill_set().state().unwrap();
    let asked = wanted.iter().map(|text| asked(text)).collect();
    gather(registries, &GatherRequest { asked, update, ..GatherRequest::new(&state) }).await
}

/// Checks and installs gathered skills; the skill set must resolve to the same versions.
fn take(project: &TestProject, gathered: &GatheredSkills) -> InstallPlan {
    let ready: Vec<CheckedSkill> = gathered
        .arrivals
        .iter()
        .map(|arrival| CheckedSkill::check(arrival.clone(), &project.trust()).unwrap())
        .collect();
    let plan = project.skill_set().install(&ready, &install(&["claude-code"])).unwrap();
    project.apply(&plan);
    let lock = project.skill_set().state().unwrap().lock;
    for (name, chosen) in &gathered.resolution.chosen {
        let folder = name.rsplit('/').next().unwrap();
        assert_eq!(lock.skills[folder].version, chosen.version, "{name}");
    }
    assert_eq!(lock.skills.len(), gathered.resolution.chosen.len());
    assert_eq!(project.skill_set().state().unwrap().lock_mismatches(), []);
    plan
}

/// Installs skills by name; returns what is installed.
async fn installed(project: &TestProject, registries: &Registries, wanted: &[&str]) -> Vec<String> {
    let found = gathered(project, registries, wanted, Update::Nothing).await.unwrap();
    take(project, &found);
    versions(project)
}

/// Returns what is installed, such as `pdf 1.0.0`.
fn versions(project: &TestProject) -> Vec<String> {
    let lock = project.skill_set().state().unwrap().lock;
    lock.skills.iter().map(|(name, skill)| format!("{name} {}", skill.version)).collect()
}
