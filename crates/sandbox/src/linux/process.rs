//! [`Sandbox`] makes a policy ready; [`Process`] is a program that runs under it, with its
//! supervisor: the clock, the proxy, the watcher, and the end of everything that it started.

use std::{
    ffi::CString,
    fs::File,
    io::{self, Read as _, Write as _},
    net::TcpListener,
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustls_pki_types::CertificateDer;

use super::{
    child::{self, Descriptors, MESSAGE, Message, Stage},
    group::Group,
    placeholder::Placeholders,
    plan::{self, Execution, Plan},
    root::{Layout, Texts},
    sys, watch,
};
use crate::{
    closure::Closure,
    environment,
    error::SandboxError,
    limits,
    outcome::{End, Enforcement, FileEvents, LimitedBy, Outcome},
    policy::{Access, Network, Policy},
    proxy::{Authority, Proxy, Settings, SystemResolver},
    support::Missing,
};

const NAMESPACES: [(&str, libc::c_int); 7] = [
    ("user", libc::CLONE_NEWUSER),
    ("mount", libc::CLONE_NEWNS),
    ("pid", libc::CLONE_NEWPID),
    ("network", libc::CLONE_NEWNET),
    ("ipc", libc::CLONE_NEWIPC),
    ("uts", libc::CLONE_NEWUTS),
    ("cgroup", libc::CLONE_NEWCGROUP),
];

/// How long the new process may take until the program runs. Building the root takes
/// milliseconds; a network file system may take longer.
const START: Duration = Duration::from_secs(30);

/// Which of a program's two outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// A policy that is ready to run programs.
#[derive(Debug)]
pub struct Sandbox {
    policy: Policy,
    closure: Closure,
    trust: Vec<CertificateDer<'static>>,
}

impl Sandbox {
    /// Makes a policy ready: finds out what its programs need.
    pub fn new(policy: Policy) -> Result<Self, SandboxError> {
        let closure = Closure::of(&policy.programs)?;
        Ok(Self { policy, closure, trust: Vec::new() })
    }

    /// Certificates of authorities that the proxy trusts beside those of the system.
    #[must_use]
    pub fn trusting(mut self, certificates: Vec<CertificateDer<'static>>) -> Self {
        self.trust = certificates;
        self
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// What the programs of the policy need to start.
    pub fn closure(&self) -> &Closure {
        &self.closure
    }

    /// Starts a program. The first argument is the one after its name.
    pub fn start(&self, program: &Path, arguments: &[String]) -> Result<Process, SandboxError> {
        let policy = &self.policy;
        let proxied = match &policy.network {
            Network::None => None,
            Network::Hosts(grants) => {
                Some((grants.clone(), Authority::new().map_err(proxy_error)?))
            }
        };
        let certificate = proxied.as_ref().map(|(_, authority)| authority.certificate_pem());
        let built = environment::build(policy, certificate.is_some())?;
        let (uid, gid) = sys::identity();
        let variable = |name| built.plain(name).unwrap_or_default();
        let (user, home) = (variable("USER"), variable("HOME"));
        let texts = Texts {
            user: if user.is_empty() { "user" } else { user },
            home: if home.is_empty() { "/" } else { home },
            uid,
            gid,
            certificate,
        };
        let layout = Layout::new(policy, &self.closure, &texts)?;
        let landlock = sys::landlock_version().ok();
        let mut plan = Plan::new(
            policy,
            &layout,
            Execution {
                program: program.to_owned(),
                arguments: c_arguments(program, arguments)?,
                environment: built.entries()?,
            },
            landlock,
        )?;
        let settings = proxied.map(|(grants, authority)| Settings {
            grants,
            secrets: built.secrets(),
            authority,
            resolver: Box::new(SystemResolver),
            trust: self.trust.clone(),
        });
        let placeholders = Placeholders::hold(
            layout.placeholders.iter().map(PathBuf::as_path),
            policy.paths.iter().filter(|grant| grant.access == Access::Protected).map(|g| &*g.path),
        )?;
        let launch = Launch { policy, layout: &layout, landlock, program };
        launch.start(&mut plan, settings, placeholders)
    }
}

fn proxy_error(error: impl std::fmt::Display) -> SandboxError {
    SandboxError::Proxy(error.to_string())
}

fn c_arguments(program: &Path, arguments: &[String]) -> Result<Vec<CString>, SandboxError> {
    let texts = arguments.iter().map(|text| plan::c_text(text.as_ref(), "an argument"));
    std::iter::once(plan::c_path(program)).chain(texts).collect()
}

/// What is known when the new process is made.
struct Launch<'a> {
    policy: &'a Policy,
    layout: &'a Layout,
    landlock: Option<u32>,
    program: &'a Path,
}

/// Both ends of the three standard streams, and of the control socket.
struct Pipes {
    control: (OwnedFd, OwnedFd),
    stdin: (io::PipeReader, io::PipeWriter),
    stdout: (io::PipeReader, io::PipeWriter),
    stderr: (io::PipeReader, io::PipeWriter),
}

impl Pipes {
    fn new() -> Result<Self, SandboxError> {
        let failed = |source| SandboxError::build("making pipes", source);
        Ok(Self {
            control: sys::message_pair().map_err(|errno| failed(errno.into()))?,
            stdin: io::pipe().map_err(failed)?,
            stdout: io::pipe().map_err(failed)?,
            stderr: io::pipe().map_err(failed)?,
        })
    }
}

impl Launch<'_> {
    fn start(
        &self,
        plan: &mut Plan,
        settings: Option<Settings>,
        placeholders: Placeholders,
    ) -> Result<Process, SandboxError> {
        let pipes = Pipes::new()?;
        let interruptions = Interruptions::hold()?;
        let group = Group::new(&self.policy.limits);
        plan.grouped = group.is_some();
        let started = Instant::now();
        let pidfd = fork(plan, &pipes)?;
        // Before it goes on, so that nobody is started outside the group.
        let group = group.filter(|group| group.add(pidfd.as_fd()));
        if plan.grouped {
            let go_on = sys::send(pipes.control.0.as_raw_fd(), child::GO_ON, None);
            go_on.map_err(|errno| SandboxError::build("starting", errno))?;
        }
        let Pipes { control, stdin, stdout, stderr } = pipes;
        drop((control.1, stdin.0, stdout.1, stderr.1));
        let mut process = Process {
            control: control.0,
            pidfd,
            stdin: Some(File::from(OwnedFd::from(stdin.1))),
            stdout: Some(File::from(OwnedFd::from(stdout.0))),
            stderr: Some(File::from(OwnedFd::from(stderr.0))),
            proxy: None,
            watcher: None,
            _placeholders: placeholders,
            wall: self.policy.limits.wall,
            output: self.policy.limits.output,
            started,
            status: None,
            over: false,
            enforcement: Enforcement {
                namespaces: NAMESPACES.iter().map(|(name, _)| *name).collect(),
                landlock: self.landlock,
                seccomp: true,
                limits: if group.is_some() {
                    LimitedBy::ControlGroup
                } else {
                    LimitedBy::ResourceLimits
                },
                proxy: settings.is_some(),
                watched: plan.watched,
            },
            _group: group,
            interruptions,
        };
        self.wait_until_started(&mut process, plan, settings)?;
        Ok(process)
    }

    /// Takes the listeners that the new process sends, until the program runs or has failed.
    fn wait_until_started(
        &self,
        process: &mut Process,
        plan: &Plan,
        mut settings: Option<Settings>,
    ) -> Result<(), SandboxError> {
        let lost = || SandboxError::build("starting", io::Error::other("the process ended early"));
        let deadline = Instant::now() + START;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut waits = [sys::Wait::read(process.control.as_raw_fd())];
            let polled = sys::poll(&mut waits, Some(left.as_millis() as i32));
            polled.map_err(|errno| SandboxError::build("starting", errno))?;
            if left.is_zero() {
                return Err(SandboxError::build("starting", io::ErrorKind::TimedOut));
            }
            if !waits[0].ready {
                continue;
            }
            match process.receive() {
                Some((Message::Listener, Some(fd))) => {
                    let settings = settings.take().ok_or_else(lost)?;
                    let proxy =
                        Proxy::start(TcpListener::from(fd), settings).map_err(proxy_error)?;
                    process.proxy = Some(proxy);
                }
                Some((Message::Notifications, Some(fd))) => {
                    process.watcher = Some(watch::start(fd, Arc::new(self.sight())));
                }
                Some((Message::Started, _)) => return Ok(()),
                Some((Message::Failed(failure), _)) => {
                    let source = io::Error::from_raw_os_error(failure.errno);
                    return Err(match failure.stage {
                        Stage::Execute => {
                            SandboxError::Execute { program: self.program.to_owned(), source }
                        }
                        Stage::Identity => Missing::namespaces(source).into(),
                        Stage::Directory => {
                            SandboxError::HiddenDirectory { path: self.policy.directory.clone() }
                        }
                        _ => SandboxError::build(plan.describe(failure), source),
                    });
                }
                _ => return Err(lost()),
            }
        }
    }

    fn sight(&self) -> watch::Sight {
        watch::Sight {
            policy: self.policy.clone(),
            visible: self.layout.iter().map(|(path, _)| path.to_owned()).collect(),
        }
    }
}

