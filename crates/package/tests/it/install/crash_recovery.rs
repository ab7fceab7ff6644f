//! Kills a program two hundred times during a change: the project is always complete, or can be
//! repaired.

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

use super::test_project::{TestProject, asked, install, skill};

const PLACE: &str = "SAVOIR_TEST_DEAD";
const FIRST: &str = "SAVOIR_TEST_FIRST";
const KILLS: u64 = 200;
const AGENTS: [&str; 4] = ["claude-code", "codex", "continue", "gaia"];
const GAIA: &str = ".gaia/skills/skill-lock.json";

#[test]
fn killed_process_leaves_recoverable_state() {
    let repaired: u64 = thread::scope(|scope| {
        let two = [0, 1].map(|side| scope.spawn(move || run_and_kill(side)));
        two.map(|runs| runs.join().unwrap()).iter().sum()
    });
    eprintln!("note: {repaired} of {KILLS} kills left an incomplete change");
    assert!(repaired > KILLS / 20, "no process was killed during a change");
}

/// Runs half of the kills in one of two projects; returns how many left an incomplete change.
fn run_and_kill(side: u64) -> u64 {
    let project = TestProject::new();
    project.write(GAIA, r#"{"version": 1, "skills": {"theirs": {"version": "3.1.0"}}}"#);
    let (mut repaired, mut seed) = (0, 88_172_645_463_325_252 + side);
    // Measure how long a change takes on this machine, to kill it in the middle.
    let begun = Instant::now();
    project.install(vec![skill("a", "0.1.0", ""), skill("b", "0.1.0", "")], &AGENTS);
    let longest = u64::try_from(begun.elapsed().as_micros()).unwrap().max(60_000);
    for round in 0..KILLS / 2 {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        kill_one(&project, round, Duration::from_micros(seed % longest));
        let problems = project.problems();
        if !problems.is_empty() || project.sync_plan().is_err() {
            repaired += 1;
            recover(&project);
        }
        assert_eq!(project.problems(), [""; 0], "after kill {round}, which left {problems:?}");
        assert_eq!(in_gaia(&project), in_lock(&project), "after kill {round}");
    }
    recover(&project);
    project.install(vec![skill("a", "9.0.0", ""), skill("b", "9.0.0", "")], &AGENTS);
    assert_eq!(project.problems(), [""; 0]);
    for folder in [".claude/skills", ".agents/skills", ".continue/skills"] {
        let names = fs::read_dir(project.path(folder)).unwrap();
        assert_eq!(names.count(), 2, "{folder} has only the skills");
    }
    assert_eq!(fs::read_dir(project.path(".gaia/skills")).unwrap().count(), 3, "and the lock");
    assert_eq!(in_gaia(&project), in_lock(&project));
    repaired
}

/// Returns names and versions in the lock of GAIA, including an entry of another program.
fn in_gaia(project: &TestProject) -> BTreeMap<String, String> {
    let lock = GaiaLock::read(&project.path(GAIA)).unwrap();
    lock.skills.into_iter().map(|(name, skill)| (name, skill.version)).collect()
}

fn in_lock(project: &TestProject) -> BTreeMap<String, String> {
    let versions = project.skill_set().state().unwrap().lock.versions().into_iter();
    let theirs = ("theirs".to_owned(), "3.1.0".to_owned());
    versions.map(|(name, version)| (name, version.to_string())).chain([theirs]).collect()
}

/// Starts a process that changes the skill set, and kills it a moment later.
fn kill_one(project: &TestProject, first: u64, moment: Duration) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "install::crash_recovery::child", "--nocapture"])
        .env(PLACE, project.path("").parent().unwrap())
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

/// Recovers and repairs like `savoir sync`.
fn recover(project: &TestProject) {
    project.skill_set().recover(&|| ()).unwrap();
    project.apply(&project.sync(UserEdits::Keep));
}

#[test]
fn child() {
    let Some(place) = env::var_os(PLACE) else { return };
    let first: usize = env::var(FIRST).unwrap().parse().unwrap();
    let project = TestProject::at(place.as_ref());
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
    let skill_set = project.skill_set();
    let end = Instant::now() + Duration::from_secs(5);
    for turn in first.. {
        if Instant::now() > end {
            break;
        }
        skill_set.recover(&|| ()).unwrap();
        let plan = match turn % 5 {
            0 => skill_set.install(&old, &install(&AGENTS)),
            1 => skill_set.install(&new, &install(&AGENTS)),
            2 => {
                let gone = tempfile::tempdir_in(project.data()).unwrap();
                // The folder may not exist.
                let _ = fs::rename(project.path(".agents"), gone.path().join("agents"));
                project.sync_plan()
            }
            3 => skill_set.remove(&["b".to_owned()], UserEdits::Keep),
            _ => skill_set.undo(UserEdits::Keep),
        };
        apply(&skill_set, plan);
    }
}

fn apply(skill_set: &SkillSet, plan: Result<InstallPlan, InstallFailure>) {
    let plan = match plan {
        Ok(plan) if plan.is_empty() => return,
        // Another process has installed or removed the skill.
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
    skill_set.apply(&plan, &|| ()).unwrap();
}
