//! Contains the code of the new process: it sets up its namespaces, builds the root file system,
//! drops all privileges and starts the program in a second process. Then it stays as the first
//! process of the PID namespace (like `init`) and reaps the others. When it ends, the kernel kills
//! all processes of the namespace.
//!
//! Nothing here allocates memory: the process is a copy of one thread of a process that may have
//! more threads, which may hold the allocator's lock.

use std::{fmt, os::fd::RawFd};

use libc::c_int;

use super::{
    landlock,
    layout::MountMode,
    path_guard::{self, GuardedPath},
    plan::{self, LaunchPlan, RootStep},
    sys::{self, Errno, MountScope},
};

const READ_ONLY_ROOT: u64 = 1 | 2 | 4 | 8;

/// The stage in which the new process failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    Identity,
    Network,
    Separate,
    Open,
    Base,
    Root,
    Enter,
    Directory,
    Privileges,
    Rules,
    Start,
    Limits,
    Landlock,
    Filter,
    Execute,
}

impl Stage {
    const ALL: [Self; 15] = [
        Self::Identity,
        Self::Network,
        Self::Separate,
        Self::Open,
        Self::Base,
        Self::Root,
        Self::Enter,
        Self::Directory,
        Self::Privileges,
        Self::Rules,
        Self::Start,
        Self::Limits,
        Self::Landlock,
        Self::Filter,
        Self::Execute,
    ];
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Identity => "taking over the user namespace",
            Self::Network => "listening in the network namespace",
            Self::Separate => "separating the mounts",
            Self::Open => "opening a granted path",
            Self::Base => "mounting the new root",
            Self::Root => "building the new root",
            Self::Enter => "entering the new root",
            Self::Directory => "entering the working directory",
            Self::Privileges => "giving up privileges",
            Self::Rules => "making the Landlock rules",
            Self::Start => "starting the second process",
            Self::Limits => "setting resource limits",
            Self::Landlock => "applying the Landlock rules",
            Self::Filter => "installing the system call filter",
            Self::Execute => "executing the program",
        })
    }
}

/// A failed stage with its system error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) stage: Stage,
    /// The index of the source or step of the plan.
    pub(crate) index: usize,
    pub(crate) errno: c_int,
}

/// A message from the new process to the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// Carries the listening socket for the proxy.
    Listener,
    /// Carries the seccomp listener for the watcher.
    Notifications,
    /// The program is running.
    Started,
    /// The program could not be started.
    Failed(Failure),
    /// The program has ended, with this wait status.
    Ended(c_int),
}

/// Messages from the supervisor to the new process: send SIGTERM or SIGINT to all processes, or
/// continue the start.
pub(crate) const TERMINATE: &[u8] = b"t";
pub(crate) const INTERRUPT: &[u8] = b"i";
pub(crate) const CONTINUE: &[u8] = b"g";

/// The size of a message in bytes.
pub(crate) const MESSAGE_BYTES: usize = 8;

impl Message {
    fn encode(self) -> [u8; MESSAGE_BYTES] {
        let (tag, stage, index, value) = match self {
            Self::Listener => (b'l', 0, 0, 0),
            Self::Notifications => (b'n', 0, 0, 0),
            Self::Started => (b's', 0, 0, 0),
            Self::Failed(failure) => {
                (b'f', failure.stage as u8, failure.index as u16, failure.errno)
            }
            Self::Ended(status) => (b'e', 0, 0, status),
        };
        let [index_low, index_high] = index.to_le_bytes();
        let [a, b, c, d] = value.to_le_bytes();
        [tag, stage, index_low, index_high, a, b, c, d]
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let [tag, stage, index_low, index_high, a, b, c, d] = *bytes else { return None };
        let value = c_int::from_le_bytes([a, b, c, d]);
        Some(match tag {
            b'l' => Self::Listener,
            b'n' => Self::Notifications,
            b's' => Self::Started,
            b'f' => Self::Failed(Failure {
                stage: *Stage::ALL.get(usize::from(stage))?,
                index: usize::from(u16::from_le_bytes([index_low, index_high])),
                errno: value,
            }),
            b'e' => Self::Ended(value),
            _ => return None,
        })
    }
}

/// File descriptors that the new process inherits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptors {
    pub(crate) control: RawFd,
    /// The supervisor's end of `control`, of which the new process has a copy.
    pub(crate) supervisor: RawFd,
    pub(crate) standard: [RawFd; 3],
}

trait AtStage<T> {
    fn at(self, stage: Stage) -> Result<T, Failure>;
    fn at_index(self, stage: Stage, index: usize) -> Result<T, Failure>;
}

