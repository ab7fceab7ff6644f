//! Servers and requests for tests.

use std::time::Duration;

use futures::StreamExt as _;
use savoir_model::{
    ChatRequest, Chunk, Finish, Message, ModelError, Models, ProviderKind, ProviderSettings,
    Secret, Settings, ToolDefinition, Usage,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};
use wiremock::{Mock, MockServer, ResponseTemplate, matchers::any};

/// A key that must not appear in any message.
pub(crate) const KEY: &str = "sk-very-secret-0123456789";

/// A provider named `test` with short timeouts.
pub(crate) fn provider(kind: ProviderKind, url: &str) -> ProviderSettings {
    let mut provider = ProviderSettings::new("test", kind);
    provider.base_url = Some(url.to_owned());
    provider.key = Some(Secret::new(KEY));
    provider.first_byte_timeout = Some(Duration::from_millis(700));
    provider.idle_timeout = Some(Duration::from_millis(400));
    provider
}

pub(crate) fn models(provider: ProviderSettings) -> Models {
    let settings = Settings { providers: vec![provider], ..Settings::default() };
    Models::from_settings(&settings).unwrap()
}

pub(crate) fn question(text: &str) -> ChatRequest {
    ChatRequest {
        model: "m".to_owned(),
        messages: vec![Message::User(text.to_owned())],
        ..ChatRequest::default()
    }
}

pub(crate) fn weather() -> ToolDefinition {
    let city = json!({ "type": "string" });
    ToolDefinition {
        name: "get_weather".to_owned(),
        description: "Tells the weather of a city".to_owned(),
        parameters: json!({ "type": "object", "properties": { "city": city }, "required": ["city"] }),
    }
}

/// All chunks of an answer, or its error.
#[derive(Debug, Default)]
pub(crate) struct Whole {
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) error: Option<ModelError>,
}

impl Whole {
    pub(crate) fn text(&self) -> String {
        let texts = self.chunks.iter().filter_map(|chunk| match chunk {
            Chunk::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    pub(crate) fn calls(&self) -> Vec<(&str, &str, &Value)> {
        let calls = self.chunks.iter().filter_map(|chunk| match chunk {
            Chunk::ToolCall(call) => Some((&*call.id, &*call.name, &call.arguments)),
            _ => None,
        });
        calls.collect()
    }

    pub(crate) fn usage(&self) -> Option<Usage> {
        self.chunks.iter().find_map(|chunk| match chunk {
            Chunk::Usage(usage) => Some(*usage),
            _ => None,
        })
    }

    /// The finish reason. Fails unless the answer ended exactly once, with its last chunk.
    pub(crate) fn finish(&self) -> Finish {
        assert!(self.error.is_none(), "{self:?}");
        let ends = self.chunks.iter().filter(|chunk| matches!(chunk, Chunk::End(_))).count();
        assert_eq!(ends, 1, "{self:?}");
        match self.chunks.last() {
            Some(Chunk::End(finish)) => *finish,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn error(&self) -> &ModelError {
        let error = self.error.as_ref().unwrap_or_else(|| panic!("no error: {self:?}"));
        let shown = format!("{error} {error:?} {:?}", error.help());
        assert!(!shown.contains(KEY), "{shown}");
        error
    }

    pub(crate) fn invalid_response(&self) -> &str {
        match self.error() {
            ModelError::InvalidResponse { message, .. } => message,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) async fn ask(models: &Models, request: ChatRequest) -> Whole {
    let choice = models.choose(Some(&request.model)).await.unwrap();
    let mut answer = choice.client.answer(request);
    let mut whole = Whole::default();
    while let Some(chunk) = answer.next().await {
        match chunk {
            Ok(chunk) => whole.chunks.push(chunk),
            Err(error) => {
                assert!(whole.error.is_none(), "an error is the last");
                whole.error = Some(error);
            }
        }
    }
    whole
}

/// Starts a server that always sends this response.
pub(crate) async fn answering(response: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(any()).respond_with(response).mount(&server).await;
    server
}

pub(crate) fn ok(content: impl AsRef<[u8]>) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(content.as_ref(), "text/event-stream")
}

/// Formats values as server-sent events.
pub(crate) fn events(data: &[Value]) -> String {
    data.iter()
        .flat_map(|data| ["data: ".to_owned(), data.to_string(), "\n\n".to_owned()])
        .collect()
}

/// The bodies of the received requests, oldest first.
pub(crate) async fn received(server: &MockServer) -> Vec<Value> {
    let requests = server.received_requests().await.unwrap();
    requests.iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
}

/// Starts a server that accepts one connection and sends these bytes and then nothing. Reports when
/// the client disconnects.
pub(crate) async fn stalling(bytes: Vec<u8>) -> (String, oneshot::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (gone, wait) = oneshot::channel();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = read_request(&mut stream).await;
        stream.write_all(&bytes).await.unwrap();
        let mut rest = [0; 64];
        while !matches!(stream.read(&mut rest).await, Ok(0) | Err(_)) {}
        let _ = gone.send(());
    });
    (url, wait)
}

/// Reads a request: its header and its body.
pub(crate) async fn read_request(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        let read = stream.read(&mut part).await.unwrap();
        bytes.extend_from_slice(&part[..read]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let length = head
            .lines()
            .find_map(|line| {
                line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok()
            })
            .unwrap_or(0);
        if bytes.len() >= end + 4 + length {
            return (head, bytes.split_off(end + 4));
        }
        assert!(read > 0, "the request broke off");
    }
}

/// The URL of a real server, from a variable; prints a note if it is not set.
pub(crate) fn real(variable: &str, what: &str) -> Option<String> {
    let value = std::env::var(variable).ok().filter(|value| !value.is_empty());
    if value.is_none() {
        #[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
        {
            eprintln!(
                "=== SKIPPED: {what}: {variable} is not set (scripts/services.sh sets it) ==="
            );
        }
    }
    value
}
