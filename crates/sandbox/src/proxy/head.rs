//! Reads the head of an HTTP message (its first line and [`Headers`]) strictly.
//!
//! Request smuggling exploits two programs that tolerate different errors. So this parser tolerates
//! none: each line ends with CR LF, each header is on one line, and control characters are errors.

use std::io::{self, BufRead};

use crate::limits;

/// Why a head could not be read.
#[derive(Debug)]
pub(super) enum HeadError {
    /// The connection was closed before or within the head.
    Closed,
    /// The head was not complete in time.
    Slow,
    /// The bytes are not the head of a message; the reason completes the sentence "the message
    /// ...".
    Malformed(&'static str),
}

impl From<io::Error> for HeadError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Self::Slow,
            _ => Self::Closed,
        }
    }
}

/// Reads a head including its empty line. `first` checks the first line as soon as it arrives,
/// because a client that does not use HTTP/1 may never send an empty line.
pub(super) fn read(
    reader: &mut impl BufRead,
    first: impl Fn(&[u8]) -> Result<(), &'static str>,
) -> Result<Vec<u8>, HeadError> {
    let mut head = Vec::with_capacity(1024);
    let mut start = 0;
    loop {
        read_line(reader, &mut head, limits::MAX_HEAD_BYTES)?;
        let line = head.get(start..head.len() - 2).unwrap_or_default();
        if start == 0 {
            first(line).map_err(HeadError::Malformed)?;
        } else if line.is_empty() {
            return Ok(head);
        } else if line.starts_with(b" ") || line.starts_with(b"\t") {
            return Err(HeadError::Malformed("folds a header over two lines"));
        }
        start = head.len();
    }
}

/// Appends one line with its CR LF; `into` may not grow beyond `most` bytes.
pub(super) fn read_line(
    reader: &mut impl BufRead,
    into: &mut Vec<u8>,
    most: usize,
) -> Result<(), HeadError> {
    let start = into.len();
    loop {
        let available = reader.fill_buf()?;
        if available.is_empty() {
            return Err(HeadError::Closed);
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let piece = &available[..end.map_or(available.len(), |end| end + 1)];
        let control = |byte: &u8| byte.is_ascii_control() && !b"\t\r\n".contains(byte);
        if piece.iter().any(control) {
            return Err(HeadError::Malformed("holds control characters"));
        }
        if into.len() + piece.len() > most {
            return Err(HeadError::Malformed("has too long a head"));
        }
        into.extend_from_slice(piece);
        let used = piece.len();
        reader.consume(used);
        if end.is_some() {
            break;
        }
    }
    let line = into.get(start..).unwrap_or_default();
    match line.strip_suffix(b"\r\n") {
        Some(line) if !line.contains(&b'\r') => Ok(()),
        _ => Err(HeadError::Malformed("has a line that does not end in CR LF")),
    }
}

/// Headers in their original order, with names as written.
#[derive(Clone, Debug, Default)]
pub(super) struct Headers(Vec<(String, Vec<u8>)>);

/// Headers that concern one connection and are not forwarded, besides those that `Connection` names
/// and all `Proxy-*` headers.
const HOP_BY_HOP: [&str; 9] = [
    "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "http2-settings",
    "expect", "content-length",
];

impl Headers {
    pub(super) fn new(parsed: &[httparse::Header<'_>]) -> Self {
        let own = |header: &httparse::Header<'_>| {
            (header.name.to_owned(), header.value.trim_ascii().to_vec())
        };
        Self(parsed.iter().map(own).collect())
    }

    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.0
            .iter()
            .filter(move |(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_slice())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// Returns the value of a header that must not occur twice.
    pub(super) fn single(&self, name: &'static str) -> Result<Option<&[u8]>, &'static str> {
        let mut values = self.all(name);
        let first = values.next();
        if values.next().is_some() { Err(name) } else { Ok(first) }
    }

    /// Returns whether a comma-separated header such as `Connection` contains this word.
    pub(super) fn lists(&self, name: &str, word: &str) -> bool {
        self.all(name)
            .flat_map(|value| value.split(|byte| *byte == b','))
            .any(|item| item.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
    }

    /// Returns the size of the names and values of [`end_to_end`](Self::end_to_end).
    pub(super) fn bytes(&self) -> usize {
        self.end_to_end().map(|(name, value)| name.len() + value.len()).sum()
    }

    /// Returns the headers to forward. The framing of the body is not included, because the proxy
    /// writes its own.
    pub(super) fn end_to_end(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0
            .iter()
            .filter(|(name, _)| {
                let lower = name.to_ascii_lowercase();
                !HOP_BY_HOP.contains(&lower.as_str())
                    && !lower.starts_with("proxy-")
                    && !self.lists("connection", name)
            })
            .map(|(name, value)| (name.as_str(), value.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(text: &[u8]) -> Result<Vec<u8>, HeadError> {
        read(&mut io::BufReader::with_capacity(7, text), |_| Ok(()))
    }

    #[test]
    fn reads_up_to_the_empty_line() {
        let head = outcome(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nbody").unwrap();
        assert_eq!(head, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }

    #[test]
    fn malformed_heads_are_rejected() {
        for text in [
            b"GET / HTTP/1.1\nHost: a\n\n".as_slice(),
            b"GET / HTTP/1.1\r\nHost: a\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\r\n\r\n",
            b"GET / HTTP/1.1\r\nA: b\rC: d\r\n\r\n",
            b"GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
            b"GET / HTTP/1.1\r\nA: b\0\r\n\r\n",
            b"GET / HTTP/1.1\r\nA: \x7f\r\n\r\n",
            b"\x16\x03\x01\x02\x00",
        ] {
            assert!(matches!(outcome(text), Err(HeadError::Malformed(_))), "{text:?}");
        }
        let long =
            [b"GET / HTTP/1.1\r\nA: ".as_slice(), &vec![b'a'; limits::MAX_HEAD_BYTES]].concat();
        assert!(matches!(outcome(&long), Err(HeadError::Malformed(_))));
        assert!(matches!(outcome(b"GET / HT"), Err(HeadError::Closed)));
    }
}
