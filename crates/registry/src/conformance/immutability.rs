//! Checks that published versions never change.

use futures::future::join_all;
use reqwest::Method;
use serde_json::json;

use super::{
    CheckResult, ConformanceCheck, TestedRegistry, check_table, ensure, fail, sample::TestSkill,
};

/// Number of concurrent uploads of one version.
const CONCURRENT_PUBLISHES: usize = 12;
/// Number of times that the accepted version is downloaded.
const READS_PER_RACE: usize = 20;

pub(super) fn checks() -> Vec<ConformanceCheck> {
    check_table! { Immutability:
        Token "race" => race,
            "Of many concurrent uploads of one version, one succeeds, and the others are refused.";
        Token "race-forms" => race_forms,
            "The same applies to forms and bare zips together, and to the first version of a name.";
        Token "methods" => methods, "No other method changes or removes a published version.";
        Token "yank-keeps" => yank_keeps, "A yanked version can still be downloaded by its digest.";
        Token "yank-unchosen" => yank_unchosen,
            "No range selects a yanked version, and the index marks it as yanked.";
        Token "yank-back" => yank_back,
            "A yank can be undone, and a yanked version cannot be published again.";
        Token "deprecate" => deprecate, "A version can be deprecated, and its bytes do not change.";
    }
}

/// Uploads different bytes for one version concurrently; returns the accepted skill.
async fn publish_concurrently(
    registry: &TestedRegistry,
    what: &str,
    version: &str,
) -> Result<TestSkill, super::CheckFailure> {
    let mut racers = Vec::new();
    for number in 0..CONCURRENT_PUBLISHES {
        racers.push(registry.skill(what, version, &format!("Racer {number}."))?);
    }
    let asked = racers.iter().enumerate().map(|(number, skill)| async move {
        let ask = if number % 2 == 0 {
            registry.publish(&skill.zip, &[])
        } else {
            registry.publish_bare(&skill.zip)
        };
        ask.with_publisher_token().send().await
    });
    let mut winners = Vec::new();
    for (answer, skill) in join_all(asked).await.into_iter().zip(racers) {
        let answer = answer?.is(&[201, 409])?;
        if answer.status == 201 {
            winners.push(skill);
        } else {
            answer.error(409, "version_exists")?;
        }
    }
    match (winners.pop(), winners.len()) {
        (Some(winner), 0) => Ok(winner),
        (Some(_), more) => Err(fail(format!("{} uploads succeeded", more + 1))),
        (None, _) => Err(fail("no upload succeeded")),
    }
}

/// Fails unless every download has the bytes of the accepted upload.
async fn check_always_same(registry: &TestedRegistry, skill: &TestSkill) -> CheckResult {
    let path = format!("api/v1/skills/{}/download", skill.full);
    for _ in 0..READS_PER_RACE {
        let line = registry.line(&skill.full, &skill.version).await?;
        let bytes = registry.artifact(&line).await?.bytes;
        ensure(bytes == skill.zip, || "the artifact is not the accepted one".to_owned())?;
        let down = registry.get(&path).query("version", &skill.version).send().await?.is(&[200])?;
        ensure(down.bytes == skill.zip, || "the download is not the accepted one".to_owned())?;
    }
    Ok(())
}

async fn race(registry: &TestedRegistry) -> CheckResult {
    registry.put_new("race", "1.0.0", "Before the race.").await?;
    for version in ["1.1.0", "1.2.0", "1.3.0"] {
        let winner = publish_concurrently(registry, "race", version).await?;
        check_always_same(registry, &winner).await?;
    }
    Ok(())
}

async fn race_forms(registry: &TestedRegistry) -> CheckResult {
    for number in 0..3 {
        let winner = publish_concurrently(registry, &format!("first-{number}"), "1.0.0").await?;
        check_always_same(registry, &winner).await?;
        let lines = registry.index(&winner.full).await?.is(&[200])?.lines()?;
        ensure(lines.len() == 1, || format!("the index has {} lines", lines.len()))?;
    }
    Ok(())
}

