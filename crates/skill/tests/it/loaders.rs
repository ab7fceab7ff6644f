//! Tests that a safe fix never changes what a loader reads: Savoir, PyYAML, Python's json for
//! `metadata` on one line, and js-yaml. External programs are used if they are installed.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use savoir_skill::{
    Document, Safety, Source, State,
    check::{Options, fix},
    yaml::YamlVersion,
};

use crate::shared::{in_parallel, shared};

/// A text, and what safe fixes make of it.
struct Pair {
    path: PathBuf,
    before: String,
    after: String,
}

/// Texts by hand: what fixes did to them was harmful once.
const KNOWN: [&str; 8] = [
    "---\nname: a\ndescription: d\nmetadata: {\"openclaw\": {\"requires\": {\"bins\": [\"git\"]}}}\n---\nb\n",
    "---\nname: a\ndescription: d\nmetadata: {\"author\": \"ada\"}\n---\nb\n",
    "---\nname: a\ndescription: d\nmetadata: '{\"openclaw\": {\"os\": [\"macos\"]}}'\n---\nb\n",
    "---\nname: a\ndescription: d\nmetadata: {openclaw: {os: [macos]}}\n---\nb\n",
    "---\nname: a\ndescription: d\nargument-hint: [file]\n---\nb\n",
    "---\nname: a\ndescription: d\nmetadata:\n  audited: yes\n  mode: 0777\n---\nb\n",
    "---\nname: a\ndescription: \u{201c}quoted\u{201d}\nversion: 1.0\n---\nb\n",
    "---\nname: a\nuser_id: 5\ndescription: d\ninputs:\n  - {name: x, required: yes}\n---\n{{x}}\n",
];

fn texts(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            texts(&path, found);
        } else if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("md")) {
            found.push(path);
        }
    }
}

/// Everything that safe fixes change.
fn pairs() -> Vec<Pair> {
    let mut paths = Vec::new();
    for name in ["corpus", "fixpairs"] {
        if let Some(folder) = shared(name) {
            texts(&folder, &mut paths);
        }
    }
    let strict = Options { strict: true, ..Options::default() };
    let fixed = |path: &Path, before: String| {
        let after = fix(&before, None, &strict, Safety::Safe).text;
        (after != before).then(|| Pair { path: path.to_owned(), before, after })
    };
    let real = in_parallel(&paths, |path| fixed(path, fs::read_to_string(path).ok()?));
    let known = KNOWN.iter().map(|text| fixed(Path::new("by hand"), (*text).to_owned()));
    real.into_iter().chain(known).flatten().collect()
}

/// The pairs that a program reads differently; `None` where it, or what it needs, is not installed.
fn differences(program: &str, probe: &[&str], script: &str, pairs: &[Pair]) -> Option<String> {
    let installed = Command::new(program).args(probe).stderr(Stdio::null()).output();
    if !installed.is_ok_and(|output| output.status.success()) {
        eprintln!("note: {program} with its YAML library is not installed, so it is not asked");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/loaders").join(script);
    let mut running = Command::new(program)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it ran a moment ago");
    let texts: Vec<_> = pairs.iter().map(|pair| [&pair.before, &pair.after]).collect();
    let texts = serde_json::to_vec(&texts).expect("texts are JSON");
    running.stdin.take().expect("a pipe").write_all(&texts).expect("the program reads");
    let output = running.wait_with_output().expect("the program ends");
    assert!(output.status.success(), "{program} failed");
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let name = |line: &str| {
        let (index, loader) = line.split_once(' ').unwrap_or((line, ""));
        let pair = index.parse::<usize>().ok().and_then(|index| pairs.get(index));
        format!(
            "{loader}: {}\n",
            pair.map_or_else(String::new, |pair| pair.path.display().to_string())
        )
    };
    Some(lines.lines().map(name).collect())
}

#[test]
fn a_safe_fix_changes_nothing_that_a_loader_reads() {
    let pairs = pairs();
    let loaders = [
        ("python3", &["-c", "import yaml"], "load.py"),
        ("node", &["-e", "require('js-yaml')"], "load.js"),
    ];
    for (program, probe, script) in loaders {
        if let Some(differences) = differences(program, probe, script, &pairs) {
            assert_eq!(differences, "", "{program} reads other values after a safe fix");
        }
    }
    for pair in &pairs {
        let document =
            |text: &str| Document::parse(Source::from_bytes(text.into()).expect("UTF-8"));
        let (before, after) = (document(&pair.before), document(&pair.after));
        if before.state() == State::Clean && before.fields().is_some() {
            for version in [YamlVersion::V1_1, YamlVersion::V1_2] {
                let values =
                    |document: &Document| document.fields().map(|map| map.to_value(version));
                assert_eq!(values(&before), values(&after), "{}", pair.path.display());
            }
        }
    }
}
