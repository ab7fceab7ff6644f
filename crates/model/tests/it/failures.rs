//! Tests servers that are busy, broken or silent, or that send too much.

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use savoir_model::{Chunk, Finish, ModelError, ProviderKind};
use tokio::{io::AsyncWriteExt as _, net::TcpListener, time::timeout};
use wiremock::{Mock, MockServer, ResponseTemplate, matchers::any};

use crate::support::{
    KEY, Whole, answering, ask, models, ok, provider, question, read_request, received, stalling,
};

const GOOD: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\n";
const HALF: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

async fn answer(url: &str) -> Whole {
    ask(&models(provider(ProviderKind::OpenAi, url)), question("hi")).await
}

async fn stalled(bytes: &str) -> Whole {
    let (url, _gone) = stalling(bytes.as_bytes().to_vec()).await;
    answer(&url).await
}

#[tokio::test]
async fn a_busy_server_is_asked_again() {
    for status in [429, 500, 503, 529] {
        let server = MockServer::start().await;
        Mock::given(any())
            .respond_with(ResponseTemplate::new(status))
            .up_to_n_times(1)
            .mount(&server)
            .await;
        Mock::given(any()).respond_with(ok(GOOD)).mount(&server).await;
        assert_eq!(answer(&server.uri()).await.finish(), Finish::Stop);
        assert_eq!(received(&server).await.len(), 2);
    }
}

