//! Manages the owners and members of namespaces and packages. A holding is an [`OwnerScope`]: what
//! a team owns.

use serde_json::json;
use sqlx::AnyConnection;

use super::{
    Actor, Namespace, OwnerScope, PackageName, Registry, RegistryError, RegistryTransaction, Right,
    RowLock,
    log::{AuditAction, NewAuditEvent, note},
};
use crate::{
    DatabaseKind, StoreError, Timestamp,
    sql::{Row, damaged, sql},
};

/// Maximum number of namespaces that one account creates. Each reserves the names that begin with
/// it.
const MAX_NAMESPACES: u64 = 20;

/// The role of a team member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TeamRole {
    /// May publish, yank and deprecate.
    Publisher,
    /// May also change members and keys.
    Owner,
}

impl TeamRole {
    /// `publisher` or `owner`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Publisher => "publisher",
            Self::Owner => "owner",
        }
    }

    /// Reads `publisher` or `owner`.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Publisher, Self::Owner].into_iter().find(|role| role.as_str() == text)
    }

    pub(super) fn read(text: &str) -> Result<Self, StoreError> {
        Self::parse(text).ok_or_else(|| damaged("the role of a member", text))
    }
}

/// A member of the team of a holding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub owner_scope: OwnerScope,
    pub user_id: i64,
    pub role: TeamRole,
    pub added_at: Timestamp,
}

/// Reads the columns `holding, user_id, role, added_at`.
fn member(row: &Row) -> Result<Member, StoreError> {
    Ok(Member {
        owner_scope: OwnerScope::read(row.text(0)?),
        user_id: row.number(1)?,
        role: TeamRole::read(&row.text(2)?)?,
        added_at: row.time(3)?,
    })
}

async fn role_of(
    connection: &mut AnyConnection,
    owner_scope: &OwnerScope,
    user_id: i64,
) -> Result<Option<TeamRole>, StoreError> {
    let row = sql("SELECT role FROM members WHERE holding = $1 AND user_id = $2")
        .text(owner_scope.as_str())
        .number(user_id)
        .optional(connection)
        .await?;
    row.map(|row| TeamRole::read(&row.text(0)?)).transpose()
}

/// Checks that the actor has a role in a holding, or a higher one.
pub(super) async fn check_role(
    connection: &mut AnyConnection,
    actor: &Actor,
    owner_scope: &OwnerScope,
    role: TeamRole,
) -> Result<(), RegistryError> {
    if actor.is_admin() {
        return Ok(());
    }
    let account = actor.account.ok_or(RegistryError::NobodyActs)?;
    match role_of(connection, owner_scope, account).await? {
        Some(found) if found >= role => Ok(()),
        Some(_) => Err(RegistryError::NotOwner { owner_scope: owner_scope.clone() }),
        None => Err(RegistryError::NotMember { owner_scope: owner_scope.clone() }),
    }
}

/// Checks that the actor may use names with a reserved prefix.
pub(super) async fn check_prefix(
    connection: &mut AnyConnection,
    actor: &Actor,
    prefix: Option<&'static str>,
) -> Result<(), RegistryError> {
    let Some(prefix) = prefix.filter(|_| !actor.is_admin()) else { return Ok(()) };
    let account = actor.account.ok_or(RegistryError::NobodyActs)?;
    let granted = sql("SELECT 1 FROM prefix_grants WHERE user_id = $1 AND prefix = $2")
        .number(account)
        .text(prefix)
        .optional(connection)
        .await?;
    granted.map(drop).ok_or(RegistryError::Reserved { prefix })
}

/// Stores the role of a member.
pub(super) async fn put_member(
    connection: &mut AnyConnection,
    actor: &Actor,
    owner_scope: &OwnerScope,
    (user_id, role): (i64, TeamRole),
    now: Timestamp,
) -> Result<(), StoreError> {
    sql("INSERT INTO members (holding, user_id, role, added_by, added_at)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (holding, user_id) DO UPDATE SET role = excluded.role")
    .text(owner_scope.as_str())
    .number(user_id)
    .text(role.as_str())
    .maybe_number(actor.account)
    .time(now)
    .run(connection)
    .await
    .map(drop)
}

