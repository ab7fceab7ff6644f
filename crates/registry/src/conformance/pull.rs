//! Checks indexes and artifacts (the archives of versions).

use reqwest::Method;
use savoir_package::{Tree, archive};
use savoir_skill::{digest::sha256_hex, folder::is_skill_file};
use semver::Version;
use serde_json::Value;

use super::{
    CheckFailure, CheckResult, ConformanceCheck, TestedRegistry, check_table, ensure, fail,
    sample::{PublishedSample, artifact_path, index_path, text_of},
    tested_registry::TestResponse,
};

pub(super) fn checks() -> Vec<ConformanceCheck> {
    check_table! { Pull:
        NoToken "index-shape" => index_shape,
            "Every index line has the fields that a resolver needs.";
        NoToken "index-order" => index_order,
            "An index lists each version once, the highest first.";
        NoToken "index-unknown" => index_unknown, "The index of an unknown name is not found.";
        NoToken "index-letters" => index_letters,
            "An index is only found below the first letters of its name.";
        NoToken "index-etag" => index_etag,
            "An index has a strong ETag, and a request with it returns 304.";
        NoToken "index-caching" => index_caching, "Caches revalidate an index after a minute.";
        NoToken "closure" => closure, "One request returns the indexes of several skills.";
        NoToken "artifact-digest" => artifact_digest,
            "An artifact matches the digest, the size and the integrity of its index line.";
        NoToken "artifact-layout" => artifact_layout,
            "An artifact is a zip with one folder that has the name of the skill.";
        NoToken "artifact-immutable" => artifact_immutable, "Caches can keep an artifact forever.";
        NoToken "artifact-etag" => artifact_etag,
            "An artifact has a strong ETag, and a request with it returns 304.";
        NoToken "artifact-range" => artifact_range,
            "Ranges of an artifact can be downloaded, from the start and from the end.";
        NoToken "artifact-range-outside" => artifact_range_outside,
            "A range outside of an artifact is refused with its size.";
        NoToken "artifact-head" => artifact_head, "A HEAD request returns the size of an artifact.";
        NoToken "artifact-unknown" => artifact_unknown,
            "An artifact that was never published is not found.";
        NoToken "download" => download,
            "A download without a range is the latest version, with version and integrity headers.";
        Token "download-range" => download_range,
            "A download has the highest version of a range, and a pre-release only if requested.";
        NoToken "download-none" => download_none,
            "A range that no version matches is not found, and an invalid range is refused.";
        NoToken "detail" => detail,
            "The details of a skill have its versions, the newest first, and its text.";
        NoToken "version" => version,
            "The details of a version have the files, the manifest and the text of its artifact.";
        NoToken "skill-md" => skill_md,
            "SKILL.md is at the address that skillrt uses, byte for byte.";
    }
}

async fn index_shape(registry: &TestedRegistry) -> CheckResult {
    let sample = registry.sample().await?;
    ensure(!sample.lines.is_empty(), || format!("the index of {} is empty", sample.name))?;
    for line in &sample.lines {
        ensure(line["name"] == sample.name, || format!("a line is about {}", line["name"]))?;
        let number = text_of(line, "version")?;
        number.parse::<Version>().map_err(|error| fail(format!("version {number}: {error}")))?;
        let sha256 = text_of(line, "sha256")?;
        let is_hex = sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
        ensure(is_hex, || format!("`sha256` is {sha256}"))?;
        let integrity = text_of(line, "integrity")?;
        ensure(integrity.starts_with("sha256-"), || format!("`integrity` is {integrity}"))?;
        ensure(line["size"].as_u64() > Some(0), || format!("`size` is {}", line["size"]))?;
        text_of(line, "filename")?;
        let tier = text_of(line, "tier")?;
        let tiers = ["experimental", "community", "verified"];
        ensure(tiers.contains(&tier), || format!("`tier` is {tier}"))?;
        // A missing field means false or empty.
        let said = |key: &str| line.get(key).is_some();
        ensure(!said("yanked") || line["yanked"].is_boolean(), || {
            "`yanked` is neither true nor false".to_owned()
        })?;
        for key in ["dependencies", "permissions", "tools"] {
            ensure(!said(key) || line[key].is_array(), || format!("`{key}` is not a list"))?;
        }
        let published = text_of(line, "published_at")?;
        ensure(published.ends_with('Z'), || format!("`published_at` is {published}"))?;
    }
    Ok(())
}

fn versions(sample: &PublishedSample) -> Result<Vec<Version>, CheckFailure> {
    let read = |line: &Value| {
        let text = text_of(line, "version")?;
        text.parse::<Version>().map_err(|error| fail(format!("version {text}: {error}")))
    };
    sample.lines.iter().map(read).collect()
}

