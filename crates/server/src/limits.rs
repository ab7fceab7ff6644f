//! Limits of request sizes, counts and times.

/// Maximum bytes of a JSON body. A skill has at most 50 KiB; a workflow may be larger.
pub(crate) const MAX_JSON_BYTES: usize = 1024 * 1024;

/// Maximum bytes of an upload. Files above 5 MiB are rejected with their own message; larger bodies
/// than this are not read to the end.
pub(crate) const MAX_UPLOAD_BYTES: usize = 8 * 1024 * 1024;

/// Seconds within which the header of a request must arrive.
pub(crate) const HEADER_TIMEOUT_SECONDS: u64 = 15;

/// Maximum bytes of a request header, and of the buffer of one connection.
pub(crate) const MAX_HEADER_BYTES: usize = 32 * 1024;

/// Seconds within which a body must arrive; an upload of 5 MiB takes several on a slow connection.
pub(crate) const BODY_TIMEOUT_SECONDS: u64 = 60;

/// Maximum bytes of a body above the limit that are read and dropped, so that the client reads the
/// response.
pub(crate) const MAX_DRAINED_BYTES: usize = 32 * 1024 * 1024;

/// Seconds within which these bytes must arrive.
pub(crate) const DRAIN_SECONDS: u64 = 5;

/// Seconds after which a connection is closed if the client reads nothing.
pub(crate) const WRITE_TIMEOUT_SECONDS: u64 = 60;

/// Maximum number of connections. Each costs a file descriptor and some tens of kilobytes.
pub(crate) const MAX_CONNECTIONS: usize = 8192;

/// Maximum number of validation errors in a response.
pub(crate) const MAX_SHAPE_ERRORS: usize = 20;

/// Maximum bytes of an invalid value that are repeated in an error.
pub(crate) const MAX_ECHO_BYTES: usize = 1024;

/// Maximum characters of one chat message.
pub(crate) const MAX_MESSAGE_CHARS: usize = 100_000;

/// Maximum messages of a conversation that are returned: the newest ones.
pub(crate) const MAX_SHOWN_MESSAGES: u32 = 1000;

/// Maximum bytes of a workflow graph.
pub(crate) const MAX_GRAPH_BYTES: usize = 256 * 1024;

/// Maximum JSON values in a workflow graph: a value takes a hundred bytes of memory, but only two
/// bytes of text.
pub(crate) const MAX_GRAPH_VALUES: usize = 20_000;

/// Maximum workflows of one user. The list returns all of them, with their graphs.
pub(crate) const MAX_WORKFLOWS: u64 = 200;

/// Maximum verified tokens in the cache. 200 bytes each.
pub(crate) const MAX_CACHED_TOKENS: usize = 10_000;

/// Maximum skills in the response cache. At most 50 KiB each.
pub(crate) const MAX_CACHED_SKILLS: usize = 1024;

/// Maximum API tokens of one user.
pub(crate) const MAX_API_TOKENS: usize = 100;

/// Maximum runs in the history of one user. Older ones are deleted.
pub(crate) const MAX_RUNS_OF_USER: i64 = 10_000;
