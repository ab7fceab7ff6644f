//! Imports a backup or a mirror in one transaction.

mod clearances;
mod log_entries;
mod packages;
mod taken_down;
mod withdrawn;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::Duration,
};

use semver::Version;
use serde_json::json;

use super::{
    Actor, OwnerScope, PackageName, Record, Registry, RegistryError, RegistryTransaction,
    blobs::BLOBS_LEASE,
    log::{AuditAction, NewAuditEvent},
};
use crate::{
    DatabaseKind, Lease, Role, Timestamp,
    sql::{Value, among, insert_rows, new_id, sql},
};

/// How many packages are inserted together.
const BATCH_SIZE: usize = 1000;
/// The term of the lease of an import. Blobs are not garbage-collected while it is valid; after a
/// crash, the next import waits until it expires.
const LEASE_DURATION: Duration = Duration::from_mins(5);

/// A running import. Its changes are invisible until it is finished, and discarded if it is
/// dropped. In SQLite, nobody else can write during the import.
#[derive(Debug)]
pub struct Import<'a> {
    registry: Registry<'a>,
    actor: Actor,
    work: RegistryTransaction,
    /// None in SQLite, where garbage collection cannot run while the import writes.
    lease: Option<Lease>,
    /// Whether the registry was empty.
    fresh: bool,
    /// The ids of accounts here by their ids in the records; none if the records name no accounts.
    accounts: Option<HashMap<i64, i64>>,
    /// The password hash for accounts that are created; without it, none are created.
    password_hash: Option<String>,
    /// Accounts that existed before, and whether they may get what the records assign to them.
    before: ExistingAccounts,
    /// Holdings that existed before, which an import does not change.
    old: HashSet<String>,
    /// Withdrawn versions whose digests are not in the records: package and version.
    unknown: HashSet<(String, String)>,
    /// The packages that were added.
    added: Vec<String>,
    /// Log entries about namespaces and members.
    events: Vec<NewAuditEvent>,
    /// Whether the records contain a log that is imported.
    has_log: bool,
    waiting: Vec<Record>,
    done: Imported,
}

/// Accounts that existed before a restore.
#[derive(Debug, Default)]
struct ExistingAccounts {
    /// Whether the operator confirmed that they belong to the same people.
    trusted: bool,
    /// Email addresses by account id.
    emails: HashMap<i64, String>,
    /// The email addresses of accounts that would get something.
    recipients: BTreeSet<String>,
}

impl ExistingAccounts {
    /// Records that an account gets something.
    fn add_recipient(&mut self, account: Option<i64>) {
        if let Some(email) = account.and_then(|account| self.emails.get(&account)) {
            self.recipients.insert(email.clone());
        }
    }
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Number of packages that were added.
    pub packages: u64,
    /// Number of versions of these packages.
    pub versions: u64,
    /// Packages that existed before, and were not changed.
    pub skipped: Vec<PackageName>,
    /// Number of other records that were skipped: of people without an account here, of holdings
    /// that existed before, or of the log, if the registry was not empty.
    pub left_out: u64,
    /// The email addresses of the accounts that were created.
    pub accounts: Vec<String>,
    /// The created accounts that are administrators.
    pub administrators: Vec<String>,
    /// The email addresses of administrators in the records whose accounts existed here and are not
    /// administrators.
    pub not_administrators: Vec<String>,
    /// The sequence number of the last change.
    pub seq: u64,
}

