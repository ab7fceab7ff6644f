//! Tests that `savoir.toml` is parsed and edited, and that errors are reported.

use proptest::prelude::*;

use super::*;

const FULL: &str = r#"# The project.
[check]
strict = true

[skills]
web-search = "^1.2"   # the newest
house = { version = "*", registry = "https://skills.example.com" }
ours = { version = "1", registry = "house", namespace = "acme" }
notes = { path = "../shared/notes" }
review = { git = "https://example.com/s.git", tag = "v2", path = "skills/review/" }
head = { git = "git@example.com:s.git" }
[skills.page]
url = "https://example.com/page.zip"
integrity = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="

[agents]
use = ["claude-code", "codex"]

[registries]
default = "https://skills.example.com/registry/"
[registries.house]
url = "https://skills.acme.example/registry"
namespaces = ["acme", "acme-labs"]
[registries.spare]
url = "http://127.0.0.1:8080"
fallback = true
"#;

fn parse(text: &str) -> Manifest {
    Manifest::parse(FILE, text).unwrap()
}

fn content_error(text: &str) -> String {
    let content_error = Manifest::parse(FILE, text).unwrap_err();
    match &content_error.hint {
        Some(hint) => format!("{content_error} | {hint}"),
        None => content_error.to_string(),
    }
}

#[test]
fn all_requirement_forms_are_parsed() {
    let manifest = parse(FULL);
    assert_eq!(manifest.skills.len(), 7);
    let range = |text| VersionRange::parse(text).unwrap();
    assert_eq!(
        manifest.skills["web-search"],
        SkillRequirement::Version { range: range("^1.2"), registry: None, namespace: None }
    );
    let registry = Some("https://skills.example.com".to_owned());
    let house = SkillRequirement::Version { range: range("*"), registry, namespace: None };
    assert_eq!(manifest.skills["house"], house);
    let (registry, namespace) = (Some("house".to_owned()), Some("acme".to_owned()));
    let ours = SkillRequirement::Version { range: range("1"), registry, namespace };
    assert_eq!(manifest.skills["ours"], ours);
    assert_eq!(manifest.skills["notes"], SkillRequirement::Path("../shared/notes".to_owned()));
    assert_eq!(
        manifest.skills["review"],
        SkillRequirement::Git {
            url: "https://example.com/s.git".to_owned(),
            at: Revision::Tag("v2".to_owned()),
            path: Some("skills/review".to_owned()),
        }
    );
    let url = "git@example.com:s.git".to_owned();
    assert_eq!(
        manifest.skills["head"],
        SkillRequirement::Git { url, at: Revision::Default, path: None }
    );
    assert!(matches!(&manifest.skills["page"], SkillRequirement::Url { integrity: Some(_), .. }));
    let registries: Vec<&str> = manifest.registries.iter().map(|one| one.url.as_str()).collect();
    assert_eq!(
        registries,
        [
            "https://skills.example.com/registry",
            "https://skills.acme.example/registry",
            "http://127.0.0.1:8080",
        ]
    );
    assert_eq!(manifest.agents.used, ["claude-code", "codex"]);
    assert_eq!(manifest.place("notes"), Some(Position { line: 9, column: 1 }));
    let roots: Vec<String> = manifest.roots().iter().map(|root| root.skill.to_string()).collect();
    assert_eq!(roots, ["head", "house", "notes", "ours@1", "page", "review", "web-search@^1.2"]);
    assert_eq!(parse(""), Manifest::default());
}

