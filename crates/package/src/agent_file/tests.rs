//! Tests that agent files are parsed and that errors are reported with their position.

use proptest::prelude::*;

use super::*;

const SPECIFIED: &str = r#"# Example
name: gaia-agent
version: 0.24.0
description: "Document Q&A with RAG capabilities"

skills:
  - name: rag-search
    version: ">=1.0.0"
    required: true
  - name: web-search
    version: ">=1.0.0"
    required: false       # Optional enhancement
  - file-operations

model:
  default: "Qwen3.5-35B"
  minimum: ">=7B"
  context: ">=32K"
"#;

const SHIPPED: &str = "name: helper
skills: [base]
skill_sets:
  small: [notes@^1]
  large:
    - {name: notes, version: ^2}
    - search
default_skill_set: small
";

fn parse(text: &str) -> AgentFile {
    AgentFile::parse("agents/AGENT.yaml", text).unwrap()
}

fn content_error(text: &str) -> String {
    let content_error = AgentFile::parse("AGENT.yaml", text).unwrap_err();
    match &content_error.hint {
        Some(hint) => format!("{content_error} | {hint}"),
        None => content_error.to_string(),
    }
}

#[test]
fn example_of_specification_is_parsed() {
    let agent = parse(SPECIFIED);
    assert_eq!(agent.version, Some(Version::new(0, 24, 0)));
    assert_eq!(agent.model.minimum.as_ref().unwrap().amount, 7_000_000_000);
    assert_eq!(agent.model.context.as_ref().unwrap().amount, 32_000);
    assert_eq!(agent.skills[1].place.to_string(), "agents/AGENT.yaml:10:5");
    assert!(agent.warnings.is_empty());
    let roots = agent.roots(None).unwrap();
    let shown: Vec<_> = roots
        .iter()
        .map(|root| (root.skill.to_string(), root.need, root.asker.to_string()))
        .collect();
    let file = || "`AGENT.yaml`".to_owned();
    assert_eq!(
        shown,
        [
            ("rag-search@>=1.0.0".to_owned(), Necessity::Required, file()),
            ("web-search@>=1.0.0".to_owned(), Necessity::Optional, file()),
            ("file-operations".to_owned(), Necessity::Required, file()),
        ]
    );
}

