//! Tests reviews, pages of publishers, audit requests, and prose by its digest.

use savoir_skill::digest::sha256_hex;
use serde_json::json;

use super::{API, program, publish};
use crate::harness::{ADMIN, for_each_server};

#[tokio::test]
async fn users_review_skills_of_others() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, bob, eve) = (
                server.register("ada@example.org").await,
                server.register("bob@example.org").await,
                server.register("eve@example.org").await,
            );
            publish(server, &ada, "acme/pdf", "1.0.0").await;
            let route = format!("{API}/skills/acme/pdf/reviews");
            let empty = server.stranger().get(&route).await.ok(200);
            assert_eq!((&empty["total"], &empty["rating"]["average"]), (&json!(0), &json!(null)));
            let body = json!({"rating": 5, "message": "It works.", "version": "1.0.0"});
            let own = bob.put(&route, &body).await.ok(200);
            assert_eq!((&own["rating"], &own["mine"]), (&json!(5), &json!(true)));
            // A second review replaces the first one.
            bob.put(&route, &json!({"rating": 4})).await.ok(200);
            eve.put(&route, &json!({"rating": 1, "message": "No."})).await.ok(200);
            let list = server.stranger().get(&route).await.ok(200);
            assert_eq!((&list["total"], &list["rating"]["average"]), (&json!(2), &json!(2.5)));
            assert_eq!(list["rating"]["by_rating"], json!([1, 0, 0, 1, 0]));
            assert_eq!(list["items"][0]["account"], json!(eve.id()), "newest first");
            assert!(list["items"][0].get("email").is_none());
            for wrong in [json!({}), json!({"rating": 6}), json!({"rating": null})] {
                bob.put(&route, &wrong).await.refused(400, "invalid_request");
            }
            ada.put(&route, &json!({"rating": 5})).await.refused(400, "invalid_request");
            server.stranger().put(&route, &body).await.refused(401, "unauthorized");
            let missing = format!("{API}/skills/acme/none/reviews");
            bob.put(&missing, &body).await.refused(404, "not_found");
            server.stranger().get(&missing).await.refused(404, "not_found");
            // Your own review, or any as an administrator.
            let of_eve = format!("{route}?account={}", eve.id());
            bob.delete(&of_eve).await.refused(403, "forbidden_scope");
            let admin = server.register(ADMIN).await;
            admin.delete(&of_eve).await.ok(204);
            bob.delete(&route).await.ok(204);
            bob.delete(&route).await.refused(404, "not_found");
        },
    )
    .await;
}

#[tokio::test]
async fn tokens_of_programs_neither_write_nor_remove_reviews() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, bob) = (
                server.register("ada@example.org").await,
                server.register("bob@example.org").await,
            );
            publish(server, &ada, "acme/pdf", "1.0.0").await;
            let route = format!("{API}/skills/acme/pdf/reviews");
            bob.put(&route, &json!({"rating": 5})).await.ok(200);
            let chat = json!({"name": "p", "scopes": ["chat"]});
            let chat = bob.post("/api/v1/auth/tokens", &chat).await.ok(201);
            let chat = server.client(chat["token"].as_str().unwrap());
            let reads = program(server, &bob, &json!({"scopes": ["read"]})).await;
            let publishes = program(server, &bob, &json!({"scopes": ["publish", "owner"]})).await;
            for token in [&chat, &reads, &publishes] {
                let reply = token.put(&route, &json!({"rating": 1})).await;
                reply.refused(403, "forbidden_scope");
                token.delete(&route).await.refused(403, "forbidden_scope");
            }
            let list = server.stranger().get(&route).await.ok(200);
            assert_eq!(list["rating"]["by_rating"], json!([0, 0, 0, 0, 1]));
        },
    )
    .await;
}

#[tokio::test]
async fn reviews_of_disabled_accounts_do_not_count() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, bob) = (
                server.register("ada@example.org").await,
                server.register("bob@example.org").await,
            );
            publish(server, &ada, "acme/pdf", "1.0.0").await;
            let route = format!("{API}/skills/acme/pdf/reviews");
            bob.put(&route, &json!({"rating": 5})).await.ok(200);
            let admin = server.register(ADMIN).await;
            let disable = format!("/api/v1/admin/users/{}/disable", bob.id());
            assert_eq!(admin.call(&disable).await.status, 200);
            let list = server.stranger().get(&route).await.ok(200);
            assert_eq!((&list["total"], &list["items"]), (&json!(0), &json!([])));
            let page = server.stranger().get(&format!("{API}/publishers/acme")).await.ok(200);
            assert_eq!(page["rating"]["count"], json!(0));
        },
    )
    .await;
}

