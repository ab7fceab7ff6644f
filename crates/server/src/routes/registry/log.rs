//! Routes for the audit log.

use std::collections::{HashMap, HashSet};

use axum::{extract::State, http::StatusCode, response::Response};
use savoir_store::registry::{
    AuditAction, AuditEntry, AuditFilter, OwnerScope, PackageName, Right,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    docs,
    error::{RegistryApiError, RegistryResult},
    extract::{Query, RegistryCaller, registry},
    people::{check_member, emails},
    request::respond,
};
use crate::app::App;

/// Default entries of a page.
const DEFAULT_PAGE_SIZE: u64 = 50;
/// Maximum entries of a page.
const MAX_PAGE_SIZE: u64 = 100;
/// Maximum kinds of entries in one request.
const MAX_ACTS: usize = 10;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(log))
}

/// Entries, newest first.
#[derive(Debug, Serialize, ToSchema)]
struct AuditLog {
    items: Vec<LogEntry>,
    /// The cursor of the next page, with older entries; none on the last page.
    next_cursor: Option<String>,
}

/// An entry of the audit log.
#[derive(Debug, Serialize, ToSchema)]
struct LogEntry {
    /// The sequence number, without gaps.
    seq: u64,
    /// The action.
    act: &'static str,
    at: String,
    /// The account that did it; none if the account was deleted, or if it was the operator.
    account: Option<Who>,
    /// The API token that was used, if the caller may see the account.
    token: Option<String>,
    package: Option<String>,
    version: Option<String>,
    /// The namespace, or the skill that has a team of its own.
    namespace: Option<String>,
    #[schema(value_type = Object)]
    details: Value,
}

/// An account.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum Who {
    /// By its email address.
    Address(String),
    /// By its id. Only its team and administrators see the email address.
    Number(i64),
}

/// Whose email addresses the caller may see.
#[derive(Debug)]
enum AddressVisibility {
    Everybody,
    /// Addresses of accounts that are in a team with the caller.
    Team(HashSet<i64>),
}

impl AddressVisibility {
    fn has(&self, account: i64) -> bool {
        match self {
            Self::Everybody => true,
            Self::Team(members) => members.contains(&account),
        }
    }
}

/// List the audit log, newest first.
///
/// Administrators see everything. Members see the entries of their team, selected with `package` or
/// `namespace`; for accounts outside of the team they see only the account id.
#[utoipa::path(
    get, path = "/api/v1/audit-log", tag = "registry", security(("bearer" = [])),
    params(
        ("cursor" = Option<String>, Query, description = "The cursor of the previous page"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 100,
         description = "Entries of a page; 50 if nothing is said"),
        ("package" = Option<String>, Query, description = "Entries of a skill"),
        ("namespace" = Option<String>, Query,
         description = "Entries of a namespace, or of a skill with its own team as _/name"),
        ("account" = Option<String>, Query,
         description = "Entries of an account, by its email address or id"),
        ("act" = Option<Vec<String>>, Query,
         description = "The action, such as appealed; can be repeated"),
    ),
    responses(
        (status = 200, body = AuditLog), docs::Invalid, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::TooManyRequests, docs::Unavailable
    )
)]
async fn log(
    State(app): State<App>,
    registry_caller: RegistryCaller,
    query: Query,
) -> RegistryResult<Response> {
    let package: Option<PackageName> = query.text("package").map(str::parse).transpose()?;
    let owner_scope: Option<OwnerScope> = query.text("namespace").map(str::parse).transpose()?;
    let sight =
        check_may_read(&app, &registry_caller, package.as_ref(), owner_scope.as_ref()).await?;
    let before = query.number("cursor", i64::MAX as u64)?;
    let limit = query.number("limit", MAX_PAGE_SIZE)?.unwrap_or(DEFAULT_PAGE_SIZE);
    let account = match query.text("account") {
        None => None,
        Some(text) => Some(account_number(&app, text, &sight).await?),
    };
    let act = |word: &str| {
        let unknown =
            || RegistryApiError::invalid("`act` is a word of this log, such as yanked or appealed");
        AuditAction::named(word).ok_or_else(unknown)
    };
    let acts: Vec<AuditAction> = query.all("act").map(act).collect::<RegistryResult<_>>()?;
    if acts.len() > MAX_ACTS {
        return Err(RegistryApiError::invalid(format!("give `act` at most {MAX_ACTS} times")));
    }
    let filter = AuditFilter { package, owner_scope, account, acts };
    let found = registry(&app).audit(&filter, before, limit).await?;
    let last = found.last().filter(|_| found.len() as u64 == limit).map(|entry| entry.change.seq);
    let accounts = found.iter().filter_map(|entry| entry.account).collect();
    let emails = emails(&app, accounts).await?;
    let items = found.into_iter().map(|entry| to_log_entry(entry, &emails, &sight)).collect();
    let next_cursor = last.filter(|seq| *seq > 1).map(|seq| seq.to_string());
    Ok(respond(StatusCode::OK, &AuditLog { items, next_cursor }))
}

/// The account id for an email address or an id.
async fn account_number(app: &App, text: &str, sight: &AddressVisibility) -> RegistryResult<i64> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let found = app.database.accounts().by_email(text).await?.map(|(user, _)| user.id);
    // The id 0 has no entries. It stands for addresses that the caller may not see, because callers
    // must not find out which addresses have accounts, or whose an id is.
    Ok(found.filter(|account| sight.has(*account)).unwrap_or(0))
}

fn to_log_entry(
    entry: AuditEntry,
    emails: &HashMap<i64, String>,
    sight: &AddressVisibility,
) -> LogEntry {
    let seen = entry.account.is_none_or(|account| sight.has(account));
    // An account without an email address was deleted.
    let who = |account: i64| match emails.get(&account) {
        Some(email) if seen => Who::Address(email.clone()),
        _ => Who::Number(account),
    };
    LogEntry {
        seq: entry.change.seq,
        act: entry.change.act.as_str(),
        at: entry.done_at.to_string(),
        account: entry.account.map(who),
        token: entry.token.filter(|_| seen),
        package: entry.change.package.map(|package| package.to_string()),
        version: entry.change.version.map(|version| version.to_string()),
        namespace: entry.owner_scope.map(|owner_scope| owner_scope.to_string()),
        details: entry.details,
    }
}

/// Checks that the caller may see the requested entries. Returns whose addresses the caller sees in
/// them.
async fn check_may_read(
    app: &App,
    registry_caller: &RegistryCaller,
    package: Option<&PackageName>,
    owner_scope: Option<&OwnerScope>,
) -> RegistryResult<AddressVisibility> {
    if registry_caller.actor.is_admin() {
        return Ok(AddressVisibility::Everybody);
    }
    let places: Vec<OwnerScope> =
        package.map(PackageName::owner_scope).into_iter().chain(owner_scope.cloned()).collect();
    if places.is_empty() {
        let message = "name a `package` or a `namespace` of yours; only administrators see all";
        return Err(RegistryApiError::forbidden(message));
    }
    let mut team = HashSet::new();
    for place in &places {
        let may_read = registry_caller.actor.check_right(Right::Read, Some(place));
        may_read.or_else(|error| {
            registry_caller.actor.check_right(Right::Own, Some(place)).map_err(|_| error)
        })?;
        let members = check_member(app, registry_caller, place).await?;
        team.extend(members.into_iter().map(|member| member.user_id));
    }
    Ok(AddressVisibility::Team(team))
}