async fn index_order(registry: &TestedRegistry) -> CheckResult {
    let sample = registry.sample().await?;
    let mut seen = versions(sample)?;
    let descending = seen.is_sorted_by(|a, b| a.cmp_precedence(b).is_ge());
    ensure(descending, || "the highest version is not the first".to_owned())?;
    let count = seen.len();
    ensure(count > 0, || "there is no version".to_owned())?;
    seen.sort();
    seen.dedup();
    ensure(seen.len() == count, || "a version is listed twice".to_owned())
}

async fn index_unknown(registry: &TestedRegistry) -> CheckResult {
    for name in [registry.name("nobody"), format!("{}/thing", registry.name("nowhere"))] {
        let answer = registry.index(&name).await?;
        // The error of a plain web server has another format.
        if registry.is_files() {
            answer.is(&[404])?
        } else {
            answer.error(404, "not_found")?
        };
    }
    Ok(())
}

async fn index_letters(registry: &TestedRegistry) -> CheckResult {
    let sample = registry.sample().await?;
    registry.get(&format!("index/v1/zz/{}", sample.name)).send().await?.is(&[404]).map(drop)
}

/// Fails unless a request with the `ETag` of a response returns 304.
async fn same_again(registry: &TestedRegistry, path: &str) -> CheckResult {
    let first = registry.get(path).send().await?.is(&[200])?;
    let tag = first.need("etag")?.to_owned();
    ensure(tag.starts_with('"') && tag.len() > 2, || format!("the ETag is not strong: {tag}"))?;
    let again = registry.get(path).header("if-none-match", &tag).send().await?.is(&[304])?;
    ensure(again.bytes.is_empty(), || "304 has a body".to_owned())?;
    let other = registry.get(path).header("if-none-match", "\"something else\"").send().await?;
    let other = other.is(&[200])?;
    ensure(other.bytes == first.bytes, || "the second response differs".to_owned())
}

async fn index_etag(registry: &TestedRegistry) -> CheckResult {
    same_again(registry, &index_path(&registry.sample().await?.name)).await
}

async fn index_caching(registry: &TestedRegistry) -> CheckResult {
    let answer = registry.index(&registry.sample().await?.name).await?.is(&[200])?;
    let caching = answer.need("cache-control")?;
    ensure(caching.contains("max-age=60") && caching.contains("must-revalidate"), || {
        format!("Cache-Control is {caching}")
    })
}

async fn closure(registry: &TestedRegistry) -> CheckResult {
    let config = registry.get("index/v1/config.json").send().await?.is(&[200])?.value()?;
    if config["closure"] != true {
        return Err(CheckFailure::Skipped("the registry has no closure".to_owned()));
    }
    let sample = registry.sample().await?;
    let ask = registry.get("index/v1/closure").query("name", &sample.name);
    let lines = ask.send().await?.is(&[200])?.lines()?;
    for line in &sample.lines {
        let is_same = |other: &Value| {
            other["name"] == line["name"]
                && other["version"] == line["version"]
                && other["sha256"] == line["sha256"]
        };
        ensure(lines.iter().any(is_same), || format!("{} is missing", line["version"]))?;
    }
    let many = (0..101).fold(registry.get("index/v1/closure"), |ask, number| {
        ask.query("name", &format!("x{number}"))
    });
    many.send().await?.refused()?.code().map(drop)
}

async fn artifact_digest(registry: &TestedRegistry) -> CheckResult {
    let sample = registry.sample().await?;
    // In a mirror each file can be damaged, so check all of them.
    let most = if registry.is_files() { usize::MAX } else { 5 };
    for line in sample.lines.iter().rev().take(most) {
        let bytes = registry.artifact(line).await?.bytes;
        let digest = sha256_hex(&bytes);
        ensure(line["sha256"] == digest, || format!("the digest of the bytes is {digest}"))?;
        ensure(line["size"] == bytes.len(), || format!("there are {} bytes", bytes.len()))?;
        let integrity = unpacked(&bytes)?.1.integrity();
        ensure(line["integrity"] == integrity, || {
            format!("the integrity of the files is {integrity}")
        })?;
    }
    ensure(!sample.lines.is_empty(), || "there is no version".to_owned())
}

fn unpacked(bytes: &[u8]) -> Result<(Option<String>, Tree), CheckFailure> {
    let read = archive::unpack(bytes).and_then(archive::one_skill);
    read.map_err(|error| fail(format!("the artifact cannot be read: {error}")))
}

async fn artifact_layout(registry: &TestedRegistry) -> CheckResult {
    let sample = registry.sample().await?;
    let (folder, _) = unpacked(&registry.artifact(sample.line()?).await?.bytes)?;
    let last = sample.name.rsplit('/').next().unwrap_or_default();
    ensure(folder.as_deref() == Some(last), || format!("its folder is {folder:?}"))
}

