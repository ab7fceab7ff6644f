//! The limits of knowledge bases, each with its reason.

use std::time::Duration;

/// Bytes of an uploaded document, as Agent Flow Lite has it.
pub const MAX_DOCUMENT_BYTES: usize = 5 << 20;

/// Bytes of the name of a document: what most file systems take.
pub const MAX_DOCUMENT_NAME_BYTES: usize = 255;

/// Bytes of text that a document may come to; a book has one or two mebibytes.
pub const MAX_DOCUMENT_TEXT_BYTES: usize = 20 << 20;

/// Tokens of a chunk, as Agent Flow Lite has it.
pub const CHUNK_TOKENS: usize = 512;

/// Tokens that a chunk repeats from the one before, as Agent Flow Lite has it.
pub const CHUNK_OVERLAP: usize = 50;

/// Files in a Word document: one with a thousand pictures has about as many.
pub const MAX_DOCX_FILES: usize = 10_000;

/// Bytes of the text of a Word document, unpacked: its marks take ten times the room of its words.
pub const MAX_DOCX_UNPACKED_BYTES: u64 = 64 << 20;

/// Maximum compression ratio. Real documents reach 50, a zip bomb 1000.
pub const MAX_DOCX_RATIO: u64 = 200;

/// Bytes of memory of the program that reads a PDF: a hundred times the largest that is taken.
pub const MAX_PDF_MEMORY_BYTES: u64 = 512 << 20;

/// Time of the program that reads a PDF, for each of the two ways to read it.
pub const PDF_TIMEOUT: Duration = Duration::from_mins(1);

/// Threads of the program that reads a PDF: one, and those of its runtime.
pub const MAX_PDF_THREADS: u64 = 64;

/// Documents of one person that may wait to be read; a worker reads as many in some minutes.
pub const MAX_WAITING_DOCUMENTS: u64 = 1000;

/// Time for which a worker owns a task without a heartbeat.
pub const TASK_LEASE: Duration = Duration::from_mins(1);

/// Interval of heartbeats: four before another worker takes over.
pub const TASK_HEARTBEAT: Duration = Duration::from_secs(15);

/// Attempts for a document whose worker dies.
pub const MAX_TASK_ATTEMPTS: u32 = 3;

/// Time for which an ended task is stored, as in Agent Flow Lite.
pub const TASK_RETENTION: Duration = Duration::from_mins(30);

/// Minimum and maximum interval at which a worker looks for tasks of other processes.
pub const TASK_POLL_INTERVALS: (Duration, Duration) =
    (Duration::from_secs(1), Duration::from_secs(15));

/// Chunks that are embedded at once: what providers take, and little enough to see progress.
pub const EMBEDDING_BATCH: usize = 32;

/// Attempts to embed the same chunks: an embedder may be busy for a moment.
pub const MAX_EMBED_ATTEMPTS: u32 = 3;

/// Before an embedder is asked for the second time; then four times as long.
pub const EMBED_PAUSE: Duration = Duration::from_secs(1);

/// Characters that a knowledge base is searched for.
pub const MAX_QUERY_CHARS: usize = 500;

/// Passages that are found.
pub const DEFAULT_PASSAGES: u32 = 5;

/// Tokens that a model is taken to hold. Providers do not tell; all of today hold as much.
pub const CONTEXT_TOKENS: usize = 8192;

/// Passages of each list that are looked at for each that is wanted: what is twelfth in both may
/// be third of all.
pub const CANDIDATES_PER_PASSAGE: u32 = 4;