impl<T> AtStage<T> for sys::Result<T> {
    fn at(self, stage: Stage) -> Result<T, Failure> {
        self.at_index(stage, 0)
    }

    fn at_index(self, stage: Stage, index: usize) -> Result<T, Failure> {
        self.map_err(|Errno(errno)| Failure { stage, index, errno })
    }
}

/// Executes the plan; this is all that the new process does.
pub(crate) fn run(plan: &mut LaunchPlan, descriptors: Descriptors) -> ! {
    let control = descriptors.control;
    // The supervisor's signal handlers must not run here; all signals are still blocked.
    sys::reset_handlers();
    // With this copy open, the new process would not notice that the supervisor has ended.
    sys::close(descriptors.supervisor);
    let worker = build_sandbox(plan, control)
        .and_then(|rules| start_program_process(plan, descriptors, rules));
    match worker {
        Ok(worker) => {
            let _ = sys::send(control, &Message::Started.encode(), None);
            supervise_until_end(worker, &plan.guarded)
        }
        Err(failure) => {
            let _ = sys::send(control, &Message::Failed(failure).encode(), None);
            sys::exit(1)
        }
    }
}

/// Builds the root and drops all privileges. Returns the Landlock ruleset.
fn build_sandbox(plan: &mut LaunchPlan, control: RawFd) -> Result<Option<RawFd>, Failure> {
    if plan.waits_for_cgroup {
        let mut bytes = [0; MESSAGE_BYTES];
        sys::receive(control, &mut bytes).at(Stage::Identity)?;
    }
    sys::write_file(c"/proc/self/setgroups", 0, b"deny").at(Stage::Identity)?;
    sys::write_file(c"/proc/self/uid_map", 0, &plan.user_map).at(Stage::Identity)?;
    sys::write_file(c"/proc/self/gid_map", 0, &plan.group_map).at(Stage::Identity)?;
    // This memory is a copy of the supervisor's, including secrets, so other processes must not
    // read it.
    sys::prctl(libc::PR_SET_DUMPABLE, 0).at(Stage::Identity)?;
    sys::set_hostname(c"savoir").at(Stage::Identity)?;
    if let Some(port) = plan.proxy {
        let listener = sys::listen_on_loopback(port).at(Stage::Network)?;
        sys::send(control, &Message::Listener.encode(), Some(listener)).at(Stage::Network)?;
        sys::close(listener);
    }
    sys::make_mounts_private().at(Stage::Separate)?;
    open_sources(plan)?;
    build_root(plan)?;
    sys::enter_root().at(Stage::Enter)?;
    let root = sys::open_path(c"/").at(Stage::Enter)?;
    sys::set_mount_flags(root, READ_ONLY_ROOT, MountScope::Single).at(Stage::Enter)?;
    sys::change_directory(&plan.directory).at(Stage::Directory)?;
    let rules = create_landlock_rules(plan)?;
    sys::drop_capabilities().at(Stage::Privileges)?;
    sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1).at(Stage::Privileges)?;
    Ok(rules)
}

/// Opens every visible host path once, so that later changes of a path have no effect.
fn open_sources(plan: &mut LaunchPlan) -> Result<(), Failure> {
    for (index, source) in plan.sources.iter_mut().enumerate() {
        let fd = sys::open_without_links(&source.path).at_index(Stage::Open, index)?;
        let kind = sys::file_type(fd).at_index(Stage::Open, index)?;
        let expected = match source.mode {
            MountMode::Device | MountMode::Closed => libc::S_IFCHR,
            _ if source.is_folder => libc::S_IFDIR,
            _ => libc::S_IFREG,
        };
        if kind != expected {
            return Err(Errno(libc::ENOTSUP)).at_index(Stage::Open, index);
        }
        source.fd = fd;
        // Cloned before the new root is mounted, so that the new root is not part of it.
        source.tree = sys::clone_tree(fd).at_index(Stage::Open, index)?;
    }
    Ok(())
}

fn build_root(plan: &LaunchPlan) -> Result<(), Failure> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    sys::mount(c"tmpfs", &plan.base, flags, &plan.root_options).at(Stage::Base)?;
    sys::change_directory(&plan.base).at(Stage::Base)?;
    for (index, step) in plan.steps.iter().enumerate() {
        apply_step(plan, step).at_index(Stage::Root, index)?;
    }
    Ok(())
}

