//! Checks the detection rate on labelled harmful skills.
//!
//! Their authors saw neither the rules nor each other's sets. The rules were fitted with the sets in
//! sight, one after the other, so what they reach here says how much a change spoils, and not how much
//! of an unknown set they find: `docs/concepts/security.md` has the figures from before a set was looked at.

use std::{collections::BTreeMap, fs, path::Path};

use super::*;

/// Families of samples whose harm is in code.
const CODE_FAMILIES: [&str; 9] = [
    "dependency-attack", "download-execute", "javascript-exfiltration", "obfuscated-payload",
    "persistence", "python-exfiltration", "remote-control", "shell-exfiltration",
    "token-to-stranger",
];

/// Splits a file into samples: `%%% name` starts a sample, `%% path` starts one of its files.
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

/// Returns how many skills of the files are flagged, and their total number.
fn measure(folder: &str, wanted: impl Fn(&str) -> bool) -> (usize, usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder);
    let (mut caught, mut total) = (0, 0);
    for file in fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        for sample in samples(&fs::read_to_string(&file).unwrap()).iter().filter(|_| wanted(&name))
        {
            let files =
                sample.iter().map(|(path, text)| (path.as_str(), text.as_bytes())).collect();
            total += 1;
            caught += usize::from(scan(&files).verdict != Verdict::Allow);
        }
    }
    (caught, total)
}

/// Minimum detection rate of each set in percent, for harm in code and harm in text.
const MIN_DETECTION_PERCENT: [(&str, usize, usize); 11] = [
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
fn detection_rate_of_harmful_code() {
    for (set, percent, _) in MIN_DETECTION_PERCENT {
        let is_code = |family: &str| CODE_FAMILIES.contains(&family.trim_end_matches("-2"));
        let (caught, total) = measure(&format!("harmful/{set}"), is_code);
        assert!(total >= 70 && caught * 100 >= total * percent, "{set}: {caught} of {total}");
    }
}

#[test]
fn detection_rate_of_harmful_text() {
    for (set, _, percent) in MIN_DETECTION_PERCENT {
        let is_prose = |family: &str| !CODE_FAMILIES.contains(&family.trim_end_matches("-2"));
        let (caught, total) = measure(&format!("harmful/{set}"), is_prose);
        assert!(total >= 50 && caught * 100 >= total * percent, "{set}: {caught} of {total}");
    }
}

/// The thirteenth set is smaller: forty skills that were written after the rules were fitted to the
/// others. The twelfth is not part of the repository.
#[test]
fn detection_rate_of_the_newest_skills() {
    let (caught, total) = measure("harmful/thirteenth", |_| true);
    assert!(total == 40 && caught >= 36, "{caught} of {total}");
}

/// The fourteenth set was written before its author read the rules; the fifteenth after the rules were
/// fitted to the fourteenth, and around what they look for. At first sight 85 of 128 and 28 of 60 were
/// found.
#[test]
fn detection_rate_of_paraphrased_skills() {
    for (set, size, least) in [("fourteenth", 128, 122), ("fifteenth", 60, 45)] {
        let (caught, total) = measure(&format!("harmful/{set}"), |_| true);
        assert!(total == size && caught >= least, "{set}: {caught} of {total}");
    }
}

/// The authors of the sixteenth and the seventeenth set did not know the rules. At first sight 63 and 67
/// of 75 were found. The rules were fitted to the sixteenth set only.
#[test]
fn detection_rate_of_the_newest_sets() {
    for (set, least) in [("sixteenth", 72), ("seventeenth", 67)] {
        let (caught, total) = measure(&format!("harmful/{set}"), |_| true);
        assert!(total == 75 && caught >= least, "{set}: {caught} of {total}");
    }
}

/// The author of the eighteenth set did not know the rules. At first sight 53 of 60 were found, and 8 of
/// 40 harmless skills of the same author were flagged. The rules were fitted to both afterwards.
#[test]
fn detection_rate_of_the_eighteenth_set() {
    let (caught, total) = measure("harmful/eighteenth", |_| true);
    assert!(total == 60 && caught >= 58, "{caught} of {total}");
}

/// Honest skills about keys, attacks, installers and deletions, which look like harmful ones.
#[test]
fn harmless_lookalikes_pass() {
    let (caught, total) = measure("harmless", |_| true);
    assert!(total == 270 && caught <= 20, "{caught} of {total}");
}
