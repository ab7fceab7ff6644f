//! MCP over lines of JSON, such as standard input and output.
//!
//! An invalid line gets an error response, and the next line is read. The session ends only when
//! the input ends.

use std::{
    future::pending,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rmcp::{
    ErrorData, RoleServer, ServiceExt as _,
    model::{
        CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage,
        ClientNotification, ClientRequest, GetMeta as _, JsonRpcMessage, ProtocolVersion,
        RequestId, ServerJsonRpcMessage,
    },
    service::{Peer, ServerInitializeError},
    transport::{Transport, stdio_pipes},
};
use savoir_agent::library::Library;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader},
    sync::{Notify, mpsc, oneshot},
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{
    McpContext,
    elicitation::PendingCalls,
    message::{self, InvalidMessage},
    session::{Session, SessionState},
    tools::runs_a_tool,
};

/// Maximum bytes of a line.
const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;
/// Maximum lines that wait to be written.
const MAX_QUEUED_LINES: usize = 256;
/// Maximum number of open requests before reading pauses, and maximum number of concurrent tools.
const MAX_OPEN_REQUESTS: usize = 256;
/// How long reading pauses for a client that does not read its responses. The pause is limited,
/// because some requests, such as subscriptions, stay open as long as the client likes.
const MAX_QUEUE_WAIT: Duration = Duration::from_secs(1);
/// How long open requests may take after the input ended, and how long tools that run then.
const SHUTDOWN_REPLY_TIMEOUT: Duration = Duration::from_secs(10);
const SHUTDOWN_RUN_TIMEOUT: Duration = Duration::from_secs(1);
/// Delay of the first check for changed skills, so that the first responses come before it.
const FIRST_SKILL_CHECK: Duration = Duration::from_millis(500);
/// How often skills are checked for changes.
const SKILL_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Serves one client over standard input and output, until the input ends.
pub async fn serve_stdio(context: McpContext) -> io::Result<()> {
    let (read, write) = stdio_pipes();
    Box::pin(serve_lines(context, read, write)).await
}

/// Serves one client over lines of JSON, until the input ends.
pub async fn serve_lines<R, W>(context: McpContext, read: R, write: W) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let session = Session::new(context, Arc::new(PendingCalls::default()));
    let (state, library) = session.state_and_library();
    match session.serve(Lines::new(read, write)).await {
        Ok(running) => {
            let peer = running.peer().clone();
            tokio::select! {
                ended = running.waiting() => ended.map(drop).map_err(io::Error::other),
                () = watch(&state, &*library, &peer) => Ok(()),
            }
        }
        // A client that disconnects before the handshake is not an error.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(ServerInitializeError::TransportError { error, .. }) => {
            tracing::debug!(%error, "nobody reads the answers");
            Ok(())
        }
        Err(error) => Err(io::Error::other(error)),
    }
}

/// Notifies the client of changed skills until it disconnects.
async fn watch(state: &SessionState, library: &dyn Library, peer: &Peer<RoleServer>) {
    if library.edition().is_none() {
        return pending().await;
    }
    sleep(FIRST_SKILL_CHECK).await;
    // Clients that send no requests are notified, too, so the initial skills are read here.
    if let Err(error) = library.skills().await {
        tracing::debug!(%error, "the skills cannot be looked at");
    }
    loop {
        state.notify_skills_changed(library, peer).await;
        sleep(SKILL_CHECK_INTERVAL).await;
    }
}

/// A transport of lines in both directions.
struct Lines<R> {
    read: BufReader<R>,
    line: Vec<u8>,
    /// Whether the rest of a line that is too long still has to be skipped.
    discarding: bool,
    /// Whether the client has sent its handshake.
    begun: bool,
    /// Whether the time for open requests after the end of the input is over.
    ended: bool,
    writer: Option<mpsc::Sender<QueuedLine>>,
    /// The response to a rejected request, until there is room to send it.
    refusal: Option<Vec<u8>>,
    task: Option<JoinHandle<()>>,
    open: Arc<OpenRequests>,
}

/// A line to write, and a channel that reports the result.
struct QueuedLine {
    line: Vec<u8>,
    done: oneshot::Sender<io::Result<()>>,
}