fn apply_step(plan: &LaunchPlan, step: &RootStep) -> sys::Result<()> {
    let scratch_flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    match step {
        RootStep::Folder(path) => match sys::make_folder(path, 0o755) {
            Err(Errno(libc::EEXIST)) => Ok(()),
            result => result,
        },
        RootStep::Link { path, target } => sys::make_link(path, target),
        RootStep::Text { path, bytes } => {
            sys::write_file(path, libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW, bytes)
        }
        RootStep::Bind { source, target, flags } => {
            let tree = plan.sources.get(*source).map_or(-1, |source| source.tree);
            sys::set_mount_flags(tree, *flags, MountScope::Tree)?;
            sys::attach_tree(tree, target)?;
            sys::close(tree);
            Ok(())
        }
        RootStep::Scratch { target, flags, options } => {
            sys::mount(c"tmpfs", target, *flags, options)
        }
        RootStep::Empty(target) => sys::mount(c"tmpfs", target, scratch_flags, c"size=1m,mode=755"),
        RootStep::Seal(target) => {
            let flags = scratch_flags | libc::MS_RDONLY | libc::MS_REMOUNT | libc::MS_BIND;
            sys::mount(c"tmpfs", target, flags, c"")
        }
        RootStep::Processes { target, pid_max } => {
            let flags = scratch_flags | libc::MS_RDONLY;
            // The first process is a copy of the supervisor, so other processes must not see it.
            let options = c"hidepid=ptraceable";
            let mounted = match sys::mount(c"proc", target, scratch_flags, options) {
                // Kernels before Linux 5.8 do not support the option.
                Err(Errno(libc::EINVAL)) => sys::mount(c"proc", target, scratch_flags, c""),
                result => result,
            };
            match mounted {
                // A container that hides parts of `/proc` allows only a `/proc` with processes.
                Err(Errno(libc::EPERM)) => {
                    sys::mount(c"proc", target, flags, c"hidepid=ptraceable,subset=pid")
                }
                Err(error) => Err(error),
                Ok(()) => {
                    // Resource limits do not count the processes of root, but process IDs are
                    // limited for all users. Where this limit cannot be set, only the time limit
                    // remains.
                    if let Some((file, pid_max)) = pid_max {
                        let _ = sys::write_file(file, 0, pid_max.as_bytes());
                    }
                    sys::mount(c"proc", target, flags | libc::MS_REMOUNT | libc::MS_BIND, c"")
                }
            }
        }
    }
}

fn create_landlock_rules(plan: &LaunchPlan) -> Result<Option<RawFd>, Failure> {
    use std::os::fd::IntoRawFd as _;
    let Some(rules) = &plan.landlock else { return Ok(None) };
    let handled = rules.handled.files;
    let ruleset = sys::create_ruleset(&rules.handled, rules.size).at(Stage::Rules)?.into_raw_fd();
    for source in &plan.sources {
        let rights = plan::landlock_rights(source.mode, source.is_folder) & handled;
        if rights == 0 {
            continue;
        }
        sys::allow_path(ruleset, source.fd, rights).at(Stage::Rules)?;
    }
    for (path, rights) in &rules.paths {
        let fd = sys::open_path(path).at(Stage::Rules)?;
        sys::allow_path(ruleset, fd, rights & handled).at(Stage::Rules)?;
        sys::close(fd);
    }
    if let Some(port) = plan.proxy
        && rules.handled.network != 0
    {
        sys::allow_port(ruleset, port, landlock::CONNECT_TCP).at(Stage::Rules)?;
    }
    Ok(Some(ruleset))
}

/// The data for the second process, which becomes the program.
struct Worker<'a> {
    plan: &'a LaunchPlan,
    descriptors: Descriptors,
    rules: Option<RawFd>,
    failure: Option<Failure>,
}

/// Starts the second process and waits until it has executed the program or failed.
#[expect(unsafe_code, reason = "a process that shares memory for a moment")]
fn start_program_process(
    plan: &mut LaunchPlan,
    descriptors: Descriptors,
    rules: Option<RawFd>,
) -> Result<libc::pid_t, Failure> {
    let signals = sys::child_signals().at(Stage::Start)?;
    let mut stack = std::mem::take(&mut plan.stack);
    let mut worker = Worker { plan, descriptors, rules, failure: None };
    // SAFETY: `become_program` gets a pointer to `worker`, which outlives it because this thread is
    // suspended until the other process has executed the program or ended. Nothing else uses the
    // stack, and it is never freed.
    let pid =
        unsafe { sys::start_sharing_memory(become_program, &mut stack, (&raw mut worker).cast()) };
    std::mem::forget(stack);
    let pid = pid.at(Stage::Start)?;
    if let Some(failure) = worker.failure {
        return Err(failure);
    }
    sys::duplicate(descriptors.control, 0).at(Stage::Start)?;
    sys::duplicate(signals, 1).at(Stage::Start)?;
    Ok(pid)
}

