//! Tests with real published skills.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use savoir_package::migrate::{MigrateOptions, MigrationReport, Migrator};
use savoir_skill::{
    Dialect, Folder, Severity, Source, Strength,
    check::{Options as CheckOptions, check},
    read,
};

use crate::shared::shared;

/// The accepted reasons why a real skill is not migrated.
const BLOCKERS: [&str; 9] = [
    "no_frontmatter", "no_name", "no_description", "long_description", "unreadable", "name_taken",
    "other_dialect", "already_gaia",
    // Some skills contain settings of an agent, which are not allowed in any skill.
    "forbidden_path",
];

/// Returns the skills of the corpus by its list.
fn skills() -> Vec<PathBuf> {
    let Some(corpus) = shared("corpus") else { return Vec::new() };
    let list = fs::read_to_string(corpus.join("expected.jsonl")).unwrap();
    let files = list.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        corpus.join(line["path"].as_str().unwrap())
    });
    files.filter(|file| file.is_file()).collect()
}

fn count<'a>(reports: impl Iterator<Item = &'a MigrationReport>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for report in reports {
        let codes = report.blockers.iter().map(|blocker| blocker.code);
        for code in codes.chain(report.migrated.then_some("migrated")) {
            *counts.entry(code).or_default() += 1;
        }
    }
    counts
}

/// Whether a file has the metadata of OpenClaw.
fn is_claw(file: &PathBuf) -> bool {
    let Ok(source) = Source::from_bytes(fs::read(file).unwrap()) else { return false };
    let found = read(source, None).detection;
    found.dialect == Dialect::OPENCLAW && found.strength == Strength::Strong
}

#[test]
fn real_skills_migrate_or_have_known_blockers() {
    let files = skills();
    let place = tempfile::tempdir().unwrap();
    let output = place.path().join("out");
    let mut migrator = Migrator::new(MigrateOptions::new(output));
    let mut reports = Vec::new();
    for file in &files {
        let report = migrator.migrate(file);
        for blocker in &report.blockers {
            assert!(BLOCKERS.contains(&blocker.code), "{}: {blocker:?}", file.display());
        }
        assert_ne!(report.migrated, !report.blockers.is_empty());
        if let Some(folder) = report.output.as_ref().filter(|_| report.migrated) {
            valid(folder, &report);
        }
        reports.push(report);
    }
    let claws: Vec<&MigrationReport> =
        reports.iter().filter(|report| is_claw(&report.source)).collect();
    eprintln!("all: {:?}", count(reports.iter()));
    eprintln!("OpenClaw: {} of them: {:?}", claws.len(), count(claws.iter().copied()));
    for report in &claws {
        assert!(report.blockers.iter().all(|blocker| blocker.code != "other_dialect"));
    }
}

/// Checks that the GAIA rules find no error in a result.
fn valid(folder: &Path, report: &MigrationReport) {
    let source = Source::from_bytes(fs::read(folder.join("SKILL.md")).unwrap()).unwrap();
    let files = Folder::open(folder).unwrap();
    let checked = check(source, Some(&files), &CheckOptions::default());
    assert_eq!(checked.reading.detection.dialect, Dialect::GAIA, "{report:#?}");
    let own = checked.reading.diagnostics.iter();
    let errors: Vec<_> = own.filter(|found| found.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{}: {errors:#?}", report.source.display());
}