#[expect(unsafe_code, reason = "the child of a fork runs here")]
fn fork(plan: &mut Plan, pipes: &Pipes) -> Result<OwnedFd, SandboxError> {
    // Descriptors that the child copies over 0 to 2 must not be among these themselves.
    let standard = [
        above_standard(pipes.stdin.0.as_fd())?,
        above_standard(pipes.stdout.1.as_fd())?,
        above_standard(pipes.stderr.1.as_fd())?,
    ];
    let control = above_standard(pipes.control.1.as_fd())?;
    let descriptors = Descriptors {
        control: control.as_raw_fd(),
        standard: [0, 1, 2].map(|index| standard[index].as_raw_fd()),
    };
    let flags = NAMESPACES.iter().fold(0, |flags, (_, flag)| flags | flag);
    let failed = |errno: sys::Errno| SandboxError::build("blocking signals", errno);
    let before = sys::block_signals().map_err(failed)?;
    // SAFETY: the child calls `child::run` at once, which neither allocates nor returns.
    let forked = unsafe { sys::fork_into(flags) };
    match forked {
        Ok(sys::Forked::Child) => child::run(plan, descriptors),
        Ok(sys::Forked::Parent { pidfd }) => {
            sys::restore_signals(&before);
            Ok(pidfd)
        }
        Err(errno) => {
            sys::restore_signals(&before);
            Err(match errno.0 {
                libc::EPERM | libc::ENOSPC | libc::EACCES => {
                    Missing::namespaces(io::Error::from(errno)).into()
                }
                _ => SandboxError::build("making a process", errno),
            })
        }
    }
}

