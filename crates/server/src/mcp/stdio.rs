//! One client over lines of JSON, such as standard input and output.
//!
//! Whatever a line holds, the next one is read: what cannot be understood gets an error, and only the
//! end of the input is the end.

use std::{
    collections::HashSet,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rmcp::{
    ErrorData, RoleServer, ServiceExt as _,
    model::{
        ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, GetMeta as _,
        JsonRpcMessage, ProtocolVersion, RequestId, ServerJsonRpcMessage,
    },
    service::ServerInitializeError,
    transport::{Transport, stdio_pipes},
};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader},
    sync::{Notify, mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};

use super::{Desk, asker::Rounds, session::Session};

/// Bytes of a line.
const MOST_LINE: usize = 4 * 1024 * 1024;
/// Lines that wait to be written.
const MOST_LINES: usize = 256;
/// How long what was asked before the end of the input may take.
const LAST_ANSWERS: Duration = Duration::from_secs(10);

/// Serves one client over standard input and output, until the input ends.
pub async fn serve_stdio(desk: Desk) -> io::Result<()> {
    let (read, write) = stdio_pipes();
    serve_lines(desk, read, write).await
}

/// Serves one client over lines of JSON, until the input ends.
pub async fn serve_lines<R, W>(desk: Desk, read: R, write: W) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let session = Session::new(desk, Arc::new(Rounds::default()));
    match session.serve(Lines::new(read, write)).await {
        Ok(running) => {
            running.waiting().await.map_err(io::Error::other)?;
            Ok(())
        }
        // Whoever says nothing, or nothing more, wants nothing.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(ServerInitializeError::TransportError { error, .. }) => {
            tracing::debug!(%error, "nobody reads the answers");
            Ok(())
        }
        Err(error) => Err(io::Error::other(error)),
    }
}

/// Lines in both directions.
struct Lines<R> {
    read: BufReader<R>,
    line: Vec<u8>,
    /// Whether the rest of a line that was too long is still to come.
    discarding: bool,
    /// Whether the client has said who it is.
    begun: bool,
    writer: Option<mpsc::Sender<Written>>,
    task: Option<JoinHandle<()>>,
    open: Arc<Open>,
}

/// A line that is to be written, and who waits for it.
struct Written {
    line: Vec<u8>,
    done: oneshot::Sender<io::Result<()>>,
}

/// Requests that are not answered yet.
#[derive(Debug, Default)]
struct Open {
    requests: Mutex<HashSet<RequestId>>,
    fewer: Notify,
}

/// What a line turned out to be.
enum Line {
    Message(Box<ClientJsonRpcMessage>),
    Nothing,
    Wrong(ErrorData, Option<RequestId>),
    End,
}

impl Open {
    fn add(&self, id: RequestId) {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    fn remove(&self, id: &RequestId) {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        self.fewer.notify_waiters();
    }

    async fn none(&self) {
        loop {
            let fewer = self.fewer.notified();
            if self.requests.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
                return;
            }
            fewer.await;
        }
    }
}

