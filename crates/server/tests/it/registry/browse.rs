//! Tests lists, search and the index for anonymous readers.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use reqwest::Method;
use savoir_package::trust::SigningKey;
use savoir_server::Readers;
use savoir_skill::digest::sha256_hex;
use savoir_store::registry::{Actor, PackageRecord, Record, VersionRecord};
use serde_json::{Value, json};

use super::{API, draft, index, program, publish};
use crate::harness::{Client, Reply, TestServer, for_each_server};

fn names(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap();
    items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn pagination_is_stable_during_publishing() {
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            let before: Vec<String> = (0..25).map(|n| format!("acme/tool-{n:02}")).collect();
            for name in &before {
                publish(server, &ada, name, "1.0.0").await;
            }
            let (mut seen, mut cursor, mut round) = (Vec::new(), String::new(), 0);
            loop {
                let route = format!("{API}/skills?per_page=7{cursor}");
                let page = server.stranger().get(&route).await.ok(200);
                seen.extend(names(&page));
                // New skills sort before, between and after the skills of this page.
                publish(server, &ada, &format!("acme/a{round}"), "1.0.0").await;
                publish(server, &ada, &format!("acme/tool-0{round}-x"), "1.0.0").await;
                publish(server, &ada, &before[round], "1.1.0").await;
                round += 1;
                let Some(next) = page["next_cursor"].as_str() else { break };
                cursor = format!("&cursor={next}");
            }
            let once: BTreeSet<&String> = seen.iter().collect();
            assert_eq!(once.len(), seen.len(), "nothing twice: {seen:?}");
            assert!(before.iter().all(|name| once.contains(name)), "everything: {seen:?}");
            assert!(seen.is_sorted(), "{seen:?}");
        },
    )
    .await;
}

#[tokio::test]
async fn lists_can_be_filtered() {
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            let key = SigningKey::generate().unwrap();
            ada.call(&format!("{API}/namespaces/acme")).await.ok(201);
            let public = json!({"public_key": key.public_key().to_base64()});
            ada.post(&format!("{API}/namespaces/acme/keys"), &public).await.ok(201);
            draft("acme/signed", "1.0.0").signed(&key).publish(server, &ada).await;
            let mut other = draft("plain", "1.0.0");
            other.facts.tags = vec!["files".to_owned()];
            other.facts.author = Some("Bob".to_owned());
            other.publish(server, &ada).await;
            let list = async |query: &str| {
                names(&server.stranger().get(&format!("{API}/skills?{query}")).await.ok(200))
            };
            assert_eq!(list("").await.len(), 2);
            assert_eq!(list("tag=files").await, ["plain"]);
            assert_eq!(list("tier=community").await, ["acme/signed"]);
            assert_eq!(list("tier=verified").await, [""; 0]);
            assert_eq!(list("author=Bob").await, ["plain"]);
            assert_eq!(list("namespace=acme").await, ["acme/signed"]);
            assert_eq!(list("namespace=_").await, ["plain"]);
            assert_eq!(list("updated_since=2020-01-01T00:00:00Z").await, ["acme/signed", "plain"]);
            assert_eq!(list("updated_since=2999-01-01T00:00:00Z").await, [""; 0]);
            assert_eq!(list("sort=recent").await, ["plain", "acme/signed"]);
            let page =
                server.stranger().get(&format!("{API}/skills?page=2&per_page=1")).await.ok(200);
            assert_eq!((&page["total"], &page["page"]), (&json!(2), &json!(2)));
            // The first page has both the page numbers of GAIA and a cursor.
            let first = server.stranger().get(&format!("{API}/skills?per_page=1")).await.ok(200);
            let numbers = (&first["page"], &first["per_page"], &first["total"]);
            assert_eq!(numbers, (&json!(1), &json!(1), &json!(2)));
            assert!(first["next_cursor"].is_string(), "{first}");
            assert_eq!(names(&page).len(), 1);
            // Yanked versions are not listed.
            ada.post(&format!("{API}/skills/plain/1.0.0/yank"), &json!({"yanked": true}))
                .await
                .ok(200);
            assert_eq!(list("").await, ["acme/signed"]);
        },
    )
    .await;
}

