//! Bounds of workflows, each with its reason.

/// Nobody draws more by hand, and every one of them is a step of a run of five minutes.
pub const NODES: usize = 500;

/// Four for each node.
pub const EDGES: usize = 2000;

/// Characters of the name of a node: it stands in every event of the node.
pub const ID_CHARS: usize = 255;

/// What is wrong with a graph is listed up to here; the rest is found once that is mended.
pub const PROBLEMS: usize = 20;

/// Characters of a condition.
pub const EXPRESSION_CHARS: usize = 10_000;

/// How deep a condition may be nested; its reader calls itself.
pub const EXPRESSION_DEPTH: usize = 64;

/// Bytes of a text with its values put in: a short text can name a long output many times.
pub const TEXT_BYTES: usize = 4 << 20;

/// Bytes of all outputs together: they are written after each node, and all write to one database.
pub const OUTPUT_BYTES: usize = 2 << 20;

/// What was said to models and is told to the next one. Older messages are dropped.
pub const HISTORY_MESSAGES: usize = 40;

/// Bytes of these messages; about what fits into a small model.
pub const HISTORY_BYTES: usize = 64 << 10;

/// Bytes of an answer of a server; the contract's own.
pub const ANSWER_BYTES: usize = 1 << 20;

/// Bytes of an address; servers refuse longer ones.
pub const URL_BYTES: usize = 8 << 10;

/// Headers of a request.
pub const HEADERS: usize = 64;

/// Bytes that code prints and that count; the contract's own.
pub const PRINTED_BYTES: usize = 10 << 10;

/// Bytes that code may print before it is stopped.
pub const PRINTED_AT_MOST: u64 = 1 << 20;

/// Bytes of one variable: Linux takes 128 KiB with the name.
pub const VARIABLE_BYTES: usize = 120 << 10;

/// Variables that a node may set.
pub const VARIABLES: usize = 64;

/// Processes and threads of code. Without a control group each process has the whole memory limit.
pub const CODE_PROCESSES: u64 = 8;

/// Files that code may have open.
pub const CODE_OPEN_FILES: u64 = 64;

/// Bytes that code may keep in its own folder while it runs.
pub const CODE_SCRATCH: u64 = 16 << 20;

/// Programs that run for workflows at once: each takes up to half a gibibyte.
pub const CODE_AT_ONCE: usize = 4;
