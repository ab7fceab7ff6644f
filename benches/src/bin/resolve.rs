//! Measures the resolver on an index in memory, with many skills that have five dependencies each:
//! without conflicts, with conflicts that need backtracking, and with a complete lock.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::{
    collections::HashMap,
    env,
    time::{Duration, Instant},
};

use savoir_package::resolve::{
    Candidate, Index, IndexError, Request, Resolution, Root, RootRequest, VersionDependencies,
    resolve,
};
use savoir_skill::{permission::Tier, version::SkillRef};
use semver::Version;

/// Number of versions of each skill.
const VERSIONS: u64 = 10;
/// Number of dependencies of each version.
const NEEDS: u64 = 5;

struct Memory {
    skills: HashMap<String, Vec<Candidate>>,
    needs: HashMap<(String, Version), Vec<SkillRef>>,
}

/// Pseudorandom numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn name(number: u64) -> String {
    format!("skill-{number}")
}

impl Memory {
    /// Each version depends on skills with higher numbers, so there are no cycles, and newer
    /// versions need newer ones. One dependency in `wide` excludes the newest versions, so that the
    /// resolver must backtrack.
    fn new(skills: u64, wide: u64) -> Self {
        let mut memory = Self { skills: HashMap::new(), needs: HashMap::new() };
        let mut numbers = Numbers(7);
        for skill in 0..skills {
            let versions = (0..VERSIONS).map(|number| Version::new(1, number, 0));
            for version in versions.clone() {
                let needs = (0..NEEDS).filter(|_| skill + 1 < skills).map(|_| {
                    let other = name(skill + 1 + numbers.below(skills - skill - 1));
                    let minor = version.minor.min(numbers.below(VERSIONS));
                    let range = match numbers.below(wide) {
                        0 => format!(">=1.{minor}.0, <1.{}.0", minor + 8),
                        _ => format!("^1.{minor}"),
                    };
                    SkillRef::parse(&format!("{other}@{range}")).unwrap()
                });
                let needs = needs.collect();
                memory.needs.insert((name(skill), version), needs);
            }
            let candidate = |version| Candidate { version, yanked: false, tier: Tier::Community };
            memory.skills.insert(name(skill), versions.map(candidate).collect());
        }
        memory
    }
}

impl Index for Memory {
    fn versions(&self, name: &str) -> Result<Vec<Candidate>, IndexError> {
        Ok(self.skills.get(name).cloned().unwrap_or_default())
    }

    fn dependencies(
        &self,
        name: &str,
        version: &Version,
    ) -> Result<VersionDependencies, IndexError> {
        let needs = self.needs.get(&(name.to_owned(), version.clone()));
        Ok(VersionDependencies::Skills(needs.cloned().unwrap_or_default()))
    }
}

fn main() {
    let mut numbers = env::args().skip(1).map(|word| word.parse().unwrap());
    let skills: u64 = numbers.next().unwrap_or(1000);
    let runs: u64 = numbers.next().unwrap_or(20);
    let plain = Memory::new(skills, u64::MAX);
    let memory = Memory::new(skills, 50);
    let root =
        |number| Root::required(SkillRef::parse(&name(number)).unwrap(), RootRequest::Manifest);
    let mut request = Request { roots: (0..skills).map(root).collect(), ..Request::default() };
    measure("Highest versions", runs, &plain, &request);
    let answer = measure("One demand in fifty is narrow", runs, &memory, &request);
    let versions = answer.chosen.into_iter();
    request.locked = versions.map(|(name, chosen)| (name, chosen.version)).collect();
    measure("The same with a lock", runs, &memory, &request);
}

fn measure(what: &str, runs: u64, memory: &Memory, request: &Request) -> Resolution {
    let mut times: Vec<Duration> = Vec::new();
    let mut answer = Resolution::default();
    for _ in 0..runs {
        let started = Instant::now();
        answer = resolve(memory, request).unwrap();
        times.push(started.elapsed());
    }
    times.sort();
    let milli = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    println!(
        "{what}: {} skills with {NEEDS} needs each; ms: median {:.1}, p95 {:.1}.",
        answer.chosen.len(),
        milli(50),
        milli(95)
    );
    answer
}