fn above_standard(fd: std::os::fd::BorrowedFd<'_>) -> Result<OwnedFd, SandboxError> {
    fd.try_clone_to_owned().map_err(|source| SandboxError::build("making pipes", source))
}

/// Holds back the signals that would end this process before it has tidied up. They end the
/// program instead, and then it is up to the caller.
struct Interruptions {
    before: libc::sigset_t,
    arrivals: OwnedFd,
}

impl Interruptions {
    fn hold() -> Result<Self, SandboxError> {
        let held = sys::hold_interruptions();
        let (before, arrivals) =
            held.map_err(|errno| SandboxError::build("holding signals", errno))?;
        Ok(Self { before, arrivals })
    }
}

impl Drop for Interruptions {
    fn drop(&mut self) {
        sys::restore_signals(&self.before);
    }
}

impl std::fmt::Debug for Interruptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Interruptions").finish()
    }
}

/// A program that runs, with its supervisor. When it is dropped, everything that it started ends.
#[derive(Debug)]
pub struct Process {
    control: OwnedFd,
    pidfd: OwnedFd,
    stdin: Option<File>,
    stdout: Option<File>,
    stderr: Option<File>,
    proxy: Option<Proxy>,
    watcher: Option<JoinHandle<FileEvents>>,
    _placeholders: Placeholders,
    wall: Option<Duration>,
    output: u64,
    started: Instant,
    status: Option<libc::c_int>,
    over: bool,
    enforcement: Enforcement,
    _group: Option<Group>,
    interruptions: Interruptions,
}

impl Process {
    /// Its standard input, once; when it is dropped, the program reads the end.
    pub fn take_stdin(&mut self) -> Option<File> {
        self.stdin.take()
    }

    /// Its standard output, once; the caller must read it.
    pub fn take_stdout(&mut self) -> Option<File> {
        self.stdout.take()
    }

    /// Its standard error, once; the caller must read it.
    pub fn take_stderr(&mut self) -> Option<File> {
        self.stderr.take()
    }

    /// What holds it.
    pub fn enforcement(&self) -> &Enforcement {
        &self.enforcement
    }