impl RegistryTransaction {
    /// Creates a namespace for the actor, unless it exists. Of several concurrent actors, one gets
    /// it.
    pub(super) async fn take_namespace(
        &mut self,
        actor: &Actor,
        namespace: &Namespace,
        now: Timestamp,
    ) -> Result<Option<NewAuditEvent>, RegistryError> {
        let taken = sql("INSERT INTO namespaces (name, created_by, created_at) VALUES ($1, $2, $3)
             ON CONFLICT (name) DO NOTHING")
        .text(namespace.as_str())
        .maybe_number(actor.account)
        .time(now)
        .run(self.connection())
        .await?;
        if taken == 0 {
            return Ok(None);
        }
        self.check_no_look_alike(actor, namespace).await?;
        let owner_scope = OwnerScope::read(namespace.to_string());
        if let Some(account) = actor.account {
            self.check_namespace_count(actor, account).await?;
            put_member(self.connection(), actor, &owner_scope, (account, TeamRole::Owner), now)
                .await?;
        }
        Ok(Some(NewAuditEvent::new(AuditAction::NamespaceCreated).owner_scope(&owner_scope)))
    }

    /// Counts namespaces that the account ever created, so that transferring them does not free the
    /// quota.
    async fn check_namespace_count(
        &mut self,
        actor: &Actor,
        account: i64,
    ) -> Result<(), RegistryError> {
        if actor.is_admin() {
            return Ok(());
        }
        if self.kind == DatabaseKind::Postgres {
            // The advisory lock makes the second of two concurrent requests see the first.
            sql("SELECT 1 FROM pg_advisory_xact_lock(hashtext($1))")
                .text(&format!("registry names of {account}"))
                .run(self.connection())
                .await?;
        }
        let row = sql("SELECT COUNT(*) FROM namespaces WHERE created_by = $1").number(account);
        let taken = row.one(self.connection()).await?.count(0)?;
        let most = MAX_NAMESPACES;
        if taken > most { Err(RegistryError::TooManyNames { most }) } else { Ok(()) }
    }

    /// Locks the members of a holding for this transaction.
    async fn lock_owner_scope(&mut self, owner_scope: &OwnerScope) -> Result<(), RegistryError> {
        let text = if owner_scope.as_str().contains('/') {
            "SELECT 1 FROM packages WHERE id = $1"
        } else {
            "SELECT 1 FROM namespaces WHERE name = $1"
        };
        let statement = self.locking(text, RowLock::Alone).text(owner_scope.as_str());
        let found = statement.optional(self.connection()).await?;
        let missing =
            || RegistryError::NotFound { what: format!("namespace or package `{owner_scope}`") };
        found.map(drop).ok_or_else(missing)
    }

    async fn check_has_owner(&mut self, owner_scope: &OwnerScope) -> Result<(), RegistryError> {
        let row = sql("SELECT 1 FROM members WHERE holding = $1 AND role = 'owner' LIMIT 1")
            .text(owner_scope.as_str())
            .optional(self.connection())
            .await?;
        row.map(drop).ok_or_else(|| RegistryError::LastOwner { owner_scope: owner_scope.clone() })
    }

    async fn check_account_exists(&mut self, user_id: i64) -> Result<(), RegistryError> {
        let row = sql("SELECT 1 FROM users WHERE id = $1 AND deleted_at IS NULL")
            .number(user_id)
            .optional(self.connection())
            .await?;
        row.map(drop).ok_or_else(|| RegistryError::NotFound { what: format!("account {user_id}") })
    }
}

impl Registry<'_> {
    /// Creates a namespace. Publishing into a free namespace also creates it.
    pub async fn create_namespace(
        &self,
        actor: &Actor,
        namespace: &Namespace,
    ) -> Result<(), RegistryError> {
        let owner_scope = OwnerScope::of_namespace(namespace)?;
        actor.check_right(Right::Own, Some(&owner_scope))?;
        let (mut work, now) = (self.begin().await?, Timestamp::now());
        check_prefix(work.connection(), actor, namespace.reserved_prefix()).await?;
        let Some(event) = work.take_namespace(actor, namespace, now).await? else {
            return Err(RegistryError::Exists { what: format!("a namespace `{namespace}`") });
        };
        work.check_namespace_prefixes(actor, namespace).await?;
        note(work.connection(), actor, now, vec![event]).await?;
        Ok(work.commit().await?)
    }

