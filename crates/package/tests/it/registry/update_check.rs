//! Tests of the status of installed skills in registries.

use savoir_package::{
    install::updates::{self, Availability},
    registry::{PlainHttp, PublishedStatus, RegistryEntry, check_registries},
};
use semver::Version;
use wiremock::{
    Mock, ResponseTemplate,
    matchers::{path, query_param},
};

use super::{
    http_responses::{address, registry, text},
    installed, registries,
    site::Site,
};
use crate::install::test_project::{TestProject, gaia};

fn published(newer: Option<&str>, beyond: Option<&str>) -> PublishedStatus {
    let version = |text: Option<&str>| text.map(|text| Version::parse(text).unwrap());
    PublishedStatus { newer: version(newer), beyond: version(beyond), ..PublishedStatus::default() }
}

#[tokio::test]
async fn newer_versions_within_and_outside_the_range_are_reported() {
    let (project, site) = (TestProject::new(), Site::start().await);
    let publish = |name: &str, version: &str, needs: &[&str]| {
        let last = name.rsplit('/').next().unwrap();
        site.publish(name, &project.signed(last, version, &gaia(last, version, &[], needs)));
    };
    publish("acme/pdf", "1.0.0", &["base, version: \"~1.0\""]);
    publish("base", "1.0.0", &[]);
    publish("calm", "1.0.0", &[]);
    let all = registries(&project, vec![site.entry()]);
    installed(&project, &all, &["acme/pdf@^1", "calm"]).await;
    for version in ["1.1.0", "1.2.0", "2.0.0", "3.0.0-rc.1"] {
        publish("acme/pdf", version, &[]);
    }
    publish("base", "1.0.1", &[]);
    publish("base", "1.1.0", &[]);
    site.edit("acme/pdf", |line| {
        line.yanked = line.version == Version::new(1, 2, 0);
        if line.version == Version::new(1, 0, 0) {
            line.deprecated = Some("Use\u{1b}[2J `acme/paper`.".into());
        }
    });
    let state = project.skill_set().state().unwrap();
    let found = check_registries(&all, &state).await;
    let message = "Use [2J `acme/paper`.".to_owned();
    let pdf =
        PublishedStatus { deprecated: Some(message), ..published(Some("1.1.0"), Some("2.0.0")) };
    assert_eq!(found["pdf"], Availability::Published(pdf));
    let base = published(Some("1.0.1"), Some("1.1.0"));
    assert_eq!(found["base"], Availability::Published(base.clone()), "as who needs it says");
    assert_eq!(found["calm"], Availability::Current);
    // The cached result is returned without a network.
    updates::save_updates(&project.data(), &project.path(""), &state, &found).unwrap();
    let again = updates::load_cached_updates(&project.data(), &project.path(""), &state).unwrap();
    assert_eq!(again.skills["base"], Availability::Published(base));
    site.edit("calm", |line| line.yanked = true);
    let withdrawn = PublishedStatus { yanked: true, ..PublishedStatus::default() };
    assert_eq!(check_registries(&all, &state).await["calm"], Availability::Published(withdrawn));
}

#[tokio::test]
async fn taken_down_and_missing_versions_are_reported() {
    let (project, site) = (TestProject::new(), Site::start().await);
    let publish = |version: &str| {
        site.publish("calm", &project.signed("calm", version, &gaia("calm", version, &[], &[])));
    };
    publish("1.0.0");
    let all = registries(&project, vec![site.entry()]);
    installed(&project, &all, &["calm"]).await;
    std::fs::remove_file(site.path("index/v1/ca/calm")).unwrap();
    publish("1.1.0");
    let state = project.skill_set().state().unwrap();
    let missing = PublishedStatus { missing: true, ..published(Some("1.1.0"), None) };
    assert_eq!(check_registries(&all, &state).await["calm"], Availability::Published(missing));
    let gone = "{\"name\":\"calm\",\"version\":\"1.0.0\",\"withdrawn\":true,\
        \"withdrawn_reason\":\"it steals\"}\n";
    let index = std::fs::read_to_string(site.path("index/v1/ca/calm")).unwrap();
    site.write("index/v1/ca/calm", format!("{index}{gone}").as_bytes());
    let taken_down = PublishedStatus {
        taken_down: true,
        taken_down_reason: Some("it steals".to_owned()),
        ..published(Some("1.1.0"), None)
    };
    assert_eq!(check_registries(&all, &state).await["calm"], Availability::Published(taken_down));
}

#[tokio::test]
async fn each_registry_is_asked_once_and_failures_are_separate() {
    let (project, site, server) = (TestProject::new(), Site::start().await, registry(true).await);
    site.publish("here", &project.signed("here", "1.0.0", &gaia("here", "1.0.0", &[], &[])));
    let mut lines = Vec::new();
    for name in ["one", "two"] {
        let tree = project.signed(name, "1.0.0", &gaia(name, "1.0.0", &[], &[]));
        lines.push(site.publish(&format!("acme/{name}"), &tree));
    }
    let all = registries(&project, vec![site.entry()]);
    installed(&project, &all, &["here", "acme/one", "acme/two"]).await;
    let lock = project
        .read("savoir.lock")
        .replace(&format!("{}#acme", site.address()), &format!("{}#acme", address(&server)));
    std::fs::write(project.path("savoir.lock"), lock).unwrap();
    Mock::given(path("/registry/index/v1/closure"))
        .and(query_param("name", "acme/one"))
        .respond_with(ResponseTemplate::new(200).set_body_string(text(&lines)))
        .expect(1)
        .mount(&server)
        .await;
    let state = project.skill_set().state().unwrap();
    let found = check_registries(&all, &state).await;
    assert!(found.values().all(|found| *found == Availability::Current), "{found:?}");
    server.verify().await;
    server.reset().await;
    let found = check_registries(&all, &state).await;
    assert_eq!(found["here"], Availability::Current);
    assert!(matches!(found["one"], Availability::Unknown(_)), "{found:?}");
}

#[tokio::test]
async fn plain_http_is_only_allowed_for_localhost() {
    let project = TestProject::new();
    let careful = RegistryEntry::at("http://registry.invalid/registry");
    let loose = RegistryEntry { plain: PlainHttp::Anyone, ..careful.clone() };
    for (entry, code) in [(careful, "address_refused"), (loose, "unreachable")] {
        let all = registries(&project, vec![entry]);
        let error = all.clients().next().unwrap().config().await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
    }
}
