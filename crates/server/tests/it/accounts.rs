//! Tests section 2 of the contract: accounts, and session tokens of users.

use std::time::{Duration, Instant};

use reqwest::Method;
use savoir_server::{RateLimits, Registration, rotate_signing_key};
use savoir_store::{SigningKey, Timestamp};
use serde_json::json;

use crate::harness::{ADMIN, PASSWORD, Reply, TestServer};

const INVALID: &str = "Invalid or expired token";

#[tokio::test]
async fn register_log_in_and_read_own_account() {
    let server = TestServer::start().await;
    let body = json!({"email": "  Ada@Example.org ", "password": PASSWORD});
    let reply = server.stranger().post("/api/v1/auth/register", &body).await;
    let made = reply.json();
    let user = made["user"].clone();
    let created = user["created_at"].as_str().unwrap();
    assert_eq!(created.len(), "2026-01-01T00:00:00.000000Z".len());
    assert!(created.ends_with('Z'));
    reply.is(
        200,
        &json!({"token": made["token"], "user": {
            "id": user["id"], "email": "ada@example.org", "role": "user", "is_active": true,
            "created_at": created,
        }}),
    );
    let ada = server.client(made["token"].as_str().unwrap());
    ada.get("/api/v1/auth/me").await.is(200, &user);

    let reply = server.login("ADA@example.org", PASSWORD).await;
    reply.is(200, &json!({"token": reply.json()["token"], "user": user}));
    assert_ne!(reply.json()["token"], made["token"]);
}

#[tokio::test]
async fn invalid_registrations_are_rejected() {
    let server = TestServer::start().await;
    server.register("ada@example.org").await;
    let stranger = server.stranger();
    for (email, password, status, detail) in [
        ("ada", PASSWORD, 400, "Valid email address required"),
        ("ada", "", 400, "Valid email address required"),
        ("eve@example.org", "12345", 400, "Password must be at least 6 characters"),
        ("ADA@example.org", PASSWORD, 409, "Email already registered"),
    ] {
        let body = json!({"email": email, "password": password});
        stranger.post("/api/v1/auth/register", &body).await.refuses(status, detail);
    }
    for route in ["/api/v1/auth/register", "/api/v1/auth/login"] {
        let body = json!({"email": 1});
        stranger.post(route, &body).await.is(
            422,
            &json!({"detail": [
                {"type": "string_type", "loc": ["body", "email"],
                 "msg": "Input should be a valid string", "input": 1},
                {"type": "missing", "loc": ["body", "password"], "msg": "Field required",
                 "input": {"email": 1}},
            ]}),
        );
    }
}

#[tokio::test]
async fn invalid_logins_are_rejected() {
    let server = TestServer::start().await;
    let admin = server.register(ADMIN).await;
    let ada = server.register("ada@example.org").await;
    let wrong = "Invalid email or password";
    server.login("ada", "x").await.refuses(400, "Valid email address required");
    server.login("ada@example.org", "").await.refuses(400, "Password is required");
    server.login("ada@example.org", "wrong").await.refuses(401, wrong);
    server.login("nobody@example.org", PASSWORD).await.refuses(401, wrong);
    admin.call(&format!("/api/v1/admin/users/{}/disable", ada.id())).await;
    server.login("ada@example.org", PASSWORD).await.refuses(403, "User account is disabled");
    server.login("ada@example.org", "wrong").await.refuses(401, wrong);
}

#[tokio::test]
async fn five_failed_logins_block_further_attempts() {
    let server = TestServer::start().await;
    server.register("ada@example.org").await;
    server.register("bob@example.org").await;
    for _ in 0..5 {
        let reply = server.login("ada@example.org", "wrong").await;
        reply.refuses(401, "Invalid email or password");
    }
    let reply = server.login("ada@example.org", PASSWORD).await;
    reply.refuses(429, "Too many failed login attempts. Please try again later.");
    let wait: u64 = reply.header("retry-after").parse().unwrap();
    assert!((880..=900).contains(&wait), "{wait}");
    // Other accounts can still log in.
    assert_eq!(server.login("bob@example.org", PASSWORD).await.status, 200);
}

