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
    child::{self, MESSAGE, Message},
    group::Group,
    guard::{self, Guarded},
    sys,
    tally::Tally,
};
use crate::{
    error::SandboxError,
    limits,
    outcome::{End, Enforcement, FileEvents, Outcome},
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
pub(super) struct Interruptions {
    before: libc::sigset_t,
    arrivals: OwnedFd,
}

impl Interruptions {
    pub(super) fn hold() -> Result<Self, SandboxError> {
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
    pub(super) guarded: Vec<Guarded>,
    pub(super) wall: Option<Duration>,
    pub(super) output: u64,
    pub(super) started: Instant,
    pub(super) status: Option<libc::c_int>,
    pub(super) over: bool,
    pub(super) enforcement: Enforcement,
    pub(super) group: Option<Group>,
    pub(super) tally: Option<Tally>,
    pub(super) interruptions: Interruptions,
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
    pub fn drive(mut self, input: &[u8], mut sink: impl FnMut(Stream, &[u8])) -> Outcome {
        let mut drive =
            Drive { input, printed: 0, end: None, interrupted: None, everyone_is_dead: false };
        // The program can also read its own output and fill its own input, so a descriptor that was
        // ready may block a moment later, and a blocked supervisor could not enforce the time
        // limit.
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
                } else if drive.interrupted.is_some() {
                    drive.end = Some(End::Stopped);
                }
                if drive.end.is_some() {
                    // Ctrl-C is passed to the program.
                    let is_key = drive.interrupted == Some(libc::SIGINT);
                    self.ask_to_end(if is_key { child::INTERRUPT } else { child::TERMINATE });
                    kill_at = Some(now + limits::GRACE);
                }
            }
            // Nobody reads further output, so the pipes are closed.
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

    /// Ends the program and all processes that it started.
    pub fn stop(self) -> Outcome {
        self.finish(Some(End::Stopped), 0)
    }

    /// Waits until the program has ended, or at most this long. The caller must have taken its
    /// outputs.
    pub fn wait_at_most(mut self, most: Duration) -> Outcome {
        let most = self.started.elapsed() + most;
        self.wall = Some(self.wall.map_or(most, |wall| wall.min(most)));
        self.drive(&[], |_, _| {})
    }

    /// Returns a handle that can end the program from another thread.
    pub fn killer(&self) -> io::Result<Killer> {
        let arrivals = self.interruptions.arrivals.try_clone()?;
        Ok(Killer { pidfd: self.pidfd.try_clone()?, arrivals })
    }

    /// Waits for the next event; returns `false` if no more events can come.
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
            drive.interrupted = sys::first_signal(self.interruptions.arrivals.as_raw_fd());
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

    /// Reads the remaining output. The other ends of the pipes are closed once all processes are
    /// dead.
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
        let exceeded = self.tally.as_ref().and_then(Tally::exceeded);
        let end = exceeded.or(end);
        let end = end.unwrap_or_else(|| match self.status {
            Some(status) if libc::WIFEXITED(status) => End::Exited(libc::WEXITSTATUS(status)),
            Some(status) => End::Signalled(libc::WTERMSIG(status)),
            None => End::Signalled(libc::SIGKILL),
        });
        let (hosts, caught) = self.proxy.take().map(Proxy::stop).unwrap_or_default();
        let watcher = self.watcher.take().map(JoinHandle::join);
        let files = watcher.and_then(Result::ok).unwrap_or_default();
        let enforcement = std::mem::take(&mut self.enforcement);
        let put_aside = guard::report(&self.guarded);
        let output_bytes = printed;
        Outcome { end, duration, output_bytes, hosts, caught, files, put_aside, enforcement }
    }

    /// Asks all processes in the sandbox to end.
    fn ask_to_end(&self, how: &[u8]) {
        let _ = sys::send(self.control.as_raw_fd(), how, None);
    }

    /// Returns the program's terminal, if it has one, to set its size.
    pub fn terminal(&self) -> io::Result<Option<File>> {
        self.terminal.as_ref().map(File::try_clone).transpose()
    }

    /// Kills the first process of the namespace, and thereby all others, and waits for its end.
    fn bury(&mut self) {
        if !self.over {
            if self.status.is_none() {
                let _ = sys::signal(self.pidfd.as_fd(), libc::SIGKILL);
            }
            let _ = sys::wait_for(self.pidfd.as_fd());
            // The first process usually did this already, unless it was killed.
            guard::restore(&self.guarded);
            self.over = true;
        }
    }

    pub(super) fn receive(&self) -> Option<(Message, Option<OwnedFd>)> {
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

/// Ends a program and all processes that it started, from another thread.
#[derive(Debug)]
pub struct Killer {
    pidfd: OwnedFd,
    arrivals: OwnedFd,
}

impl Killer {
    /// Kills the program when this process receives a signal to end; returns without that once the
    /// program has ended.
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

    /// Kills the program immediately; does nothing if it has ended already.
    pub fn kill(&self) {
        let _ = sys::signal(self.pidfd.as_fd(), libc::SIGKILL);
    }
}

/// The state of input and output while a program runs.
struct Drive<'a> {
    input: &'a [u8],
    printed: u64,
    end: Option<End>,
    /// The signal that asked this process to end.
    interrupted: Option<libc::c_int>,
    /// Whether all processes are dead, so that no more output can arrive.
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
