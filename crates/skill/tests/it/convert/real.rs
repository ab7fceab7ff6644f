//! Tests that real skills round-trip through every dialect, with detected dialects.

use std::{
    fs,
    path::{Path, PathBuf},
};

use savoir_skill::{
    Diagnostic, Dialect, Reading, Source,
    convert::{ConvertError, convert},
    read,
};

use super::reading as reading_of;
use crate::shared::{in_parallel, shared};

/// Converts a real skill there and back; gives a sentence for each thing that went wrong.
fn problems(reading: &Reading) -> Vec<String> {
    let from = reading.skill.dialect;
    // Repairs of a lenient reader are kept.
    let mended = reading.document.problems().iter().any(Diagnostic::is_error);
    let mut found = Vec::new();
    for target in Dialect::ALL {
        let mut say = |what: String| found.push(format!("{from} to {target}: {what}"));
        let there = match convert(reading, None, target) {
            Ok(there) => there,
            Err(ConvertError::Unreadable { .. }) => return Vec::new(),
            Err(ConvertError::NoTools { .. }) if reading.skill.tools.is_empty() => continue,
            Err(error) => {
                say(error.to_string());
                continue;
            }
        };
        let there = there.files[0].text.clone();
        let there = read(Source::from_bytes(there.into()).expect("it was just written"), None);
        let back = match convert(&there, None, from) {
            Ok(back) => back,
            Err(error) => {
                say(format!("and back: {error}"));
                continue;
            }
        };
        let text = &back.files[0].text;
        if !mended && text != reading.document.text() {
            say("and back changes bytes".into());
        }
        let again = reading_of(text, from);
        let (old, new) = (&reading.skill, &again.skill);
        // A repaired body no longer has the wrapping code block.
        let body = if mended { old.body.contains(new.body.trim()) } else { old.body == new.body };
        let fields = (&old.name, &old.description, &old.extra);
        if !body || fields != (&new.name, &new.description, &new.extra) {
            say("and back changes the skill".into());
        }
    }
    found
}

#[test]
fn every_real_skill_round_trips() {
    let Some(root) = shared("corpus") else { return };
    let mut paths = Vec::new();
    skill_files(&root, &mut paths);
    let found: Vec<String> = in_parallel(&paths, |path| {
        let Ok(source) = Source::from_bytes(fs::read(path).expect("it was just listed")) else {
            return Vec::new();
        };
        let problems = problems(&read(source, None)).into_iter();
        problems.map(|problem| format!("{}: {problem}", path.display())).collect()
    })
    .concat();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn skill_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            skill_files(&path, found);
        } else if entry.file_name().eq_ignore_ascii_case("skill.md") {
            found.push(path);
        }
    }
}
