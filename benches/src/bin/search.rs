//! Measures the search index with generated skills: the rate of indexing, the size on disk, the
//! memory, and the time of a query. The queries have one to three words, frequent and rare ones,
//! and typing errors.
//!
//! `bench-search 100000` generates a hundred thousand skills. `bench-search 100000 FOLDER` keeps
//! the index in FOLDER and uses it again in the next run.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use savoir_registry::search::{Document, IndexChange, MatchKind, Query, SearchIndex};
use savoir_skill::permission::Tier;

/// Size of the vocabulary.
const WORDS: u64 = 30_000;
/// Number of words in a body.
const BODY: u64 = 150;
/// Number of queries of each kind.
const QUESTIONS: u64 = 300;
/// Repetitions of each query. On a busy machine the best time is more meaningful than the first.
const ASKED: u64 = 5;

/// Pseudorandom numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A number below `end`. Small numbers are frequent, like the frequent words of a language.
    #[expect(clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "only made-up numbers")]
    fn frequent(&mut self, end: u64) -> u64 {
        let part = self.below(1_000_000) as f64 / 1_000_000.0;
        ((end as f64).powf(part) - 1.0) as u64
    }
}

/// A word made of syllables, one for each number, so that words differ as in a real language.
fn word(number: u64) -> String {
    let syllables =
        ["ba", "co", "di", "fe", "gu", "ka", "lo", "mi", "ne", "pu", "ra", "so", "ti", "ve"];
    let mut rest = number * 7919 + 200;
    let mut word = String::new();
    while rest > 0 {
        word.push_str(syllables[(rest % 14) as usize]);
        rest /= 14;
    }
    word
}

fn text(numbers: &mut Numbers, length: u64) -> String {
    let words = (0..length).map(|_| word(numbers.frequent(WORDS)));
    words.collect::<Vec<_>>().join(" ")
}

fn skill(number: u64) -> Document {
    let mut numbers = Numbers(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
    numbers.next();
    let name = format!("{}-{number}", text(&mut numbers, 2).replace(' ', "-"));
    let namespace = (numbers.below(2) == 0).then(|| word(numbers.below(5000)));
    let tags = (0..3).map(|_| word(numbers.frequent(300))).collect();
    let tier = Tier::ALL[numbers.below(3) as usize];
    Document {
        key: number.to_string(),
        namespace,
        name,
        description: text(&mut numbers, 15),
        tags,
        author: word(numbers.below(5000)),
        body: text(&mut numbers, BODY),
        tier,
        downloads: 10_u64.pow(numbers.frequent(7) as u32),
        updated_at: 1_700_000_000 + numbers.below(60_000_000).cast_signed(),
        yanked_all: false,
        evaluated: false,
    }
}

fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let of = |entry: fs::DirEntry| {
        if entry.file_type().unwrap().is_dir() {
            size(&entry.path())
        } else {
            entry.metadata().unwrap().len()
        }
    };
    entries.map(of).sum()
}

/// Memory of this process: anonymous, with mapped files, and peak, in MB.
fn memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |key: &str| {
        let line = status.lines().find(|line| line.starts_with(key)).unwrap_or_default();
        let kilobytes = line.split_whitespace().nth(1).and_then(|text| text.parse::<u64>().ok());
        kilobytes.unwrap_or_default() / 1000
    };
    format!("{} MB own, {} MB with files, {} MB at most", of("RssAnon"), of("VmRSS"), of("VmHWM"))
}

fn feed(index: &SearchIndex, folder: &Path, skills: u64) {
    let start = Instant::now();
    let mut made = Duration::ZERO;
    let entries = (0..skills).map(|number| {
        let start = Instant::now();
        let entry = IndexChange::New(skill(number));
        made += start.elapsed();
        entry
    });
    index.apply(entries, skills).unwrap();
    println!("memory after applying: {}", memory());
    index.merge_all_segments().unwrap();
    let took = start.elapsed().saturating_sub(made);
    let rate = u128::from(skills) * 1000 / took.as_millis().max(1);
    println!(
        "fed {skills} in {took:.1?}: {rate} skills/s; {} MB on disk",
        size(folder) / 1_000_000
    );
    println!("memory after feeding: {}", memory());
    let start = Instant::now();
    index.apply([IndexChange::Put(skill(5))], skills + 1).unwrap();
    println!("one change: {:.1?}", start.elapsed());
}

