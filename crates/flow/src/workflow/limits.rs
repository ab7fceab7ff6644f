//! Numeric limits of workflows, each with its reason.

/// Nodes of a workflow. Nobody draws more by hand, and every node is a step of a run of at most
/// five minutes.
pub const MAX_NODES: usize = 500;

/// Edges of a workflow: four for each node.
pub const MAX_EDGES: usize = 2000;

/// Characters of the id of a node: it is part of every event of the node.
pub const MAX_ID_CHARS: usize = 255;

/// Errors of a graph that are listed; further ones are found once these are fixed.
pub const MAX_PROBLEMS: usize = 20;

/// Characters of a condition.
pub const MAX_EXPRESSION_CHARS: usize = 10_000;

/// Nesting of a condition; the parser is recursive.
pub const MAX_EXPRESSION_DEPTH: usize = 64;

/// Bytes of a text after values are inserted: a short text can refer to a long output many times.
pub const MAX_TEXT_BYTES: usize = 4 << 20;

/// Bytes of all outputs together: they are written to the database after each node, and all runs
/// share one database. Outputs of nodes that only pass their input on do not count.
pub const MAX_OUTPUT_BYTES: usize = 2 << 20;

/// Bytes of all outputs together with those of nodes that only pass their input on: enough for an
/// output of one mebibyte that passes several such nodes.
pub const MAX_STORED_OUTPUT_BYTES: usize = 4 * MAX_OUTPUT_BYTES;

/// Earlier messages that the next model node gets. Older messages are dropped.
pub const MAX_HISTORY_MESSAGES: usize = 40;

/// Bytes of these messages; about what fits into a small model.
pub const MAX_HISTORY_BYTES: usize = 64 << 10;

/// Bytes of an HTTP response; the value of the API contract.
pub const MAX_RESPONSE_BYTES: usize = 1 << 20;

/// Bytes of a URL; servers refuse longer ones.
pub const MAX_URL_BYTES: usize = 8 << 10;

/// Headers of a request.
pub const MAX_HEADERS: usize = 64;

/// Bytes of the output of code that are returned; the value of the API contract.
pub const MAX_SHOWN_OUTPUT_BYTES: usize = 10 << 10;

/// Bytes that code may print before it is stopped.
pub const MAX_PRINTED_BYTES: u64 = 1 << 20;

/// Bytes of one environment variable: Linux allows 128 KiB including the name.
pub const MAX_VARIABLE_BYTES: usize = 120 << 10;

/// Variables that a node may set.
pub const MAX_VARIABLES: usize = 64;

/// Processes and threads of code. Without a control group, each process may use the whole memory
/// limit.
pub const MAX_CODE_PROCESSES: u64 = 8;

/// Files that code may have open.
pub const MAX_CODE_OPEN_FILES: u64 = 64;

/// Bytes that code may store in its own folder while it runs.
pub const MAX_CODE_SCRATCH_BYTES: u64 = 16 << 20;

/// Programs that run for workflows at the same time: each takes up to half a gibibyte.
pub const MAX_CONCURRENT_CODE: usize = 4;

/// Characters of a traceback that are shown, the last ones.
pub(crate) const MAX_TRACEBACK_CHARS: usize = 4000;

/// Bytes of a header of a response that later nodes can use.
pub(crate) const MAX_HEADER_BYTES: usize = 4096;
