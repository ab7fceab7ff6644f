//! Runs every check of [`crate::check`] twice: outside the sandbox, where it must be possible, and
//! inside, where it must not. If this is root, it also runs them as an ordinary user.

use std::{
    collections::BTreeMap, env, fmt::Write as _, fs, io::ErrorKind,
    os::unix::process::CommandExt as _, process::Command, thread, time::Duration,
};

use savoir_sandbox::{
    ExtraPrograms, HostGrant, LimitMechanism, MethodGroup, MovedFile, Network, Outcome, ProcessEnd,
};

use crate::{
    check::{self, Check, MORE_PROCESSES, MOVED_ASIDE_CHECKS, Outside, PIPE_IN_PROTECTED},
    support::{self, CheckEnvironment, SET_UID},
};

const ENTRY: &str = "check::entry";
const NOBODY: u32 = 65534;

/// Checks that are possible under a policy that allows all programs of the system.
const ABOUT_PROGRAMS: [&str; 16] = [
    "start another program",
    "start another program through the loader",
    "start a shell",
    "start a copy in a writable folder",
    "start a copy in a writable folder through the loader",
    "start a copy in a private folder",
    "start a copy in a private folder through the loader",
    "start a program in a folder for reading",
    "start a program in a folder for reading through the loader",
    "start a copy by its descriptor",
    "start a script in a writable folder",
    "map a writable file as code",
    "map a private file as code",
    "map a file for reading as code",
    "make a mapped file code afterwards",
    "load a library from a writable folder",
];

/// Minimum number of checks that must be possible outside the sandbox, to show that they work.
const MIN_CHECKS: usize = 60;

#[test]
fn ungranted_operations_fail() {
    if support::sandbox_is_supported() {
        suite();
    }
}

#[test]
fn ungranted_operations_fail_for_an_ordinary_user() {
    if !support::sandbox_is_supported() || !support::is_root() {
        return;
    }
    let folder = support::tempdir();
    let binary = folder.path().join("it");
    fs::copy(support::binary(), &binary).unwrap();
    support::mode(&binary, 0o755);
    let set_uid = folder.path().join("set-uid");
    fs::copy("/usr/bin/id", &set_uid).unwrap();
    support::mode(&set_uid, 0o4755);
    let mut command = Command::new(&binary);
    command
        .args(support::entry_arguments("isolation::as_ordinary_user"))
        .env(SET_UID, &set_uid)
        .env("HOME", "/nonexistent")
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY);
    // The new file may still be open for writing in a process that another test has just started.
    let output = loop {
        match command.output() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                thread::sleep(Duration::from_millis(10));
            }
            output => break output.unwrap(),
        }
    };
    let error = String::from_utf8_lossy(&output.stderr);
    support::print_skipped(&error);
    assert!(output.status.success(), "{}\n{error}", String::from_utf8_lossy(&output.stdout));
}

#[test]
#[ignore = "started by the test above, as another user"]
fn as_ordinary_user() {
    if env::var_os(SET_UID).is_some() {
        assert!(!support::is_root());
        suite();
    }
}

/// The number of checks of a group.
#[derive(Default)]
struct Count {
    controlled: usize,
    apart: usize,
}

fn suite() {
    let mut report = Report::default();
    for check in check::all() {
        report.run(check, &Network::None);
    }
    let grant = HostGrant {
        host: "example.org".parse().unwrap(),
        scheme: None,
        port: None,
        path: String::new(),
        methods: MethodGroup::Read,
        allow_private_addresses: false,
    };
    let hosts = Network::Hosts(vec![grant]);
    for check in check::with_hosts() {
        report.run(check, &hosts);
    }
    report.finish();
}

#[derive(Default)]
struct Report {
    counts: BTreeMap<&'static str, Count>,
    apart: Vec<String>,
    failures: Vec<String>,
}

impl Report {
    fn run(&mut self, check: &Check, network: &Network) {
        let Check { name, group, outside, .. } = check;
        let counts = self.counts.entry(group).or_default();
        match (outside_of_sandbox(check), outside) {
            (Ok(()), _) => counts.controlled += 1,
            (Err(reason), Outside::Depends(why)) => {
                counts.apart += 1;
                self.apart.push(format!("{name}: {why} ({reason})"));
            }
            (Err(reason), Outside::Root(why)) if !support::is_root() => {
                counts.apart += 1;
                self.apart.push(format!("{name}: {why} ({reason})"));
            }
            (Err(reason), _) => {
                self.failures.push(format!("{name}: the control failed: {reason}"));
            }
        }
        for extra_programs in [ExtraPrograms::None, ExtraPrograms::System] {
            self.run_inside(check, network, extra_programs);
        }
    }