impl std::fmt::Debug for RegistryTransaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Work").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl<'a> Registry<'a> {
    /// Starts an import. The blobs of versions must exist, or be passed to [`Self::put_blob`]
    /// before it is finished. Only for administrators.
    pub async fn import(&self, actor: &Actor) -> Result<Import<'a>, RegistryError> {
        actor.check_admin()?;
        self.mark().await?;
        let lease = match self.database.kind() {
            DatabaseKind::Sqlite => None,
            DatabaseKind::Postgres => Some(self.take_blobs(&new_id()).await?),
        };
        let mut work = self.begin().await?;
        let found = sql("SELECT 1 FROM registry_counter WHERE seq > 0
             UNION ALL SELECT 1 FROM packages LIMIT 1")
        .optional(work.connection())
        .await?;
        Ok(Import {
            registry: *self,
            actor: actor.clone(),
            work,
            lease,
            fresh: found.is_none(),
            accounts: None,
            password_hash: None,
            before: ExistingAccounts::default(),
            old: HashSet::new(),
            unknown: HashSet::new(),
            added: Vec::new(),
            events: Vec::new(),
            has_log: false,
            waiting: Vec::new(),
            done: Imported::default(),
        })
    }

    /// Acquires or renews the lease that garbage collection of blobs also needs.
    async fn take_blobs(&self, holder: &str) -> Result<Lease, RegistryError> {
        let lease = self.database.leases().acquire(BLOBS_LEASE, holder, LEASE_DURATION).await?;
        lease.ok_or_else(|| RegistryError::Exists {
            what: "another import, or a sweep, that is under way or died within the last minutes"
                .to_owned(),
        })
    }
}

