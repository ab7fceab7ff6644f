//! Compares what tools did with the permissions that they declare.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    path::{Path, PathBuf},
};

use savoir_engine::{
    approval::ExtraGrants,
    grant::{self, Grants},
    smallest_permissions::is_system_path,
};
use savoir_package::Tree;
use savoir_sandbox::{
    Access, HostEvent, Policy, ProcessEnd, ProgramFiles, RecordOpenedFiles, TrappedRequest,
};
use savoir_scan::Severity;
use savoir_skill::{
    Reading,
    permission::{Domain, Level, Permission, Tier},
};

use super::{
    Limits,
    decoy_environment::DecoyEnvironment,
    decoy_secrets::{DecoyFile, DecoySecret},
    detonation::ENGINE_NAME,
    finding::Finding,
    run_limiter::StopReason,
    secret_leaks::contains_secret,
    tool_process::{ToolFailure, ToolProcess},
    trace_events::{TraceEvent, TraceEventKind},
};

pub(super) const HONEYPOT_RULE: &str = "detonation-honeypot";
pub(super) const UNDECLARED_HOST_RULE: &str = "detonation-undeclared-host";
pub(super) const UNDECLARED_FILE_RULE: &str = "detonation-undeclared-file";
pub(super) const UNDECLARED_PROGRAM_RULE: &str = "detonation-undeclared-program";
pub(super) const FAILED_RULE: &str = "detonation-failed";
pub(super) const LIMIT_RULE: &str = "detonation-limit";

/// Maximum findings of one rule: when a tool reads a thousand files, more findings add nothing.
const MAX_FINDINGS_PER_RULE: usize = 16;

/// Files of `/etc` that are reported. Other files there are read by many programs for their own
/// use.
const SENSITIVE_PATHS: [&str; 8] = [
    "/etc/cron", "/etc/gshadow", "/etc/ld.so.preload", "/etc/pam.d", "/etc/shadow", "/etc/ssh",
    "/etc/sudoers", "/etc/systemd",
];

/// Creates a finding of this engine.
pub(super) fn finding(
    rule: &'static str,
    severity: Severity,
    message: impl Into<String>,
) -> Finding {
    Finding::new(ENGINE_NAME, rule, severity, message)
}

/// Findings about actions of a skill that its declared permissions do not cover.
pub(super) fn behavior_check(
    tree: &Tree,
    reading: &Reading,
    decoy_env: &DecoyEnvironment,
    processes: &[ToolProcess],
    limits: &Limits,
) -> Vec<Finding> {
    let permissions = grant::effective_permissions(&reading.skill, &decoy_env.run_env);
    let granted = granted(decoy_env, &permissions);
    let mut findings = Vec::new();
    for process in processes {
        let behavior_check = BehaviorCheck {
            tree,
            decoy_env,
            process,
            permissions: &permissions,
            granted: granted.as_ref(),
        };
        let rules = [
            behavior_check.honeypots(),
            behavior_check.hosts(),
            behavior_check.files(),
            behavior_check.programs(),
        ];
        for mut found in rules {
            found.truncate(MAX_FINDINGS_PER_RULE);
            findings.extend(found);
        }
        findings.extend(behavior_check.failures(limits));
        findings.extend(behavior_check.limits(limits));
    }
    findings
}

struct BehaviorCheck<'a> {
    tree: &'a Tree,
    decoy_env: &'a DecoyEnvironment,
    process: &'a ToolProcess,
    permissions: &'a [Permission],
    /// The policy that a real run would have, if the permissions can be enforced.
    granted: Option<&'a Policy>,
}