#[tokio::test]
async fn failed_logins_do_not_block_other_addresses() {
    let server = TestServer::with(|config| {
        config.behind_proxy = true;
        config.registration = Registration::Open;
    })
    .await;
    let here = server.stranger().header("x-forwarded-for", "192.0.2.1");
    let there = server.stranger().header("x-forwarded-for", "192.0.2.2");
    let body = json!({"email": "ada@example.org", "password": PASSWORD});
    assert_eq!(here.post("/api/v1/auth/register", &body).await.status, 200);
    let wrong = json!({"email": "ada@example.org", "password": "wrong"});
    for _ in 0..6 {
        there.post("/api/v1/auth/login", &wrong).await;
    }
    assert_eq!(there.post("/api/v1/auth/login", &body).await.status, 429);
    assert_eq!(here.post("/api/v1/auth/login", &body).await.status, 200);
}

#[tokio::test]
async fn one_password_for_many_accounts_blocks_the_address() {
    let server = TestServer::start().await;
    server.register("ada@example.org").await;
    for number in 0..20 {
        let reply = server.login(&format!("user{number}@example.org"), "123456").await;
        assert_eq!(reply.status, 401);
        if number == 10 {
            // A successful login does not reset the failures of the address.
            assert_eq!(server.login("ada@example.org", PASSWORD).await.status, 200);
        }
    }
    assert_eq!(server.login("fresh@example.org", "123456").await.status, 429);
}

#[tokio::test]
async fn concurrent_guesses_for_many_accounts_are_counted() {
    let server = TestServer::start().await;
    server.register("ada@example.org").await;
    let guess = async |number| server.login(&format!("user{number}@example.org"), "123456").await;
    let replies = futures::future::join_all((0..40).map(guess)).await;
    let count = |status: u16| replies.iter().filter(|reply| reply.status == status).count();
    // Four passwords are checked concurrently, so up to three more guesses were in progress at the
    // twentieth failure.
    assert!((20..=23).contains(&count(401)) && count(401) + count(429) == 40, "{}", count(401));
}

#[tokio::test]
async fn many_users_behind_one_address_can_log_in() {
    let server = TestServer::start().await;
    let people: Vec<String> = (0..30).map(|number| format!("user{number}@example.org")).collect();
    for person in &people {
        server.register(person).await;
    }
    let tries = people.iter().map(|person| server.login(person, PASSWORD));
    let replies = futures::future::join_all(tries).await;
    assert!(replies.iter().all(|reply| reply.status == 200));
}

#[tokio::test]
async fn successful_logins_are_not_counted() {
    let server = TestServer::start().await;
    server.register("ada@example.org").await;
    for _ in 0..25 {
        assert_eq!(server.login("ada@example.org", PASSWORD).await.status, 200);
    }
}

#[tokio::test]
async fn concurrent_guesses_for_one_account_are_counted() {
    let server = TestServer::start().await;
    server.register("ada@example.org").await;
    let tries = (0..30).map(|_| server.login("ada@example.org", "wrong"));
    let replies = futures::future::join_all(tries).await;
    let checked = replies.iter().filter(|reply| reply.status == 401).count();
    assert!(checked <= 5, "{checked} guesses were checked");
}

#[tokio::test]
async fn login_time_does_not_reveal_whether_an_account_exists() {
    let server = TestServer::start().await;
    server.register("ada@example.org").await;
    let mut took = [Duration::ZERO; 2];
    for _ in 0..4 {
        for (email, took) in ["ada@example.org", "nobody@example.org"].iter().zip(&mut took) {
            let began = Instant::now();
            assert_eq!(server.login(email, "wrong").await.status, 401);
            *took += began.elapsed();
        }
    }
    assert!(took[1] * 3 > took[0], "{took:?}");
}

#[tokio::test]
async fn successful_login_resets_failures() {
    let server = TestServer::start().await;
    server.register("ada@example.org").await;
    for _ in 0..3 {
        for _ in 0..4 {
            assert_eq!(server.login("ada@example.org", "wrong").await.status, 401);
        }
        assert_eq!(server.login("ada@example.org", PASSWORD).await.status, 200);
    }
}

