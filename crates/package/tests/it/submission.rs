//! Tests of the checks before publishing.

use std::{
    fmt::Write as _,
    fs,
    os::unix::fs::PermissionsExt as _,
    time::{Duration, SystemTime},
};

use savoir_package::{
    File, Tree, archive,
    registry::Name,
    submission::{PublishOptions, Rejection, Submission, pack},
    trust::{SigningKey, Tier, sign},
};
use semver::Version;

const GOOD: &str = "---\nname: web-search\nversion: 1.2.0\ndescription: Searches the web. Use when something is not known.\nauthor: Ada\nlicense: MIT\npermissions:\n  - network:read:*.example.com\nsecurity_tier: community\ntools:\n  - name: search_web\n    description: Searches.\nrequirements:\n  skills:\n    - {name: fetch, version: \"^1.0\"}\ntags: [web]\nhomepage: https://example.com/search\nrepository: javascript:alert(1)\n---\n# Search\n\nSearch.\n";
const TOOLS: &str = "from gaia.agents.base.tools import tool\n\n\n@tool\ndef search_web():\n    \"\"\"Searches.\"\"\"\n    return []\n";

fn tree(files: &[(&str, &[u8])]) -> Tree {
    let mut tree = Tree::default();
    for (path, bytes) in files {
        let file = File { bytes: bytes.to_vec(), executable: false };
        tree.add((*path).to_owned(), file).unwrap();
    }
    tree
}

fn good() -> Tree {
    tree(&[("SKILL.md", GOOD.as_bytes()), ("tools.py", TOOLS.as_bytes())])
}

fn text(text: &str) -> Tree {
    tree(&[("SKILL.md", text.as_bytes())])
}

/// Packs a skill in a folder with its name.
fn zipped(tree: &Tree) -> Vec<u8> {
    let skill = tree.get("SKILL.md").map(|file| String::from_utf8_lossy(&file.bytes));
    let name = skill.as_ref().and_then(|skill| skill.split_once("\nname: ")?.1.lines().next());
    let fits = |name: &&str| !name.is_empty() && name.is_ascii() && !name.contains(['[', '/']);
    archive::pack(name.filter(fits).unwrap_or("demo"), tree).unwrap()
}

fn in_namespace(namespace: &str) -> PublishOptions {
    PublishOptions { namespace: Some(namespace.to_owned()), ..PublishOptions::default() }
}

#[test]
fn submission_has_all_registry_fields() {
    let bytes = archive::pack("web-search", &good()).unwrap();
    let read = Submission::read(&bytes, &in_namespace("acme")).unwrap();
    assert_eq!(read.name.to_string(), "acme/web-search");
    assert_eq!(read.version, Some(Version::new(1, 2, 0)));
    assert_eq!(read.integrity, good().integrity());
    assert_eq!(read.skill_md, GOOD.as_bytes());
    assert_eq!(read.manifest["author"], "Ada");
    assert_eq!(read.dialect, "gaia");
    assert_eq!(read.description, "Searches the web. Use when something is not known.");
    assert_eq!((read.author.as_deref(), read.license.as_deref()), (Some("Ada"), Some("MIT")));
    assert_eq!(read.tags, ["web"]);
    assert_eq!(read.homepage.as_deref(), Some("https://example.com/search"));
    assert_eq!(read.repository, None, "only addresses of the web become links");
    assert_eq!(read.claimed, Some(Tier::Community));
    assert_eq!(read.permissions, ["network:read:*.example.com"]);
    assert_eq!(read.tools, ["search_web"]);
    assert_eq!(read.dependencies, ["fetch@^1.0"]);
    assert_eq!(read.body.trim(), "# Search\n\nSearch.");
    assert!(read.signatures.is_empty());
    let files: Vec<_> = read.files.iter().map(|file| (file.path.as_str(), file.size)).collect();
    assert_eq!(files, [("SKILL.md", GOOD.len() as u64), ("tools.py", TOOLS.len() as u64)]);
    assert!(read.files.iter().all(|file| file.sha256.len() == 64));
}

#[test]
fn signatures_are_found_and_checked() {
    let plain =
        Submission::of_tree(good(), Some("web-search"), &PublishOptions::default()).unwrap();
    let (key, other) = (SigningKey::generate().unwrap(), SigningKey::generate().unwrap());
    let (name, version) = plain.signed_as();
    let record = savoir_package::trust::sign(&plain.tree, name, version, "Ada", &key);
    let signed = plain.with_record(record).unwrap();
    assert!(plain.tree.get("signature.json").is_none(), "the original is as it was");
    let signed =
        Submission::of_tree(signed, Some("web-search"), &PublishOptions::default()).unwrap();
    assert_eq!(signed.integrity, plain.integrity);
    let [found] = signed.signatures.as_slice() else { panic!("{:?}", signed.signatures) };
    assert!(found.holds);
    assert_eq!(found.record.key_id, Some(key.key_id()));
    assert_eq!(found.record.public_key, Some(key.public_key().to_base64()));
    assert_eq!(found.record.publisher.as_deref(), Some("Ada"));
    assert_eq!(signed.attested_by(&[key.public_key()]).unwrap().tier, Tier::Community);
    assert_eq!(signed.attested_by(&[other.public_key()]).unwrap().tier, Tier::Experimental);
    // A signature of other files is an error.
    let record = sign(&good(), "web-search", "1.2.0", "Ada", &key);
    let changed = tree(&[
        ("SKILL.md", GOOD.as_bytes()),
        ("tools.py", TOOLS.as_bytes()),
        ("more.md", b"x"),
        ("signature.json", &record),
    ]);
    let error = Submission::read(&zipped(&changed), &PublishOptions::default()).unwrap_err();
    assert_eq!((error.code(), error.api_code()), ("file_additional", "invalid_artifact"));
}

