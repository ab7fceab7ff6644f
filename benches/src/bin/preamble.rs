//! Measures how long it takes to build the list of skills for a model's context within a token
//! budget. Prints the median.
//!
//!     bench-preamble FOLDER BUDGET RUNS

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::{
    env, fs, hint,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use savoir_agent::preamble::{Candidate, Preamble};
use savoir_skill::{Source, read};

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let [_, folder, budget, runs] = arguments.as_slice() else {
        panic!("bench-preamble FOLDER BUDGET RUNS");
    };
    let (budget, runs): (usize, usize) = (budget.parse().unwrap(), runs.parse().unwrap());
    let mut files = Vec::new();
    find(Path::new(folder), &mut files);
    let skills: Vec<Candidate> = files.iter().map(|file| candidate(file)).collect();
    let mut taken: Vec<Duration> = Vec::new();
    let mut preamble = Preamble::default();
    for _ in 0..runs {
        let skills = skills.clone();
        let start = Instant::now();
        preamble = Preamble::new(skills, Some(budget));
        hint::black_box(preamble.text());
        taken.push(start.elapsed());
    }
    taken.sort();
    let milliseconds = |at: usize| taken[at.min(runs - 1)].as_secs_f64() * 1e3;
    println!(
        "| {} skills, {budget} tokens | {:.3} | {:.3} | {} | {} |",
        skills.len(),
        milliseconds(runs / 2),
        milliseconds(runs * 99 / 100),
        preamble.shown.len(),
        preamble.tokens
    );
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            find(&entry.path(), files);
        } else if entry.file_name() == "SKILL.md" {
            files.push(entry.path());
        }
    }
}

fn candidate(file: &Path) -> Candidate {
    let source = Source::from_bytes(fs::read(file).unwrap()).unwrap();
    Candidate::new(&read(source, None).skill)
}
