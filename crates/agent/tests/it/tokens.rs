//! Counts the tokens of a preamble with the tokenizer of a real model.

use std::{fs, path::Path};

use savoir_agent::preamble::{Candidate, Preamble};
use savoir_model::WordPiece;
use savoir_skill::{Source, read};

/// Maximum number of skills.
const MOST: usize = 250;

/// Collects texts of real skills, the same ones in every run.
fn texts(folder: &Path, found: &mut Vec<String>) {
    let mut paths: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if found.len() >= MOST {
            return;
        }
        if path.is_dir() {
            texts(&path, found);
        } else if path.file_name().is_some_and(|name| name == "SKILL.md") {
            found.extend(fs::read_to_string(&path));
        }
    }
}

#[test]
fn skill_list_costs_at_most_a_tenth_of_all_texts() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    let Ok(folder) = std::env::var("SAVOIR_TEST_EMBEDDING_FOLDER") else {
        eprintln!("=== SKIPPED: no tokenizer to count with ===");
        return;
    };
    let mut found = Vec::new();
    texts(Path::new(corpus), &mut found);
    if found.is_empty() {
        eprintln!("=== SKIPPED: no skills to count ===");
        return;
    }
    let file = fs::read(Path::new(&folder).join("tokenizer.json")).unwrap();
    let tokenizer = WordPiece::from_json(&file).unwrap();
    let count = |text: &str| tokenizer.count(text);
    let (mut bodies, mut skills) = (0, Vec::new());
    for text in found {
        let Ok(source) = Source::from_bytes(text.into_bytes()) else { continue };
        let skill = read(source, None).skill;
        if skill.name.is_empty() || skill.description.is_empty() {
            continue;
        }
        bodies += count(&skill.body);
        skills.push(Candidate::new(&skill));
    }
    let many = skills.len();
    let whole = count(&Preamble::new(skills.clone(), None).text());
    eprintln!("{many} skills: {bodies} tokens of texts, {whole} of a preamble without a budget");
    assert!(whole * 10 <= bodies, "{whole} of {bodies}");

    // Another tokenizer counts about as many tokens as our estimate.
    let budget = 4000;
    let outcome = Preamble::new(skills, Some(budget));
    let real = count(&outcome.text());
    eprintln!("a budget of {budget}: {real} tokens, {} skills shown", outcome.shown.len());
    assert!(real <= budget * 3 / 2, "{real}");
}
