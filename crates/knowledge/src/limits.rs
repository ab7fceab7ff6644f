//! The limits of knowledge bases, each with its reason.

use std::time::Duration;

/// Bytes of an uploaded document, as Agent Flow Lite has it.
pub const DOCUMENT_BYTES: usize = 5 << 20;

/// Bytes of the name of a document: what most file systems take.
pub const DOCUMENT_NAME: usize = 255;

/// Bytes of text that a document may come to; a book has one or two mebibytes.
pub const DOCUMENT_TEXT: usize = 20 << 20;

/// Tokens of a chunk, as Agent Flow Lite has it.
pub const CHUNK_TOKENS: usize = 512;

/// Tokens that a chunk repeats from the one before, as Agent Flow Lite has it.
pub const CHUNK_OVERLAP: usize = 50;

/// Files in a Word document: one with a thousand pictures has about as many.
pub const DOCX_FILES: usize = 10_000;

/// Bytes of the text of a Word document, unpacked: its marks take ten times the room of its words.
pub const DOCX_UNPACKED: u64 = 64 << 20;

/// How often packed bytes may be repeated by unpacking them. Real documents reach 50, a bomb 1000.
pub const DOCX_RATIO: u64 = 200;

/// Bytes of memory of the program that reads a PDF: a hundred times the largest that is taken.
pub const PDF_MEMORY: u64 = 512 << 20;

/// Time of the program that reads a PDF, for each of the two ways to read it.
pub const PDF_TIME: Duration = Duration::from_mins(1);

/// Threads of the program that reads a PDF: one, and those of its runtime.
pub const PDF_THREADS: u64 = 64;

/// Documents of one person that may wait to be read; a worker reads as many in some minutes.
pub const DOCUMENTS_WAITING: u64 = 1000;

/// How long a worker owns a task without saying anything.
pub const TASK_LEASE: Duration = Duration::from_mins(1);

/// How often a worker says something: four times before another takes over.
pub const TASK_BEAT: Duration = Duration::from_secs(15);

/// How often a document is tried whose worker dies.
pub const TASK_ATTEMPTS: u32 = 3;

/// How long an ended task can be asked about, as Agent Flow Lite has it.
pub const TASK_KEPT: Duration = Duration::from_mins(30);

/// How soon a worker looks again for tasks of other processes, at first and at most.
pub const TASK_POLL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));

/// Chunks that are embedded at once: what providers take, and little enough to see progress.
pub const EMBEDDED_AT_ONCE: usize = 32;

/// How often an embedder is asked for the same chunks: it may be busy for a moment.
pub const EMBED_ATTEMPTS: u32 = 3;

/// Before an embedder is asked for the second time; then four times as long.
pub const EMBED_PAUSE: Duration = Duration::from_secs(1);

/// Characters that a knowledge base is searched for.
pub const QUERY_CHARS: usize = 500;

/// Passages that are found.
pub const PASSAGES: u32 = 5;

/// Tokens that a model is taken to hold. Providers do not tell; all of today hold as much.
pub const CONTEXT_TOKENS: usize = 8192;

/// Passages of each list that are looked at for each that is wanted: what is twelfth in both may
/// be third of all.
pub const CANDIDATES: u32 = 4;
