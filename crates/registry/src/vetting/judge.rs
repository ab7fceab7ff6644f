//! Holds what tools did against what they declare.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    path::{Path, PathBuf},
};

use savoir_engine::{
    approval::ExtraGrants,
    contract::is_of_the_system,
    grant::{self, Grants},
};
use savoir_package::Tree;
use savoir_sandbox::{Access, Caught, Closure, End, HostEvent, Policy, Watch};
use savoir_scan::Severity;
use savoir_skill::{
    Reading,
    permission::{Domain, Level, Permission, Tier},
};

use super::{
    Limits,
    carried::carried,
    detonation::NAME,
    drive::{Failure, Round},
    finding::Finding,
    guard::Why,
    honey::{HoneyFile, Sentinel},
    notes::{Kind, Note},
    stage::Stage,
};

pub(super) const HONEYPOT: &str = "detonation-honeypot";
pub(super) const HOST: &str = "detonation-undeclared-host";
pub(super) const FILE: &str = "detonation-undeclared-file";
pub(super) const PROGRAM: &str = "detonation-undeclared-program";
pub(super) const FAILED: &str = "detonation-failed";
pub(super) const LIMIT: &str = "detonation-limit";

/// Findings of one rule; a tool that reads a thousand files says nothing new with the next one.
const MOST: usize = 16;

/// Of `/etc`, where programs look at many files of their own, this is worth a word.
const SENSITIVE: [&str; 8] = [
    "/etc/cron",
    "/etc/gshadow",
    "/etc/ld.so.preload",
    "/etc/pam.d",
    "/etc/shadow",
    "/etc/ssh",
    "/etc/sudoers",
    "/etc/systemd",
];

/// A finding of this engine.
pub(super) fn finding(
    rule: &'static str,
    severity: Severity,
    message: impl Into<String>,
) -> Finding {
    Finding::new(NAME, rule, severity, message)
}

/// What speaks against a skill in what it did.
pub(super) fn judge(
    tree: &Tree,
    reading: &Reading,
    stage: &Stage,
    rounds: &[Round],
    limits: &Limits,
) -> Vec<Finding> {
    let permissions = grant::effective(&reading.skill, &stage.run_env);
    let granted = granted(stage, &permissions);
    let mut findings = Vec::new();
    for round in rounds {
        let judge =
            Judge { tree, stage, round, permissions: &permissions, granted: granted.as_ref() };
        let rules = [judge.honeypots(), judge.hosts(), judge.files(), judge.programs()];
        for mut found in rules {
            found.truncate(MOST);
            findings.extend(found);
        }
        findings.extend(judge.failures(limits));
        findings.extend(judge.limits(limits));
    }
    findings
}

struct Judge<'a> {
    tree: &'a Tree,
    stage: &'a Stage,
    round: &'a Round,
    permissions: &'a [Permission],
    /// What a run would have, if the permissions can be held.
    granted: Option<&'a Policy>,
}

/// The policy that the permissions come to, which knows patterns, too.
fn granted(stage: &Stage, permissions: &[Permission]) -> Option<Policy> {
    let grants = Grants {
        permissions,
        extra: &ExtraGrants::default(),
        run_env: &stage.run_env,
        skill: &stage.folder,
        folder: Some(&stage.folder),
        support: &[],
        tier: Tier::Experimental,
        programs: &[],
        runs_programs: stage.skill.dialect.running().runs_programs,
        variables: &[],
        own_variables: &[],
        directory: stage.work(),
    };
    grants.policy(savoir_sandbox::Limits::default(), Watch::Off).ok()
}