impl Import<'_> {
    /// Creates accounts for email addresses that have none here, so that users keep what they own.
    /// Each new account gets `password_hash`, whose password is unknown, until the user resets it.
    /// Accounts of administrators become administrators. Fails if an existing account would get
    /// what the records assign to its address, because anyone could have created that account.
    #[must_use]
    pub fn with_accounts(mut self, password_hash: String) -> Self {
        self.password_hash = Some(password_hash);
        self
    }

    /// Accepts existing accounts: they keep their passwords and get what the records assign to
    /// them.
    #[must_use]
    pub fn keeping_accounts(mut self) -> Self {
        self.before.trusted = true;
        self
    }

    /// Renews the lease. Call it regularly if much time passes between two records.
    pub async fn renew(&mut self) -> Result<(), RegistryError> {
        let Some(lease) = &self.lease else { return Ok(()) };
        let now = Timestamp::now();
        if lease.until <= now {
            return Err(RegistryError::TooSlow);
        }
        if lease.until.minus(LEASE_DURATION / 2) <= now {
            let holder = lease.holder.clone();
            self.lease = Some(self.registry.take_blobs(&holder).await?);
        }
        Ok(())
    }

    /// Adds a record. Records that others refer to must come first, as in an export.
    pub async fn push(&mut self, record: Record) -> Result<(), RegistryError> {
        let same =
            |other: &Record| std::mem::discriminant(other) == std::mem::discriminant(&record);
        if self.waiting.len() >= BATCH_SIZE || !self.waiting.first().is_none_or(same) {
            self.flush().await?;
        }
        self.waiting.push(record);
        self.renew().await
    }

    /// Applies the records that were pushed so far; fails if they restore content that was taken
    /// down here, or if accounts that existed before would get something from them.
    pub async fn settle(&mut self) -> Result<(), RegistryError> {
        self.flush().await?;
        self.check_not_taken_down().await?;
        if self.before.trusted || self.before.recipients.is_empty() {
            return Ok(());
        }
        let emails = self.before.recipients.iter().cloned().collect();
        Err(RegistryError::AccountsExist { emails })
    }

    /// Commits the whole import, or nothing if a check fails.
    pub async fn finish(mut self) -> Result<Imported, RegistryError> {
        let complete = self.complete().await;
        let Self { registry, work, lease, done, .. } = self;
        let ended = match complete {
            Ok(()) => work.commit().await.map_err(RegistryError::from),
            Err(error) => {
                work.transaction.rollback().await?;
                Err(error)
            }
        };
        if let Some(lease) = lease {
            registry.database.leases().release(&lease).await?;
        }
        ended.map(|()| done)
    }

    async fn complete(&mut self) -> Result<(), RegistryError> {
        self.settle().await?;
        self.renew().await?;
        self.done.seq = self.note_all().await?;
        // Check again: a concurrent takedown that committed before this transaction took its log
        // number is visible now.
        self.check_not_taken_down().await
    }

    /// Cancels the import. If it is only dropped, its lease blocks garbage collection until it
    /// expires.
    pub async fn cancel(self) -> Result<(), RegistryError> {
        self.work.transaction.rollback().await?;
        match &self.lease {
            Some(lease) => Ok(self.registry.database.leases().release(lease).await?),
            None => Ok(()),
        }
    }

    async fn flush(&mut self) -> Result<(), RegistryError> {
        let records = std::mem::take(&mut self.waiting);
        match records.first() {
            None => Ok(()),
            Some(Record::Account { .. }) => self.accounts(records).await,
            Some(Record::Namespace { .. }) => self.namespaces(records).await,
            Some(Record::Clearance { .. }) => self.clearances(records).await,
            Some(Record::Package(_)) => self.packages(records).await,
            Some(Record::Log(_)) => self.log(records).await,
            Some(Record::Member(_) | Record::Prefix(_) | Record::Key(_)) => {
                self.people(records).await
            }
        }
    }

    /// Returns the account id in this database for an id of the records.
    fn account(&self, id: Option<i64>) -> Option<i64> {
        match &self.accounts {
            Some(accounts) => accounts.get(&id?).copied(),
            None => id,
        }
    }

    async fn accounts(&mut self, records: Vec<Record>) -> Result<(), RegistryError> {
        for record in records {
            let Record::Account { id, email, admin, disabled, deleted } = record else { continue };
            if deleted {
                let gone = self.create_deleted_account(&email).await?;
                self.accounts.get_or_insert_default().extend(gone.map(|gone| (id, gone)));
                continue;
            }
            let role = if admin { Role::Admin } else { Role::User };
            let row = sql("SELECT id, role FROM users WHERE email = $1 AND deleted_at IS NULL")
                .text(&email)
                .optional(self.work.connection())
                .await?;
            let found = match row {
                Some(row) => {
                    let found = row.number(0)?;
                    if self.password_hash.is_some() {
                        if admin && row.text(1)? != Role::Admin.as_str() {
                            self.done.not_administrators.push(email.clone());
                        }
                        self.before.emails.insert(found, email);
                    }
                    Some(found)
                }
                None => self.make_account(&email, role, !disabled).await?,
            };
            self.accounts.get_or_insert_default().extend(found.map(|found| (id, found)));
        }
        Ok(())
    }

    /// Creates an account that is already deleted, so that log entries can refer to its id, which
    /// nobody else will get.
    async fn create_deleted_account(&mut self, email: &str) -> Result<Option<i64>, RegistryError> {
        if !self.fresh || self.password_hash.is_none() {
            return Ok(None);
        }
        let row = sql("INSERT INTO users (email, password_hash, role, active, created_at,
                tokens_since, deleted_at)
             VALUES ($1, '', $2, 0, $3, 0, $3) RETURNING id")
        .text(email)
        .text(Role::User.as_str())
        .time(Timestamp::now())
        .one(self.work.connection())
        .await?;
        Ok(Some(row.number(0)?))
    }

    /// Creates an account. An existing one is never changed: otherwise a backup could make an
    /// administrator of a user who only registered the same address.
    async fn make_account(
        &mut self,
        email: &str,
        role: Role,
        active: bool,
    ) -> Result<Option<i64>, RegistryError> {
        let Some(hash) = self.password_hash.clone() else { return Ok(None) };
        let row =
            sql("INSERT INTO users (email, password_hash, role, active, created_at, tokens_since)
             VALUES ($1, $2, $3, $5, $4, 0) RETURNING id")
            .text(email)
            .text(&hash)
            .text(role.as_str())
            .time(Timestamp::now())
            .number(i64::from(active))
            .optional(self.work.connection())
            .await?;
        self.done.accounts.push(email.to_owned());
        if role == Role::Admin {
            self.done.administrators.push(email.to_owned());
        }
        Ok(row.map(|row| row.number(0)).transpose()?)
    }

    /// Returns which of the names exist in a column.
    async fn existing(
        &mut self,
        select: &str,
        names: &[String],
    ) -> Result<HashSet<String>, RegistryError> {
        let mut found = HashSet::new();
        if self.fresh {
            return Ok(found);
        }
        for some in names.chunks(500) {
            let statement = among(select, some.iter().cloned());
            for row in statement.all(self.work.connection()).await? {
                found.insert(row.text(0)?);
            }
        }
        Ok(found)
    }

    async fn namespaces(&mut self, records: Vec<Record>) -> Result<(), RegistryError> {
        let names: Vec<String> = records
            .iter()
            .filter_map(|record| match record {
                Record::Namespace { name, .. } => Some(name.clone()),
                _ => None,
            })
            .collect();
        let old = self.existing("SELECT name FROM namespaces WHERE name IN", &names).await?;
        let mut rows = Vec::with_capacity(records.len());
        for record in records {
            let Record::Namespace { name, created_by, created_at } = record else { continue };
            let owner_scope = OwnerScope::of_namespace(&super::Namespace::parse(&name)?)?;
            if old.contains(&name) {
                self.done.left_out += 1;
                continue;
            }
            self.events
                .push(NewAuditEvent::new(AuditAction::NamespaceCreated).owner_scope(&owner_scope));
            rows.push(vec![
                Value::Text(name),
                Value::MaybeNumber(self.account(created_by)),
                Value::Number(created_at),
            ]);
        }
        self.old.extend(old);
        let head = "INSERT INTO namespaces (name, created_by, created_at)";
        insert_rows(self.work.connection(), head, rows, "").await?;
        Ok(())
    }

    /// Imports members, keys and prefixes.
    async fn people(&mut self, records: Vec<Record>) -> Result<(), RegistryError> {
        let holdings: Vec<String> = records
            .iter()
            .filter_map(|record| match record {
                Record::Member(member) => Some(member.owner_scope.clone()),
                Record::Key(key) => Some(key.owner_scope.clone()),
                _ => None,
            })
            .filter(|owner_scope| owner_scope.contains('/'))
            .collect();
        let old = self.existing("SELECT id FROM packages WHERE id IN", &holdings).await?;
        self.old.extend(old);
        let (mut members, mut prefixes, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        let total = records.len();
        for record in records {
            match record {
                Record::Member(member) if !self.old.contains(&member.owner_scope) => {
                    members.extend(self.member(member)?);
                }
                Record::Prefix(prefix) => prefixes.extend(self.prefix(prefix)),
                Record::Key(key) if !self.old.contains(&key.owner_scope) => {
                    check_owner_scope(&key.owner_scope)?;
                    let account = self.account(key.account);
                    self.before.add_recipient(account);
                    keys.push(self.key(key));
                }
                _ => {}
            }
        }
        self.done.left_out += (total - members.len() - prefixes.len() - keys.len()) as u64;
        let connection = self.work.connection();
        let again = "ON CONFLICT DO NOTHING";
        let head = "INSERT INTO members (holding, user_id, role, added_by, added_at)";
        insert_rows(connection, head, members, again).await?;
        let head = "INSERT INTO prefix_grants (user_id, prefix, added_by, added_at)";
        insert_rows(connection, head, prefixes, again).await?;
        let head =
            "INSERT INTO registry_keys (holding, key_id, public_key, label, account, added_by,
            added_at, revoked_at, revoked_why, proved_at, displaced_at)";
        insert_rows(connection, head, keys, again).await?;
        Ok(())
    }

    fn member(&mut self, member: super::MemberRecord) -> Result<Option<Vec<Value>>, RegistryError> {
        let Some(user) = self.account(Some(member.user_id)) else { return Ok(None) };
        self.before.add_recipient(Some(user));
        super::TeamRole::read(&member.role)?;
        check_owner_scope(&member.owner_scope)?;
        // Namespaces get a log entry for each member. Packages with their own owners do not need
        // one: the log entries of their versions name the owner.
        if !member.owner_scope.contains('/') {
            let details = json!({"user_id": user, "role": member.role});
            let owner_scope = OwnerScope::read(member.owner_scope.clone());
            self.events.push(
                NewAuditEvent::new(AuditAction::MemberSet)
                    .owner_scope(&owner_scope)
                    .details(details),
            );
        }
        Ok(Some(vec![
            Value::Text(member.owner_scope),
            Value::Number(user),
            Value::Text(member.role),
            Value::MaybeNumber(self.account(member.added_by)),
            Value::Number(member.added_at),
        ]))
    }

    fn prefix(&mut self, prefix: super::PrefixRecord) -> Option<Vec<Value>> {
        let user = self.account(Some(prefix.user_id))?;
        self.before.add_recipient(Some(user));
        Some(vec![
            Value::Number(user),
            Value::Text(prefix.prefix),
            Value::MaybeNumber(self.account(prefix.added_by)),
            Value::Number(prefix.added_at),
        ])
    }

    fn key(&self, key: super::KeyRecord) -> Vec<Value> {
        vec![
            Value::Text(key.owner_scope),
            Value::Text(key.key_id),
            Value::Text(key.public_key),
            Value::Text(key.label),
            Value::MaybeNumber(self.account(key.account)),
            Value::MaybeNumber(self.account(key.added_by)),
            Value::Number(key.added_at),
            Value::MaybeNumber(key.revoked_at),
            Value::MaybeText(key.revoked_why),
            Value::MaybeNumber(key.proved_at),
            Value::MaybeNumber(key.displaced_at),
        ]
    }

    async fn log(&mut self, records: Vec<Record>) -> Result<(), RegistryError> {
        for record in &records {
            if let Record::Log(log) = record {
                self.restore_withdrawn_facts(log).await?;
            }
        }
        if !self.fresh {
            self.done.left_out += records.len() as u64;
            return Ok(());
        }
        self.has_log = true;
        let mut last = 0;
        let mut rows = Vec::with_capacity(records.len());
        for record in records {
            let Record::Log(log) = record else { continue };
            check_log(&log)?;
            last = last.max(log.seq);
            rows.push(vec![
                Value::Number(log.seq),
                Value::Number(log.done_at),
                Value::MaybeNumber(self.account(log.account)),
                Value::MaybeText(log.token),
                Value::Text(log.act),
                Value::MaybeText(log.owner_scope),
                Value::MaybeText(log.package),
                Value::MaybeText(log.version),
                Value::Text(self.details(&log.details)),
            ]);
        }
        let head = "INSERT INTO registry_log
            (seq, done_at, account, token, act, holding, package, version, details)";
        insert_rows(self.work.connection(), head, rows, "").await?;
        sql("UPDATE registry_counter SET seq = $1 WHERE id = 1 AND seq < $1")
            .number(last)
            .run(self.work.connection())
            .await?;
        Ok(())
    }
}

