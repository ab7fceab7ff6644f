//! Tests with a thousand skills that depend on each other.

use std::time::Instant;

use savoir_package::{
    registry::{RegistryEntry, wire::IndexLine},
    resolve::{Request, Root, RootRequest, resolve},
    trust::Tier,
};
use savoir_skill::version::SkillRef;
use wiremock::ResponseTemplate;

use super::{
    http_responses::{address, packed, registry, serve, text},
    name, registries,
    site::Site,
};
use crate::install::test_project::{TestProject, skill};

const COUNT: usize = 1_000;

/// Index lines of skills that each depend on five later ones.
fn lines() -> Vec<IndexLine> {
    let (model, _) = packed("skill-0", &skill("skill-0", "1.0.0", "Text."));
    let line = |at: usize| IndexLine {
        name: name(&format!("skill-{at}")),
        tier: Tier::Community,
        dependencies: (1..=5)
            .map(|step| at + step * step)
            .filter(|to| *to < COUNT)
            .map(|to| format!("skill-{to}@^1"))
            .collect(),
        ..model.clone()
    };
    (0..COUNT).map(line).collect()
}

fn request() -> Request {
    let skill = SkillRef::parse("skill-0").unwrap();
    Request { roots: vec![Root::required(skill, RootRequest::CommandLine)], ..Request::default() }
}

#[tokio::test]
async fn thousand_skills_in_one_closure_response() {
    let (project, server) = (TestProject::new(), registry(true).await);
    let answer = ResponseTemplate::new(200).set_body_string(text(&lines()));
    serve(&server, "/registry/index/v1/closure", answer).await;
    let all = registries(&project, vec![RegistryEntry::at(&address(&server))]);
    let start = Instant::now();
    let known = all.prefetch(&[name("skill-0")]).await.unwrap();
    let fetched = start.elapsed();
    let start = Instant::now();
    let resolution = resolve(&known, &request()).unwrap();
    eprintln!("note: {COUNT} skills fetched in {fetched:?}, chosen in {:?}", start.elapsed());
    assert_eq!(resolution.chosen.len(), COUNT);
    assert_eq!(server.received_requests().await.unwrap().len(), 2);
}

#[tokio::test]
async fn thousand_skills_level_by_level() {
    let (project, site) = (TestProject::new(), Site::start().await);
    for line in lines() {
        let path = format!("index/v1/{}", line.name.index_path());
        site.write(&path, text(&[line]).as_bytes());
    }
    let all = registries(&project, vec![site.entry()]);
    let start = Instant::now();
    let known = all.prefetch(&[name("skill-0")]).await.unwrap();
    eprintln!("note: {COUNT} files fetched in {:?}", start.elapsed());
    assert_eq!(resolve(&known, &request()).unwrap().chosen.len(), COUNT);
    assert_eq!(site.seen().len(), COUNT + 1, "each of them once");
}