/// Requests without a response.
#[derive(Debug, Default)]
struct OpenRequests {
    /// A list, because a client may use an id twice.
    requests: Mutex<Vec<(RequestId, RequestKind)>>,
    fewer: Notify,
}

/// The work for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestKind {
    /// A request that is answered quickly.
    Answer,
    /// A request that runs a tool of a skill, which may take any time.
    Run,
}

/// The content of a line.
enum Line {
    Message(Box<ClientJsonRpcMessage>),
    Nothing,
    InvalidMessage(Box<InvalidMessage>),
    End,
}

impl OpenRequests {
    fn requests(&self) -> MutexGuard<'_, Vec<(RequestId, RequestKind)>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, id: RequestId, work: RequestKind) {
        self.requests().push((id, work));
    }

    fn remove(&self, id: &RequestId) {
        let mut requests = self.requests();
        if let Some(place) = requests.iter().position(|(known, _)| known == id) {
            requests.remove(place);
        }
        drop(requests);
        self.fewer.notify_waiters();
    }

    fn count(&self, counts: impl Fn(RequestKind) -> bool) -> usize {
        self.requests().iter().filter(|(_, work)| counts(*work)).count()
    }

    /// Waits until fewer than `most` matching requests are open.
    async fn wait_for_fewer(&self, most: usize, counts: impl Fn(RequestKind) -> bool) {
        loop {
            let fewer = self.fewer.notified();
            if self.count(&counts) < most {
                return;
            }
            fewer.await;
        }
    }

    /// Waits until no matching request is open.
    async fn wait_for_none(&self, counts: impl Fn(RequestKind) -> bool) {
        self.wait_for_fewer(1, counts).await;
    }

    /// Waits for open requests after the end of the input, since a client that pipes requests in
    /// wants all responses. Tools get less time than other requests, because usually nobody waits
    /// for their result.
    async fn wait_for_last_answers(&self) {
        if timeout(SHUTDOWN_RUN_TIMEOUT, self.wait_for_none(|_| true)).await.is_err() {
            let _ = timeout(
                SHUTDOWN_REPLY_TIMEOUT,
                self.wait_for_none(|work| work == RequestKind::Answer),
            )
            .await;
        }
    }

    /// Removes and returns one open request.
    fn take(&self) -> Option<RequestId> {
        self.requests().pop().map(|(id, _)| id)
    }
}

