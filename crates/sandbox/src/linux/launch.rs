//! Prepares a policy and starts programs with it ([`Sandbox`]).

use std::{
    ffi::CString,
    fs::File,
    io,
    net::TcpListener,
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use rustls_pki_types::CertificateDer;

use super::{
    cgroup::ControlGroup,
    child::{self, Descriptors, Message, Stage},
    file_watch,
    layout::{Layout, TemplateValues},
    plan::{self, LaunchPlan, ProgramCall},
    process::{BlockedSignals, Process},
    sys,
    usage_monitor::UsageMonitor,
};
use crate::{
    environment::{self, ProxyAccess},
    error::SandboxError,
    outcome::{Enforcement, LimitMechanism},
    policy::{Network, Policy, TerminalSize},
    program_files::ProgramFiles,
    proxy::{CertificateAuthority, Proxy, ProxySettings, SystemResolver, Trap},
    support::MissingFeature,
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

/// The time limit until the program runs. Building the root takes milliseconds; a network file
/// system may take longer.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A policy that is ready to run programs.
#[derive(Debug)]
pub struct Sandbox {
    policy: Policy,
    program_files: ProgramFiles,
    extra_certificates: Vec<CertificateDer<'static>>,
    terminal: Option<TerminalSize>,
}

impl Sandbox {
    /// Prepares a policy: finds the files that its programs need.
    pub fn new(policy: Policy) -> Result<Self, SandboxError> {
        let program_files = ProgramFiles::of(&policy.programs)?;
        Ok(Self { policy, program_files, extra_certificates: Vec::new(), terminal: None })
    }

    /// Adds certificate authorities that the proxy trusts besides those of the system.
    #[must_use]
    pub fn with_trusted_certificates(mut self, certificates: Vec<CertificateDer<'static>>) -> Self {
        self.extra_certificates = certificates;
        self
    }

    /// Runs programs on a terminal of their own for input and both outputs, if one can be created.
    #[must_use]
    pub fn with_terminal(mut self, size: TerminalSize) -> Self {
        self.terminal = Some(size);
        self
    }

    /// Returns the policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the files that the programs of the policy need to start.
    pub fn program_files(&self) -> &ProgramFiles {
        &self.program_files
    }

    /// Starts a program. `arguments` does not include the program name.
    pub fn start(&self, program: &Path, arguments: &[String]) -> Result<Process, SandboxError> {
        let policy = &self.policy;
        let proxy_inputs = match &policy.network {
            Network::None => None,
            Network::Hosts(grants) => Some((grants.clone(), None)),
            Network::Trap => Some((Vec::new(), Some(Trap::default()))),
        };
        let proxy_inputs = match proxy_inputs {
            None => None,
            Some((grants, trap)) => {
                Some((grants, trap, CertificateAuthority::new().map_err(proxy_error)?))
            }
        };
        let certificate = proxy_inputs.as_ref().map(|(.., authority)| authority.certificate_pem());
        let proxy_access = certificate.is_some().then(ProxyAccess::in_own_root);
        let environment = environment::build_environment(policy, proxy_access.as_ref())?;
        let (uid, gid) = sys::identity();
        let variable = |name| environment.value(name).unwrap_or_default();
        let (user, home) = (variable("USER"), variable("HOME"));
        let values = TemplateValues {
            user: if user.is_empty() { "user" } else { user },
            home: if home.is_empty() { "/" } else { home },
            uid,
            gid,
            certificate,
        };
        let layout = Layout::new(policy, &self.program_files, &values)?;
        let landlock = sys::landlock_version().ok();
        let plan = LaunchPlan::new(
            policy,
            &layout,
            ProgramCall {
                program: program.to_owned(),
                arguments: c_arguments(program, arguments)?,
                environment: environment.entries()?,
            },
            landlock,
        )?;
        let settings = proxy_inputs.map(|(grants, trap, authority)| ProxySettings {
            grants,
            trap,
            secrets: environment.secrets(),
            authority,
            resolver: Box::new(SystemResolver),
            extra_certificates: self.extra_certificates.clone(),
        });
        // From here on there is something to clean up when a signal arrives.
        let blocked_signals = BlockedSignals::block()?;
        let terminal = self.terminal;
        let launch = ProgramStart { policy, layout: &layout, landlock, program, terminal };
        launch.start(plan, settings, blocked_signals)
    }
}

fn proxy_error(error: impl std::fmt::Display) -> SandboxError {
    SandboxError::Proxy(error.to_string())
}

fn c_arguments(program: &Path, arguments: &[String]) -> Result<Vec<CString>, SandboxError> {
    let values = arguments.iter().map(|text| plan::c_string(text.as_ref(), "an argument"));
    std::iter::once(plan::c_path(program)).chain(values).collect()
}

/// The data that starting the new process needs.
struct ProgramStart<'a> {
    policy: &'a Policy,
    layout: &'a Layout,
    landlock: Option<u32>,
    program: &'a Path,
    terminal: Option<TerminalSize>,
}

/// Both ends of the three standard streams.
struct Streams {
    /// The program's ends.
    program_ends: [OwnedFd; 3],
    stdin: File,
    stdout: File,
    /// `None` on a terminal, where both outputs are one.
    stderr: Option<File>,
    terminal: Option<File>,
}

impl Streams {
    fn new(terminal: Option<TerminalSize>) -> Result<Self, SandboxError> {
        // A container may have no terminals.
        let terminal = terminal.and_then(|size| Self::terminal(size).ok());
        let made = terminal.map_or_else(Self::pipes, Ok);
        made.map_err(|source| SandboxError::build("making pipes", source))
    }

    fn pipes() -> io::Result<Self> {
        let (stdin, stdout, stderr) = (io::pipe()?, io::pipe()?, io::pipe()?);
        let file = |end: io::PipeReader| File::from(OwnedFd::from(end));
        Ok(Self {
            program_ends: [stdin.0.into(), stdout.1.into(), stderr.1.into()],
            stdin: File::from(OwnedFd::from(stdin.1)),
            stdout: file(stdout.0),
            stderr: Some(file(stderr.0)),
            terminal: None,
        })
    }

    fn terminal(TerminalSize { rows, columns }: TerminalSize) -> io::Result<Self> {
        let (controller, program_ends) = sys::open_terminal(rows, columns)?;
        let controller = File::from(controller);
        Ok(Self {
            program_ends: [program_ends.try_clone()?, program_ends.try_clone()?, program_ends],
            stdin: controller.try_clone()?,
            stdout: controller.try_clone()?,
            stderr: None,
            terminal: Some(controller),
        })
    }
}

impl ProgramStart<'_> {
    fn start(
        &self,
        mut plan: LaunchPlan,
        settings: Option<ProxySettings>,
        blocked_signals: BlockedSignals,
    ) -> Result<Process, SandboxError> {
        let failed = |errno: sys::Errno| SandboxError::build("making pipes", errno);
        let control = sys::message_pair().map_err(failed)?;
        let streams = Streams::new(self.terminal)?;
        let group = ControlGroup::new(&self.policy.limits);
        plan.waits_for_cgroup = group.is_some();
        plan.has_terminal = streams.terminal.is_some();
        let started = Instant::now();
        let pidfd = fork(&mut plan, &control, &streams.program_ends)?;
        // Added before the process continues, so that it starts no process outside the group.
        let group = group.filter(|group| group.add(pidfd.as_fd()));
        if plan.waits_for_cgroup {
            let continued = sys::send(control.0.as_raw_fd(), child::CONTINUE, None);
            continued.map_err(|errno| SandboxError::build("starting", errno))?;
        }
        let Streams { program_ends, stdin, stdout, stderr, terminal } = streams;
        drop((control.1, program_ends));
        let mut process = Process {
            control: control.0,
            pidfd,
            stdin: Some(stdin),
            stdout: Some(stdout),
            stderr,
            terminal,
            proxy: None,
            watcher: None,
            guarded: std::mem::take(&mut plan.guarded),
            wall_time: self.policy.limits.wall,
            output: self.policy.limits.output,
            started,
            status: None,
            is_reaped: false,
            enforcement: Enforcement {
                namespaces: NAMESPACES.iter().map(|(name, _)| *name).collect(),
                landlock: self.landlock,
                seccomp: true,
                limits: if group.is_some() {
                    LimitMechanism::ControlGroup
                } else {
                    LimitMechanism::ResourceLimits
                },
                proxy: settings.is_some(),
                watched: plan.watched,
            },
            usage_monitor: None,
            group,
            blocked_signals,
        };
        self.wait_until_started(&mut process, &plan, settings)?;
        if process.group.is_none() {
            process.usage_monitor = UsageMonitor::start(process.pidfd.as_fd(), &self.policy.limits);
        }
        Ok(process)
    }

    /// Receives the listeners that the new process sends, until the program runs or has failed.
    fn wait_until_started(
        &self,
        process: &mut Process,
        plan: &LaunchPlan,
        mut settings: Option<ProxySettings>,
    ) -> Result<(), SandboxError> {
        let lost = || SandboxError::build("starting", io::Error::other("the process ended early"));
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut waits = [sys::PollEntry::read(process.control.as_raw_fd())];
            let polled = sys::poll(&mut waits, Some(left.as_millis() as i32));
            polled.map_err(|errno| SandboxError::build("starting", errno))?;
            if left.is_zero() {
                return Err(SandboxError::build("starting", io::ErrorKind::TimedOut));
            }
            if !waits[0].is_ready {
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
                    process.watcher = Some(file_watch::start(fd, Arc::new(self.visible_paths())));
                }
                Some((Message::Started, _)) => return Ok(()),
                Some((Message::Failed(failure), _)) => {
                    let source = io::Error::from_raw_os_error(failure.errno);
                    return Err(match failure.stage {
                        Stage::Execute => {
                            SandboxError::Execute { program: self.program.to_owned(), source }
                        }
                        Stage::Identity => MissingFeature::namespaces(source).into(),
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

    fn visible_paths(&self) -> file_watch::VisiblePaths {
        file_watch::VisiblePaths {
            policy: self.policy.clone(),
            visible: self.layout.iter().map(|(path, _)| path.to_owned()).collect(),
        }
    }
}

#[expect(unsafe_code, reason = "the child of a fork runs here")]
fn fork(
    plan: &mut LaunchPlan,
    control: &(OwnedFd, OwnedFd),
    streams: &[OwnedFd; 3],
) -> Result<OwnedFd, SandboxError> {
    // The child copies these descriptors to 0, 1 and 2, so they must not have these numbers
    // themselves.
    let [stdin, stdout, stderr] = streams;
    let standard = [
        duplicate_above_standard(stdin.as_fd())?,
        duplicate_above_standard(stdout.as_fd())?,
        duplicate_above_standard(stderr.as_fd())?,
    ];
    let supervisor = control.0.as_raw_fd();
    let control = duplicate_above_standard(control.1.as_fd())?;
    let descriptors = Descriptors {
        control: control.as_raw_fd(),
        supervisor,
        standard: [0, 1, 2].map(|index| standard[index].as_raw_fd()),
    };
    let flags = NAMESPACES.iter().fold(0, |flags, (_, flag)| flags | flag);
    let failed = |errno: sys::Errno| SandboxError::build("blocking signals", errno);
    let before = sys::block_signals().map_err(failed)?;
    // SAFETY: the child calls `child::run` immediately, which neither allocates nor returns.
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
                    MissingFeature::namespaces(io::Error::from(errno)).into()
                }
                _ => SandboxError::build("making a process", errno),
            })
        }
    }
}

fn duplicate_above_standard(fd: std::os::fd::BorrowedFd<'_>) -> Result<OwnedFd, SandboxError> {
    fd.try_clone_to_owned().map_err(|source| SandboxError::build("making pipes", source))
}
