//! Tests section 1.2 of the contract: rate limits.

use savoir_server::Registration;
use savoir_store::Timestamp;
use serde_json::{Value, json};

use crate::harness::{Client, PASSWORD, Reply, TestServer};

fn exceeded(limit: u32) -> Value {
    json!({"error": format!("Rate limit exceeded: {limit} per 1 minute")})
}

/// The rate-limit headers: limit, remaining requests, and seconds until the reset.
fn budget(reply: &Reply) -> (u32, u32, i64) {
    let number = |name: &str| reply.header(name).parse::<i64>().unwrap();
    let wait = number("x-ratelimit-reset") - Timestamp::now().seconds();
    let small = |name: &str| u32::try_from(number(name)).unwrap();
    (small("x-ratelimit-limit"), small("x-ratelimit-remaining"), wait)
}

#[tokio::test]
async fn requests_per_route_are_limited() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let bob = server.register("bob@example.org").await;
    for left in (0..60).rev() {
        let reply = ada.get("/api/v1/auth/me").await;
        assert_eq!(reply.status, 200);
        let (limit, remaining, wait) = budget(&reply);
        assert_eq!((limit, remaining), (60, left));
        assert!((0..=60).contains(&wait), "{wait}");
        assert_eq!(reply.header("retry-after"), "");
    }
    let reply = ada.get("/api/v1/auth/me").await;
    reply.is(429, &exceeded(60));
    assert_eq!((budget(&reply).0, budget(&reply).1), (60, 0));
    let wait: i64 = reply.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    // Other routes and other users have their own counters.
    assert_eq!(ada.get("/api/v1/skills").await.status, 200);
    assert_eq!(bob.get("/api/v1/auth/me").await.status, 200);
}

#[tokio::test]
async fn running_skills_has_one_limit_for_all_names() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let run = |name: &str| format!("/api/v1/skills/{name}/run");
    // Invalid bodies do not count; a missing skill counts.
    for _ in 0..3 {
        assert_eq!(ada.post(&run("x"), &json!({"inputs": 1})).await.status, 422);
    }
    for number in 0..10 {
        let reply = ada.post(&run(&format!("none-{number}")), &json!({})).await;
        assert_eq!(reply.status, 404);
    }
    ada.post(&run("other"), &json!({})).await.is(429, &exceeded(10));
    // The body is validated before the limit is checked.
    assert_eq!(ada.post(&run("x"), &json!({"inputs": 1})).await.status, 422);
}

#[tokio::test]
async fn all_routes_together_have_a_limit() {
    let server = TestServer::with(|config| config.limits.all = 5).await;
    let ada = server.register("ada@example.org").await;
    // The registration counted for the address, not for the user.
    for _ in 0..4 {
        assert_eq!(ada.get("/api/v1/auth/me").await.status, 200);
    }
    assert_eq!(ada.get("/api/v1/none").await.status, 404);
    let reply = ada.get("/api/v1/skills").await;
    reply.is(429, &exceeded(5));
    assert_eq!((budget(&reply).0, budget(&reply).1), (5, 0));
    assert!(!reply.header("retry-after").is_empty());
    assert!(!reply.header("x-request-id").is_empty());
    // Invented tokens do not get new counters.
    for token in ["a", "b", "sav_c", "sav_d"] {
        assert_eq!(server.client(token).get("/api/v1/skills").await.status, 401);
    }
    server.client("sav_e").get("/api/v1/skills").await.is(429, &exceeded(5));
    // Routes outside of the API are not limited.
    assert_eq!(server.stranger().get("/health").await.status, 200);
}

#[tokio::test]
async fn tokens_share_the_limit_of_their_user() {
    let server = TestServer::with(|config| config.limits.all = 3).await;
    let ada = server.register("ada@example.org").await;
    let made = ada.post("/api/v1/auth/tokens", &json!({"name": "p"})).await.json();
    let program = server.client(made["token"].as_str().unwrap());
    assert_eq!(program.get("/api/v1/auth/me").await.status, 200);
    assert_eq!(ada.get("/api/v1/auth/me").await.status, 200);
    program.get("/api/v1/auth/me").await.is(429, &exceeded(3));
}

