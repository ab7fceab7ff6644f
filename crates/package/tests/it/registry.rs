//! Registries on this machine: as files that a small server serves, and as servers that answer
//! whatever a test wants.

mod answers;
mod api;
mod choose;
mod confusion;
mod examples;
mod hostile;
mod look;
mod many;
mod mirror;
mod prose;
mod random;
mod silent;
mod site;
mod taken_down;
mod team;

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

use crate::shelf::bench::{Bench, install};

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

/// Registries in this order.
fn registries(bench: &Bench, entries: Vec<RegistryEntry>) -> Registries {
    Registries::new(settings(&bench.data()), entries).unwrap()
}

async fn gathered(
    bench: &Bench,
    registries: &Registries,
    wanted: &[&str],
    update: Update,
) -> Result<GatheredSkills, GatherError> {
    let state = bench.shelf().state().unwrap();
    let asked = wanted.iter().map(|text| asked(text)).collect();
    gather(registries, &GatherRequest { asked, update, ..GatherRequest::new(&state) }).await
}

/// Checks and installs what was gathered; the shelf comes to the same choice.
fn take(bench: &Bench, gathered: &GatheredSkills) -> InstallPlan {
    let ready: Vec<CheckedSkill> = gathered
        .arrivals
        .iter()
        .map(|arrival| CheckedSkill::check(arrival.clone(), &bench.trust()).unwrap())
        .collect();
    let plan = bench.shelf().install(&ready, &install(&["claude-code"])).unwrap();
    bench.apply(&plan);
    let lock = bench.shelf().state().unwrap().lock;
    for (name, chosen) in &gathered.resolution.chosen {
        let folder = name.rsplit('/').next().unwrap();
        assert_eq!(lock.skills[folder].version, chosen.version, "{name}");
    }
    assert_eq!(lock.skills.len(), gathered.resolution.chosen.len());
    assert_eq!(bench.shelf().state().unwrap().lock_mismatches(), []);
    plan
}

/// Installs skills by name.
async fn installed(bench: &Bench, registries: &Registries, wanted: &[&str]) -> Vec<String> {
    let found = gathered(bench, registries, wanted, Update::Nothing).await.unwrap();
    take(bench, &found);
    versions(bench)
}

/// What is installed, such as `pdf 1.0.0`.
fn versions(bench: &Bench) -> Vec<String> {
    let lock = bench.shelf().state().unwrap().lock;
    lock.skills.iter().map(|(name, skill)| format!("{name} {}", skill.version)).collect()
}