async fn artifact_immutable(registry: &TestedRegistry) -> CheckResult {
    let answer = registry.artifact(registry.sample().await?.line()?).await?;
    let caching = answer.need("cache-control")?;
    ensure(caching.contains("immutable") && caching.contains("max-age=31536000"), || {
        format!("Cache-Control is {caching}")
    })
}

async fn artifact_etag(registry: &TestedRegistry) -> CheckResult {
    same_again(registry, &artifact_path(registry.sample().await?.line()?)?).await
}

async fn artifact_range(registry: &TestedRegistry) -> CheckResult {
    let line = registry.sample().await?.line()?;
    let whole = registry.artifact(line).await?.bytes;
    let path = artifact_path(line)?;
    let length = whole.len();
    ensure(length > 20, || format!("the artifact has {length} bytes"))?;
    let cases = [
        ("bytes=0-3", 0..4),
        ("bytes=10-", 10..length),
        ("bytes=-4", length - 4..length),
        ("bytes=5-99999999", 5..length),
    ];
    for (asked, part) in cases {
        let answer = registry.get(&path).header("range", asked).send().await?.is(&[206])?;
        let said = answer.need("content-range")?;
        let expected = format!("bytes {}-{}/{length}", part.start, part.end - 1);
        ensure(said == expected, || format!("{asked}: Content-Range is {said}"))?;
        ensure(answer.bytes == whole[part], || format!("{asked}: the bytes differ"))?;
    }
    Ok(())
}

async fn artifact_range_outside(registry: &TestedRegistry) -> CheckResult {
    let line = registry.sample().await?.line()?;
    let path = artifact_path(line)?;
    let size = line["size"].as_u64().unwrap_or_default();
    let asked = format!("bytes={size}-");
    let answer = registry.get(&path).header("range", &asked).send().await?.is(&[416])?;
    let said = answer.need("content-range")?;
    ensure(said == format!("bytes */{size}"), || format!("Content-Range is {said}"))?;
    // A request for a thousand ranges must not cause a huge response.
    let many = format!("bytes={}", vec!["0-"; 1000].join(","));
    let answer = registry.get(&path).header("range", &many).send().await?;
    let answer = answer.is(&[200, 206, 400, 416, 431])?;
    let length = answer.bytes.len() as u64;
    ensure(length <= size + 100_000, || format!("1,000 ranges gave {length} bytes"))
}

async fn artifact_head(registry: &TestedRegistry) -> CheckResult {
    let line = registry.sample().await?.line()?;
    let url = format!("{}/{}", registry.base(), artifact_path(line)?);
    let answer = registry.look(Method::HEAD, url).send().await?.is(&[200])?;
    ensure(answer.bytes.is_empty(), || "HEAD has a body".to_owned())?;
    let length = answer.need("content-length")?;
    ensure(line["size"].as_u64() == length.parse().ok(), || format!("Content-Length is {length}"))
}

async fn artifact_unknown(registry: &TestedRegistry) -> CheckResult {
    let line = registry.sample().await?.line()?;
    let filename = text_of(line, "filename")?;
    for path in [
        format!("artifacts/{}/{filename}", "0".repeat(64)),
        format!("artifacts/{}/{filename}", "z".repeat(64)),
        format!("artifacts/..%2f..%2fetc/{filename}"),
    ] {
        registry.get(&path).send().await?.is(&[400, 404])?.code()?;
    }
    Ok(())
}

/// Checks a download against the index line of its version.
async fn check_download(
    registry: &TestedRegistry,
    answer: TestResponse,
    name: &str,
) -> Result<String, CheckFailure> {
    let answer = answer.is(&[200])?;
    let version = answer.need("x-skill-version")?.to_owned();
    let line = registry.line(name, &version).await?;
    let digest = sha256_hex(&answer.bytes);
    ensure(line["sha256"] == digest, || format!("the digest of {version} is {digest}"))?;
    let integrity = answer.need("x-integrity")?;
    ensure(line["integrity"] == integrity, || format!("X-Integrity is {integrity}"))?;
    answer.need("etag")?;
    Ok(version)
}

async fn download(registry: &TestedRegistry) -> CheckResult {
    let name = &registry.sample().await?.name;
    let answer = registry.get(&format!("api/v1/skills/{name}/download")).send().await?;
    let version = check_download(registry, answer, name).await?;
    let detail =
        registry.get(&format!("api/v1/skills/{name}")).send().await?.is(&[200])?.value()?;
    let latest = &detail["latest_version"];
    ensure(*latest == version, || format!("the download is {version}, but the latest is {latest}"))
}

