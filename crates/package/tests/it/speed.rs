//! Ten thousand skills.

use std::{collections::HashMap, ffi::OsString, fmt::Write as _, fs, path::Path, time::Instant};

use savoir_package::{
    Agents, Ledger,
    ledger::{Drift, Places},
};

const COUNT: usize = 10_000;

/// A home with many skills that `npx skills` installed, and links to them.
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

/// Run with `--release --run-ignored all --no-capture` for the figures.
#[test]
#[ignore = "a measurement"]
fn ten_thousand_skills() {
    let home = tempfile::tempdir().unwrap();
    fill(home.path());
    let none = |_: &str| -> Option<OsString> { None };
    let places = Places {
        agents: Agents::new(home.path(), none),
        project: Some(home.path().join("project")),
        own: HashMap::new(),
    };
    let mut best = f64::MAX;
    for _ in 0..10 {
        let start = Instant::now();
        let ledger = Ledger::open(&places);
        best = best.min(start.elapsed().as_secs_f64());
        assert_eq!(ledger.entries().len(), COUNT);
    }
    let ledger = Ledger::open(&places);
    let start = Instant::now();
    let modified = ledger.entries().iter().filter(|entry| entry.drift() == Drift::Modified);
    assert_eq!(modified.count(), COUNT);
    let drift = start.elapsed().as_secs_f64();
    let start = Instant::now();
    assert!(ledger.entries().iter().all(|entry| entry.details().is_ok()));
    let details = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let cat = "find . -name SKILL.md -type f | sort | xargs cat | wc -c";
    let shell =
        std::process::Command::new("sh").args(["-c", cat]).current_dir(home.path()).output();
    assert!(shell.unwrap().status.success());
    let shell = start.elapsed().as_secs_f64();
    #[expect(clippy::print_stderr, reason = "a measurement")]
    {
        eprintln!(
            "open {:.1} ms, drift {:.0} ms, details {:.0} ms, find and cat {:.0} ms",
            best * 1e3,
            drift * 1e3,
            details * 1e3,
            shell * 1e3
        );
    }
}