#[tokio::test]
async fn tokens_that_ended_count_for_the_address() {
    let server = TestServer::with(|config| {
        config.behind_proxy = true;
        config.registration = Registration::Open;
        config.limits.all = 4;
    })
    .await;
    let from = |client: &Client, address: &str| client.header("x-forwarded-for", address);
    let register = async |email: &str| {
        let body = json!({"email": email, "password": PASSWORD});
        let stranger = from(&server.stranger(), "192.0.2.9");
        let reply = stranger.post("/api/v1/auth/register", &body).await;
        server.client(reply.json()["token"].as_str().unwrap())
    };
    let (old, bob) = (register("ada@example.org").await, register("bob@example.org").await);
    let body = json!({"email": "ada@example.org", "password": PASSWORD});
    let login = from(&server.stranger(), "192.0.2.9").post("/api/v1/auth/login", &body).await;
    let ada = server.client(login.json()["token"].as_str().unwrap());
    assert_eq!(from(&old, "192.0.2.1").call("/api/v1/auth/logout").await.status, 200);
    let made = from(&bob, "192.0.2.1").post("/api/v1/auth/tokens", &json!({"name": "p"})).await;
    let program = server.client(made.json()["token"].as_str().unwrap());
    let accounts = server.database.accounts();
    let (person, _) = accounts.by_email("bob@example.org").await.unwrap().unwrap();
    assert!(accounts.set_active(person.id, false).await.unwrap());
    for (client, status) in [(&old, 401), (&bob, 403), (&program, 403), (&old, 401)] {
        let reply = from(client, "192.0.2.2").get("/api/v1/auth/me").await;
        assert_eq!(reply.status, status, "{}", reply.text);
    }
    for client in [&old, &bob, &program] {
        from(client, "192.0.2.2").get("/api/v1/auth/me").await.is(429, &exceeded(4));
    }
    // Logging out was the first of the four requests.
    for _ in 0..3 {
        assert_eq!(from(&ada, "192.0.2.2").get("/api/v1/auth/me").await.status, 200);
    }
    from(&ada, "192.0.2.2").get("/api/v1/auth/me").await.is(429, &exceeded(4));
}

#[tokio::test]
async fn anonymous_requests_are_counted_by_address() {
    let server = TestServer::with(|config| {
        config.behind_proxy = true;
        config.registration = Registration::Open;
        config.limits.routes = 3;
    })
    .await;
    let here = server.stranger().header("x-forwarded-for", "10.0.0.1, 192.0.2.1");
    let body = json!({"email": "x", "password": PASSWORD});
    // Invalid bodies do not count.
    assert_eq!(here.post("/api/v1/auth/register", &json!({})).await.status, 422);
    for _ in 0..3 {
        assert_eq!(here.post("/api/v1/auth/register", &body).await.status, 400);
    }
    // Addresses before the one that the proxy adds are ignored, because the client can forge them.
    let forged = server.stranger().header("x-forwarded-for", "10.9.9.9, 192.0.2.1");
    forged.post("/api/v1/auth/register", &body).await.is(429, &exceeded(3));
    let there = server.stranger().header("x-forwarded-for", "192.0.2.2");
    assert_eq!(there.post("/api/v1/auth/register", &body).await.status, 400);
    // Each route has its own limit.
    assert_eq!(here.post("/api/v1/auth/login", &body).await.status, 400);
}

#[tokio::test]
async fn unauthorized_requests_are_not_counted_per_route() {
    let server = TestServer::with(|config| config.limits.routes = 2).await;
    let ada = server.register("ada@example.org").await;
    for _ in 0..5 {
        let reply = server.client("none").get("/api/v1/auth/me").await;
        assert_eq!(reply.status, 401);
        assert_eq!(reply.header("x-ratelimit-limit"), "");
    }
    assert_eq!(ada.get("/api/v1/auth/me").await.status, 200);
    // HEAD requests count like GET requests.
    let head = ada.request(reqwest::Method::HEAD, "/api/v1/auth/me");
    assert_eq!(Reply::of(head).await.status, 200);
    assert_eq!(ada.get("/api/v1/auth/me").await.status, 429);
}

#[tokio::test]
async fn concurrent_requests_are_counted_exactly() {
    let server = TestServer::with(|config| config.limits.routes = 7).await;
    let ada = server.register("ada@example.org").await;
    let replies = futures::future::join_all((0..25).map(|_| ada.get("/api/v1/auth/me"))).await;
    let good = replies.iter().filter(|reply| reply.status == 200).count();
    let refused = replies.iter().filter(|reply| reply.status == 429).count();
    assert_eq!((good, refused), (7, 18));
}