/// A package with one version, whose archive is never requested.
fn bare(number: usize) -> Record {
    let digest = sha256_hex(number.to_string().as_bytes());
    let version = VersionRecord {
        version: "1.0.0".to_owned(),
        integrity: "sha256-x".to_owned(),
        sha256: digest.clone(),
        skill_md: digest,
        ..VersionRecord::default()
    };
    Record::Package(Box::new(PackageRecord {
        name: format!("tool-{number:05}").parse().unwrap(),
        created_by: None,
        created_at: 1,
        updated_at: 1,
        deprecated: None,
        versions: vec![version],
    }))
}

#[tokio::test]
async fn page_number_has_a_maximum() {
    const ALL: usize = 10_050;
    for_each_server(
        |_| {},
        async |server| {
            let registry = server.database.registry(&server.storage);
            let mut import = registry.import(&Actor::operator()).await.unwrap();
            for number in 1..=ALL {
                import.push(bare(number)).await.unwrap();
            }
            import.finish().await.unwrap();
            let page = async |query: &str| {
                server.stranger().get(&format!("{API}/skills?{query}")).await.ok(200)
            };
            for (number, first, last) in [(1, 1, 100), (57, 5601, 5700), (100, 9901, 10_000)] {
                let found = page(&format!("page={number}&per_page=100")).await;
                let expected: Vec<_> = (first..=last).map(|n| format!("tool-{n:05}")).collect();
                assert_eq!(names(&found), expected);
                assert!(found["total"].as_u64().unwrap() >= 10_000, "{}", found["total"]);
            }
            assert_eq!(names(&page("page=100").await).len(), 20);
            let reply = server.stranger().get(&format!("{API}/skills?page=101")).await;
            reply.refused(400, "invalid_request");
            // Later pages need the cursor of the last numbered page.
            let (mut seen, mut cursor) = (0, String::new());
            loop {
                let found = page(&format!("per_page=100{cursor}")).await;
                seen += names(&found).len();
                let Some(next) = found["next_cursor"].as_str() else { break };
                cursor = format!("&cursor={next}");
            }
            assert_eq!(seen, ALL);
        },
    )
    .await;
}

