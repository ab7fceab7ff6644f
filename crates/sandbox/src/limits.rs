//! Bounds of a run and of what watches it, each with its reason.

use std::time::Duration;

/// The default time of a tool (gibb.eri.sh's own).
pub const WALL: Duration = Duration::from_secs(30);

/// Between SIGTERM and SIGKILL, as gibb.eri.sh has it.
pub const GRACE: Duration = Duration::from_secs(5);

/// Enough for a compiler or a data frame, not enough to make a laptop swap.
pub const MEMORY: u64 = 4 << 30;

/// Enough for `npm` or `make -j8`; a fork bomb ends here at once.
pub const PROCESSES: u64 = 256;

/// The usual soft limit of a login.
pub const OPEN_FILES: u64 = 1024;

/// The largest file that a tool has a reason to write.
pub const FILE_SIZE: u64 = 1 << 30;

/// Each private folder is memory.
pub const SCRATCH: u64 = 64 << 20;

/// Files of each private folder: their names are memory, too.
pub const SCRATCH_FILES: u64 = 16_384;

/// What a tool may print before it is stopped: far more than anyone reads.
pub const OUTPUT: u64 = 64 << 20;

/// Events of a run that are kept; the rest is counted.
pub const EVENTS: usize = 4096;

/// Code files that one program brings along: a browser needs 200, `/usr/bin/true` needs two.
pub const CODE_FILES: usize = 512;

/// Symbolic links on the ways to them.
pub const LINKS: usize = 4096;

/// What a path may lead through, as the kernel has it.
pub const LINKS_OF_A_PATH: usize = 40;

/// Entries that are looked at in the folders of an interpreter and its packages.
pub const FOLDER_ENTRIES: usize = 65_536;

/// How deep those folders are walked.
pub const FOLDER_DEPTH: usize = 12;

/// Loadable modules in those folders whose needs are read.
pub const MODULES: usize = 4096;

/// Scripts that interpret scripts.
pub const SCRIPT_DEPTH: usize = 4;

/// The first line of a script, as the kernel reads it.
pub const SCRIPT_LINE: usize = 256;

/// Closures that a process remembers.
pub const CLOSURES: usize = 256;

/// Headers of programs and libraries that a process remembers.
pub const IMAGES: usize = 2048;

/// Connections to the proxy at once: more than a browser opens, few enough to bound memory.
pub const CONNECTIONS: usize = 64;

/// Bytes of the first line and headers of a message; the largest servers stop at the same size.
pub const HEAD: usize = 64 << 10;

/// Headers of a message.
pub const HEADERS: usize = 128;

/// Bytes of the URL and the headers of a request that only reads: more of them carry data away.
pub const READ_HEAD: usize = 8 << 10;

/// Bytes of a body in which placeholders are looked for; it has to be held in memory.
pub const MASKED_BODY: u64 = 1 << 20;

/// How long a client may take to say what it wants, handshake included.
pub const HEAD_TIME: Duration = Duration::from_secs(30);

/// How long a client may say nothing while its body is awaited, or not read its answer.
pub const CLIENT_SILENCE: Duration = Duration::from_mins(1);

/// How long a host may say nothing; a language model thinks for minutes.
pub const HOST_SILENCE: Duration = Duration::from_mins(5);

/// How long a host may take to accept a connection.
pub const DIAL: Duration = Duration::from_secs(10);

/// How long the end of a run waits for the threads of its proxy.
pub const PROXY_STOP: Duration = Duration::from_secs(1);

/// Requests that a trap keeps; the rest is only counted as events.
pub const CAUGHT: usize = 256;

/// Bytes of the body of a request that a trap keeps.
pub const CAUGHT_BODY: usize = 256 << 10;

/// Bytes of all requests that a trap keeps.
pub const CAUGHT_BYTES: usize = 8 << 20;

/// Characters of a path in an event.
pub const EVENT_PATH: usize = 256;
