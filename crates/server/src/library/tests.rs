use bytes::Bytes;
use savoir_agent::{
    builtin_tools::BuiltinTools,
    library::{Draft, Library as _, MAX_SERVED_FILE_BYTES},
};
use savoir_model::Models;
use savoir_skill::dialect::personal_agent::Lifecycle;
use savoir_store::{Database, Resource, Role, SkillFacts, Storage, Timestamp};

use super::*;
use crate::{Config, Email, create_account};

struct Stage {
    app: App,
    ann: Caller,
    bob: Caller,
    _folder: tempfile::TempDir,
}

impl Stage {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open_folder(folder.path()).await.unwrap();
        let storage = Storage::folder(&folder.path().join("files")).unwrap();
        let app = App::new(Config::default(), database, storage, Models::default()).await.unwrap();
        let person = async |email: &str, role| {
            let email = Email::parse(email).unwrap();
            let user = create_account(&app.database, email, "correct horse", role).await.unwrap();
            Caller::on_behalf_of(user)
        };
        let (ann, bob) = (
            person("ann@example.org", Role::Admin).await,
            person("bob@example.org", Role::User).await,
        );
        Self { app, ann, bob, _folder: folder }
    }

    fn library(&self, caller: &Caller) -> PersonalLibrary {
        PersonalLibrary::new(self.app.clone(), caller.clone())
    }

    /// Stores a skill with an owner, or without one.
    async fn skill(&self, name: &str, owner: Option<&Caller>, fields: &str) {
        let text = format!("---\nname: {name}\ndescription: Does {name}.\n{fields}---\nDo it.\n");
        let file = |path: &str, bytes: &[u8]| Resource {
            path: path.to_owned(),
            bytes: Bytes::copy_from_slice(bytes),
            executable: false,
        };
        let resources = vec![
            file("references/a.md", b"reference"),
            file("big.txt", &vec![b'x'; MAX_SERVED_FILE_BYTES as usize + 1]),
            file("picture.bin", &[0xff, 0xfe]),
        ];
        let owner = owner.map(Caller::owner_id);
        let new = SkillToStore { name: name.to_owned(), text, resources, owner };
        let keep = |_: Option<&crate::personal::ReplacedSkill>| {
            Ok(SkillFacts::authored(None, Timestamp::now()))
        };
        self.app.skills.skill_writer().store(new, keep).await.unwrap();
    }

    async fn change(&self, name: &str, change: impl FnOnce(&mut SkillFacts)) {
        let facts = self.app.database.skill_facts();
        let mut noted = facts.get(name).await.unwrap().unwrap();
        change(&mut noted);
        facts.put(name, &noted).await.unwrap();
    }
}

async fn names(library: &PersonalLibrary) -> Vec<String> {
    library.skills().await.unwrap().iter().map(|one| one.name.clone()).collect()
}

#[tokio::test]
async fn users_see_own_and_shared_skills() {
    let stage = Stage::new().await;
    stage.skill("ann-s", Some(&stage.ann), "").await;
    stage.skill("bob-s", Some(&stage.bob), "").await;
    stage.skill("shared", None, "").await;
    stage.skill("quiet", Some(&stage.bob), "disable-model-invocation: true\nmodel: opus\n").await;
    let (ann, bob) = (stage.library(&stage.ann), stage.library(&stage.bob));
    assert_eq!(names(&ann).await, ["ann-s", "shared"], "an administrator, too");
    assert_eq!(names(&bob).await, ["bob-s", "shared"]);
    for (name, code) in [
        ("ann-s", "unknown-skill"),
        ("quiet", "not-callable"),
        ("../bob-s", "unknown-skill"),
        ("import", "unknown-skill"),
    ] {
        assert_eq!(bob.open(name).await.unwrap_err().code(), code, "{name}");
        assert_eq!(bob.read(name, "references/a.md").await.unwrap_err().code(), code, "{name}");
    }
    let near = bob.open("bob").await.unwrap_err();
    assert!(!near.to_string().contains("ann"), "{near}");
}

