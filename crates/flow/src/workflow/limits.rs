//! Numeric limits of workflows, with the reason for each.

/// Maximum nodes of a workflow. Users do not draw more by hand, and a run executes all of them
/// within five minutes.
pub const MAX_NODES: usize = 500;

/// Maximum edges of a workflow: four for each node.
pub const MAX_EDGES: usize = 2000;

/// Maximum characters of a node id, which is part of every event of the node.
pub const MAX_ID_CHARS: usize = 255;

/// Maximum errors of a graph that are listed; others are reported once these are fixed.
pub const MAX_PROBLEMS: usize = 20;

/// Maximum characters of a condition.
pub const MAX_EXPRESSION_CHARS: usize = 10_000;

/// Maximum nesting of a condition, because the parser is recursive.
pub const MAX_EXPRESSION_DEPTH: usize = 64;

/// Maximum bytes of a text after values are inserted: a short text can refer to a long output many
/// times.
pub const MAX_TEXT_BYTES: usize = 4 << 20;

/// Maximum bytes of all outputs together: they are written to the database after each node, and all
/// runs share one database. Outputs of nodes that only pass their input on do not count.
pub const MAX_OUTPUT_BYTES: usize = 2 << 20;

/// Maximum bytes of all outputs, including those of nodes that only pass their input on: enough for
/// an output of one mebibyte that passes several such nodes.
pub const MAX_STORED_OUTPUT_BYTES: usize = 4 * MAX_OUTPUT_BYTES;

/// Maximum earlier messages in the request of an LLM node. Older messages are dropped.
pub const MAX_HISTORY_MESSAGES: usize = 40;

/// Maximum bytes of these messages, so that they fit into the context of a small model.
pub const MAX_HISTORY_BYTES: usize = 64 << 10;

/// Maximum bytes of an HTTP response; the value of the API contract.
pub const MAX_RESPONSE_BYTES: usize = 1 << 20;

/// Maximum bytes of a URL; servers reject longer ones.
pub const MAX_URL_BYTES: usize = 8 << 10;

/// Maximum headers of a request.
pub const MAX_HEADERS: usize = 64;

/// Maximum bytes of the output of code that are returned; the value of the API contract.
pub const MAX_SHOWN_OUTPUT_BYTES: usize = 10 << 10;

/// Maximum bytes that code may print before it is stopped.
pub const MAX_PRINTED_BYTES: u64 = 1 << 20;

/// Maximum bytes of one environment variable: Linux allows 128 KiB including the name.
pub const MAX_VARIABLE_BYTES: usize = 120 << 10;

/// Maximum variables that a node may set.
pub const MAX_VARIABLES: usize = 64;

/// Maximum processes and threads of code. Without a control group, each process may use the whole
/// memory limit.
pub const MAX_CODE_PROCESSES: u64 = 8;

/// Maximum open files of code.
pub const MAX_CODE_OPEN_FILES: u64 = 64;

/// Maximum bytes that code may store in its own folder while it runs.
pub const MAX_CODE_SCRATCH_BYTES: u64 = 16 << 20;

/// Maximum code nodes that run at the same time: each uses up to half a gibibyte.
pub const MAX_CONCURRENT_CODE: usize = 4;

/// Maximum characters of a traceback that are shown; the last ones are kept.
pub(crate) const MAX_TRACEBACK_CHARS: usize = 4000;

/// Maximum bytes of a response header that later nodes can use.
pub(crate) const MAX_HEADER_BYTES: usize = 4096;
