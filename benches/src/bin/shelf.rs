//! Measures three commands, each in its own process: install many skills for one agent, sync a new
//! project, and scan one skill. Runs them in turns with `cp`, which does the unavoidable part of
//! the work, and prints tables of medians and ratios.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::{
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use savoir_package::{
    Agent, Agents, ScanCache, SkillSet, Tree,
    install::{
        CheckedSkill, FetchReason, FetchedSkill, InstallOptions, SkillChecker, UserEdits,
        locked_source, requirement_for,
    },
    manifest::Scope,
    source::{Fetcher, Settings, Source},
    trust::TrustStore,
};

const AGENT: &str = "claude-code";
const SKILLS: &str = ".claude/skills";
/// Number of skills in the project for `sync`.
const LOCKED: u64 = 500;

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["install", source, project, data] => install(source, project, data),
        ["sync", project, data] => sync(project, data),
        ["scan", folder] => scan_one(folder),
        [] => compare(&[1000, 10_000], 5),
        [sizes, runs] => {
            let sizes: Vec<u64> = sizes.split(',').map(|size| size.parse().unwrap()).collect();
            compare(&sizes, runs.parse().unwrap());
        }
        _ => println!("usage: bench-shelf [1000,10000 5]"),
    }
}

fn compare(sizes: &[u64], runs: usize) {
    let place = tempfile::tempdir().unwrap();
    for size in sizes {
        compare_install(&place.path().join(size.to_string()), *size, runs);
    }
    compare_sync(&place.path().join("sync"), runs);
    compare_scan(&place.path().join("scan"), runs);
}

/// Pseudorandom numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn prose(&mut self, bytes: u64) -> String {
        const WORDS: [&str; 24] = [
            "the", "table", "is", "read", "line", "by", "line", "and", "every", "row", "becomes",
            "a", "report", "that", "names", "its", "sums", "before", "anything", "else", "ask",
            "for", "missing", "columns",
        ];
        let mut text = String::new();
        while (text.len() as u64) < bytes {
            let end = match self.below(12) {
                0 => ".\n\n## Next step\n\n",
                1 => ".\n- ",
                2 => ", ",
                _ => " ",
            };
            text.push_str(WORDS[self.below(WORDS.len() as u64) as usize]);
            text.push_str(end);
        }
        text
    }
}

/// Creates skills of 2 to 6 kB; a third has a script and a reference.
fn make_skills(folder: &Path, count: u64) {
    let mut numbers = Numbers(11);
    for number in 0..count {
        let name = format!("skill-{number:05}");
        let skill = folder.join(&name);
        fs::create_dir_all(&skill).unwrap();
        let length = 2_000 + numbers.below(4_000);
        let mut text = format!(
            "---\nname: {name}\ndescription: Reports on table {number}. Use when somebody asks for \
             sums.\nlicense: MIT\nmetadata:\n  version: \"1.{}.0\"\n---\n# Table {number}\n\n",
            numbers.below(9)
        );
        text.push_str(&numbers.prose(length));
        if number.is_multiple_of(3) {
            text.push_str("\nSee [the columns](references/columns.md).\n");
            make_script(&skill, number, &mut numbers);
        }
        fs::write(skill.join("SKILL.md"), text).unwrap();
    }
}

fn make_script(skill: &Path, number: u64, numbers: &mut Numbers) {
    for folder in ["scripts", "references"] {
        fs::create_dir(skill.join(folder)).unwrap();
    }
    fs::write(skill.join("references/columns.md"), numbers.prose(3_000)).unwrap();
    if number.is_multiple_of(2) {
        let mut script = "import csv\nimport sys\n\n".to_owned();
        for function in 0..20 {
            write!(
                script,
                "def sum_{function}(rows):\n    total = 0\n    for row in rows:\n        total += \
                 int(row[{function}])\n    return total\n\n\n"
            )
            .unwrap();
        }
        script.push_str("print(sum_0(csv.reader(sys.stdin)))\n");
        fs::write(skill.join("scripts/sums.py"), script).unwrap();
    } else {
        let line = "cut -d, -f\"$1\" table.csv | sort | uniq -c | sort -rn | head -n 5\n";
        let script = format!("#!/bin/sh\nset -eu\n{}", line.repeat(20));
        fs::write(skill.join("scripts/sums.sh"), script).unwrap();
    }
}

/// Measurements of one program.
#[derive(Default)]
struct Row {
    name: String,
    times: Vec<Duration>,
    /// Output of the last run.
    said: String,
}

impl Row {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Runs a program once. `sync` first, so that this run does not wait for earlier writes.
    fn run(&mut self, command: &mut Command) {
        assert!(Command::new("sync").status().unwrap().success());
        let start = Instant::now();
        let output = command.output().unwrap();
        self.times.push(start.elapsed());
        assert!(output.status.success(), "{command:?}: {output:?}");
        self.said = String::from_utf8(output.stdout).unwrap();
    }

    fn median(&self) -> f64 {
        let mut times = self.times.clone();
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1e3
    }
}

fn report(title: &str, rows: &[Row]) {
    println!("\n### {title}\n\n| program | wall ms | ratio |\n| --- | ---: | ---: |");
    let peer = rows[0].median();
    for row in rows {
        println!("| {} | {:.1} | {:.2} |", row.name, row.median(), row.median() / peer);
    }
    for row in rows.iter().filter(|row| !row.said.is_empty()) {
        println!("\n{}, the last time: {}", row.name, row.said.trim());
    }
}

fn copy(how: &str, from: &Path, to: &Path) -> Command {
    let mut command = Command::new("cp");
    command.arg(how).arg(from).arg(to);
    command
}

fn own(words: &[&str], paths: &[&Path]) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(words).args(paths);
    command
}