#[test]
fn errors_have_position_and_hint() {
    for (text, expected) in [
        (
            "[skills]\na = 1",
            "savoir.toml:2:5: this must be a range of versions such as \"^1.2\", or a table",
        ),
        (
            "[skills]\na = \"1.x\"",
            "savoir.toml:2:5: `1.x` is not a version such as 1.2.3, nor an operator and a version such as ^1.2",
        ),
        (
            "[skills]\n\"ä\" = { vershion = \"1\" }",
            "savoir.toml:2:9: there is no setting `vershion` | did you mean `version`?",
        ),
        (
            "[skills]\na = {}",
            "savoir.toml:2:5: nothing says where `a` comes from | give `version`, `path`, `git` or `url`",
        ),
        (
            "[skills]\na = { registry = \"https://x\" }",
            "savoir.toml:2:5: nothing says where `a` comes from | give `version`, `path`, `git` or `url`",
        ),
        (
            "[skills]\na = { git = \"x\", version = \"1\" }",
            "savoir.toml:2:18: `version` does not go together with `git`",
        ),
        (
            "[skills]\na = { git = \"x\", rev = \"1\", tag = \"2\" }",
            "savoir.toml:2:29: only one of `rev`, `tag` and `branch` can be given",
        ),
        (
            "[skills]\na = { git = \"x\", rev = \"--upload-pack=x\" }",
            "savoir.toml:2:24: `--upload-pack=x` is not a rev",
        ),
        ("[skills]\na = { git = \"-x\" }", "savoir.toml:2:13: `-x` is not an address"),
        (
            "[skills]\na = { git = \"x\", path = \"../y\" }",
            "savoir.toml:2:25: `../y` is not a path in it: it leads out of the skill",
        ),
        (
            "[skills]\na = { path = \"/srv/a\" }",
            "savoir.toml:2:14: `/srv/a` is a path of one machine | write it relative to the file: others read it on other machines",
        ),
        (
            "[skills]\na = { path = \"C:\\\\a\" }",
            "savoir.toml:2:14: `C:\\a` is a path of one machine | write it relative to the file: others read it on other machines",
        ),
        (
            "[skills]\na = { url = \"https://x\", integrity = \"md5-x\" }",
            "savoir.toml:2:38: `md5-x` is not an integrity value | write `sha256-` and the digest in base64",
        ),
        ("[skills]\n\"../a\" = \"1\"", "savoir.toml:2:1: `../a` cannot be the name of a skill"),
        (
            "[skill]\na = \"1\"",
            "savoir.toml:1:2: there is no table `skill` | did you mean `skills`?",
        ),
        ("skills = 3", "savoir.toml:1:10: this must be a table of skills"),
        (
            "[agents]\nused = []",
            "savoir.toml:2:1: there is no setting `used` | did you mean `use`?",
        ),
        ("[agents]\nuse = [\"a\", \"a\"]", "savoir.toml:2:13: `a` is there twice"),
        (
            "[agents]\nscope = \"user\"",
            "savoir.toml:2:1: there is no setting `scope` | take it out: --global chooses that",
        ),
    ] {
        assert_eq!(content_error(text), expected);
    }
    assert!(content_error("[skills]\na = \"1\"\na = \"2\"").starts_with("savoir.toml:3:1: "));
    assert!(content_error("[skills\n").starts_with("savoir.toml:1:"));
}

#[test]
fn edits_keep_comments_and_format() {
    let wanted = |text| SkillRequirement::Version {
        range: VersionRange::parse(text).unwrap(),
        registry: None,
        namespace: None,
    };
    let changed = add_skill(FILE, FULL, "web-search", &wanted("^2")).unwrap();
    assert_eq!(changed, FULL.replace("\"^1.2\"", "\"^2\""), "the comment stays");
    let added = add_skill(FILE, FULL, "zebra", &wanted("1")).unwrap();
    assert_eq!(
        added,
        FULL.replace("s.git\" }\n[skills.page]", "s.git\" }\nzebra = \"1\"\n[skills.page]")
    );
    let removed = remove_skill(FILE, &added, "zebra").unwrap().unwrap();
    assert_eq!(removed, FULL);
    assert_eq!(remove_skill(FILE, FULL, "zebra").unwrap(), None);
    assert_eq!(remove_skill(FILE, "", "zebra").unwrap(), None);
    assert!(!remove_skill(FILE, FULL, "page").unwrap().unwrap().contains("page.zip"));
}

#[test]
fn sorted_lists_stay_sorted() {
    let wanted = SkillRequirement::Path("x".to_owned());
    let text = "[skills]\n# about a\na = \"1\"\nc = \"1\"\n\n[check]\n";
    assert_eq!(
        add_skill(FILE, text, "b", &wanted).unwrap(),
        "[skills]\n# about a\na = \"1\"\nb = { path = \"x\" }\nc = \"1\"\n\n[check]\n"
    );
    let text = "[skills]\r\nc = \"1\"\r\na = \"1\"\r\n";
    assert_eq!(
        add_skill(FILE, text, "b", &wanted).unwrap(),
        "[skills]\r\nc = \"1\"\r\na = \"1\"\r\nb = { path = \"x\" }\r\n"
    );
}

