//! Tests routes that the web app needs and the contract does not define.

use serde_json::{Value, json};

use crate::{
    harness::{ADMIN, PASSWORD, TestServer},
    knowledge::{BASES, read_all, upload},
};

#[tokio::test]
async fn administrators_manage_accounts() {
    let server = TestServer::start().await;
    let admin = server.register(ADMIN).await;
    let users = "/api/v1/admin/users";
    let new = json!({"email": "Bob@example.org", "password": PASSWORD, "role": "user"});
    let made = admin.post(users, &new).await;
    assert_eq!(made.status, 201, "{}", made.text);
    assert_eq!(made.json()["email"], "bob@example.org");
    admin.post(users, &new).await.refuses(409, "Email already registered");
    let bob = server.login("bob@example.org", PASSWORD).await.json();
    let bob = server.client(bob["token"].as_str().unwrap());
    assert_eq!(bob.post(users, &new).await.status, 403);
    let path = format!("{users}/{}", made.json()["id"]);
    let patch = |client: &crate::harness::Client, path: &str, role: &str| {
        client.request(reqwest::Method::PATCH, path).json(&json!({"role": role}))
    };
    let changed = crate::harness::Reply::of(patch(&admin, &path, "admin")).await;
    assert_eq!(changed.json()["role"], "admin", "{}", changed.text);
    let own =
        crate::harness::Reply::of(patch(&admin, &format!("{users}/{}", admin.id()), "user")).await;
    assert_eq!(own.status, 400);
    let reset = admin.post(&format!("{path}/password"), &json!({"password": "brand new"})).await;
    assert_eq!(reset.status, 204, "{}", reset.text);
    assert_eq!(bob.get("/api/v1/auth/me").await.status, 401);
    assert_eq!(server.login("bob@example.org", "brand new").await.status, 200);
}

#[tokio::test]
async fn conversations_can_be_read_in_parts_cut_and_renamed() {
    let server = TestServer::with(|config| config.limits.runs = 0).await;
    let ada = server.register("ada@example.org").await;
    for number in 0..3 {
        let chat = json!({"session_id": "s", "message": format!("message {number}")});
        ada.post("/api/v1/chat/completions", &chat).await;
    }
    let path = "/api/v1/chat/sessions/s";
    let all = ada.get(&format!("{path}/messages")).await.json();
    assert_eq!((all["messages"].as_array().unwrap().len(), &all["total"]), (6, &json!(6)));
    assert_eq!(all["messages"][2], {
        let mut message = all["messages"][2].clone();
        message["index"] = json!(2);
        message["content"] = json!("message 1");
        message["role"] = json!("user");
        message
    });
    let part = ada.get(&format!("{path}/messages?before=3&limit=2")).await.json();
    let indexes: Vec<&Value> =
        part["messages"].as_array().unwrap().iter().map(|m| &m["index"]).collect();
    assert_eq!(indexes, [&json!(1), &json!(2)]);
    let cut = ada.delete(&format!("{path}/messages?from=3")).await;
    cut.is(200, &json!({"message_count": 3}));
    let chat = json!({"session_id": "s", "message": "again"});
    ada.post("/api/v1/chat/completions", &chat).await;
    assert_eq!(ada.get(&format!("{path}/messages")).await.json()["total"], 5);
    let rename = ada.request(reqwest::Method::PATCH, path).json(&json!({"title": " My talk "}));
    let renamed = crate::harness::Reply::of(rename).await;
    assert_eq!(renamed.json()["title"], "My talk", "{}", renamed.text);
    let list = ada.get("/api/v1/chat/sessions").await.json();
    assert_eq!(list["sessions"][0]["title"], "My talk");
    let bob = server.register("bob@example.org").await;
    assert_eq!(bob.get(&format!("{path}/messages")).await.status, 404);
    assert_eq!(bob.delete(&format!("{path}/messages?from=0")).await.status, 404);
}

