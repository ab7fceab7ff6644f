//! Routes for reviews of skills, pages of publishers and requests for an audit.

use axum::{
    extract::State,
    http::{HeaderMap, Method, StatusCode},
    response::Response,
};
use savoir_package::registry::wire;
use savoir_store::registry::{Filter, MAX_RATING, Namespace, NewReview, Order, Rating, Review};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    account::check_logged_in,
    docs,
    error::{RegistryApiError, RegistryResult},
    extract::{
        OptionalCaller, PathParams, Query, ReadAccess, RegistryCaller, parse_version, registry,
    },
    render,
    request::{Body, PackageOrVersionPath, RoutePrefix, VersionPath, respond},
    skills::{MAX_PAGE_SIZE, json},
};
use crate::{
    app::App,
    body::{Members, Shape, ShapeError, Text},
};

/// Maximum length of a message.
const MAX_MESSAGE_LENGTH: usize = 4096;
const DEFAULT_PAGE_SIZE: u64 = 20;
/// Maximum number of skills on the page of a publisher; `/skills?namespace=` lists them all.
const MAX_LISTED_SKILLS: u64 = 100;

/// The paths of skills.
const PREFIX_PATHS: [RoutePrefix; 2] = [
    RoutePrefix {
        prefix: "/api/v1/skills/{name}",
        suffix: "",
        parameters: &[("name", "The skill")],
    },
    RoutePrefix {
        prefix: "/api/v1/skills/{namespace}/{name}",
        suffix: "_in",
        parameters: &[("namespace", "The namespace"), ("name", "The skill")],
    },
];

pub(super) fn router() -> OpenApiRouter<App> {
    let of_version = || OpenApiRouter::new().routes(routes!(request_audit));
    let all = OpenApiRouter::new()
        .merge(RoutePrefix::FLAT.mount(of_version()))
        .merge(RoutePrefix::IN_NAMESPACE.mount(of_version()))
        .routes(routes!(publisher));
    PREFIX_PATHS.into_iter().fold(all, |all, place| {
        let reviews = OpenApiRouter::new().routes(routes!(reviews, set_review, remove_review));
        all.merge(place.mount(reviews))
    })
}

/// A review to write.
#[derive(Debug, ToSchema)]
#[schema(as = RegistryNewReview)]
struct WrittenReview {
    /// From 1 to 5.
    #[schema(minimum = 1, maximum = 5)]
    rating: u8,
    #[schema(max_length = 4096)]
    message: Option<String>,
    /// The version that you use.
    version: Option<String>,
}

impl Shape for WrittenReview {
    fn read(members: &mut Members) -> Self {
        let rating = members.optional_integer("rating", 1, i64::from(MAX_RATING));
        if members.value("rating").is_none() {
            let location = members.location_of("rating");
            let message = "Input should be a valid integer";
            members.reject(ShapeError::new("int_type", location, message, Value::Null));
        }
        Self {
            rating: rating.and_then(|rating| u8::try_from(rating).ok()).unwrap_or(1),
            message: members.optional_text("message", Text::between(0, MAX_MESSAGE_LENGTH)),
            version: members.optional_text("version", Text::between(1, 256)),
        }
    }
}

/// A request for an audit.
#[derive(Debug, ToSchema)]
#[schema(as = RegistryAuditRequest)]
struct AuditRequest {
    #[schema(max_length = 4096)]
    message: Option<String>,
}

impl Shape for AuditRequest {
    fn read(members: &mut Members) -> Self {
        Self { message: members.optional_text("message", Text::between(0, MAX_MESSAGE_LENGTH)) }
    }
}

/// A review of a skill.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RegistryReview)]
struct ShownReview {
    /// The id of the author's account. Email addresses are not shown.
    account: i64,
    /// Whether it is your own review.
    mine: bool,
    rating: u8,
    message: String,
    version: Option<String>,
    created_at: String,
    updated_at: String,
}

