//! Which databases keep their blobs in a storage.
//!
//! A blob that no row of one database refers to may be what another one lives on. So each leaves a
//! mark in the storage, and blobs are removed only where there is no mark but one's own.

use bytes::Bytes;

use super::{Registry, RegistryError};
use crate::{StoreError, sql::new_id};

/// Where the marks are, one for each database.
const MARKS: &str = "registry/databases";
/// What the setting is called that has the name of this database.
const NAME: &str = "registry.database";

impl Registry<'_> {
    /// Leaves the mark of this database; tells its name.
    pub async fn mark(&self) -> Result<String, StoreError> {
        let name = self.database.settings().put_if_absent(NAME, &new_id()).await?;
        self.storage.put_if_absent(&format!("{MARKS}/{name}"), Bytes::new()).await?;
        Ok(name)
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
