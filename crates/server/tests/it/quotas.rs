//! Tests the quotas of accounts, and the errors when they are reached.

use futures::future::join_all;
use savoir_server::Quotas;
use serde_json::json;

use crate::{
    harness::{ADMIN, for_each_server},
    knowledge::upload,
    registry_publish::{publish, skill},
    skills::{SKILLS, new, one},
};

const HINT: &str = "; remove some, or ask an administrator of the server to raise its quota";

fn text(name: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: Says hello. Use when somebody comes.\n---\nSay hello.\n"
    )
}

#[tokio::test]
async fn skills_have_a_quota() {
    let change =
        |config: &mut savoir_server::Config| config.quotas = Quotas { skills: 2, ..Quotas::NONE };
    for_each_server(change, async |server| {
        let (admin, ada) = (server.register(ADMIN).await, server.register("ada@example.org").await);
        let made = join_all((0..6).map(async |n| {
            let name = format!("skill-{n}");
            ada.post(SKILLS, &new(&name, &text(&name))).await
        }))
        .await;
        let (good, bad): (Vec<_>, Vec<_>) = made.iter().partition(|reply| reply.status == 201);
        assert_eq!(good.len(), 2);
        for reply in bad {
            reply.refuses(403, &format!("this account has 2 of 2 skills{HINT}"));
        }
        let kept = good[0].json()["name"].as_str().unwrap().to_owned();
        let changed = ada.put(&one(&kept), &json!({"content": text(&kept)})).await;
        assert_eq!(changed.status, 200, "what is there can be changed: {}", changed.text);
        assert_eq!(ada.delete(&one(&kept)).await.status, 204);
        assert_eq!(ada.post(SKILLS, &new("room", &text("room"))).await.status, 201);
        for name in ["a-1", "a-2", "a-3"] {
            assert_eq!(admin.post(SKILLS, &new(name, &text(name))).await.status, 201);
        }
    })
    .await;
}

#[tokio::test]
async fn documents_and_versions_have_quotas() {
    let change = |config: &mut savoir_server::Config| {
        config.quotas = Quotas { documents: 1, versions: 1, ..Quotas::NONE };
    };
    for_each_server(change, async |server| {
        let ada = server.register("ada@example.org").await;
        let base = ada.post("/api/v1/knowledge", &json!({"name": "notes"})).await.json();
        let base = base["id"].as_str().unwrap().to_owned();
        assert_eq!(upload(&ada, &base, "a.txt", b"word").await.status, 200);
        let reply = upload(&ada, &base, "b.txt", b"word").await;
        reply.refuses(403, &format!("this account has 1 of 1 documents{HINT}"));

        assert_eq!(publish(&ada, "", skill("greeter", "1.0.0", "")).await.status, 201);
        let reply = publish(&ada, "", skill("greeter", "1.1.0", "")).await;
        assert_eq!(reply.status, 403, "{}", reply.text);
        let error = &reply.json()["error"];
        assert_eq!(error["code"], "quota_reached");
        assert_eq!(error["message"], format!("this account has 1 of 1 versions{HINT}"));
    })
    .await;
}
