//! Checks the detection rate on labelled harmful skills.
//!
//! Their authors saw neither the rules nor each other's sets. The rules were fitted with the sets in
//! sight, one after the other, so what they reach here says how much a change spoils, and not how much
//! of an unknown set they find: `docs/guides/scan.md` has the figures from before a set was looked at.

use std::{collections::BTreeMap, fs, path::Path};

use super::*;

/// Families whose harm is in code, where a flow can be followed.
const CODE: [&str; 9] = [
    "dependency-attack",
    "download-execute",
    "javascript-exfiltration",
    "obfuscated-payload",
    "persistence",
    "python-exfiltration",
    "remote-control",
    "shell-exfiltration",
    "token-to-stranger",
];

/// A file holds samples, each begun by `%%% name`, each file of them by `%% path`.
fn samples(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut found = Vec::new();
    for sample in text.split("\n%%% ").map(|part| part.strip_prefix("%%% ").unwrap_or(part)) {
        let (_, files) = sample.split_once('\n').unwrap_or((sample, ""));
        let mut sample = BTreeMap::new();
        for file in format!("\n{files}").split("\n%% ").skip(1) {
            let (path, text) = file.split_once('\n').unwrap_or((file, ""));
            sample.insert(path.trim().to_owned(), format!("{text}\n"));
        }
        found.push(sample);
    }
    found
}

/// How many skills of the files ask for a look or are blocked, and of how many.
fn measure(folder: &str, wanted: impl Fn(&str) -> bool) -> (usize, usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder);
    let (mut held, mut total) = (0, 0);
    for file in fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        for sample in samples(&fs::read_to_string(&file).unwrap()).iter().filter(|_| wanted(&name))
        {
            let files =
                sample.iter().map(|(path, text)| (path.as_str(), text.as_bytes())).collect();
            total += 1;
            held += usize::from(scan(&files).verdict != Verdict::Allow);
        }
    }
    (held, total)
}

/// What each set reached, in percent of the samples whose harm is in code and in words.
const REACHED: [(&str, usize, usize); 11] = [
    ("first", 90, 65),
    ("second", 93, 72),
    ("third", 90, 70),
    ("fourth", 97, 88),
    ("fifth", 97, 87),
    ("sixth", 90, 85),
    ("seventh", 93, 92),
    ("eighth", 97, 95),
    ("ninth", 92, 95),
    ("tenth", 97, 92),
    ("eleventh", 92, 92),
];

#[test]
fn harmful_code_is_held() {
    for (set, percent, _) in REACHED {
        let is_code = |family: &str| CODE.contains(&family.trim_end_matches("-2"));
        let (held, total) = measure(&format!("harmful/{set}"), is_code);
        assert!(total >= 70 && held * 100 >= total * percent, "{set}: {held} of {total}");
    }
}

#[test]
fn harmful_words_are_held() {
    for (set, _, percent) in REACHED {
        let is_prose = |family: &str| !CODE.contains(&family.trim_end_matches("-2"));
        let (held, total) = measure(&format!("harmful/{set}"), is_prose);
        assert!(total >= 50 && held * 100 >= total * percent, "{set}: {held} of {total}");
    }
}

/// Honest skills about keys, attacks, installers and deletions, which look like harmful ones.
#[test]
fn harmless_lookalikes_pass() {
    let (held, total) = measure("harmless", |_| true);
    assert!(total == 150 && held <= 12, "{held} of {total}");
}
