//! Reads messages, keeps the state up to date, and answers requests.

mod capabilities;
mod notifications;
mod requests;

pub(crate) use capabilities::FIX_ALL;

use std::{
    collections::{BTreeSet, HashSet, VecDeque},
    io::{self, BufRead, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        mpsc::{self, Receiver},
    },
    thread,
};

use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use serde_json::{Value, json};
use url::Url;

use crate::{
    Environment,
    client::Client,
    diagnostics,
    failure::Failure,
    limits::MAX_QUEUED_MESSAGES,
    state::State,
    transport::{self, Received},
};

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The client sent `shutdown`.
    Shutdown,
    /// The client disconnected without `shutdown`.
    Disconnected,
}

/// Serves one client until it ends the session or its input ends.
pub fn serve(
    input: impl BufRead + Send + 'static,
    output: &mut dyn Write,
    environment: Arc<dyn Environment>,
) -> io::Result<Ending> {
    let (sender, receiver) = mpsc::sync_channel(MAX_QUEUED_MESSAGES);
    // The thread ends with the input. It is not joined, because the client may keep its end of the
    // pipe open after `exit`.
    thread::Builder::new().name("reader".to_owned()).spawn(move || {
        let mut input = input;
        while let Ok(Some(received)) = transport::read(&mut input) {
            if sender.send(received).is_err() {
                return;
            }
        }
    })?;
    let queue = Queue { receiver, waiting: VecDeque::new(), cancelled: HashSet::new() };
    Server { queue, output, environment, state: None, outdated: BTreeSet::new(), requests: 0 }.run()
}

/// Messages that were received and not yet handled.
struct Queue {
    receiver: Receiver<Received>,
    waiting: VecDeque<Received>,
    cancelled: HashSet<RequestId>,
}

impl Queue {
    /// Adds received messages to the queue, without waiting.
    fn fill(&mut self) {
        while self.waiting.len() < MAX_QUEUED_MESSAGES
            && let Ok(received) = self.receiver.try_recv()
        {
            self.push(received);
        }
    }

    /// Adds a message. A cancellation removes its request if that still waits.
    fn push(&mut self, received: Received) {
        if let Received::Message(Message::Notification(notification)) = &received
            && notification.method == "$/cancelRequest"
        {
            let id = notification.params.get("id").cloned().unwrap_or_default();
            if let Ok(id) = serde_json::from_value::<RequestId>(id) {
                let is_waiting = self.waiting.iter().any(|waiting| {
                    matches!(waiting, Received::Message(Message::Request(request)) if request.id == id)
                });
                if is_waiting {
                    self.cancelled.insert(id);
                }
            }
            return;
        }
        self.waiting.push_back(received);
    }
}

struct Server<'a> {
    queue: Queue,
    output: &'a mut dyn Write,
    environment: Arc<dyn Environment>,
    /// `None` before `initialize`.
    state: Option<State>,
    /// Files whose diagnostics must be sent again.
    outdated: BTreeSet<Url>,
    /// The number of requests that the server has sent.
    requests: i32,
}

/// What to do after a message.
enum Next {
    Continue,
    End(Ending),
}

