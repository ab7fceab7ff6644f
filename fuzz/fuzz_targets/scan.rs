//! Any text is scanned under any name, within the limits and without the scanner failing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use savoir_package::{File, Tree};
use savoir_scan as scan;

const NAMES: [&str; 10] = [
    "SKILL.md", "run.sh", "run.py", "run.js", "run.ts", "run.ps1", "notes.md", "data.json",
    "main.go", "Makefile",
];

fuzz_target!(|bytes: &[u8]| {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let mut tree = Tree::default();
    let file = File { bytes: bytes.to_vec(), executable: false };
    let name = NAMES[usize::from(*first) % NAMES.len()];
    tree.add(name.into(), file).expect("a plain name");
    let report = tree.scan();
    for finding in &report.findings {
        assert!(!finding.message.contains("the scanner failed"), "{name}");
    }
    for format in scan::render::Format::ALL {
        scan::render::render(&report, format);
    }
});
