//! Tests real skills with one random error each: a safe fix may repair it or not, but never loses
//! a field.

use std::fs;

use savoir_skill::{
    Document, Safety, Source, State,
    check::{Options, fix},
};

use crate::shared::{in_parallel, shared};

/// Slips that people make while they type.
const SLIPS: [&str; 12] = ["\"", "'", ": ", ":", "\n", " ", "\t", "#", "- ", "[", "{", ""];

/// A small generator, so that a failure can be had again.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit.max(1)
    }
}

fn parse(text: &str) -> Document {
    Document::parse(Source::from_bytes(text.as_bytes().to_vec()).expect("text"))
}

/// Puts a slip into the frontmatter, or takes a character out.
fn mutate(text: &str, random: &mut Random) -> Option<String> {
    let block = parse(text).layout().closed_block()?.yaml;
    let at = block.start + random.below(block.len());
    if !text.is_char_boundary(at) {
        return None;
    }
    let slip = SLIPS[random.below(SLIPS.len())];
    let skipped = if slip.is_empty() { text[at..].chars().next()?.len_utf8() } else { 0 };
    Some(format!("{}{slip}{}", &text[..at], &text[at + skipped..]))
}

/// Names of the lines that look like top-level fields, up to the first blank line: after a lost
/// fence the body may hold examples of YAML.
fn fields(text: &str) -> Vec<String> {
    let Some(block) = parse(text).layout().block else { return Vec::new() };
    let lines = text[block.yaml.start..block.yaml.end]
        .lines()
        .take_while(|line| !matches!(*line, "" | "---"));
    let word = |key: &&str| {
        !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    lines
        .filter_map(|line| line.split_once(": ").map(|(key, _)| key).or(line.strip_suffix(':')))
        .filter(word)
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_safe_fix_never_loses_a_field() {
    let Some(folder) = shared("corpus") else { return };
    let expected = fs::read_to_string(folder.join("expected.jsonl")).expect("expected.jsonl");
    let paths: Vec<String> = expected
        .lines()
        .filter_map(|line| {
            serde_json::from_str::<serde_json::Value>(line).ok()?["path"]
                .as_str()
                .map(str::to_owned)
        })
        .collect();
    let lost: Vec<String> = in_parallel(&paths, |path| {
        let Ok(text) = fs::read_to_string(folder.join(path)) else { return Vec::new() };
        let document = parse(&text);
        if document.state() != State::Clean || !document.problems().is_empty() {
            return Vec::new();
        }
        let mut random = Random(path.len() as u64 * 7919 + text.len() as u64);
        let mut lost = Vec::new();
        for _ in 0..12 {
            let Some(slipped) = mutate(&text, &mut random) else { continue };
            let before = parse(&slipped);
            if before.state() != State::Repaired {
                continue;
            }
            let fixed = fix(&slipped, None, &Options::default(), Safety::Safe);
            let after = parse(&fixed.text);
            if after.state() == State::Clean {
                let missing = fields(&slipped).into_iter().find(|key| after.field(key).is_none());
                lost.extend(missing.map(|key| format!("{path}: `{key}` is lost in\n{slipped}")));
            }
        }
        lost
    })
    .concat();
    for one in lost.iter().take(5) {
        eprintln!("{}", one.chars().take(1500).collect::<String>());
    }
    assert!(lost.is_empty(), "{} fields are lost", lost.len());
}