impl<R: AsyncRead + Send + Unpin> Lines<R> {
    fn new<W: AsyncWrite + Send + Unpin + 'static>(read: R, write: W) -> Self {
        let (writer, lines) = mpsc::channel(MOST_LINES);
        Self {
            read: BufReader::new(read),
            line: Vec::new(),
            discarding: false,
            begun: false,
            writer: Some(writer),
            task: Some(tokio::spawn(write_lines(lines, write))),
            open: Arc::default(),
        }
    }

    /// Reads one line. Whoever stops waiting loses nothing: what was read is kept.
    async fn next(&mut self) -> Line {
        loop {
            let (taken, ended) = match self.read.fill_buf().await {
                Ok([]) => return self.last(),
                Ok(there) => {
                    let end = there.iter().position(|byte| *byte == b'\n');
                    let part = &there[..end.unwrap_or(there.len())];
                    if !self.discarding && self.line.len() + part.len() <= MOST_LINE {
                        self.line.extend_from_slice(part);
                    } else {
                        self.discarding = true;
                    }
                    (end.map_or(there.len(), |end| end + 1), end.is_some())
                }
                Err(error) => {
                    tracing::warn!(%error, "the input cannot be read");
                    return Line::End;
                }
            };
            self.read.consume(taken);
            if ended {
                return self.taken();
            }
        }
    }

    /// What comes before the end of the input without a line break is a line, too.
    fn last(&mut self) -> Line {
        if self.line.is_empty() && !self.discarding { Line::End } else { self.taken() }
    }

    fn taken(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.discarding) {
            let message = format!("a message has at most {MOST_LINE} bytes");
            return Line::Wrong(ErrorData::invalid_request(message, None), None);
        }
        understood(&line)
    }

    /// Whether a message may go on. Before a client has said who it is, only requests have an answer.
    fn admitted(&mut self, message: &ClientJsonRpcMessage) -> bool {
        match message {
            JsonRpcMessage::Request(asked) => {
                self.open.add(asked.id.clone());
                self.begun |= begins(&asked.request);
                true
            }
            JsonRpcMessage::Notification(told) => {
                if let ClientNotification::CancelledNotification(cancelled) = &told.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.open.remove(id);
                }
                self.begun
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => self.begun,
        }
    }

    /// Says that a line makes no sense. If the client does not read, it does not get to know.
    fn complain(&self, error: ErrorData, id: Option<RequestId>) {
        tracing::debug!(message = %error.message, "a message cannot be understood");
        let (Some(writer), Ok(line)) =
            (&self.writer, line(&ServerJsonRpcMessage::error(error, id)))
        else {
            return;
        };
        let (done, _) = oneshot::channel();
        if writer.try_send(Written { line, done }).is_err() {
            tracing::debug!("nobody reads the answers");
        }
    }
}

/// Whether a request begins the conversation, in one of the ways that the protocol knows.
fn begins(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        other => other.get_meta().missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty(),
    }
}

fn understood(line: &[u8]) -> Line {
    if line.trim_ascii().is_empty() {
        return Line::Nothing;
    }
    let wrong = |code, message: String, id| Line::Wrong(ErrorData::new(code, message, None), id);
    let value = match serde_json::from_slice::<Value>(line) {
        Ok(value) => value,
        Err(error) => {
            return wrong(ErrorCode::PARSE_ERROR, format!("the line is no JSON: {error}"), None);
        }
    };
    if value.is_array() {
        let message = "messages come one by one, each on a line of its own".to_owned();
        return wrong(ErrorCode::INVALID_REQUEST, message, None);
    }
    let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    let is_request = value.get("method").is_some();
    if let Ok(message) = serde_json::from_value::<ClientJsonRpcMessage>(value) {
        return Line::Message(Box::new(message));
    }
    let message = if is_request {
        "it is no message of JSON-RPC 2.0: check jsonrpc, id and params"
    } else {
        "it is no message of JSON-RPC 2.0: there is no method"
    };
    wrong(ErrorCode::INVALID_REQUEST, message.to_owned(), id)
}

fn line(message: &ServerJsonRpcMessage) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

async fn write_lines<W: AsyncWrite + Unpin>(mut lines: mpsc::Receiver<Written>, mut write: W) {
    while let Some(Written { line, done }) = lines.recv().await {
        let written = match write.write_all(&line).await {
            Ok(()) => write.flush().await,
            Err(error) => Err(error),
        };
        // Nobody may be waiting for it.
        let _ = done.send(written);
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for Lines<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (writer, open) = (self.writer.clone(), Arc::clone(&self.open));
        async move {
            let answered = match &item {
                JsonRpcMessage::Response(response) => Some(response.id.clone()),
                JsonRpcMessage::Error(error) => error.id.clone(),
                _ => None,
            };
            let (done, written) = oneshot::channel();
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            let writer = writer.ok_or_else(closed)?;
            let line = line(&item)?;
            writer.send(Written { line, done }).await.map_err(|_| closed())?;
            let written = written.await.unwrap_or_else(|_| Err(closed()));
            if let Some(id) = answered {
                open.remove(&id);
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            match self.next().await {
                Line::Message(message) if self.admitted(&message) => return Some(*message),
                Line::Message(_) | Line::Nothing => {}
                Line::Wrong(error, id) => self.complain(error, id),
                Line::End => {
                    // Who pipes some questions in wants all the answers.
                    let _ = timeout(LAST_ANSWERS, self.open.none()).await;
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        drop(self.writer.take());
        match self.task.take() {
            Some(task) => task.await.map_err(io::Error::other),
            None => Ok(()),
        }
    }
}