#[test]
fn skills_table_is_added() {
    let git = SkillRequirement::Git {
        url: "https://x".to_owned(),
        at: Revision::Branch("main".to_owned()),
        path: Some("a".to_owned()),
    };
    let line = "[skills]\na = { git = \"https://x\", branch = \"main\", path = \"a\" }\n";
    assert_eq!(add_skill(FILE, "", "a", &git).unwrap(), line);
    let text = "[check]\nstrict = true\n";
    assert_eq!(add_skill(FILE, text, "a", &git).unwrap(), format!("{text}\n{line}"));
    let text = "skills = { b = \"1\" }\n";
    let wanted = SkillRequirement::Path("x".to_owned());
    assert_eq!(
        add_skill(FILE, text, "c", &wanted).unwrap(),
        "skills = { b = \"1\", c = { path = \"x\" } }\n"
    );
}

#[test]
fn requirements_round_trip() {
    for (name, wanted) in &parse(FULL).skills {
        let text = add_skill(FILE, "", name, wanted).unwrap();
        assert_eq!(&parse(&text).skills[name], wanted, "{text}");
    }
    assert!(add_skill(FILE, "", "../x", &SkillRequirement::Path("x".to_owned())).is_err());
    assert!(
        add_skill(FILE, "[skills]\nx = 1\n", "y", &SkillRequirement::Path("x".to_owned())).is_err()
    );
}

#[test]
fn missing_file_is_none() {
    let place = tempfile::tempdir().unwrap();
    assert_eq!(Manifest::read(&place.path().join(FILE)).unwrap(), None);
    assert_eq!(Manifest::read(place.path()).unwrap_err().code(), "io");
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
        let whole = FULL;
        let start = start % whole.len();
        let end = (start + length).min(whole.len());
        if whole.is_char_boundary(start) && whole.is_char_boundary(end) {
            let text = format!("{}{new}{}", &whole[..start], &whole[end..]);
            if let Ok(manifest) = Manifest::parse(FILE, &text) {
                let wanted = SkillRequirement::Path("x".to_owned());
                let added = add_skill(FILE, &text, "new", &wanted).unwrap();
                assert_eq!(parse(&added).skills.len(), manifest.skills.len() + 1, "{added}");
                let removed = remove_skill(FILE, &added, "new").unwrap().unwrap();
                assert_eq!(parse(&removed).skills, manifest.skills, "{removed}");
            }
        }
    }
}

#[test]
fn only_user_settings_allow_plain_http() {
    use crate::registry::PlainHttp;

    let text = "[registries.house]\nurl = \"http://house/registry\"\nallow-http = true\n";
    let own = registries("config.toml", text).unwrap();
    assert_eq!(own[0].plain, PlainHttp::Anyone);
    let careful = text.replace("true", "false");
    assert_eq!(registries("config.toml", &careful).unwrap()[0].plain, PlainHttp::ThisMachine);
    let error = Manifest::parse("savoir.toml", text).unwrap_err().to_string();
    assert!(error.contains("for a person to say"), "{error}");
}

#[test]
fn agents_are_added_once_and_nothing_else_changes() {
    let ids = ["claude-code".to_owned(), "codex".to_owned()];
    let set = |text: &str| set_agents("savoir.toml", text, &ids).unwrap();
    let list = "[agents]\nuse = [\"claude-code\", \"codex\"]\n";
    assert_eq!(set("[skills]\na = \"*\"\n"), format!("{list}\n[skills]\na = \"*\"\n"));
    let mine = "# mine\n[skills]\na = \"*\" # why\n";
    assert_eq!(set(mine), format!("{mine}\n{list}"));
    let windows = "[skills]\r\na = \"*\"\r\n";
    assert_eq!(set(windows), format!("{}\r\n{windows}", list.replace('\n', "\r\n")));
    let chosen = "[agents]\nuse = [\"zed\"]\n";
    assert_eq!(set(chosen), chosen);
}
