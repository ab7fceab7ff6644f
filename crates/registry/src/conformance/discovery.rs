//! Checks the configuration, lists and pages.

use std::collections::BTreeSet;

use savoir_skill::digest::sha256_hex;
use serde_json::Value;

use super::{
    CheckFailure, CheckResult, ConformanceCheck, TestedRegistry, check_table, ensure, fail,
    sample::text_of,
    tested_registry::{TestResponse, short},
};

/// Maximum number of pages that are read.
const MAX_PAGES: usize = 30;
/// Number of skills on a small page.
const SMALL_PAGE_SIZE: usize = 7;

pub(super) fn checks() -> Vec<ConformanceCheck> {
    check_table! { Discovery:
        NoToken "config" => config,
            "The index configuration has its version, its address and the address of archives.";
        NoToken "well-known" => well_known, "The server has an agent-skills index for other tools.";
        NoToken "well-known-digest" => well_known_digest,
            "The files of the agent-skills index have the digests in the index.";
        NoToken "list" => list, "The list has complete summaries and a cursor.";
        NoToken "cursor" => cursor,
            "Small pages by cursor list the same skills as one large page, each once.";
        NoToken "pages" => pages,
            "Numbered pages have their number and the total, and are sorted by name.";
        Token "listed" => listed, "A published skill is in the list.";
        Token "filter-tag" => filter_tag, "The filter by tag lists only skills with this tag.";
        NoToken "filter-tier" => filter_tier, "The filter by tier lists only skills of this tier.";
        NoToken "filter-time" => filter_time,
            "The filter by time leaves out skills that did not change since.";
        NoToken "filter-unknown" => filter_unknown,
            "A tag that no skill has gives an empty list and no error.";
    }
}

async fn config(registry: &TestedRegistry) -> CheckResult {
    let config = registry.get("index/v1/config.json").send().await?.is(&[200])?.value()?;
    ensure(config["version"] == 1, || format!("`version` is {}", config["version"]))?;
    let artifacts = text_of(&config, "artifacts")?;
    let has_both = artifacts.contains("{sha256}") && artifacts.contains("{filename}");
    ensure(has_both, || format!("`artifacts` has no {{sha256}} or {{filename}}: {artifacts}"))?;
    // A mirror does not know its own address.
    if !registry.is_files() {
        let base = text_of(&config, "base")?;
        ensure(base.starts_with("http"), || format!("`base` is not an absolute address: {base}"))?;
    }
    ensure(config["closure"].is_boolean(), || "`closure` is neither true nor false".to_owned())
}

async fn well_known_index(registry: &TestedRegistry) -> Result<(String, Value), CheckFailure> {
    let url = registry.at_server(".well-known/agent-skills/index.json");
    let index =
        registry.look(reqwest::Method::GET, url.clone()).send().await?.is(&[200])?.value()?;
    Ok((url, index))
}

async fn well_known(registry: &TestedRegistry) -> CheckResult {
    let (_, index) = well_known_index(registry).await?;
    let schema = text_of(&index, "$schema")?;
    ensure(schema.contains("/0.2.0/"), || format!("`$schema` is {schema}"))?;
    let skills = index["skills"].as_array().ok_or_else(|| fail("`skills` is not a list"))?;
    for skill in skills {
        for key in ["name", "description", "url"] {
            text_of(skill, key)?;
        }
        let kind = text_of(skill, "type")?;
        ensure(["skill-md", "archive"].contains(&kind), || format!("the type {kind} is unknown"))?;
        let digest = text_of(skill, "digest")?.strip_prefix("sha256:").unwrap_or_default();
        ensure(is_digest(digest), || format!("a digest is invalid: {digest}"))?;
    }
    Ok(())
}

async fn well_known_digest(registry: &TestedRegistry) -> CheckResult {
    if registry.publishes() {
        registry.sample().await?;
    }
    let (url, index) = well_known_index(registry).await?;
    let Some(skill) = index["skills"].get(0) else {
        return Err(CheckFailure::Skipped("the agent-skills index is empty".to_owned()));
    };
    let place = reqwest::Url::parse(&url).and_then(|url| url.join(text_of_or(skill, "url")));
    let place = place.map_err(|error| fail(format!("`url` is invalid: {error}")))?;
    let bytes = registry.look(reqwest::Method::GET, place.into()).send().await?.is(&[200])?.bytes;
    let (said, found) = (text_of(skill, "digest")?, format!("sha256:{}", sha256_hex(&bytes)));
    ensure(said == found, || format!("the index has {said}, but the bytes have {found}"))
}

fn text_of_or<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The names of a page.
fn names(page: &Value) -> Result<Vec<String>, CheckFailure> {
    let items = page["items"].as_array().ok_or_else(|| fail("`items` is not a list"))?;
    items.iter().map(|item| text_of(item, "name").map(str::to_owned)).collect()
}

async fn page(registry: &TestedRegistry, pairs: &[(&str, &str)]) -> Result<Value, CheckFailure> {
    let ask = registry.get("api/v1/skills");
    let ask = pairs.iter().fold(ask, |ask, (key, value)| ask.query(key, value));
    ask.send().await?.is(&[200])?.value()
}

