//! Tests against dependency confusion: a skill never comes from another registry that has the same
//! name.

use savoir_package::{
    registry::{GatherRequest, Name, RegistryEntry, RequestedSkill, gather},
    resolve::Update,
};
use wiremock::{Mock, MockServer, ResponseTemplate, matchers::any};

use super::{asked, gathered, installed, registries, site::Site};
use crate::install::test_project::{TestProject, gaia, skill};

fn owner(site: &Site, namespaces: &[&str]) -> RegistryEntry {
    let namespaces = namespaces.iter().map(|&name| name.to_owned()).collect();
    RegistryEntry { name: Some("house".into()), namespaces, ..site.entry() }
}

fn fallback(site: &Site) -> RegistryEntry {
    RegistryEntry { fallback: true, ..site.entry() }
}

#[tokio::test]
async fn a_namespace_belongs_to_one_registry() {
    let (project, public, house) = (TestProject::new(), Site::start().await, Site::start().await);
    public.publish("acme/notes", &skill("notes", "9.9.9", "Evil."));
    public.publish("acme/other", &skill("other", "1.0.0", "Evil."));
    house.publish("acme/notes", &skill("notes", "1.0.0", "Good."));
    let all = registries(&project, vec![public.entry(), owner(&house, &["acme"])]);
    assert_eq!(installed(&project, &all, &["acme/notes"]).await, ["notes 1.0.0"]);
    let error = gathered(&project, &all, &["acme/other"], Update::Nothing).await.unwrap_err();
    assert_eq!(
        error.code(),
        "unknown_skill",
        "the house does not have it, and nobody else is asked"
    );
    assert!(public.seen().iter().all(|path| !path.contains("acme")), "the name is not sent");
    let state = project.skill_set().state().unwrap();
    let other =
        RequestedSkill { registry: Some(public.address().to_owned()), ..asked("acme/notes") };
    let error = gather(&all, &GatherRequest { asked: vec![other], ..GatherRequest::new(&state) })
        .await
        .unwrap_err();
    assert_eq!(error.code(), "wrong_registry", "{error}");
}

#[tokio::test]
async fn dependencies_are_looked_up_in_their_own_registry() {
    let (project, public, house) = (TestProject::new(), Site::start().await, Site::start().await);
    let trusted = |name: &str, version: &str, needs: &[&str]| {
        project.signed(name, version, &gaia(name, version, &[], needs))
    };
    public.publish("top", &trusted("top", "1.0.0", &["acme/base"]));
    public.publish("acme/base", &trusted("base", "9.9.9", &[]));
    house.publish("acme/base", &trusted("base", "1.0.0", &["util"]));
    public.publish("util", &trusted("util", "1.0.0", &[]));
    let all = registries(&project, vec![public.entry(), owner(&house, &["acme"])]);
    let now = installed(&project, &all, &["top"]).await;
    assert_eq!(now, ["base 1.0.0", "top 1.0.0", "util 1.0.0"]);
}

