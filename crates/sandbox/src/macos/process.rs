//! Supervises a running program ([`Process`]): its time limit, its output, and the end of all
//! processes in its group.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::{
        fd::OwnedFd,
        unix::process::{CommandExt as _, ExitStatusExt as _},
    },
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    },
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{
    limits,
    outcome::{Enforcement, FileEvents, Outcome, ProcessEnd},
    policy::Limits,
    proxy::Proxy,
};

/// How often the supervisor checks whether the program has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long output is read after all processes were killed.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Kills the process group `$1` as soon as its input ends.
const WATCH: &str = r#"read -r _; kill -s KILL -- "-$1""#;

/// Number of pieces of output in the queue for the caller.
const WAITING_PIECES: usize = 16;

/// One of a program's two outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// A process that kills the program's process group when this process ends, however it ends.
#[derive(Debug)]
pub(super) struct Watchdog {
    group: u32,
    process: Mutex<Option<(Child, ChildStdin)>>,
}

impl Watchdog {
    pub(super) fn start(group: u32) -> io::Result<Arc<Self>> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", WATCH, "sh", &group.to_string()]).env_clear().process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = command.spawn()?;
        let stdin = process.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Arc::new(Self { group, process: Mutex::new(Some((process, stdin))) }))
    }

    /// Kills the group and waits until that is done.
    fn kill_group(&self) {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((mut process, stdin)) = process {
            drop(stdin);
            let _ = process.wait();
        }
    }

    /// Asks the processes of the group to end.
    fn ask_to_end(&self) {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", r#"kill -s TERM -- "-$1""#, "sh", &self.group.to_string()]).env_clear();
        let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// A running program. Dropping it ends all processes of its group.
#[derive(Debug)]
pub struct Process {
    child: Child,
    stdin: Option<File>,
    stdout: Option<File>,
    stderr: Option<File>,
    watchdog: Arc<Watchdog>,
    proxy: Option<Proxy>,
    /// The folders of the run; deleted when this is dropped.
    folders: Option<TempDir>,
    wall_time: Option<Duration>,
    output: u64,
    started: Instant,
    enforcement: Enforcement,
}

impl Process {
    pub(super) fn new(
        mut child: Child,
        watchdog: Arc<Watchdog>,
        proxy: Option<Proxy>,
        folders: TempDir,
        limits: &Limits,
        started: Instant,
        enforcement: Enforcement,
    ) -> Self {
        let file = |end: OwnedFd| File::from(end);
        Self {
            stdin: child.stdin.take().map(|end| file(end.into())),
            stdout: child.stdout.take().map(|end| file(end.into())),
            stderr: child.stderr.take().map(|end| file(end.into())),
            child,
            watchdog,
            proxy,
            folders: Some(folders),
            wall_time: limits.wall,
            output: limits.output,
            started,
            enforcement,
        }
    }

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
        write_in_background(self.stdin.take(), input);
        let output = self.read_in_background();
        let deadline = self.wall_time.map(|wall_time| self.started + wall_time);
        let (mut output_bytes, mut end, mut kill_at) = (0, None, None);
        let status = loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                break Some(status);
            }
            let now = Instant::now();
            if kill_at.is_some_and(|at| now >= at) {
                break None;
            }
            if end.is_none() {
                if deadline.is_some_and(|at| now >= at) {
                    end = Some(ProcessEnd::TimedOut);
                } else if output_bytes > self.output {
                    end = Some(ProcessEnd::TooMuchOutput);
                }
                if end.is_some() {
                    self.watchdog.ask_to_end();
                    kill_at = Some(now + limits::TERMINATION_GRACE);
                }
            }
            match output.recv_timeout(POLL_INTERVAL) {
                Ok((stream, bytes)) => {
                    output_bytes += bytes.len() as u64;
                    // Output beyond the limit is not passed on.
                    if output_bytes <= self.output {
                        sink(stream, &bytes);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => thread::sleep(POLL_INTERVAL),
            }
        };
        self.watchdog.kill_group();
        let drained = Instant::now() + DRAIN_TIMEOUT;
        while let Ok((stream, bytes)) = output.recv_timeout(drained - Instant::now()) {
            output_bytes += bytes.len() as u64;
            if output_bytes <= self.output {
                sink(stream, &bytes);
            }
        }
        self.finish(status, end, output_bytes)
    }

    /// Ends the program and all processes of its group.
    pub fn stop(self) -> Outcome {
        self.finish(None, Some(ProcessEnd::Stopped), 0)
    }

    /// Waits until the program has ended, or at most this long. The caller must have taken its
    /// outputs.
    pub fn wait_timeout(mut self, timeout: Duration) -> Outcome {
        let timeout = self.started.elapsed() + timeout;
        self.wall_time = Some(self.wall_time.map_or(timeout, |wall_time| wall_time.min(timeout)));
        self.communicate(&[], |_, _| {})
    }

    /// Returns `None`: programs run on pipes here.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as on Linux")]
    pub fn terminal(&self) -> io::Result<Option<File>> {
        Ok(None)
    }

    /// Returns a handle that can end the program from another thread.
    #[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
    pub fn kill_handle(&self) -> io::Result<KillHandle> {
        Ok(KillHandle { watchdog: Arc::clone(&self.watchdog) })
    }

    fn read_in_background(&mut self) -> Receiver<(Stream, Vec<u8>)> {
        let (sender, receiver) = mpsc::sync_channel(WAITING_PIECES);
        for (stream, file) in
            [(Stream::Output, self.stdout.take()), (Stream::Error, self.stderr.take())]
        {
            if let Some(file) = file {
                let sender = sender.clone();
                thread::spawn(move || pass_on(file, stream, &sender));
            }
        }
        receiver
    }

    fn finish(
        mut self,
        status: Option<ExitStatus>,
        end: Option<ProcessEnd>,
        output_bytes: u64,
    ) -> Outcome {
        self.watchdog.kill_group();
        let status = status.or_else(|| self.child.wait().ok());
        let duration = self.started.elapsed();
        let end = end.unwrap_or_else(|| match status {
            Some(status) => status.code().map_or_else(
                || ProcessEnd::Signalled(status.signal().unwrap_or(libc::SIGKILL)),
                ProcessEnd::Exited,
            ),
            None => ProcessEnd::Signalled(libc::SIGKILL),
        });
        let (hosts, trapped_requests) = self.proxy.take().map(Proxy::stop).unwrap_or_default();
        Outcome {
            end,
            duration,
            output_bytes,
            hosts,
            trapped_requests,
            files: FileEvents::default(),
            moved_files: Vec::new(),
            enforcement: std::mem::take(&mut self.enforcement),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.watchdog.kill_group();
        let _ = self.child.wait();
        drop(self.proxy.take());
        drop(self.folders.take());
    }
}

/// Writes the input from a thread, because the program may read it late or never.
fn write_in_background(stdin: Option<File>, input: &[u8]) {
    let Some(mut stdin) = stdin else { return };
    if !input.is_empty() {
        let input = input.to_vec();
        thread::spawn(move || stdin.write_all(&input));
    }
}

fn pass_on(mut file: File, stream: Stream, sender: &SyncSender<(Stream, Vec<u8>)>) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(length @ 1..) = file.read(&mut buffer) {
        if sender.send((stream, buffer[..length].to_vec())).is_err() {
            return;
        }
    }
}

/// Ends a program and all processes of its group, from another thread.
#[derive(Debug)]
pub struct KillHandle {
    watchdog: Arc<Watchdog>,
}

impl KillHandle {
    /// Returns immediately: the watchdog kills the program when a signal ends this process.
    #[expect(clippy::unused_self, reason = "as on Linux")]
    pub fn kill_on_interruption(&self) {}

    /// Kills the program immediately; does nothing if it has ended already.
    pub fn kill(&self) {
        self.watchdog.kill_group();
    }
}
