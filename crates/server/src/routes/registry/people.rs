//! Routes for namespaces, their members and reserved prefixes.
//!
//! A namespace has a team, and so has each skill without a namespace. Email addresses are visible
//! only to members of the team and to administrators: nobody else can find out who has an account.

use std::collections::HashMap;

use axum::{extract::State, http::StatusCode, response::Response};
use savoir_store::{
    User,
    registry::{Member, Namespace, OwnerScope, RegistryError, Right, TeamRole},
};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    docs,
    error::{RegistryApiError, RegistryResult},
    extract::{OptionalCaller, PathParams, ReadAccess, RegistryCaller, registry},
    keys,
    request::{Below, Body, Owned, respond},
    settled,
};
use crate::{
    app::App,
    body::{Members, Shape, Text},
};

/// Maximum length of an email address.
pub(super) const MAX_EMAIL_LENGTH: usize = 255;

/// The paths of teams.
const PREFIX_PATHS: [Below; 3] = [
    Below {
        prefix: "/api/v1/namespaces/{namespace}",
        suffix: "_of_namespace",
        parameters: &[("namespace", "The namespace")],
    },
    Below {
        prefix: "/api/v1/skills/{name}",
        suffix: "_of_skill",
        parameters: &[("name", "The skill, which has its own team")],
    },
    Below {
        prefix: "/api/v1/skills/{namespace}/{name}",
        suffix: "_of_skill_in",
        parameters: &[
            ("namespace", "The namespace"),
            ("name", "The skill; in an owned namespace, the team is that of the namespace"),
        ],
    },
];

pub(super) fn router() -> OpenApiRouter<App> {
    let all = OpenApiRouter::new().routes(routes!(create)).routes(routes!(
        prefix,
        grant_prefix,
        revoke_prefix
    ));
    PREFIX_PATHS.into_iter().fold(all, |all, place| {
        let team = OpenApiRouter::new()
            .routes(routes!(members, set_member))
            .routes(routes!(remove_member))
            .routes(routes!(transfer))
            .merge(keys::of_team());
        all.merge(place.put(team))
    })
}

/// A member who is wanted.
#[derive(Debug, ToSchema)]
struct WantedMember {
    /// The email address of the account.
    #[schema(min_length = 1, max_length = 255)]
    email: String,
    /// `owner` or `publisher`.
    #[schema(value_type = String)]
    role: TeamRole,
}

impl Shape for WantedMember {
    fn read(members: &mut Members) -> Self {
        let email = members.text("email", Text::between(1, MAX_EMAIL_LENGTH));
        let known = |text: &str| TeamRole::parse(text).is_some();
        let role = members.pattern("role", "^(owner|publisher)$", known);
        Self { email, role: TeamRole::parse(&role).unwrap_or(TeamRole::Publisher) }
    }
}

/// The new owner of a namespace or a skill.
#[derive(Debug, ToSchema)]
struct Transfer {
    /// The email address of the new owner.
    #[schema(min_length = 1, max_length = 255)]
    to: String,
    /// The email address of the current owner; default: you.
    from: Option<String>,
}

impl Shape for Transfer {
    fn read(members: &mut Members) -> Self {
        let rule = Text::between(1, MAX_EMAIL_LENGTH);
        Self { to: members.text("to", rule), from: members.optional_text("from", rule) }
    }
}

/// The members of a team.
#[derive(Debug, Serialize, ToSchema)]
struct MemberList {
    items: Vec<ListedMember>,
}

/// A member of a team.
#[derive(Debug, Serialize, ToSchema)]
struct ListedMember {
    /// Their account.
    id: i64,
    /// Its address, for members and administrators; none if the account is gone.
    email: Option<String>,
    /// `owner` or `publisher`.
    role: &'static str,
    added_at: String,
}

/// The new role of a member.
#[derive(Debug, Serialize, ToSchema)]
struct SetMember {
    namespace: String,
    id: i64,
    email: String,
    role: &'static str,
}

/// A namespace that was taken.
#[derive(Debug, Serialize, ToSchema)]
struct CreatedNamespace {
    namespace: String,
}

