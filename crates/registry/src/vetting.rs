//! Checks a package before a registry publishes it or a user trusts it.
//!
//! [`Vetting::vet`] runs every available engine; the worst result is the verdict:
//!
//! - `scan` reads the files, in this process, always.
//! - `scanners` runs external programs that the operator installed: Bandit, detect-secrets, and
//!   pip-audit if it may ask its service. They run in the sandbox. Their output is checked: a
//!   finding counts only if it names a file that the scanner received.
//! - `detonation` runs the tools in a sandbox where every secret is a decoy and every host a trap.
//!   `decoy_environment` and `decoy_secrets` create the decoys, `sandbox_policy` the policy,
//!   `arguments` the arguments; `tool_process` calls the tools, `run_limiter` kills those that take
//!   too long, `trace_events` reads the trace, `secret_leaks` finds decoys in requests, and
//!   `behavior_check` compares the recorded actions with the declared permissions.
//! - `finding` defines the report.
//!
//! An engine that failed does not count as an engine without findings: a person has to review the
//! package.

mod behavior_check;
mod decoy_environment;
mod decoy_secrets;
mod detonation;
mod finding;
mod run_limiter;
mod sample_arguments;
mod sandbox_policy;
mod scanners;
mod secret_leaks;
mod tool_process;
mod trace_events;

use std::{
    path::PathBuf,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use savoir_package::Tree;

pub use self::finding::{EngineOutcome, EngineRun, Finding, VettingReport};
use self::scanners::Scanners;

/// Settings of the operator.
#[derive(Clone, Debug)]
pub struct Options {
    pub detonation: Detonation,
    /// Which service pip-audit may ask.
    pub audit: Audit,
    /// Folders that are searched for scanners before the default locations.
    pub folders: Vec<PathBuf>,
    /// The interpreter of Python tools; `None` searches for `python3` on this machine.
    pub python: Option<PathBuf>,
    pub limits: Limits,
}

/// Whether the tools of a package are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detonation {
    /// Tools run in the sandbox, with decoy secrets.
    On,
    /// Tools are not run.
    Off,
}

/// Whether pip-audit may ask a service. The service learns the names of the packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audit {
    /// pip-audit may ask the service at this host, and no other.
    Service(String),
    /// pip-audit is not run.
    Off,
}

/// Limits of vetting one package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum time of one call, and of loading a module.
    pub call: Duration,
    /// Maximum time of all calls of one skill.
    pub skill: Duration,
    /// Maximum time of one scanner.
    pub scanner: Duration,
    /// Maximum number of calls of one skill.
    pub calls: usize,
    /// Maximum bytes that a tool may print.
    pub output: u64,
    /// Maximum bytes of memory.
    pub memory: u64,
    /// Maximum bytes that a tool may leave in its working folder.
    pub disk: u64,
    /// Maximum number of processes and threads at once.
    pub processes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call: Duration::from_secs(10),
            skill: Duration::from_secs(30),
            scanner: Duration::from_mins(1),
            calls: 16,
            output: 4 << 20,
            memory: 1 << 30,
            disk: 64 << 20,
            processes: 64,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            detonation: Detonation::On,
            audit: Audit::Off,
            folders: Vec::new(),
            python: None,
            limits: Limits::default(),
        }
    }
}

/// The engines that are available on this machine. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Vetting {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: Options,
    scanners: Scanners,
    python: Option<PathBuf>,
}

impl Vetting {
    /// Searches for the programs once. Does not start any.
    pub fn detect(options: Options) -> Self {
        let scanners = Scanners::find(&options);
        let found = savoir_engine::grant::resolve("python3", None).ok().map(|program| program.path);
        let python = options.python.clone().or(found);
        Self { inner: Arc::new(Inner { options, scanners, python }) }
    }

    /// Runs every engine on a package. Takes at most [`Limits::skill`] and [`Limits::scanner`], on
    /// a blocking thread of the runtime.
    pub async fn vet(&self, tree: &Tree) -> VettingReport {
        let (vetting, tree) = (self.clone(), tree.clone());
        let done = tokio::task::spawn_blocking(move || vetting.vet_here(&tree)).await;
        done.unwrap_or_else(|error| {
            let run = EngineRun::failed("vetting", format!("it ended early: {error}"));
            VettingReport::new(Vec::new(), vec![run])
        })
    }

    /// Like [`Self::vet`], but blocks the current thread.
    pub fn vet_here(&self, tree: &Tree) -> VettingReport {
        let Inner { options, scanners, python } = &*self.inner;
        let (outside, detonated, scanned) = thread::scope(|scope| {
            let outside = scope.spawn(|| scanners.run(tree, options));
            let detonated = scope.spawn(|| detonation::detonate(tree, python.as_deref(), options));
            (outside.join(), detonated.join(), run_scan(tree))
        });
        let panicked = |name| (Vec::new(), vec![EngineRun::failed(name, "it stopped working")]);
        let (mut findings, run) = scanned;
        let mut runs = vec![run];
        let outside = outside.unwrap_or_else(|_| panicked("scanners"));
        let detonated = detonated.unwrap_or_else(|_| panicked(detonation::ENGINE_NAME));
        for (more, engines) in [outside, detonated] {
            findings.extend(more);
            runs.extend(engines);
        }
        VettingReport::new(findings, runs)
    }
}

/// Runs the built-in scanner.
fn run_scan(tree: &Tree) -> (Vec<Finding>, EngineRun) {
    let started = Instant::now();
    let report = tree.scan();
    let findings = report.findings.iter().map(Finding::scanned).collect();
    let version = Some(env!("CARGO_PKG_VERSION").to_owned());
    (findings, EngineRun::ran(finding::SCAN_ENGINE, version, started))
}
