//! Files that broke and how their authors mended them: fixing the broken one must give what the
//! author meant.

use std::{fs, path::Path};

use savoir_skill::{
    Document, Safety, Source, State,
    check::{Options, fix},
    yaml::YamlVersion,
};
use serde_json::{Map, Value};

use crate::shared::{in_parallel, shared};

#[derive(Debug, PartialEq)]
enum Outcome {
    /// Reads, with the values of the author.
    Same,
    /// Reads, with other values.
    Differs(String),
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

fn compare(pair: &Path) -> Outcome {
    let before = fs::read_to_string(pair.join("before.SKILL.md")).expect("before");
    let after = fs::read_to_string(pair.join("after.SKILL.md")).expect("after");
    let fixed = fix(&before, None, &Options::default(), Safety::Safe);
    let meant = fields(&after).expect("the author's version reads");
    match fields(&fixed.text) {
        Err(problem) => Outcome::Broken(problem),
        Ok(got) => {
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
fn fixes_mean_what_the_authors_meant() {
    let Some(folder) = shared("fixpairs") else { return };
    let mut pairs: Vec<_> = fs::read_dir(folder)
        .expect("fixpairs")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir())
        .collect();
    pairs.sort();
    let outcomes = in_parallel(&pairs, |pair| compare(pair));
    let count =
        |wanted: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| wanted(outcome)).count();
    let same = count(|outcome| matches!(outcome, Outcome::Same));
    let broken = count(|outcome| matches!(outcome, Outcome::Broken(_)));
    for (pair, outcome) in pairs.iter().zip(&outcomes) {
        if *outcome != Outcome::Same {
            eprintln!("{} {outcome:?}", pair.file_name().expect("name").to_string_lossy());
        }
    }
    eprintln!("{same} of {} as meant, {broken} broken", pairs.len());
    assert!(same * 100 >= pairs.len() * 90, "only {same} of {}", pairs.len());
}