#[tokio::test]
async fn reviews_and_their_removal_are_in_the_audit_log() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, bob) = (
                server.register("ada@example.org").await,
                server.register("bob@example.org").await,
            );
            publish(server, &ada, "acme/pdf", "1.0.0").await;
            let route = format!("{API}/skills/acme/pdf/reviews");
            bob.put(&route, &json!({"rating": 2, "message": "No."})).await.ok(200);
            let admin = server.register(ADMIN).await;
            admin.delete(&format!("{route}?account={}", bob.id())).await.ok(204);
            let log = format!("{API}/audit-log?act=reviewed&act=review_removed");
            let log = admin.get(&log).await.ok(200);
            let (removed, written) = (&log["items"][0], &log["items"][1]);
            assert_eq!(
                (&removed["act"], &removed["account"]),
                (&json!("review_removed"), &json!(ADMIN))
            );
            assert_eq!(
                removed["details"],
                json!({"account": bob.id(), "rating": 2, "message": "No."})
            );
            assert_eq!(
                (&written["act"], &written["account"]),
                (&json!("reviewed"), &json!("bob@example.org"))
            );
            assert_eq!(written["details"], json!({"rating": 2}));
        },
    )
    .await;
}

#[tokio::test]
async fn publishers_have_a_page() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, bob) = (
                server.register("ada@example.org").await,
                server.register("bob@example.org").await,
            );
            publish(server, &ada, "acme/pdf", "1.0.0").await;
            publish(server, &ada, "acme/docx", "1.0.0").await;
            publish(server, &ada, "acme-two/other", "1.0.0").await;
            let review = format!("{API}/skills/acme/pdf/reviews");
            bob.put(&review, &json!({"rating": 5})).await.ok(200);
            let page = server.stranger().get(&format!("{API}/publishers/acme")).await.ok(200);
            assert_eq!((&page["namespace"], &page["skill_count"]), (&json!("acme"), &json!(2)));
            assert_eq!(page["rating"]["count"], json!(1));
            assert_eq!(page["skills"].as_array().map(Vec::len), Some(2), "{page}");
            // Full points for ratings need ten ratings, so one gives 3 of 30; nothing is signed.
            assert_eq!(page["reputation"], json!(3), "{page}");
            let none = format!("{API}/publishers/nobody");
            server.stranger().get(&none).await.refused(404, "not_found");
        },
    )
    .await;
}

#[tokio::test]
async fn audits_are_requested_by_publishers() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, bob) = (
                server.register("ada@example.org").await,
                server.register("bob@example.org").await,
            );
            publish(server, &ada, "acme/pdf", "1.0.0").await;
            let route = format!("{API}/skills/acme/pdf/1.0.0/audit-request");
            let body = json!({"message": "Please look."});
            bob.post(&route, &body).await.refused(403, "forbidden_scope");
            ada.post(&route, &body).await.ok(202);
            let other = format!("{API}/skills/acme/pdf/2.0.0/audit-request");
            ada.post(&other, &body).await.refused(404, "not_found");
            let admin = server.register(ADMIN).await;
            let log = admin.get(&format!("{API}/audit-log?act=audit_requested")).await.ok(200);
            let entry = &log["items"][0];
            assert_eq!(entry["version"], json!("1.0.0"), "{log}");
            assert_eq!(entry["details"]["message"], json!("Please look."), "{log}");
        },
    )
    .await;
}

#[tokio::test]
async fn prose_is_found_by_its_digest() {
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            publish(server, &ada, "anon/note", "1.0.0").await;
            publish(server, &ada, "acme/note", "1.0.0").await;
            let text = server.stranger().get("/registry/anon/note/1.0.0/SKILL.md").await;
            let digest = sha256_hex(text.text.as_bytes());
            let same = server.stranger().get(&format!("/registry/anon/{digest}/SKILL.md")).await;
            assert_eq!((same.status.as_u16(), &same.text), (200, &text.text));
            assert_eq!(same.header("cache-control"), "public, max-age=31536000, immutable");
            let other = server.stranger().get("/registry/acme/note/1.0.0/SKILL.md").await;
            let other = sha256_hex(other.text.as_bytes());
            let missing = format!("/registry/anon/{other}/SKILL.md");
            server.stranger().get(&missing).await.refused(404, "not_found");
            let wrong = server.stranger().get("/registry/anon/zz/SKILL.md").await;
            wrong.refused(400, "invalid_request");
        },
    )
    .await;
}