async fn methods(registry: &TestedRegistry) -> CheckResult {
    let skill = registry.put_new("methods", "1.0.0", "Methods.").await?;
    let line = registry.line(&skill.full, "1.0.0").await?;
    let paths = [
        format!("api/v1/skills/{}/1.0.0", skill.full),
        super::sample::artifact_path(&line)?,
        super::sample::index_path(&skill.full),
    ];
    for path in &paths {
        for method in [Method::PUT, Method::PATCH, Method::DELETE, Method::POST] {
            let url = format!("{}/{path}", registry.base());
            let ask = registry
                .ask(method, url)
                .body("application/zip", b"PK".to_vec())
                .with_publisher_token();
            ask.send().await?.is(&[404, 405])?;
        }
    }
    check_always_same(registry, &skill).await
}

async fn yank(registry: &TestedRegistry, skill: &TestSkill, yanked: bool) -> CheckResult {
    let path = format!("api/v1/skills/{}/{}/yank", skill.full, skill.version);
    let body = json!({"yanked": yanked, "reason": "a check"});
    registry.post(&path).json(&body).with_publisher_token().send().await?.is(&[200, 204]).map(drop)
}

async fn yank_keeps(registry: &TestedRegistry) -> CheckResult {
    let skill = registry.put_new("yank-keeps", "1.0.0", "Keeps.").await?;
    yank(registry, &skill, true).await?;
    let line = registry.line(&skill.full, "1.0.0").await?;
    ensure(line["yanked"] == true, || "the index does not say that it is yanked".to_owned())?;
    let bytes = registry.artifact(&line).await?.bytes;
    ensure(bytes == skill.zip, || "its bytes changed".to_owned())?;
    let path = format!("api/v1/skills/{}/1.0.0", skill.full);
    registry.get(&path).send().await?.is(&[200]).map(drop)
}

async fn yank_unchosen(registry: &TestedRegistry) -> CheckResult {
    let kept = registry.put_new("unchosen", "1.0.0", "Kept.").await?;
    let gone = registry.put_new("unchosen", "1.1.0", "Gone.").await?;
    yank(registry, &gone, true).await?;
    let path = format!("api/v1/skills/{}/download", kept.full);
    for range in ["*", "^1.0.0", ">=1.0.0"] {
        let answer = registry.get(&path).query("version", range).send().await?.is(&[200])?;
        let version = answer.need("x-skill-version")?;
        ensure(version == "1.0.0", || format!("`{range}` chose {version}"))?;
    }
    let detail = registry.get(&format!("api/v1/skills/{}", kept.full)).send().await?.value()?;
    let latest = &detail["latest_version"];
    ensure(latest == "1.0.0", || format!("the latest is {latest}"))?;
    let only = registry.get(&path).query("version", ">=1.1.0").send().await?;
    only.error(404, "not_found").map(drop)
}

async fn yank_back(registry: &TestedRegistry) -> CheckResult {
    let skill = registry.put_new("back", "1.0.0", "Back.").await?;
    yank(registry, &skill, true).await?;
    let other = registry.skill("back", "1.0.0", "Anew.")?;
    let response = registry.publish(&other.zip, &[]).with_publisher_token().send().await?;
    response.error(409, "version_exists")?;
    yank(registry, &skill, false).await?;
    let line = registry.line(&skill.full, "1.0.0").await?;
    ensure(line["yanked"] != true, || "it is still yanked".to_owned())?;
    check_always_same(registry, &skill).await
}

async fn deprecate(registry: &TestedRegistry) -> CheckResult {
    let skill = registry.put_new("deprecated", "1.0.0", "Deprecated.").await?;
    let path = format!("api/v1/skills/{}/1.0.0/deprecate", skill.full);
    let ask =
        registry.post(&path).json(&json!({"message": "use another one"})).with_publisher_token();
    ask.send().await?.is(&[200, 204])?;
    let line = registry.line(&skill.full, "1.0.0").await?;
    let said = &line["deprecated"];
    ensure(said == "use another one", || format!("the index says {said}"))?;
    check_always_same(registry, &skill).await
}
