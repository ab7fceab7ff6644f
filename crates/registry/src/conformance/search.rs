//! Checks the search.

use serde_json::Value;

use super::{
    CheckFailure, CheckResult, ConformanceCheck, TestedRegistry, check_table, ensure, fail,
    publish::wait_until_found, sample::text_of,
};

pub(super) fn checks() -> Vec<ConformanceCheck> {
    check_table! { Search:
        NoToken "shape" => shape, "A search returns the query and summaries.";
        Token "exact" => exact, "A search for a name lists that skill first.";
        Token "typo" => typo, "A search finds a name despite a typo.";
        Token "body" => body, "A search finds words in the text of a skill.";
        Token "tag" => tag, "A search with a tag lists only skills with this tag.";
        NoToken "nothing" => nothing,
            "A search without matches returns an empty list and no error.";
        NoToken "empty" => empty, "An empty search is answered or refused.";
        NoToken "long" => long, "A very long search is answered or refused.";
        NoToken "unicode" => unicode, "A search accepts letters of all scripts.";
        NoToken "operators" => operators,
            "Operators of search engines and databases are treated as text.";
    }
}

async fn found(registry: &TestedRegistry, pairs: &[(&str, &str)]) -> Result<Value, CheckFailure> {
    let ask = registry.get("api/v1/search");
    let ask = pairs.iter().fold(ask, |ask, (key, value)| ask.query(key, value));
    let found = ask.send().await?.is(&[200])?.value()?;
    ensure(found["items"].is_array(), || "`items` is not a list".to_owned())?;
    Ok(found)
}

fn names(found: &Value) -> Vec<&str> {
    let items = found["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item["name"].as_str()).collect()
}

async fn shape(registry: &TestedRegistry) -> CheckResult {
    let sample = registry.sample().await?;
    let last = sample.name.rsplit('/').next().unwrap_or_default();
    let found = found(registry, &[("q", last)]).await?;
    ensure(found["query"] == last, || format!("`query` is {}", found["query"]))?;
    // A registry that stopped counting returns null.
    let total = found.get("total").is_some_and(|total| total.is_u64() || total.is_null());
    ensure(total, || "`total` is not a number".to_owned())?;
    for item in found["items"].as_array().into_iter().flatten() {
        for key in ["name", "latest_version", "description", "security_tier"] {
            text_of(item, key)?;
        }
    }
    Ok(())
}

async fn exact(registry: &TestedRegistry) -> CheckResult {
    let sample = registry.sample().await?;
    let last = sample.name.rsplit('/').next().unwrap_or_default();
    wait_until_found(registry, last, &sample.name).await?;
    for query in [last, &*sample.name] {
        let found = found(registry, &[("q", query)]).await?;
        let first = names(&found).first().copied().unwrap_or_default().to_owned();
        ensure(first == sample.name, || format!("`{query}` finds `{first}` first"))?;
    }
    Ok(())
}

async fn typo(registry: &TestedRegistry) -> CheckResult {
    let sample = registry.sample().await?;
    let last = sample.name.rsplit('/').next().unwrap_or_default();
    wait_until_found(registry, last, &sample.name).await?;
    // Swap two letters.
    let wrong = last.replace("sample", "smaple");
    ensure(wrong != last, || "the name cannot be mistyped".to_owned())?;
    wait_until_found(registry, &wrong, &sample.name).await
}

async fn body(registry: &TestedRegistry) -> CheckResult {
    let sample = registry.sample().await?;
    wait_until_found(registry, &registry.rare_word(), &sample.name).await
}

async fn tag(registry: &TestedRegistry) -> CheckResult {
    let sample = registry.sample().await?;
    let rare = registry.rare_word();
    wait_until_found(registry, &rare, &sample.name).await?;
    let with = found(registry, &[("q", &rare), ("tag", "conformance")]).await?;
    ensure(names(&with).contains(&&*sample.name), || "it is not found with its tag".to_owned())?;
    let without = found(registry, &[("q", &rare), ("tag", "another-tag")]).await?;
    ensure(names(&without).is_empty(), || "it is found with a tag that it does not have".to_owned())
}

async fn nothing(registry: &TestedRegistry) -> CheckResult {
    let found = found(registry, &[("q", "qqxzjvkwqqxzjvkwqqxzjvkw")]).await?;
    let count = names(&found).len();
    ensure(count == 0, || format!("it finds {count} skills"))
}

/// Fails unless the query is answered, or refused with a valid error.
async fn check_answered(registry: &TestedRegistry, query: &str) -> CheckResult {
    let answer = registry.get("api/v1/search").query("q", query).send().await?;
    if answer.status == 200 {
        let value = answer.value()?;
        return ensure(value["items"].is_array(), || "`items` is not a list".to_owned());
    }
    let answer = answer.is(&[400, 413, 414])?;
    if answer.status == 400 { answer.code().map(drop) } else { Ok(()) }
}

async fn empty(registry: &TestedRegistry) -> CheckResult {
    for query in ["", " ", "\t\n"] {
        check_answered(registry, query).await?;
    }
    let none = registry.get("api/v1/search").send().await?;
    none.is(&[200, 400])?.value().map(drop)
}

async fn long(registry: &TestedRegistry) -> CheckResult {
    check_answered(registry, &"word ".repeat(400)).await?;
    check_answered(registry, &"x".repeat(6000)).await
}

async fn unicode(registry: &TestedRegistry) -> CheckResult {
    for query in
        ["über größe", "技能", "أداة", "🦀", "e\u{301}", "\u{202e}abc", "\u{0}", "\u{feff}"]
    {
        check_answered(registry, query).await.map_err(|miss| match miss {
            CheckFailure::Failed(why) => fail(format!("{}: {why}", query.escape_unicode())),
            skipped @ CheckFailure::Skipped(_) => skipped,
        })?;
    }
    Ok(())
}

async fn operators(registry: &TestedRegistry) -> CheckResult {
    for query in [
        "a AND", "OR", "NOT x", "\"unclosed", "(((", "name:x", "*", "?", "a*b?c", "x^2", "~",
        "[a TO b]", "-x +y", "' OR 1=1 --", "%", "_", "\\", "{}", "<script>", "a/b", "..",
        "NEAR(a b)", "^$",
    ] {
        check_answered(registry, query).await.map_err(|miss| match miss {
            CheckFailure::Failed(why) => fail(format!("`{query}`: {why}")),
            skipped @ CheckFailure::Skipped(_) => skipped,
        })?;
    }
    Ok(())
}
