//! Measures the listing of a repository with very many skills. Runs it in turns with the git
//! commands that list the commit and read every SKILL.md, and prints medians, ratios and the peak
//! memory.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::{
    env, fs,
    io::{BufWriter, Write},
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use savoir_package::source::{Fetcher, Settings, Source};

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["list", repository, cache] => list(repository, cache),
        [] => compare(61_000, 5),
        [skills, runs] => compare(skills.parse().unwrap(), runs.parse().unwrap()),
        _ => println!("usage: bench-sources [61000 5]"),
    }
}

/// The steps of `savoir install REPOSITORY --list`.
fn list(repository: &str, cache: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fetcher = Fetcher::new(Settings::new(cache.into()));
    let source = Source::parse(repository, Path::new("/")).unwrap();
    let offers = runtime.block_on(fetcher.offers(&source)).unwrap();
    println!("{} skills, peak memory {:.1} MiB", offers.len(), peak_memory());
}

/// Peak resident memory of this process, in MiB.
fn peak_memory() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
}

fn compare(skills: usize, runs: usize) {
    let place = tempfile::tempdir().unwrap();
    let repository = place.path().join("many.git");
    make_repository(&repository, skills);
    let digests = manifests(&repository);
    let digests_file = place.path().join("digests");
    fs::write(&digests_file, digests).unwrap();
    let (mut git, mut savoir, mut said) = (Vec::new(), Vec::new(), String::new());
    for run in 0..runs {
        let start = Instant::now();
        call(&repository, &["ls-tree", "-r", "-z", "main"], Stdio::null());
        let input = fs::File::open(&digests_file).unwrap();
        call(&repository, &["cat-file", "--batch"], input.into());
        git.push(start.elapsed().as_secs_f64());
        let cache = place.path().join(format!("cache{run}"));
        let start = Instant::now();
        let output = Command::new(env::current_exe().unwrap())
            .args(["list".as_ref(), repository.as_os_str(), cache.as_os_str()])
            .output()
            .unwrap();
        savoir.push(start.elapsed().as_secs_f64());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        said = String::from_utf8(output.stdout).unwrap();
    }
    let (git, savoir) = (median(git), median(savoir));
    println!("List a repository of {skills} skills, median of {runs}");
    println!("  git ls-tree -r, git cat-file --batch  {:8.0} ms", git * 1e3);
    println!("  savoir                                {:8.0} ms", savoir * 1e3);
    println!("  ratio {:.2} (at most 3), {}", savoir / git, said.trim());
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn call(repository: &Path, arguments: &[&str], input: Stdio) -> Vec<u8> {
    let output = Command::new("git")
        .arg("--git-dir")
        .arg(repository)
        .args(arguments)
        .stdin(input)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Returns the blob digest of every SKILL.md, one per line.
fn manifests(repository: &Path) -> String {
    let listed = call(repository, &["ls-tree", "-r", "main"], Stdio::null());
    let listed = String::from_utf8(listed).unwrap();
    let manifests = listed.lines().filter(|line| line.ends_with("/SKILL.md"));
    manifests.flat_map(|line| [line.split([' ', '\t']).nth(2).unwrap(), "\n"]).collect()
}

/// Creates a bare repository with skills of 2 to 6 kB in a hundred folders; a third has a script.
fn make_repository(repository: &Path, skills: usize) {
    let made = Command::new("git")
        .args(["init", "--quiet", "--bare", "--initial-branch=main"])
        .arg(repository)
        .status()
        .unwrap();
    assert!(made.success());
    let mut import = Command::new("git")
        .arg("--git-dir")
        .arg(repository)
        .args(["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stream = BufWriter::new(import.stdin.take().unwrap());
    let mut numbers = Numbers(11);
    let head = b"commit refs/heads/main\ncommitter a <a@example.com> 0 +0000\ndata 1\nx\n";
    stream.write_all(head).unwrap();
    for number in 0..skills {
        let folder = format!("skills/g{:02}/skill-{number:05}", number % 100);
        let text = format!(
            "---\nname: skill-{number:05}\ndescription: Reports on table {number}. Use when \
             somebody asks for sums.\nlicense: MIT\n---\n# Table {number}\n\n{}",
            numbers.prose()
        );
        write_file(&mut stream, &format!("{folder}/SKILL.md"), &text);
        if number.is_multiple_of(3) {
            let script = format!("import csv\n\nNUMBER = {number}\n").repeat(20);
            write_file(&mut stream, &format!("{folder}/scripts/run.py"), &script);
        }
    }
    drop(stream);
    assert!(import.wait().unwrap().success());
}

fn write_file(stream: &mut impl Write, path: &str, text: &str) {
    writeln!(stream, "M 100644 inline {path}\ndata {}\n{text}", text.len()).unwrap();
}

/// Pseudorandom numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// Text of 2 to 6 kB.
    fn prose(&mut self) -> String {
        const WORDS: [&str; 16] = [
            "the", "table", "is", "read", "line", "by", "row", "report", "names", "sums", "ask",
            "for", "missing", "columns", "before", "else",
        ];
        let length = 2_000 + self.below(4_000) as usize;
        let mut text = String::new();
        while text.len() < length {
            text.push_str(WORDS[self.below(WORDS.len() as u64) as usize]);
            text.push_str(if self.below(12) == 0 { ".\n\n## Next step\n\n" } else { " " });
        }
        text
    }
}
