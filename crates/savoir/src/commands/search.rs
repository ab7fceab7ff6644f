//! `savoir search`: finds skills in registries.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashSet},
    process::ExitCode,
};

use futures::{
    future::join_all,
    stream::{self, StreamExt as _},
};
use savoir_package::{
    limits::MAX_ASKED_AT_ONCE,
    registry::{
        Client, Listing, Registries, RegistryError, Sort,
        wire::{Found, Summary},
    },
    trust::Tier,
};
use serde_json::{Value, json};

use crate::{error::CommandError, offline, output, remote::Remote, runtime};

/// Width of the table if standard output is not a terminal.
const DEFAULT_WIDTH: usize = 100;
/// Minimum width of the descriptions.
const MIN_DESCRIPTION_WIDTH: usize = 20;
/// Maximum number of results of one request.
const MAX_RESULTS: u32 = 100;
/// Maximum width of the tags.
const MAX_TAGS_WIDTH: usize = 24;

/// Find skills in registries
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir search pdf forms
  savoir search \"fill forms\" --tier community --limit 5
  savoir search --tag pdf --author acme
  savoir search pdf --evaluated           only skills with signed evaluations
  savoir search                          list recently changed skills
  savoir search pdf --registry https://skills.example.com/registry --json

The query is sent to all registries of savoir.toml and of your settings, or only to that of
--registry. If a registry is limited to some `namespaces`, only their skills are listed. A registry
that does not answer is skipped with a warning if another one answers. Mirrors cannot search.

Exit codes: 0 even if nothing was found, 1 no registry answered, 2 wrong usage.")]
pub(crate) struct Args {
    /// Words, or "a phrase"; without any, list recently changed skills
    #[arg(value_name = "QUERY")]
    query: Vec<String>,
    /// Only skills with this tag; may be repeated
    #[arg(long, value_name = "WORD")]
    tag: Vec<String>,
    /// Only skills of this tier
    #[arg(long, value_name = "TIER")]
    tier: Option<Tier>,
    /// Only skills of this author
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Only skills whose latest version has a signed evaluation
    #[arg(long)]
    evaluated: bool,
    /// Maximum number of results
    #[arg(long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RESULTS)))]
    limit: u32,
    #[command(flatten)]
    remote: Remote,
    /// Fail, because a search needs the network
    #[arg(long, hide = true)]
    offline: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A skill, and the registry that has it.
struct Hit {
    registry: String,
    summary: Summary,
}

/// A registry that did not answer.
struct UnreachableRegistry {
    registry: String,
    error: RegistryError,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let registries = args.remote.all(offline::network(args.offline))?;
    // --registry searches only that registry.
    let most = if args.remote.registry.is_some() { 1 } else { usize::MAX };
    let queried: Vec<(String, Client)> = registries
        .named_clients()
        .take(most)
        .map(|(name, client)| {
            (name.map_or_else(|| client.address(), str::to_owned), client.clone())
        })
        .collect();
    if queried.is_empty() {
        args.remote.client()?;
    }
    let answers = runtime::block_on(async {
        let answers = queried.iter().map(|(_, client)| ask(args, &registries, client));
        Ok(join_all(answers).await)
    })?;
    let (mut hits, mut unreachable) = (Vec::new(), Vec::new());
    for ((title, client), answer) in queried.iter().zip(answers) {
        match answer {
            Ok(found) => hits.extend(
                own_results(args, &registries, client, found)
                    .map(|summary| Hit { registry: title.clone(), summary }),
            ),
            Err(error) => unreachable.push(UnreachableRegistry { registry: title.clone(), error }),
        }
    }
    if unreachable.len() == queried.len() {
        return Err(no_registry_error(unreachable));
    }
    hits.truncate(args.limit as usize);
    print(args, &hits, &unreachable, queried.len())
}

/// The namespaces that a registry is limited to. --registry has no such limit.
fn bounds<'a>(
    args: &Args,
    registries: &'a Registries,
    client: &Client,
) -> Option<&'a BTreeSet<String>> {
    registries.only_namespaces(client).filter(|_| args.remote.registry.is_none())
}

async fn ask(
    args: &Args,
    registries: &Registries,
    client: &Client,
) -> Result<Found, RegistryError> {
    if let Some(namespaces) = bounds(args, registries, client) {
        return ask_within(args, client, namespaces).await;
    }
    if args.is_listing() {
        let items = client.list(&args.listing(args.limit)).await?.items;
        return Ok(args.newest(items));
    }
    client.search_for(&args.query_text(), Some(args.limit)).await
}

