//! Writes and reads the audit log: every change of the registry, with a sequence number.
//!
//! Numbers have no gaps, and become visible in order. In PostgreSQL two transactions may commit in
//! another order than they took their numbers; here the number comes from a row that stays locked
//! until its transaction ends. It is taken last, so that others wait only for a moment.

use semver::Version;
use serde_json::{Value as Json, json};
use sqlx::AnyConnection;

use super::{
    Actor, OwnerScope, PackageName, Registry,
    facts::{read_name, read_version},
};
use crate::{
    ApiToken, StoreError, Timestamp,
    sql::{Row, SqlBuilder, Value, damaged, insert_rows, sql},
};

/// Maximum number of entries in one answer.
const MAX_PAGE_SIZE: u64 = 1000;

macro_rules! acts {
    ($($(#[$meta:meta])+ $variant:ident = $word:literal,)+) => {
        /// What was done.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum AuditAction {
            $($(#[$meta])+ $variant,)+
        }

        impl AuditAction {
            const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name in the API and the database.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
    };
}

acts! {
    /// A version was published.
    Published = "published",
    /// A version was yanked: existing installs keep working, new installs skip it.
    Yanked = "yanked",
    /// The yank of a version was reverted.
    Unyanked = "unyanked",
    /// The message to users of a version, or of a package, was changed.
    Deprecated = "deprecated",
    /// An administrator removed a version.
    Withdrawn = "withdrawn",
    /// A version was scanned.
    Scanned = "scanned",
    /// An administrator decided about a version, overriding the scan.
    Judged = "judged",
    /// A version got a signature.
    Signed = "signed",
    /// A version lost a signature, because its key was revoked.
    Unsigned = "unsigned",
    /// An account created a namespace.
    NamespaceCreated = "namespace_created",
    /// A member was added, or got another role.
    MemberSet = "member_set",
    /// A member was removed.
    MemberRemoved = "member_removed",
    /// A holding (namespace or package) was transferred to another owner.
    Transferred = "transferred",
    /// A key was registered.
    KeyAdded = "key_added",
    /// A key was revoked.
    KeyRevoked = "key_revoked",
    /// An account may publish under a reserved prefix.
    PrefixGranted = "prefix_granted",
    /// The grant of a reserved prefix was revoked.
    PrefixRevoked = "prefix_revoked",
    /// An account created a token with rights in the registry.
    TokenMade = "token_made",
    /// A token with rights in the registry was revoked early.
    TokenEnded = "token_ended",
    /// A publisher appealed against a scan result.
    Appealed = "appealed",
    /// A publisher asked for an audit of a version.
    AuditRequested = "audit_requested",
    /// An account wrote or replaced a review.
    Reviewed = "reviewed",
    /// A review was removed, by its account or by an administrator.
    ReviewRemoved = "review_removed",
    /// An account added a signed evaluation of a version.
    Attested = "attested",
    /// A signed evaluation was removed, by its account or by an administrator.
    AttestationRemoved = "attestation_removed",
    /// An administrator allowed bytes that a scan blocks.
    Cleared = "cleared",
    /// The permission for blocked bytes was revoked.
    Uncleared = "uncleared",
    /// An import added many packages: mirrors must read everything again.
    Imported = "imported",
    /// An action of a newer release that this one does not know.
    Other = "other",
}

impl AuditAction {
    /// Finds an action by its name.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|act| act.as_str() == word)
    }

    /// Reads a stored action. A newer release on the same database may write unknown actions;
    /// mirrors only need to know which package changed.
    fn read(text: &str) -> Self {
        Self::named(text).unwrap_or(Self::Other)
    }
}

/// A change, as mirrors see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryChange {
    /// The sequence number.
    pub seq: u64,
    /// What was done.
    pub act: AuditAction,
    /// The changed package; none if the change concerns users and keys, or everything.
    pub package: Option<PackageName>,
    pub version: Option<Version>,
}

/// A change, as auditors see it.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    /// What was done.
    pub change: RegistryChange,
    pub done_at: Timestamp,
    /// The account that made the change; none for the operator.
    pub account: Option<i64>,
    /// The token that was used.
    pub token: Option<String>,
    /// The changed namespace or package scope.
    pub owner_scope: Option<OwnerScope>,
    /// Further data about the change.
    pub details: Json,
}

/// A filter for entries of the log.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    pub package: Option<PackageName>,
    pub owner_scope: Option<OwnerScope>,
    /// Only changes by this account.
    pub account: Option<i64>,
    /// Only these actions; all if empty.
    pub acts: Vec<AuditAction>,
}

