//! Numeric limits of a run and of its supervisor, each with its reason.

use std::time::Duration;

/// The default time limit of a tool (the same as in gibb.eri.sh).
pub const DEFAULT_WALL_TIME: Duration = Duration::from_secs(30);

/// The time between SIGTERM and SIGKILL (the same as in gibb.eri.sh).
pub const TERMINATION_GRACE: Duration = Duration::from_secs(5);

/// Memory of a run: enough for a compiler or a data frame, not enough to make a laptop swap.
pub const DEFAULT_MEMORY_BYTES: u64 = 4 << 30;

/// Processes of a run: enough for `npm` or `make -j8`; a fork bomb reaches the limit immediately.
pub const DEFAULT_PROCESSES: u64 = 256;

/// Open files of a process: the usual soft limit of a login session.
pub const DEFAULT_OPEN_FILES: u64 = 1024;

/// Size of the largest file that a tool has a reason to write.
pub const DEFAULT_FILE_BYTES: u64 = 1 << 30;

/// Size of a scratch folder, which is in memory.
pub const DEFAULT_SCRATCH_BYTES: u64 = 64 << 20;

/// Number of files in a scratch folder: their names need memory, too.
pub const MAX_SCRATCH_FILES: u64 = 16_384;

/// Output of a tool before it is stopped: far more than anyone reads.
pub const DEFAULT_OUTPUT_BYTES: u64 = 64 << 20;

/// Recorded events of a run; further ones are only counted.
pub const MAX_EVENTS: usize = 4096;

/// Code files that one program needs: a browser needs 200, `/usr/bin/true` needs two.
pub const MAX_CODE_FILES: usize = 512;

/// Symbolic links that lead to those files.
pub const MAX_LINKS: usize = 4096;

/// Symbolic links that one path may go through, as in the kernel.
pub const MAX_LINKS_PER_PATH: usize = 40;

/// Entries that are listed in the folders of an interpreter and its packages.
pub const MAX_FOLDER_ENTRIES: usize = 65_536;

/// Depth to which those folders are searched.
pub const MAX_FOLDER_DEPTH: usize = 12;

/// Loadable modules in those folders whose libraries are read.
pub const MAX_MODULES: usize = 4096;

/// Depth of scripts whose interpreters are scripts.
pub const MAX_SCRIPT_DEPTH: usize = 4;

/// Bytes of the first line of a script that the kernel reads.
pub const SHEBANG_BYTES: usize = 256;

/// Lists of files that a program needs in the cache of a process.
pub const MAX_CACHED_PROGRAMS: usize = 256;

/// Headers of programs and libraries in the cache of a process.
pub const MAX_CACHED_ELF_FILES: usize = 2048;

/// Simultaneous connections to the proxy: more than a browser opens, few enough to bound memory.
pub const MAX_CONNECTIONS: usize = 64;

/// Bytes of the first line and headers of a message; the largest servers use the same limit.
pub const MAX_HEAD_BYTES: usize = 64 << 10;

/// Number of headers of a message.
pub const MAX_HEADERS: usize = 128;

/// Bytes of the URL and headers of a request that counts as reading: longer ones could carry data
/// out.
pub const MAX_READ_REQUEST_BYTES: usize = 8 << 10;

/// Bytes of a body in which placeholders are replaced; the body has to fit in memory.
pub const MAX_MASKED_BODY_BYTES: u64 = 1 << 20;

/// Data rate of all connections of a run together: enough for large downloads, not enough to fill
/// a line of one gigabit.
pub const BYTES_PER_SECOND: u64 = 32 << 20;

/// Time whose data a run may transfer at once.
pub const BANDWIDTH_BURST: Duration = Duration::from_millis(250);

/// Time for a client to send its request head, including the TLS handshake.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Time for which a client may send no data of its body, or not read its response.
pub const CLIENT_IDLE_TIMEOUT: Duration = Duration::from_mins(1);

/// Time for which a host may send nothing; a language model can think for minutes.
pub const HOST_IDLE_TIMEOUT: Duration = Duration::from_mins(5);

/// Time for a host to accept a connection.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Time for which the end of a run waits for the threads of its proxy.
pub const PROXY_STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// Requests that a trap stores; further ones are only counted as events.
pub const MAX_TRAPPED_REQUESTS: usize = 256;

/// Bytes of the body of one request that a trap stores.
pub const MAX_TRAPPED_BODY_BYTES: usize = 256 << 10;

/// Bytes of all requests that a trap stores.
pub const MAX_TRAPPED_BYTES: usize = 8 << 20;

/// Characters of a path in an event.
pub const MAX_EVENT_PATH_CHARS: usize = 256;
