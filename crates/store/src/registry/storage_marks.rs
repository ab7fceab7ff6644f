//! Marks in a storage which databases keep blobs there.
//!
//! A blob that no row of one database refers to may be what another one lives on. So each leaves a
//! mark in the storage, and blobs are removed only where there is no mark but one's own. A copy of
//! a database is another one, although it has the same rows: it finds out that it lies elsewhere,
//! and takes a name of its own.
//!
//! A copy of a whole disk, or of a whole server of databases, does not lie elsewhere as far as it
//! can see. So a mark has a generation, which the database knows, too, and which changes whenever
//! the mark is left again. Whoever finds another one than its own is not alone: a copy was here
//! since.

use std::time::UNIX_EPOCH;

use bytes::Bytes;

use super::{Registry, RegistryError};
use crate::{
    DatabaseKind, StoreError,
    sql::{new_id, sql},
};

/// Where the marks are, one for each database.
const MARKS_FOLDER: &str = "registry/databases";
/// What the setting is called that has the name of this database.
const NAME_SETTING: &str = "registry.database";
/// What the setting is called that has the generation of its mark.
const GENERATION_SETTING: &str = "registry.generation";
/// How PostgreSQL says that somebody may not do something.
const INSUFFICIENT_PRIVILEGE: &str = "42501";
/// How often a mark is left again if others of the same database do so meanwhile.
const MAX_TRIES: usize = 50;

/// What a database knows of its mark.
struct Generation {
    /// As the setting has it.
    kept: Option<String>,
    /// What the mark was. Those that older programs left were empty.
    now: String,
    /// What it becomes. It is kept before the mark changes, so that who dies in between is known.
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

/// How leaving a mark ended.
#[derive(PartialEq, Eq)]
enum MarkResult {
    /// It is there, and nobody else's.
    Done,
    /// Another process was faster, or finished what a dead one began.
    Again,
    /// Another database has a mark of this name.
    ByAnother,
}

impl Registry<'_> {
    /// Leaves the mark of this database anew; tells its name. Whoever serves a registry does so now
    /// and then: a copy finds out by it that it is one.
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

    /// The name of this database, and the setting that has it.
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

    /// Makes another mark of the one that this database left, if it is still the same.
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
            // Somebody died here, or copied the database just then: only another change tells.
            Some(found) if found == next => MarkResult::Again,
            Some(_) if settings.get(GENERATION_SETTING).await?.as_ref() == Some(&planned) => {
                return Ok(MarkResult::ByAnother);
            }
            Some(_) => return Ok(MarkResult::Again),
        };
        settings.swap(GENERATION_SETTING, Some(&planned), &format!("{name} {next}")).await?;
        Ok(left)
    }

    /// What no copy of this database has in common with it.
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
                    // Not everybody may know it; then the number of the database must do.
                    Err(error) if is_forbidden(&error) => String::new(),
                    Err(error) => return Err(error),
                };
                Ok(format!("{server}/{own}"))
            }
        }
    }

    /// Takes away the mark of a database that is gone; false if there is none.
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

    /// Refuses where another database has left its mark.
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

/// Whether PostgreSQL says that somebody may not do something.
fn is_forbidden(error: &StoreError) -> bool {
    let StoreError::Database(sqlx::Error::Database(error)) = error else { return false };
    error.code().as_deref() == Some(INSUFFICIENT_PRIVILEGE)
}

fn done_if(left: bool) -> MarkResult {
    if left { MarkResult::Done } else { MarkResult::Again }
}

/// The number of a file and when it was made, which a copy does not have.
fn file_place(path: &str) -> String {
    let Ok(known) = std::fs::metadata(path) else { return path.to_owned() };
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&known);
    #[cfg(not(unix))]
    let number = 0_u64;
    let made = known.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    format!("{number}/{}", made.map_or(0, |since| since.as_nanos()))
}
