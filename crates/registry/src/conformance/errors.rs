//! Checks error responses.

use reqwest::Method;
use serde_json::json;

use super::{CheckResult, ConformanceCheck, TestedRegistry, check_table, ensure, sample::text};

pub(super) fn checks() -> Vec<ConformanceCheck> {
    check_table! { Errors:
        NoToken "not-found" => not_found, "What does not exist is 404 not_found.";
        NoToken "method" => method,
            "A wrong method is 405 method_not_allowed, with the allowed methods.";
        NoToken "unauthorized" => unauthorized, "A request without a token is 401 unauthorized.";
        Token "media-type" => media_type,
            "A body of another media type is 415 unsupported_media_type.";
        Token "artifact" => artifact, "A bad archive is 400 invalid_artifact.";
        Token "manifest" => manifest, "A bad SKILL.md is 400 invalid_skill_manifest.";
        Token "request" => request, "A bad body is 400 invalid_request.";
        Token "exists" => exists, "An existing version is 409 version_exists.";
        Token "too-large" => too_large, "An archive that is too large is 413 artifact_too_large.";
        Token "audit" => audit, "An invalid report is 400 invalid_audit_report.";
        NoToken "json" => is_json, "Errors are JSON, whatever the Accept header says.";
    }
}

async fn not_found(registry: &TestedRegistry) -> CheckResult {
    let nobody = registry.name("nobody");
    for path in [
        format!("api/v1/skills/{nobody}"),
        format!("api/v1/skills/{nobody}/1.0.0"),
        format!("api/v1/skills/{nobody}/download"),
        super::sample::index_path(&nobody),
        format!("artifacts/{}/x-1.0.0.zip", "0".repeat(64)),
        "no/such/thing/at/all".to_owned(),
    ] {
        registry.get(&path).send().await?.error(404, "not_found")?;
    }
    Ok(())
}

async fn method(registry: &TestedRegistry) -> CheckResult {
    for (method, path) in [
        (Method::DELETE, "api/v1/skills"),
        (Method::PUT, "api/v1/skills"),
        (Method::POST, "api/v1/search"),
        (Method::PATCH, "index/v1/config.json"),
    ] {
        let url = format!("{}/{path}", registry.base());
        let answer = registry.ask(method, url).send().await?;
        let answer = answer.error(405, "method_not_allowed")?;
        let allowed = answer.need("allow")?;
        ensure(!allowed.is_empty(), || "Allow is empty".to_owned())?;
    }
    Ok(())
}

async fn unauthorized(registry: &TestedRegistry) -> CheckResult {
    registry.post("api/v1/skills").send().await?.error(401, "unauthorized")?;
    let nobody = registry.name("nobody");
    let path = format!("api/v1/skills/{nobody}/1.0.0/yank");
    let yank = registry.post(&path).json(&json!({"yanked": true}));
    yank.send().await?.error(401, "unauthorized")?;
    let whoami = registry.ask(Method::GET, format!("{}/api/v1/whoami", registry.base()));
    whoami.send().await?.error(401, "unauthorized").map(drop)
}

async fn media_type(registry: &TestedRegistry) -> CheckResult {
    for kind in ["application/json", "text/plain", "application/x-tar"] {
        let ask = registry.post("api/v1/skills").body(kind, b"{}".to_vec()).with_publisher_token();
        ask.send().await?.error(415, "unsupported_media_type")?;
    }
    Ok(())
}

async fn artifact(registry: &TestedRegistry) -> CheckResult {
    let answer =
        registry.publish_bare(b"this is not an archive").with_publisher_token().send().await?;
    answer.error(400, "invalid_artifact").map(drop)
}

async fn manifest(registry: &TestedRegistry) -> CheckResult {
    let name = registry.name("manifest");
    for bad in [
        text(&name, "1.0.0", "Hi.").replace("version: \"1.0.0\"", "version: one"),
        text(&name, "1.0.0", "Hi.").replace(&format!("name: {name}"), "name: Not A Name"),
        format!("---\nname: {name}\nversion: \"1.0.0\"\n---\n\nNo description.\n"),
        "---\nname: [\n---\n".to_owned(),
    ] {
        let zip = super::sample::zip(&name, &bad)?;
        let answer = registry.publish(&zip, &[]).with_publisher_token().send().await?;
        answer.error(400, "invalid_skill_manifest")?;
    }
    registry.index(&registry.full_name(&name)).await?.is(&[404]).map(drop)
}

async fn request(registry: &TestedRegistry) -> CheckResult {
    let broken = b"--x\r\nContent-Disposition: form-data; name=\"artifact\"\r\n\r\nPK".to_vec();
    let ask = registry.post("api/v1/skills").body("multipart/form-data; boundary=x", broken);
    ask.with_publisher_token().send().await?.error(400, "invalid_request")?;
    let page = registry.get("api/v1/skills").query("per_page", "many").send().await?;
    page.error(400, "invalid_request").map(drop)
}

async fn exists(registry: &TestedRegistry) -> CheckResult {
    let skill = registry.put_new("exists", "1.0.0", "Exists.").await?;
    let again = registry.publish(&skill.zip, &[]).with_publisher_token().send().await?;
    again.error(409, "version_exists").map(drop)
}

async fn too_large(registry: &TestedRegistry) -> CheckResult {
    let large = vec![b'x'; 12 << 20];
    let mut hung_up = None;
    for _ in 0..5 {
        match registry.publish_bare(&large).with_publisher_token().send().await {
            Ok(answer) => return answer.error(413, "artifact_too_large").map(drop),
            // The response can get lost if the server closes the connection during the upload.
            Err(miss) => hung_up = Some(miss),
        }
    }
    hung_up.map_or(Ok(()), Err)
}

async fn audit(registry: &TestedRegistry) -> CheckResult {
    let skill = registry.skill("audit", "1.0.0", "Audit.")?;
    let answer = registry
        .publish(&skill.zip, &[("audit", "not json")])
        .with_publisher_token()
        .send()
        .await?;
    answer.error(400, "invalid_audit_report")?;
    registry.index(&skill.full).await?.is(&[404]).map(drop)
}

async fn is_json(registry: &TestedRegistry) -> CheckResult {
    let path = format!("api/v1/skills/{}", registry.name("nobody"));
    for kind in ["text/html", "*/*", "application/zip"] {
        let answer = registry.get(&path).header("accept", kind).send().await?.is(&[404])?;
        answer.code()?;
        let said = answer.need("content-type")?;
        ensure(said.starts_with("application/json"), || format!("Content-Type is {said}"))?;
    }
    Ok(())
}