/// The sandbox policy for the declared permissions. Policies support patterns, too.
fn granted(decoy_env: &DecoyEnvironment, permissions: &[Permission]) -> Option<Policy> {
    let grants = Grants {
        permissions,
        extra: &ExtraGrants::default(),
        run_env: &decoy_env.run_env,
        skill: &decoy_env.folder,
        folder: Some(&decoy_env.folder),
        support: &[],
        tier: Tier::Experimental,
        programs: &[],
        runs_programs: decoy_env.skill.dialect.running().runs_programs,
        variables: &[],
        own_variables: &[],
        directory: decoy_env.work(),
    };
    grants.policy(savoir_sandbox::Limits::default(), RecordOpenedFiles::Off).ok()
}

impl BehaviorCheck<'_> {
    fn events(&self, kind: TraceEventKind) -> impl Iterator<Item = &TraceEvent> {
        self.process.output.events.iter().filter(move |note| note.kind == kind)
    }

    /// The first place in the package where the skill did this, else the place that the process was
    /// started from.
    fn place(
        &self,
        kind: TraceEventKind,
        is: impl Fn(&TraceEvent) -> bool,
    ) -> Option<(String, Option<u32>)> {
        let mut noted = self.events(kind).filter(|note| is(note));
        noted.find_map(|note| note.place(self.tree)).or_else(|| self.process.place.clone())
    }

    fn is_declared(&self, domain: Domain, level: Level, scope: &str) -> bool {
        let wanted = Permission { domain, level, scope: Some(scope.to_owned()) };
        self.permissions.iter().any(|permission| permission.covers(&wanted))
    }

    fn honeypots(&self) -> Vec<Finding> {
        let files = &self.process.outcome.files;
        let is_touched = |path: &Path| {
            files.read.contains(path)
                || files.written.contains(path)
                || files.denied.contains(path)
                || self.events(TraceEventKind::Open).any(|note| Path::new(&note.value) == path)
        };
        let touched =
            self.decoy_env.decoy_secrets.files.iter().filter(|file| is_touched(&file.path));
        let mut findings: Vec<Finding> =
            touched.filter_map(|file| self.touched_finding(file)).collect();
        findings.extend(
            self.process.outcome.trapped_requests.iter().flat_map(|caught| self.leaks(caught)),
        );
        findings
    }

    fn touched_finding(&self, file: &DecoyFile) -> Option<Finding> {
        let covered = self.covers_file(Level::Read, &file.path);
        if covered && file.path.starts_with(self.decoy_env.work()) {
            // A skill that may read the whole working folder may open this file without looking for
            // secrets.
            return None;
        }
        let DecoyFile { name, severity, .. } = file;
        let message =
            format!("a tool opened {name}, a fake that only a thief of secrets looks for");
        let place = self.place(TraceEventKind::Open, |note| Path::new(&note.value) == file.path);
        let found = finding(HONEYPOT_RULE, *severity, message).at(place);
        let found = found.with_fix(format!("leave {name} alone"));
        Some(if covered || *severity < Severity::Critical {
            Finding { severity: Severity::High, ..found }
        } else {
            found.blocking()
        })
    }

    /// Secrets in a request, except those that the skill may send to this host.
    fn leaks(&self, caught: &TrappedRequest) -> Vec<Finding> {
        let TrappedRequest { host, port, method, target, headers, body, .. } = caught;
        let secrets_created = &self.decoy_env.decoy_secrets.secrets_created;
        let cores: Vec<&str> = secrets_created.iter().map(|one| one.core.as_str()).collect();
        let head = [host.as_bytes(), target.as_bytes(), headers].join(&b'\n');
        let mut indices = contains_secret(&head, &cores);
        indices.extend(contains_secret(body, &cores));
        let declared = self.covers_host(level(method), host, *port, target);
        let leaked = indices.into_iter().filter_map(|index| secrets_created.get(index));
        let leaked = leaked.filter(|one| !(one.declared && declared));
        let leak = |DecoySecret { name, .. }: &DecoySecret| {
            let message = format!("a tool sent the value of {name} to {host} ({method})");
            let place = self.place(TraceEventKind::Host, |_| true);
            let fix = if declared {
                format!("declare the variable in requirements.env_vars, or do not send {name}")
            } else {
                format!("do not send {name}")
            };
            finding(HONEYPOT_RULE, Severity::Critical, message).at(place).with_fix(fix).blocking()
        };
        leaked.map(leak).collect()
    }

    fn hosts(&self) -> Vec<Finding> {
        let mut asked: BTreeMap<String, Level> = BTreeMap::new();
        for event in &self.process.outcome.hosts {
            let level = level(&event.method);
            let HostEvent { host, port, path, .. } = event;
            if !host.is_empty() && !self.covers_host(level, host, *port, path) {
                let known = asked.entry(host.clone()).or_insert(level);
                *known = if level == Level::Write { level } else { *known };
            }
        }
        // Connections that bypass the proxy are seen only by the tracer inside the sandbox.
        for note in self.events(TraceEventKind::Host) {
            let host = note.value.trim_end_matches('.').to_ascii_lowercase();
            let known = [Level::Read, Level::Write]
                .into_iter()
                .any(|level| self.is_declared(Domain::Network, level, &host));
            if !is_this_host(&host) && !known {
                asked.entry(host).or_insert(Level::Read);
            }
        }
        let findings = asked.into_iter().map(|(host, level)| {
            let place =
                self.place(TraceEventKind::Host, |note| note.value.eq_ignore_ascii_case(&host));
            let place = place.or_else(|| self.place(TraceEventKind::Host, |_| true));
            let permission = format!("network:{}:{host}", level.as_str());
            self.undeclared(
                UNDECLARED_HOST_RULE,
                format!("a tool called {host}, which is not declared"),
                &permission,
            )
            .at(place)
        });
        findings.collect()
    }

    fn covers_file(&self, level: Level, path: &Path) -> bool {
        let forms = [self.scope(path), path.to_string_lossy().into_owned()];
        let access = self.granted.and_then(|policy| policy.access_to(path));
        let granted = match level {
            Level::Write => access == Some(Access::Write),
            _ => matches!(access, Some(Access::Read | Access::Execute | Access::Write)),
        };
        granted || forms.iter().any(|scope| self.is_declared(Domain::Filesystem, level, scope))
    }

    /// Whether the permissions cover a request, by host name or by address.
    fn covers_host(&self, level: Level, host: &str, port: u16, path: &str) -> bool {
        let path = path.split('?').next().unwrap_or_default();
        let mut forms = vec![host.to_owned()];
        for (scheme, usual) in [("https", 443), ("http", 80)] {
            forms.push(format!("{scheme}://{host}:{port}{path}"));
            if port == usual {
                forms.push(format!("{scheme}://{host}{path}"));
            }
        }
        forms.iter().any(|scope| self.is_declared(Domain::Network, level, scope))
    }

    /// A path in the form that a skill declares it.
    fn scope(&self, path: &Path) -> String {
        for (place, short) in [(self.decoy_env.work(), "."), (self.decoy_env.home(), "~")] {
            if let Ok(rest) = path.strip_prefix(place) {
                return format!("{short}/{}", rest.display());
            }
        }
        path.to_string_lossy().into_owned()
    }

    fn files(&self) -> Vec<Finding> {
        let files = &self.process.outcome.files;
        let read = files.read.iter().map(|path| (path, Level::Read));
        let written = files.written.iter().map(|path| (path, Level::Write));
        let denied = files.denied.iter().map(|path| (path, self.denied_level(path)));
        let mut accesses = BTreeSet::new();
        for (path, level) in read.chain(written).chain(denied) {
            if self.is_of_interest(path, level) && !self.covers_file(level, path) {
                accesses.insert((path.clone(), level));
            }
        }
        let findings = accesses.into_iter().map(|(path, level)| {
            let scope = self.scope(&path);
            let did = if level == Level::Write { "changed or tried to change" } else { "opened" };
            let message = format!("a tool {did} {scope}, which is not declared");
            let place = self.place(TraceEventKind::Open, |note| Path::new(&note.value) == path);
            let permission = format!("filesystem:{}:{scope}", level.as_str());
            self.undeclared(UNDECLARED_FILE_RULE, message, &permission).at(place)
        });
        findings.collect()
    }

    /// An access that was denied in a readable place must have been a write.
    fn denied_level(&self, path: &Path) -> Level {
        let readable = [self.decoy_env.home(), self.decoy_env.folder.as_path()];
        let noted = self
            .events(TraceEventKind::Open)
            .any(|note| note.write && Path::new(&note.value) == path);
        if noted || readable.iter().any(|place| path.starts_with(place)) {
            Level::Write
        } else {
            Level::Read
        }
    }

    fn is_of_interest(&self, path: &Path, level: Level) -> bool {
        let decoy_env = self.decoy_env;
        let support =
            decoy_env.tracer_script.parent().is_some_and(|support| path.starts_with(support));
        let is_honey = decoy_env.decoy_secrets.files.iter().any(|file| file.path == path);
        let own = level == Level::Read && path.starts_with(&decoy_env.folder);
        if support || is_honey || own || path.is_dir() && level == Level::Read {
            return false;
        }
        if path.starts_with(decoy_env.home()) || path.starts_with(decoy_env.work()) {
            // Programs look for their settings in many places; only accesses by the skill itself
            // are deliberate.
            let noted =
                || self.events(TraceEventKind::Open).any(|note| Path::new(&note.value) == path);
            return level == Level::Write || path.exists() || noted();
        }
        let named =
            |places: &[&str]| places.iter().any(|place| path.to_string_lossy().starts_with(place));
        if path.starts_with("/etc") {
            return level == Level::Write || named(&SENSITIVE_PATHS);
        }
        !is_system_path(path)
    }

    fn programs(&self) -> Vec<Finding> {
        let own = std::slice::from_ref(&self.process.own);
        let program_files = ProgramFiles::of(own).unwrap_or_default();
        let known: BTreeSet<PathBuf> =
            program_files.files().map(|(path, _)| path.to_owned()).collect();
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let started = self.process.outcome.files.executed.iter();
        let started = started.filter(|path| {
            let real = real(path);
            !known.contains(&real)
                && !known.contains(*path)
                && *path != &self.process.own
                && !program_files.folders().any(|(folder, _)| real.starts_with(folder))
        });
        let mut names: BTreeSet<String> = started
            .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
            .collect();
        let skill = &self.decoy_env.skill;
        if skill.dialect.running().requirements_grant {
            names.retain(|name| !skill.requirements.programs.contains(name));
        }
        names.retain(|name| !self.is_declared(Domain::Shell, Level::Execute, name));
        let findings = names.into_iter().map(|name| {
            let place = self.place(TraceEventKind::Program, |note| has_name(&note.value, &name));
            let place = place.or_else(|| self.place(TraceEventKind::Program, |_| true));
            let message = format!("a tool started the program {name}, which is not declared");
            self.undeclared(UNDECLARED_PROGRAM_RULE, message, &format!("shell:execute:{name}"))
                .at(place)
        });
        findings.collect()
    }

    fn failures(&self, limits: &Limits) -> Vec<Finding> {
        let mut findings: Vec<Finding> = Vec::new();
        let missing: BTreeSet<&str> =
            self.events(TraceEventKind::Missing).map(|note| &*note.value).collect();
        findings.extend(missing.into_iter().take(MAX_FINDINGS_PER_RULE).map(|name| {
            let message = format!("the package `{name}` is not here; a stand-in took its place");
            let place = self.place(TraceEventKind::Missing, |note| note.value == name);
            finding(FAILED_RULE, Severity::Info, message).at(place)
        }));
        let is_stopped = self.process.stopped.is_some();
        match &self.process.failure {
            Some(ToolFailure::Raised(exception)) => {
                let is_missing = matches!(&*exception.kind, "ModuleNotFoundError" | "ImportError");
                let severity = if is_missing { Severity::Info } else { Severity::High };
                let place = exception.at.as_deref().and_then(|at| {
                    let (file, line) = at.rsplit_once(':')?;
                    self.tree.get(file).map(|_| (file.to_owned(), line.parse().ok()))
                });
                let message = format!("the tools cannot be loaded: {exception}");
                findings.push(finding(FAILED_RULE, severity, self.hide_secrets(message)).at(place));
            }
            Some(ToolFailure::Ended(why)) if !is_stopped && self.process.bytes <= limits.output => {
                let message = format!("{} came to no end: {why}", self.process.during);
                findings.push(
                    finding(FAILED_RULE, Severity::High, message).at(self.process.place.clone()),
                );
            }
            _ => {}
        }
        findings
    }

    fn limits(&self, limits: &Limits) -> Vec<Finding> {
        let mut problems = Vec::new();
        match &self.process.stopped {
            Some((StopReason::Time, what)) => {
                problems.push(format!("{what} took too long and was ended"));
            }
            Some((StopReason::Answer, what)) => {
                problems.push(format!("{what} gave an answer that is too long"));
            }
            Some((StopReason::Memory, what)) => {
                problems.push(format!("{what} used too much memory"));
            }
            Some((StopReason::Disk, what)) => {
                problems.push(format!("{what} filled the disk and was ended"));
            }
            None => {}
        }
        if self.process.bytes > limits.output {
            problems.push(format!("it printed more than {} bytes and was ended", limits.output));
        }
        if self.process.outcome.files.more > 0 {
            problems.push("it opened more files than can be noted".to_owned());
        }
        let (caught, asked) = (&self.process.outcome.trapped_requests, &self.process.outcome.hosts);
        if asked.iter().map(|event| event.count as usize).sum::<usize>()
            > savoir_sandbox::limits::MAX_TRAPPED_REQUESTS
            || caught.iter().any(|one| one.cut)
        {
            problems.push("it sent more than can be looked at".to_owned());
        }
        let by_itself = problems.is_empty() && self.process.failure.is_none();
        match self.process.outcome.end {
            ProcessEnd::TooMuchMemory => {
                problems.push("it took more memory than it may have".to_owned());
            }
            ProcessEnd::TooManyProcesses => {
                problems.push("it started very many processes".to_owned());
            }
            ProcessEnd::Signalled(9 | 24 | 25) if by_itself => {
                problems.push("it was ended by a limit of memory, time or size".to_owned());
            }
            _ => {}
        }
        let place = &self.process.place;
        problems
            .into_iter()
            .map(|text| finding(LIMIT_RULE, self.process.severity, text).at(place.clone()))
            .collect()
    }

    fn undeclared(&self, rule: &'static str, message: String, permission: &str) -> Finding {
        finding(rule, self.process.severity, message)
            .with_fix(format!("declare it: permissions: [{permission}], or do without"))
    }

    /// Removes the names of temporary folders of this run from a text.
    fn hide_secrets(&self, text: String) -> String {
        let mut text = text;
        for (place, name) in [
            (self.decoy_env.folder.as_path(), "."),
            (self.decoy_env.work(), "."),
            (self.decoy_env.home(), "~"),
        ] {
            text = text.replace(&*place.to_string_lossy(), name);
        }
        text.lines().next().unwrap_or_default().chars().take(300).collect()
    }
}

fn level(method: &str) -> Level {
    if matches!(method, "GET" | "HEAD" | "OPTIONS" | "CONNECT" | "") {
        Level::Read
    } else {
        Level::Write
    }
}

fn has_name(path: &str, name: &str) -> bool {
    Path::new(path).file_name().is_some_and(|found| found == name)
}

/// Whether a host is this machine, where the proxy runs.
fn is_this_host(host: &str) -> bool {
    host.is_empty()
        || host == "localhost"
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
