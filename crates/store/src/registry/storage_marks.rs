//! Marks in a storage which databases store blobs there.
//!
//! A blob without a reference in one database may be used by another one. So each database writes a
//! mark to the storage, and blobs are removed only if there is no mark of another database. A copy
//! of a database counts as another database, although it has the same rows: it detects that its
//! location differs, and chooses a new name.
//!
//! A copy of a whole disk or database server cannot detect that. So a mark has a generation, which
//! is also stored in the database and changes each time the mark is written. If the two differ, a
//! copy has written the mark meanwhile.

use std::time::UNIX_EPOCH;

use bytes::Bytes;

use super::{Registry, RegistryError};
use crate::{
    DatabaseKind, StoreError,
    sql::{new_id, sql},
};

/// The folder of the marks, one for each database.
const MARKS_FOLDER: &str = "registry/databases";
/// The setting with the name of this database.
const NAME_SETTING: &str = "registry.database";
/// The setting with the generation of its mark.
const GENERATION_SETTING: &str = "registry.generation";
/// PostgreSQL's error code for missing privileges.
const INSUFFICIENT_PRIVILEGE: &str = "42501";
/// Maximum attempts to write a mark while other processes of the same database write it, too.
const MAX_TRIES: usize = 50;

/// What the database stores about its mark.
struct Generation {
    /// The text of the setting.
    kept: Option<String>,
    /// The previous generation. It is empty in marks of older versions.
    now: String,
    /// The next generation. It is stored before the mark changes, so that a crash in between is
    /// detected.
    next: Option<String>,
}

impl Generation {
    fn read(kept: Option<String>, name: &str) -> Self {
        let mut words = kept.as_deref().unwrap_or_default().split(' ');
        let (now, next) = if words.next() == Some(name) {
            (words.next().unwrap_or_default().to_owned(), words.next().map(ToOwned::to_owned))
        } else {
            (String::new(), None)
        };
        Self { kept, now, next }
    }
}

/// The result of writing a mark.
#[derive(PartialEq, Eq)]
enum MarkResult {
    /// The mark was written and belongs to this database.
    Done,
    /// Another process was faster, or completed the change of a crashed one.
    Again,
    /// Another database has a mark of this name.
    ByAnother,
}