#[tokio::test]
async fn a_broken_server_is_asked_three_times() {
    let server =
        answering(ResponseTemplate::new(500).set_body_string("<h1>Oh\u{1b}[31m no</h1>")).await;
    let answer = answer(&server.uri()).await;
    match answer.error() {
        ModelError::Refused { provider, status: 500, message } => {
            assert_eq!(provider, "test");
            assert_eq!(message, "<h1>Oh[31m no</h1>");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(received(&server).await.len(), 3);
}

#[tokio::test]
async fn retry_after_header_is_respected() {
    let server = MockServer::start().await;
    Mock::given(any())
        .respond_with(ResponseTemplate::new(429).insert_header("retry-after", "2"))
        .up_to_n_times(1)
        .mount(&server)
        .await;
    Mock::given(any()).respond_with(ok(GOOD)).mount(&server).await;
    let begin = Instant::now();
    answer(&server.uri()).await.finish();
    assert!(begin.elapsed() >= Duration::from_secs(2));
}

#[tokio::test]
async fn long_retry_after_fails_at_once() {
    let response = ResponseTemplate::new(429).insert_header("retry-after", "86400");
    let server = answering(response).await;
    let answer = answer(&server.uri()).await;
    assert!(matches!(answer.error(), ModelError::Refused { status: 429, .. }));
    assert_eq!(received(&server).await.len(), 1);
}

#[tokio::test]
async fn a_refusal_is_final_and_does_not_show_the_key() {
    for status in [400, 401, 404, 501] {
        let said = format!("bad key {KEY}: {}", "long ".repeat(10_000));
        let server = answering(ResponseTemplate::new(status).set_body_string(said)).await;
        let answer = answer(&server.uri()).await;
        let message = answer.error().to_string();
        assert!(message.contains("bad key ***"), "{message}");
        assert!(message.len() < 600, "{message}");
        assert_eq!(received(&server).await.len(), 1);
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let other = answering(ok(GOOD)).await;
    let target = format!("{}/x?token=hidden", other.uri());
    let server = answering(ResponseTemplate::new(307).insert_header("location", target)).await;
    let answer = answer(&server.uri()).await;
    let message = answer.error().to_string();
    assert!(message.contains("307") && message.contains("redirects"), "{message}");
    assert!(!message.contains("hidden"), "{message}");
    assert_eq!(other.received_requests().await.unwrap().len(), 0);
}

#[tokio::test]
async fn unreachable_server_is_reported_after_three_tries() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://user:{KEY}@{}", listener.local_addr().unwrap());
    drop(listener);
    let begin = Instant::now();
    let answer = answer(&url).await;
    assert!(begin.elapsed() > Duration::from_secs(1));
    match answer.error() {
        ModelError::Unreachable { url, message, .. } => {
            assert!(!url.contains("user"), "{url}");
            assert!(message.contains("refused"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn silence_before_the_first_byte_ends() {
    for head in ["", HEAD] {
        let begin = Instant::now();
        let answer = stalled(head).await;
        assert!(matches!(answer.error(), ModelError::TimedOut { seconds: 1, .. }), "{answer:?}");
        assert!(begin.elapsed() < Duration::from_secs(3));
    }
}

#[tokio::test]
async fn silence_within_an_answer_ends() {
    let answer = stalled(&format!("{HEAD}{HALF}")).await;
    assert_eq!(answer.text(), "x");
    assert!(matches!(answer.error(), ModelError::TimedOut { seconds: 1, .. }));
}

#[tokio::test]
async fn silence_after_the_finish_is_not_an_error() {
    let (url, _gone) = stalling(format!("{HEAD}{GOOD}").into_bytes()).await;
    let mut patient = provider(ProviderKind::OpenAi, &url);
    patient.idle_timeout = Some(Duration::from_mins(1));
    let begin = Instant::now();
    assert_eq!(ask(&models(patient), question("hi")).await.finish(), Finish::Stop);
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn early_end_is_an_error() {
    let server = answering(ok(HALF)).await;
    let early = answer(&server.uri()).await;
    assert_eq!(early.text(), "x");
    assert!(early.invalid_response().contains("ended early"));
    assert_eq!(received(&server).await.len(), 1);
    let server = answering(ok("")).await;
    assert!(answer(&server.uri()).await.invalid_response().contains("ended early"));
}

#[tokio::test]
async fn broken_connection_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n";
        let bytes = format!("{head}{HALF}");
        stream.write_all(bytes.as_bytes()).await.unwrap();
    });
    let broken = answer(&url).await;
    assert_eq!(broken.text(), "x");
    assert!(broken.invalid_response().contains("broke off"), "{broken:?}");
}

#[tokio::test]
async fn garbage_is_reported() {
    for garbage in
        ["<html>", "data: {\n\n", "data: []\n\n", "data: \u{fffd}\n\n", "data: {\"choices\":7}\n\n"]
    {
        let server = answering(ok(garbage)).await;
        answer(&server.uri()).await.invalid_response();
    }
    let server = answering(ok(b"data: \xff\xfe\n\n")).await;
    assert!(answer(&server.uri()).await.invalid_response().contains("UTF-8"));
}

#[tokio::test]
async fn endless_lines_and_events_are_cut_off() {
    let line = "data: ".to_owned() + &"x".repeat(2 << 20);
    let server = answering(ok(line)).await;
    assert!(answer(&server.uri()).await.invalid_response().contains("line is too long"));
    let event = format!("data: {}\n", "x".repeat(1 << 16)).repeat(32);
    let server = answering(ok(event)).await;
    assert!(answer(&server.uri()).await.invalid_response().contains("event is too long"));
}

#[tokio::test]
async fn endless_answers_are_cut_off() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await;
        stream.write_all(HEAD.as_bytes()).await.unwrap();
        let comments = format!(": {}\n", "x".repeat(1 << 16)).repeat(16);
        while stream.write_all(comments.as_bytes()).await.is_ok() {}
    });
    assert!(answer(&url).await.invalid_response().contains("answer is too long"));
}

#[tokio::test]
async fn dropping_an_answer_closes_the_connection() {
    let (url, gone) = stalling(format!("{HEAD}{HALF}").into_bytes()).await;
    let mut patient = provider(ProviderKind::OpenAi, &url);
    patient.idle_timeout = Some(Duration::from_mins(1));
    let choice = models(patient).choose(Some("m")).await.unwrap();
    let mut answer = choice.client.answer(question("hi"));
    assert_eq!(answer.next().await.unwrap().unwrap(), Chunk::Text("x".into()));
    drop(answer);
    timeout(Duration::from_secs(5), gone).await.unwrap().unwrap();
}

#[tokio::test]
async fn nothing_is_sent_before_the_first_poll() {
    let server = answering(ok(GOOD)).await;
    let choice = models(provider(ProviderKind::OpenAi, &server.uri())).choose(Some("m")).await;
    drop(choice.unwrap().client.answer(question("hi")));
    assert!(received(&server).await.is_empty());
}