    /// The members of a holding, by account.
    pub async fn members(&self, owner_scope: &OwnerScope) -> Result<Vec<Member>, StoreError> {
        let rows = sql("SELECT holding, user_id, role, added_at FROM members
             WHERE holding = $1 ORDER BY user_id")
        .text(owner_scope.as_str())
        .all(self.reader())
        .await?;
        rows.iter().map(member).collect()
    }

    /// The memberships of an account, by name.
    pub async fn memberships(&self, user_id: i64) -> Result<Vec<Member>, StoreError> {
        let rows = sql("SELECT holding, user_id, role, added_at FROM members
             WHERE user_id = $1 ORDER BY holding")
        .number(user_id)
        .all(self.reader())
        .await?;
        rows.iter().map(member).collect()
    }

    /// Adds a member, or changes the role of one.
    pub async fn set_member(
        &self,
        actor: &Actor,
        owner_scope: &OwnerScope,
        user_id: i64,
        role: TeamRole,
    ) -> Result<(), RegistryError> {
        let mut work = self.as_owner(actor, owner_scope).await?;
        work.check_account_exists(user_id).await?;
        let now = Timestamp::now();
        put_member(work.connection(), actor, owner_scope, (user_id, role), now).await?;
        work.check_has_owner(owner_scope).await?;
        let details = json!({"user_id": user_id, "role": role.as_str()});
        let event =
            NewAuditEvent::new(AuditAction::MemberSet).owner_scope(owner_scope).details(details);
        note(work.connection(), actor, now, vec![event]).await?;
        Ok(work.commit().await?)
    }

    /// Removes a member; members who are not owners can remove themselves. The last owner cannot be
    /// removed.
    pub async fn remove_member(
        &self,
        actor: &Actor,
        owner_scope: &OwnerScope,
        user_id: i64,
    ) -> Result<(), RegistryError> {
        let mut work = if actor.account == Some(user_id) {
            actor.check_right(Right::Own, Some(owner_scope))?;
            let mut work = self.begin().await?;
            work.lock_owner_scope(owner_scope).await?;
            work
        } else {
            self.as_owner(actor, owner_scope).await?
        };
        remove(work.connection(), owner_scope, user_id).await?;
        work.check_has_owner(owner_scope).await?;
        let details = json!({"user_id": user_id});
        let event = NewAuditEvent::new(AuditAction::MemberRemoved)
            .owner_scope(owner_scope)
            .details(details);
        note(work.connection(), actor, Timestamp::now(), vec![event]).await?;
        Ok(work.commit().await?)
    }

    /// Transfers a holding from one owner to another account, which becomes an owner instead.
    pub async fn transfer(
        &self,
        actor: &Actor,
        owner_scope: &OwnerScope,
        from: i64,
        to: i64,
    ) -> Result<(), RegistryError> {
        let mut work = self.as_owner(actor, owner_scope).await?;
        work.check_account_exists(to).await?;
        let now = Timestamp::now();
        if role_of(work.connection(), owner_scope, from).await? != Some(TeamRole::Owner) {
            return Err(RegistryError::NotFound {
                what: format!("owner {from} of `{owner_scope}`"),
            });
        }
        remove(work.connection(), owner_scope, from).await?;
        put_member(work.connection(), actor, owner_scope, (to, TeamRole::Owner), now).await?;
        let details = json!({"from": from, "to": to});
        let event =
            NewAuditEvent::new(AuditAction::Transferred).owner_scope(owner_scope).details(details);
        note(work.connection(), actor, now, vec![event]).await?;
        Ok(work.commit().await?)
    }

    /// Starts a transaction for an actor who is an owner.
    async fn as_owner(
        &self,
        actor: &Actor,
        owner_scope: &OwnerScope,
    ) -> Result<RegistryTransaction, RegistryError> {
        actor.check_right(Right::Own, Some(owner_scope))?;
        let mut work = self.begin().await?;
        work.lock_owner_scope(owner_scope).await?;
        check_role(work.connection(), actor, owner_scope, TeamRole::Owner).await?;
        Ok(work)
    }

    /// Lets an account publish under a reserved prefix, such as `mcp-`. Only for administrators.
    pub async fn grant_prefix(
        &self,
        actor: &Actor,
        user_id: i64,
        prefix: &str,
    ) -> Result<(), RegistryError> {
        actor.check_admin()?;
        actor.check_right(Right::Own, None)?;
        let prefix = known_prefix(prefix)?;
        let (mut work, now) = (self.begin().await?, Timestamp::now());
        work.check_account_exists(user_id).await?;
        sql("INSERT INTO prefix_grants (user_id, prefix, added_by, added_at)
             VALUES ($1, $2, $3, $4) ON CONFLICT (user_id, prefix) DO NOTHING")
        .number(user_id)
        .text(prefix)
        .maybe_number(actor.account)
        .time(now)
        .run(work.connection())
        .await?;
        let details = json!({"user_id": user_id, "prefix": prefix});
        let event = NewAuditEvent::new(AuditAction::PrefixGranted).details(details);
        note(work.connection(), actor, now, vec![event]).await?;
        Ok(work.commit().await?)
    }

    /// Revokes the grant of a prefix. Published versions stay.
    pub async fn revoke_prefix(
        &self,
        actor: &Actor,
        user_id: i64,
        prefix: &str,
    ) -> Result<(), RegistryError> {
        actor.check_admin()?;
        actor.check_right(Right::Own, None)?;
        let mut work = self.begin().await?;
        let removed = sql("DELETE FROM prefix_grants WHERE user_id = $1 AND prefix = $2")
            .number(user_id)
            .text(prefix)
            .run(work.connection())
            .await?;
        if removed == 0 {
            return Err(RegistryError::NotFound {
                what: format!("grant of `{prefix}` to {user_id}"),
            });
        }
        let details = json!({"user_id": user_id, "prefix": prefix});
        let event = NewAuditEvent::new(AuditAction::PrefixRevoked).details(details);
        note(work.connection(), actor, Timestamp::now(), vec![event]).await?;
        Ok(work.commit().await?)
    }

    /// The reserved prefixes that an account may use.
    pub async fn prefixes(&self, user_id: i64) -> Result<Vec<String>, StoreError> {
        let rows = sql("SELECT prefix FROM prefix_grants WHERE user_id = $1 ORDER BY prefix")
            .number(user_id)
            .all(self.reader())
            .await?;
        rows.iter().map(|row| row.text(0)).collect()
    }
}

async fn remove(
    connection: &mut AnyConnection,
    owner_scope: &OwnerScope,
    user_id: i64,
) -> Result<(), RegistryError> {
    let removed = sql("DELETE FROM members WHERE holding = $1 AND user_id = $2")
        .text(owner_scope.as_str())
        .number(user_id)
        .run(connection)
        .await?;
    if removed == 1 {
        return Ok(());
    }
    Err(RegistryError::NotFound { what: format!("member {user_id} of `{owner_scope}`") })
}

fn known_prefix(text: &str) -> Result<&'static str, RegistryError> {
    let found = savoir_skill::name::reserved_prefix(text).filter(|prefix| *prefix == text);
    found.ok_or_else(|| RegistryError::Invalid {
        what: "the prefix",
        message: format!("`{}` is not reserved", text.escape_debug()),
    })
}

/// Checks that the actor may publish a package.
pub(super) async fn check_may_publish(
    connection: &mut AnyConnection,
    actor: &Actor,
    package: &PackageName,
) -> Result<(), RegistryError> {
    check_role(connection, actor, &package.owner_scope(), TeamRole::Publisher).await
}
