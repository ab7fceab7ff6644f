//! Routes for skills and their versions.

use axum::{
    extract::State,
    http::{HeaderMap, Method, Uri},
    response::Response,
};
use savoir_package::registry::wire;
use savoir_registry::{CachePolicy, CacheableResponse};
use savoir_skill::{Source, read};
use savoir_store::registry::{
    Cursor, Filter, Namespace, Order, Package, PackageName, PackageVersion, Yanked,
};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    artefacts, docs,
    error::{RegistryApiError, RegistryResult},
    extract::{PathParams, Query, ReadAccess, parse_package, parse_version, registry},
    render, respond_and_cache,
};
use crate::{
    app::App,
    insight::{PermissionView, permissions},
};

/// Default number of skills in a page.
const DEFAULT_PAGE_SIZE: u64 = 20;
/// Maximum number of skills in a page.
pub(super) const MAX_PAGE_SIZE: u64 = 100;
/// Maximum number of a numbered page. Later pages need a cursor.
const MAX_PAGE_NUMBER: u64 = 100;
/// Maximum number of skills that are counted exactly.
const MAX_COUNTED: u64 = 10_000;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get_skill))
        .routes(routes!(download))
        .routes(routes!(get_skill_or_version))
        .routes(routes!(download_in))
        .routes(routes!(get_version))
}

pub(super) fn json(value: &impl Serialize) -> RegistryResult<CacheableResponse> {
    let text = serde_json::to_vec(value).map_err(|error| RegistryApiError::failed(&error))?;
    Ok(CacheableResponse::new("application/json", CachePolicy::Check, text))
}

/// The parameters of a list request.
#[derive(Debug)]
struct ListRequest {
    filter: Filter,
    order: Order,
    limit: u64,
}

impl ListRequest {
    fn read(query: &Query) -> RegistryResult<Self> {
        let since = match query.time("updated_since")? {
            Some(since) => Some(since),
            None => query.time("updated")?,
        };
        let order = match (query.text("sort"), since) {
            (None | Some("name"), None) => Order::Name,
            (None | Some("updated"), since) => Order::Updated { since },
            (Some("recent"), since) => Order::Recent { since },
            (Some(_), _) => {
                return Err(RegistryApiError::invalid("`sort` is name, updated or recent"));
            }
        };
        let filter = Filter {
            namespace: query.text("namespace").map(Namespace::parse).transpose()?,
            tag: query.text("tag").map(str::to_owned),
            tier: query.tier()?,
            author: query.text("author").map(str::to_owned),
            yanked: match query.text("yanked") {
                None => Yanked::Without,
                Some("include") => Yanked::With,
                Some(_) => {
                    return Err(RegistryApiError::invalid("`yanked` is include, or is left out"));
                }
            },
        };
        // Only the list sorted by name has a database index for filters.
        let narrowed = filter.tag.is_some() || filter.tier.is_some() || filter.author.is_some();
        if filter.yanked == Yanked::With && (narrowed || order != Order::Name) {
            let message =
                "`yanked` goes with the list by name, without tag, tier, author and times";
            return Err(RegistryApiError::invalid(message));
        }
        let limit = query.number("per_page", MAX_PAGE_SIZE)?.unwrap_or(DEFAULT_PAGE_SIZE);
        Ok(Self { filter, order, limit })
    }
}