/// Runs queries of one kind and prints how long they took.
fn ask(index: &SearchIndex, kind: &str, mut text: impl FnMut(&mut Numbers) -> String) {
    let mut numbers = Numbers(42);
    let (mut first, mut best) = (Vec::new(), Vec::new());
    let (mut hits, mut strict) = (0, 0);
    for _ in 0..QUESTIONS {
        let query = Query { text: text(&mut numbers), ..Query::default() };
        let timed = || {
            let start = Instant::now();
            let found = index.search(&query, 10, 0).unwrap();
            (start.elapsed(), found)
        };
        let (took, found) = timed();
        first.push(took);
        let again = (1..ASKED).map(|_| timed().0).min().unwrap_or(took);
        best.push(again.min(took));
        hits += found.items.len() as u64;
        strict += found.items.iter().filter(|hit| hit.how <= MatchKind::AllWords).count() as u64;
    }
    first.sort_unstable();
    best.sort_unstable();
    let at = |times: &[Duration], part| times[times.len() * part / 1000];
    println!(
        "{kind:27} p50 {:>8.2?} p99 {:>8.2?}; best p50 {:>8.2?} p99 {:>8.2?}; {hits:>4} hits, {strict:>4} strict",
        at(&first, 500),
        at(&first, 990),
        at(&best, 500),
        at(&best, 990),
    );
}

fn questions(index: &SearchIndex, skills: u64) {
    for count in 1..=3 {
        ask(index, &format!("{count} words"), |numbers| text(numbers, count) + " ");
        ask(index, &format!("{count} frequent words"), |numbers| {
            let words = (0..count).map(|_| word(numbers.frequent(30)));
            words.collect::<Vec<_>>().join(" ") + " "
        });
    }
    ask(index, "3 rare words (any)", |numbers| {
        let words = (0..3).map(|_| word(10_000 + numbers.below(20_000)));
        words.collect::<Vec<_>>().join(" ") + " "
    });
    ask(index, "frequent and unknown (any)", |numbers| {
        format!("{} {} qqqqqq ", word(numbers.frequent(10)), word(numbers.frequent(10)))
    });
    ask(index, "exact name", |numbers| skill(numbers.below(skills)).name);
    ask(index, "while typing", |numbers| {
        let name = skill(numbers.below(skills)).name;
        name.chars().take(3 + numbers.below(5) as usize).collect()
    });
    ask(index, "typing error", |numbers| {
        let mut name: Vec<char> = skill(numbers.below(skills)).name.chars().collect();
        let at = numbers.below(name.len() as u64 - 8) as usize;
        name.swap(at, at + 1);
        name.into_iter().collect::<String>().split('-').take(2).collect::<Vec<_>>().join(" ")
    });
    ask(index, "phrase", |numbers| {
        let body = skill(numbers.below(skills)).body;
        let from = numbers.below(BODY - 3) as usize;
        format!("\"{}\"", body.split(' ').skip(from).take(2).collect::<Vec<_>>().join(" "))
    });
    ask(index, "tag and word", |numbers| {
        format!("tag:{} {}", word(numbers.frequent(300)), word(numbers.frequent(3000)))
    });
    ask(index, "nothing asked", |_| String::new());
    ask(index, "hostile", |numbers| {
        let mut text: String = (0..200).map(|_| word(numbers.frequent(40)) + " \"").collect();
        text.truncate(1990);
        text
    });
}

fn main() {
    let skills = env::args().nth(1).map_or(100_000, |text| text.parse().unwrap());
    let temporary = tempfile::tempdir().unwrap();
    let folder = env::args().nth(2).map_or(temporary.path().to_owned(), PathBuf::from);
    let start = Instant::now();
    let (mut index, applied) = SearchIndex::open(&folder, "bench").unwrap();
    println!("opened in {:.1?} with {applied} changes; memory: {}", start.elapsed(), memory());
    if applied < skills {
        feed(&index, &folder, skills);
        drop(index);
        let start = Instant::now();
        index = SearchIndex::open(&folder, "bench").unwrap().0;
        println!("opened again in {:.1?}; memory: {}", start.elapsed(), memory());
    }
    println!("{} skills, {QUESTIONS} questions of each kind, ten hits each", index.skill_count());
    questions(&index, skills);
    println!("memory after searching: {}", memory());
}