async fn list(registry: &TestedRegistry) -> CheckResult {
    let list = page(registry, &[("per_page", "5")]).await?;
    let found = names(&list)?;
    ensure(found.len() <= 5, || format!("5 were requested, {} were returned", found.len()))?;
    ensure(list.get("next_cursor").is_some(), || "there is no `next_cursor`".to_owned())?;
    for item in list["items"].as_array().into_iter().flatten() {
        for key in ["name", "latest_version", "description", "security_tier", "updated_at"] {
            ensure(item.get(key).is_some(), || format!("a summary has no `{key}`"))?;
        }
        ensure(item["tags"].is_array(), || "`tags` of a summary is not a list".to_owned())?;
    }
    Ok(())
}

/// Reads small pages by cursor.
async fn all_listed_names(registry: &TestedRegistry) -> Result<Vec<String>, CheckFailure> {
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    let size = SMALL_PAGE_SIZE.to_string();
    for _ in 0..MAX_PAGES {
        let mut pairs = vec![("per_page", &*size)];
        pairs.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let list = page(registry, &pairs).await?;
        let names = names(&list)?;
        ensure(names.len() <= SMALL_PAGE_SIZE, || {
            format!("a page of {SMALL_PAGE_SIZE} has {}", names.len())
        })?;
        found.extend(names);
        match list["next_cursor"].as_str() {
            Some(next) if cursor.as_deref() != Some(next) => cursor = Some(next.to_owned()),
            Some(_) => return Err(fail("the next cursor is the same as before")),
            None => break,
        }
    }
    Ok(found)
}

async fn cursor(registry: &TestedRegistry) -> CheckResult {
    let mut difference = String::new();
    // Another user may publish between the two requests.
    for _ in 0..3 {
        let large = names(&page(registry, &[("per_page", "100")]).await?)?;
        let small = all_listed_names(registry).await?;
        let once: BTreeSet<&String> = small.iter().collect();
        ensure(once.len() == small.len(), || "a skill is listed twice".to_owned())?;
        ensure(!small.is_empty() || !registry.publishes(), || "the list is empty".to_owned())?;
        let length = small.len().min(large.len());
        if small[..length] == large[..length] && (large.len() == 100 || small.len() == large.len())
        {
            return Ok(());
        }
        difference = format!("{} by small pages, {} by a large one", small.len(), large.len());
    }
    Err(fail(format!("the pages differ: {difference}")))
}

async fn pages(registry: &TestedRegistry) -> CheckResult {
    let list = page(registry, &[("page", "1"), ("per_page", "3")]).await?;
    ensure(list["page"] == 1 && list["per_page"] == 3, || {
        format!("`page` and `per_page` are {} and {}", list["page"], list["per_page"])
    })?;
    ensure(list["total"].is_u64(), || "`total` is not a number".to_owned())?;
    let found = names(&list)?;
    let again = page(registry, &[("page", "1"), ("per_page", "2")]).await?;
    // Others may publish at the same time, so check only the order.
    let again = names(&again)?;
    let same = again.iter().filter(|name| found.contains(name));
    ensure(same.is_sorted_by_key(|name| found.iter().position(|one| one == name)), || {
        format!("the order differs: {} and {}", found.join(", "), again.join(", "))
    })
}

async fn listed(registry: &TestedRegistry) -> CheckResult {
    let name = registry.sample().await?.name.clone();
    let list = page(registry, &[("tag", "conformance"), ("per_page", "100")]).await?;
    ensure(names(&list)?.contains(&name) || list["next_cursor"].is_string(), || {
        format!("{name} is not listed")
    })
}

async fn filter_tag(registry: &TestedRegistry) -> CheckResult {
    registry.sample().await?;
    let list = page(registry, &[("tag", "conformance")]).await?;
    ensure(!names(&list)?.is_empty(), || "no skill has the tag of the published skill".to_owned())?;
    let has = |item: &Value| {
        item["tags"].as_array().is_some_and(|tags| tags.iter().any(|tag| tag == "conformance"))
    };
    ensure(list["items"].as_array().into_iter().flatten().all(has), || {
        "a skill without the tag is listed".to_owned()
    })
}

async fn filter_tier(registry: &TestedRegistry) -> CheckResult {
    for tier in ["experimental", "community", "verified"] {
        let list = page(registry, &[("tier", tier)]).await?;
        names(&list)?;
        for item in list["items"].as_array().into_iter().flatten() {
            ensure(item["security_tier"] == tier, || {
                format!("{} is listed for {tier}", short(&item["security_tier"].to_string(), 40))
            })?;
        }
    }
    registry.get("api/v1/skills").query("tier", "golden").send().await?.is(&[400]).map(drop)
}

async fn filter_time(registry: &TestedRegistry) -> CheckResult {
    let future = names(&page(registry, &[("updated_since", "2999-01-01T00:00:00Z")]).await?)?;
    ensure(future.is_empty(), || "a skill changed after the year 2999".to_owned())?;
    let past = names(&page(registry, &[("updated_since", "2001-01-01T00:00:00Z")]).await?)?;
    let all = names(&page(registry, &[]).await?)?;
    ensure(past.is_empty() == all.is_empty(), || "no skill changed since 2001".to_owned())?;
    let wrong: TestResponse =
        registry.get("api/v1/skills").query("updated_since", "yesterday").send().await?;
    wrong.is(&[400]).map(drop)
}

async fn filter_unknown(registry: &TestedRegistry) -> CheckResult {
    let list = page(registry, &[("tag", "a tag that nobody has given to anything")]).await?;
    ensure(names(&list)?.is_empty(), || "the list is not empty".to_owned())
}