#[tokio::test]
async fn passages_of_a_document_can_be_read() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let kb = ada.post(BASES, &json!({"name": "kb"})).await.json();
    let kb = kb["id"].as_str().unwrap();
    upload(&ada, kb, "a.txt", b"zebra crossing").await;
    read_all(&server).await;
    let documents = ada.get(&format!("{BASES}/{kb}/documents")).await.json();
    let doc = documents["documents"][0]["id"].as_str().unwrap();
    let path = format!("{BASES}/{kb}/documents/{doc}");
    let chunks = ada.get(&format!("{path}/chunks")).await.json();
    assert_eq!(
        (&chunks["total"], &chunks["chunks"][0]["text"]),
        (&json!(1), &json!("zebra crossing"))
    );
    let file = ada.get(&format!("{path}/file")).await;
    assert_eq!(
        (file.text.as_str(), file.header("content-disposition")),
        ("zebra crossing", "attachment")
    );
    assert_eq!(ada.get(&format!("{BASES}/{kb}/documents/none/chunks")).await.status, 404);
    // A passage that is unrelated to the query has a low score.
    let search = |query: &str| format!("{BASES}/{kb}/search?query={query}");
    let hit = ada.get(&search("zebra")).await.json();
    assert_eq!((&hit["results"][0]["score"], &hit["results"][0]["rank"]), (&json!(1.0), &json!(1)));
    let weak = ada.get(&search("zebra%20elephants%20lions%20tigers")).await.json();
    assert_eq!(weak["results"][0]["score"], 0.25);
    let none = ada.get(&search("zebra%20elephants%20lions%20tigers&min_score=0.5")).await.json();
    assert_eq!(none["total"], 0);
    assert_eq!(ada.get(&search("zebra&min_score=2")).await.status, 422);
}

#[tokio::test]
async fn usage_is_shown_by_day_with_its_costs() {
    let server = TestServer::start().await;
    let admin = server.register(ADMIN).await;
    let ada = server.register("ada@example.org").await;
    for (model, user) in [("small", admin.id()), ("small", ada.id()), ("large", ada.id())] {
        let request = savoir_store::ModelRequest {
            user_id: Some(user),
            provider: "stub",
            model,
            input_tokens: 1_000_000,
            output_tokens: 500_000,
        };
        server.database.usage().record(request).await.unwrap();
    }
    let usage = "/api/v1/observability/usage";
    let report = admin.get(usage).await.json();
    assert_eq!(report["total"]["requests"], 3);
    assert_eq!(report["total"]["cost_usd"], Value::Null);
    assert_eq!(report["days"].as_array().unwrap().len(), 1);
    assert_eq!(report["days"][0]["groups"][0]["key"], "large");

    let prices = "/api/v1/admin/prices";
    let names = |list: &Value| {
        let all = list["prices"].as_array().unwrap().iter();
        all.map(|price| (price["model"].clone(), price["from"].clone())).collect::<Vec<_>>()
    };
    let none = |model: &str| (json!(model), json!("none"));
    assert_eq!(names(&admin.get(prices).await.json()), [none("large"), none("small")]);
    let price = json!({"model": "small", "input_usd_per_million": 3, "output_usd_per_million": 10});
    let priced = admin.put(prices, &json!({"prices": [price]})).await.json();
    assert_eq!(names(&priced), [none("large"), (json!("small"), json!("settings"))]);
    let by_user = admin.get(&format!("{usage}?by=user&days=1")).await.json();
    let of_ada = by_user["groups"]
        .as_array()
        .unwrap()
        .iter()
        .find(|group| group["label"] == "ada@example.org");
    assert_eq!(of_ada.unwrap()["cost_usd"], 8.0);
    assert_eq!(by_user["total"]["cost_usd"], 16.0);

    let negative = json!({"prices": [{"model": "small", "input_usd_per_million": -1}]});
    assert_eq!(admin.put(prices, &negative).await.status, 422);
    assert_eq!(ada.get(usage).await.status, 403);
    assert_eq!(ada.get(prices).await.status, 403);
}

