//! Checks a package before a registry publishes it or a user trusts it.
//!
//! [`Vetting::vet`] asks every engine that there is, and the worst answer counts:
//!
//! - `scan` reads the files, in this process, always.
//! - `scanners` are programs of others, if the operator has them: Bandit and detect-secrets, and
//!   pip-audit where it may ask its service. They run in the sandbox, and nothing that they print is
//!   believed beyond what it can be held against.
//! - `detonation` runs the tools in a sandbox where every secret is a fake and every host a trap:
//!   `decoy_env` builds the fakes, `sandbox_policy` the policy, `drive` calls the tools, `judge` holds what they
//!   did against what they declare.
//!
//! An engine that fails is not an engine that found nothing: a person has to look then.

mod arguments;
mod behavior_check;
mod decoy_environment;
mod decoy_secrets;
mod detonation;
mod finding;
mod run_limiter;
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

/// What an operator can choose.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether tools are run.
    pub detonation: Detonation,
    /// Whom pip-audit may ask.
    pub audit: Audit,
    /// Where scanners are looked for, before the usual places.
    pub folders: Vec<PathBuf>,
    /// The interpreter of Python tools; `None` is the one of this machine.
    pub python: Option<PathBuf>,
    /// Bounds.
    pub limits: Limits,
}

/// Whether tools are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detonation {
    /// In the sandbox, with fakes.
    On,
    /// Not at all.
    Off,
}

/// Whether pip-audit may ask a service, which learns which packages are asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audit {
    /// It may ask the service at this host, and nobody else.
    Service(String),
    /// It is not run.
    Off,
}

/// Bounds of one vetting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time of one call, and of loading a module.
    pub call: Duration,
    /// Time of all calls of one skill.
    pub skill: Duration,
    /// Time of one scanner.
    pub scanner: Duration,
    /// Calls of one skill.
    pub calls: usize,
    /// Bytes that a tool may print.
    pub output: u64,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes that a tool may leave in its working folder.
    pub disk: u64,
    /// Processes and threads at once.
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

/// The engines of this machine. A clone is cheap.
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
    /// Looks once which programs there are. Nothing is started.
    pub fn detect(options: Options) -> Self {
        let scanners = Scanners::find(&options);
        let found = savoir_engine::grant::resolve("python3", None).ok().map(|program| program.path);
        let python = options.python.clone().or(found);
        Self { inner: Arc::new(Inner { options, scanners, python }) }
    }

    /// Asks every engine about a package. It takes [`Limits::skill`] and [`Limits::scanner`] at most,
    /// and waits outside the runtime.
    pub async fn vet(&self, tree: &Tree) -> VettingReport {
        let (vetting, tree) = (self.clone(), tree.clone());
        let done = tokio::task::spawn_blocking(move || vetting.vet_here(&tree)).await;
        done.unwrap_or_else(|error| {
            let run = EngineRun::failed("vetting", format!("it ended early: {error}"));
            VettingReport::new(Vec::new(), vec![run])
        })
    }

    /// As [`Self::vet`], on this thread.
    pub fn vet_here(&self, tree: &Tree) -> VettingReport {
        let Inner { options, scanners, python } = &*self.inner;
        let (outside, detonated, scanned) = thread::scope(|scope| {
            let outside = scope.spawn(|| scanners.run(tree, options));
            let detonated = scope.spawn(|| detonation::detonate(tree, python.as_deref(), options));
            (outside.join(), detonated.join(), scanned(tree))
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

/// Asks the scanner of this program.
fn scanned(tree: &Tree) -> (Vec<Finding>, EngineRun) {
    let started = Instant::now();
    let report = tree.scan();
    let findings = report.findings.iter().map(Finding::scanned).collect();
    let version = Some(env!("CARGO_PKG_VERSION").to_owned());
    (findings, EngineRun::ran(finding::SCAN_ENGINE, version, started))
}