/// A namespace or a skill that has another owner.
#[derive(Debug, Serialize, ToSchema)]
struct Transferred {
    namespace: String,
    owner: String,
}

/// A reserved beginning of names, and who may use it.
#[derive(Debug, Serialize, ToSchema)]
struct PrefixGrant {
    prefix: String,
    email: String,
}

/// Fails unless the caller is a member of a team, or an administrator.
pub(super) async fn must_be_member(
    app: &App,
    acting: &RegistryCaller,
    holding: &OwnerScope,
) -> RegistryResult<Vec<Member>> {
    must_be(app, acting, holding, TeamRole::Publisher).await
}

/// Fails unless the caller may change a team. The error reveals nothing about accounts.
pub(super) async fn must_own(
    app: &App,
    acting: &RegistryCaller,
    holding: &OwnerScope,
) -> RegistryResult<Vec<Member>> {
    acting.actor.must_have(Right::Own, Some(holding))?;
    must_be(app, acting, holding, TeamRole::Owner).await
}

async fn must_be(
    app: &App,
    acting: &RegistryCaller,
    holding: &OwnerScope,
    least: TeamRole,
) -> RegistryResult<Vec<Member>> {
    let members = registry(app).members(holding).await?;
    if acting.actor.is_admin() {
        return Ok(members);
    }
    let holding = holding.clone();
    match members.iter().find(|member| member.user_id == acting.caller.user.id) {
        Some(member) if member.role >= least => Ok(members),
        Some(_) => Err(RegistryError::NotOwner { holding }.into()),
        None if members.is_empty() => {
            let what = format!("namespace or package `{holding}`");
            Err(RegistryError::NotFound { what }.into())
        }
        None => Err(RegistryError::NotMember { holding }.into()),
    }
}

/// The account of an email address. Call this only for callers who may know it.
pub(super) async fn account(app: &App, email: &str) -> RegistryResult<User> {
    let missing = || {
        let message = "there is no account with this address; ask the person to make one first";
        RegistryApiError::not_found(message)
    };
    let found = app.database.accounts().by_email(email).await?;
    found.map(|(user, _)| user).ok_or_else(missing)
}

/// The email addresses of accounts, with one query for each.
pub(super) async fn emails(app: &App, accounts: Vec<i64>) -> RegistryResult<HashMap<i64, String>> {
    let mut found = HashMap::new();
    for id in accounts {
        if !found.contains_key(&id)
            && let Some(user) = app.database.accounts().by_id(id).await?
        {
            found.insert(id, user.email);
        }
    }
    Ok(found)
}

/// Create a namespace. Publishing to a free namespace creates it, too.
#[utoipa::path(
    post, path = "/api/v1/namespaces/{namespace}", tag = "registry", security(("bearer" = [])),
    params(("namespace" = String, Path, description = "The namespace")),
    responses(
        (status = 201, body = CreatedNamespace), docs::Invalid, docs::Unauthorized,
        docs::Forbidden, docs::Conflict, docs::TooMany, docs::Unavailable
    )
)]
async fn create(
    State(app): State<App>,
    RegistryCaller { actor, .. }: RegistryCaller,
    PathParams(namespace): PathParams<String>,
) -> RegistryResult<Response> {
    let namespace = Namespace::parse(&namespace)?;
    registry(&app).create_namespace(&actor, &namespace).await?;
    settled(&app).await;
    let namespace = namespace.to_string();
    Ok(respond(StatusCode::CREATED, &CreatedNamespace { namespace }))
}