#[tokio::test]
async fn earlier_versions_of_a_workflow_can_be_read() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let graph = |id: &str| json!({"nodes": [{"id": id, "type": "start"}], "edges": []});
    let workflow = json!({"name": "w", "graph_data": graph("one")});
    let made = ada.post("/api/v1/workflows", &workflow).await.json();
    let path = format!("/api/v1/workflows/{}", made["id"].as_str().unwrap());
    let versions = format!("{path}/versions");
    let count = async || ada.get(&versions).await.json()["versions"].as_array().unwrap().len();
    assert_eq!(count().await, 1);
    // Changes within a short time share one saved version.
    ada.put(&path, &json!({"graph_data": graph("two")})).await;
    assert_eq!(count().await, 1);
    server
        .behind_its_back("UPDATE workflow_versions SET created_at = created_at - 600000000")
        .await;
    ada.put(&path, &json!({"name": "renamed"})).await;
    assert_eq!(count().await, 1, "another name is no other graph");
    ada.put(&path, &json!({"graph_data": graph("three")})).await;
    let list = ada.get(&versions).await.json();
    let list = list["versions"].as_array().unwrap();
    assert_eq!((list.len(), &list[1]["nodes"]), (2, &json!(1)));
    assert_eq!(list[1]["user_email"], "ada@example.org");
    let old = format!("{versions}/{}", list[1]["id"].as_str().unwrap());
    assert_eq!(ada.get(&old).await.json()["graph_data"], graph("two"));
    let bob = server.register("bob@example.org").await;
    assert_eq!(bob.get(&versions).await.status, 404);
    assert_eq!(bob.get(&old).await.status, 404);
    assert_eq!(ada.get(&format!("{versions}/none")).await.status, 404);
}

#[tokio::test]
async fn knowledge_base_can_be_renamed_and_rechunked() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let kb = ada.post(BASES, &json!({"name": "kb"})).await.json();
    let path = format!("{BASES}/{}", kb["id"].as_str().unwrap());
    let words: Vec<String> = (0..400).map(|number| format!("word{number}.")).collect();
    upload(&ada, kb["id"].as_str().unwrap(), "a.txt", words.join(" ").as_bytes()).await;
    read_all(&server).await;
    let shown = ada.get(&path).await.json();
    let usual = json!({"chunk_tokens": 512, "chunk_overlap": 50});
    assert_eq!((&shown["settings"], &shown["stale"]), (&usual, &json!(false)));
    assert_eq!(shown["may_change"], true);
    let doc = ada.get(&format!("{path}/documents")).await.json();
    let doc = format!("{path}/documents/{}", doc["documents"][0]["id"].as_str().unwrap());
    let passages =
        async || ada.get(&format!("{doc}/chunks")).await.json()["total"].as_u64().unwrap();
    let before = passages().await;

    let patch = async |body: Value| {
        let request = ada.request(reqwest::Method::PATCH, &path).json(&body);
        crate::harness::Reply::of(request).await
    };
    let changed = patch(json!({"name": "other", "chunk_tokens": 64, "chunk_overlap": 20})).await;
    assert_eq!(changed.json()["stale"], true, "{}", changed.text);
    assert_eq!(passages().await, before);
    assert_eq!(ada.call(&format!("{path}/reindex")).await.json(), json!({"documents": 1}));
    read_all(&server).await;
    assert!(passages().await > before);
    let shown = ada.get(&path).await.json();
    assert_eq!((&shown["name"], &shown["stale"]), (&json!("other"), &json!(false)));
    let text = ada.get(&format!("{doc}/text")).await.json();
    assert_eq!(text, json!({"text": words.join(" "), "truncated": false}));

    assert_eq!(patch(json!({"chunk_tokens": 64, "chunk_overlap": 60})).await.status, 400);
    assert_eq!(patch(json!({"chunk_tokens": 5})).await.status, 422);
    let bob = server.register("bob@example.org").await;
    assert_eq!(bob.call(&format!("{path}/reindex")).await.status, 403);
    assert_eq!(bob.get(&path).await.json()["may_change"], false);
}