#[test]
fn text_without_frontmatter_is_anonymous() {
    let prose = text("# Café Notes\n\nWrite down what was said.\n");
    let read = Submission::read(&zipped(&prose), &in_namespace("anon")).unwrap();
    assert_eq!((read.name.to_string().as_str(), read.version.is_none()), ("anon/cafe-notes", true));
    assert_eq!(read.pack().unwrap().0, "cafe-notes.zip");
    let asked = PublishOptions { name: Some("notes".to_owned()), ..in_namespace("anon") };
    assert_eq!(Submission::read(&zipped(&prose), &asked).unwrap().name.to_string(), "anon/notes");
    let refused = Submission::read(&zipped(&prose), &PublishOptions::default()).unwrap_err();
    assert_eq!(refused.code(), "no_frontmatter");
    let bare = archive::pack("1", &text("Write down what was said.\n")).unwrap();
    assert_eq!(Submission::read(&bare, &in_namespace("anon")).unwrap_err().code(), "no_name");
    let structured = Submission::of_tree(good(), None, &in_namespace("anon")).unwrap_err();
    assert_eq!(structured.code(), "not_prose");
    // The publisher can also choose another namespace.
    let own = Submission::read(&zipped(&prose), &in_namespace("acme")).unwrap();
    assert_eq!((own.name.to_string().as_str(), own.version.is_none()), ("acme/cafe-notes", true));
    let asked = PublishOptions { name: Some("notes".to_owned()), ..in_namespace("acme") };
    assert_eq!(Submission::read(&zipped(&prose), &asked).unwrap().name.to_string(), "acme/notes");
}

#[test]
fn sent_skill_md_must_match_archive() {
    let bytes = archive::pack("web-search", &good()).unwrap();
    let asked =
        |text: &str| PublishOptions { skill_md: Some(text.into()), ..PublishOptions::default() };
    Submission::read(&bytes, &asked(GOOD)).unwrap();
    let error = Submission::read(&bytes, &asked(&format!("{GOOD}\n"))).unwrap_err();
    assert_eq!((error.code(), error.api_code()), ("skill_differs", "invalid_request"));
}

#[test]
fn warnings_do_not_reject() {
    let more = tree(&[
        ("SKILL.md", GOOD.as_bytes()),
        ("tools.py", TOOLS.as_bytes()),
        ("inner.zip", &zipped(&text("x"))),
    ]);
    let read = Submission::of_tree(more, Some("web-search"), &PublishOptions::default()).unwrap();
    let nested = read.warnings.iter().find(|found| found.rule == "nested-archive").unwrap();
    assert_eq!((nested.file.as_str(), nested.line), ("SKILL.md", 1));
    assert!(nested.message.contains("inner.zip") && nested.fix.is_some());
}

/// The same files give the same bytes, independent of time and machine.
#[test]
fn packing_is_reproducible() {
    let place = tempfile::tempdir().unwrap();
    let name = Name::parse("acme/web-search").unwrap();
    let packed = |folder: &str, reverse: bool, mode: u32, age: u64| {
        let root = place.path().join(folder);
        fs::create_dir_all(root.join("references")).unwrap();
        let mut files =
            vec![("SKILL.md", GOOD), ("tools.py", TOOLS), ("references/a.md", "a"), ("b.md", "b")];
        if reverse {
            files.reverse();
        }
        for (path, text) in files {
            let path = root.join(path);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let time = SystemTime::now() - Duration::from_secs(age);
            fs::File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
        }
        let tree = Tree::read(&root).unwrap();
        pack(&tree, &name, Some(&Version::new(1, 2, 0))).unwrap()
    };
    let first = packed("one", false, 0o644, 0);
    assert_eq!(first.0, "web-search-1.2.0.zip");
    assert_eq!(first, packed("two", true, 0o600, 100_000_000));
    let again = Submission::read(&first.1, &in_namespace("acme")).unwrap();
    assert_eq!(again.pack().unwrap(), first);
}

fn rejected(tree: &Tree, asked: &PublishOptions) -> Rejection {
    Submission::read(&zipped(tree), asked).unwrap_err()
}