/// An event that has no sequence number yet.
#[derive(Clone, Debug)]
pub(super) struct NewAuditEvent {
    act: AuditAction,
    owner_scope: Option<OwnerScope>,
    package: Option<PackageName>,
    version: Option<Version>,
    details: Json,
}

impl NewAuditEvent {
    pub(super) fn new(act: AuditAction) -> Self {
        Self {
            act,
            owner_scope: None,
            package: None,
            version: None,
            details: Json::Object(<_>::default()),
        }
    }

    pub(super) fn owner_scope(self, owner_scope: &OwnerScope) -> Self {
        Self { owner_scope: Some(owner_scope.clone()), ..self }
    }

    pub(super) fn package(self, package: &PackageName) -> Self {
        let owner_scope = Some(package.owner_scope());
        Self { owner_scope, package: Some(package.clone()), ..self }
    }

    pub(super) fn version(self, package: &PackageName, version: &Version) -> Self {
        Self { version: Some(version.clone()), ..self }.package(package)
    }

    pub(super) fn details(self, details: Json) -> Self {
        Self { details, ..self }
    }
}

/// Writes events to the log; returns the last number. Must be the last statement of a transaction:
/// until it commits, no other transaction gets a number.
pub(super) async fn note(
    connection: &mut AnyConnection,
    actor: &Actor,
    now: Timestamp,
    events: Vec<NewAuditEvent>,
) -> Result<u64, StoreError> {
    let row = sql("UPDATE registry_counter SET seq = seq + $1 WHERE id = 1 RETURNING seq")
        .count(events.len() as u64)
        .one(&mut *connection)
        .await?;
    let last = row.number(0)?;
    let first = last - i64::try_from(events.len()).unwrap_or(0) + 1;
    let row = |(seq, event): (i64, NewAuditEvent)| {
        vec![
            Value::Number(seq),
            Value::Number(now.micros()),
            Value::MaybeNumber(actor.account),
            Value::MaybeText(actor.token.clone()),
            Value::Text(event.act.as_str().to_owned()),
            Value::MaybeText(event.owner_scope.map(|owner_scope| owner_scope.to_string())),
            Value::MaybeText(event.package.map(|package| package.id())),
            Value::MaybeText(event.version.map(|version| version.to_string())),
            Value::Text(event.details.to_string()),
        ]
    };
    let rows = (first..).zip(events).map(row).collect();
    let head = "INSERT INTO registry_log
        (seq, done_at, account, token, act, holding, package, version, details)";
    insert_rows(connection, head, rows, "").await?;
    Ok(u64::try_from(last).unwrap_or(0))
}

/// Logs a new token, if it has rights in the registry.
pub(crate) async fn note_made(
    connection: &mut AnyConnection,
    actor: &Actor,
    token: &ApiToken,
) -> Result<(), StoreError> {
    if !token.counts_here() {
        return Ok(());
    }
    let event = NewAuditEvent::new(AuditAction::TokenMade).details(details(token));
    note(connection, actor, Timestamp::now(), vec![event]).await.map(drop)
}