impl ShownReview {
    fn new(review: &Review, reader: Option<i64>) -> Self {
        Self {
            account: review.account,
            mine: reader == Some(review.account),
            rating: review.rating,
            message: review.message.clone(),
            version: review.version.as_ref().map(ToString::to_string),
            created_at: review.created_at.to_string(),
            updated_at: review.updated_at.to_string(),
        }
    }
}

/// The mean of all ratings and their distribution.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RegistryRating)]
struct ShownRating {
    /// None without reviews.
    average: Option<f64>,
    count: u64,
    /// The number of ratings with 1, 2, 3, 4 and 5.
    #[schema(min_items = 5, max_items = 5)]
    by_rating: Vec<u64>,
}

impl From<Rating> for ShownRating {
    fn from(rating: Rating) -> Self {
        let average = rating.average().map(|average| (average * 100.0).round() / 100.0);
        Self { average, count: rating.count, by_rating: rating.by_rating.to_vec() }
    }
}

/// The reviews of a skill.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RegistryReviews)]
struct ReviewList {
    /// Newest first.
    items: Vec<ShownReview>,
    rating: ShownRating,
    page: u64,
    per_page: u64,
    total: u64,
}

/// The page of a publisher.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RegistryPublisher)]
struct ShownPublisher {
    namespace: String,
    created_at: String,
    /// The number of skills.
    skill_count: u64,
    signed_count: u64,
    verified_count: u64,
    downloads: u64,
    rating: ShownRating,
    /// From 0 to 100: 40 for signed skills, 30 for ratings, 30 for downloads.
    reputation: u8,
    /// The most recently changed skills.
    skills: Vec<wire::Summary>,
}

/// List the reviews of a skill, newest first, with its rating.
#[utoipa::path(
    get, path = "/reviews", tag = "registry",
    params(
        ("page" = Option<u64>, Query, minimum = 1, maximum = 100, description = "Which page"),
        ("per_page" = Option<u64>, Query, minimum = 1, maximum = 100,
         description = "Page size; default: 20"),
    ),
    responses(
        (status = 200, body = ReviewList), docs::Invalid, docs::Unauthorized, docs::NotFound,
        docs::Unavailable
    )
)]
async fn reviews(
    State(app): State<App>,
    _: ReadAccess,
    OptionalCaller(reader): OptionalCaller,
    PackageOrVersionPath { package, .. }: PackageOrVersionPath,
    query: Query,
) -> RegistryResult<Response> {
    if registry(&app).summaries(std::slice::from_ref(&package)).await?.is_empty() {
        return Err(RegistryApiError::not_found(format!("there is no skill {package} here")));
    }
    let per_page = query.number("per_page", MAX_PAGE_SIZE)?.unwrap_or(DEFAULT_PAGE_SIZE);
    let page = query.number("page", 100)?.unwrap_or(1);
    let found = registry(&app).reviews(&package, per_page, (page - 1) * per_page).await?;
    let rating = registry(&app).rating(&package).await?;
    let reader = reader.map(|reader| reader.caller.user.id);
    let items = found.iter().map(|review| ShownReview::new(review, reader)).collect();
    let total = rating.count;
    let list = ReviewList { items, rating: rating.into(), page, per_page, total };
    Ok(respond(StatusCode::OK, &list))
}

/// Write or replace your review of a skill. Tokens of programs cannot do this.
#[utoipa::path(
    put, path = "/reviews", tag = "registry", security(("bearer" = [])), request_body = WrittenReview,
    responses(
        (status = 200, body = ShownReview), docs::Invalid, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::TooLarge, docs::Unsupported, docs::TooManyRequests, docs::Unavailable
    )
)]
async fn set_review(
    State(app): State<App>,
    registry_caller: RegistryCaller,
    PackageOrVersionPath { package, .. }: PackageOrVersionPath,
    Body(written): Body<WrittenReview>,
) -> RegistryResult<Response> {
    check_logged_in(&registry_caller)?;
    let version = written.version.as_deref().map(parse_version).transpose()?;
    let message = written.message.unwrap_or_default();
    let new = NewReview { rating: written.rating, message: &message, version: version.as_ref() };
    let stored = registry(&app).set_review(&registry_caller.actor, &package, new).await?;
    let reader = Some(registry_caller.caller.user.id);
    Ok(respond(StatusCode::OK, &ShownReview::new(&stored, reader)))
}