/// List skills.
///
/// Sorted by name, in pages: `next_cursor` of one page is the `cursor` of the next. Without
/// `cursor`, pages are numbered from `page` 1 and the response has the total count.
#[utoipa::path(
    get, path = "/api/v1/skills", tag = "registry",
    params(
        ("cursor" = Option<String>, Query, description = "The cursor of the previous page"),
        ("page" = Option<u64>, Query, minimum = 1, maximum = 100, description = "Which page"),
        ("per_page" = Option<u64>, Query, minimum = 1, maximum = 100,
         description = "Page size; default: 20"),
        ("namespace" = Option<String>, Query, description = "Those of a namespace"),
        ("tag" = Option<String>, Query, description = "Those that have a tag"),
        ("tier" = Option<String>, Query, description = "Those that earned a tier"),
        ("author" = Option<String>, Query, description = "Those of an author"),
        ("updated_since" = Option<String>, Query,
         description = "Those that changed since a time, as RFC 3339; longest ago first"),
        ("updated" = Option<String>, Query, description = "The same, with GAIA's name"),
        ("sort" = Option<String>, Query, description = "name, updated or recent"),
        ("yanked" = Option<String>, Query,
         description = "include: also skills of which every version is yanked"),
    ),
    responses((status = 200, body = wire::Page), docs::Invalid, docs::Unauthorized, docs::Unavailable)
)]
async fn list(
    State(app): State<App>,
    _: ReadAccess,
    query: Query,
    method: Method,
    headers: HeaderMap,
) -> RegistryResult<Response> {
    let wanted = ListRequest::read(&query)?;
    let page = match (query.number("page", MAX_PAGE_NUMBER)?, query.text("cursor")) {
        (Some(_), Some(_)) => {
            return Err(RegistryApiError::invalid("give either `page` or `cursor`"));
        }
        (Some(page), None) => page_by_number(&app, &wanted, page).await?,
        (None, None) => first_page(&app, &wanted).await?,
        (None, Some(cursor)) => {
            let cursor: Cursor = cursor.parse()?;
            let ListRequest { filter, order, limit } = &wanted;
            let page = registry(&app).list(filter, *order, Some(&cursor), *limit).await?;
            wire::Page {
                items: render::summaries(&app, &page.items).await?,
                next_cursor: page.next.map(|next| next.to_string()),
                page: None,
                per_page: None,
                total: None,
                total_is_estimate: None,
            }
        }
    };
    Ok(json(&page)?.respond(&method, &headers))
}

/// Page 1, with the cursor of the next page: clients may go on with either.
async fn first_page(app: &App, wanted: &ListRequest) -> RegistryResult<wire::Page> {
    let ListRequest { filter, order, limit } = wanted;
    let found = registry(app).list(filter, *order, None, *limit).await?;
    let next_cursor = found.next.as_ref().map(ToString::to_string);
    let items = render::summaries(app, &found.items).await?;
    if next_cursor.is_some() {
        let page = page_by_number(app, wanted, 1).await?;
        return Ok(wire::Page { items, next_cursor, ..page });
    }
    let total = items.len() as u64;
    Ok(wire::Page {
        items,
        next_cursor,
        page: Some(1),
        per_page: Some(*limit),
        total: Some(total),
        total_is_estimate: None,
    })
}

/// A page by number, for clients that do not support cursors.
async fn page_by_number(app: &App, wanted: &ListRequest, page: u64) -> RegistryResult<wire::Page> {
    let ListRequest { filter, order, limit } = wanted;
    let (skip, end) = ((page - 1) * limit, page * limit);
    let (mut items, mut cursor, mut seen) = (Vec::new(), None, 0);
    let all_seen = loop {
        let found = registry(app).list(filter, *order, cursor.as_ref(), 1000).await?;
        for summary in found.items {
            if (skip..end).contains(&seen) {
                items.push(summary);
            }
            seen += 1;
        }
        cursor = found.next;
        if cursor.is_none() || seen >= MAX_COUNTED.max(end) {
            break cursor.is_none();
        }
    };
    // Without a filter, the size of the search index is a good estimate.
    let known = app.registry_state.search().map_or(0, |index| index.skill_count());
    Ok(wire::Page {
        items: render::summaries(app, &items).await?,
        next_cursor: None,
        page: Some(page),
        per_page: Some(*limit),
        total: Some(if all_seen { seen } else { seen.max(known) }),
        total_is_estimate: (!all_seen).then_some(true),
    })
}

