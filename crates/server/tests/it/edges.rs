//! Tests invalid requests, and the handling that all requests share.

use std::{
    io::{Read as _, Write as _},
    time::Duration,
};

use reqwest::Method;
use serde_json::json;

use crate::harness::{ADMIN, Reply, TestServer};

#[tokio::test]
async fn identity_and_health_endpoints() {
    let server = TestServer::start().await;
    let stranger = server.stranger();
    let identity = json!({"name": "Agent Flow Lite API", "version": "0.1.0", "status": "running"});
    stranger.get("/").await.is(200, &identity);
    stranger.get("/health").await.is(200, &json!({"status": "healthy"}));
    let ready = json!({"status": "ready", "database": "ok", "storage": "ok"});
    stranger.get("/ready").await.is(200, &ready);
    let head = Reply::of(stranger.request(Method::HEAD, "/health")).await;
    assert_eq!((head.status.as_u16(), head.text.as_str()), (200, ""));
}

#[tokio::test]
async fn unknown_routes_and_methods_are_rejected() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    for path in ["/none", "/api", "/api/v1", "/api/v1/none", "/api/v1/auth/me/", "/api/v2/skills"] {
        ada.get(path).await.refuses(404, "Not Found");
    }
    for (method, path, allowed) in [
        ("PUT", "/api/v1/auth/me", "GET,HEAD"),
        ("GET", "/api/v1/auth/login", "POST"),
        ("PATCH", "/api/v1/skills", "GET,HEAD,POST"),
        ("BREW", "/api/v1/skills/x", "GET,HEAD,PATCH,PUT,DELETE"),
        ("POST", "/health", "GET,HEAD"),
    ] {
        let method: Method = method.parse().unwrap();
        let reply = Reply::of(ada.request(method, path)).await;
        reply.refuses(405, "Method Not Allowed");
        assert_eq!(sorted(reply.header("allow")), sorted(allowed), "{path}");
    }
}

fn sorted(methods: &str) -> Vec<String> {
    let mut methods: Vec<String> =
        methods.split(',').map(|method| method.trim().to_owned()).collect();
    methods.sort();
    methods
}

#[tokio::test]
async fn bodies_that_are_not_json_are_rejected() {
    let server = TestServer::start().await;
    let stranger = server.stranger();
    let login = || stranger.request(Method::POST, "/api/v1/auth/login");
    let decode = "JSON decode error";
    let reply = Reply::of(login().body("{\"email\":")).await;
    reply.differs("json_invalid", &json!(["body", 9]), decode, &json!({}));
    let reply = Reply::of(login().body(&b"{\"email\": \"\xff\xfe\"}"[..])).await;
    assert_eq!(
        (reply.status.as_u16(), &reply.json()["detail"][0]["type"]),
        (422, &json!("json_invalid"))
    );
    let reply = Reply::of(login()).await;
    reply.differs("missing", &json!(["body"]), "Field required", &json!(null));
    let reply = Reply::of(login().body("[]")).await;
    let message = "Input should be a valid dictionary or object to extract fields from";
    reply.differs("model_attributes_type", &json!(["body"]), message, &json!([]));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(Reply::of(login().body(deep)).await.status, 422);
}

#[tokio::test]
async fn bodies_that_are_too_large() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let large = "x".repeat(1024 * 1024 + 1);
    let request = ada.request(Method::POST, "/api/v1/skills").body(large.clone());
    let refused = json!({"detail": "Request body too large", "hint": "send at most 1 MiB"});
    Reply::of(request).await.is(413, &refused);
    // The limit also applies to a body without a `Content-Length`.
    let chunks = futures::stream::iter([Ok::<_, std::io::Error>(large)]);
    let body = reqwest::Body::wrap_stream(chunks);
    let request = ada.request(Method::POST, "/api/v1/skills").body(body);
    Reply::of(request).await.is(413, &refused);
    // A client that reads only after it has sent everything gets the response, too.
    let host = server.address;
    let head = format!(
        "POST /api/v1/skills HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 20000000\r\n\r\n",
        ada.token
    );
    let answer = tokio::task::spawn_blocking(move || {
        let mut stream = std::net::TcpStream::connect(host).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        for _ in 0..20 {
            stream.write_all(&vec![b'x'; 1_000_000]).unwrap();
        }
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    });
    assert_eq!(answer.await.unwrap(), "HTTP/1.1 413");
    // Authentication is checked before the body.
    let request = server.stranger().request(Method::POST, "/api/v1/skills");
    let reply = Reply::of(request.body("x".repeat(100))).await;
    reply.refuses(401, "Missing or invalid Authorization header");
}