/// List the members of a team. Only members and administrators see email addresses.
#[utoipa::path(
    get, path = "/members", tag = "registry",
    responses(
        (status = 200, body = MemberList), docs::Invalid, docs::Unauthorized, docs::Missing,
        docs::Unavailable
    )
)]
async fn members(
    State(app): State<App>,
    _: ReadAccess,
    OptionalCaller(acting): OptionalCaller,
    Owned(holding): Owned,
) -> RegistryResult<Response> {
    let members = registry(&app).members(&holding).await?;
    if members.is_empty() {
        let what = format!("namespace or package `{holding}`");
        return Err(RegistryError::NotFound { what }.into());
    }
    let sees = acting.is_some_and(|acting| {
        let own = members.iter().any(|member| member.user_id == acting.caller.user.id);
        (own || acting.actor.is_admin())
            && acting.actor.must_have(Right::Own, Some(&holding)).is_ok()
    });
    let ids = members.iter().map(|member| member.user_id).filter(|_| sees);
    let mut emails = emails(&app, ids.collect()).await?;
    let listed = |member: Member| ListedMember {
        id: member.user_id,
        email: emails.remove(&member.user_id),
        role: member.role.as_str(),
        added_at: member.added_at.to_string(),
    };
    let items = members.into_iter().map(listed).collect();
    Ok(respond(StatusCode::OK, &MemberList { items }))
}

/// Add a member to a team, or change the role of one. For owners.
#[utoipa::path(
    post, path = "/members", tag = "registry", security(("bearer" = [])),
    request_body = WantedMember,
    responses(
        (status = 200, body = SetMember), docs::Invalid, docs::Unauthorized, docs::Forbidden,
        docs::Missing, docs::Conflict, docs::TooLarge, docs::Unsupported, docs::TooMany,
        docs::Unavailable
    )
)]
async fn set_member(
    State(app): State<App>,
    acting: RegistryCaller,
    Owned(holding): Owned,
    Body(WantedMember { email, role }): Body<WantedMember>,
) -> RegistryResult<Response> {
    must_own(&app, &acting, &holding).await?;
    let user = account(&app, &email).await?;
    registry(&app).set_member(&acting.actor, &holding, user.id, role).await?;
    settled(&app).await;
    let (id, email, role) = (user.id, user.email, role.as_str());
    let namespace = holding.to_string();
    Ok(respond(StatusCode::OK, &SetMember { namespace, id, email, role }))
}

/// Remove a member from a team. For owners; members can remove themselves.
#[utoipa::path(
    delete, path = "/members/{who}", tag = "registry", security(("bearer" = [])),
    params(("who" = String, Path, description = "The email address or the id of the account")),
    responses(
        (status = 204, description = "The member was removed"), docs::Invalid,
        docs::Unauthorized, docs::Forbidden, docs::Missing, docs::Conflict, docs::TooMany,
        docs::Unavailable
    )
)]
async fn remove_member(
    State(app): State<App>,
    acting: RegistryCaller,
    Owned(holding): Owned,
    PathParams(parts): PathParams<HashMap<String, String>>,
) -> RegistryResult<StatusCode> {
    let who = parts.get("who").map(String::as_str).unwrap_or_default();
    let own = &acting.caller.user;
    let id = if who.eq_ignore_ascii_case(&own.email) || who == own.id.to_string() {
        own.id
    } else {
        must_own(&app, &acting, &holding).await?;
        match who.parse() {
            Ok(id) => id,
            Err(_) => account(&app, who).await?.id,
        }
    };
    registry(&app).remove_member(&acting.actor, &holding, id).await?;
    settled(&app).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Transfer a namespace or a skill to another account, which becomes an owner instead of you.
#[utoipa::path(
    post, path = "/transfer", tag = "registry", security(("bearer" = [])), request_body = Transfer,
    responses(
        (status = 200, body = Transferred), docs::Invalid, docs::Unauthorized, docs::Forbidden,
        docs::Missing, docs::TooLarge, docs::Unsupported, docs::TooMany, docs::Unavailable
    )
)]
async fn transfer(
    State(app): State<App>,
    acting: RegistryCaller,
    Owned(holding): Owned,
    Body(Transfer { to, from }): Body<Transfer>,
) -> RegistryResult<Response> {
    let members = must_own(&app, &acting, &holding).await?;
    let from = match from {
        Some(from) => account(&app, &from).await?.id,
        None => giver(&acting, &members)?,
    };
    let to = account(&app, &to).await?;
    registry(&app).transfer(&acting.actor, &holding, from, to.id).await?;
    settled(&app).await;
    let (namespace, owner) = (holding.to_string(), to.email);
    Ok(respond(StatusCode::OK, &Transferred { namespace, owner }))
}

