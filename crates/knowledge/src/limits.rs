//! Limits of knowledge bases, with the reason for each.

use std::time::Duration;

/// Maximum bytes of an uploaded document; the value of Agent Flow Lite.
pub const MAX_DOCUMENT_BYTES: usize = 5 << 20;

/// Maximum bytes of the name of a document: the limit of most file systems.
pub const MAX_DOCUMENT_NAME_BYTES: usize = 255;

/// Maximum bytes of the text of a document; a book has one or two mebibytes.
pub const MAX_DOCUMENT_TEXT_BYTES: usize = 20 << 20;

/// Default tokens of a chunk; the value of Agent Flow Lite.
pub const CHUNK_TOKENS: usize = 512;

/// Default tokens that a chunk repeats from the previous one; the value of Agent Flow Lite.
pub const CHUNK_OVERLAP: usize = 50;

/// Maximum files in a Word document: one with a thousand pictures has about as many.
pub const MAX_DOCX_FILES: usize = 10_000;

/// Maximum unpacked bytes of the text of a Word document: the XML is ten times as long as the text.
pub const MAX_DOCX_UNPACKED_BYTES: u64 = 64 << 20;

/// Maximum compression ratio. Real documents reach 50, a zip bomb 1000.
pub const MAX_DOCX_RATIO: u64 = 200;

/// Maximum memory of the process that reads a PDF: a hundred times the maximum size of a document.
pub const MAX_PDF_MEMORY_BYTES: u64 = 512 << 20;

/// Timeout of the process that reads a PDF, for each of the two methods.
pub const PDF_TIMEOUT: Duration = Duration::from_mins(1);

/// Maximum threads of the process that reads a PDF: one, and those of its runtime.
pub const MAX_PDF_THREADS: u64 = 64;

/// Maximum documents of one user that may wait; a worker indexes as many in some minutes.
pub const MAX_WAITING_DOCUMENTS: u64 = 1000;

/// How long a worker owns a task without renewing its lease: a document waits for so long if its
/// worker dies.
pub const TASK_LEASE: Duration = Duration::from_secs(2);

/// Interval of renewals: four before the lease expires.
pub const TASK_HEARTBEAT: Duration = Duration::from_millis(500);

/// Maximum attempts to index a document whose worker crashed.
pub const MAX_TASK_ATTEMPTS: u32 = 3;

/// The first and the longest pause before a document is tried again for which the database or the
/// storage failed. Each pause is twice as long as the one before, because all chunks are embedded
/// again.
pub const RETRY_PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(5));

/// How often a document is tried to which the storage denies access.
pub const MAX_DENIED_TRIES: u32 = 5;

/// How long a finished task is stored; the value of Agent Flow Lite.
pub const TASK_RETENTION: Duration = Duration::from_mins(30);

/// Minimum and maximum interval at which a worker looks for tasks of other processes.
pub const TASK_POLL_INTERVALS: (Duration, Duration) =
    (Duration::from_secs(1), Duration::from_secs(4));

/// Chunks per embedding request: providers accept as many, and progress stays visible.
pub const EMBEDDING_BATCH: usize = 32;

/// Maximum attempts to embed the same chunks, because an embedder may be busy for a moment.
pub const MAX_EMBED_ATTEMPTS: u32 = 3;

/// The pause before the second attempt; it is four times as long before the third.
pub const EMBED_PAUSE: Duration = Duration::from_secs(1);

/// Maximum characters of a search query.
pub const MAX_QUERY_CHARS: usize = 500;

/// Default number of search results.
pub const DEFAULT_PASSAGES: u32 = 5;

/// The assumed context size of a model in tokens. Providers do not report it, but all current
/// models have at least this.
pub const CONTEXT_TOKENS: usize = 8192;

/// Candidates per requested passage from each search method: a passage that is twelfth in both
/// lists may be third overall.
pub const CANDIDATES_PER_PASSAGE: u32 = 4;