fn compare_install(place: &Path, size: u64, runs: usize) {
    let source = place.join("source");
    make_skills(&source, size);
    let mut rows = [Row::new("cp -r"), Row::new("install")];
    for run in 0..runs {
        let turn = place.join(run.to_string());
        let [project, data] = ["project", "data"].map(|name| turn.join(name));
        fs::create_dir_all(&project).unwrap();
        rows[0].run(&mut copy("-r", &source, &turn.join("copy")));
        rows[1].run(&mut own(&["install"], &[&source, &project, &data]));
        let installed = fs::read_dir(project.join(SKILLS)).unwrap().count();
        assert_eq!(installed as u64, size);
        fs::remove_dir_all(&turn).unwrap();
    }
    report(&format!("Install {size} skills"), &rows);
    fs::remove_dir_all(place).unwrap();
}

fn compare_sync(place: &Path, runs: usize) {
    let [source, first, data] = ["source", "first", "data"].map(|name| place.join(name));
    make_skills(&source, LOCKED);
    fs::create_dir_all(&first).unwrap();
    own(&["install"], &[&source, &first, &data]).output().unwrap();
    let mut rows = ["cp -al", "cp -r", "sync", "sync, nothing to do"].map(Row::new);
    for run in 0..runs {
        let turn = place.join(run.to_string());
        fs::create_dir_all(turn.join("project")).unwrap();
        for file in ["savoir.toml", "savoir.lock"] {
            fs::copy(first.join(file), turn.join("project").join(file)).unwrap();
        }
        rows[0].run(&mut copy("-al", &first.join(SKILLS), &turn.join("linked")));
        rows[1].run(&mut copy("-r", &first.join(SKILLS), &turn.join("copied")));
        for row in &mut rows[2..] {
            row.run(&mut own(&["sync"], &[&turn.join("project"), &data]));
        }
        let installed = fs::read_dir(turn.join("project").join(SKILLS)).unwrap().count();
        assert_eq!(installed as u64, LOCKED);
        fs::remove_dir_all(&turn).unwrap();
    }
    report(&format!("Bring {LOCKED} locked skills to a new project"), &rows);
}

fn compare_scan(place: &Path, runs: usize) {
    make_skills(place, 1);
    let mut rows = [Row::new("scan of one skill")];
    for _ in 0..runs * 4 {
        rows[0].run(&mut own(&["scan"], &[&place.join("skill-00000")]));
    }
    report("Scan one skill", &rows);
}

/// Records how long each phase took.
struct Phases {
    start: Instant,
    said: String,
}

impl Phases {
    fn new() -> Self {
        Self { start: Instant::now(), said: String::new() }
    }

    fn done(&mut self, what: &str) {
        let time = self.start.elapsed().as_secs_f64() * 1e3;
        write!(self.said, "{what} {time:.1} ms, ").unwrap();
        self.start = Instant::now();
    }

    fn say(&self) {
        println!("{}peak memory {:.1} MiB", self.said, peak_memory());
    }
}

/// Peak resident memory of this process, in MiB.
fn peak_memory() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
}

fn shelf(project: &str, data: &str) -> SkillSet {
    let agents = Agents::new(Path::new("/nowhere"), |_| None);
    SkillSet::new(Path::new(project), Scope::Project, agents, PathBuf::from(data))
}

/// The steps of `savoir install`.
fn install(source: &str, project: &str, data: &str) {
    let mut phases = Phases::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fetcher = Fetcher::new(Settings::new(Path::new(data).join("cache")));
    let source = Source::Folder(source.into());
    let offers = runtime.block_on(fetcher.offers(&source)).unwrap();
    phases.done("offers");
    let trees = runtime.block_on(fetcher.fetch_all(&offers));
    phases.done("fetch");
    let arrivals: Vec<FetchedSkill> = offers
        .iter()
        .zip(trees)
        .map(|(offer, tree)| FetchedSkill {
            tree: tree.unwrap(),
            called: offer.name.clone(),
            source: locked_source(&offer.source, Path::new(project)).unwrap(),
            why: FetchReason::Requested(requirement_for(&offer.source, Path::new(project))),
            counted: None,
        })
        .collect();
    phases.done("name");
    let checker = SkillChecker { trust: &TrustStore::default(), scans: &ScanCache::default() };
    let ready = checker.check_all(arrivals, |_| ());
    let ready: Vec<CheckedSkill> = ready.into_iter().map(Result::unwrap).collect();
    assert!(ready.iter().all(|ready| ready.refusals().is_empty()));
    phases.done("check");
    let shelf = shelf(project, data);
    let how =
        InstallOptions { agents: vec![Agent::by_id(AGENT).unwrap()], ..InstallOptions::default() };
    let plan = shelf.install(&ready, &how).unwrap();
    phases.done("plan");
    shelf.apply(&plan, &|| ()).unwrap();
    phases.done("apply");
    phases.say();
}

/// The steps of `savoir sync`.
fn sync(project: &str, data: &str) {
    let mut phases = Phases::new();
    let shelf = shelf(project, data);
    shelf.recover(&|| ()).unwrap();
    let plan = shelf.sync(UserEdits::Keep, &mut |_, _| Err("nothing is missing".into())).unwrap();
    phases.done("plan");
    shelf.apply(&plan, &|| ()).unwrap();
    phases.done("apply");
    phases.say();
}

/// The steps of `savoir scan`.
fn scan_one(folder: &str) {
    let mut phases = Phases::new();
    let tree = Tree::read(Path::new(folder)).unwrap();
    phases.done("read");
    let report = tree.scan();
    assert_eq!(report.findings.len(), 0);
    phases.done("scan");
    phases.say();
}