#[tokio::test]
async fn paths_that_are_not_utf8_are_rejected() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let reply = ada.get("/api/v1/skills/%ff").await;
    reply.refuses(400, "The path is not valid UTF-8");
    let reply = ada.get("/api/v1/skills/..%2f..%2fetc").await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.json()["detail"]["field"], "name");
}

#[tokio::test]
async fn every_response_has_a_request_id() {
    let server = TestServer::start().await;
    let stranger = server.stranger();
    let (one, two) = (stranger.get("/health").await, stranger.get("/none").await);
    assert_eq!(one.header("x-request-id").len(), 36);
    assert_ne!(one.header("x-request-id"), two.header("x-request-id"));
    let given = stranger.header("x-request-id", "proxy-12345678").get("/health").await;
    assert_eq!(given.header("x-request-id"), "proxy-12345678");
    let given = stranger.header("x-request-id", "Root=1-6789;Sampled=1").get("/health").await;
    assert_eq!(given.header("x-request-id"), "Root=1-6789;Sampled=1");
    for bad in ["with blanks in it", "<script>alert(1)</script>"] {
        let reply = stranger.header("x-request-id", bad).get("/health").await;
        assert_ne!(reply.header("x-request-id"), bad);
    }
    assert_eq!(one.header("x-content-type-options"), "nosniff");
    assert_eq!(stranger.get("/api/v1/auth/me").await.header("cache-control"), "no-store");
}

#[tokio::test]
async fn internal_error_reveals_only_its_request_id() {
    let server = TestServer::with(|config| config.limits.all = 0).await;
    let ada = server.register("ada@example.org").await;
    server.database.close().await;
    let reply = ada.get("/api/v1/auth/me").await;
    reply.refuses(500, "Internal server error");
    assert!(!reply.header("x-request-id").is_empty());
}

