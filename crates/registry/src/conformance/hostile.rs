//! Checks that malicious archives, texts and requests are rejected.

use std::sync::Arc;

use reqwest::Method;
use serde_json::Value;

use super::{
    CheckFailure, CheckRequirement, CheckResult, ConformanceCheck, Group, TestedRegistry,
    check_table, ensure, fail,
    zips::{HOSTILE_ARCHIVES, HostileArchive},
};

pub(super) fn checks() -> Vec<ConformanceCheck> {
    let mut checks: Vec<ConformanceCheck> = HOSTILE_ARCHIVES.iter().map(archive).collect();
    checks.extend(check_table! { Hostile:
        NoToken "paths" => paths, "Paths with traversal or invalid characters are refused.";
        NoToken "names" => names,
            "Invalid names are not found or refused, and never used as file names.";
        NoToken "cursor" => cursor, "A forged cursor is refused or ignored.";
        NoToken "per-page" => per_page, "Invalid page sizes are refused or limited.";
        NoToken "methods" => methods, "Unknown methods are refused.";
        Token "content-type" => content_type, "Bodies without a valid content type are refused.";
        Token "encoding" => encoding,
            "A body with a content encoding is refused or not decompressed.";
        Token "too-large" => too_large, "A body that is far too large is refused.";
        Token "many-parts" => many_parts, "A form with thousands of parts is refused.";
        Token "deep-json" => deep_json, "JSON that is nested too deeply is refused.";
        NoToken "headers" => headers, "Long headers are refused or ignored.";
        NoToken "alive" => alive, "After all these requests, the registry still answers.";
        NoToken "no-failure" => no_failure, "No request caused a server error (5xx).";
    });
    checks
}

fn archive((id, proves, make): &'static HostileArchive) -> ConformanceCheck {
    ConformanceCheck {
        id: format!("{}/{id}", Group::Hostile.as_str()),
        group: Group::Hostile,
        proves,
        needs: CheckRequirement::Token,
        run: Arc::new(move |registry| Box::pin(refused(registry, id, *make))),
    }
}

/// Fails unless an archive is refused, always with the same code, and nothing is stored.
async fn refused(registry: &TestedRegistry, id: &str, make: fn(&str) -> Vec<u8>) -> CheckResult {
    let name = registry.name(id);
    let zip = make(&name);
    let first = registry.publish_bare(&zip).with_publisher_token().send().await?.refused()?;
    let code = first.code()?;
    let known = [
        "invalid_artifact", "invalid_skill_manifest", "invalid_request", "artifact_too_large",
        "audit_blocked", "audit_review_required",
    ];
    ensure(known.contains(&&*code), || format!("the error code is `{code}`"))?;
    let again =
        registry.publish(&zip, &[]).with_publisher_token().send().await?.refused()?.code()?;
    ensure(code == again, || format!("the error code is `{code}`, then `{again}`"))?;
    let full = registry.full_name(&name);
    registry.index(&full).await?.is(&[404])?;
    registry.get(&format!("api/v1/skills/{full}")).send().await?.is(&[404])?;
    registry.get(&format!("api/v1/skills/{full}/download")).send().await?.is(&[404]).map(drop)
}

/// Fails unless a path is refused with a valid error.
async fn wrong(registry: &TestedRegistry, path: &str) -> CheckResult {
    let answer = registry.get(path).send().await?;
    let answer = answer.is(&[400, 404, 405, 414, 431])?;
    if [414, 431].contains(&answer.status) { Ok(()) } else { answer.code().map(drop) }
}

async fn paths(registry: &TestedRegistry) -> CheckResult {
    for path in [
        "api/v1/skills/..%2f..%2fetc%2fpasswd",
        "api/v1/skills/%2e%2e%2f%2e%2e%2fetc",
        "api/v1/skills/..%5c..%5cwindows",
        "api/v1/skills/%00",
        "api/v1/skills/a%00b/1.0.0",
        "api/v1/skills/%ff%fe",
        "api/v1/skills/a%0d%0aSet-Cookie:%20x",
        "api/v1/skills/a/..%2f1.0.0",
        "api/v1/skills/%c0%ae%c0%ae/x",
        "index/v1/..%2f..%2fconfig.json",
        "index/v1/%2f/etc",
        "index/v1/co/..%2fconfig.json",
        "artifacts/..%2f..%2f/passwd",
        "artifacts/0/..%2f..%2fpasswd",
        "a/b/..%2f/SKILL.md",
    ] {
        wrong(registry, path).await?;
    }
    Ok(())
}

async fn names(registry: &TestedRegistry) -> CheckResult {
    let long = "x".repeat(3000);
    for name in
        ["CON", "nul", "A", "a_b", "-a", "a--b", "1a", "a.b", "über", "a%20b", "_", "*", &long]
    {
        wrong(registry, &format!("api/v1/skills/{name}")).await?;
        wrong(registry, &format!("api/v1/skills/{name}/1.0.0")).await?;
        wrong(registry, &format!("index/v1/co/{name}")).await?;
    }
    Ok(())
}