    /// Gives it the input and passes on its output until it has ended or a limit is reached.
    pub fn drive(mut self, input: &[u8], mut sink: impl FnMut(Stream, &[u8])) -> Outcome {
        let mut drive =
            Drive { input, printed: 0, end: None, interrupted: false, everyone_is_dead: false };
        // The program can read its own output and fill its own input: what was ready a moment ago
        // may not be any more, and waiting for it would stop the clock.
        for file in [&self.stdin, &self.stdout, &self.stderr].into_iter().flatten() {
            let _ = sys::do_not_wait(file.as_fd());
        }
        let deadline = self.wall.map(|wall| self.started + wall);
        let mut kill_at = None;
        while self.status.is_none() {
            let now = Instant::now();
            if kill_at.is_some_and(|at| now >= at) {
                break;
            }
            if drive.end.is_none() {
                if deadline.is_some_and(|at| now >= at) {
                    drive.end = Some(End::TimedOut);
                } else if drive.printed > self.output {
                    drive.end = Some(End::TooMuchOutput);
                } else if drive.interrupted {
                    drive.end = Some(End::Stopped);
                }
                if drive.end.is_some() {
                    self.terminate();
                    kill_at = Some(now + limits::GRACE);
                }
            }
            // Nobody reads on: what is printed from here on must not pile up.
            if drive.printed > self.output {
                (self.stdout, self.stderr) = (None, None);
            }
            let until = kill_at.or(deadline).map(|at| at.saturating_duration_since(now));
            if !self.step(&mut drive, until, &mut sink) {
                break;
            }
        }
        self.drain(&mut drive, &mut sink);
        self.finish(drive.end, drive.printed)
    }

    /// Ends it, with everything that it started.
    pub fn stop(self) -> Outcome {
        self.finish(Some(End::Stopped), 0)
    }

    /// Waits until it has ended by itself, or this long. Its outputs must have been taken.
    pub fn wait_at_most(mut self, most: Duration) -> Outcome {
        let most = self.started.elapsed() + most;
        self.wall = Some(self.wall.map_or(most, |wall| wall.min(most)));
        self.drive(&[], |_, _| {})
    }

    /// Something that can end it from elsewhere.
    pub fn killer(&self) -> io::Result<Killer> {
        let arrivals = self.interruptions.arrivals.try_clone()?;
        Ok(Killer { pidfd: self.pidfd.try_clone()?, arrivals })
    }

    /// Waits for whatever comes first; `false` if nothing can come any more.
    fn step(
        &mut self,
        drive: &mut Drive<'_>,
        until: Option<Duration>,
        sink: &mut impl FnMut(Stream, &[u8]),
    ) -> bool {
        let absent = -1;
        let fd =
            |file: &Option<File>| file.as_ref().map_or(absent, std::os::fd::AsRawFd::as_raw_fd);
        if drive.input.is_empty() {
            self.stdin = None;
        }
        let mut waits = [
            sys::Wait::read(self.control.as_raw_fd()),
            sys::Wait::read(fd(&self.stdout)),
            sys::Wait::read(fd(&self.stderr)),
            sys::Wait::write(fd(&self.stdin)),
            sys::Wait::read(self.interruptions.arrivals.as_raw_fd()),
        ];
        let milliseconds = until.map(|left| left.as_millis().min(60_000) as i32 + 1);
        if sys::poll(&mut waits, milliseconds).is_err() {
            return false;
        }
        let [control, stdout, stderr, stdin, interrupted] = waits.map(|wait| wait.ready);
        if interrupted {
            sys::drain(self.interruptions.arrivals.as_raw_fd());
            drive.interrupted = true;
        }
        if stdout {
            drive.read(&mut self.stdout, Stream::Output, sink);
        }
        if stderr {
            drive.read(&mut self.stderr, Stream::Error, sink);
        }
        if stdin {
            drive.write(&mut self.stdin);
        }
        if control {
            match self.receive() {
                Some((Message::Ended(status), _)) => self.status = Some(status),
                Some(_) => {}
                None => return false,
            }
        }
        true
    }

