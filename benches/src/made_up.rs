//! Generates skills for a registry, the same in every run. Word frequencies are like those of a
//! natural language; a skill has one to three versions, and dependencies.

use savoir_store::registry::{
    Actor, PackageRecord, Record, Registry, ScanResult, ScanVerdict, VersionFacts, VersionRecord,
};
use serde_json::json;

/// Size of the vocabulary.
const WORDS: u64 = 30_000;
/// Number of different tags.
const TAGS: u64 = 500;
/// Number of words in a body, about a kilobyte.
const BODY: u64 = 150;
const AUTHORS: u64 = 5000;
const NAMESPACES: u64 = 2000;

/// Pseudorandom numbers, the same in every run.
#[derive(Debug)]
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        let mut numbers = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
        numbers.next();
        numbers
    }

    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A number below `end`. Small numbers are frequent, like the frequent words of a language.
    #[expect(clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "only made-up numbers")]
    pub(crate) fn frequent(&mut self, end: u64) -> u64 {
        let part = self.below(1_000_000) as f64 / 1_000_000.0;
        ((end as f64).powf(part) - 1.0) as u64
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.next() as u8).take(length).collect()
    }

    /// A word of the vocabulary; some are frequent, most are rare.
    pub(crate) fn word(&mut self) -> String {
        word(self.frequent(WORDS))
    }

    pub(crate) fn tag(&mut self) -> String {
        word(self.frequent(TAGS))
    }

    pub(crate) fn author(&mut self) -> String {
        word(self.below(AUTHORS))
    }

    pub(crate) fn namespace(&mut self) -> String {
        word(self.below(NAMESPACES))
    }

    pub(crate) fn text(&mut self, length: u64) -> String {
        (0..length).map(|_| self.word()).collect::<Vec<_>>().join(" ")
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

/// The stored artifact and SKILL.md of a version. All versions can share them.
#[derive(Clone, Debug)]
pub(crate) struct Bytes {
    pub(crate) sha256: String,
    pub(crate) size: u64,
    pub(crate) skill_md: String,
}

/// The name of the skill with this number.
pub(crate) fn name(number: u64) -> String {
    let mut numbers = Numbers::new(number);
    let name = format!("{}-{}-{number}", numbers.word(), numbers.word());
    match numbers.below(2) {
        0 => name,
        _ => format!("{}/{name}", numbers.namespace()),
    }
}

/// The same name in the form that the registry uses in cursors.
pub(crate) fn id(number: u64) -> String {
    let name = name(number);
    if name.contains('/') { name } else { format!("_/{name}") }
}

/// When the skill with this number was last changed, in microseconds since 1970.
pub(crate) fn at(number: u64) -> i64 {
    1_700_000_000_000_000 + i64::try_from(number).unwrap_or(0) * 60_000_000
}

/// The body of the skill with this number.
pub(crate) fn body(number: u64) -> String {
    Numbers::new(!number).text(BODY)
}

/// The skill with this number. Its dependencies are among the first `all` skills.
pub(crate) fn skill(number: u64, all: u64, bytes: &Bytes) -> PackageRecord {
    let mut numbers = Numbers::new(number ^ 0x5eed_0000_0000);
    let at = at(number);
    let excerpt = [("excerpt".to_owned(), json!(body(number)))];
    let needs = (0..numbers.frequent(6)).map(|_| format!("{}@^1.0", name(numbers.below(all))));
    let facts = VersionFacts {
        needs: needs.collect(),
        description: numbers.text(15),
        tags: (0..3).map(|_| numbers.tag()).collect(),
        author: Some(numbers.author()),
        license: Some("MIT".to_owned()),
        permissions: vec!["network:read".to_owned()],
        dialect: "gaia".to_owned(),
        more: excerpt.into_iter().collect(),
        ..VersionFacts::default()
    };
    let downloads = 10_u64.pow(numbers.frequent(7) as u32);
    let version = |minor: u64| VersionRecord {
        version: format!("1.{minor}.0"),
        integrity: "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=".to_owned(),
        sha256: bytes.sha256.clone(),
        size: bytes.size,
        skill_md: bytes.skill_md.clone(),
        facts: facts.clone(),
        scan: Some(ScanResult { verdict: ScanVerdict::Allow, report: json!({"findings": []}) }),
        scanned_at: Some(at),
        published_at: at,
        downloads,
        ..VersionRecord::default()
    };
    PackageRecord {
        name: name(number).parse().unwrap(),
        created_by: None,
        created_at: at,
        updated_at: at,
        deprecated: None,
        versions: (0..=numbers.below(3)).map(version).collect(),
    }
}

/// Imports this many skills. `bytes` stores the files of a skill and returns their digests.
pub(crate) async fn import(
    registry: Registry<'_>,
    skills: u64,
    mut bytes: impl AsyncFnMut(u64) -> Bytes,
) {
    let mut import = registry.import(&Actor::operator()).await.unwrap();
    for number in 0..skills {
        let record = skill(number, skills, &bytes(number).await);
        import.push(Record::Package(Box::new(record))).await.unwrap();
    }
    assert_eq!(import.finish().await.unwrap().packages, skills);
}