#[tokio::test]
async fn administrators_see_the_settings_and_the_log() {
    let log = savoir_server::LogTail::default();
    let kept = log.clone();
    let server = TestServer::with(|config| config.log_tail = Some(kept)).await;
    let admin = server.register(ADMIN).await;
    let info = admin.get("/api/v1/admin/server").await.json();
    assert_eq!(
        (&info["database"]["kind"], &info["storage"]["kind"]),
        (&json!("sqlite"), &json!("folder"))
    );
    assert_eq!((&info["limits"]["runs"], &info["run_retention_days"]), (&json!(10), &json!(30)));

    log.push("info", "test", "first", serde_json::Map::new());
    log.push("error", "test", "second", serde_json::Map::new());
    let messages = |reply: &crate::harness::Reply| {
        let lines = reply.json()["lines"].as_array().unwrap().clone();
        lines.iter().map(|line| line["message"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(messages(&admin.get("/api/v1/admin/log").await), ["first", "second"]);
    assert_eq!(messages(&admin.get("/api/v1/admin/log?limit=1").await), ["second"]);
    assert_eq!(messages(&admin.get("/api/v1/admin/log?level=error").await), ["second"]);
    let follow = admin
        .request(reqwest::Method::GET, "/api/v1/admin/log/stream")
        .header("last-event-id", "1");
    let mut stream = follow.send().await.unwrap();
    let mut text = String::new();
    while !text.contains("third") {
        text += &String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap());
        if text.contains("second") && !text.contains("third") {
            log.push("warn", "test", "third", serde_json::Map::new());
        }
    }
    assert!(!text.contains("first") && text.contains("event: line"), "{text}");

    let ada = server.register("ada@example.org").await;
    for path in ["server", "log", "log/stream"] {
        assert_eq!(ada.get(&format!("/api/v1/admin/{path}")).await.status, 403);
    }
}

#[tokio::test]
async fn log_stream_ends_with_the_rights_of_its_reader() {
    let log = savoir_server::LogTail::default();
    let kept = log.clone();
    let server = TestServer::with(|config| {
        config.log_tail = Some(kept);
        config.heartbeat = std::time::Duration::from_millis(50);
    })
    .await;
    let admin = server.register(ADMIN).await;
    let route = format!("/api/v1/admin/users/{}", admin.id());
    let eve = server.register("eve@example.org").await;
    let accounts = server.database.accounts();
    let admin_role = savoir_store::Role::Admin;
    assert!(accounts.set_role(eve.id(), admin_role).await.unwrap());
    for end in ["disabled", "demoted"] {
        let reader = server.login(ADMIN, crate::harness::PASSWORD).await.json();
        let reader = server.client(reader["token"].as_str().unwrap());
        let request = reader.request(reqwest::Method::GET, "/api/v1/admin/log/stream");
        let stream = request.send().await.unwrap();
        assert_eq!(stream.status(), 200);
        let ended = if end == "disabled" {
            eve.call(&format!("{route}/disable")).await
        } else {
            let role = json!({"role": "user"});
            let request = eve.request(reqwest::Method::PATCH, &route).json(&role);
            crate::harness::Reply::of(request).await
        };
        assert_eq!(ended.status, 200, "{}", ended.text);
        log.push("info", "test", "secret of a user", serde_json::Map::new());
        let wait = std::time::Duration::from_secs(5);
        let rest = tokio::time::timeout(wait, stream.text()).await;
        let rest = rest.unwrap_or_else(|_| panic!("{end}: the stream goes on")).unwrap();
        assert!(!rest.contains("secret of a user"), "{end}: {rest}");
        accounts.set_active(admin.id(), true).await.unwrap();
        accounts.set_role(admin.id(), admin_role).await.unwrap();
    }
}

/// The texts of a skill's versions, newest first.
async fn version_texts(client: &crate::harness::Client, name: &str) -> Vec<String> {
    let path = format!("/api/v1/skills/{name}/versions");
    let listed = client.get(&path).await.json();
    let mut texts = Vec::new();
    for version in listed["versions"].as_array().unwrap() {
        let id = version["id"].as_str().unwrap();
        let shown = client.get(&format!("{path}/{id}")).await.json();
        assert_eq!(shown["saved_at"], version["saved_at"]);
        texts.push(shown["content"].as_str().unwrap().to_owned());
    }
    texts
}

#[tokio::test]
async fn versions_of_a_skill_are_listed_and_restored() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let text = |body: &str| format!("---\nname: pdf\ndescription: Reads.\n---\n{body}\n");
    let save = async |body: &str| {
        ada.put("/api/v1/skills/pdf", &json!({"content": text(body)})).await.json()
    };
    let new = json!({"name": "pdf", "content": text("one")});
    assert_eq!(ada.post("/api/v1/skills", &new).await.status, 201);
    save("two").await;
    save("two").await;
    assert_eq!(version_texts(&ada, "pdf").await, [text("two"), text("one")]);
    let listed = ada.get("/api/v1/skills/pdf/versions").await.json();
    assert_eq!(listed["versions"][0]["user_email"], "ada@example.org");

    // A change of the file itself is a version of nobody as soon as the server replaces it.
    let file = server.skills_folder().join("pdf/SKILL.md");
    let stored = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, stored.replace("two", "by hand")).unwrap();
    // The time of the file, as after a checkout, does not change the order.
    std::fs::File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_modified(std::time::UNIX_EPOCH)
        .unwrap();
    // An import replaces it, too.
    let form = ada.request(reqwest::Method::POST, "/api/v1/skills/import");
    let form = form.header("content-type", "text/markdown").body(text("imported"));
    assert_eq!(crate::harness::Reply::of(form).await.status, 200);
    let texts = version_texts(&ada, "pdf").await;
    assert_eq!(texts, [text("imported"), text("by hand"), text("two"), text("one")]);
    let listed = ada.get("/api/v1/skills/pdf/versions").await.json();
    assert_eq!(listed["versions"][1]["user_email"], Value::Null);

    let restored = ada.put("/api/v1/skills/pdf", &json!({"content": texts[3]})).await;
    assert_eq!(restored.status, 200, "{}", restored.text);
    assert_eq!(restored.json()["prompt"], "one");
    assert_eq!(version_texts(&ada, "pdf").await.len(), 5);
    let missing = ada.get("/api/v1/skills/pdf/versions/none").await;
    let hint = "old versions are removed; list the versions again";
    missing.is(404, &json!({"detail": "Skill 'pdf' has no version none", "hint": hint}));

    // Neither other users nor a later skill of this name see them.
    let bob = server.register("bob@example.org").await;
    assert_eq!(bob.get("/api/v1/skills/pdf/versions").await.status, 404);
    assert_eq!(ada.delete("/api/v1/skills/pdf").await.status, 204);
    assert_eq!(bob.post("/api/v1/skills", &new).await.status, 201);
    assert_eq!(version_texts(&bob, "pdf").await, [text("one")]);
}

#[tokio::test]
async fn new_owner_of_a_skill_cannot_read_its_old_versions() {
    let server = TestServer::start().await;
    let (ada, bob) =
        (server.register("ada@example.org").await, server.register("bob@example.org").await);
    let admin = server.register(ADMIN).await;
    let text = |body: &str| format!("---\nname: pdf\ndescription: Reads.\n---\n{body}\n");
    let new = json!({"name": "pdf", "content": text("private")});
    assert_eq!(ada.post("/api/v1/skills", &new).await.status, 201);
    let given = text("given").replace("Reads.\n", &format!("Reads.\nuser_id: '{}'\n", bob.id()));
    let changed = admin.put("/api/v1/skills/pdf", &json!({"content": given})).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    assert_eq!(version_texts(&bob, "pdf").await, [text("given")]);
    let listed = bob.get("/api/v1/skills/pdf/versions").await.json();
    assert_eq!(listed["versions"][0]["user_email"], ADMIN);
}
