//! Captures the output of a tool in bounded memory: the beginning, the end, and the number of bytes
//! between them.

use std::{borrow::Cow, collections::VecDeque, str};

use serde_json::Value;

/// Bytes of the beginning that are stored.
pub const HEAD_SIZE: usize = 2048;

/// Bytes of the end that are stored.
pub const TAIL_SIZE: usize = 2048;

/// Bytes of standard output that may be JSON.
pub const PARSED_SIZE: usize = 1024 * 1024;

/// The two streams of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output, which alone may be JSON.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Captures two streams in bounded memory.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    stdout: Decoder,
    stderr: Decoder,
    text: HeadAndTail,
    json: JsonBuffer,
}

/// The captured output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Captured {
    /// Both streams, shortened in the middle, without line ends at the end.
    pub output: String,
    /// Standard output as JSON, when it is an object or an array.
    pub parsed: Option<Value>,
    /// Bytes that `output` leaves out in the middle.
    pub truncated: u64,
    /// Bytes that arrived.
    pub total: u64,
}

impl Capture {
    /// Takes a piece of a stream, in the order of arrival.
    pub fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let decoder = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let text = &mut self.text;
        decoder.feed(bytes, &mut |piece| text.push(piece));
        if stream == Stream::Stdout {
            self.json.push(bytes);
        }
    }

    /// Ends both streams.
    pub fn finish(mut self) -> Captured {
        for decoder in [&mut self.stdout, &mut self.stderr] {
            let text = &mut self.text;
            decoder.end(&mut |piece| text.push(piece));
        }
        let parsed = self.json.finish();
        let (mut output, truncated) = self.text.joined();
        output.truncate(output.trim_end_matches(['\n', '\r']).len());
        Captured { output, parsed, truncated, total: self.text.total }
    }
}

/// A decoded piece of text, with the number of bytes that it was decoded from.
#[derive(Clone, Copy)]
enum DecodedPiece<'a> {
    /// Valid UTF-8, unchanged.
    Text(&'a str),
    /// One to three bytes of invalid UTF-8, which U+FFFD replaces.
    Broken(u8),
}

const REPLACEMENT: &str = "\u{fffd}";

/// Decodes one stream to text. A character may arrive in two pieces, with output of the other
/// stream between them.
#[derive(Clone, Debug, Default)]
struct Decoder {
    unfinished: Vec<u8>,
}

impl Decoder {
    fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(DecodedPiece<'_>)) {
        let bytes = if self.unfinished.is_empty() {
            Cow::Borrowed(bytes)
        } else {
            let mut all = std::mem::take(&mut self.unfinished);
            all.extend_from_slice(bytes);
            Cow::Owned(all)
        };
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            if !chunk.valid().is_empty() {
                sink(DecodedPiece::Text(chunk.valid()));
            }
            let broken = chunk.invalid();
            if chunks.peek().is_none() && is_unfinished(broken) {
                self.unfinished = broken.to_vec();
            } else if !broken.is_empty() {
                sink(DecodedPiece::Broken(broken.len() as u8));
            }
        }
    }

    fn end(&mut self, sink: &mut impl FnMut(DecodedPiece<'_>)) {
        if !self.unfinished.is_empty() {
            sink(DecodedPiece::Broken(self.unfinished.len() as u8));
            self.unfinished.clear();
        }
    }
}