/// Logs that tokens ended, if they had rights in the registry.
pub(crate) async fn note_ended(
    connection: &mut AnyConnection,
    actor: &Actor,
    tokens: &[ApiToken],
    why: Option<&str>,
) -> Result<(), StoreError> {
    let now = Timestamp::now();
    let event = |token: &ApiToken| {
        let mut details = details(token);
        if let Some(why) = why {
            details["why"] = why.into();
        }
        NewAuditEvent::new(AuditAction::TokenEnded).details(details)
    };
    let counts = |token: &&ApiToken| token.counts_here() && !token.is_over(now);
    let events: Vec<NewAuditEvent> = tokens.iter().filter(counts).map(event).collect();
    if events.is_empty() {
        return Ok(());
    }
    note(connection, actor, now, events).await.map(drop)
}

fn details(token: &ApiToken) -> Json {
    json!({
        "id": token.id, "name": token.name, "user_id": token.user_id, "scopes": token.scopes,
        "expires_at": token.expires_at.map(|end| end.to_string()),
    })
}

/// Reads the columns `seq, act, package, version`.
fn change(row: &Row) -> Result<RegistryChange, StoreError> {
    Ok(RegistryChange {
        seq: row.count(0)?,
        act: AuditAction::read(&row.text(1)?),
        package: row.maybe_text(2)?.map(|id| read_name(&id)).transpose()?,
        version: row.maybe_text(3)?.map(|text| read_version(&text)).transpose()?,
    })
}

impl Registry<'_> {
    /// The number of the last change; 0 before the first.
    pub async fn head(&self) -> Result<u64, StoreError> {
        sql("SELECT seq FROM registry_counter WHERE id = 1").one(self.reader()).await?.count(0)
    }

    /// Returns at most `limit` changes after a number, in order. No entry ever appears before one
    /// that was returned, so a mirror that continues from the last number misses nothing.
    pub async fn changes(&self, after: u64, limit: u64) -> Result<Vec<RegistryChange>, StoreError> {
        let rows = sql("SELECT seq, act, package, version FROM registry_log
             WHERE seq > $1 ORDER BY seq LIMIT $2")
        .count(after)
        .count(limit.min(MAX_PAGE_SIZE))
        .all(self.reader())
        .await?;
        rows.iter().map(change).collect()
    }

    /// The entries of the log before a number, newest first, at most `limit`.
    pub async fn audit(
        &self,
        filter: &AuditFilter,
        before: Option<u64>,
        limit: u64,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let columns =
            "SELECT seq, act, package, version, done_at, account, token, holding, details";
        let mut query = SqlBuilder::new(format!("{columns} FROM registry_log WHERE 1 = 1"));
        if let Some(before) = before {
            query.and("seq <", Value::Number(i64::try_from(before).unwrap_or(i64::MAX)));
        }
        if let Some(package) = &filter.package {
            query.and("package =", Value::Text(package.id()));
        }
        if let Some(owner_scope) = &filter.owner_scope {
            query.and("holding =", Value::Text(owner_scope.to_string()));
        }
        if let Some(account) = filter.account {
            query.and("account =", Value::Number(account));
        }
        if !filter.acts.is_empty() {
            let word = |act: &AuditAction| query.place(Value::Text(act.as_str().to_owned()));
            let words: Vec<String> = filter.acts.iter().map(word).collect();
            query.push(&format!(" AND act IN ({})", words.join(", ")));
        }
        let limit = i64::try_from(limit.min(MAX_PAGE_SIZE)).unwrap_or(0);
        let limit = query.place(Value::Number(limit));
        query.push(&format!(" ORDER BY seq DESC LIMIT {limit}"));
        let rows = query.into_statement().all(self.reader()).await?;
        rows.iter().map(audit_entry).collect()
    }
}

fn audit_entry(row: &Row) -> Result<AuditEntry, StoreError> {
    let details = row.text(8)?;
    Ok(AuditEntry {
        change: change(row)?,
        done_at: row.time(4)?,
        account: row.maybe_number(5)?,
        token: row.maybe_text(6)?,
        owner_scope: row.maybe_text(7)?.map(OwnerScope::read),
        details: serde_json::from_str(&details)
            .map_err(|_| damaged("the details of a change", &details))?,
    })
}