#[tokio::test]
async fn invalid_queries_are_rejected() {
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            publish(server, &ada, "tool", "1.0.0").await;
            let stranger = server.stranger();
            for (path, status, code) in [
                ("api/v1/skills?cursor=nonsense!", 400, "invalid_request"),
                ("api/v1/skills?page=0", 400, "invalid_request"),
                ("api/v1/skills?page=101", 400, "invalid_request"),
                ("api/v1/skills?page=x", 400, "invalid_request"),
                ("api/v1/skills?per_page=0", 400, "invalid_request"),
                ("api/v1/skills?per_page=101", 400, "invalid_request"),
                ("api/v1/skills?tier=golden", 400, "invalid_request"),
                ("api/v1/skills?updated_since=yesterday", 400, "invalid_request"),
                ("api/v1/skills?sort=size", 400, "invalid_request"),
                ("api/v1/skills?page=1&cursor=x", 400, "invalid_request"),
                ("api/v1/skills?yanked=all", 400, "invalid_request"),
                ("api/v1/skills?yanked=include&tag=x", 400, "invalid_request"),
                ("api/v1/skills?yanked=include&sort=recent", 400, "invalid_request"),
                ("api/v1/skills/UPPER", 400, "invalid_request"),
                ("api/v1/skills/..%2F..%2Fetc", 400, "invalid_request"),
                ("api/v1/skills/%FF", 400, "invalid_request"),
                ("api/v1/skills/none", 404, "not_found"),
                ("api/v1/skills/tool/9.9.9", 404, "not_found"),
                ("api/v1/skills/tool/1.x", 400, "invalid_request"),
                ("api/v1/skills/acme/none", 404, "not_found"),
                ("api/v1/skills/tool/download?version=^9", 404, "not_found"),
                ("api/v1/skills/tool/download?version=!!", 400, "invalid_request"),
                ("api/v1/search?tier=golden", 400, "invalid_request"),
                ("api/v1/search?limit=0", 400, "invalid_request"),
                ("index/v1/to/none", 404, "not_found"),
                ("index/v1/xx/tool", 404, "not_found"),
                ("index/v1/closure", 400, "invalid_request"),
                ("index/v1/closure?name=A", 400, "invalid_request"),
                ("artifacts/abc/tool-1.0.0.zip", 404, "not_found"),
                ("tool/9.0.0/SKILL.md", 404, "not_found"),
                ("nothing/at/all", 404, "not_found"),
            ] {
                stranger.get(&format!("/registry/{path}")).await.refused(status, code);
            }
            let many = (0..101).map(|n| format!("name=n{n}")).collect::<Vec<_>>().join("&");
            let reply = stranger.get(&format!("/registry/index/v1/closure?{many}")).await;
            reply.refused(400, "invalid_request");
            for (method, path) in [
                (Method::DELETE, "/registry/api/v1/skills/tool"),
                (Method::PUT, "/registry/index/v1/config.json"),
                (Method::POST, "/registry/api/v1/search"),
            ] {
                let reply = Reply::of(stranger.request(method, path)).await;
                reply.refused(405, "method_not_allowed");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn published_skill_is_searchable_soon() {
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            let mut draft = draft("acme/zebra", "1.0.0");
            draft.facts.description = "counts stripes of quaggas".to_owned();
            draft.publish(server, &ada).await;
            let began = Instant::now();
            let found = loop {
                let reply = server.stranger().get(&format!("{API}/search?q=quaggas")).await;
                if reply.status == 200 && !names(&reply.json()).is_empty() {
                    break reply.json();
                }
                assert!(began.elapsed() < Duration::from_secs(30), "not found: {}", reply.text);
                tokio::time::sleep(Duration::from_millis(50)).await;
            };
            assert_eq!(names(&found), ["acme/zebra"]);
            assert_eq!((&found["query"], &found["total"]), (&json!("quaggas"), &json!(1)));
            let none = server.stranger().get(&format!("{API}/search?q=quaggas&tag=none")).await;
            assert_eq!(names(&none.ok(200)), [""; 0]);
            for (query, expected) in [
                ("namespace=acme", &["acme/zebra"][..]),
                ("namespace=other&namespace=acme&namespace=", &["acme/zebra"]),
                ("namespace=other", &[]),
                ("namespace=_/zebra", &[]),
                ("namespace=ACME", &[]),
            ] {
                let found = server.stranger().get(&format!("{API}/search?q=quaggas&{query}")).await;
                assert_eq!(names(&found.ok(200)), expected, "{query}");
            }
            let many = "&namespace=a".repeat(501);
            let refused = server.stranger().get(&format!("{API}/search?q=quaggas{many}")).await;
            refused.refused(400, "invalid_request");
        },
    )
    .await;
}

#[tokio::test]
async fn dependencies_are_resolved_with_one_request() {
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            let needs = async |name: &str, needs: &[&str]| {
                let mut draft = draft(name, "1.0.0");
                draft.facts.needs = needs.iter().map(|need| (*need).to_owned()).collect();
                draft.publish(server, &ada).await;
            };
            needs("top", &["acme/middle@^1.0", "gone@^1.0"]).await;
            needs("acme/middle", &["bottom@^1.0"]).await;
            needs("bottom", &["top@^1.0"]).await;
            needs("other", &[]).await;
            let reply = server.stranger().get("/registry/index/v1/closure?name=top").await;
            assert_eq!(reply.header("content-type"), "application/x-ndjson");
            let lines = reply.text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let names: BTreeSet<String> =
                lines.map(|line| line["name"].as_str().unwrap().to_owned()).collect();
            assert_eq!(names, ["acme/middle", "bottom", "top"].map(str::to_owned).into());
            let config = server.stranger().get("/registry/index/v1/config.json").await.ok(200);
            assert_eq!((&config["version"], &config["closure"]), (&json!(1), &json!(true)));
            assert_eq!(config["base"], format!("http://{}/registry", server.address));
        },
    )
    .await;
}

