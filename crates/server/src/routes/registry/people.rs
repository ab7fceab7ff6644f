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
    request::{Body, OwnerScopePath, RoutePrefix, respond},
    wait_until_visible,
};
use crate::{
    app::App,
    body::{Members, Shape, Text},
};

/// Maximum length of an email address.
pub(super) const MAX_EMAIL_LENGTH: usize = 255;

/// The paths of teams.
const PREFIX_PATHS: [RoutePrefix; 3] = [
    RoutePrefix {
        prefix: "/api/v1/namespaces/{namespace}",
        suffix: "_of_namespace",
        parameters: &[("namespace", "The namespace")],
    },
    RoutePrefix {
        prefix: "/api/v1/skills/{name}",
        suffix: "_of_skill",
        parameters: &[("name", "The skill, which has its own team")],
    },
    RoutePrefix {
        prefix: "/api/v1/skills/{namespace}/{name}",
        suffix: "_of_skill_in",
        parameters: &[
            ("namespace", "The namespace"),
            ("name", "The skill; in an owned namespace, the team is that of the namespace"),
        ],
    },
];

pub(super) fn router() -> OpenApiRouter<App> {
    let all = OpenApiRouter::new()
        .routes(routes!(create))
        .routes(routes!(prefix, grant_prefix, revoke_prefix));
    PREFIX_PATHS.into_iter().fold(all, |all, place| {
        let team = OpenApiRouter::new()
            .routes(routes!(members, set_member))
            .routes(routes!(remove_member))
            .routes(routes!(transfer))
            .merge(keys::team_router());
        all.merge(place.mount(team))
    })
}

/// A new member of a team.
#[derive(Debug, ToSchema)]
struct SetMemberRequest {
    /// The email address of the account.
    #[schema(min_length = 1, max_length = 255)]
    email: String,
    /// `owner` or `publisher`.
    #[schema(value_type = String)]
    role: TeamRole,
}

impl Shape for SetMemberRequest {
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
    /// The account id.
    id: i64,
    /// The email address, for members and administrators; none if the account was deleted.
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

/// A created namespace.
#[derive(Debug, Serialize, ToSchema)]
struct CreatedNamespace {
    namespace: String,
}

/// A transferred namespace or skill.
#[derive(Debug, Serialize, ToSchema)]
struct Transferred {
    namespace: String,
    owner: String,
}

/// A reserved prefix of names, and who can use it.
#[derive(Debug, Serialize, ToSchema)]
struct PrefixGrant {
    prefix: String,
    email: String,
}

/// Fails unless the caller is a member of a team, or an administrator.
pub(super) async fn check_member(
    app: &App,
    registry_caller: &RegistryCaller,
    owner_scope: &OwnerScope,
) -> RegistryResult<Vec<Member>> {
    check_role(app, registry_caller, owner_scope, TeamRole::Publisher).await
}

/// Fails unless the caller may change a team. The error reveals nothing about accounts.
pub(super) async fn check_owner(
    app: &App,
    registry_caller: &RegistryCaller,
    owner_scope: &OwnerScope,
) -> RegistryResult<Vec<Member>> {
    registry_caller.actor.check_right(Right::Own, Some(owner_scope))?;
    check_role(app, registry_caller, owner_scope, TeamRole::Owner).await
}

async fn check_role(
    app: &App,
    registry_caller: &RegistryCaller,
    owner_scope: &OwnerScope,
    least: TeamRole,
) -> RegistryResult<Vec<Member>> {
    let members = registry(app).members(owner_scope).await?;
    if registry_caller.actor.is_admin() {
        return Ok(members);
    }
    let owner_scope = owner_scope.clone();
    match members.iter().find(|member| member.user_id == registry_caller.caller.user.id) {
        Some(member) if member.role >= least => Ok(members),
        Some(_) => Err(RegistryError::NotOwner { owner_scope }.into()),
        None if members.is_empty() => {
            let what = format!("namespace or package `{owner_scope}`");
            Err(RegistryError::NotFound { what }.into())
        }
        None => Err(RegistryError::NotMember { owner_scope }.into()),
    }
}

/// The account of an email address. Call this only for callers who may know it.
pub(super) async fn account(app: &App, email: &str) -> RegistryResult<User> {
    let missing = || {
        let message = "there is no account with this address; ask the user to create one first";
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
        docs::Forbidden, docs::Conflict, docs::TooManyRequests, docs::Unavailable
    )
)]
async fn create(
    State(app): State<App>,
    RegistryCaller { actor, .. }: RegistryCaller,
    PathParams(namespace): PathParams<String>,
) -> RegistryResult<Response> {
    let namespace = Namespace::parse(&namespace)?;
    registry(&app).create_namespace(&actor, &namespace).await?;
    wait_until_visible(&app).await;
    let namespace = namespace.to_string();
    Ok(respond(StatusCode::CREATED, &CreatedNamespace { namespace }))
}

