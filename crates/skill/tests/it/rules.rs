//! Tests that every rule matches the examples in its documentation.

use std::{fmt::Write as _, fs, path::Path};

use savoir_skill::{
    Diagnostic, Dialect, Folder, Source,
    check::{CheckedSkill, Example, Options, Rule, all_rules, check, fix, rule},
    read_as,
};
use tempfile::TempDir;

/// Rules whose examples would not fit into documentation.
const WITHOUT_EXAMPLES: [(&str, &str); 5] = [
    ("file-too-large", "an example has more than 50 KiB"),
    ("frontmatter-too-large", "an example has more than 64 KiB"),
    ("not-utf8", "documentation is UTF-8"),
    ("unreadable-file", "there is no text to show"),
    ("unwritable-file", "the text is sound, its place is not"),
];

fn has_examples(rule: &Rule) -> bool {
    WITHOUT_EXAMPLES.iter().all(|(code, _)| *code != rule.code)
}

/// An example in a separate folder.
struct Skill {
    folder: Folder,
    text: String,
    options: Options,
    _dir: TempDir,
}

impl Skill {
    fn new(example: &Example) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let words = || example.options.iter().filter_map(|option| option.split_once('='));
        let named = words().find(|(key, _)| *key == "folder").map(|(_, name)| name);
        let root = dir.path().join(named.or_else(|| name_of(&example.text)).unwrap_or("demo"));
        let mut options = Options::default();
        let file = words().find(|(key, _)| *key == "file").map_or("SKILL.md", |(_, name)| name);
        write(&root.join(file), &example.text);
        options.strict = example.options.iter().any(|option| option == "strict");
        for (key, word) in words() {
            match key {
                "with" if word == "tools.py" => write(&root.join(word), &module_of(&example.text)),
                "with" => write(&root.join(word), ""),
                "dialect" => options.dialect = Some(word.parse().expect("a dialect")),
                "programs" => options.programs.push(word.into()),
                "target" => options.targets.push(word.parse().expect("a target")),
                "folder" | "file" | "repeat" => {}
                other => panic!("examples have no option `{other}`"),
            }
        }
        for (name, content) in &example.files {
            write(&root.join(name), content);
        }
        let folder = Folder::open(&root).expect("the folder of the example");
        Self { folder, text: example.text.clone(), options, _dir: dir }
    }

    fn check(&self) -> CheckedSkill {
        let source = Source::from_bytes(self.text.clone().into_bytes()).expect("UTF-8");
        check(source, Some(&self.folder), &self.options)
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    fs::write(path, text).expect("a file");
}

/// A module with every tool that a GAIA skill declares.
fn module_of(text: &str) -> String {
    let source = Source::from_bytes(text.as_bytes().to_vec()).expect("UTF-8");
    let mut module = String::from("from gaia.agents.base.tools import tool\n");
    for tool in read_as(source, Dialect::GAIA, None).skill.tools {
        // After a star, a parameter with a default may precede one without.
        let star = if tool.parameters.is_empty() { "" } else { "*, " };
        let parameters = tool.parameters.iter().map(|parameter| {
            format!("{}{}", parameter.name, if parameter.required { "" } else { "=None" })
        });
        let parameters = star.to_owned() + &parameters.collect::<Vec<_>>().join(", ");
        let _ = write!(module, "\n@tool\ndef {}({parameters}):\n    'Does it.'\n", tool.name);
    }
    module
}

/// The name in the frontmatter, when it can be the name of a folder.
fn name_of(text: &str) -> Option<&str> {
    let name = text.lines().find_map(|line| line.strip_prefix("name:"))?.trim();
    is_kebab_case(name).then_some(name)
}

fn is_kebab_case(text: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty()
            && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    text.split('-').all(word)
}

fn bad(rule: &Rule) -> Skill {
    Skill::new(&rule.bad().unwrap_or_else(|| panic!("{} has no bad example", rule.code)))
}

fn good(rule: &Rule) -> Skill {
    Skill::new(&rule.good().unwrap_or_else(|| panic!("{} has no good example", rule.code)))
}

/// Holds every rule that has examples against an expectation and reports all that fail.
fn for_every_rule(test: impl Fn(&Rule) -> Result<(), String>) {
    let rules = all_rules().iter().filter(|rule| has_examples(rule));
    let failed: Vec<String> = rules
        .filter_map(|rule| test(rule).err().map(|why| format!("{}: {why}", rule.code)))
        .collect();
    assert!(failed.is_empty(), "{} rules fail:\n{}", failed.len(), failed.join("\n"));
}

fn list(found: &[Diagnostic]) -> String {
    let lines =
        found.iter().map(|found| format!("{} {}: {}", found.severity, found.code, found.message));
    lines.collect::<Vec<_>>().join("; ")
}

#[test]
fn codes_are_sorted_kebab_case() {
    let codes: Vec<_> = all_rules().iter().map(|rule| rule.code).collect();
    let mut sorted = codes.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(codes, sorted);
    for code in codes {
        assert!(is_kebab_case(code), "{code}");
        assert_eq!(rule(code).expect("found by its code").code, code);
    }
}