#[tokio::test]
async fn etag_match_returns_not_modified() {
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            publish(server, &ada, "acme/tool", "1.0.0").await;
            for path in [
                "/registry/index/v1/to/acme/tool",
                "/registry/api/v1/skills/acme/tool",
                "/registry/api/v1/skills/acme/tool/1.0.0",
                "/registry/api/v1/skills",
                "/registry/acme/tool/1.0.0/SKILL.md",
                "/.well-known/agent-skills/index.json",
            ] {
                let stranger = server.stranger();
                let first = stranger.get(path).await;
                assert_eq!(first.status, 200, "{path}");
                let tag = first.header("etag").to_owned();
                assert!(tag.starts_with('"') && tag.len() > 10, "{path}: {tag}");
                for known in [&*tag, "*", &format!("\"x\", {tag}"), &format!("W/{tag}")] {
                    let same = stranger.header("if-none-match", known).get(path).await;
                    assert_eq!((same.status.as_u16(), &*same.text), (304, ""), "{path} {known}");
                    assert_eq!(same.header("etag"), tag);
                }
                let other = stranger.header("if-none-match", "\"other\"").get(path).await;
                assert_eq!((other.status.as_u16(), &other.text), (200, &first.text), "{path}");
                let head = Reply::of(stranger.request(Method::HEAD, path)).await;
                assert_eq!((head.status.as_u16(), &*head.text), (200, ""), "{path}");
                assert_eq!(head.header("etag"), tag, "{path}");
                assert_eq!(head.header("content-length"), other.header("content-length"), "{path}");
            }
            let path = "/registry/index/v1/to/acme/tool";
            let before = server.stranger().get(path).await.header("etag").to_owned();
            ada.post(&format!("{API}/skills/acme/tool/1.0.0/yank"), &json!({"yanked": true})).await;
            let after = server.stranger().header("if-none-match", &before).get(path).await;
            assert_eq!(after.status, 200);
            assert_eq!(after.header("cache-control"), "public, max-age=60, must-revalidate");
        },
    )
    .await;
}

#[tokio::test]
async fn frequent_responses_are_cached() {
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            publish(server, &ada, "acme/tool", "1.0.0").await;
            let remembered = async || {
                let metrics = server.stranger().get("/metrics").await.text;
                let name = "savoir_registry_remembered_total ";
                let line = metrics.lines().find_map(|line| line.strip_prefix(name));
                line.unwrap().parse::<u64>().unwrap()
            };
            let before = remembered().await;
            for _ in 0..5 {
                index(server, "acme/tool").await;
            }
            assert_eq!(remembered().await - before, 4);
        },
    )
    .await;
}

