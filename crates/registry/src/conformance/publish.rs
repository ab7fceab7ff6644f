//! Checks publishing and permissions.

use std::time::{Duration, Instant};

use savoir_skill::digest::sha256_hex;
use serde_json::Value;

use super::{
    CheckFailure, CheckResult, ConformanceCheck, TestedRegistry, check_table, ensure, fail,
    sample::{TestSkill, text, text_of, zip},
    tokens::forged,
};

/// Time after which a search must find a published skill.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn checks() -> Vec<ConformanceCheck> {
    check_table! { Publish:
        Token "created" => created, "Publishing a form returns 201 and the published version.";
        Token "bare" => bare, "A bare zip can be published as well.";
        Token "read-index" => read_index, "A published version is in its index at once.";
        Token "read-detail" => read_detail,
            "A published version is in the details of its skill at once.";
        Token "read-version" => read_version, "A published version has its details at once.";
        Token "read-download" => read_download, "A published version can be downloaded at once.";
        Token "read-search" => read_search, "A search finds a published skill within five seconds.";
        Token "same-bytes" => same_bytes,
            "Publishing a version again with the same bytes is refused.";
        Token "other-bytes" => other_bytes,
            "Publishing a version again with other bytes is refused and changes nothing.";
        Token "build-metadata" => build_metadata,
            "A version that differs only in build metadata is refused as existing.";
        Token "higher" => higher, "A higher version becomes the latest; a lower one does not.";
        Token "skill-part" => skill_part,
            "A SKILL.md next to the archive must be identical to the one in it.";
        Token "no-artifact" => no_artifact, "A form without an archive is refused.";
        Token "not-a-zip" => not_a_zip, "A file that is not a zip is refused.";
        Token "zero" => zero, "0.0.0 cannot be published.";
        Token "name-differs" => name_differs,
            "The folder of an archive must have the name of the skill.";
        Token "reserved" => reserved, "Reserved names need permission.";
        NoToken "no-token" => no_token, "Publishing without a token is refused.";
        NoToken "forged-tokens" => forged_tokens,
            "Publishing with a forged token is refused, always with the same error.";
        NoToken "huge-token" => huge_token,
            "A huge token is refused, and the registry still answers.";
        TwoAccounts "other-owner" => other_owner,
            "Publishing a version of a skill of another owner is refused.";
        Token "anonymous" => anonymous,
            "The registry assigns versions to texts in the namespace anon.";
    }
}

async fn created(registry: &TestedRegistry) -> CheckResult {
    let skill = registry.skill("created", "1.0.0", "Created.")?;
    let answer = registry.put(&skill).await?.value()?;
    let published = &answer["published"];
    ensure(published["name"] == skill.full && published["version"] == "1.0.0", || {
        format!("the response has {} {}", published["name"], published["version"])
    })?;
    let latest = &published["latest_version"];
    ensure(latest == "1.0.0", || format!("`latest_version` is {latest}"))?;
    let tier = &published["security_tier"];
    ensure(tier == "experimental", || format!("`security_tier` is {tier}"))?;
    let digest = sha256_hex(&skill.zip);
    let said = &published["artifact"]["sha256"];
    ensure(*said == digest, || format!("`artifact.sha256` is {said}"))?;
    ensure(published.get("audit").is_some(), || "there is no `audit`".to_owned())
}

async fn bare(registry: &TestedRegistry) -> CheckResult {
    let skill = registry.skill("bare", "1.0.0", "Bare.")?;
    registry.publish_bare(&skill.zip).with_publisher_token().send().await?.is(&[201])?;
    is_there(registry, &skill).await
}

/// Fails unless the index has a version with these bytes.
async fn is_there(registry: &TestedRegistry, skill: &TestSkill) -> CheckResult {
    let line = registry.line(&skill.full, &skill.version).await?;
    let bytes = registry.artifact(&line).await?.bytes;
    ensure(bytes == skill.zip, || format!("{} {} has other bytes", skill.full, skill.version))
}

async fn read_index(registry: &TestedRegistry) -> CheckResult {
    for number in 0..3 {
        let skill = registry.put_new(&format!("read-{number}"), "1.0.0", "Read.").await?;
        is_there(registry, &skill).await?;
    }
    Ok(())
}

async fn read_detail(registry: &TestedRegistry) -> CheckResult {
    let skill = registry.put_new("detail", "1.0.0", "Detail.").await?;
    let path = format!("api/v1/skills/{}", skill.full);
    for version in ["1.0.0", "1.0.1"] {
        if version != "1.0.0" {
            registry.put_new("detail", version, "Detail.").await?;
        }
        let detail = registry.get(&path).send().await?.is(&[200])?.value()?;
        let latest = &detail["latest_version"];
        ensure(latest == version, || {
            format!("{version} was published, but the latest is {latest}")
        })?;
        let first = &detail["versions"][0]["version"];
        ensure(first == version, || format!("the first version is {first}"))?;
    }
    Ok(())
}

