//! Limits the size and duration of provider responses, each with its reason.

use std::time::Duration;

/// Time to connect; a reachable server needs a fraction of it.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Time to the first byte of an answer: long enough to load a local model and read a long prompt.
pub(crate) const FIRST_BYTE_TIMEOUT: Duration = Duration::from_mins(3);

/// Longest pause within an answer: models that think send keep-alive events more often.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// Time to wait for the token usage after the finish; the answer is complete without it.
pub(crate) const USAGE_TIMEOUT: Duration = Duration::from_secs(3);

/// Number of attempts; more would only add to the load that made the request fail.
pub(crate) const MAX_TRIES: u32 = 3;

/// Pause before the first retry; each further pause is twice as long.
pub(crate) const FIRST_BACKOFF: Duration = Duration::from_millis(500);

/// Longest `Retry-After` that is waited for; a longer one is reported as an error immediately.
pub(crate) const MAX_RETRY_AFTER: Duration = Duration::from_secs(20);

/// Bytes of one line or event of a stream. It may contain a whole tool call; usually it has a few
/// hundred bytes.
pub(crate) const MAX_EVENT_BYTES: usize = 1 << 20;

/// Bytes of a whole stream: 128 thousand tokens at half a kilobyte each.
pub(crate) const MAX_STREAM_BYTES: usize = 64 << 20;

/// Bytes of a response that is one document: 32 vectors of 4096 numbers take a tenth of it.
pub(crate) const MAX_DOCUMENT_BYTES: usize = 32 << 20;

/// Bytes of an error response that are read.
pub(crate) const MAX_ERROR_BODY_BYTES: usize = 16 << 10;

/// Characters of an error response that are shown: a few lines of a terminal.
pub(crate) const MAX_ERROR_MESSAGE_CHARS: usize = 400;

/// Shorter keys are not redacted in messages: they are test keys, and would match too much.
pub(crate) const MIN_REDACTED_KEY_BYTES: usize = 6;

/// Tool calls in one answer; models usually send a handful.
pub(crate) const MAX_TOOL_CALLS: usize = 128;

/// `max_tokens` for APIs that require it, when the request sets none.
pub(crate) const DEFAULT_MAX_TOKENS: u32 = 4096;

/// How long the first listed model is cached as the default.
pub(crate) const DEFAULT_MODEL_TTL: Duration = Duration::from_mins(5);

/// Number of models whose quirks are cached.
pub(crate) const MAX_REMEMBERED_MODELS: usize = 64;

/// Texts per embedding request; servers accept from 32 to 2048.
pub(crate) const MAX_TEXTS_PER_REQUEST: usize = 32;

/// Texts that a local model embeds before it checks for cancellation.
#[cfg(feature = "local-embeddings")]
pub(crate) const LOCAL_BATCH_TEXTS: usize = 8;

/// Bytes of a key file; a longer file is not a key.
pub(crate) const MAX_KEY_FILE_BYTES: u64 = 16 << 10;

/// Bytes of a file that describes a local model; vocabularies of large models take some 20 MB.
#[cfg(feature = "local-embeddings")]
pub(crate) const MAX_DESCRIPTION_FILE_BYTES: u64 = 64 << 20;

/// Bytes of the weights of a local model: with more, one sentence takes seconds without a graphics
/// card.
#[cfg(feature = "local-embeddings")]
pub(crate) const MAX_WEIGHTS_BYTES: u64 = 4 << 30;
