//! Reads message bodies strictly and writes them with new framing. [`Body`] is a body that is being
//! read.

use std::io::{self, BufRead, Write};

use super::head::{self, HeadError, Headers};

/// How the end of a body is recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is no body.
    Empty,
    /// The body has this many bytes.
    Length(u64),
    /// The body ends with a chunk of length zero.
    Chunked,
    /// The body ends with the connection; only responses can use this.
    Close,
}

impl Framing {
    /// Returns the framing that the headers declare, or an error if they are repeated or contradict
    /// each other.
    pub(super) fn of(headers: &Headers) -> Result<Option<Self>, &'static str> {
        let length = headers.single("content-length").map_err(|_| "has two lengths")?;
        let coding = headers.single("transfer-encoding").map_err(|_| "has two encodings")?;
        match (length, coding) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err("has both a length and a transfer encoding"),
            (None, Some(coding)) if coding.eq_ignore_ascii_case(b"chunked") => {
                Ok(Some(Self::Chunked))
            }
            (None, Some(_)) => Err("has a transfer encoding other than chunked"),
            (Some(length), None) => number(length, 10)
                .map(|length| Some(Self::Length(length)))
                .ok_or("has a length that is not a number"),
        }
    }
}

/// Parses digits only: no sign, no blank, no list.
fn number(digits: &[u8], radix: u32) -> Option<u64> {
    let valid = |byte: &u8| char::from(*byte).is_digit(radix);
    if digits.is_empty() || !digits.iter().all(valid) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

/// A body that is being read.
#[derive(Debug)]
pub(super) struct Body {
    framing: Framing,
    /// The bytes that remain in the body or in the current chunk.
    left: u64,
    state: ChunkState,
}

#[derive(Debug, PartialEq, Eq)]
enum ChunkState {
    First,
    Inside,
    Over,
}

/// The size limit of a chunk line and of all trailers together; real senders use less.
const CHUNK_LINE: usize = 8 << 10;

impl Body {
    pub(super) fn new(framing: Framing) -> Self {
        let left = if let Framing::Length(length) = framing { length } else { 0 };
        Self { framing, left, state: ChunkState::First }
    }

    /// Reads the next bytes; 0 means the end. A body that ends early is an error.
    pub(super) fn read(&mut self, reader: &mut impl BufRead, into: &mut [u8]) -> io::Result<usize> {
        match self.framing {
            Framing::Empty => Ok(0),
            Framing::Close => reader.read(into),
            Framing::Length(_) => self.read_left(reader, into),
            Framing::Chunked => {
                if self.left == 0 && self.state != ChunkState::Over {
                    self.next_chunk(reader)?;
                }
                self.read_left(reader, into)
            }
        }
    }

    fn read_left(&mut self, reader: &mut impl BufRead, into: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Ok(0);
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(into.len());
        let read = reader.read(&mut into[..most])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        Ok(read)
    }

    /// Reads the length line of the next chunk and, after the last chunk, the trailers.
    fn next_chunk(&mut self, reader: &mut impl BufRead) -> io::Result<()> {
        let mut line = Vec::new();
        if self.state == ChunkState::Inside {
            read_line(reader, &mut line)?;
            if line != b"\r\n" {
                return Err(malformed("a chunk is longer than its length"));
            }
            line.clear();
        }
        read_line(reader, &mut line)?;
        let text = line.strip_suffix(b"\r\n").unwrap_or(&line);
        let digits = text.split(|byte| *byte == b';').next().unwrap_or_default();
        self.left = number(digits, 16).ok_or_else(|| malformed("a chunk has no length"))?;
        self.state = ChunkState::Inside;
        if self.left == 0 {
            // Trailers are read, so that nothing of the body remains on the connection, and
            // dropped.
            let mut trailers = Vec::new();
            loop {
                let start = trailers.len();
                read_line(reader, &mut trailers)?;
                if trailers.get(start..) == Some(b"\r\n") {
                    break;
                }
            }
            self.state = ChunkState::Over;
        }
        Ok(())
    }
}

fn read_line(reader: &mut impl BufRead, into: &mut Vec<u8>) -> io::Result<()> {
    head::read_line(reader, into, CHUNK_LINE).map_err(|error| match error {
        HeadError::Closed => io::ErrorKind::UnexpectedEof.into(),
        HeadError::Slow => io::ErrorKind::TimedOut.into(),
        HeadError::Malformed(_) => malformed("a chunk begins with a malformed line"),
    })
}

fn malformed(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Writes a piece of a body with the framing of the receiver; an empty piece writes nothing.
pub(super) fn write_piece(
    writer: &mut impl Write,
    framing: Framing,
    piece: &[u8],
) -> io::Result<()> {
    if piece.is_empty() {
        return Ok(());
    }
    if framing == Framing::Chunked {
        let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
        chunk.extend_from_slice(piece);
        chunk.extend_from_slice(b"\r\n");
        writer.write_all(&chunk)
    } else {
        writer.write_all(piece)
    }
}

/// Writes the end of the body and flushes.
pub(super) fn write_end(writer: &mut impl Write, framing: Framing) -> io::Result<()> {
    if framing == Framing::Chunked {
        writer.write_all(b"0\r\n\r\n")?;
    }
    writer.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(framing: Framing, text: &[u8]) -> io::Result<Vec<u8>> {
        let mut reader = io::BufReader::with_capacity(3, text);
        let mut body = Body::new(framing);
        let mut out = Vec::new();
        let mut buffer = [0; 5];
        loop {
            match body.read(&mut reader, &mut buffer)? {
                0 => return Ok(out),
                read => out.extend_from_slice(&buffer[..read]),
            }
        }
    }

    #[test]
    fn bodies_end_where_their_framing_says() {
        assert_eq!(all(Framing::Length(4), b"bodyrest").unwrap(), b"body");
        assert_eq!(all(Framing::Close, b"bodyrest").unwrap(), b"bodyrest");
        assert_eq!(all(Framing::Empty, b"rest").unwrap(), b"");
        let chunks = b"4\r\nbody\r\nA;name=value\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nrest";
        assert_eq!(all(Framing::Chunked, chunks).unwrap(), b"body0123456789");
    }

    #[test]
    fn bodies_that_end_early_or_oddly_are_errors() {
        assert!(all(Framing::Length(9), b"body").is_err());
        for text in [
            b"".as_slice(),
            b"4\r\nbo",
            b"4\r\nbody\r\n",
            b"4\nbody\n0\n\n",
            b"0x4\r\nbody\r\n0\r\n\r\n",
            b"+4\r\nbody\r\n0\r\n\r\n",
            b"-4\r\nbody\r\n0\r\n\r\n",
            b" 4\r\nbody\r\n0\r\n\r\n",
            b"4 \r\nbody\r\n0\r\n\r\n",
            b"3\r\nbody\r\n0\r\n\r\n",
            b"\r\nbody\r\n0\r\n\r\n",
            b"fffffffffffffffff\r\nbody",
            b"4\r\nbody\r\n0\r\nTrailer",
        ] {
            assert!(all(Framing::Chunked, text).is_err(), "{text:?}");
        }
    }
}
