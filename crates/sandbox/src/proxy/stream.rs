//! Wraps sockets with timeouts ([`TimedSocket`]), with or without TLS ([`ProxyStream`]).

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
pub(super) struct TimedSocket {
    stream: Arc<TcpStream>,
    /// Bytes that the previous reader of the socket had already read ahead.
    read_ahead: io::Cursor<Vec<u8>>,
    idle_timeout: Duration,
    deadline: Option<Instant>,
}

impl TimedSocket {
    pub(super) fn new(stream: Arc<TcpStream>, idle_timeout: Duration) -> Self {
        Self { stream, read_ahead: io::Cursor::default(), idle_timeout, deadline: None }
    }

    /// Makes reads return these bytes first.
    pub(super) fn with_read_ahead(self, read_ahead: Vec<u8>) -> Self {
        Self { read_ahead: io::Cursor::new(read_ahead), ..self }
    }

    /// Sets a deadline for all following reads and writes.
    pub(super) fn set_deadline(&mut self, time: Duration) {
        self.deadline = Instant::now().checked_add(time);
    }

    /// Removes the deadline; only the timeout of each read and write remains.
    pub(super) fn clear_deadline(&mut self) {
        self.deadline = None;
    }

    pub(super) fn stream(&self) -> &Arc<TcpStream> {
        &self.stream
    }

    fn remaining_time(&self) -> io::Result<Duration> {
        let Some(deadline) = self.deadline else { return Ok(self.idle_timeout) };
        match deadline.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => Ok(left.min(self.idle_timeout)),
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

impl Read for TimedSocket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read_ahead = self.read_ahead.read(into)?;
        if read_ahead > 0 {
            return Ok(read_ahead);
        }
        self.retry(|socket| {
            socket.stream.set_read_timeout(Some(socket.remaining_time()?))?;
            (&*socket.stream).read(into)
        })
    }
}

impl Write for TimedSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.retry(|socket| {
            socket.stream.set_write_timeout(Some(socket.remaining_time()?))?;
            (&*socket.stream).write(bytes)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One side of an exchange: the program or the host.
#[derive(Debug)]
pub(super) enum ProxyStream {
    Plain(TimedSocket),
    /// The program, over TLS that the proxy terminates.
    Program(Box<StreamOwned<ServerConnection, TimedSocket>>),
    /// The host, over TLS that the proxy initiates.
    Host(Box<StreamOwned<ClientConnection, TimedSocket>>),
}

impl ProxyStream {
    pub(super) fn socket(&mut self) -> &mut TimedSocket {
        match self {
            Self::Plain(socket) => socket,
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
        let _ = self.socket().stream.shutdown(Shutdown::Write);
    }

    /// Continues to read for a moment after [`ProxyStream::finish`]: closing a socket with unread bytes
    /// resets the connection, and the response would be lost.
    pub(super) fn drain_unread(&mut self) {
        const MAX_DRAINED_BYTES: usize = 256 << 10;
        let socket = self.socket();
        socket.set_deadline(Duration::from_secs(1));
        let mut buffer = [0; 4096];
        let mut total = 0;
        while total < MAX_DRAINED_BYTES {
            match socket.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(read) => total += read,
            }
        }
    }
}

impl Read for ProxyStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(into),
            Self::Program(stream) => stream.read(into),
            Self::Host(stream) => stream.read(into),
        }
    }
}

impl Write for ProxyStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Program(stream) => stream.write(bytes),
            Self::Host(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Program(stream) => stream.flush(),
            Self::Host(stream) => stream.flush(),
        }
    }
}