#[tokio::test]
async fn ambiguous_dependency_registry_is_rejected() {
    let (project, public, house) = (TestProject::new(), Site::start().await, Site::start().await);
    let trusted = |name: &str, version: &str, needs: &[&str]| {
        project.signed(name, version, &gaia(name, version, &[], needs))
    };
    house.publish("acme/top", &trusted("top", "1.0.0", &["inner"]));
    house.publish("inner", &trusted("inner", "1.0.0", &[]));
    public.publish("inner", &trusted("inner", "9.9.9", &[]));
    let set = |of_house: &[&str], of_public: &[&str]| {
        let public = RegistryEntry { fallback: true, ..owner(&public, of_public) };
        registries(&project, vec![RegistryEntry { name: None, ..public }, owner(&house, of_house)])
    };
    let unsaid = set(&["acme"], &[]);
    let error = gathered(&project, &unsaid, &["acme/top"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "two_registries", "{error}");
    for words in ["`acme/top`", "`inner`", house.address(), public.address(), "`namespaces`"] {
        assert!(error.to_string().contains(words), "{words}: {error}");
    }
    // This also holds if the other one was installed before.
    assert_eq!(installed(&project, &unsaid, &["inner"]).await, ["inner 9.9.9"]);
    let error = gathered(&project, &unsaid, &["acme/top"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "two_registries", "{error}");
    let theirs = set(&["acme"], &["inner"]);
    let found = gathered(&project, &theirs, &["acme/top"], Update::Nothing).await.unwrap();
    let chosen = found.resolution.chosen;
    assert_eq!(chosen["inner"].version.to_string(), "9.9.9");
    let ours = set(&["acme", "inner"], &[]);
    let found = gathered(&project, &ours, &["acme/top"], Update::All).await.unwrap();
    let chosen = found.resolution.chosen;
    assert_eq!(chosen["inner"].version.to_string(), "1.0.0");
}

#[tokio::test]
async fn locked_skill_stays_with_unconfigured_registry() {
    let (project, house, public) = (TestProject::new(), Site::start().await, Site::start().await);
    house.publish("acme/notes", &skill("notes", "1.0.0", "Good."));
    installed(&project, &registries(&project, vec![house.entry()]), &["acme/notes"]).await;
    public.publish("acme/notes", &skill("notes", "9.9.9", "Evil."));
    public.publish("acme/other", &skill("other", "9.9.9", "Evil."));
    house.publish("acme/notes", &skill("notes", "1.1.0", "Good."));
    let theirs = registries(&project, vec![public.entry()]);
    let found = gathered(&project, &theirs, &[], Update::All).await.unwrap();
    assert_eq!(found.resolution.chosen["acme/notes"].version.to_string(), "1.1.0");
    let error = gathered(&project, &theirs, &["acme/other"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "unknown_skill", "its namespace stays, too");
    assert!(public.seen().iter().all(|path| !path.contains("acme")), "{:?}", public.seen());
}

#[tokio::test]
async fn lock_does_not_reassign_namespace() {
    let (project, house, other) = (TestProject::new(), Site::start().await, Site::start().await);
    house.publish("acme/notes", &skill("notes", "1.0.0", "Good."));
    other.publish("acme/notes", &skill("notes", "1.0.0", "Evil."));
    installed(&project, &registries(&project, vec![other.entry()]), &["acme/notes"]).await;
    let owned = registries(&project, vec![owner(&house, &["acme"])]);
    let state = project.skill_set().state().unwrap();
    let (name, locked) = state.lock.skills.first_key_value().unwrap();
    let error = owned.fetch_locked(name, locked).await.unwrap_err();
    assert_eq!(error.code(), "wrong_registry", "{error}");
    let found = gathered(&project, &owned, &["acme/notes"], Update::Nothing).await.unwrap();
    let source = &found.arrivals[0].source;
    assert_eq!(source.published("notes"), Some((house.address(), "acme/notes")));
}

#[tokio::test]
async fn namespace_from_two_registries_is_ambiguous() {
    let (project, first, second) = (TestProject::new(), Site::start().await, Site::start().await);
    first.publish("acme/notes", &skill("notes", "1.0.0", "Good."));
    second.publish("acme/bait", &skill("bait", "1.0.0", "Evil."));
    first.publish("acme/new", &skill("new", "1.0.0", "Good."));
    second.publish("acme/new", &skill("new", "9.9.9", "Evil."));
    // The first registry is only in the lock, so the namespace belongs to it.
    installed(&project, &registries(&project, vec![first.entry()]), &["acme/notes"]).await;
    let public = registries(&project, vec![second.entry()]);
    let found = gathered(&project, &public, &["acme/new"], Update::Nothing).await.unwrap();
    assert_eq!(found.resolution.chosen["acme/new"].version.to_string(), "1.0.0");
    let state = project.skill_set().state().unwrap();
    let bait = RequestedSkill { registry: Some(second.address().to_owned()), ..asked("acme/bait") };
    let wish = GatherRequest { asked: vec![bait, asked("acme/new")], ..GatherRequest::new(&state) };
    let error = gather(&public, &wish).await.unwrap_err();
    assert_eq!(error.code(), "two_registries", "{error}");
    assert!(error.to_string().contains("`namespaces`"), "{error}");
    let none = registries(&project, Vec::new());
    let found = gathered(&project, &none, &["acme/new"], Update::Nothing).await.unwrap();
    assert_eq!(found.resolution.chosen["acme/new"].version.to_string(), "1.0.0");
    let error = gathered(&project, &none, &["helper"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "no_registry", "{error}");
}

#[tokio::test]
async fn registry_named_for_one_skill_is_not_asked_about_others() {
    let (project, house, public) = (TestProject::new(), Site::start().await, Site::start().await);
    house.publish("acme/notes", &skill("notes", "1.0.0", "Good."));
    house.publish("inner", &skill("inner", "9.9.9", "Evil."));
    public.publish("inner", &skill("inner", "1.0.0", "Good."));
    let named = RegistryEntry { for_one_skill: true, ..house.entry() };
    let all = registries(&project, vec![named, public.entry()]);
    let state = project.skill_set().state().unwrap();
    let notes =
        RequestedSkill { registry: Some(house.address().to_owned()), ..asked("acme/notes") };
    let wish = GatherRequest { asked: vec![notes, asked("inner")], ..GatherRequest::new(&state) };
    let chosen = gather(&all, &wish).await.unwrap().resolution.chosen;
    assert_eq!(chosen["inner"].version.to_string(), "1.0.0");
    assert_eq!(chosen["acme/notes"].version.to_string(), "1.0.0");
}

#[tokio::test]
async fn name_in_two_registries_uses_the_first() {
    let (project, first, second) = (TestProject::new(), Site::start().await, Site::start().await);
    first.publish("notes", &skill("notes", "1.0.0", "First."));
    second.publish("notes", &skill("notes", "9.9.9", "Second."));
    second.publish("only", &skill("only", "1.0.0", "Second."));
    let strict = registries(&project, vec![first.entry(), second.entry()]);
    let error = gathered(&project, &strict, &["only"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "unknown_skill");
    let hints = error.hints().join("\n");
    assert!(hints.contains(second.address()) && hints.contains("`namespaces`"), "{hints}");
    assert_eq!(installed(&project, &strict, &["notes"]).await, ["notes 1.0.0"]);
    assert_eq!(second.seen(), Vec::<String>::new(), "nobody tells it what is looked for");
    let all = registries(&project, vec![first.entry(), fallback(&second)]);
    assert_eq!(installed(&project, &all, &["only"]).await, ["notes 1.0.0", "only 1.0.0"]);
    let lock = project.read("savoir.lock");
    assert!(lock.contains(&format!("registry+{}", second.address())), "{lock}");
    // Even a range that only the second registry satisfies does not change that.
    let error = gathered(&project, &all, &["notes@^9"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "version_conflict");
}

#[tokio::test]
async fn dependency_is_not_looked_up_in_second_registry() {
    let (project, house, public) = (TestProject::new(), Site::start().await, Site::start().await);
    let trusted = |name: &str, version: &str, needs: &[&str]| {
        project.signed(name, version, &gaia(name, version, &[], needs))
    };
    house.publish("top", &trusted("top", "1.0.0", &["inner"]));
    public.publish("inner", &trusted("inner", "9.9.9", &[]));
    let all = registries(&project, vec![house.entry(), public.entry()]);
    let error = gathered(&project, &all, &["top"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "unknown_skill", "{error}");
    assert_eq!(public.seen(), Vec::<String>::new());
    house.publish("inner", &trusted("inner", "1.0.0", &[]));
    assert_eq!(installed(&project, &all, &["top"]).await, ["inner 1.0.0", "top 1.0.0"]);
}

#[tokio::test]
async fn registry_with_namespaces_is_not_asked_about_others() {
    let (project, work, public) = (TestProject::new(), Site::start().await, Site::start().await);
    work.publish("acme/notes", &skill("notes", "1.0.0", "Ours."));
    public.publish("world/thing", &skill("thing", "1.0.0", "Theirs."));
    let all = registries(&project, vec![owner(&work, &["acme"]), public.entry()]);
    let now = installed(&project, &all, &["acme/notes", "world/thing"]).await;
    assert_eq!(now, ["notes 1.0.0", "thing 1.0.0"]);
    assert!(work.seen().iter().all(|path| !path.contains("world")), "the name is not sent");
    assert!(public.seen().iter().all(|path| !path.contains("acme")));
    let alone = registries(&project, vec![owner(&work, &["acme"])]);
    let error =
        gathered(&project, &alone, &["elsewhere/other"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "no_registry");
    assert!(error.to_string().contains("`fallback = true`"), "{error}");
    let asked =
        registries(&project, vec![RegistryEntry { fallback: true, ..owner(&work, &["acme"]) }]);
    let error =
        gathered(&project, &asked, &["elsewhere/other"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "unknown_skill");
}

#[tokio::test]
async fn namespace_stays_with_its_registry() {
    let (project, first, second) = (TestProject::new(), Site::start().await, Site::start().await);
    second.publish("acme/notes", &skill("notes", "1.0.0", "Good."));
    second.publish("alone", &skill("alone", "1.0.0", "Good."));
    let all = registries(&project, vec![first.entry(), fallback(&second)]);
    installed(&project, &all, &["acme/notes", "alone"]).await;
    // An attacker publishes the names in the registry that is asked first.
    for (name, version) in [("acme/notes", "9.9.9"), ("acme/other", "9.9.9"), ("alone", "9.9.9")] {
        first.publish(name, &skill(Name::parse(name).unwrap().last(), version, "Evil."));
    }
    second.publish("acme/notes", &skill("notes", "1.1.0", "Good."));
    let found = gathered(&project, &all, &[], Update::All).await.unwrap();
    assert_eq!(found.resolution.chosen["acme/notes"].version.to_string(), "1.1.0");
    assert_eq!(found.resolution.chosen["alone"].version.to_string(), "1.0.0");
    let error = gathered(&project, &all, &["acme/other"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "unknown_skill");
    second.publish("acme/other", &skill("other", "1.0.0", "Good."));
    let found = gathered(&project, &all, &["acme/other"], Update::Nothing).await.unwrap();
    assert_eq!(found.resolution.chosen["acme/other"].version.to_string(), "1.0.0");
    // A user who names the registry gets the skill from there, unless another registry owns the
    // namespace.
    let state = project.skill_set().state().unwrap();
    let named =
        RequestedSkill { registry: Some(first.address().to_owned()), ..asked("acme/other") };
    let found = gather(&all, &GatherRequest { asked: vec![named], ..GatherRequest::new(&state) })
        .await
        .unwrap();
    assert_eq!(found.resolution.chosen["acme/other"].version.to_string(), "9.9.9");
    let owned = registries(&project, vec![owner(&first, &["acme"]), second.entry()]);
    let found = gathered(&project, &owned, &["acme/other"], Update::Nothing).await.unwrap();
    assert_eq!(found.resolution.chosen["acme/other"].version.to_string(), "9.9.9");
}

#[tokio::test]
async fn failing_registry_does_not_fall_back_to_another() {
    let (project, second) = (TestProject::new(), Site::start().await);
    second.publish("notes", &skill("notes", "9.9.9", "Second."));
    for (status, code) in [(503, "http_status"), (403, "http_status")] {
        let first = MockServer::start().await;
        Mock::given(any()).respond_with(ResponseTemplate::new(status)).mount(&first).await;
        let all = registries(&project, vec![RegistryEntry::at(&first.uri()), fallback(&second)]);
        let error = gathered(&project, &all, &["notes"], Update::Nothing).await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
    }
    // A server that answers every request with `not found` is not a registry.
    let wrong = MockServer::start().await;
    let all = registries(&project, vec![RegistryEntry::at(&wrong.uri()), fallback(&second)]);
    let error = gathered(&project, &all, &["notes"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "not_a_registry");
    assert_eq!(second.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn a_skill_may_name_its_registry() {
    let (project, first, second) = (TestProject::new(), Site::start().await, Site::start().await);
    first.publish("notes", &skill("notes", "1.0.0", "First."));
    second.publish("notes", &skill("notes", "2.0.0", "Second."));
    let house = RegistryEntry { name: Some("house".into()), ..second.entry() };
    let all = registries(&project, vec![first.entry(), house]);
    let state = project.skill_set().state().unwrap();
    for registry in ["house", second.address()] {
        let from = RequestedSkill { registry: Some(registry.to_owned()), ..asked("notes") };
        let wish = GatherRequest { asked: vec![from], ..GatherRequest::new(&state) };
        let found = gather(&all, &wish).await.unwrap();
        assert_eq!(found.resolution.chosen["notes"].version.to_string(), "2.0.0");
    }
    assert_eq!(installed(&project, &all, &["notes"]).await, ["notes 1.0.0"]);
    // Changing the registry in `savoir.toml` changes the source of the skill.
    let toml = format!("[registries.house]\nurl = \"{}\"\n", second.address());
    project.write(
        "savoir.toml",
        &format!("{toml}[skills]\nnotes = {{ version = \"*\", registry = \"house\" }}\n"),
    );
    assert_eq!(project.skill_set().state().unwrap().lock_mismatches().len(), 1);
    assert_eq!(installed(&project, &all, &[]).await, ["notes 2.0.0"]);
    let unknown = RequestedSkill { registry: Some("hause".into()), ..asked("notes") };
    let error = gather(&all, &GatherRequest { asked: vec![unknown], ..GatherRequest::new(&state) })
        .await
        .unwrap_err();
    assert_eq!(error.code(), "unknown_registry");
}

#[tokio::test]
async fn no_registry_configured_is_an_error() {
    let project = TestProject::new();
    let none = registries(&project, Vec::new());
    let error = gathered(&project, &none, &["notes"], Update::Nothing).await.unwrap_err();
    assert_eq!(error.code(), "no_registry");
    assert_eq!(error.to_string(), "no registry is set for `notes`");
    assert!(gathered(&project, &none, &[], Update::All).await.unwrap().arrivals.is_empty());
    // Installed skills stay, even if their registry disappears.
    let site = Site::start().await;
    site.publish("notes", &skill("notes", "1.0.0", "Text."));
    installed(&project, &registries(&project, vec![site.entry()]), &["notes"]).await;
    assert!(gathered(&project, &none, &[], Update::All).await.unwrap().arrivals.is_empty());
}