/// Searches for skills of some namespaces. A registry that cannot filter by namespace returns other
/// skills, too, so the maximum number is requested: few may remain.
async fn ask_within(
    args: &Args,
    client: &Client,
    namespaces: &BTreeSet<String>,
) -> Result<Found, RegistryError> {
    // A skill without a namespace has its own namespace, `_/NAME`.
    let alone: Vec<String> = namespaces.iter().map(|name| format!("_/{name}")).collect();
    if !args.is_listing() {
        let all: Vec<String> = namespaces.iter().cloned().chain(alone).collect();
        return client.search_within(&args.query_text(), Some(MAX_RESULTS), &all).await;
    }
    let listed = namespaces.iter().map(|namespace| list_of(args, client, namespace));
    let listed: Vec<_> = stream::iter(listed).buffered(MAX_ASKED_AT_ONCE).collect().await;
    let mut items = Vec::new();
    for some in listed {
        items.extend(some?);
    }
    // Lists do not contain skills without a namespace, and a registry with lists may have no
    // search.
    if let Ok(found) = client.search_within(&args.query_text(), Some(MAX_RESULTS), &alone).await {
        items.extend(found.items);
    }
    let mut known = HashSet::new();
    items.retain(|one| known.insert(one.name.clone()));
    Ok(args.newest(items))
}

