//! Which databases keep their blobs in a storage.
//!
//! A blob that no row of one database refers to may be what another one lives on. So each leaves a
//! mark in the storage, and blobs are removed only where there is no mark but one's own. A copy of a
//! database is another one, although it has the same rows: it finds out that it lies elsewhere, and
//! takes a name of its own.

use std::time::UNIX_EPOCH;

use bytes::Bytes;

use super::{Registry, RegistryError};
use crate::{
    Kind, StoreError,
    sql::{new_id, sql},
};

/// Where the marks are, one for each database.
const MARKS: &str = "registry/databases";
/// What the setting is called that has the name of this database.
const NAME: &str = "registry.database";

impl Registry<'_> {
    /// Leaves the mark of this database; tells its name.
    pub async fn mark(&self) -> Result<String, StoreError> {
        let (settings, place) = (self.database.settings(), self.place().await?);
        let new = || format!("{} {place}", new_id());
        let mut kept = settings.put_if_absent(NAME, &new()).await?;
        if kept.split_once(' ').is_none_or(|(_, known)| known != place) {
            tracing::warn!(
                "this database is a copy, or was moved: it has a new mark in its storage"
            );
            settings.take(NAME, &kept).await?;
            kept = settings.put_if_absent(NAME, &new()).await?;
        }
        let name = kept.split(' ').next().unwrap_or_default().to_owned();
        self.storage.put_if_absent(&format!("{MARKS}/{name}"), Bytes::new()).await?;
        Ok(name)
    }

    /// What no copy of this database has in common with it.
    async fn place(&self) -> Result<String, StoreError> {
        let reader = self.database.reader();
        match self.database.kind() {
            Kind::Sqlite => {
                let row = sql("SELECT file FROM pragma_database_list WHERE name = 'main'");
                let file = row.one(reader).await?.text(0)?;
                Ok(file_place(&file))
            }
            Kind::Postgres => {
                let own = "SELECT CAST(oid AS TEXT) FROM pg_database
                    WHERE datname = current_database()";
                let own = sql(own).one(reader).await?.text(0)?;
                let server = "SELECT CAST(system_identifier AS TEXT) FROM pg_control_system()";
                // Not everybody may know it; then the number of the database must do.
                let server = match sql(server).one(reader).await {
                    Ok(row) => row.text(0)?,
                    Err(_) => String::new(),
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
        self.storage.delete(&format!("{MARKS}/{name}")).await?;
        Ok(true)
    }

    /// Refuses where another database has left its mark.
    pub(super) async fn must_be_alone(&self) -> Result<(), RegistryError> {
        let own = self.mark().await?;
        let others: Vec<String> =
            self.marks().await?.into_iter().filter(|mark| *mark != own).collect();
        if others.is_empty() { Ok(()) } else { Err(RegistryError::SharedStorage { others }) }
    }

    async fn marks(&self) -> Result<Vec<String>, StoreError> {
        let keys = self.storage.list(MARKS).await?;
        let last = |key: String| key.rsplit('/').next().unwrap_or_default().to_owned();
        Ok(keys.into_iter().map(last).collect())
    }
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
