//! Compares the findings in 200 real skills with the verdict of a reviewer about each one.
//!
//! `reviewed.tsv` has one line for each finding: file, line, code, severity, verdict. A finding that is
//! not in it must be reviewed before it is added; `SAVOIR_PRINT_SAMPLE=1` prints the lines that are
//! found now.

use std::{fs, path::Path};

use savoir_skill::{
    Folder, Source,
    check::{Options, check},
};
use sha2::{Digest as _, Sha256};

use crate::shared::{in_parallel, shared};

/// The commit whose hash chose the sample.
const SEED: &str = "dd4459e9d172f3ff166999598035c4285ce2c9d5";
const SAMPLE: usize = 200;

/// A finding as the review has it.
#[derive(Debug, PartialEq, Eq)]
struct Reviewed {
    finding: String,
    is_error: bool,
    is_right: bool,
}

fn reviewed() -> Vec<Reviewed> {
    let lines = include_str!("reviewed.tsv").lines();
    let read = |line: &str| {
        let (finding, verdict) = line.rsplit_once('\t').expect("a verdict");
        assert!(["right", "wrong"].contains(&verdict), "{line}");
        let is_error = finding.ends_with("\terror");
        Reviewed { finding: finding.to_owned(), is_error, is_right: verdict == "right" }
    };
    lines.map(read).collect()
}

/// The sample of the corpus, sorted by path.
fn sample(corpus: &Path) -> Vec<String> {
    let text = fs::read_to_string(corpus.join("expected.jsonl")).expect("expected.jsonl");
    let mut paths: Vec<(Vec<u8>, String)> = text
        .lines()
        .map(|line| {
            let facts: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
            let path = facts["path"].as_str().expect("path").to_owned();
            (Sha256::digest(format!("{SEED}{path}")).to_vec(), path)
        })
        .collect();
    paths.sort();
    let mut paths: Vec<String> = paths.into_iter().take(SAMPLE).map(|(_, path)| path).collect();
    paths.sort();
    paths
}

fn findings(corpus: &Path, path: &str) -> Vec<String> {
    let file = corpus.join(path);
    let folder = Folder::open(file.parent().expect("a folder")).expect("the folder of a skill");
    let bytes = fs::read(&file).expect("a file of the corpus");
    let Ok(source) = Source::from_bytes(bytes) else {
        return vec![format!("{path}\t1\tnot-utf8\terror")];
    };
    let checked = check(source, Some(&folder), &Options::default());
    let source = checked.reading.document.source();
    let line = |start: usize| source.position(start).line;
    let found = checked.diagnostics.iter();
    found
        .map(|found| {
            format!("{path}\t{}\t{}\t{}", line(found.span.start), found.code, found.severity)
        })
        .collect()
}

#[test]
fn every_finding_in_the_sample_was_reviewed() {
    let Some(corpus) = shared("corpus") else { return };
    let paths = sample(&corpus);
    assert_eq!(paths.len(), SAMPLE);
    let found = in_parallel(&paths, |path| findings(&corpus, path)).concat();
    if std::env::var_os("SAVOIR_PRINT_SAMPLE").is_some() {
        fs::write(std::env::temp_dir().join("reviewed.tsv"), found.join("\n")).expect("a file");
    }
    let reviewed: Vec<String> = reviewed().into_iter().map(|one| one.finding).collect();
    let new: Vec<_> = found.iter().filter(|found| !reviewed.contains(found)).collect();
    let gone: Vec<_> = reviewed.iter().filter(|reviewed| !found.contains(reviewed)).collect();
    assert!(new.is_empty() && gone.is_empty(), "to review: {new:#?}\nno longer found: {gone:#?}");
}

#[test]
fn few_findings_are_wrong() {
    let reviewed = reviewed();
    let share = |wrong: usize, all: usize| (wrong * 100).div_ceil(all.max(1));
    let wrong = reviewed.iter().filter(|one| !one.is_right).count();
    assert!(share(wrong, reviewed.len()) <= 5, "{wrong} of {} are wrong", reviewed.len());
    let errors: Vec<_> = reviewed.iter().filter(|one| one.is_error).collect();
    let wrong = errors.iter().filter(|one| !one.is_right).count();
    assert!(share(wrong, errors.len()) <= 2, "{wrong} of {} errors are wrong", errors.len());
}