/// Show a skill of the default namespace, with its versions.
#[utoipa::path(
    get, path = "/api/v1/skills/{name}", tag = "registry", operation_id = "get_skill",
    params(("name" = String, Path, description = "Its name")),
    responses(
        (status = 200, body = wire::PackageDetail), docs::Invalid, docs::Unauthorized,
        docs::NotFound, docs::Unavailable
    )
)]
async fn get_skill(
    State(app): State<App>,
    _: ReadAccess,
    PathParams(name): PathParams<String>,
    (method, uri, headers): (Method, Uri, HeaderMap),
) -> RegistryResult<Response> {
    let answer = show_package(&app, &parse_package(None, &name)?, &uri).await?;
    Ok(answer.respond(&method, &headers))
}

/// Show a version of a skill in the default namespace, or a skill in another namespace.
///
/// `/{name}/{version}` is the first, `/{namespace}/{name}` the second: no name looks like a
/// version.
#[utoipa::path(
    get, path = "/api/v1/skills/{name}/{version}", tag = "registry", operation_id = "get_version_or_skill_in",
    params(
        ("name" = String, Path, description = "Its name, or a namespace"),
        ("version" = String, Path, description = "The version, or a name"),
    ),
    responses(
        (status = 200, body = docs::PackageOrVersion), docs::Invalid, docs::Unauthorized,
        docs::NotFound, docs::Unavailable
    )
)]
async fn get_skill_or_version(
    State(app): State<App>,
    _: ReadAccess,
    PathParams((first, second)): PathParams<(String, String)>,
    (method, uri, headers): (Method, Uri, HeaderMap),
) -> RegistryResult<Response> {
    let answer = if second.starts_with(|c: char| c.is_ascii_digit()) {
        show_version(&app, &parse_package(None, &first)?, &second, &uri).await?
    } else {
        show_package(&app, &parse_package(Some(&first), &second)?, &uri).await?
    };
    Ok(answer.respond(&method, &headers))
}

/// Show a version of a skill of a namespace.
#[utoipa::path(
    get, path = "/api/v1/skills/{namespace}/{name}/{version}", tag = "registry", operation_id = "get_version_in",
    params(
        ("namespace" = String, Path, description = "The namespace"),
        ("name" = String, Path, description = "Its name"),
        ("version" = String, Path, description = "The version"),
    ),
    responses(
        (status = 200, body = DescribedVersion), docs::Invalid, docs::Unauthorized,
        docs::NotFound, docs::Unavailable
    )
)]
async fn get_version(
    State(app): State<App>,
    _: ReadAccess,
    PathParams((namespace, name, version)): PathParams<(String, String, String)>,
    (method, uri, headers): (Method, Uri, HeaderMap),
) -> RegistryResult<Response> {
    let answer =
        show_version(&app, &parse_package(Some(&namespace), &name)?, &version, &uri).await?;
    Ok(answer.respond(&method, &headers))
}

/// Download the highest version in a range.
///
/// The headers `X-Skill-Version`, `X-Integrity` and `ETag` say which version it is.
#[utoipa::path(
    get, path = "/api/v1/skills/{name}/download", tag = "registry",
    params(
        ("name" = String, Path, description = "Its name"),
        ("version" = Option<String>, Query, description = "A range such as ^1.2; default: all"),
    ),
    responses(docs::Archive, docs::Invalid, docs::Unauthorized, docs::NotFound, docs::Unavailable)
)]
async fn download(
    State(app): State<App>,
    _: ReadAccess,
    PathParams(name): PathParams<String>,
    query: Query,
    (method, headers): (Method, HeaderMap),
) -> RegistryResult<Response> {
    send_newest(&app, &parse_package(None, &name)?, &query, &method, &headers).await
}