    fn run_inside(&mut self, check: &Check, network: &Network, extra_programs: ExtraPrograms) {
        if extra_programs == ExtraPrograms::System && ABOUT_PROGRAMS.contains(&check.name) {
            return;
        }
        let name = format!("{} with {extra_programs:?} programs", check.name);
        match inside_of_sandbox(check, network, extra_programs) {
            Ok(Inside::NotPossible) => {}
            Ok(Inside::Possible(limits)) if let Some(why) = known_gap(check.name, limits) => {
                self.apart.push(format!("{name}: POSSIBLE INSIDE: {why}"));
            }
            Ok(Inside::Possible(_)) => self.failures.push(format!("{name}: possible inside")),
            Err(reason) => self.failures.push(format!("{name}: the check itself failed: {reason}")),
        }
    }

    fn finish(self) {
        let user = if support::is_root() { "root" } else { "an ordinary user" };
        let total: usize = self.counts.values().map(|count| count.controlled).sum();
        let mut text = format!("as {user}: {total} checks with a control");
        for (group, Count { controlled, apart }) in &self.counts {
            write!(text, "\n  {group}: {controlled}, apart {apart}").unwrap();
        }
        for line in &self.apart {
            write!(text, "\n  apart: {line}").unwrap();
        }
        support::print_skipped(&text);
        assert!(
            self.failures.is_empty(),
            "as {user}, {} failures:\n{}",
            self.failures.len(),
            self.failures.join("\n")
        );
        assert!(total >= MIN_CHECKS, "only {total} checks have shown outside that they work");
    }
}

fn outside_of_sandbox(check: &Check) -> Result<(), String> {
    let busy = format!("(os error {})", libc::ETXTBSY);
    loop {
        match control(check) {
            // The new program may still be open for writing in a process that another test has just
            // started.
            Err(reason) if reason.contains(&busy) => {}
            result => return result,
        }
    }
}

fn control(check: &Check) -> Result<(), String> {
    let check_env = CheckEnvironment::new();
    let directory = &check_env.setup.write;
    let printed = support::run_outside(ENTRY, check.name, &check_env.setup_text(), directory);
    match verdict(&printed) {
        Some("possible") => Ok(()),
        Some(reason) => Err(reason.to_owned()),
        None => Err(format!("it printed {printed:?}")),
    }
}

/// Why a check is known to be possible inside.
fn known_gap(name: &str, limits: LimitMechanism) -> Option<&'static str> {
    match name {
        MORE_PROCESSES if support::is_root() && limits == LimitMechanism::ResourceLimits => {
            Some("the kernel does not count processes of root, and there is no control group")
        }
        PIPE_IN_PROTECTED => {
            Some("a pipe is written to on a read-only mount, and Landlock cannot take rights back")
        }
        _ => None,
    }
}

enum Inside {
    Possible(LimitMechanism),
    NotPossible,
}

fn inside_of_sandbox(
    check: &Check,
    network: &Network,
    extra_programs: ExtraPrograms,
) -> Result<Inside, String> {
    let check_env = CheckEnvironment::new();
    let mut policy = check_env.policy();
    policy.extra_programs = extra_programs;
    policy.network = network.clone();
    support::set_check_variables(&mut policy, check.name, &check_env.setup_text());
    let run = support::run_inside(policy, ENTRY).map_err(|error| error.to_string())?;
    let printed = String::from_utf8_lossy(&run.output);
    match (verdict(&printed), run.outcome.end) {
        (Some("possible"), _)
            if MOVED_ASIDE_CHECKS.contains(&check.name)
                && was_moved_aside(&check_env, &run.outcome) =>
        {
            Ok(Inside::NotPossible)
        }
        (Some("possible"), _) => Ok(Inside::Possible(run.outcome.enforcement.limits)),
        (Some(_), ProcessEnd::Exited(0)) => Ok(Inside::NotPossible),
        // Without a control group, the processes of root are counted only every 50 ms. On a slow
        // machine, the count comes before the check has printed that it succeeded.
        (_, ProcessEnd::TooManyProcesses) if check.name == MORE_PROCESSES => {
            Ok(Inside::NotPossible)
        }
        (_, end) => Err(format!("{end:?}, {printed:?}, {:?}", String::from_utf8_lossy(&run.error))),
    }
}

/// Whether the files that were created at protected paths are gone, and were reported.
fn was_moved_aside(check_env: &CheckEnvironment, outcome: &Outcome) -> bool {
    let is_gone = |name: &str| check_env.setup.write.join(name).symlink_metadata().is_err();
    let is_kept = |put: &MovedFile| put.to.as_ref().is_some_and(|to| to.symlink_metadata().is_ok());
    ["missing", "far/missing"].into_iter().all(is_gone)
        && !outcome.moved_files.is_empty()
        && outcome.moved_files.iter().all(is_kept)
}

/// The result line that a check prints.
fn verdict(printed: &str) -> Option<&str> {
    printed.lines().find(|line| line.starts_with("possible") || line.starts_with("not possible: "))
}