    /// Reads what is left in the pipes. Their other ends are closed once everyone is dead.
    fn drain(&mut self, drive: &mut Drive<'_>, sink: &mut impl FnMut(Stream, &[u8])) {
        self.bury();
        drive.everyone_is_dead = true;
        while self.stdout.is_some() && drive.printed <= self.output {
            drive.read(&mut self.stdout, Stream::Output, sink);
        }
        while self.stderr.is_some() && drive.printed <= self.output {
            drive.read(&mut self.stderr, Stream::Error, sink);
        }
    }

    fn finish(mut self, end: Option<End>, printed: u64) -> Outcome {
        self.bury();
        let duration = self.started.elapsed();
        let end = end.unwrap_or_else(|| match self.status {
            Some(status) if libc::WIFEXITED(status) => End::Exited(libc::WEXITSTATUS(status)),
            Some(status) => End::Signalled(libc::WTERMSIG(status)),
            None => End::Signalled(libc::SIGKILL),
        });
        let hosts = self.proxy.take().map(Proxy::stop).unwrap_or_default();
        let watcher = self.watcher.take().map(JoinHandle::join);
        let files = watcher.and_then(Result::ok).unwrap_or_default();
        let enforcement = std::mem::take(&mut self.enforcement);
        Outcome { end, duration, output_bytes: printed, hosts, files, enforcement }
    }

    /// Asks everyone inside to end.
    fn terminate(&self) {
        let _ = sys::send(self.control.as_raw_fd(), child::TERMINATE, None);
    }

    /// Kills the first process of the namespace, and so everyone, and waits until it is gone.
    fn bury(&mut self) {
        if !self.over {
            if self.status.is_none() {
                let _ = sys::signal(self.pidfd.as_fd(), libc::SIGKILL);
            }
            let _ = sys::wait_for(self.pidfd.as_fd());
            self.over = true;
        }
    }

    fn receive(&self) -> Option<(Message, Option<OwnedFd>)> {
        let mut bytes = [0; MESSAGE];
        let (length, descriptor) = sys::receive(self.control.as_raw_fd(), &mut bytes).ok()?;
        Some((Message::decode(bytes.get(..length)?)?, descriptor))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.bury();
        if let Some(proxy) = self.proxy.take() {
            proxy.stop();
        }
    }
}

/// Ends a program, and everything that it started, from another thread.
#[derive(Debug)]
pub struct Killer {
    pidfd: OwnedFd,
    arrivals: OwnedFd,
}

impl Killer {
    /// Ends it when someone wants this process to end; gives up once it has ended by itself.
    pub fn kill_on_interruption(&self) {
        let mut waits =
            [sys::Wait::read(self.arrivals.as_raw_fd()), sys::Wait::read(self.pidfd.as_raw_fd())];
        while sys::poll(&mut waits, None).is_ok() {
            if waits[1].ready {
                return;
            }
            if waits[0].ready {
                sys::drain(self.arrivals.as_raw_fd());
                return self.kill();
            }
        }
    }

    /// Ends it at once; nothing happens if it has ended already.
    pub fn kill(&self) {
        let _ = sys::signal(self.pidfd.as_fd(), libc::SIGKILL);
    }
}

/// What is passed in and out while a program runs.
struct Drive<'a> {
    input: &'a [u8],
    printed: u64,
    end: Option<End>,
    /// Someone wants this process to end.
    interrupted: bool,
    /// Nothing can come any more that is not there yet.
    everyone_is_dead: bool,
}

impl Drive<'_> {
    fn read(
        &mut self,
        file: &mut Option<File>,
        stream: Stream,
        sink: &mut impl FnMut(Stream, &[u8]),
    ) {
        let mut buffer = [0; 16 << 10];
        match file.as_mut().map(|file| file.read(&mut buffer)) {
            Some(Ok(length @ 1..)) => {
                self.printed += length as u64;
                sink(stream, &buffer[..length]);
            }
            Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Some(Err(error))
                if error.kind() == io::ErrorKind::WouldBlock && !self.everyone_is_dead => {}
            _ => *file = None,
        }
    }

    /// A pipe that is ready takes a page without waiting.
    fn write(&mut self, file: &mut Option<File>) {
        const PAGE: usize = 4096;
        let part = &self.input[..self.input.len().min(PAGE)];
        match file.as_mut().map(|file| file.write(part)) {
            Some(Ok(length)) => self.input = &self.input[length..],
            Some(Err(error))
                if matches!(
                    error.kind(),
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
                ) => {}
            // The program does not want to read more.
            _ => {
                self.input = &[];
                *file = None;
            }
        }
    }
}