impl<R: AsyncRead + Send + Unpin> Lines<R> {
    fn new<W: AsyncWrite + Send + Unpin + 'static>(read: R, write: W) -> Self {
        let (writer, lines) = mpsc::channel(MAX_QUEUED_LINES);
        Self {
            read: BufReader::new(read),
            line: Vec::new(),
            discarding: false,
            begun: false,
            ended: false,
            writer: Some(writer),
            refusal: None,
            task: Some(tokio::spawn(write_lines(lines, write))),
            open: Arc::default(),
        }
    }

    /// Reads one line. Cancel-safe: bytes that were read are stored.
    async fn next(&mut self) -> Line {
        loop {
            let (taken, ended) = match self.read.fill_buf().await {
                Ok([]) => return self.finish_input(),
                Ok(there) => {
                    let end = there.iter().position(|byte| *byte == b'\n');
                    let part = &there[..end.unwrap_or(there.len())];
                    if !self.discarding && self.line.len() + part.len() <= MAX_LINE_BYTES {
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
                return self.finish_line();
            }
        }
    }

    /// Text before the end of the input without a line break is a line, too.
    fn finish_input(&mut self) -> Line {
        if self.line.is_empty() && !self.discarding { Line::End } else { self.finish_line() }
    }

    fn finish_line(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.discarding) {
            let message = format!("a message has at most {MAX_LINE_BYTES} bytes");
            let error = ErrorData::invalid_request(message, None);
            return Line::InvalidMessage(Box::new(InvalidMessage { error, id: None }));
        }
        if line.trim_ascii().is_empty() {
            return Line::Nothing;
        }
        match message::read(&line) {
            Ok(message) => Line::Message(Box::new(message)),
            Err(wrong) => Line::InvalidMessage(wrong),
        }
    }

    /// Whether a message may be handled. Before the handshake, only requests are answered.
    fn is_admitted(&mut self, message: &ClientJsonRpcMessage) -> bool {
        match message {
            JsonRpcMessage::Request(request) => {
                let runs = matches!(&request.request,
                    ClientRequest::CallToolRequest(call) if runs_a_tool(&call.params.name));
                if runs && self.open.count(|work| work == RequestKind::Run) >= MAX_OPEN_REQUESTS {
                    self.refuse(request.id.clone());
                    return false;
                }
                self.open.add(
                    request.id.clone(),
                    if runs { RequestKind::Run } else { RequestKind::Answer },
                );
                self.begun |= starts_work(&request.request);
                true
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.open.remove(id);
                }
                self.begun
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => self.begun,
        }
    }

    /// Stores the response to a rejected request.
    fn refuse(&mut self, id: RequestId) {
        let message =
            format!("{MAX_OPEN_REQUESTS} tools run already; wait until one of them has ended");
        let error = ErrorData::invalid_request(message, None);
        self.refusal = line(&ServerJsonRpcMessage::error(error, Some(id))).ok();
    }

    /// Waits until the client has read enough responses. Running tools are not waited for: they may
    /// wait for answers of the client.
    async fn close_idle_session(&mut self) {
        let fewer = self.open.wait_for_fewer(MAX_OPEN_REQUESTS, |work| work == RequestKind::Answer);
        let _ = timeout(MAX_QUEUE_WAIT, fewer).await;
        if let Some(writer) = self.writer.as_ref().filter(|_| self.refusal.is_some())
            && let Ok(place) = writer.reserve().await
            && let Some(line) = self.refusal.take()
        {
            let (done, _) = oneshot::channel();
            place.send(QueuedLine { line, done });
        }
    }

    /// Reports an invalid line. If the client does not read, the report is dropped.
    fn complain(&self, wrong: InvalidMessage) {
        let InvalidMessage { error, id } = wrong;
        tracing::warn!(message = %error.message, "a message cannot be understood");
        let (Some(writer), Ok(line)) =
            (&self.writer, line(&ServerJsonRpcMessage::error(error, id)))
        else {
            return;
        };
        let (done, _) = oneshot::channel();
        if writer.try_send(QueuedLine { line, done }).is_err() {
            tracing::debug!("nobody reads the answers");
        }
    }
}

/// Whether a request starts the session, in one of the ways that the protocol defines.
fn starts_work(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        other => other.get_meta().missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty(),
    }
}

/// The message of a client that cancels a request.
fn cancelled(id: RequestId) -> ClientJsonRpcMessage {
    let why = Some("the input has ended".to_owned());
    let notification = CancelledNotification::new(CancelledNotificationParam::new(Some(id), why));
    ClientJsonRpcMessage::notification(ClientNotification::CancelledNotification(notification))
}

fn line(message: &ServerJsonRpcMessage) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

async fn write_lines<W: AsyncWrite + Unpin>(mut lines: mpsc::Receiver<QueuedLine>, mut write: W) {
    while let Some(QueuedLine { line, done }) = lines.recv().await {
        let written = match write.write_all(&line).await {
            Ok(()) => write.flush().await,
            Err(error) => Err(error),
        };
        // The receiver may be gone.
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
            writer.send(QueuedLine { line, done }).await.map_err(|_| closed())?;
            let written = written.await.unwrap_or_else(|_| Err(closed()));
            if let Some(id) = answered {
                open.remove(&id);
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            self.close_idle_session().await;
            match self.next().await {
                Line::Message(message) if self.is_admitted(&message) => return Some(*message),
                Line::Message(_) | Line::Nothing => {}
                Line::InvalidMessage(wrong) => self.complain(*wrong),
                Line::End => {
                    if !self.ended {
                        self.open.wait_for_last_answers().await;
                        self.ended = true;
                    }
                    // Running requests are cancelled, one by one, before the end is reported.
                    return self.open.take().map(cancelled);
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