async fn read_version(registry: &TestedRegistry) -> CheckResult {
    let skill = registry.put_new("version", "1.0.0", "Version.").await?;
    let path = format!("api/v1/skills/{}/1.0.0", skill.full);
    let version = registry.get(&path).send().await?.is(&[200])?.value()?;
    ensure(version["skill_md"] == skill.text, || "`skill_md` differs".to_owned())
}

async fn read_download(registry: &TestedRegistry) -> CheckResult {
    let skill = registry.put_new("download", "1.0.0", "Download.").await?;
    let path = format!("api/v1/skills/{}/download", skill.full);
    let bytes = registry.get(&path).send().await?.is(&[200])?.bytes;
    ensure(bytes == skill.zip, || "the download has other bytes".to_owned())
}

async fn read_search(registry: &TestedRegistry) -> CheckResult {
    let skill = registry.put_new("search", "1.0.0", "Search.").await?;
    wait_until_found(registry, &skill.last, &skill.full).await
}

/// Fails unless a search finds a skill in time.
pub(super) async fn wait_until_found(
    registry: &TestedRegistry,
    query: &str,
    name: &str,
) -> CheckResult {
    let begun = Instant::now();
    loop {
        let found = registry.get("api/v1/search").query("q", query).send().await?;
        let found = found.is(&[200])?.value()?;
        let mut items = found["items"].as_array().into_iter().flatten();
        if items.any(|item| item["name"] == name) {
            return Ok(());
        }
        if begun.elapsed() > SEARCH_TIMEOUT {
            return Err(fail(format!("`{query}` does not find {name} within five seconds")));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn same_bytes(registry: &TestedRegistry) -> CheckResult {
    let skill = registry.put_new("same", "1.0.0", "Same.").await?;
    for _ in 0..2 {
        let again = registry.publish(&skill.zip, &[]).with_publisher_token().send().await?;
        again.error(409, "version_exists")?;
    }
    is_there(registry, &skill).await
}

async fn other_bytes(registry: &TestedRegistry) -> CheckResult {
    let skill = registry.put_new("other", "1.0.0", "First.").await?;
    let other = registry.skill("other", "1.0.0", "Second.")?;
    let again = registry.publish(&other.zip, &[]).with_publisher_token().send().await?;
    again.error(409, "version_exists")?;
    is_there(registry, &skill).await
}

async fn build_metadata(registry: &TestedRegistry) -> CheckResult {
    let skill = registry.put_new("build", "1.0.0", "First.").await?;
    let other = registry.skill("build", "1.0.0+second", "Second.")?;
    let again = registry.publish(&other.zip, &[]).with_publisher_token().send().await?;
    again.error(409, "version_exists")?;
    is_there(registry, &skill).await
}

async fn higher(registry: &TestedRegistry) -> CheckResult {
    for (version, latest) in
        [("1.0.0", "1.0.0"), ("1.10.0", "1.10.0"), ("1.9.0", "1.10.0"), ("2.0.0-rc.1", "1.10.0")]
    {
        let skill = registry.skill("higher", version, "Higher.")?;
        let answer = registry.put(&skill).await?.value()?;
        let said = &answer["published"]["latest_version"];
        ensure(said == latest, || format!("after {version} the latest is {said}"))?;
    }
    Ok(())
}

async fn skill_part(registry: &TestedRegistry) -> CheckResult {
    let skill = registry.skill("part", "1.0.0", "Part.")?;
    let other = text(&skill.last, "1.0.0", "Another text.");
    let answer =
        registry.publish(&skill.zip, &[("skill", &other)]).with_publisher_token().send().await?;
    answer.is(&[400])?.code()?;
    registry.index(&skill.full).await?.is(&[404])?;
    let right = registry
        .publish(&skill.zip, &[("skill", &skill.text)])
        .with_publisher_token()
        .send()
        .await?;
    right.is(&[201]).map(drop)
}

async fn no_artifact(registry: &TestedRegistry) -> CheckResult {
    let body = b"--x\r\nContent-Disposition: form-data; name=\"changelog\"\r\n\r\nhi\r\n--x--\r\n";
    let ask = registry.post("api/v1/skills").body("multipart/form-data; boundary=x", body.to_vec());
    ask.with_publisher_token().send().await?.is(&[400])?.code().map(drop)
}

async fn not_a_zip(registry: &TestedRegistry) -> CheckResult {
    for bytes in [b"hello".to_vec(), Vec::new(), b"PK\x03\x04".to_vec()] {
        let answer = registry.publish_bare(&bytes).with_publisher_token().send().await?;
        answer.is(&[400])?.code()?;
    }
    Ok(())
}

async fn zero(registry: &TestedRegistry) -> CheckResult {
    let skill = registry.skill("zero", "0.0.0", "Zero.")?;
    registry.publish(&skill.zip, &[]).with_publisher_token().send().await?.is(&[400])?.code()?;
    registry.index(&skill.full).await?.is(&[404]).map(drop)
}

async fn name_differs(registry: &TestedRegistry) -> CheckResult {
    let (name, other) = (registry.name("differs"), registry.name("otherwise"));
    let zip = zip(&other, &text(&name, "1.0.0", "Differs."))?;
    registry.publish(&zip, &[]).with_publisher_token().send().await?.is(&[400])?.code()?;
    for name in [name, other] {
        registry.index(&registry.full_name(&name)).await?.is(&[404])?;
    }
    Ok(())
}

async fn reserved(registry: &TestedRegistry) -> CheckResult {
    let whoami = registry.get("api/v1/whoami").with_publisher_token().send().await?;
    if whoami.status == 200 && whoami.value()?["role"] == "admin" {
        return Err(CheckFailure::Skipped("the token belongs to an administrator".to_owned()));
    }
    for prefix in ["amd", "gaia", "mcp"] {
        let name = format!("{prefix}-{}", registry.name("reserved"));
        let zip = zip(&name, &text(&name, "1.0.0", "Reserved."))?;
        let ask = registry.post("api/v1/skills").body("application/zip", zip);
        ask.with_publisher_token().send().await?.error(403, "forbidden_scope")?;
    }
    Ok(())
}

async fn no_token(registry: &TestedRegistry) -> CheckResult {
    let skill = registry.skill("no-token", "1.0.0", "No token.")?;
    registry.publish(&skill.zip, &[]).send().await?.error(401, "unauthorized")?;
    registry.publish_bare(&skill.zip).send().await?.error(401, "unauthorized")?;
    let basic = registry.publish(&skill.zip, &[]).header("authorization", "Basic YTpi");
    basic.send().await?.error(401, "unauthorized")?;
    registry.index(&skill.full).await?.is(&[404]).map(drop)
}

async fn forged_tokens(registry: &TestedRegistry) -> CheckResult {
    let skill = registry.skill("forged", "1.0.0", "Forged.")?;
    let mut said: Option<Value> = None;
    for (what, token) in forged() {
        let answer = registry.publish(&skill.zip, &[]).bearer(&token).send().await?;
        let answer = answer.error(401, "unauthorized").map_err(|miss| match miss {
            CheckFailure::Failed(why) => fail(format!("{what}: {why}")),
            skipped @ CheckFailure::Skipped(_) => skipped,
        })?;
        let error = answer.value()?["error"].clone();
        let first = said.get_or_insert_with(|| error.clone());
        ensure(*first == error, || format!("{what}: the error differs: {error}"))?;
    }
    registry.index(&skill.full).await?.is(&[404]).map(drop)
}

async fn huge_token(registry: &TestedRegistry) -> CheckResult {
    for length in [10_000, 100_000, 1 << 20] {
        let answer = registry.post("api/v1/skills").bearer(&"x".repeat(length)).send().await;
        // A server may close the connection because of a huge header.
        if let Ok(answer) = answer {
            answer.is(&[400, 401, 413, 431])?;
        }
    }
    registry.get("index/v1/config.json").send().await?.is(&[200]).map(drop)
}

async fn other_owner(registry: &TestedRegistry) -> CheckResult {
    registry.put_new("owned", "1.0.0", "Owned.").await?;
    let next = registry.skill("owned", "1.1.0", "Taken over.")?;
    let answer = registry.publish(&next.zip, &[]).with_other_token().send().await?;
    answer.error(403, "forbidden_scope")?;
    let lines = registry.index(&next.full).await?.is(&[200])?.lines()?;
    ensure(lines.len() == 1, || "the version was published nevertheless".to_owned())?;
    let path = format!("api/v1/skills/{}/1.0.0/yank", next.full);
    let yank = registry.post(&path).json(&serde_json::json!({"yanked": true})).with_other_token();
    yank.send().await?.error(403, "forbidden_scope").map(drop)
}

async fn anonymous(registry: &TestedRegistry) -> CheckResult {
    let name = registry.name("prose");
    // The name of a text without frontmatter is its heading.
    let prose = format!("# {name}\n\nTell a story about {}.\n", registry.rare_word());
    let zip = zip(&name, &prose)?;
    let ask = registry.post("api/v1/skills").query("namespace", "anon");
    let answer = ask
        .body("application/zip", zip)
        .with_publisher_token()
        .send()
        .await?
        .is(&[201])?
        .value()?;
    let published = &answer["published"];
    let (full, version) = (text_of(published, "name")?, text_of(published, "version")?);
    ensure(full == format!("anon/{name}"), || format!("its name is `{full}`"))?;
    ensure(version.starts_with("0.0."), || format!("its version is `{version}`"))?;
    let path = format!("{full}/{version}/SKILL.md");
    let text = registry.get(&path).send().await?.is(&[200])?.text();
    ensure(text == prose, || "its text differs".to_owned())
}