/// Checks the codes and messages of all rejections.
#[test]
fn every_rejection_has_code_and_message() {
    let none = &PublishOptions::default();
    let with = |from: &str, to: &str| {
        let skill = GOOD.replace(from, to);
        assert_ne!(skill, GOOD, "{from}");
        tree(&[("SKILL.md", skill.as_bytes()), ("tools.py", TOOLS.as_bytes())])
    };
    let simple = |head: &str| text(&format!("---\n{head}---\n# Demo\n\nDo it.\n"));
    let long = "x".repeat(300);
    let tags = vec!["t"; 51].join(", ");
    let loose = |head: &str| tree(&[("SKILL.md", &loose_text(head))]);
    let plain = "metadata:\n  version: \"1.0.0\"\n";
    let all: Vec<(&str, Rejection)> = vec![
        ("not an archive", Submission::read(b"hello", none).unwrap_err()),
        ("too large", Submission::read(&vec![b'x'; 11 << 20], none).unwrap_err()),
        ("no SKILL.md", rejected(&tree(&[("README.md", b"x")]), none)),
        ("no text", rejected(&tree(&[("SKILL.md", b"---\nname: \xff\n---\n")]), none)),
        ("huge text", rejected(&text(&"word \n".repeat(200_000)), none)),
        ("broken YAML", rejected(&text("---\nname: [\n---\n"), none)),
        ("no fields", rejected(&simple("name: demo\n"), none)),
        ("escape sequence", rejected(&with("Searches the", "\u{1b}[2K"), none)),
        (
            "escape sequence in quotes",
            rejected(
                &simple("name: demo\nversion: 1.0.0\ndescription: \"safe\\e[2Ktool\"\n"),
                none,
            ),
        ),
        ("an alias", rejected(&with("author: Ada", "author: &a Ada\nx: *a"), none)),
        ("unknown permission", rejected(&with("network:read:*.example.com", "magic:all"), none)),
        ("bad range", rejected(&with("^1.0", "1 || 2"), none)),
        ("bad need", rejected(&with("name: fetch", "name: Fetch It"), none)),
        ("no version", rejected(&loose(""), none)),
        ("a number", rejected(&with("1.2.0", "1.2"), none)),
        ("no semantic version", rejected(&loose("metadata:\n  version: one\n"), none)),
        ("0.0.0", rejected(&loose("metadata:\n  version: \"0.0.0\"\n"), none)),
        ("a name with a digit", rejected(&renamed(&loose(plain), "1demo"), none)),
        ("a taken word", rejected(&renamed(&loose(plain), "download"), none)),
        ("no namespace", rejected(&loose(plain), &in_namespace("../x"))),
        ("another namespace", {
            let claude = format!("{plain}user-invocable: true\n");
            rejected(&renamed(&loose(&claude), "acme/demo"), &in_namespace("other"))
        }),
        ("prose", rejected(&text("# Hello\n\nSay hello.\n"), none)),
        ("structured prose", rejected(&loose(plain), &in_namespace("anon"))),
        ("prose without a name", {
            let bytes = archive::pack("1", &text("Say hello.\n")).unwrap();
            Submission::read(&bytes, &in_namespace("anon")).unwrap_err()
        }),
        ("another version", {
            let version = Some("2.0.0".to_owned());
            rejected(&loose(plain), &PublishOptions { version, ..PublishOptions::default() })
        }),
        ("a version of prose", {
            let version = Some("1.0.0".to_owned());
            let asked = PublishOptions { version, ..in_namespace("anon") };
            rejected(&text("# Hello\n\nSay hello.\n"), &asked)
        }),
        ("another SKILL.md", {
            let skill_md = Some(b"other".to_vec());
            rejected(&loose(plain), &PublishOptions { skill_md, ..PublishOptions::default() })
        }),
        ("a long author", rejected(&with("author: Ada", &format!("author: {long}")), none)),
        ("many tags", rejected(&with("[web]", &format!("[{tags}]")), none)),
        ("a broken signature", {
            let files: [(&str, &[u8]); 2] =
                [("SKILL.md", &loose_text(plain)), ("signature.json", b"{}")];
            rejected(&tree(&files), none)
        }),
    ];
    let mut shown = String::new();
    for (what, rejection) in &all {
        let (code, api) = (rejection.code(), rejection.api_code());
        writeln!(shown, "{what}: {code} ({api})\n  {}", rejection.message()).unwrap();
        assert!(rejection.findings().iter().all(|found| found.line > 0), "{what}");
    }
    insta::assert_snapshot!(shown);
}

fn loose_text(head: &str) -> Vec<u8> {
    format!(
        "---\nname: demo\ndescription: Shows it. Use when learning.\n{head}---\n# Demo\n\nDo it.\n"
    )
    .into_bytes()
}

/// Returns the same skill under another name.
fn renamed(tree: &Tree, name: &str) -> Tree {
    let skill = String::from_utf8(tree.get("SKILL.md").unwrap().bytes.clone()).unwrap();
    text(&skill.replace("name: demo", &format!("name: {name}")))
}
