//! The search route.

use std::collections::HashMap;

use axum::{
    extract::State,
    http::{HeaderMap, Method},
    response::Response,
};
use savoir_package::registry::wire;
use savoir_registry::search::{MAX_RESULTS, Query as Words, SearchError, SearchHits};
use savoir_store::registry::{PackageName, Summary};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    docs,
    error::{RegistryApiError, RegistryResult},
    extract::{Query, ReadAccess, registry},
    render,
    skills::{MAX_PAGE_SIZE, json},
};
use crate::app::App;

/// Default number of skills in a response.
const DEFAULT_PAGE_SIZE: u64 = 20;
/// Maximum namespaces in one request: as many as fit into a URL that clients send.
const MAX_NAMESPACES: usize = 500;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(search))
}

/// Search skills, best match first.
///
/// Words are searched in name, description, tags and text; in names and descriptions also with
/// typos and by synonyms. `total` counts the results of all pages, at most 1000. `"two words"` is a
/// phrase; `tag:`, `author:`, `tier:` and `evaluated:yes` filter. Without words, the most recently changed
/// skills are listed.
#[utoipa::path(
    get, path = "/api/v1/search", tag = "registry",
    params(
        ("q" = Option<String>, Query, description = "The words"),
        ("tag" = Option<String>, Query, description = "A tag that it must have"),
        ("tier" = Option<String>, Query, description = "experimental, community or verified"),
        ("author" = Option<String>, Query, description = "Who wrote it"),
        ("evaluated" = Option<bool>, Query,
         description = "Only skills whose latest version has a signed evaluation"),
        ("namespace" = Option<Vec<String>>, Query,
         description = "A namespace that it must be in, or a skill that has none as _/name; can be \
                        given several times, and one of them is enough"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 100, description = "How many"),
        ("page" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "Which page"),
    ),
    responses((status = 200, body = wire::Found), docs::Invalid, docs::Unauthorized, docs::Unavailable)
)]
async fn search(
    State(app): State<App>,
    _: ReadAccess,
    query: Query,
    (method, headers): (Method, HeaderMap),
) -> RegistryResult<Response> {
    let text = query.text("q").unwrap_or_default().to_owned();
    let words = Words {
        text: text.clone(),
        tags: query.all("tag").filter(|tag| !tag.is_empty()).map(str::to_owned).collect(),
        author: query.text("author").map(str::to_owned),
        tier: query.tier()?,
        evaluated: query.flag("evaluated")?,
        namespaces: namespaces(&query)?,
    };
    let limit = match query.number("limit", MAX_PAGE_SIZE)? {
        Some(limit) => limit,
        None => query.number("per_page", MAX_PAGE_SIZE)?.unwrap_or(DEFAULT_PAGE_SIZE),
    };
    let page = query.number("page", MAX_RESULTS as u64)?.unwrap_or(1);
    let (limit, offset) = (limit as usize, ((page - 1) * limit) as usize);
    let hits = find(&app, words, limit, offset).await?;
    let found = wire::Found {
        query: text,
        total: Some(hits.total as u64),
        items: summaries(&app, &hits).await?,
    };
    Ok(json(&found)?.respond(&method, &headers))
}

fn namespaces(query: &Query) -> RegistryResult<Vec<String>> {
    let named = query.all("namespace").filter(|name| !name.is_empty());
    let named: Vec<String> = named.map(str::to_owned).collect();
    if named.len() > MAX_NAMESPACES {
        return Err(RegistryApiError::invalid(format!(
            "give `namespace` at most {MAX_NAMESPACES} times"
        )));
    }
    Ok(named)
}

async fn find(app: &App, words: Words, limit: usize, offset: usize) -> RegistryResult<SearchHits> {
    let opening = || RegistryApiError::failed(&"the search index is not open yet");
    let index = app.registry_state.search().ok_or_else(opening)?;
    let found = tokio::task::spawn_blocking(move || index.search(&words, limit, offset));
    match found.await.map_err(|error| RegistryApiError::failed(&error))? {
        Ok(hits) => Ok(hits),
        Err(error @ SearchError::TooLong { .. }) => {
            Err(RegistryApiError::invalid(error.to_string()))
        }
        Err(error) => Err(RegistryApiError::failed(&error)),
    }
}

/// The summaries of the found skills, in the same order.
async fn summaries(app: &App, hits: &SearchHits) -> RegistryResult<Vec<wire::Summary>> {
    let names: Vec<PackageName> =
        hits.items.iter().filter_map(|hit| hit.key.parse().ok()).collect();
    let found = registry(app).summaries(&names).await?;
    let mut found: HashMap<PackageName, Summary> =
        found.into_iter().map(|summary| (summary.package.clone(), summary)).collect();
    let there = names.iter().filter_map(|name| found.remove(name));
    // The index may be slightly older than the database, so some skills may be missing.
    let there: Vec<Summary> = there.filter(|summary| summary.latest.is_some()).collect();
    render::summaries(app, &there).await
}
