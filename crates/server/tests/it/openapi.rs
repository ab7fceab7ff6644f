//! Tests the OpenAPI document and its routes.

use std::collections::BTreeSet;

use reqwest::Method;
use savoir_server::openapi;
use serde_json::Value;

use crate::harness::{Reply, TestServer};

#[test]
fn the_document() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&openapi()).unwrap());
}

#[test]
fn references_in_the_document_resolve() {
    fn walk(value: &Value, document: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| walk(item, document)),
            Value::Object(members) => {
                if let Some(path) = members.get("$ref").and_then(Value::as_str) {
                    assert!(document.pointer(&path[1..]).is_some(), "{path}");
                }
                members.values().for_each(|item| walk(item, document));
            }
            _ => {}
        }
    }
    let document = serde_json::to_value(openapi()).unwrap();
    walk(&document, &document);
}

#[tokio::test]
async fn document_is_served() {
    let server = TestServer::start().await;
    let reply = server.stranger().get("/openapi.json").await;
    assert_eq!(reply.header("content-type"), "application/json");
    assert_eq!(reply.json(), serde_json::to_value(openapi()).unwrap());
}

#[tokio::test]
async fn documented_routes_exist() {
    let server = TestServer::start().await;
    let document = serde_json::to_value(openapi()).unwrap();
    let (mut open, mut names) = (Vec::new(), BTreeSet::new());
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            assert!(operation["summary"].is_string(), "{method} {path} has no summary");
            assert!(operation["tags"][0].is_string(), "{method} {path} has no tag");
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} is there twice");
            for (status, answer) in operation["responses"].as_object().unwrap() {
                assert!(answer["description"].is_string(), "{method} {path} {status}");
            }
            let method: Method = method.to_uppercase().parse().unwrap();
            let asked = path.replace(['{', '}'], "");
            let reply = Reply::of(server.stranger().request(method.clone(), &asked)).await;
            if path.starts_with("/registry/") {
                // The registry has its own error format, and is empty here.
                if operation["security"].is_array() {
                    reply.refused(401, "unauthorized");
                } else {
                    assert_ne!(reply.status, 405, "{method} {path}");
                    assert!(!reply.text.contains("nothing at this address"), "{method} {path}");
                }
            } else if operation["security"].is_array() {
                let text = "Missing or invalid Authorization header";
                assert_eq!(reply.status, 401, "{method} {path}");
                reply.refuses(401, text);
            } else if path.contains("/oidc/") {
                // No provider is configured here.
                assert_eq!(reply.status, 404, "{method} {path}");
                open.push(format!("{method} {path}"));
            } else {
                assert!(![404, 405].contains(&reply.status.as_u16()), "{method} {path}");
                open.push(format!("{method} {path}"));
            }
        }
    }
    open.retain(|route| !route.contains("/publish/"));
    open.sort();
    let index = "GET /.well-known/agent-skills/index.json";
    assert_eq!(
        open,
        [
            "DELETE /api/v1/auth/session",
            index,
            "GET /api/v1/auth/oidc/callback",
            "GET /api/v1/auth/oidc/start",
            "GET /api/v1/auth/session",
            "POST /api/v1/auth/login",
            "POST /api/v1/auth/register",
            "POST /api/v1/auth/session",
            "POST /api/v1/setup",
        ]
    );
}