#[expect(unsafe_code, reason = "the argument comes as a bare pointer")]
extern "C" fn become_program(argument: *mut libc::c_void) -> c_int {
    // SAFETY: `start_program_process` passes a pointer to its worker, and is suspended until this
    // process executes the program or ends.
    let worker = unsafe { &mut *argument.cast::<Worker<'_>>() };
    worker.failure = Some(execute(worker));
    sys::exit(127)
}

/// Applies the restrictions of the program and executes it; returns only on failure.
fn execute(worker: &Worker<'_>) -> Failure {
    match apply_restrictions(worker) {
        Err(failure) => failure,
        Ok(()) => run_program(worker.plan),
    }
}

fn apply_restrictions(worker: &Worker<'_>) -> Result<(), Failure> {
    let Worker { plan, descriptors, rules, .. } = worker;
    sys::reset_signals();
    sys::new_session().at(Stage::Limits)?;
    for (standard, fd) in (0..).zip(descriptors.standard) {
        sys::duplicate(fd, standard).at(Stage::Limits)?;
    }
    if plan.has_terminal {
        sys::take_terminal().at(Stage::Limits)?;
    }
    for &(resource, soft, hard) in &plan.limits {
        sys::set_limit(resource, soft, hard).at(Stage::Limits)?;
    }
    sys::close_on_execute().at(Stage::Limits)?;
    if let Some(rules) = *rules {
        sys::apply_ruleset(rules).at(Stage::Landlock)?;
    }
    let listener = sys::install_filter(&plan.filter, plan.watched).at(Stage::Filter)?;
    if let Some(listener) = listener {
        let message = Message::Notifications.encode();
        sys::send(descriptors.control, &message, Some(listener)).at(Stage::Filter)?;
        // Only the supervisor has the listener now: if the supervisor is killed, no call waits
        // forever for its answer.
        sys::close(listener);
    }
    Ok(())
}

#[expect(unsafe_code, reason = "lists of strings are passed as bare pointers")]
fn run_program(plan: &LaunchPlan) -> Failure {
    // SAFETY: `CStringArray` ends both lists with a null pointer and keeps the texts.
    let Errno(errno) =
        unsafe { sys::execute(&plan.program, plan.arguments.as_ptr(), plan.environment.as_ptr()) };
    Failure { stage: Stage::Execute, index: 0, errno }
}

/// Waits for the program and reaps other processes. When the program has ended or the supervisor is
/// gone, kills all processes and moves aside files at protected paths.
fn supervise_until_end(worker: libc::pid_t, guarded: &[GuardedPath]) -> ! {
    let status = wait_for_program(worker);
    sys::kill_all();
    path_guard::restore_all(guarded);
    if let Some(status) = status {
        let _ = sys::send(0, &Message::Ended(status).encode(), None);
    }
    sys::exit(i32::from(status.is_none()))
}

/// Returns the wait status of the program, or `None` if the supervisor is gone.
fn wait_for_program(worker: libc::pid_t) -> Option<c_int> {
    // The control socket is descriptor 0 now and the signal descriptor is 1; all others are copies
    // from the supervisor.
    sys::close_from(2).ok()?;
    let mut waits = [sys::PollEntry::read(0), sys::PollEntry::read(1)];
    loop {
        sys::poll(&mut waits, None).ok()?;
        if waits[1].is_ready {
            sys::drain(1);
            while let Some((pid, status)) = sys::reap_child() {
                if pid == worker {
                    return Some(status);
                }
            }
        }
        if waits[0].is_ready {
            let mut bytes = [0; MESSAGE_BYTES];
            match sys::receive(0, &mut bytes) {
                Ok((1.., _)) if bytes.starts_with(INTERRUPT) => sys::signal_all(libc::SIGINT),
                Ok((1.., _)) => sys::signal_all(libc::SIGTERM),
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_decode_as_encoded() {
        let failure = Failure { stage: Stage::Filter, index: 513, errno: libc::EPERM };
        for message in [
            Message::Listener,
            Message::Notifications,
            Message::Started,
            Message::Failed(failure),
            Message::Ended(0x7f00),
        ] {
            assert_eq!(Message::decode(&message.encode()), Some(message));
        }
        assert_eq!(Message::decode(b"f\xff000000"), None);
        assert_eq!(Message::decode(b"x0000000"), None);
        assert_eq!(Message::decode(b""), None);
    }

    #[test]
    fn stages_are_numbered_in_order() {
        for (number, stage) in Stage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, number);
        }
    }
}