/// List the members of a team. Only members and administrators see email addresses.
#[utoipa::path(
    get, path = "/members", tag = "registry",
    responses(
        (status = 200, body = MemberList), docs::Invalid, docs::Unauthorized, docs::NotFound,
        docs::Unavailable
    )
)]
async fn members(
    State(app): State<App>,
    _: ReadAccess,
    OptionalCaller(registry_caller): OptionalCaller,
    OwnerScopePath(owner_scope): OwnerScopePath,
) -> RegistryResult<Response> {
    let members = registry(&app).members(&owner_scope).await?;
    if members.is_empty() {
        let what = format!("namespace or package `{owner_scope}`");
        return Err(RegistryError::NotFound { what }.into());
    }
    let sees = registry_caller.is_some_and(|registry_caller| {
        let own = members.iter().any(|member| member.user_id == registry_caller.caller.user.id);
        (own || registry_caller.actor.is_admin())
            && registry_caller.actor.check_right(Right::Own, Some(&owner_scope)).is_ok()
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
    request_body = SetMemberRequest,
    responses(
        (status = 200, body = SetMember), docs::Invalid, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::Conflict, docs::TooLarge, docs::Unsupported, docs::TooManyRequests,
        docs::Unavailable
    )
)]
async fn set_member(
    State(app): State<App>,
    registry_caller: RegistryCaller,
    OwnerScopePath(owner_scope): OwnerScopePath,
    Body(SetMemberRequest { email, role }): Body<SetMemberRequest>,
) -> RegistryResult<Response> {
    check_owner(&app, &registry_caller, &owner_scope).await?;
    let user = account(&app, &email).await?;
    registry(&app).set_member(&registry_caller.actor, &owner_scope, user.id, role).await?;
    wait_until_visible(&app).await;
    let (id, email, role) = (user.id, user.email, role.as_str());
    let namespace = owner_scope.to_string();
    Ok(respond(StatusCode::OK, &SetMember { namespace, id, email, role }))
}

/// Remove a member from a team. For owners; members can remove themselves.
#[utoipa::path(
    delete, path = "/members/{who}", tag = "registry", security(("bearer" = [])),
    params(("who" = String, Path, description = "The email address or the id of the account")),
    responses(
        (status = 204, description = "The member was removed"), docs::Invalid,
        docs::Unauthorized, docs::Forbidden, docs::NotFound, docs::Conflict, docs::TooManyRequests,
        docs::Unavailable
    )
)]
async fn remove_member(
    State(app): State<App>,
    registry_caller: RegistryCaller,
    OwnerScopePath(owner_scope): OwnerScopePath,
    PathParams(parts): PathParams<HashMap<String, String>>,
) -> RegistryResult<StatusCode> {
    let who = parts.get("who").map(String::as_str).unwrap_or_default();
    let own = &registry_caller.caller.user;
    let id = if who.eq_ignore_ascii_case(&own.email) || who == own.id.to_string() {
        own.id
    } else {
        check_owner(&app, &registry_caller, &owner_scope).await?;
        match who.parse() {
            Ok(id) => id,
            Err(_) => account(&app, who).await?.id,
        }
    };
    registry(&app).remove_member(&registry_caller.actor, &owner_scope, id).await?;
    wait_until_visible(&app).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Transfer a namespace or a skill to another account, which becomes an owner instead of you.
#[utoipa::path(
    post, path = "/transfer", tag = "registry", security(("bearer" = [])), request_body = Transfer,
    responses(
        (status = 200, body = Transferred), docs::Invalid, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::TooLarge, docs::Unsupported, docs::TooManyRequests, docs::Unavailable
    )
)]
async fn transfer(
    State(app): State<App>,
    registry_caller: RegistryCaller,
    OwnerScopePath(owner_scope): OwnerScopePath,
    Body(Transfer { to, from }): Body<Transfer>,
) -> RegistryResult<Response> {
    let members = check_owner(&app, &registry_caller, &owner_scope).await?;
    let from = match from {
        Some(from) => account(&app, &from).await?.id,
        None => transferring_owner(&registry_caller, &members)?,
    };
    let to = account(&app, &to).await?;
    registry(&app).transfer(&registry_caller.actor, &owner_scope, from, to.id).await?;
    wait_until_visible(&app).await;
    let (namespace, owner) = (owner_scope.to_string(), to.email);
    Ok(respond(StatusCode::OK, &Transferred { namespace, owner }))
}