impl Server<'_> {
    fn run(mut self) -> io::Result<Ending> {
        let mut is_shut_down = false;
        loop {
            let Some(received) = self.receive()? else { return Ok(ending(is_shut_down)) };
            match received {
                Received::Malformed { id, code, problem } => {
                    transport::write_problem(self.output, &id, code, &problem)?;
                }
                Received::Message(Message::Request(request)) => {
                    is_shut_down |= request.method == "shutdown";
                    self.request(request, is_shut_down)?;
                }
                Received::Message(Message::Notification(notification)) => {
                    if let Next::End(ending) = self.notification(notification, is_shut_down)? {
                        return Ok(ending);
                    }
                }
                // Responses to requests of the server contain no data that it needs.
                Received::Message(Message::Response(_)) => {}
            }
        }
    }

    /// Returns the next message. Diagnostics are sent only when no message waits, so that several
    /// quick edits are checked once.
    fn receive(&mut self) -> io::Result<Option<Received>> {
        self.queue.fill();
        if self.queue.waiting.is_empty() {
            self.publish()?;
            self.queue.fill();
        }
        while self.queue.waiting.is_empty() {
            let Ok(received) = self.queue.receiver.recv() else { return Ok(None) };
            self.queue.push(received);
            self.queue.fill();
        }
        Ok(self.queue.waiting.pop_front())
    }

    fn request(&mut self, request: Request, is_shut_down: bool) -> io::Result<()> {
        let Request { id, method, params } = request;
        let result = if self.queue.cancelled.remove(&id) {
            Err(Failure::new(ErrorCode::RequestCanceled, "the request was cancelled"))
        } else {
            self.answer(&method, params, is_shut_down)
        };
        let response = match result {
            Ok(result) => Response::new_ok(id, result),
            Err(failure) => Response::new_err(id, failure.code, failure.message),
        };
        transport::write(self.output, &Message::Response(response))
    }

    fn answer(
        &mut self,
        method: &str,
        params: Value,
        is_shut_down: bool,
    ) -> Result<Value, Failure> {
        match (method, &mut self.state) {
            ("initialize", None) => Ok(self.initialize(&params)),
            ("initialize", Some(_)) => {
                Err(Failure::new(ErrorCode::InvalidRequest, "the server is initialized already"))
            }
            ("shutdown", _) => Ok(Value::Null),
            (_, None) => {
                Err(Failure::new(ErrorCode::ServerNotInitialized, "send initialize first"))
            }
            _ if is_shut_down => {
                Err(Failure::new(ErrorCode::InvalidRequest, "the server is shut down"))
            }
            (_, Some(state)) => {
                // A panic in one request must not end the server, which would lose its state.
                let answered =
                    catch_unwind(AssertUnwindSafe(|| requests::answer(state, method, params)));
                answered.unwrap_or_else(|_| {
                    let message = format!("{method} failed: this is a defect of savoir");
                    Err(Failure::new(ErrorCode::InternalError, message))
                })
            }
        }
    }

    fn initialize(&mut self, params: &Value) -> Value {
        let client = Client::new(params);
        let capabilities = capabilities::new(&client);
        self.state = Some(State::new(Arc::clone(&self.environment), client));
        json!({
            "capabilities": capabilities,
            "serverInfo": {"name": "savoir", "version": env!("CARGO_PKG_VERSION")},
        })
    }

    fn notification(&mut self, notification: Notification, is_shut_down: bool) -> io::Result<Next> {
        let Notification { method, params } = notification;
        if method == "exit" {
            return Ok(Next::End(ending(is_shut_down)));
        }
        let Some(state) = &mut self.state else { return Ok(Next::Continue) };
        if method == "initialized" {
            self.initialized()?;
            return Ok(Next::Continue);
        }
        let handled =
            catch_unwind(AssertUnwindSafe(|| notifications::handle(state, &method, params)));
        match handled {
            Ok(Ok(effects)) => self.apply(effects),
            Ok(Err(problem)) => self.log(&format!("{method}: {problem}"))?,
            Err(_) => self.log(&format!("{method} failed: this is a defect of savoir"))?,
        }
        Ok(Next::Continue)
    }

    fn apply(&mut self, effects: notifications::Effects) {
        self.outdated.extend(effects.outdated);
        if effects.all_outdated
            && let Some(state) = &self.state
        {
            self.outdated.extend(state.files.keys().cloned());
        }
        if let Some(closed) = effects.closed {
            self.outdated.insert(closed);
        }
    }

    /// Starts the search for skills in the workspace, and registers for notifications about changed
    /// files.
    fn initialized(&mut self) -> io::Result<()> {
        let Some(state) = &self.state else { return Ok(()) };
        state.index.start(Arc::clone(&state.environment), state.folders.clone());
        if state.client.registers_file_watchers {
            let params = capabilities::file_watchers();
            self.send_request("client/registerCapability", params)?;
        }
        Ok(())
    }

    /// Sends the diagnostics of changed files, unless the client requests them itself.
    fn publish(&mut self) -> io::Result<()> {
        let outdated = std::mem::take(&mut self.outdated);
        let Some(state) = &self.state else { return Ok(()) };
        if outdated.is_empty() {
            return Ok(());
        }
        if state.client.pulls_diagnostics {
            return self.refresh();
        }
        let mut messages = Vec::new();
        for uri in outdated {
            let found = state.files.get(&uri).map(|file| {
                let found = catch_unwind(AssertUnwindSafe(|| diagnostics::of(state, file)));
                (file.version, found.unwrap_or_default())
            });
            // A closed file has no diagnostics.
            let (version, found) = found.map_or((None, Vec::new()), |(v, found)| (Some(v), found));
            messages.push(json!({"uri": uri, "version": version, "diagnostics": found}));
        }
        for params in messages {
            self.notify("textDocument/publishDiagnostics", params)?;
        }
        Ok(())
    }

    /// Asks the client to request diagnostics again. A client does so by itself after a change of
    /// the file, so this is only needed when something else changed.
    fn refresh(&mut self) -> io::Result<()> {
        let Some(state) = &mut self.state else { return Ok(()) };
        let wanted = std::mem::take(&mut state.needs_refresh);
        let (diagnostics, hints) =
            (state.client.refreshes_diagnostics, state.client.refreshes_hints);
        if wanted && diagnostics {
            self.send_request("workspace/diagnostic/refresh", Value::Null)?;
        }
        if wanted && hints {
            self.send_request("workspace/inlayHint/refresh", Value::Null)?;
        }
        Ok(())
    }

    fn log(&mut self, message: &str) -> io::Result<()> {
        const WARNING: u8 = 2;
        self.notify("window/logMessage", json!({"type": WARNING, "message": message}))
    }

    fn notify(&mut self, method: &str, params: Value) -> io::Result<()> {
        let notification = Notification { method: method.to_owned(), params };
        transport::write(self.output, &Message::Notification(notification))
    }

    fn send_request(&mut self, method: &str, params: Value) -> io::Result<()> {
        self.requests += 1;
        let id = RequestId::from(format!("savoir-{}", self.requests));
        let request = Request { id, method: method.to_owned(), params };
        transport::write(self.output, &Message::Request(request))
    }
}

fn ending(is_shut_down: bool) -> Ending {
    if is_shut_down { Ending::Shutdown } else { Ending::Disconnected }
}
