//! Wraps sockets with timeouts ([`Line`]), with or without TLS ([`Side`]).

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use rustls::{ClientConnection, ServerConnection, StreamOwned};

/// A socket on which every wait has a limit.
///
/// A timeout for each read is not enough: a peer that sends one byte a minute never reaches it. So
/// there is also a deadline for a message as a whole.
#[derive(Debug)]
pub(super) struct Line {
    stream: Arc<TcpStream>,
    /// Bytes that the previous reader of the socket had already read ahead.
    early: io::Cursor<Vec<u8>>,
    silence: Duration,
    deadline: Option<Instant>,
}

impl Line {
    pub(super) fn new(stream: Arc<TcpStream>, silence: Duration) -> Self {
        Self { stream, early: io::Cursor::default(), silence, deadline: None }
    }

    /// Makes reads return these bytes first.
    pub(super) fn after(self, early: Vec<u8>) -> Self {
        Self { early: io::Cursor::new(early), ..self }
    }

    /// Sets a deadline for all following reads and writes.
    pub(super) fn hurry(&mut self, time: Duration) {
        self.deadline = Instant::now().checked_add(time);
    }

    /// Removes the deadline; only the timeout of each read and write remains.
    pub(super) fn relax(&mut self) {
        self.deadline = None;
    }

    pub(super) fn stream(&self) -> &Arc<TcpStream> {
        &self.stream
    }

    fn patience(&self) -> io::Result<Duration> {
        let Some(deadline) = self.deadline else { return Ok(self.silence) };
        match deadline.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => Ok(left.min(self.silence)),
            _ => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Repeats an interrupted call. Linux does not resume a call with a timeout after a signal, and
    /// the supervisor gets a signal for every child. When the timeout has passed, Linux reports
    /// `WouldBlock`, which becomes `TimedOut`.
    fn retry(&self, mut call: impl FnMut(&Self) -> io::Result<usize>) -> io::Result<usize> {
        loop {
            match call(self) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                result => return result,
            }
        }
    }
}

impl Read for Line {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let early = self.early.read(into)?;
        if early > 0 {
            return Ok(early);
        }
        self.retry(|line| {
            line.stream.set_read_timeout(Some(line.patience()?))?;
            (&*line.stream).read(into)
        })
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.retry(|line| {
            line.stream.set_write_timeout(Some(line.patience()?))?;
            (&*line.stream).write(bytes)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One side of an exchange: the program or the host.
#[derive(Debug)]
pub(super) enum Side {
    Plain(Line),
    /// The program, over TLS that the proxy terminates.
    Program(Box<StreamOwned<ServerConnection, Line>>),
    /// The host, over TLS that the proxy initiates.
    Host(Box<StreamOwned<ClientConnection, Line>>),
}

impl Side {
    pub(super) fn line(&mut self) -> &mut Line {
        match self {
            Self::Plain(line) => line,
            Self::Program(stream) => &mut stream.sock,
            Self::Host(stream) => &mut stream.sock,
        }
    }

    /// Announces the end of the data, so that the peer can tell a complete message from a cut one.
    pub(super) fn finish(&mut self) {
        if let Self::Program(stream) = self {
            stream.conn.send_close_notify();
            // An error only means that the peer has already disconnected.
            let _ = stream.flush();
        }
        let _ = self.line().stream.shutdown(Shutdown::Write);
    }

    /// Continues to read for a moment after [`Side::finish`]: closing a socket with unread bytes
    /// resets the connection, and the response would be lost.
    pub(super) fn linger(&mut self) {
        const MOST: usize = 256 << 10;
        let line = self.line();
        line.hurry(Duration::from_secs(1));
        let mut buffer = [0; 4096];
        let mut total = 0;
        while total < MOST {
            match line.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(read) => total += read,
            }
        }
    }
}

impl Read for Side {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(line) => line.read(into),
            Self::Program(stream) => stream.read(into),
            Self::Host(stream) => stream.read(into),
        }
    }
}

impl Write for Side {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(line) => line.write(bytes),
            Self::Program(stream) => stream.write(bytes),
            Self::Host(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(line) => line.flush(),
            Self::Program(stream) => stream.flush(),
            Self::Host(stream) => stream.flush(),
        }
    }
}