/// Remove your review of a skill. Administrators can remove that of any account.
///
/// Tokens of programs cannot do this.
#[utoipa::path(
    delete, path = "/reviews", tag = "registry", security(("bearer" = [])),
    params(("account" = Option<i64>, Query, minimum = 1,
            description = "The account that wrote it; default: yours")),
    responses(
        (status = 204, description = "The review was removed"), docs::Invalid, docs::Unauthorized,
        docs::Forbidden, docs::NotFound, docs::TooManyRequests, docs::Unavailable
    )
)]
async fn remove_review(
    State(app): State<App>,
    registry_caller: RegistryCaller,
    PackageOrVersionPath { package, .. }: PackageOrVersionPath,
    query: Query,
) -> RegistryResult<StatusCode> {
    check_logged_in(&registry_caller)?;
    let account = query.number("account", i64::MAX.unsigned_abs())?;
    let account = account.and_then(|account| i64::try_from(account).ok());
    if registry(&app).remove_review(&registry_caller.actor, &package, account).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(RegistryApiError::not_found("there is no such review"))
}

/// Show a publisher: its skills, ratings, downloads and reputation.
#[utoipa::path(
    get, path = "/api/v1/publishers/{namespace}", tag = "registry",
    params(("namespace" = String, Path, description = "The namespace")),
    responses(
        (status = 200, body = ShownPublisher), docs::Invalid, docs::Unauthorized, docs::NotFound,
        docs::Unavailable
    )
)]
async fn publisher(
    State(app): State<App>,
    _: ReadAccess,
    PathParams(namespace): PathParams<String>,
    (method, headers): (Method, HeaderMap),
) -> RegistryResult<Response> {
    let namespace = Namespace::parse(&namespace)?;
    let missing = || RegistryApiError::not_found(format!("there is no namespace {namespace} here"));
    let found = registry(&app).publisher(&namespace).await?.ok_or_else(missing)?;
    let filter = Filter { namespace: Some(namespace.clone()), ..Filter::default() };
    let order = Order::Recent { since: None };
    let skills = registry(&app).list(&filter, order, None, MAX_LISTED_SKILLS).await?;
    let shown = ShownPublisher {
        namespace: namespace.to_string(),
        created_at: found.created_at.to_string(),
        skill_count: found.packages,
        signed_count: found.signed_packages,
        verified_count: found.verified_packages,
        downloads: found.downloads,
        reputation: found.reputation(),
        rating: found.rating.into(),
        skills: render::summaries(&app, &skills.items).await?,
    };
    Ok(json(&shown)?.respond(&method, &headers))
}

/// Ask the administrators to audit a version, which can make it `verified`.
///
/// They find it in the audit log, as `audit_requested`.
#[utoipa::path(
    post, path = "/audit-request", tag = "registry", security(("bearer" = [])),
    request_body = AuditRequest,
    responses(
        (status = 202, description = "The request was recorded"), docs::Invalid,
        docs::Unauthorized, docs::Forbidden, docs::NotFound, docs::TooLarge, docs::Unsupported,
        docs::TooManyRequests, docs::Unavailable
    )
)]
async fn request_audit(
    State(app): State<App>,
    registry_caller: RegistryCaller,
    VersionPath { package, version }: VersionPath,
    Body(AuditRequest { message }): Body<AuditRequest>,
) -> RegistryResult<StatusCode> {
    let message = message.unwrap_or_default();
    registry(&app).request_audit(&registry_caller.actor, &package, &version, &message).await?;
    Ok(StatusCode::ACCEPTED)
}
