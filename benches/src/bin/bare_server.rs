//! The simplest possible server, as a baseline: one handler that streams fixed events. Prints its
//! address.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::convert::Infallible;

use axum::{Router, body::Body, extract::Request, http::header, response::Response, routing::post};
use savoir_flow::event::{Done, Event, Thought};

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap());
        let router = Router::new().route("/run", post(run));
        axum::serve(listener, router).await.unwrap();
    });
}

async fn run(request: Request) -> Response {
    // Reads the body, so that the handler does the same work as the handler of `savoir serve`.
    let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
    assert!(serde_json::from_slice::<serde_json::Value>(&body).is_ok());
    let events = events().into_iter().map(|event| Ok::<_, Infallible>(event.to_sse()));
    let body = Body::from_stream(futures::stream::iter(events));
    Response::builder().header(header::CONTENT_TYPE, "text/event-stream").body(body).unwrap()
}

fn events() -> Vec<Event> {
    let complete = |topic, message: &str| Thought::new(topic, "complete").with("message", message);
    vec![
        Thought::new("validation", "start").into(),
        complete("validation", "All required inputs provided").into(),
        Thought::new("substitution", "start").into(),
        complete("substitution", "Variables substituted").into(),
        Thought::new("generation", "start").into(),
        Event::token("Hello"),
        Event::Done(Done::Success { message: "Skill execution completed successfully" }),
    ]
}
