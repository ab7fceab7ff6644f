//! A program dies in the middle, two hundred times: what it leaves is whole, or is mended.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use savoir_package::{
    InstallFailure, SkillSet,
    gaia_lock::GaiaLock,
    install::{CheckedSkill, FetchedSkill, InstallPlan, UserEdits},
    trust::TrustStore,
};

use super::bench::{Bench, asked, install, skill};

const PLACE: &str = "SAVOIR_TEST_DEAD";
const FIRST: &str = "SAVOIR_TEST_FIRST";
const DEATHS: u64 = 200;
const AGENTS: [&str; 4] = ["claude-code", "codex", "continue", "gaia"];
const GAIA: &str = ".gaia/skills/skill-lock.json";

#[test]
fn whoever_dies_leaves_nothing_broken() {
    let mended: u64 = thread::scope(|scope| {
        let two = [0, 1].map(|side| scope.spawn(move || die(side)));
        two.map(|deaths| deaths.join().unwrap()).iter().sum()
    });
    eprintln!("note: {mended} of {DEATHS} deaths left something to mend");
    assert!(mended > DEATHS / 20, "nobody died in the middle");
}

/// Half of the deaths, on one of two benches; gives how many left something to mend.
fn die(side: u64) -> u64 {
    let bench = Bench::new();
    bench.write(GAIA, r#"{"version": 1, "skills": {"theirs": {"version": "3.1.0"}}}"#);
    let (mut mended, mut seed) = (0, 88_172_645_463_325_252 + side);
    // On a busy machine everything takes longer, and so must waiting for the middle of it.
    let begun = Instant::now();
    bench.install(vec![skill("a", "0.1.0", ""), skill("b", "0.1.0", "")], &AGENTS);
    let longest = u64::try_from(begun.elapsed().as_micros()).unwrap().max(60_000);
    for death in 0..DEATHS / 2 {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        kill_one(&bench, death, Duration::from_micros(seed % longest));
        let problems = bench.problems();
        if !problems.is_empty() || bench.sync_plan().is_err() {
            mended += 1;
            mend(&bench);
        }
        assert_eq!(bench.problems(), [""; 0], "after death {death}, which left {problems:?}");
        assert_eq!(in_gaia(&bench), in_lock(&bench), "after death {death}");
    }
    mend(&bench);
    bench.install(vec![skill("a", "9.0.0", ""), skill("b", "9.0.0", "")], &AGENTS);
    assert_eq!(bench.problems(), [""; 0]);
    for folder in [".claude/skills", ".agents/skills", ".continue/skills"] {
        let names = fs::read_dir(bench.path(folder)).unwrap();
        assert_eq!(names.count(), 2, "{folder} has only the skills");
    }
    assert_eq!(fs::read_dir(bench.path(".gaia/skills")).unwrap().count(), 3, "and the lock");
    assert_eq!(in_gaia(&bench), in_lock(&bench));
    mended
}

/// Names and versions in the lock of GAIA, of which one is not ours.
fn in_gaia(bench: &Bench) -> BTreeMap<String, String> {
    let lock = GaiaLock::read(&bench.path(GAIA)).unwrap();
    lock.skills.into_iter().map(|(name, skill)| (name, skill.version)).collect()
}

fn in_lock(bench: &Bench) -> BTreeMap<String, String> {
    let versions = bench.shelf().state().unwrap().lock.versions().into_iter();
    let theirs = ("theirs".to_owned(), "3.1.0".to_owned());
    versions.map(|(name, version)| (name, version.to_string())).chain([theirs]).collect()
}

/// Starts a program that changes the shelf, and kills it a moment after it began to.
fn kill_one(bench: &Bench, first: u64, moment: Duration) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "shelf::dead::child", "--nocapture"])
        .env(PLACE, bench.path("").parent().unwrap())
        .env(FIRST, first.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let begun = lines.find(|line| line.contains("at work") || line.contains("panicked"));
    assert_eq!(begun.as_deref(), Some("at work"));
    thread::sleep(moment);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(lines.find(|line| line.contains("panicked")), None);
}

/// What `savoir sync` does.
fn mend(bench: &Bench) {
    bench.shelf().recover(&|| ()).unwrap();
    bench.apply(&bench.sync(UserEdits::Keep));
}

#[test]
fn child() {
    let Some(place) = env::var_os(PLACE) else { return };
    let first: usize = env::var(FIRST).unwrap().parse().unwrap();
    let bench = Bench::at(place.as_ref());
    let trust = TrustStore::default();
    let [old, new] = ["1.0.0", "2.0.0"].map(|version| {
        ["a", "b"].map(|name| {
            let (tree, called) = (skill(name, version, version), name.to_owned());
            let source = "path+./source".parse().unwrap();
            CheckedSkill::check(
                FetchedSkill { tree, called, source, why: asked(), counted: None },
                &trust,
            )
            .unwrap()
        })
    });
    let shelf = bench.shelf();
    let end = Instant::now() + Duration::from_secs(5);
    for turn in first.. {
        if Instant::now() > end {
            break;
        }
        shelf.recover(&|| ()).unwrap();
        let plan = match turn % 5 {
            0 => shelf.install(&old, &install(&AGENTS)),
            1 => shelf.install(&new, &install(&AGENTS)),
            2 => {
                let gone = tempfile::tempdir_in(bench.data()).unwrap();
                // It may not be there.
                let _ = fs::rename(bench.path(".agents"), gone.path().join("agents"));
                bench.sync_plan()
            }
            3 => shelf.remove(&["b".to_owned()], UserEdits::Keep),
            _ => shelf.undo(UserEdits::Keep),
        };
        apply(&shelf, plan);
    }
}

fn apply(shelf: &SkillSet, plan: Result<InstallPlan, InstallFailure>) {
    let plan = match plan {
        Ok(plan) if plan.is_empty() => return,
        // Somebody else has done it, or undone it.
        Err(
            InstallFailure::NotInstalled(_)
            | InstallFailure::NothingToUndo(_)
            | InstallFailure::Edited(_),
        ) => {
            return;
        }
        plan => plan.unwrap(),
    };
    eprintln!("at work");
    shelf.apply(&plan, &|| ()).unwrap();
}