async fn cursor(registry: &TestedRegistry) -> CheckResult {
    let long = "a".repeat(10_000);
    for cursor in ["x", "-1", "%", "\u{0}", "'; DROP TABLE packages; --", "eyJhIjoxfQ", &long] {
        let answer = registry.get("api/v1/skills").query("cursor", cursor).send().await?;
        answer.is(&[200, 400, 404, 414, 431])?;
    }
    let answer = registry.get("api/v1/skills").query("page", "10000").send().await?;
    let answer = answer.is(&[200, 400])?;
    if answer.status == 400 { answer.code().map(drop) } else { empty(&answer.value()?) }
}

fn empty(page: &Value) -> CheckResult {
    ensure(page["items"].as_array().is_some_and(Vec::is_empty), || {
        "the page is not empty".to_owned()
    })
}

async fn per_page(registry: &TestedRegistry) -> CheckResult {
    for number in ["-1", "0", "101", "1000000", "99999999999999999999", "1.5", "ten", "NaN"] {
        let answer = registry.get("api/v1/skills").query("per_page", number).send().await?;
        let answer = answer.is(&[200, 400])?;
        if answer.status == 400 {
            answer.code()?;
            continue;
        }
        let page = answer.value()?;
        let items = page["items"].as_array().ok_or_else(|| fail("`items` is not a list"))?;
        ensure(items.len() <= 100, || {
            format!("per_page={number} returned {} skills", items.len())
        })?;
    }
    Ok(())
}

async fn methods(registry: &TestedRegistry) -> CheckResult {
    for word in ["FROB", "TRACE", "PROPFIND", "LOCK"] {
        let Ok(method) = Method::from_bytes(word.as_bytes()) else { continue };
        for path in ["api/v1/skills", "index/v1/config.json"] {
            let url = format!("{}/{path}", registry.base());
            registry.ask(method.clone(), url).send().await?.is(&[400, 403, 404, 405])?;
        }
    }
    Ok(())
}

async fn content_type(registry: &TestedRegistry) -> CheckResult {
    for kind in ["", "multipart/form-data", "multipart/form-data; boundary=", "zip", "a/b/c"] {
        let ask = registry
            .post("api/v1/skills")
            .body(kind, b"--x\r\n\r\n".to_vec())
            .with_publisher_token();
        ask.send().await?.is(&[400, 415])?.code()?;
    }
    Ok(())
}

async fn encoding(registry: &TestedRegistry) -> CheckResult {
    let skill = registry.skill("encoding", "1.0.0", "Encoding.")?;
    for encoding in ["gzip", "br", "gzip, gzip, gzip"] {
        let ask = registry.publish_bare(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0]).with_publisher_token();
        ask.header("content-encoding", encoding).send().await?.refused()?;
    }
    registry.index(&skill.full).await?.is(&[404]).map(drop)
}

async fn too_large(registry: &TestedRegistry) -> CheckResult {
    let large = vec![b'x'; 48 << 20];
    // A server may close the connection during the upload.
    if let Ok(answer) = registry.publish_bare(&large).with_publisher_token().send().await {
        answer.is(&[413])?;
    }
    registry.get("index/v1/config.json").send().await?.is(&[200]).map(drop)
}

async fn many_parts(registry: &TestedRegistry) -> CheckResult {
    let part = "--x\r\nContent-Disposition: form-data; name=\"changelog\"\r\n\r\nx\r\n";
    let body = format!("{}--x--\r\n", part.repeat(20_000));
    let ask = registry.post("api/v1/skills").body("multipart/form-data; boundary=x", body.into());
    ask.with_publisher_token().send().await?.refused()?.code().map(drop)
}

async fn deep_json(registry: &TestedRegistry) -> CheckResult {
    let path = format!("api/v1/skills/{}/1.0.0/yank", registry.name("nobody"));
    let body = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let ask = registry.post(&path).body("application/json", body.into()).with_publisher_token();
    ask.send().await?.refused()?.code().map(drop)
}

async fn headers(registry: &TestedRegistry) -> CheckResult {
    let path = "index/v1/config.json";
    for length in [4_000, 60_000] {
        let long = "x".repeat(length);
        for name in ["if-none-match", "accept", "range", "x-forwarded-for", "cookie"] {
            match registry.get(path).header(name, &long).send().await {
                Ok(answer) => answer.is(&[200, 206, 400, 406, 413, 416, 431]).map(drop)?,
                // A server may close the connection.
                Err(CheckFailure::Failed(_)) if length > 30_000 => {}
                Err(miss) => return Err(miss),
            }
        }
    }
    Ok(())
}

async fn alive(registry: &TestedRegistry) -> CheckResult {
    registry.get("index/v1/config.json").send().await?.is(&[200])?;
    if registry.publishes() {
        let skill = registry.put_new("alive", "1.0.0", "Alive.").await?;
        registry.line(&skill.full, "1.0.0").await?;
    }
    registry.get("api/v1/skills").send().await?.is(&[200]).map(drop)
}

async fn no_failure(registry: &TestedRegistry) -> CheckResult {
    let server_errors = registry.server_errors();
    ensure(server_errors.is_empty(), || {
        let some: Vec<&str> = server_errors.iter().take(3).map(String::as_str).collect();
        format!("{} responses were server errors: {}", server_errors.len(), some.join("; "))
    })
}
