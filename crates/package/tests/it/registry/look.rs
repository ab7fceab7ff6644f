//! What registries say about what is installed.

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
    answers::{address, registry, text},
    installed, registries,
    site::Site,
};
use crate::shelf::bench::{Bench, gaia};

fn published(newer: Option<&str>, beyond: Option<&str>) -> PublishedStatus {
    let version = |text: Option<&str>| text.map(|text| Version::parse(text).unwrap());
    PublishedStatus { newer: version(newer), beyond: version(beyond), ..PublishedStatus::default() }
}

#[tokio::test]
async fn what_is_newer_within_what_is_asked_for_and_beyond() {
    let (bench, site) = (Bench::new(), Site::start().await);
    let publish = |name: &str, version: &str, needs: &[&str]| {
        let last = name.rsplit('/').next().unwrap();
        site.publish(name, &bench.signed(last, version, &gaia(last, version, &[], needs)));
    };
    publish("acme/pdf", "1.0.0", &["base, version: \"~1.0\""]);
    publish("base", "1.0.0", &[]);
    publish("calm", "1.0.0", &[]);
    let all = registries(&bench, vec![site.entry()]);
    installed(&bench, &all, &["acme/pdf@^1", "calm"]).await;
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
    let state = bench.shelf().state().unwrap();
    let found = check_registries(&all, &state).await;
    let told = "Use [2J `acme/paper`.".to_owned();
    let pdf = PublishedStatus { deprecated: Some(told), ..published(Some("1.1.0"), Some("2.0.0")) };
    assert_eq!(found["pdf"], Availability::Published(pdf));
    let base = published(Some("1.0.1"), Some("1.1.0"));
    assert_eq!(found["base"], Availability::Published(base.clone()), "as who needs it says");
    assert_eq!(found["calm"], Availability::Current);
    // It is told again without a network.
    updates::save_updates(&bench.data(), &bench.path(""), &state, &found).unwrap();
    let again = updates::load_cached_updates(&bench.data(), &bench.path(""), &state).unwrap();
    assert_eq!(again.skills["base"], Availability::Published(base));
    site.edit("calm", |line| line.yanked = true);
    let withdrawn = PublishedStatus { yanked: true, ..PublishedStatus::default() };
    assert_eq!(check_registries(&all, &state).await["calm"], Availability::Published(withdrawn));
}

#[tokio::test]
async fn what_was_taken_down_or_is_missing_is_told() {
    let (bench, site) = (Bench::new(), Site::start().await);
    let publish = |version: &str| {
        site.publish("calm", &bench.signed("calm", version, &gaia("calm", version, &[], &[])));
    };
    publish("1.0.0");
    let all = registries(&bench, vec![site.entry()]);
    installed(&bench, &all, &["calm"]).await;
    std::fs::remove_file(site.path("index/v1/ca/calm")).unwrap();
    publish("1.1.0");
    let state = bench.shelf().state().unwrap();
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
async fn one_question_is_enough_and_a_silent_registry_says_nothing_of_others() {
    let (bench, site, server) = (Bench::new(), Site::start().await, registry(true).await);
    site.publish("here", &bench.signed("here", "1.0.0", &gaia("here", "1.0.0", &[], &[])));
    let mut lines = Vec::new();
    for name in ["one", "two"] {
        let tree = bench.signed(name, "1.0.0", &gaia(name, "1.0.0", &[], &[]));
        lines.push(site.publish(&format!("acme/{name}"), &tree));
    }
    let all = registries(&bench, vec![site.entry()]);
    installed(&bench, &all, &["here", "acme/one", "acme/two"]).await;
    let lock = bench
        .read("savoir.lock")
        .replace(&format!("{}#acme", site.address()), &format!("{}#acme", address(&server)));
    std::fs::write(bench.path("savoir.lock"), lock).unwrap();
    Mock::given(path("/registry/index/v1/closure"))
        .and(query_param("name", "acme/one"))
        .respond_with(ResponseTemplate::new(200).set_body_string(text(&lines)))
        .expect(1)
        .mount(&server)
        .await;
    let state = bench.shelf().state().unwrap();
    let found = check_registries(&all, &state).await;
    assert!(found.values().all(|found| *found == Availability::Current), "{found:?}");
    server.verify().await;
    server.reset().await;
    let found = check_registries(&all, &state).await;
    assert_eq!(found["here"], Availability::Current);
    assert!(matches!(found["one"], Availability::Unknown(_)), "{found:?}");
}

#[tokio::test]
async fn who_is_not_on_this_machine_is_asked_with_encryption_only() {
    let bench = Bench::new();
    let careful = RegistryEntry::at("http://registry.invalid/registry");
    let loose = RegistryEntry { plain: PlainHttp::Anyone, ..careful.clone() };
    for (entry, code) in [(careful, "address_refused"), (loose, "unreachable")] {
        let all = registries(&bench, vec![entry]);
        let error = all.clients().next().unwrap().config().await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
    }
}