#[test]
fn every_rule_is_documented() {
    for rule in all_rules() {
        let (code, docs) = (rule.code, rule.docs());
        assert!(rule.summary().ends_with('.'), "{code}: the summary is a sentence");
        assert!(docs.contains("\n## Why\n"), "{code} does not say why");
        let both = docs.contains("\n## Bad\n") && docs.contains("\n## Good\n");
        assert_eq!(both, has_examples(rule), "{code}: examples");
    }
    for (code, _) in WITHOUT_EXAMPLES {
        assert!(rule(code).is_some(), "{code} is not a rule");
    }
}

#[test]
fn bad_examples_are_found() {
    for_every_rule(|rule| {
        let checked = bad(rule).check();
        let own: Vec<_> =
            checked.diagnostics.iter().filter(|found| found.code == rule.code).collect();
        if own.is_empty() {
            let dialect = checked.reading.detection.dialect;
            return Err(format!("not found in {dialect}: {}", list(&checked.diagnostics)));
        }
        let best = own.iter().filter_map(|found| found.fix.as_ref()).map(|fix| fix.safety).min();
        if best != rule.fix {
            return Err(format!("promises {:?}, has {best:?}", rule.fix));
        }
        Ok(())
    });
}

#[test]
fn good_examples_are_good() {
    for_every_rule(|rule| {
        let checked = good(rule).check();
        let wrong = |found: &Diagnostic| found.is_error() || found.code == rule.code;
        let found: Vec<_> = checked.diagnostics.into_iter().filter(wrong).collect();
        if found.is_empty() { Ok(()) } else { Err(list(&found)) }
    });
}

#[test]
fn fixes_keep_their_promise() {
    for_every_rule(|rule| {
        let Some(safety) = rule.fix else { return Ok(()) };
        let skill = bad(rule);
        let once = fix(&skill.text, Some(&skill.folder), &skill.options, safety);
        if !once.fixed.contains(&rule.code) {
            return Err(format!("not fixed, but {:?}", once.fixed));
        }
        if once.remaining.iter().any(|found| found.code == rule.code) {
            return Err(format!("still there in {:?}", once.text));
        }
        let twice = fix(&once.text, Some(&skill.folder), &skill.options, safety);
        if twice.text != once.text {
            return Err(format!("fixing again changes {:?} to {:?}", once.text, twice.text));
        }
        Ok(())
    });
}

#[test]
fn findings_are_known_and_say_something() {
    for_every_rule(|own| {
        for found in [bad(own), good(own)].iter().flat_map(|skill| skill.check().diagnostics) {
            if rule(found.code).is_none() {
                return Err(format!("`{}` is not a rule", found.code));
            }
            // One message is prescribed to the letter.
            let prescribed = found.message.starts_with("Undeclared placeholders in prompt: ");
            if found.message.is_empty() || (found.message.ends_with('.') && !prescribed) {
                return Err(format!("{} says {:?}", found.code, found.message));
            }
        }
        Ok(())
    });
}

#[test]
fn every_code_in_the_source_is_a_rule() {
    let mut codes = Vec::new();
    scan(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut codes);
    codes.sort();
    codes.dedup();
    assert!(codes.len() > 50, "the scan finds no codes: {codes:?}");
    let unknown: Vec<_> = codes.iter().filter(|code| rule(code).is_none()).collect();
    assert!(unknown.is_empty(), "these codes have no rule: {unknown:?}");
}

/// Gathers the codes that the files below a folder report, tests left out.
fn scan(folder: &Path, codes: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("the source") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            scan(&path, codes);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("source is UTF-8");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let plain = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            let dense: String = plain.flat_map(str::chars).filter(|c| !c.is_whitespace()).collect();
            codes.extend(codes_in(&dense).map(str::to_owned));
        }
    }
}

/// The codes in source without blanks.
fn codes_in(source: &str) -> impl Iterator<Item = &str> {
    /// The text before a code, and the end of the text between them.
    const BEFORE: [(&str, &str); 9] = [
        ("Diagnostic::error(", ""),
        ("Diagnostic::warning(", ""),
        ("Limit::warning(", ","),
        ("repair(", ""),
        ("code:", ""),
        ("codes.push(", ""),
        ("=>(", ""),
        ("=>{(", ""),
        ("letcode=", "{"),
    ];
    let found = BEFORE.iter().flat_map(move |(before, between)| {
        source.match_indices(before).filter_map(move |(at, _)| {
            let rest = &source[at + before.len()..];
            let rest = if between.is_empty() { rest } else { rest.split_once(between)?.1 };
            rest.strip_prefix('"')?.split('"').next()
        })
    });
    found.filter(|code| code.contains('-') && is_kebab_case(code))
}

#[test]
fn scan_finds_every_code_in_the_source() {
    let source = "Diagnostic::error(\"a-a\",x)Limit::warning(1,\"b-b\")repair(\"c-c\"Some(d)=>(\"d-d\",\
                  code:\"e-e\",=>{(\"f-f\",letcode=ifempty{\"g-g\"}codes.push(\"h-h\")Diagnostic::error(code,\"no\")";
    let mut codes: Vec<_> = codes_in(source).collect();
    codes.sort_unstable();
    assert_eq!(codes, ["a-a", "b-b", "c-c", "d-d", "e-e", "f-f", "g-g", "h-h"]);
}
