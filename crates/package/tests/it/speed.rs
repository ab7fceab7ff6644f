//! Measures the ledger with ten thousand skills.

use std::{
    collections::HashMap, ffi::OsString, fmt::Write as _, fs, path::Path, process::Command, thread,
    time::Instant,
};

use savoir_package::{
    Agents, Ledger,
    ledger::{Drift, LedgerEntry, SearchRoots},
};

const COUNT: usize = 10_000;

/// Creates a home folder with many skills installed by `npx skills`, and links to them.
fn fill(home: &Path) {
    let (skills, links) = (home.join(".agents/skills"), home.join(".claude/skills"));
    fs::create_dir_all(&skills).unwrap();
    fs::create_dir_all(&links).unwrap();
    let mut lock = String::from("{\"version\": 3, \"skills\": {");
    for n in 0..COUNT {
        let name = format!("skill-{n:05}");
        fs::create_dir(skills.join(&name)).unwrap();
        let text = format!(
            "---\nname: {name}\ndescription: Does {n}. Use when {n} is asked for.\n---\n{}",
            "Some words about what to do.\n".repeat(100)
        );
        fs::write(skills.join(&name).join("SKILL.md"), text).unwrap();
        std::os::unix::fs::symlink(format!("../../.agents/skills/{name}"), links.join(&name))
            .unwrap();
        let comma = if n > 0 { "," } else { "" };
        write!(
            lock,
            "{comma}\n\"{name}\": {{\"source\": \"ada/skills\", \"sourceType\": \"github\", \
             \"sourceUrl\": \"https://github.com/ada/skills.git\", \
             \"skillPath\": \"skills/{name}/SKILL.md\", \
             \"skillFolderHash\": \"{n:040x}\", \"installedAt\": \"2026-11-15T12:29:53.312Z\", \
             \"updatedAt\": \"2026-11-15T12:29:53.312Z\"}}"
        )
        .unwrap();
    }
    lock.push_str("}}");
    fs::write(home.join(".agents/.skill-lock.json"), lock).unwrap();
}

fn roots(home: &Path) -> SearchRoots {
    let none = |_: &str| -> Option<OsString> { None };
    SearchRoots {
        agents: Agents::new(home, none),
        project: Some(home.join("project")),
        nested_folders: Vec::new(),
        installed_by_savoir: HashMap::new(),
    }
}

/// Returns the best time in milliseconds, without the time to drop the result.
fn best<T>(times: usize, mut work: impl FnMut() -> T) -> f64 {
    let times = (0..times).map(|_| {
        let start = Instant::now();
        let got = work();
        let time = start.elapsed().as_secs_f64() * 1e3;
        drop(got);
        time
    });
    times.fold(f64::MAX, f64::min)
}

/// Computes what `savoir list --long` shows about each skill, on two threads.
fn examine(entries: &[LedgerEntry]) -> usize {
    let modified =
        |entry: &&LedgerEntry| entry.details().is_ok() && entry.drift() == Drift::Modified;
    thread::scope(|scope| {
        let parts = entries.chunks(entries.len().div_ceil(2));
        let threads: Vec<_> =
            parts.map(|part| scope.spawn(move || part.iter().filter(modified).count())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

/// Run with `--cargo-profile profiling --run-ignored all --no-capture` to see the results.
#[test]
#[ignore = "a measurement"]
fn ten_thousand_skills() {
    let home = tempfile::tempdir().unwrap();
    fill(home.path());
    let all = roots(home.path());
    let open = best(20, || Ledger::open(&all));
    let ledger = Ledger::open(&all);
    assert_eq!(ledger.entries().len(), COUNT);
    let drift = best(3, || assert!(ledger.entries().iter().all(|e| e.drift() == Drift::Modified)));
    let details = best(3, || assert!(ledger.entries().iter().all(|e| e.details().is_ok())));
    let both = best(3, || assert_eq!(examine(ledger.entries()), COUNT));
    let cat = "find . -name SKILL.md -type f | sort | xargs cat | wc -c";
    let mut shell = Command::new("sh");
    shell.args(["-c", cat]).current_dir(home.path());
    let shell = best(3, || assert!(shell.output().unwrap().status.success()));
    fs::remove_file(home.path().join(".agents/.skill-lock.json")).unwrap();
    fs::remove_dir_all(home.path().join(".claude")).unwrap();
    let plain = best(20, || Ledger::open(&all));
    #[expect(clippy::print_stderr, reason = "a measurement")]
    {
        eprintln!(
            "open {open:.1} ms, without links and ledger {plain:.1} ms, drift {drift:.0} ms, \
             details {details:.0} ms, both on two processors {both:.0} ms, find and cat {shell:.0} ms"
        );
    }
}