/// Download the highest version of a skill of a namespace in a range.
#[utoipa::path(
    get, path = "/api/v1/skills/{namespace}/{name}/download", tag = "registry",
    params(
        ("namespace" = String, Path, description = "The namespace"),
        ("name" = String, Path, description = "Its name"),
        ("version" = Option<String>, Query, description = "A range such as ^1.2; default: all"),
    ),
    responses(docs::Archive, docs::Invalid, docs::Unauthorized, docs::NotFound, docs::Unavailable)
)]
async fn download_in(
    State(app): State<App>,
    _: ReadAccess,
    PathParams((namespace, name)): PathParams<(String, String)>,
    query: Query,
    (method, headers): (Method, HeaderMap),
) -> RegistryResult<Response> {
    send_newest(&app, &parse_package(Some(&namespace), &name)?, &query, &method, &headers).await
}

async fn send_newest(
    app: &App,
    package: &PackageName,
    query: &Query,
    method: &Method,
    headers: &HeaderMap,
) -> RegistryResult<Response> {
    let chosen = registry(app).resolve_version(package, &query.range("version")?).await?;
    artefacts::send_chosen(app, &chosen, method, headers).await
}

async fn show_package(
    app: &App,
    name: &PackageName,
    uri: &Uri,
) -> RegistryResult<CacheableResponse> {
    respond_and_cache(app, uri, name, None, async {
        let missing = || RegistryApiError::not_found(format!("there is no skill {name} here"));
        let package = registry(app).package(name).await?.ok_or_else(missing)?;
        let readme = readme(app, &package).await?;
        let downloads = registry(app).downloads(name).await?;
        let attestations = registry(app).attestation_counts(std::slice::from_ref(name)).await?;
        let attestations = attestations.get(name).copied();
        json(&render::detail(&package, readme, &downloads, attestations)?)
    })
    .await
}

/// The text of SKILL.md of the newest version.
async fn readme(app: &App, package: &Package) -> RegistryResult<Option<String>> {
    let Some(latest) = &package.summary.latest else { return Ok(None) };
    match registry(app).version(&package.summary.package, latest).await {
        Ok(latest) => skill_md(app, &latest).await,
        // The version was just withdrawn.
        Err(savoir_store::registry::RegistryError::Withdrawn { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn skill_md(app: &App, known: &PackageVersion) -> RegistryResult<Option<String>> {
    Ok(render::text(registry(app).blob(&known.skill_md).await?)?)
}

async fn show_version(
    app: &App,
    name: &PackageName,
    text: &str,
    uri: &Uri,
) -> RegistryResult<CacheableResponse> {
    let version = parse_version(text)?;
    respond_and_cache(app, uri, name, None, async {
        let known = registry(app).version(name, &version).await?;
        let signatures = registry(app).signatures(name, &version).await?;
        let text = match known.why_blocked() {
            Some(_) => None,
            None => skill_md(app, &known).await?,
        };
        let permissions = match text.clone() {
            Some(text) => Some(permissions_of(text).await?),
            None => None,
        };
        let mut shown = render::version_detail(&known, text, &signatures)?;
        if shown.deprecated.is_none() {
            let package = registry(app).summaries(std::slice::from_ref(name)).await?.pop();
            shown.deprecated = package.and_then(|package| package.deprecated);
        }
        json(&DescribedVersion { version: shown, permissions })
    })
    .await
}

/// A version with what it may do, as the report before publishing says it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RegistryDescribedVersion)]
pub(super) struct DescribedVersion {
    #[serde(flatten)]
    version: wire::VersionDetail,
    /// What the skill may do, in plain language. Missing if the version is blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    permissions: Option<Vec<PermissionView>>,
}

/// Describes what the skill with this text may do.
pub(super) async fn permissions_of(text: String) -> RegistryResult<Vec<PermissionView>> {
    let reading =
        tokio::task::spawn_blocking(move || permissions(&read(Source::new(text), None).skill));
    reading.await.map_err(|error| RegistryApiError::failed(&error))
}