#[tokio::test]
async fn well_known_index_lists_skills() {
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            publish(server, &ada, "acme/tool", "1.0.0").await;
            let mut alone = draft("alone", "1.0.0");
            alone.tree = super::tree(&[("SKILL.md", b"---\nname: alone\n---\nHi\n")]);
            alone.publish(server, &ada).await;
            for path in ["/.well-known", "/registry/.well-known"] {
                let list_path = format!("{path}/agent-skills/index.json");
                let list = server.stranger().get(&list_path).await.ok(200);
                let skills = list["skills"].as_array().unwrap();
                assert_eq!(skills.len(), 2, "{list}");
                for (skill, kind) in skills.iter().zip(["archive", "skill-md"]) {
                    assert_eq!(skill["type"], kind, "{skill}");
                    let url = skill["url"].as_str().unwrap();
                    let path = url.strip_prefix(&format!("http://{}", server.address)).unwrap();
                    let bytes = bytes(&server.stranger(), path).await;
                    let digest = savoir_skill::digest::sha256_hex(&bytes);
                    assert_eq!(skill["digest"], format!("sha256:{digest}"), "{url}");
                    // Clients of draft 0.1 fetch each file separately.
                    let (name, folder) = (skill["name"].as_str().unwrap(), path_of(&list_path));
                    let files = skill["files"].as_array().unwrap();
                    assert!(files.contains(&json!("SKILL.md")), "{skill}");
                    for file in files {
                        let path = format!("{folder}/{name}/{}", file.as_str().unwrap());
                        let reply = server.stranger().get(&path).await;
                        assert_eq!(reply.status, 200, "{path}");
                        assert_eq!(reply.header("x-content-type-options"), "nosniff");
                        let kind = reply.header("content-type").to_owned();
                        assert!(
                            !kind.contains("html") && !reply.header("etag").is_empty(),
                            "{kind}"
                        );
                    }
                    for wrong in ["SKILL.MD", "..%2Ftool%2FSKILL.md", "a/../../x", "none.txt"] {
                        let reply =
                            server.stranger().get(&format!("{folder}/{name}/{wrong}")).await;
                        assert!([400, 404].contains(&reply.status.as_u16()), "{wrong}");
                    }
                }
            }
            // A namespace that sorts before another one does not take its name in the index.
            publish(server, &ada, "aaa/tool", "1.0.0").await;
            // Other tools do not accept names of more than 64 characters.
            let long = format!("{}/{}", "n".repeat(30), "s".repeat(34));
            publish(server, &ada, &long, "1.0.0").await;
            let list = server.stranger().get("/.well-known/agent-skills/index.json").await.ok(200);
            let names: Vec<&Value> =
                list["skills"].as_array().unwrap().iter().map(|skill| &skill["name"]).collect();
            assert_eq!(names, ["aaa-tool", "acme-tool", "alone"]);
            let text = server.stranger().get("/registry/acme/tool/1.0.0/SKILL.md").await;
            assert_eq!(text.header("content-type"), "text/markdown; charset=utf-8");
            assert!(text.text.contains("Do what acme/tool does."), "{}", text.text);
        },
    )
    .await;
}

#[tokio::test]
async fn missing_well_known_path_refers_to_the_index() {
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            publish(server, &ada, "acme/tool", "1.0.0").await;
            let index = "/registry/.well-known/agent-skills/index.json";
            for place in ["", "/registry"] {
                for path in ["", "acme-tool", "acme-tool/none.txt", "none/SKILL.md", "a/b/c"] {
                    let path = format!("{place}/.well-known/agent-skills/{path}");
                    let message = server.stranger().get(&path).await.refused(404, "not_found");
                    let whole = format!("http://{}{index}", server.address);
                    assert!(message.contains(&whole), "{path}: {message}");
                }
            }
            server.stranger().get(index).await.ok(200);
        },
    )
    .await;
}

fn path_of(index: &str) -> &str {
    index.strip_suffix("/index.json").unwrap()
}

async fn bytes(who: &Client, path: &str) -> Vec<u8> {
    let response = who.request(Method::GET, path).send().await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    response.bytes().await.unwrap().to_vec()
}

#[tokio::test]
async fn reads_work_without_a_writable_database() {
    let counted = |config: &mut savoir_server::Config| config.limits.all = 1000;
    for_each_server(counted, async |server| {
        let ada = server.register("ada@example.org").await;
        let published = draft("acme/tool", "1.0.0").publish(server, &ada).await;
        server.behind_its_back("DROP TABLE rate_limits").await;
        for path in [
            "/registry/index/v1/config.json",
            "/registry/index/v1/to/acme/tool",
            "/registry/index/v1/closure?name=acme/tool",
            "/registry/api/v1/skills/acme/tool/1.0.0",
            "/registry/api/v1/skills/acme/tool/download",
            &format!("/registry/artifacts/{}/tool-1.0.0.zip", published.sha256),
        ] {
            assert_eq!(server.stranger().get(path).await.status, 200, "{path}");
        }
        // Changes must be recorded, so they fail.
        let yank = json!({"yanked": true});
        let yank = ada.post("/registry/api/v1/skills/acme/tool/1.0.0/yank", &yank).await;
        assert!(yank.status.is_server_error(), "{}", yank.status);
    })
    .await;
}

