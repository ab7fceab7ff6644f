//! Tests fixes against real corrections: fixing a broken file must give what its author meant.

use std::{fs, path::Path};

use savoir_skill::{
    Document, Safety, Source, State,
    check::{Options, fix},
    yaml::YamlVersion,
};
use serde_json::{Map, Value};

use crate::shared::{in_parallel, shared};

/// Pairs that do not come out as the author left them, and why.
const OTHERWISE: [(&str, &str); 20] = [
    ("0126", "the author made a field of the last words of the description"),
    ("0134", PUNCTUATION),
    ("0140", "the author took out an indented field below a value"),
    ("0147", PUNCTUATION),
    ("0162", NEW_TEXT),
    ("0163", NEW_TEXT),
    ("0164", NEW_TEXT),
    ("0179", NEW_TEXT),
    ("0180", NEW_TEXT),
    ("0181", NEW_TEXT),
    ("0182", NEW_TEXT),
    ("0183", NEW_TEXT),
    ("0191", NEW_TEXT),
    ("0192", NEW_TEXT),
    ("0193", NEW_TEXT),
    ("0195", "a field appears twice with two values: the author has to choose"),
    ("0398", NEW_TEXT),
    ("0520", NEW_TEXT),
    ("0574", PUNCTUATION),
    ("0642", "the author made a field of a paragraph of the description"),
];

const NEW_TEXT: &str = "the author wrote another description";
const PUNCTUATION: &str = "the author wrote other punctuation instead of quotes";

#[derive(Debug, PartialEq)]
enum Outcome {
    /// Reads, with the values of the author.
    Same,
    /// Reads, with other values.
    Differs(String),
    /// Can be read, but has a field that the author did not write.
    Invented(String),
    /// Does not read.
    Broken(String),
}

fn fields(text: &str) -> Result<Map<String, Value>, String> {
    let source = Source::from_bytes(text.as_bytes().to_vec()).map_err(|error| error.to_string())?;
    let document = Document::parse(source);
    let first = document.problems().iter().find(|problem| problem.is_error());
    match (document.state(), document.fields()) {
        (State::Clean, Some(fields)) if first.is_none() => match fields.to_value(YamlVersion::V1_2)
        {
            Value::Object(map) => Ok(map),
            other => Err(format!("not a map: {other}")),
        },
        (state, _) => Err(format!("{state:?} {first:?}")),
    }
}

/// Values are compared without regard to white space: folding differs from one style to another.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        other => other.to_string().split_whitespace().collect(),
    }
}

/// Whether the entry was never broken: it reads alone as we read it, so the author who has another
/// value changed his mind, not the YAML.
fn rewritten(before: &str, key: &str, got: Option<&Value>) -> bool {
    let lines: Vec<&str> = before.lines().take(200).collect();
    let Some(start) = lines.iter().position(|line| line.starts_with(&format!("{key}:"))) else {
        return got.is_none();
    };
    let more = lines[start + 1..]
        .iter()
        .take_while(|line| line.starts_with([' ', '\t', '-']) && **line != "---");
    let entry =
        [&lines[start..=start], &lines[start + 1..start + 1 + more.count()]].concat().join("\n");
    let alone = fields(&format!("---\n{entry}\n---\n"));
    alone.is_ok_and(|alone| alone.get(key).map(words) == got.map(words))
}

/// Whether a text contains a field, even if it is broken.
fn mentions(text: &str, key: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start_matches([' ', '\t', '-', '"', '\'', '{', '\u{feff}']);
        let rest = line.strip_prefix(key).map(|rest| rest.trim_start_matches(['"', '\'', ' ']));
        rest.is_some_and(|rest| rest.starts_with(':'))
    })
}

fn compare(pair: &Path) -> Outcome {
    let before = fs::read_to_string(pair.join("before.SKILL.md")).expect("before");
    let after = fs::read_to_string(pair.join("after.SKILL.md")).expect("after");
    let fixed = fix(&before, None, &Options::default(), Safety::Safe);
    let meant = fields(&after).expect("the author's version reads");
    match fields(&fixed.text) {
        Err(problem) => Outcome::Broken(problem),
        Ok(got) => {
            let invented =
                got.keys().find(|key| !meant.contains_key(*key) && !mentions(&before, key));
            if let Some(key) = invented {
                return Outcome::Invented(key.clone());
            }
            let differs = meant.iter().find(|(key, value)| {
                got.get(*key).map(words) != Some(words(value))
                    && !rewritten(&before, key, got.get(*key))
            });
            match differs {
                None => Outcome::Same,
                Some((key, value)) => Outcome::Differs(format!(
                    "{key}: {:?} instead of {}",
                    got.get(key).map(words),
                    words(value)
                )),
            }
        }
    }
}

#[test]
fn fixes_match_the_authors_corrections() {
    let Some(folder) = shared("fixpairs") else { return };
    let mut pairs: Vec<_> = fs::read_dir(folder)
        .expect("fixpairs")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir())
        .collect();
    pairs.sort();
    let outcomes = in_parallel(&pairs, |pair| compare(pair));
    let mut problems = Vec::new();
    let mut same = 0;
    for (pair, outcome) in pairs.iter().zip(&outcomes) {
        let id = pair.file_name().expect("name").to_string_lossy();
        let listed = OTHERWISE.iter().any(|(other, _)| *other == id);
        match outcome {
            Outcome::Same if listed => problems.push(format!("{id} is listed, but as meant")),
            Outcome::Same => same += 1,
            Outcome::Differs(_) | Outcome::Broken(_) if listed => {}
            other => problems.push(format!("{id} {other:?}")),
        }
    }
    for (id, _) in OTHERWISE {
        if !pairs.iter().any(|pair| pair.ends_with(id)) {
            problems.push(format!("{id} is listed, but not there"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(same * 100 >= pairs.len() * 90, "only {same} of {}", pairs.len());
}
