//! Supervises a running program ([`Process`]): its time limit, proxy and watcher, and the end of
//! all processes that it started.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use super::{
    cgroup::ControlGroup,
    child::{self, MESSAGE_BYTES, Message},
    path_guard::{self, GuardedPath},
    sys,
    usage_monitor::UsageMonitor,
};
use crate::{
    error::SandboxError,
    limits,
    outcome::{Enforcement, FileEvents, Outcome, ProcessEnd},
    proxy::Proxy,
};

/// One of a program's two outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// Blocks the signals that would end this process before it has cleaned up. Such a signal ends the
/// program instead, and then the caller decides. Signals for which the caller has handlers are not
/// blocked; the caller then ends the program itself.
pub(super) struct BlockedSignals {
    before: libc::sigset_t,
    signal_fd: OwnedFd,
}

impl BlockedSignals {
    pub(super) fn block() -> Result<Self, SandboxError> {
        let result = sys::block_termination_signals();
        let (before, signal_fd) =
            result.map_err(|errno| SandboxError::build("blocking signals", errno))?;
        Ok(Self { before, signal_fd })
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        sys::restore_signals(&self.before);
    }
}

impl std::fmt::Debug for BlockedSignals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Interruptions").finish()
    }
}

/// A running program with its supervisor. Dropping it ends all processes that the program started.
#[derive(Debug)]
pub struct Process {
    pub(super) control: OwnedFd,
    pub(super) pidfd: OwnedFd,
    pub(super) stdin: Option<File>,
    pub(super) stdout: Option<File>,
    pub(super) stderr: Option<File>,
    pub(super) terminal: Option<File>,
    pub(super) proxy: Option<Proxy>,
    pub(super) watcher: Option<JoinHandle<FileEvents>>,
    pub(super) guarded: Vec<GuardedPath>,
    pub(super) wall_time: Option<Duration>,
    pub(super) output: u64,
    pub(super) started: Instant,
    pub(super) status: Option<libc::c_int>,
    pub(super) is_reaped: bool,
    pub(super) enforcement: Enforcement,
    pub(super) group: Option<ControlGroup>,
    pub(super) usage_monitor: Option<UsageMonitor>,
    pub(super) blocked_signals: BlockedSignals,
}

impl Process {
    /// Takes the program's standard input, once. When it is dropped, the program reads the end of
    /// its input.
    pub fn take_stdin(&mut self) -> Option<File> {
        self.stdin.take()
    }

    /// Takes the standard output, once; the caller must read it.
    pub fn take_stdout(&mut self) -> Option<File> {
        self.stdout.take()
    }

    /// Takes the standard error, once; the caller must read it.
    pub fn take_stderr(&mut self) -> Option<File> {
        self.stderr.take()
    }

    /// Returns the active protections.
    pub fn enforcement(&self) -> &Enforcement {
        &self.enforcement
    }

    /// Writes `input` to the program and passes its output to `sink` until the program has ended or
    /// a limit is reached.
    pub fn communicate(mut self, input: &[u8], mut sink: impl FnMut(Stream, &[u8])) -> Outcome {
        let mut io_state =
            IoState { input, output_bytes: 0, end: None, interrupted: None, all_ended: false };
        // The program can also read its own output and fill its own input, so a descriptor that was
        // ready may block a moment later, and a blocked supervisor could not enforce the time
        // limit.
        for file in [&self.stdin, &self.stdout, &self.stderr].into_iter().flatten() {
            let _ = sys::set_nonblocking(file.as_fd());
        }
        let deadline = self.wall_time.map(|wall_time| self.started + wall_time);
        let mut kill_at = None;
        while self.status.is_none() {
            let now = Instant::now();
            if kill_at.is_some_and(|at| now >= at) {
                break;
            }
            if io_state.end.is_none() {
                if deadline.is_some_and(|at| now >= at) {
                    io_state.end = Some(ProcessEnd::TimedOut);
                } else if io_state.output_bytes > self.output {
                    io_state.end = Some(ProcessEnd::TooMuchOutput);
                } else if io_state.interrupted.is_some() {
                    io_state.end = Some(ProcessEnd::Stopped);
                }
                if io_state.end.is_some() {
                    // Ctrl-C is passed to the program.
                    let is_ctrl_c = io_state.interrupted == Some(libc::SIGINT);
                    self.ask_to_end(if is_ctrl_c { child::INTERRUPT } else { child::TERMINATE });
                    kill_at = Some(now + limits::TERMINATION_GRACE);
                }
            }
            // Nobody reads further output, so the pipes are closed.
            if io_state.output_bytes > self.output {
                (self.stdout, self.stderr) = (None, None);
            }
            let until = kill_at.or(deadline).map(|at| at.saturating_duration_since(now));
            if !self.step(&mut io_state, until, &mut sink) {
                break;
            }
        }
        self.drain(&mut io_state, &mut sink);
        self.finish(io_state.end, io_state.output_bytes)
    }

