//! Tests with the example of GAIA's documentation, and with invalid files.

use proptest::prelude::*;

use super::*;

const EXAMPLE: &str = r#"{
  "version": 1,
  "schema_version": 1,
  "generated_at": "2026-03-15T10:30:00Z",
  "skills": {
    "web-search": {
      "version": "1.2.0",
      "integrity": "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
      "security_tier": "community",
      "installed_at": "2026-03-15T10:30:00Z",
      "dependencies_hash": "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
      "requested": "^1.0",
      "source": "registry",
      "registry": "https://registry.example/registry",
      "artifact_filename": "web-search-1.2.0.zip",
      "artifact_sha256": "00",
      "claimed_tier": "verified",
      "attested_tier": "community",
      "installed_tier": "community",
      "signature": {
        "signed": true,
        "key_id": "00",
        "publisher": "acme",
        "role": "publisher",
        "later": null
      },
      "permissions": [
        "network:read:*.brave.com"
      ],
      "generated": {
        "requirements.txt": "00"
      },
      "later": {
        "b": 1,
        "a": [
          2
        ]
      }
    }
  },
  "later": true
}
"#;

fn parse(text: &str) -> Result<GaiaLock, GaiaLockError> {
    GaiaLock::parse(FILE, text)
}

fn refused(from: &str, to: &str) -> GaiaLockError {
    assert!(EXAMPLE.contains(from), "{from}");
    parse(&EXAMPLE.replace(from, to)).unwrap_err()
}

#[test]
fn example_round_trips_unchanged() {
    let lock = parse(EXAMPLE).unwrap();
    assert_eq!(lock.to_text(), EXAMPLE);
    let skill = &lock.skills["web-search"];
    assert_eq!(skill.tier(), Tier::Community);
    assert_eq!(skill.unknown["later"]["b"], 1);
    assert_eq!(skill.signature.as_ref().unwrap().publisher.as_deref(), Some("acme"));
}

#[test]
fn one_version_key_is_required() {
    for without in ["  \"version\": 1,\n", "  \"schema_version\": 1,\n"] {
        assert_eq!(parse(&EXAMPLE.replacen(without, "", 1)).unwrap().to_text(), EXAMPLE);
    }
    for (from, to) in [
        ("\"version\": 1,", "\"version\": 2,"),
        ("\"schema_version\": 1", "\"schema_version\": \"1\""),
        ("\"version\": 1,\n  \"schema_version\": 1,", ""),
    ] {
        assert_eq!(refused(from, to).code(), "lock_from_the_future");
    }
}

#[test]
fn lower_of_two_tiers_is_used() {
    let lock =
        parse(&EXAMPLE.replace("installed_tier\": \"community", "installed_tier\": \"verified"));
    let mut skill = lock.unwrap().skills["web-search"].clone();
    assert_eq!(skill.tier(), Tier::Community);
    skill.set_tier(Tier::Experimental);
    assert_eq!(
        (skill.security_tier, skill.installed_tier),
        (Some(Tier::Experimental), Some(Tier::Experimental))
    );
    assert_eq!(GaiaSkill::default().tier(), Tier::Experimental);
}

#[test]
fn corrupt_locks_are_errors() {
    let error = refused("\"generated_at\": ", "\"generated_at\" ");
    assert_eq!(error.to_string(), "skill-lock.json:4:18: expected `:`");
    for (from, to) in [
        ("\"registry\"", "\"/srv/skills\""),
        ("https://registry.example/registry", "~/registry"),
        ("web-search-1.2.0.zip", "../web-search.zip"),
        ("requirements.txt", "../requirements.txt"),
        ("sha256-47DEQ", "sha1-47DEQ"),
        ("network:read:*.brave.com", "network:fly"),
        ("\"web-search\"", "\"../web-search\""),
        ("\"community\"", "\"royal\""),
    ] {
        assert_eq!(refused(from, to).code(), "corrupt_lock", "{to}");
    }
    assert_eq!(parse("{\"version\":1,\"skills\":[]}").unwrap_err().code(), "corrupt_lock");
    assert_eq!(parse("[]").unwrap_err().code(), "corrupt_lock");
}

#[test]
fn concurrent_updates_are_serialized() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join(FILE);
    assert_eq!(GaiaLock::read(&path).unwrap(), GaiaLock::default());
    std::thread::scope(|scope| {
        for number in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let skill = GaiaSkill { version: "1.0.0".to_owned(), ..GaiaSkill::default() };
                GaiaLock::update(path, |lock| lock.skills.insert(format!("s{number}"), skill))
                    .unwrap();
            });
        }
    });
    assert_eq!(GaiaLock::read(&path).unwrap().skills.len(), 8);
    let bad = GaiaSkill { source: Some("/srv".to_owned()), ..GaiaSkill::default() };
    let written = GaiaLock::update(&path, |lock| lock.skills.insert("x".to_owned(), bad));
    assert_eq!(written.unwrap_err().code(), "corrupt_lock");
    assert_eq!(GaiaLock::read(&path).unwrap().skills.len(), 8, "nothing was written");
}

#[test]
fn dependencies_hash_matches_gaia() {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let skills = BTreeMap::from([
        ("b".to_owned(), "1.0.0".to_owned()),
        ("a".to_owned(), "2.0.0".to_owned()),
    ]);
    let expected = r#"{"node":[],"python":["a==1","b==2"],"skills":{"a":"2.0.0","b":"1.0.0"}}"#;
    assert_eq!(
        dependencies_hash(&texts(&[]), &texts(&["b==2", "a==1"]), &skills),
        format!("sha256-{}", STANDARD.encode(Sha256::digest(expected)))
    );
    let none = dependencies_hash(&BTreeSet::new(), &BTreeSet::new(), &BTreeMap::new());
    assert_eq!(
        none,
        format!(
            "sha256-{}",
            STANDARD.encode(Sha256::digest(r#"{"node":[],"python":[],"skills":{}}"#))
        )
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Replaces a part of a valid file by arbitrary text. The parser must not panic.
    #[test]
    fn arbitrary_files_do_not_panic(
        start in 0..1000_usize,
        length in 0..40_usize,
        new in "[\\PC\n\"={}\\[\\]:#,.-]{0,8}",
    ) {
        let whole = EXAMPLE;
        let start = start % whole.len();
        let end = (start + length).min(whole.len());
        if whole.is_char_boundary(start) && whole.is_char_boundary(end) {
            let text = format!("{}{new}{}", &whole[..start], &whole[end..]);
            if let Ok(lock) = parse(&text) {
                assert_eq!(parse(&lock.to_text()).unwrap(), lock);
            }
        }
    }
}