impl Judge<'_> {
    fn notes(&self, kind: Kind) -> impl Iterator<Item = &Note> {
        self.round.printed.notes.iter().filter(move |note| note.kind == kind)
    }

    /// The first place where the skill did this, else where the round comes from.
    fn place(&self, kind: Kind, is: impl Fn(&Note) -> bool) -> Option<(String, Option<u32>)> {
        let mut noted = self.notes(kind).filter(|note| is(note));
        noted.find_map(|note| note.place(self.tree)).or_else(|| self.round.place.clone())
    }

    fn is_declared(&self, domain: Domain, level: Level, scope: &str) -> bool {
        let wanted = Permission { domain, level, scope: Some(scope.to_owned()) };
        self.permissions.iter().any(|permission| permission.covers(&wanted))
    }

    fn honeypots(&self) -> Vec<Finding> {
        let files = &self.round.outcome.files;
        let is_touched = |path: &Path| {
            files.read.contains(path)
                || files.written.contains(path)
                || files.denied.contains(path)
                || self.notes(Kind::Open).any(|note| Path::new(&note.value) == path)
        };
        let touched = self.stage.honey.files.iter().filter(|file| is_touched(&file.path));
        let mut findings: Vec<Finding> = touched.filter_map(|file| self.touched(file)).collect();
        findings.extend(self.round.outcome.caught.iter().flat_map(|caught| self.leaks(caught)));
        findings
    }

    fn touched(&self, file: &HoneyFile) -> Option<Finding> {
        let covered = self.covers_file(Level::Read, &file.path);
        if covered && file.path.starts_with(self.stage.work()) {
            // Whoever may read the whole working folder comes by it.
            return None;
        }
        let HoneyFile { name, severity, .. } = file;
        let message =
            format!("a tool opened {name}, a fake that only a thief of secrets looks for");
        let place = self.place(Kind::Open, |note| Path::new(&note.value) == file.path);
        let found = finding(HONEYPOT, *severity, message).at(place);
        let found = found.fixed_by(format!("leave {name} alone"));
        Some(if covered || *severity < Severity::Critical {
            Finding { severity: Severity::High, ..found }
        } else {
            found.blocking()
        })
    }

    /// Secrets that a request carries, but for those that it is for.
    fn leaks(&self, caught: &Caught) -> Vec<Finding> {
        let Caught { host, port, method, target, headers, body, .. } = caught;
        let sentinels = &self.stage.honey.sentinels;
        let cores: Vec<&str> = sentinels.iter().map(|one| one.core.as_str()).collect();
        let head = [host.as_bytes(), target.as_bytes(), headers].join(&b'\n');
        let mut indices = carried(&head, &cores);
        indices.extend(carried(body, &cores));
        let declared = self.covers_host(level(method), host, *port, target);
        let told = indices.into_iter().filter_map(|index| sentinels.get(index));
        let told = told.filter(|one| !(one.declared && declared));
        let leak = |Sentinel { name, .. }: &Sentinel| {
            let message = format!("a tool sent the value of {name} to {host} ({method})");
            let place = self.place(Kind::Host, |_| true);
            let fix = if declared {
                format!("declare the variable in requirements.env_vars, or do not send {name}")
            } else {
                format!("do not send {name}")
            };
            finding(HONEYPOT, Severity::Critical, message).at(place).fixed_by(fix).blocking()
        };
        told.map(leak).collect()
    }

    fn hosts(&self) -> Vec<Finding> {
        let mut asked: BTreeMap<String, Level> = BTreeMap::new();
        for event in &self.round.outcome.hosts {
            let level = level(&event.method);
            let HostEvent { host, port, path, .. } = event;
            if !host.is_empty() && !self.covers_host(level, host, *port, path) {
                let known = asked.entry(host.clone()).or_insert(level);
                *known = if level == Level::Write { level } else { *known };
            }
        }
        // What goes past the proxy is seen only from inside.
        for note in self.notes(Kind::Host) {
            let host = note.value.trim_end_matches('.').to_ascii_lowercase();
            let known = [Level::Read, Level::Write]
                .into_iter()
                .any(|level| self.is_declared(Domain::Network, level, &host));
            if !is_here(&host) && !known {
                asked.entry(host).or_insert(Level::Read);
            }
        }
        let told = asked.into_iter().map(|(host, level)| {
            let place = self.place(Kind::Host, |note| note.value.eq_ignore_ascii_case(&host));
            let place = place.or_else(|| self.place(Kind::Host, |_| true));
            let permission = format!("network:{}:{host}", level.as_str());
            self.undeclared(
                HOST,
                format!("a tool called {host}, which is not declared"),
                &permission,
            )
            .at(place)
        });
        told.collect()
    }

    fn covers_file(&self, level: Level, path: &Path) -> bool {
        let forms = [self.scope(path), path.to_string_lossy().into_owned()];
        let access = self.granted.and_then(|policy| policy.access(path));
        let granted = match level {
            Level::Write => access == Some(Access::Write),
            _ => matches!(access, Some(Access::Read | Access::Execute | Access::Write)),
        };
        granted || forms.iter().any(|scope| self.is_declared(Domain::Filesystem, level, scope))
    }

    /// Whether a request may leave, by the name of its host or by its address.
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

    /// A path as a skill writes it.
    fn scope(&self, path: &Path) -> String {
        for (place, short) in [(self.stage.work(), "."), (self.stage.home(), "~")] {
            if let Ok(rest) = path.strip_prefix(place) {
                return format!("{short}/{}", rest.display());
            }
        }
        path.to_string_lossy().into_owned()
    }

    fn files(&self) -> Vec<Finding> {
        let files = &self.round.outcome.files;
        let read = files.read.iter().map(|path| (path, Level::Read));
        let written = files.written.iter().map(|path| (path, Level::Write));
        let denied = files.denied.iter().map(|path| (path, self.denied_level(path)));
        let mut told = BTreeSet::new();
        for (path, level) in read.chain(written).chain(denied) {
            if self.is_of_interest(path, level) && !self.covers_file(level, path) {
                told.insert((path.clone(), level));
            }
        }
        let told = told.into_iter().map(|(path, level)| {
            let scope = self.scope(&path);
            let did = if level == Level::Write { "changed or tried to change" } else { "opened" };
            let message = format!("a tool {did} {scope}, which is not declared");
            let place = self.place(Kind::Open, |note| Path::new(&note.value) == path);
            let permission = format!("filesystem:{}:{scope}", level.as_str());
            self.undeclared(FILE, message, &permission).at(place)
        });
        told.collect()
    }

    /// What was refused in a place that can be read was a change.
    fn denied_level(&self, path: &Path) -> Level {
        let readable = [self.stage.home(), self.stage.folder.as_path()];
        let noted = self.notes(Kind::Open).any(|note| note.write && Path::new(&note.value) == path);
        if noted || readable.iter().any(|place| path.starts_with(place)) {
            Level::Write
        } else {
            Level::Read
        }
    }

    fn is_of_interest(&self, path: &Path, level: Level) -> bool {
        let stage = self.stage;
        let support = stage.witness.parent().is_some_and(|support| path.starts_with(support));
        let is_honey = stage.honey.files.iter().any(|file| file.path == path);
        let own = level == Level::Read && path.starts_with(&stage.folder);
        if support || is_honey || own || path.is_dir() && level == Level::Read {
            return false;
        }
        if path.starts_with(stage.home()) || path.starts_with(stage.work()) {
            // Programs look for their settings in many places; the skill itself knows what it wants.
            let noted = || self.notes(Kind::Open).any(|note| Path::new(&note.value) == path);
            return level == Level::Write || path.exists() || noted();
        }
        let named =
            |places: &[&str]| places.iter().any(|place| path.to_string_lossy().starts_with(place));
        if path.starts_with("/etc") {
            return level == Level::Write || named(&SENSITIVE);
        }
        !is_of_the_system(path)
    }

    fn programs(&self) -> Vec<Finding> {
        let own = std::slice::from_ref(&self.round.own);
        let closure = Closure::of(own).unwrap_or_default();
        let known: BTreeSet<PathBuf> = closure.files().map(|(path, _)| path.to_owned()).collect();
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let started = self.round.outcome.files.executed.iter();
        let started = started.filter(|path| {
            let real = real(path);
            !known.contains(&real)
                && !known.contains(*path)
                && *path != &self.round.own
                && !closure.folders().any(|(folder, _)| real.starts_with(folder))
        });
        let mut names: BTreeSet<String> = started
            .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
            .collect();
        let skill = &self.stage.skill;
        if skill.dialect.running().requirements_grant {
            names.retain(|name| !skill.requirements.programs.contains(name));
        }
        names.retain(|name| !self.is_declared(Domain::Shell, Level::Execute, name));
        let told = names.into_iter().map(|name| {
            let place = self.place(Kind::Program, |note| is_named(&note.value, &name));
            let place = place.or_else(|| self.place(Kind::Program, |_| true));
            let message = format!("a tool started the program {name}, which is not declared");
            self.undeclared(PROGRAM, message, &format!("shell:execute:{name}")).at(place)
        });
        told.collect()
    }

    fn failures(&self, limits: &Limits) -> Vec<Finding> {
        let mut findings: Vec<Finding> = Vec::new();
        let missing: BTreeSet<&str> = self.notes(Kind::Missing).map(|note| &*note.value).collect();
        findings.extend(missing.into_iter().take(MOST).map(|name| {
            let message = format!("the package `{name}` is not here; a stand-in took its place");
            let place = self.place(Kind::Missing, |note| note.value == name);
            finding(FAILED, Severity::Info, message).at(place)
        }));
        let is_stopped = self.round.stopped.is_some();
        match &self.round.failure {
            Some(Failure::Raised(exception)) => {
                let is_missing = matches!(&*exception.kind, "ModuleNotFoundError" | "ImportError");
                let severity = if is_missing { Severity::Info } else { Severity::High };
                let place = exception.at.as_deref().and_then(|at| {
                    let (file, line) = at.rsplit_once(':')?;
                    self.tree.get(file).map(|_| (file.to_owned(), line.parse().ok()))
                });
                let message = format!("the tools cannot be loaded: {exception}");
                findings.push(finding(FAILED, severity, self.hidden(message)).at(place));
            }
            Some(Failure::Ended(why)) if !is_stopped && self.round.bytes <= limits.output => {
                let message = format!("{} came to no end: {why}", self.round.during);
                findings
                    .push(finding(FAILED, Severity::High, message).at(self.round.place.clone()));
            }
            _ => {}
        }
        findings
    }

    fn limits(&self, limits: &Limits) -> Vec<Finding> {
        let mut told = Vec::new();
        match &self.round.stopped {
            Some((Why::Time, what)) => told.push(format!("{what} took too long and was ended")),
            Some((Why::Answer, what)) => {
                told.push(format!("{what} gave an answer that is too long"));
            }
            Some((Why::Memory, what)) => told.push(format!("{what} used too much memory")),
            Some((Why::Disk, what)) => told.push(format!("{what} filled the disk and was ended")),
            None => {}
        }
        if self.round.bytes > limits.output {
            told.push(format!("it printed more than {} bytes and was ended", limits.output));
        }
        if self.round.outcome.files.more > 0 {
            told.push("it opened more files than can be noted".to_owned());
        }
        let (caught, asked) = (&self.round.outcome.caught, &self.round.outcome.hosts);
        if asked.iter().map(|event| event.count as usize).sum::<usize>()
            > savoir_sandbox::limits::CAUGHT
            || caught.iter().any(|one| one.cut)
        {
            told.push("it sent more than can be looked at".to_owned());
        }
        let by_itself = told.is_empty() && self.round.failure.is_none();
        match self.round.outcome.end {
            End::TooMuchMemory => told.push("it took more memory than it may have".to_owned()),
            End::TooManyProcesses => told.push("it started very many processes".to_owned()),
            End::Signalled(9 | 24 | 25) if by_itself => {
                told.push("it was ended by a limit of memory, time or size".to_owned());
            }
            _ => {}
        }
        let place = &self.round.place;
        told.into_iter()
            .map(|text| finding(LIMIT, self.round.severity, text).at(place.clone()))
            .collect()
    }

    fn undeclared(&self, rule: &'static str, message: String, permission: &str) -> Finding {
        finding(rule, self.round.severity, message)
            .fixed_by(format!("declare it: permissions: [{permission}], or do without"))
    }

    /// A text without names of folders that exist only for this run.
    fn hidden(&self, text: String) -> String {
        let mut text = text;
        for (place, name) in
            [(self.stage.folder.as_path(), "."), (self.stage.work(), "."), (self.stage.home(), "~")]
        {
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

fn is_named(path: &str, name: &str) -> bool {
    Path::new(path).file_name().is_some_and(|found| found == name)
}

/// Whether a host is this machine: the proxy is.
fn is_here(host: &str) -> bool {
    host.is_empty()
        || host == "localhost"
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