    /// Ends the program and all processes that it started.
    pub fn stop(self) -> Outcome {
        self.finish(Some(ProcessEnd::Stopped), 0)
    }

    /// Waits until the program has ended, or at most this long. The caller must have taken its
    /// outputs.
    pub fn wait_timeout(mut self, timeout: Duration) -> Outcome {
        let timeout = self.started.elapsed() + timeout;
        self.wall_time = Some(self.wall_time.map_or(timeout, |wall_time| wall_time.min(timeout)));
        self.communicate(&[], |_, _| {})
    }

    /// Returns a handle that can end the program from another thread.
    pub fn kill_handle(&self) -> io::Result<KillHandle> {
        let signal_fd = self.blocked_signals.signal_fd.try_clone()?;
        Ok(KillHandle { pidfd: self.pidfd.try_clone()?, signal_fd })
    }

    /// Waits for the next event; returns `false` if no more events can come.
    fn step(
        &mut self,
        io_state: &mut IoState<'_>,
        until: Option<Duration>,
        sink: &mut impl FnMut(Stream, &[u8]),
    ) -> bool {
        let absent = -1;
        let fd =
            |file: &Option<File>| file.as_ref().map_or(absent, std::os::fd::AsRawFd::as_raw_fd);
        if io_state.input.is_empty() {
            self.stdin = None;
        }
        let mut waits = [
            sys::PollEntry::read(self.control.as_raw_fd()),
            sys::PollEntry::read(fd(&self.stdout)),
            sys::PollEntry::read(fd(&self.stderr)),
            sys::PollEntry::write(fd(&self.stdin)),
            sys::PollEntry::read(self.blocked_signals.signal_fd.as_raw_fd()),
        ];
        let milliseconds = until.map(|left| left.as_millis().min(60_000) as i32 + 1);
        if sys::poll(&mut waits, milliseconds).is_err() {
            return false;
        }
        let [control, stdout, stderr, stdin, interrupted] = waits.map(|wait| wait.is_ready);
        if interrupted {
            io_state.interrupted = sys::first_signal(self.blocked_signals.signal_fd.as_raw_fd());
        }
        if stdout {
            io_state.read(&mut self.stdout, Stream::Output, sink);
        }
        if stderr {
            io_state.read(&mut self.stderr, Stream::Error, sink);
        }
        if stdin {
            io_state.write(&mut self.stdin);
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

    /// Reads the remaining output. The other ends of the pipes are closed once all processes are
    /// dead.
    fn drain(&mut self, io_state: &mut IoState<'_>, sink: &mut impl FnMut(Stream, &[u8])) {
        self.kill_and_reap();
        io_state.all_ended = true;
        while self.stdout.is_some() && io_state.output_bytes <= self.output {
            io_state.read(&mut self.stdout, Stream::Output, sink);
        }
        while self.stderr.is_some() && io_state.output_bytes <= self.output {
            io_state.read(&mut self.stderr, Stream::Error, sink);
        }
    }

    fn finish(mut self, end: Option<ProcessEnd>, output_bytes: u64) -> Outcome {
        self.kill_and_reap();
        let duration = self.started.elapsed();
        let exceeded = self.usage_monitor.as_ref().and_then(UsageMonitor::exceeded);
        let end = exceeded.or(end);
        let end = end.unwrap_or_else(|| match self.status {
            Some(status) if libc::WIFEXITED(status) => {
                ProcessEnd::Exited(libc::WEXITSTATUS(status))
            }
            Some(status) => ProcessEnd::Signalled(libc::WTERMSIG(status)),
            None => ProcessEnd::Signalled(libc::SIGKILL),
        });
        let (hosts, trapped_requests) = self.proxy.take().map(Proxy::stop).unwrap_or_default();
        let watcher = self.watcher.take().map(JoinHandle::join);
        let files = watcher.and_then(Result::ok).unwrap_or_default();
        let enforcement = std::mem::take(&mut self.enforcement);
        let moved_files = path_guard::list_moved_files(&self.guarded);
        Outcome {
            end,
            duration,
            output_bytes,
            hosts,
            trapped_requests,
            files,
            moved_files,
            enforcement,
        }
    }

    /// Asks all processes in the sandbox to end.
    fn ask_to_end(&self, message: &[u8]) {
        let _ = sys::send(self.control.as_raw_fd(), message, None);
    }

    /// Returns the program's terminal, if it has one, to set its size.
    pub fn terminal(&self) -> io::Result<Option<File>> {
        self.terminal.as_ref().map(File::try_clone).transpose()
    }

    /// Kills the first process of the namespace, and thereby all others, and waits for its end.
    fn kill_and_reap(&mut self) {
        if !self.is_reaped {
            if self.status.is_none() {
                let _ = sys::signal(self.pidfd.as_fd(), libc::SIGKILL);
            }
            let _ = sys::wait_for(self.pidfd.as_fd());
            // The first process usually did this already, unless it was killed.
            path_guard::restore_all(&self.guarded);
            self.is_reaped = true;
        }
    }

    pub(super) fn receive(&self) -> Option<(Message, Option<OwnedFd>)> {
        let mut bytes = [0; MESSAGE_BYTES];
        let (length, descriptor) = sys::receive(self.control.as_raw_fd(), &mut bytes).ok()?;
        Some((Message::decode(bytes.get(..length)?)?, descriptor))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_and_reap();
        if let Some(proxy) = self.proxy.take() {
            proxy.stop();
        }
    }
}

/// Ends a program and all processes that it started, from another thread.
#[derive(Debug)]
pub struct KillHandle {
    pidfd: OwnedFd,
    signal_fd: OwnedFd,
}

impl KillHandle {
    /// Kills the program when this process receives a signal to end; returns without that once the
    /// program has ended.
    pub fn kill_on_interruption(&self) {
        let mut waits = [
            sys::PollEntry::read(self.signal_fd.as_raw_fd()),
            sys::PollEntry::read(self.pidfd.as_raw_fd()),
        ];
        while sys::poll(&mut waits, None).is_ok() {
            if waits[1].is_ready {
                return;
            }
            if waits[0].is_ready {
                sys::drain(self.signal_fd.as_raw_fd());
                return self.kill();
            }
        }
    }

    /// Kills the program immediately; does nothing if it has ended already.
    pub fn kill(&self) {
        let _ = sys::signal(self.pidfd.as_fd(), libc::SIGKILL);
    }
}

/// The state of input and output while a program runs.
struct IoState<'a> {
    input: &'a [u8],
    output_bytes: u64,
    end: Option<ProcessEnd>,
    /// The signal that asked this process to end.
    interrupted: Option<libc::c_int>,
    /// Whether all processes are dead, so that no more output can arrive.
    all_ended: bool,
}

impl IoState<'_> {
    fn read(
        &mut self,
        file: &mut Option<File>,
        stream: Stream,
        sink: &mut impl FnMut(Stream, &[u8]),
    ) {
        let mut buffer = [0; 16 << 10];
        match file.as_mut().map(|file| file.read(&mut buffer)) {
            Some(Ok(length @ 1..)) => {
                self.output_bytes += length as u64;
                sink(stream, &buffer[..length]);
            }
            Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock && !self.all_ended => {}
            _ => *file = None,
        }
    }

    /// Writes at most one page, which a ready pipe accepts without blocking.
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
            // The program has closed its input.
            _ => {
                self.input = &[];
                *file = None;
            }
        }
    }
}