/// Whether more bytes could complete these bytes to a character.
fn is_unfinished(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// The beginning and the end of a text.
#[derive(Clone, Debug, Default)]
struct HeadAndTail {
    head: String,
    /// Whole characters of at most [`TAIL_SIZE`] bytes, and more until it is trimmed.
    tail: String,
    /// Positions in the tail where U+FFFD replaced fewer bytes than it has itself: offset and
    /// difference.
    shorter: VecDeque<(u64, u8)>,
    /// Bytes of text that were trimmed off the tail.
    trimmed: u64,
    /// Bytes that arrived, and those of them that are in the head.
    total: u64,
    in_head: u64,
    head_is_full: bool,
}

impl HeadAndTail {
    fn push(&mut self, piece: DecodedPiece<'_>) {
        match piece {
            DecodedPiece::Text(text) => {
                self.total += text.len() as u64;
                let rest = self.fill_head(text, text.len());
                // Only the end of a long piece can end up in the tail.
                let skipped = start_of_last(rest, TAIL_SIZE);
                if skipped > 0 {
                    self.trimmed += (self.tail.len() + skipped) as u64;
                    self.tail.clear();
                    self.shorter.clear();
                }
                self.tail.push_str(&rest[skipped..]);
            }
            DecodedPiece::Broken(bytes) => {
                self.total += u64::from(bytes);
                let rest = self.fill_head(REPLACEMENT, usize::from(bytes));
                let saved = (REPLACEMENT.len() as u8).saturating_sub(bytes);
                if !rest.is_empty() && saved > 0 {
                    self.shorter.push_back((self.trimmed + self.tail.len() as u64, saved));
                }
                self.tail.push_str(rest);
            }
        }
        if self.tail.len() > 4 * TAIL_SIZE {
            self.trim();
        }
    }

    /// Appends `text`, which was decoded from `bytes` bytes, to the head until it is full. Returns
    /// the rest.
    fn fill_head<'a>(&mut self, text: &'a str, bytes: usize) -> &'a str {
        if self.head_is_full {
            return text;
        }
        let fits = text.floor_char_boundary(HEAD_SIZE - self.head.len());
        let (start, rest) = text.split_at(fits);
        self.head.push_str(start);
        self.in_head += if rest.is_empty() { bytes } else { fits } as u64;
        // Once a character did not fit, later shorter characters must not be appended before it.
        self.head_is_full = !rest.is_empty();
        rest
    }

    fn trim(&mut self) {
        let start = start_of_last(&self.tail, TAIL_SIZE);
        self.tail.drain(..start);
        self.trimmed += start as u64;
        while self.shorter.front().is_some_and(|(at, _)| *at < self.trimmed) {
            self.shorter.pop_front();
        }
    }

    /// Returns the captured text, and the number of bytes that it leaves out.
    fn joined(&mut self) -> (String, u64) {
        let all = self.trimmed == 0 && self.head.len() + self.tail.len() <= HEAD_SIZE + TAIL_SIZE;
        if all {
            return (format!("{}{}", self.head, self.tail), 0);
        }
        self.trim();
        let saved: u64 = self.shorter.iter().map(|(_, saved)| u64::from(*saved)).sum();
        let in_tail = self.tail.len() as u64 - saved;
        let left_out = self.total - self.in_head - in_tail;
        let (head, tail) = (&self.head, &self.tail);
        (format!("{head}\n\n... [truncated {left_out} bytes] ...\n\n{tail}"), left_out)
    }
}

/// Returns the start of the last whole characters of at most `size` bytes.
fn start_of_last(text: &str, size: usize) -> usize {
    text.ceil_char_boundary(text.len().saturating_sub(size))
}

/// Standard output, as long as it may be JSON.
#[derive(Clone, Debug, Default)]
struct JsonBuffer {
    bytes: Vec<u8>,
    impossible: bool,
}

impl JsonBuffer {
    fn push(&mut self, bytes: &[u8]) {
        if self.impossible {
            return;
        }
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        let bytes = if self.bytes.is_empty() {
            &bytes[bytes.iter().take_while(|byte| blank(byte)).count()..]
        } else {
            bytes
        };
        // A scalar is text that happens to be JSON: `42` is a line of output, not a value.
        let begins = self.bytes.is_empty() && bytes.first().is_some_and(|b| !b"{[".contains(b));
        if begins || self.bytes.len() + bytes.len() > PARSED_SIZE {
            *self = Self { bytes: Vec::new(), impossible: true };
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn finish(&self) -> Option<Value> {
        serde_json::from_slice(&self.bytes).ok()
    }
}

#[cfg(test)]
mod tests;