async fn download_range(registry: &TestedRegistry) -> CheckResult {
    let name = &registry.sample().await?.name;
    let path = format!("api/v1/skills/{name}/download");
    for (range, expected) in [
        ("*", "1.1.0"),
        ("^1.0.0", "1.1.0"),
        ("==1.0.0", "1.0.0"),
        ("1.0", "1.0.0"),
        (">=1.0.0, <1.1.0", "1.0.0"),
        ("2.0.0-rc.1", "2.0.0-rc.1"),
    ] {
        let answer = registry.get(&path).query("version", range).send().await?;
        let found = check_download(registry, answer, name).await?;
        ensure(found == expected, || format!("`{range}` gave {found} instead of {expected}"))?;
    }
    Ok(())
}

async fn download_none(registry: &TestedRegistry) -> CheckResult {
    let name = &registry.sample().await?.name;
    let path = format!("api/v1/skills/{name}/download");
    registry.get(&path).query("version", "^999.0.0").send().await?.error(404, "not_found")?;
    let wrong = registry.get(&path).query("version", "not a range at all").send().await?;
    wrong.is(&[400])?.code().map(drop)
}

async fn detail(registry: &TestedRegistry) -> CheckResult {
    let sample = registry.sample().await?;
    let path = format!("api/v1/skills/{}", sample.name);
    let detail = registry.get(&path).send().await?.is(&[200])?.value()?;
    ensure(detail["name"] == sample.name, || format!("it is about {}", detail["name"]))?;
    ensure(detail["readme"].is_string(), || "`readme` is not a string".to_owned())?;
    let listed = detail["versions"].as_array().ok_or_else(|| fail("`versions` is not a list"))?;
    let mut found = Vec::new();
    for version in listed {
        let number = text_of(version, "version")?;
        found.push(number.parse::<Version>().map_err(|error| fail(error.to_string()))?);
        for key in ["published_at", "security_tier", "integrity"] {
            text_of(version, key)?;
        }
        ensure(version["yanked"].is_boolean(), || "`yanked` is missing".to_owned())?;
    }
    ensure(found.is_sorted_by(|a, b| a.cmp_precedence(b).is_ge()), || {
        "the versions are not sorted, the newest first".to_owned()
    })?;
    let mut expected = versions(sample)?;
    expected.sort();
    found.sort();
    ensure(found == expected, || "its versions differ from its index".to_owned())
}

async fn version(registry: &TestedRegistry) -> CheckResult {
    let sample = registry.sample().await?;
    let line = sample.line()?;
    let number = text_of(line, "version")?;
    let path = format!("api/v1/skills/{}/{number}", sample.name);
    let version = registry.get(&path).send().await?.is(&[200])?.value()?;
    ensure(version["name"] == sample.name && version["version"] == number, || {
        format!("it is about {} {}", version["name"], version["version"])
    })?;
    for key in ["sha256", "integrity", "size", "filename"] {
        ensure(version["artifact"][key] == line[key], || {
            format!("`artifact.{key}` is {}, not {}", version["artifact"][key], line[key])
        })?;
    }
    ensure(version["manifest"].is_object(), || "`manifest` is not an object".to_owned())?;
    let (_, tree) = unpacked(&registry.artifact(line).await?.bytes)?;
    ensure(version["skill_md"] == own_text(&tree)?, || "`skill_md` differs".to_owned())?;
    let files = version["files"].as_array().ok_or_else(|| fail("`files` is not a list"))?;
    for (path, file) in tree.files() {
        let is_listed = |other: &Value| {
            other["path"] == path
                && other["sha256"] == sha256_hex(&file.bytes)
                && other["size"] == file.bytes.len()
        };
        ensure(files.iter().any(is_listed), || format!("`files` does not match {path}"))?;
    }
    Ok(())
}

fn own_text(tree: &Tree) -> Result<String, CheckFailure> {
    let found = tree.files().find(|(path, _)| is_skill_file(path));
    let (_, file) = found.ok_or_else(|| fail("the artifact has no SKILL.md"))?;
    Ok(String::from_utf8_lossy(&file.bytes).into_owned())
}

async fn skill_md(registry: &TestedRegistry) -> CheckResult {
    let sample = registry.sample().await?;
    let line = sample.line()?;
    let path = format!("{}/{}/SKILL.md", sample.name, text_of(line, "version")?);
    let answer = registry.get(&path).send().await?.is(&[200])?;
    let (_, tree) = unpacked(&registry.artifact(line).await?.bytes)?;
    ensure(answer.text() == own_text(&tree)?, || {
        "it differs from the one in the artifact".to_owned()
    })?;
    let missing = format!("{}/999.0.0/SKILL.md", sample.name);
    registry.get(&missing).send().await?.is(&[404]).map(drop)
}