impl Registry<'_> {
    /// Writes the mark of this database again, and returns its name. Servers do so regularly, so
    /// that copies detect that they are copies.
    pub async fn mark(&self) -> Result<String, StoreError> {
        for _ in 0..MAX_TRIES {
            let (name, kept) = self.own_name().await?;
            match self.leave_mark(&name).await? {
                MarkResult::Done => return Ok(name),
                MarkResult::Again => {}
                MarkResult::ByAnother => {
                    tracing::warn!(
                        "a copy of this database uses its storage, too, or this one is older than it \
                         was: it has a new mark there, and nothing is swept"
                    );
                    self.database.settings().take(NAME_SETTING, &kept).await?;
                }
            }
        }
        let message = "other processes change the mark of this database all the time; try again";
        Err(StoreError::Setting(message.to_owned()))
    }

    /// Returns the name of this database, and the setting that contains it.
    async fn own_name(&self) -> Result<(String, String), StoreError> {
        let (settings, place) = (self.database.settings(), self.place().await?);
        let new = || format!("{} {place}", new_id());
        let mut kept = settings.put_if_absent(NAME_SETTING, &new()).await?;
        if kept.split_once(' ').is_none_or(|(_, known)| known != place) {
            tracing::warn!(
                "this database is a copy, or was moved: it has a new mark in its storage"
            );
            settings.take(NAME_SETTING, &kept).await?;
            kept = settings.put_if_absent(NAME_SETTING, &new()).await?;
        }
        let name = kept.split(' ').next().unwrap_or_default().to_owned();
        Ok((name, kept))
    }

    /// Replaces the mark of this database, if it is unchanged.
    async fn leave_mark(&self, name: &str) -> Result<MarkResult, StoreError> {
        let settings = self.database.settings();
        let known = Generation::read(settings.get(GENERATION_SETTING).await?, name);
        let next = known.next.unwrap_or_else(new_id);
        let planned = format!("{name} {} {next}", known.now);
        if !settings.swap(GENERATION_SETTING, known.kept.as_deref(), &planned).await? {
            return Ok(MarkResult::Again);
        }
        let (key, bytes) = (format!("{MARKS_FOLDER}/{name}"), Bytes::from(next.clone()));
        let left = match self.storage.get(&key).await? {
            None => done_if(self.storage.put_if_absent(&key, bytes).await?),
            Some(found) if found == known.now => {
                done_if(self.storage.swap(&key, found, bytes).await?)
            }
            // A process crashed here, or the database was copied just then: only another change
            // shows which.
            Some(found) if found == next => MarkResult::Again,
            Some(_) if settings.get(GENERATION_SETTING).await?.as_ref() == Some(&planned) => {
                return Ok(MarkResult::ByAnother);
            }
            Some(_) => return Ok(MarkResult::Again),
        };
        settings.swap(GENERATION_SETTING, Some(&planned), &format!("{name} {next}")).await?;
        Ok(left)
    }

    /// Returns an identifier that differs for every copy of this database.
    async fn place(&self) -> Result<String, StoreError> {
        let reader = self.database.reader();
        match self.database.kind() {
            DatabaseKind::Sqlite => {
                let row = sql("SELECT file FROM pragma_database_list WHERE name = 'main'");
                let file = row.one(reader).await?.text(0)?;
                Ok(file_place(&file))
            }
            DatabaseKind::Postgres => {
                let own = "SELECT CAST(oid AS TEXT) FROM pg_database
                    WHERE datname = current_database()";
                let own = sql(own).one(reader).await?.text(0)?;
                let server = "SELECT CAST(system_identifier AS TEXT) FROM pg_control_system()";
                let server = match sql(server).one(reader).await {
                    Ok(row) => row.text(0)?,
                    // Reading it needs privileges; without them, use the id of the database.
                    Err(error) if is_forbidden(&error) => String::new(),
                    Err(error) => return Err(error),
                };
                Ok(format!("{server}/{own}"))
            }
        }
    }

    /// Removes the mark of a database that no longer exists; returns false if there is none.
    pub async fn unmark(&self, name: &str) -> Result<bool, RegistryError> {
        let own = self.mark().await?;
        if name == own {
            let message = "this database is here; forget one that is gone".to_owned();
            return Err(RegistryError::Invalid { what: "the name of a database", message });
        }
        if !self.marks().await?.iter().any(|mark| mark == name) {
            return Ok(false);
        }
        self.storage.delete(&format!("{MARKS_FOLDER}/{name}")).await?;
        Ok(true)
    }

    /// Fails if the storage has the mark of another database.
    pub(super) async fn check_only_database(&self) -> Result<(), RegistryError> {
        let own = self.mark().await?;
        let others: Vec<String> =
            self.marks().await?.into_iter().filter(|mark| *mark != own).collect();
        if others.is_empty() { Ok(()) } else { Err(RegistryError::SharedStorage { others }) }
    }

    async fn marks(&self) -> Result<Vec<String>, StoreError> {
        let keys = self.storage.list(MARKS_FOLDER).await?;
        let last = |key: String| key.rsplit('/').next().unwrap_or_default().to_owned();
        Ok(keys.into_iter().map(last).collect())
    }
}

/// Whether PostgreSQL reports missing privileges.
fn is_forbidden(error: &StoreError) -> bool {
    let StoreError::Database(sqlx::Error::Database(error)) = error else { return false };
    error.code().as_deref() == Some(INSUFFICIENT_PRIVILEGE)
}

fn done_if(left: bool) -> MarkResult {
    if left { MarkResult::Done } else { MarkResult::Again }
}

/// Returns the inode number and creation time of a file, which differ for a copy.
fn file_place(path: &str) -> String {
    let Ok(known) = std::fs::metadata(path) else { return path.to_owned() };
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&known);
    #[cfg(not(unix))]
    let number = 0_u64;
    let made = known.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    format!("{number}/{}", made.map_or(0, |since| since.as_nanos()))
}