#[tokio::test]
async fn server_without_writable_database_is_not_ready() {
    let server = TestServer::start().await;
    let ready = async || {
        let began = std::time::Instant::now();
        let reply = server.stranger().get("/ready").await;
        assert!(began.elapsed() < Duration::from_secs(1));
        (reply.status.as_u16(), reply.json()["database"].clone())
    };
    assert_eq!(ready().await, (200, json!("ok")));
    // Reading still works.
    server.behind_its_back("ALTER TABLE settings RENAME TO elsewhere").await;
    assert_eq!(server.stranger().get("/api/v1/auth/me").await.status, 401);
    let until = async |status: u16| {
        for _ in 0..100 {
            if ready().await.0 == status {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("/ready does not become {status}");
    };
    until(503).await;
    server.behind_its_back("ALTER TABLE elsewhere RENAME TO settings").await;
    until(200).await;
}

/// An operator may move or replace the folder of the skills by mistake.
#[tokio::test]
async fn unreadable_skill_storage_is_an_error_and_not_ready() {
    let server = TestServer::with(|config| config.limits.routes = 0).await;
    let ada = server.register("ada@example.org").await;
    let skill = |name: &str| json!({"name": name, "content": "---\ndescription: d\n---\nx"});
    assert_eq!(ada.post("/api/v1/skills", &skill("a")).await.status, 201);
    let (place, away) = (server.skills_folder(), server.files().join("away"));
    std::fs::rename(&place, &away).unwrap();
    std::fs::write(&place, "").unwrap();
    ada.post("/api/v1/skills", &skill("b")).await.refuses(500, "Failed to create skill");
    ada.get("/api/v1/skills").await.refuses(500, "Failed to list skills");
    ada.get("/api/v1/skills/a").await.refuses(500, "Failed to get skill");
    assert_eq!(ada.get("/api/v1/personal-skills").await.status, 500);
    let ready = async || {
        tokio::time::sleep(Duration::from_millis(1100)).await;
        let reply = server.stranger().get("/ready").await;
        (reply.status.as_u16(), reply.json()["storage"].clone())
    };
    assert_eq!(ready().await, (503, json!("unreachable")));
    std::fs::remove_file(&place).unwrap();
    std::fs::rename(&away, &place).unwrap();
    assert_eq!(ready().await, (200, json!("ok")));
    assert_eq!(ada.get("/api/v1/skills").await.json()["total"], 1);
}

#[tokio::test]
async fn error_in_the_global_rate_limit_is_an_internal_error() {
    let server = TestServer::start().await;
    server.database.close().await;
    let reply = server.stranger().get("/api/v1/auth/me").await;
    reply.refuses(500, "Internal server error");
    assert!(!reply.header("x-request-id").is_empty());
}

#[tokio::test]
async fn cross_origin_requests() {
    let server = TestServer::with(|config| config.limits.all = 1).await;
    let ours = "http://localhost:5173";
    let preflight = |origin: &str| {
        let request = server.stranger().header("origin", origin);
        let request = request.request(Method::OPTIONS, "/api/v1/skills/x");
        request
            .header("access-control-request-method", "PUT")
            .header("access-control-request-headers", "authorization,content-type,if-match")
    };
    // Preflight requests do not count for the limit.
    for _ in 0..3 {
        let reply = Reply::of(preflight(ours)).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("access-control-allow-origin"), ours);
        assert_eq!(reply.header("access-control-allow-credentials"), "true");
        assert_eq!(
            sorted(reply.header("access-control-allow-methods")),
            sorted("GET,POST,PUT,PATCH,DELETE,OPTIONS")
        );
        assert_eq!(
            sorted(&reply.header("access-control-allow-headers").to_lowercase()),
            sorted("authorization,content-type,if-match,last-event-id,x-template-name")
        );
        assert!(!reply.header("x-request-id").is_empty());
    }
    let reply = Reply::of(preflight("https://elsewhere.example")).await;
    assert_eq!(reply.header("access-control-allow-origin"), "");

    let page = server.stranger().header("origin", ours);
    let reply = page.get("/api/v1/auth/me").await;
    assert_eq!((reply.status.as_u16(), reply.header("access-control-allow-origin")), (401, ours));
    let exposed = reply.header("access-control-expose-headers").to_lowercase();
    for header in ["etag", "retry-after", "x-savoir-run", "x-request-id", "x-ratelimit-remaining"] {
        assert!(exposed.split(',').any(|known| known == header), "{header}: {exposed}");
    }
    // A page of another origin can read the 429 response.
    let reply = page.get("/api/v1/auth/me").await;
    assert_eq!((reply.status.as_u16(), reply.header("access-control-allow-origin")), (429, ours));
}

#[tokio::test]
async fn metrics_are_only_for_local_clients_and_administrators() {
    let server = TestServer::start().await;
    let admin = server.register(ADMIN).await;
    let ada = server.register("ada@example.org").await;
    let reply = server.stranger().get("/metrics").await;
    assert_eq!(reply.status, 200);
    assert!(reply.text.contains("route=\"/api/v1/auth/register\""));
    let from_afar = |client: &crate::harness::Client| client.header("x-forwarded-for", "192.0.2.1");
    let text = "Metrics are only for this machine and for administrators";
    from_afar(&server.stranger()).get("/metrics").await.refuses(403, text);
    from_afar(&ada).get("/metrics").await.refuses(403, "Admin access required");
    assert_eq!(from_afar(&admin).get("/metrics").await.status, 200);
    let reply = from_afar(&server.client("x")).get("/metrics").await;
    reply.refuses(401, "Invalid or expired token");
    for (scope, status) in [("admin", 200), ("chat", 403)] {
        let body = json!({"name": "p", "scopes": [scope]});
        let made = admin.post("/api/v1/auth/tokens", &body).await.json();
        let program = server.client(made["token"].as_str().unwrap());
        assert_eq!(from_afar(&program).get("/metrics").await.status, status);
    }
}