#[tokio::test]
async fn private_registry_requires_an_account() {
    let private = |config: &mut savoir_server::Config| config.registry.readers = Readers::Accounts;
    for_each_server(private, async |server| {
        let (ada, bob) =
            (server.register("ada@example.org").await, server.register("bob@example.org").await);
        let published = draft("acme/tool", "1.0.0").publish(server, &ada).await;
        let artefact = format!("/registry/artifacts/{}/tool-1.0.0.zip", published.sha256);
        let reader = program(server, &bob, &json!({"scopes": ["read"]})).await;
        let other = program(server, &bob, &json!({"scopes": ["publish", "owner", "yank"]})).await;
        for path in [
            "/registry/index/v1/to/acme/tool",
            "/registry/index/v1/config.json",
            "/registry/index/v1/closure?name=acme/tool",
            "/registry/api/v1/skills",
            "/registry/api/v1/skills/acme/tool",
            "/registry/api/v1/skills/acme/tool/1.0.0",
            "/registry/api/v1/skills/acme/tool/1.0.0/signatures",
            "/registry/api/v1/skills/acme/tool/download",
            "/registry/api/v1/namespaces/acme/members",
            "/registry/api/v1/namespaces/acme/keys",
            "/registry/acme/tool/1.0.0/SKILL.md",
            "/.well-known/agent-skills/index.json",
            "/.well-known/agent-skills/acme-tool/SKILL.md",
            "/registry/.well-known/agent-skills/acme-tool/SKILL.md",
            &artefact,
        ] {
            // The second request is answered from the cache, which also checks access.
            for _ in 0..2 {
                let reply = bob.get(path).await;
                assert_eq!(reply.status, 200, "{path}");
                // Shared caches must not store the response.
                assert!(!reply.header("cache-control").contains("public"), "{path}");
                let mut vary = reply.headers.get_all("vary").iter();
                assert!(vary.any(|value| value == "authorization"), "{path}");
                assert_eq!(reader.get(path).await.status, 200, "{path}");
                server.stranger().get(path).await.refused(401, "unauthorized");
                other.get(path).await.refused(403, "forbidden_scope");
            }
        }
    })
    .await;
}

/// Waits until a search has results.
async fn finds(server: &TestServer, words: &str) -> Vec<String> {
    let began = Instant::now();
    loop {
        let reply = server.stranger().get(&format!("{API}/search?q={words}")).await;
        if reply.status == 200 && !names(&reply.json()).is_empty() {
            return names(&reply.json());
        }
        assert!(began.elapsed() < Duration::from_secs(40), "{words}: {}", reply.text);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn unwritable_search_index_is_rebuilt() {
    let folder = tempfile::TempDir::new().unwrap();
    let at = folder.path().to_owned();
    let server = TestServer::with(|config| config.registry.search_folder = Some(at)).await;
    let ada = server.register("ada@example.org").await;
    publish(&server, &ada, "acme/zebra", "1.0.0").await;
    assert_eq!(finds(&server, "zebra").await, ["acme/zebra"]);
    // Renaming the folder makes every write fail, even one in progress.
    let elsewhere = tempfile::TempDir::new().unwrap();
    std::fs::rename(folder.path().join("0/index"), elsewhere.path().join("index")).unwrap();
    publish(&server, &ada, "acme/quagga", "1.0.0").await;
    assert_eq!(finds(&server, "quagga").await, ["acme/quagga"]);
    assert_eq!(finds(&server, "zebra").await, ["acme/zebra"]);
}