#[tokio::test]
async fn invalid_tokens_are_rejected() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let me = "/api/v1/auth/me";
    let missing = "Missing or invalid Authorization header";
    server.stranger().get(me).await.refuses(401, missing);
    for (header, detail) in [
        ("Basic abc", missing),
        ("bearer abc", INVALID),
        ("Bearerabc", missing),
        ("Bearer", "Missing token"),
        ("Bearer ", "Missing token"),
        ("Bearer abc", INVALID),
        ("Bearer sav_abc", INVALID),
        ("Bearer a.b.c", INVALID),
    ] {
        server.stranger().header("authorization", header).get(me).await.refuses(401, detail);
    }
    let parts: Vec<&str> = ada.token.split('.').collect();
    // A token with {"alg":"none"}, and a token with the signature of another one.
    let none = format!("eyJhbGciOiJub25lIn0.{}.", parts[1]);
    let other = server.register("bob@example.org").await;
    let mixed = format!("{}.{}.{}", parts[0], parts[1], other.token.split('.').nth(2).unwrap());
    for token in [none, mixed] {
        server.client(&token).get(me).await.refuses(401, INVALID);
    }
}

#[tokio::test]
async fn logout_revokes_the_token() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let again = server.login("ada@example.org", PASSWORD).await.json();
    let again = server.client(again["token"].as_str().unwrap());
    ada.call("/api/v1/auth/logout").await.is(200, &json!({"success": true}));
    ada.get("/api/v1/auth/me").await.refuses(401, INVALID);
    ada.call("/api/v1/auth/logout").await.refuses(401, INVALID);
    assert_eq!(again.get("/api/v1/auth/me").await.status, 200);
}

#[tokio::test]
async fn password_change_revokes_old_tokens() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let program = ada.post("/api/v1/auth/tokens", &json!({"name": "p"})).await.json();
    let program = server.client(program["token"].as_str().unwrap());
    let change = |current: &str, new: &str| json!({"current": current, "new": new});
    let route = "/api/v1/auth/password";
    let reply = ada.post(route, &change("wrong", "new password")).await;
    reply.refuses(400, "Current password is incorrect");
    let reply = ada.post(route, &change(PASSWORD, "short")).await;
    reply.refuses(400, "Password must be at least 6 characters");
    let reply = ada.post(route, &change(PASSWORD, "new password")).await;
    reply.is(200, &json!({"success": true, "token": reply.json()["token"]}));
    ada.get("/api/v1/auth/me").await.refuses(401, INVALID);
    program.get("/api/v1/auth/me").await.refuses(401, INVALID);
    let fresh = server.client(reply.json()["token"].as_str().unwrap());
    assert_eq!(fresh.get("/api/v1/auth/me").await.status, 200);
    assert_eq!(server.login("ada@example.org", PASSWORD).await.status, 401);
    assert_eq!(server.login("ada@example.org", "new password").await.status, 200);
}

#[tokio::test]
async fn password_change_limits_wrong_current_passwords() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let guess = json!({"current": "guess", "new": "new password"});
    for _ in 0..5 {
        assert_eq!(ada.post("/api/v1/auth/password", &guess).await.status, 400);
    }
    assert_eq!(ada.post("/api/v1/auth/password", &guess).await.status, 429);
}

#[tokio::test]
async fn keys_are_rotated() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    rotate_signing_key(&server.database, false).await.unwrap();
    assert_eq!(ada.get("/api/v1/auth/me").await.status, 200);
    tokio::time::sleep(Duration::from_millis(2100)).await;
    let second = server.login("ada@example.org", PASSWORD).await.json();
    let second = second["token"].as_str().unwrap();
    let kid = |token: &str| token.split('.').next().unwrap().to_owned();
    assert_ne!(kid(second), kid(&ada.token));
    assert_eq!(server.client(second).get("/api/v1/auth/me").await.status, 200);
    assert_eq!(ada.get("/api/v1/auth/me").await.status, 200);

    rotate_signing_key(&server.database, true).await.unwrap();
    tokio::time::sleep(Duration::from_millis(2100)).await;
    ada.get("/api/v1/auth/me").await.refuses(401, INVALID);
    let third = server.login("ada@example.org", PASSWORD).await.json();
    assert_eq!(
        server.client(third["token"].as_str().unwrap()).get("/api/v1/auth/me").await.status,
        200
    );
    ada.get("/api/v1/auth/me").await.refuses(401, INVALID);
    server.client(second).get("/api/v1/auth/me").await.refuses(401, INVALID);
}

#[tokio::test]
async fn signing_keys_with_a_future_time_are_removed() {
    let server = TestServer::start().await;
    let settings = server.database.settings();
    let [key] = &settings.signing_keys().await.unwrap()[..] else { panic!("one key") };
    let created_at = Timestamp::now().plus(Duration::from_hours(24));
    let late = SigningKey { id: "late".to_owned(), created_at, ..key.clone() };
    settings.add_signing_key(&late, false).await.unwrap();
    rotate_signing_key(&server.database, true).await.unwrap();
    let left = settings.signing_keys().await.unwrap();
    assert_eq!(left.len(), 1);
    assert!(left[0].id != late.id && left[0].id != key.id);
}