/// The current owner if the request names none: the caller, or, for an administrator, the only
/// owner.
fn transferring_owner(registry_caller: &RegistryCaller, members: &[Member]) -> RegistryResult<i64> {
    let owners = || members.iter().filter(|member| member.role == TeamRole::Owner);
    let mut ids = owners().map(|owner| owner.user_id);
    let own = registry_caller.caller.user.id;
    if ids.clone().any(|id| id == own) {
        return Ok(own);
    }
    match (ids.next(), ids.next()) {
        (Some(only), None) => Ok(only),
        _ => Err(RegistryApiError::invalid("say which owner gives it away, with `from`")),
    }
}

async fn find_new_owner(
    app: &App,
    registry_caller: &RegistryCaller,
    email: &str,
) -> RegistryResult<User> {
    if !registry_caller.actor.is_admin() {
        return Err(RegistryError::NotAdmin.into());
    }
    registry_caller.actor.check_right(Right::Own, None)?;
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
        docs::NotFound, docs::TooManyRequests, docs::Unavailable
    )
)]
async fn prefix(
    State(app): State<App>,
    registry_caller: RegistryCaller,
    PathParams((prefix, email)): PathParams<(String, String)>,
) -> RegistryResult<Response> {
    let user = find_new_owner(&app, &registry_caller, &email).await?;
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
        docs::NotFound, docs::TooManyRequests, docs::Unavailable
    )
)]
async fn grant_prefix(
    State(app): State<App>,
    registry_caller: RegistryCaller,
    PathParams((prefix, email)): PathParams<(String, String)>,
) -> RegistryResult<Response> {
    let user = find_new_owner(&app, &registry_caller, &email).await?;
    registry(&app).grant_prefix(&registry_caller.actor, user.id, &prefix).await?;
    wait_until_visible(&app).await;
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
        docs::Forbidden, docs::NotFound, docs::TooManyRequests, docs::Unavailable
    )
)]
async fn revoke_prefix(
    State(app): State<App>,
    registry_caller: RegistryCaller,
    PathParams((prefix, email)): PathParams<(String, String)>,
) -> RegistryResult<StatusCode> {
    let user = find_new_owner(&app, &registry_caller, &email).await?;
    registry(&app).revoke_prefix(&registry_caller.actor, user.id, &prefix).await?;
    wait_until_visible(&app).await;
    Ok(StatusCode::NO_CONTENT)
}
