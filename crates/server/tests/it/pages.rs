//! Tests the HTML pages.

use crate::harness::{Reply, TestServer};

fn is_a_strict_page(reply: &Reply) {
    assert_eq!(reply.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(reply.header("referrer-policy"), "no-referrer");
    assert_eq!(reply.header("x-frame-options"), "DENY");
    assert_eq!(reply.header("x-content-type-options"), "nosniff");
    let policy = reply.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'"));
    assert!(!policy.contains("unsafe"));
    for outside in ["<script", "<link", "<img", "src=", "@import", "url("] {
        assert!(!reply.text.contains(outside), "{outside}");
    }
}

#[tokio::test]
async fn the_documentation() {
    let server = TestServer::start().await;
    let reply = server.stranger().get("/docs").await;
    assert_eq!(reply.status, 200);
    is_a_strict_page(&reply);
    assert!(reply.text.contains("<code>POST /api/v1/auth/login</code>"));
    assert!(reply.text.contains("curl &quot;$SAVOIR/api/v1/auth/login&quot;"));
}