#[tokio::test]
async fn removed_signing_key_invalidates_tokens_immediately() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    assert_eq!(ada.get("/api/v1/auth/me").await.status, 200);
    rotate_signing_key(&server.database, true).await.unwrap();
    assert_eq!(ada.get("/api/v1/auth/me").await.status, 401);
    let reply = server.login("ada@example.org", PASSWORD).await;
    let token = reply.json()["token"].as_str().unwrap().to_owned();
    let ada = server.stranger().header("authorization", &format!("Bearer {token}"));
    assert_eq!(ada.get("/api/v1/auth/me").await.status, 200);
}

const CLOSED: &str = "Registration is closed. Ask an administrator for an account.";

#[tokio::test]
async fn registration_is_local_by_default() {
    let server = TestServer::start().await;
    let body = json!({"email": "ada@example.org", "password": PASSWORD});
    for (name, value) in [
        ("x-forwarded-for", "127.0.0.1"),
        ("forwarded", "for=127.0.0.1"),
        ("x-real-ip", "127.0.0.1"),
        ("via", "1.1 proxy"),
        ("origin", "https://elsewhere.example"),
        ("host", "rebound.example"),
    ] {
        let forged = server.stranger().header(name, value);
        forged.post("/api/v1/auth/register", &body).await.refuses(403, CLOSED);
    }
    assert_eq!(server.stranger().post("/api/v1/auth/register", &body).await.status, 200);
}

#[tokio::test]
async fn requests_through_a_proxy_are_not_local() {
    let server = TestServer::with(|config| config.behind_proxy = true).await;
    let body = json!({"email": "ada@example.org", "password": PASSWORD});
    let forged = server.stranger().header("x-forwarded-for", "127.0.0.1");
    forged.post("/api/v1/auth/register", &body).await.refuses(403, CLOSED);
    server.stranger().post("/api/v1/auth/register", &body).await.refuses(403, CLOSED);
}

#[tokio::test]
async fn registration_mode_is_configurable() {
    let server = TestServer::with(|config| config.registration = Registration::Open).await;
    let from_afar = server.stranger().header("x-forwarded-for", "192.0.2.1");
    let body = |email: &str| json!({"email": email, "password": PASSWORD});
    let route = "/api/v1/auth/register";
    assert_eq!(from_afar.post(route, &body("ada@example.org")).await.status, 200);
    // Nobody may register the address of the administrator from elsewhere.
    from_afar.post(route, &body(" Admin@example.org")).await.refuses(403, CLOSED);
    let reply = server.stranger().post(route, &body(ADMIN)).await;
    assert_eq!(reply.json()["user"]["role"], "admin");

    let server = TestServer::with(|config| config.registration = Registration::Closed).await;
    server.stranger().post(route, &body("ada@example.org")).await.refuses(403, CLOSED);
    server.stranger().post(route, &json!({})).await.json()["detail"][0]["type"]
        .as_str()
        .filter(|kind| *kind == "missing")
        .unwrap();
}

#[tokio::test]
async fn head_request_has_no_body() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let reply = Reply::of(ada.request(Method::HEAD, "/api/v1/auth/me")).await;
    assert_eq!((reply.status.as_u16(), reply.text.as_str()), (200, ""));
    let reply = Reply::of(server.stranger().request(Method::HEAD, "/api/v1/auth/me")).await;
    assert_eq!(reply.status, 401);
}

#[tokio::test]
async fn registering_existing_addresses_is_limited() {
    let server =
        TestServer::with(|config| config.limits = RateLimits { runs: 0, routes: 0, all: 0 }).await;
    server.register("ada@example.org").await;
    let register = async |email: &str| {
        let body = json!({"email": email, "password": PASSWORD});
        server.stranger().post("/api/v1/auth/register", &body).await
    };
    for _ in 0..10 {
        register("ada@example.org").await.refuses(409, "Email already registered");
    }
    for email in ["ada@example.org", "new@example.org"] {
        let reply = register(email).await;
        assert_eq!(reply.status, 429, "{}", reply.text);
        assert!(!reply.header("retry-after").is_empty());
    }
}