#[test]
fn composition_is_printed_as_tree() {
    let mut composition = parse(SPECIFIED).composition(None).unwrap();
    composition.parts[0].version = Some(Version::new(1, 4, 0));
    composition.parts[0].tools = vec!["search".to_owned(), "index".to_owned()];
    composition.parts[2].tools = vec!["move".to_owned()];
    insta::assert_snapshot!(composition.to_string(), @r"
    gaia-agent 0.24.0
    ├── rag-search 1.4.0 (>=1.0.0)
    │   ├── search
    │   └── index
    ├── web-search (>=1.0.0), optional
    └── file-operations
        └── move
    ");
}

#[test]
fn exactly_one_set_is_active() {
    let agent = parse(SHIPPED);
    let names = |set| -> Vec<String> {
        agent.roots(set).unwrap().iter().map(|root| root.skill.to_string()).collect()
    };
    assert_eq!(names(None), ["base", "notes@^1"]);
    assert_eq!(names(Some("large")), ["base", "notes@^2", "search"]);
    assert_eq!(agent.composition(None).unwrap().set.as_deref(), Some("small"));
    assert_eq!(
        agent.roots(Some("huge")).unwrap_err().to_string(),
        "agents/AGENT.yaml has no set of skills `huge`: choose `large` or `small`"
    );
    let open = parse(&SHIPPED.replace("default_skill_set: small\n", ""));
    assert!(matches!(open.roots(None), Err(SetError::Ambiguous { .. })));
    let only = parse("name: x\nskill_sets: {one: [a]}\n");
    assert_eq!(only.composition(None).unwrap().set.as_deref(), Some("one"));
    let none = parse("name: x\nskills:\nmodel:\n");
    assert_eq!(none.roots(None).unwrap(), []);
    assert!(none.roots(Some("one")).is_err());
}

#[test]
fn errors_have_a_position() {
    for (text, expected) in [
        ("", "AGENT.yaml:1:1: an agent is a map with a `name`"),
        ("version: 1.0.0\n", "AGENT.yaml:1:1: `name` is missing"),
        ("name: [", "AGENT.yaml:"),
        ("name: 7\n", "AGENT.yaml:1:7: this must be a text, and is a number | put it into quotes"),
        (
            "name: x\nversion: 1.0\n",
            "AGENT.yaml:2:10: this must be a text, and is a number | put it into quotes",
        ),
        (
            "name: x\nversion: 1.0.x\n",
            "AGENT.yaml:2:10: `1.0.x` is not a semantic version such as 1.2.3: ",
        ),
        ("name: x\nname: y\n", "AGENT.yaml:2:1: `name` is there twice"),
        ("name: x\nskills: a\n", "AGENT.yaml:2:9: this must be a list of skills, and is a string"),
        ("name: x\nskills:\n  - {version: 1}\n", "AGENT.yaml:3:5: the skill has no `name`"),
        (
            "name: x\nskills:\n  - name: a\n    version: 1.x\n",
            "AGENT.yaml:4:14: `1.x` is not a version such as 1.2.3",
        ),
        (
            "name: x\nskills:\n  - name: a\n    required: perhaps\n",
            "AGENT.yaml:4:15: this must be true or false, and is a string",
        ),
        ("name: x\nskills: [a, a]\n", "AGENT.yaml:2:13: `a` is there twice"),
        ("name: x\nskills: [../a]\n", "AGENT.yaml:2:10: `../a` cannot be the name of a skill"),
        (
            "name: x\nskills: [a]\nskill_sets: {s: [a]}\n",
            "AGENT.yaml:3:18: `a` is among `skills` already",
        ),
        (
            "name: x\nskill_sets: {small: [a]}\ndefault_skill_set: smal\n",
            "AGENT.yaml:3:20: there is no set of skills `smal` | did you mean `small`?",
        ),
        (
            "name: x\nmodel: {minimum: big}\n",
            "AGENT.yaml:2:18: `big` is not a lower limit such as >=7B",
        ),
    ] {
        let found = content_error(text);
        assert!(found.starts_with(expected), "{found}\n{expected}");
    }
}

#[test]
fn misspelled_keys_are_warnings() {
    let agent = parse("name: x\nskils: [a]\nauthor: me\nskills:\n  - {name: b, requird: false}\n");
    let warnings: Vec<String> = agent
        .warnings
        .iter()
        .map(|warning| format!("{warning} | {}", warning.hint.as_deref().unwrap_or_default()))
        .collect();
    assert_eq!(
        warnings,
        [
            "agents/AGENT.yaml:2:1: `skils` is not read | did you mean `skills`?",
            "agents/AGENT.yaml:5:15: `requird` is not read | did you mean `required`?",
        ]
    );
}

#[test]
fn both_file_names_are_found() {
    let place = tempfile::tempdir().unwrap();
    assert_eq!(find(place.path()), None);
    std::fs::write(place.path().join("gaia-agent.yaml"), SHIPPED).unwrap();
    let path = find(place.path()).unwrap();
    assert_eq!(AgentFile::read(&path).unwrap().unwrap().sets.len(), 2);
    std::fs::write(place.path().join("AGENT.yaml"), SPECIFIED).unwrap();
    assert!(find(place.path()).unwrap().ends_with("AGENT.yaml"));
    assert!(AgentFile::read(&place.path().join("none")).unwrap().is_none());
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
        let whole = SPECIFIED;
        let start = start % whole.len();
        let end = (start + length).min(whole.len());
        if whole.is_char_boundary(start) && whole.is_char_boundary(end) {
            let text = format!("{}{new}{}", &whole[..start], &whole[end..]);
            if let Ok(agent) = AgentFile::parse("AGENT.yaml", &text) {
                let _ = agent.roots(None);
            }
        }
    }
}
