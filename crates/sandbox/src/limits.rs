//! Numeric limits of a run and of its supervisor, each with its reason.

use std::time::Duration;

/// The default time limit of a tool (the same as in gibb.eri.sh).
pub const WALL: Duration = Duration::from_secs(30);

/// The time between SIGTERM and SIGKILL (the same as in gibb.eri.sh).
pub const GRACE: Duration = Duration::from_secs(5);

/// Memory of a run: enough for a compiler or a data frame, not enough to make a laptop swap.
pub const MEMORY: u64 = 4 << 30;

/// Processes of a run: enough for `npm` or `make -j8`; a fork bomb reaches the limit immediately.
pub const PROCESSES: u64 = 256;

/// Open files of a process: the usual soft limit of a login session.
pub const OPEN_FILES: u64 = 1024;

/// Size of the largest file that a tool has a reason to write.
pub const FILE_SIZE: u64 = 1 << 30;

/// Size of a private folder, which is in memory.
pub const SCRATCH: u64 = 64 << 20;

/// Number of files in a private folder: their names need memory, too.
pub const SCRATCH_FILES: u64 = 16_384;

/// Output of a tool before it is stopped: far more than anyone reads.
pub const OUTPUT: u64 = 64 << 20;

/// Recorded events of a run; further ones are only counted.
pub const EVENTS: usize = 4096;

/// Code files that one program needs: a browser needs 200, `/usr/bin/true` needs two.
pub const CODE_FILES: usize = 512;

/// Symbolic links that lead to those files.
pub const LINKS: usize = 4096;

/// Symbolic links that one path may go through, as in the kernel.
pub const LINKS_OF_A_PATH: usize = 40;

/// Entries that are listed in the folders of an interpreter and its packages.
pub const FOLDER_ENTRIES: usize = 65_536;

/// Depth to which those folders are searched.
pub const FOLDER_DEPTH: usize = 12;

/// Loadable modules in those folders whose libraries are read.
pub const MODULES: usize = 4096;

/// Depth of scripts whose interpreters are scripts.
pub const SCRIPT_DEPTH: usize = 4;

/// Bytes of the first line of a script that the kernel reads.
pub const SCRIPT_LINE: usize = 256;

/// Closures (lists of files that a program needs) in the cache of a process.
pub const CLOSURES: usize = 256;

/// Headers of programs and libraries in the cache of a process.
pub const IMAGES: usize = 2048;

/// Simultaneous connections to the proxy: more than a browser opens, few enough to bound memory.
pub const CONNECTIONS: usize = 64;

/// Bytes of the first line and headers of a message; the largest servers use the same limit.
pub const HEAD: usize = 64 << 10;

/// Number of headers of a message.
pub const HEADERS: usize = 128;

/// Bytes of the URL and headers of a request that counts as reading: longer ones could carry data
/// out.
pub const READ_HEAD: usize = 8 << 10;

/// Bytes of a body in which placeholders are replaced; the body has to fit in memory.
pub const MASKED_BODY: u64 = 1 << 20;

/// Time for a client to send its request head, including the TLS handshake.
pub const HEAD_TIME: Duration = Duration::from_secs(30);

/// Time for which a client may send no data of its body, or not read its response.
pub const CLIENT_SILENCE: Duration = Duration::from_mins(1);

/// Time for which a host may send nothing; a language model can think for minutes.
pub const HOST_SILENCE: Duration = Duration::from_mins(5);

/// Time for a host to accept a connection.
pub const DIAL: Duration = Duration::from_secs(10);

/// Time for which the end of a run waits for the threads of its proxy.
pub const PROXY_STOP: Duration = Duration::from_secs(1);

/// Requests that a trap stores; further ones are only counted as events.
pub const CAUGHT: usize = 256;

/// Bytes of the body of one request that a trap stores.
pub const CAUGHT_BODY: usize = 256 << 10;

/// Bytes of all requests that a trap stores.
pub const CAUGHT_BYTES: usize = 8 << 20;

/// Characters of a path in an event.
pub const EVENT_PATH: usize = 256;
