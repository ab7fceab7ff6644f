//! Bounds of what a provider may send and how long it may take, each with its reason.

use std::time::Duration;

/// Time to reach a server: one that is there answers within a fraction of it.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);

/// Time to the first byte of an answer: a local model is loaded and reads a long question in it.
pub(crate) const FIRST_BYTE: Duration = Duration::from_mins(3);

/// Silence within an answer: models that think send signs of life more often.
pub(crate) const IDLE: Duration = Duration::from_secs(90);

/// Time after the last word for what it cost; the answer is whole without it.
pub(crate) const TAIL: Duration = Duration::from_secs(3);

/// How often a request is sent at most: more only adds to the load that made it fail.
pub(crate) const TRIES: u32 = 3;

/// The first pause before another try; each further one is twice as long.
pub(crate) const BACKOFF: Duration = Duration::from_millis(500);

/// The longest pause that a server may ask for. Who is told to wait longer wants to know it now.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(20);

/// One line or event of a stream. A whole tool call can be in one; a word is a few hundred bytes.
pub(crate) const EVENT_BYTES: usize = 1 << 20;

/// All of a stream: 128 thousand tokens at half a kilobyte each.
pub(crate) const ANSWER_BYTES: usize = 64 << 20;

/// An answer that is one document: 32 vectors of 4096 numbers take a tenth of it.
pub(crate) const DOCUMENT_BYTES: usize = 32 << 20;

/// What is read of an answer that says no.
pub(crate) const REFUSAL_BYTES: usize = 16 << 10;

/// What is shown of an answer that says no: a few lines of a terminal.
pub(crate) const REFUSAL_CHARS: usize = 400;

/// Keys below this length are not looked for in texts: they are made up, and too much looks like them.
pub(crate) const SECRET_BYTES: usize = 6;

/// Calls in one answer; models ask for a handful.
pub(crate) const TOOL_CALLS: usize = 128;

/// Tokens of an answer for those who insist on a number.
pub(crate) const ANSWER_TOKENS: u32 = 4096;

/// How long the first model of a list stands for the default.
pub(crate) const LISTED: Duration = Duration::from_mins(5);

/// Models whose peculiarities are remembered.
pub(crate) const REMEMBERED: usize = 64;

/// Texts that are sent for their vectors at once; servers take from 32 to 2048.
pub(crate) const TEXTS: usize = 32;

/// Texts that a local model reads before it looks whether anyone still waits.
pub(crate) const LOCAL_TEXTS: usize = 8;

/// A file with a key; a longer one is not a key.
pub(crate) const KEY_BYTES: u64 = 16 << 10;

/// A file that describes a local model; vocabularies of large ones take some 20 MB.
pub(crate) const DESCRIPTION_BYTES: u64 = 64 << 20;

/// The weights of a local model: beyond it, a sentence takes seconds without a graphics card.
pub(crate) const WEIGHTS_BYTES: u64 = 4 << 30;