impl Import<'_> {
    /// Replaces account ids in log details by those of this database.
    fn details(&self, details: &str) -> String {
        let read = serde_json::from_str::<serde_json::Value>(details);
        let Ok(serde_json::Value::Object(mut details)) = read else { return details.to_owned() };
        for key in ["account", "from", "to", "user_id"] {
            if let Some(number) = details.get_mut(key).filter(|value| value.is_i64()) {
                *number = self.account(number.as_i64()).into();
            }
        }
        serde_json::Value::Object(details).to_string()
    }
}

/// Checks the name of the auditors' scope, of a namespace or of a package.
fn check_owner_scope(text: &str) -> Result<(), RegistryError> {
    if text == OwnerScope::auditors().as_str() {
        Ok(())
    } else {
        text.parse::<OwnerScope>().map(drop)
    }
}

/// Checks the fields of a log entry that are parsed when the log is read.
fn check_log(log: &super::LogRecord) -> Result<(), RegistryError> {
    let version = log.version.as_deref().map(str::parse::<Version>).transpose();
    let details = serde_json::from_str::<serde_json::Value>(&log.details);
    let package = log.package.as_deref().map(str::parse::<PackageName>).transpose();
    if log.seq > 0 && version.is_ok() && details.is_ok() && package.is_ok() {
        return Ok(());
    }
    let message = "its package, version or details cannot be read".to_owned();
    Err(RegistryError::Invalid { what: "an entry of the log", message })
}