/// The current owner if the request names none: the caller, or, for an administrator, the only
/// owner.
fn giver(acting: &RegistryCaller, members: &[Member]) -> RegistryResult<i64> {
    let owners = || members.iter().filter(|member| member.role == TeamRole::Owner);
    let mut ids = owners().map(|owner| owner.user_id);
    let own = acting.caller.user.id;
    if ids.clone().any(|id| id == own) {
        return Ok(own);
    }
    match (ids.next(), ids.next()) {
        (Some(only), None) => Ok(only),
        _ => Err(RegistryApiError::invalid("say which owner gives it away, with `from`")),
    }
}

async fn grantee(app: &App, acting: &RegistryCaller, email: &str) -> RegistryResult<User> {
    if !acting.actor.is_admin() {
        return Err(RegistryError::NotAdmin.into());
    }
    acting.actor.must_have(Right::Own, None)?;
    account(app, email).await
}

/// Show whether an account may use a reserved prefix. For administrators.
#[utoipa::path(
    get, path = "/api/v1/prefixes/{prefix}/{email}", tag = "registry", security(("bearer" = [])),
    params(
        ("prefix" = String, Path, description = "The prefix, such as mcp-"),
        ("email" = String, Path, description = "The email address of the account"),
    ),
    responses(
        (status = 200, body = PrefixGrant), docs::Invalid, docs::Unauthorized, docs::Forbidden,
        docs::Missing, docs::TooMany, docs::Unavailable
    )
)]
async fn prefix(
    State(app): State<App>,
    acting: RegistryCaller,
    PathParams((prefix, email)): PathParams<(String, String)>,
) -> RegistryResult<Response> {
    let user = grantee(&app, &acting, &email).await?;
    if !registry(&app).prefixes(user.id).await?.contains(&prefix) {
        let message = "this account may not use names that begin so; allow it with PUT";
        return Err(RegistryApiError::not_found(message));
    }
    Ok(respond(StatusCode::OK, &PrefixGrant { prefix, email: user.email }))
}

/// Allow an account to use a reserved prefix. For administrators.
#[utoipa::path(
    put, path = "/api/v1/prefixes/{prefix}/{email}", tag = "registry", security(("bearer" = [])),
    params(
        ("prefix" = String, Path, description = "The prefix, such as mcp-"),
        ("email" = String, Path, description = "The email address of the account"),
    ),
    responses(
        (status = 200, body = PrefixGrant), docs::Invalid, docs::Unauthorized, docs::Forbidden,
        docs::Missing, docs::TooMany, docs::Unavailable
    )
)]
async fn grant_prefix(
    State(app): State<App>,
    acting: RegistryCaller,
    PathParams((prefix, email)): PathParams<(String, String)>,
) -> RegistryResult<Response> {
    let user = grantee(&app, &acting, &email).await?;
    registry(&app).grant_prefix(&acting.actor, user.id, &prefix).await?;
    settled(&app).await;
    Ok(respond(StatusCode::OK, &PrefixGrant { prefix, email: user.email }))
}

/// Revoke the use of a reserved prefix. Published skills stay. For administrators.
#[utoipa::path(
    delete, path = "/api/v1/prefixes/{prefix}/{email}", tag = "registry", security(("bearer" = [])),
    params(
        ("prefix" = String, Path, description = "The prefix, such as mcp-"),
        ("email" = String, Path, description = "The email address of the account"),
    ),
    responses(
        (status = 204, description = "The permission was revoked"), docs::Invalid, docs::Unauthorized,
        docs::Forbidden, docs::Missing, docs::TooMany, docs::Unavailable
    )
)]
async fn revoke_prefix(
    State(app): State<App>,
    acting: RegistryCaller,
    PathParams((prefix, email)): PathParams<(String, String)>,
) -> RegistryResult<StatusCode> {
    let user = grantee(&app, &acting, &email).await?;
    registry(&app).revoke_prefix(&acting.actor, user.id, &prefix).await?;
    settled(&app).await;
    Ok(StatusCode::NO_CONTENT)
}
