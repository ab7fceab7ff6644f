//! Limits of request sizes, counts and times.

/// Bytes of a JSON body. A skill has at most 50 KiB; a workflow may be larger.
pub(crate) const MAX_JSON_BYTES: usize = 1024 * 1024;

/// Bytes of an upload. Files above 5 MiB are refused with a sentence of their own; what is far above
/// is not read to its end.
pub(crate) const MAX_UPLOAD_BYTES: usize = 8 * 1024 * 1024;

/// Seconds in which the head of a request must have come.
pub(crate) const HEADER_TIMEOUT_SECONDS: u64 = 15;

/// Bytes of the head of a request, and of what is buffered for one connection.
pub(crate) const MAX_HEADER_BYTES: usize = 32 * 1024;

/// Seconds in which a body must have come; an upload of 5 MiB needs a few on a slow line.
pub(crate) const BODY_TIMEOUT_SECONDS: u64 = 60;

/// Seconds for which a client may take nothing of what it is sent.
pub(crate) const WRITE_TIMEOUT_SECONDS: u64 = 60;

/// Connections at once. Each costs a file and some tens of kilobytes.
pub(crate) const MAX_CONNECTIONS: usize = 8192;

/// Differences between a body and its shape that are told.
pub(crate) const MAX_SHAPE_ERRORS: usize = 20;

/// Bytes of a wrong value that are sent back.
pub(crate) const MAX_ECHO_BYTES: usize = 1024;

/// Characters of one message in a conversation.
pub(crate) const MAX_MESSAGE_CHARS: usize = 100_000;

/// Messages of a conversation that are shown: the newest.
pub(crate) const MAX_SHOWN_MESSAGES: u32 = 1000;

/// Bytes of the graph of a workflow.
pub(crate) const MAX_GRAPH_BYTES: usize = 256 * 1024;

/// Values in the graph of a workflow: a value takes a hundred bytes of memory, and two of text.
pub(crate) const MAX_GRAPH_VALUES: usize = 20_000;

/// Workflows of one person. A list has all of them, with their graphs.
pub(crate) const MAX_WORKFLOWS: u64 = 200;

/// Tokens whose signatures are remembered as good. 200 bytes each.
pub(crate) const MAX_CACHED_TOKENS: usize = 10_000;

/// Skills whose answers are remembered. 50 KiB each at most.
pub(crate) const MAX_CACHED_SKILLS: usize = 1024;

/// Tokens for programs that one person may have.
pub(crate) const MAX_TOKENS: usize = 100;

/// Bytes of the form of the first start.
pub(crate) const MAX_FORM_BYTES: usize = 16 * 1024;