async fn list_of(
    args: &Args,
    client: &Client,
    namespace: &str,
) -> Result<Vec<Summary>, RegistryError> {
    let listing = Listing { namespace: Some(namespace.to_owned()), ..args.listing(MAX_RESULTS) };
    match client.list(&listing).await {
        Ok(found) => Ok(found.items),
        // The registry may reject such a name, because it is not a valid namespace.
        Err(RegistryError::Refused { status: 400 | 404 | 410, .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

impl Args {
    /// Whether to list recently changed skills instead of searching.
    fn is_listing(&self) -> bool {
        self.query.is_empty() && self.tag.len() < 2 && !self.evaluated
    }

    fn listing(&self, most: u32) -> Listing {
        Listing {
            per_page: Some(most),
            tag: self.tag.first().cloned(),
            tier: self.tier,
            author: self.author.clone(),
            sort: Some(Sort::Recent),
            ..Listing::default()
        }
    }

    /// Sorts by date, newest first: some registries always sort by name.
    fn newest(&self, mut items: Vec<Summary>) -> Found {
        items.sort_by(|one, other| other.updated_at.cmp(&one.updated_at));
        Found { query: self.query_text(), items, total: None }
    }

    /// The query as it is sent to registries.
    fn query_text(&self) -> String {
        let mut words = self.query.clone();
        let mut filter = |key: &str, value: &str| {
            let value = value.replace('"', " ");
            let blank = value.contains(char::is_whitespace);
            words.push(if blank { format!("{key}:\"{value}\"") } else { format!("{key}:{value}") });
        };
        for tag in &self.tag {
            filter("tag", tag);
        }
        if let Some(author) = &self.author {
            filter("author", author);
        }
        if let Some(tier) = self.tier {
            filter("tier", tier.as_str());
        }
        if self.evaluated {
            filter("evaluated", "yes");
        }
        words.join(" ")
    }
}

/// The results of a registry, without skills that belong to another registry or, if it is limited to some
/// namespaces, to other namespaces.
fn own_results<'a>(
    args: &Args,
    registries: &'a Registries,
    client: &'a Client,
    found: Found,
) -> impl Iterator<Item = Summary> + 'a {
    let bounded = bounds(args, registries, client).is_some();
    found.items.into_iter().filter(move |summary| match registries.owner_of(&summary.name) {
        Some(owner) => owner.address() == client.address(),
        None => !bounded,
    })
}

fn no_registry_error(mut unreachable: Vec<UnreachableRegistry>) -> CommandError {
    if unreachable.len() == 1 {
        return unreachable.remove(0).error.into();
    }
    let failed = CommandError::findings("no registry answered").with_code("no_answer");
    unreachable
        .iter()
        .fold(failed, |failed, one| failed.hint(format!("{}: {}", one.registry, one.error)))
}

fn print(
    args: &Args,
    hits: &[Hit],
    unreachable: &[UnreachableRegistry],
    queried: usize,
) -> Result<ExitCode, CommandError> {
    if args.json {
        let problems = unreachable.iter().map(|one| {
            let (code, message) = (one.error.code(), one.error.to_string());
            json!({ "registry": one.registry, "code": code, "message": message })
        });
        output::json(&json!({
            "query": args.query_text(),
            "items": hits.iter().map(as_json).collect::<Vec<_>>(),
            "problems": problems.collect::<Vec<_>>(),
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    for one in unreachable {
        output::note(&format!("skipped {}: {}", one.registry, one.error));
    }
    if hits.is_empty() {
        output::text("no skills found\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let wide = output::width().unwrap_or(DEFAULT_WIDTH);
    output::text(&if queried > 1 {
        with_registries(hits, wide)
    } else {
        table_of_one_registry(hits, wide)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn as_json(hit: &Hit) -> Value {
    let mut value = serde_json::to_value(&hit.summary).unwrap_or_default();
    value["registry"] = json!(hit.registry);
    value
}

type Row<'a> = [Cow<'a, str>; 5];

fn row(hit: &Hit) -> Row<'_> {
    let summary = &hit.summary;
    let description = summary.description.as_deref().unwrap_or_default();
    // The description is shown on one line.
    let description: Vec<&str> = description.split_whitespace().collect();
    [
        summary.name.to_string().into(),
        output::cell(summary.latest_version.as_deref().unwrap_or("-")),
        summary.security_tier.as_str().into(),
        output::cell(&description.join(" ")).into_owned().into(),
        truncate(&output::cell(&summary.tags.join(", ")), MAX_TAGS_WIDTH).into_owned().into(),
    ]
}

fn table_of_one_registry(hits: &[Hit], wide: usize) -> String {
    let mut rows: Vec<Row<'_>> = hits.iter().map(row).collect();
    let room = description_width(wide, &rows, 0);
    for row in &mut rows {
        row[3] = truncate(&row[3], room).into_owned().into();
    }
    output::table(["NAME", "VERSION", "TIER", "DESCRIPTION", "TAGS"], &rows)
}

fn with_registries(hits: &[Hit], wide: usize) -> String {
    let rows: Vec<Row<'_>> = hits.iter().map(row).collect();
    let registry = hits.iter().map(|hit| hit.registry.chars().count()).max().unwrap_or(0).max(8);
    let room = description_width(wide, &rows, registry + 2);
    let rows: Vec<[Cow<'_, str>; 6]> = rows
        .into_iter()
        .zip(hits)
        .map(|([name, version, tier, description, tags], hit)| {
            let description = truncate(&description, room).into_owned().into();
            [name, version, tier, output::cell(&hit.registry), description, tags]
        })
        .collect();
    output::table(["NAME", "VERSION", "TIER", "REGISTRY", "DESCRIPTION", "TAGS"], &rows)
}

/// The number of columns that remain for descriptions.
fn description_width(wide: usize, rows: &[Row<'_>], more: usize) -> usize {
    let head = ["NAME", "VERSION", "TIER", "", "TAGS"];
    let widest = |at: usize| {
        let cells = rows.iter().map(|row| row[at].chars().count());
        cells.max().unwrap_or(0).max(head[at].len())
    };
    let others: usize = [0, 1, 2, 4].into_iter().map(|at| widest(at) + 2).sum();
    wide.saturating_sub(others + more).max(MIN_DESCRIPTION_WIDTH)
}

/// Shortens a text to a number of columns.
fn truncate(text: &str, most: usize) -> Cow<'_, str> {
    if text.char_indices().nth(most).is_none() {
        return Cow::Borrowed(text);
    }
    let shortened: String = text.chars().take(most.saturating_sub(1)).collect();
    Cow::Owned(format!("{}…", shortened.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_become_part_of_the_query() {
        let args = Args {
            query: vec!["fill".into(), "forms".into()],
            tag: vec!["pdf".into(), "two words".into()],
            tier: Some(Tier::Verified),
            author: Some("Ada \"L\"".into()),
            evaluated: true,
            limit: 5,
            remote: Remote::default(),
            offline: false,
            json: false,
        };
        let expected = "fill forms tag:pdf tag:\"two words\" author:\"Ada  L \" tier:verified \
                        evaluated:yes";
        assert_eq!(args.query_text(), expected);
    }

    #[test]
    fn texts_are_cut_where_they_are_too_long() {
        assert_eq!(truncate("short", 5), "short");
        assert_eq!(truncate("a longer text", 9), "a longer…");
        assert_eq!(truncate("äöüäöü", 4), "äöü…");
        assert_eq!(truncate("abc", 0), "…");
    }
}