#[tokio::test]
async fn disabled_and_archived_skills_are_hidden() {
    let stage = Stage::new().await;
    for name in ["a", "b", "c"] {
        stage.skill(name, Some(&stage.bob), "").await;
    }
    stage.change("a", |facts| facts.enabled = false).await;
    stage.change("b", |facts| facts.lifecycle = Lifecycle::Archived).await;
    stage.change("c", |facts| facts.lifecycle = Lifecycle::Stale).await;
    let library = stage.library(&stage.bob);
    assert_eq!(names(&library).await, ["c"]);
    for name in ["a", "b"] {
        assert_eq!(library.open(name).await.unwrap_err().code(), "unknown-skill");
    }
    // Metadata that was stored while the skill had another owner must not make it available.
    stage.change("a", |facts| facts.owner = Some("999".to_owned())).await;
    assert_eq!(names(&library).await, ["c"]);
    assert_eq!(library.open("a").await.unwrap_err().code(), "unknown-skill");
    stage.change("c", |facts| facts.owner = Some("999".to_owned())).await;
    assert_eq!(names(&library).await, ["c"], "one that was offered still is");
}

#[tokio::test]
async fn use_is_recorded_and_reactivates() {
    let stage = Stage::new().await;
    stage.skill("a", Some(&stage.bob), "allowed-tools: Read\n").await;
    stage
        .change("a", |facts| {
            facts.lifecycle = Lifecycle::Stale;
            facts.pinned = true;
        })
        .await;
    let library = Arc::new(stage.library(&stage.bob));
    let answer = BuiltinTools::new(library.clone(), None).use_skill("a").await.unwrap();
    assert_eq!(answer.allowed_tools, ["read_file"], "although it is read as another dialect");
    assert_eq!(answer.resources, ["references/a.md"], "only what can be read");
    let candidate = library.skills().await.unwrap()[0].clone();
    assert!(candidate.pinned && candidate.last_used.unwrap() > 1_700_000_000);
    let facts = stage.app.database.skill_facts().get("a").await.unwrap().unwrap();
    assert_eq!(facts.lifecycle, Lifecycle::Active);
    library.used("nothing").await;
    assert_eq!(stage.app.database.skill_facts().get("nothing").await.unwrap(), None);
}

#[tokio::test]
async fn files_of_a_skill_are_read_within_bounds() {
    let stage = Stage::new().await;
    stage.skill("a", Some(&stage.bob), "").await;
    let library = stage.library(&stage.bob);
    assert_eq!(library.read("a", "references/a.md").await.unwrap(), "reference");
    for (path, code) in [
        ("big.txt", "file-too-large"),
        ("picture.bin", "file-not-text"),
        ("SKILL.md", "no-such-file"),
        ("SKILL.md.lock", "no-such-file"),
        ("../a/SKILL.md", "no-such-file"),
    ] {
        assert_eq!(library.read("a", path).await.unwrap_err().code(), code, "{path}");
    }
}

#[tokio::test]
async fn drafts_need_approval() {
    let stage = Stage::new().await;
    stage.skill("taken", Some(&stage.ann), "").await;
    let library = stage.library(&stage.bob);
    let draft = |name: &str| Draft {
        name: name.to_owned(),
        text: format!("---\nname: {name}\ndescription: d\nuser_id: '1'\n---\nx {{{{y}}}}\n"),
    };
    assert_eq!(library.save(&draft("new")).await.unwrap(), "new");
    assert!(names(&library).await.is_empty(), "a draft is not offered");
    assert_eq!(library.save(&draft("taken")).await.unwrap(), "taken", "that of ann is another");
    for name in ["new", "taken", "import", "../x"] {
        assert_eq!(library.save(&draft(name)).await.unwrap_err().code(), "draft-refused", "{name}");
    }
    let kept = stage.app.skills.get(&stage.bob, "new").await.unwrap();
    assert_eq!(kept.owner(), Some(stage.bob.owner_id().as_str()), "whatever it says of itself");
    stage.change("new", |facts| facts.enabled = true).await;
    assert_eq!(names(&library).await, ["new"]);
}
