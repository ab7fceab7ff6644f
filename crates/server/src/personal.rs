//! Skills as people have them for their agents: where they came from, whether they are offered, and
//! how they come, go and grow old.
//!
//! - [`Keeper`] writes a skill with all its files and what is known of it, and lays aside what nobody
//!   uses.
//! - [`read`] is how an agent reads a skill, [`Item`] what its person is told.
//! - [`from_bytes`] and [`from_tree`] read what comes from elsewhere, [`to_others`] writes what goes
//!   there.
//! - `catalog` finds skills in repositories that administrators list.
//! - [`project`] keeps the skills of integrations.

pub(crate) mod catalog;
mod curator;
mod integrations;
mod item;
mod keeper;
mod package;
mod reading;

pub use integrations::{Projected, project};
pub use item::Item;
pub(crate) use item::digest;
pub use keeper::{Before, Keeper, New, SettleError, Settled};
pub use package::{Exported, Keep, Package, PackageError, from_bytes, from_tree, to_others};
pub use reading::read;

use savoir_skill::dialect::personal_agent::Provenance;
use savoir_store::{Facts, Resource, StoreError, Time};

/// Names that routes have.
pub(crate) const RESERVED: &[&str] = &["import", "catalog"];

/// Bytes of all files of a skill that are read at once.
const MOST_FILE_BYTES: u64 = savoir_package::limits::MAX_FILE_BYTES;

impl Keeper {
    /// Keeps a skill that a person brought, in place of their own of the same name.
    pub async fn import(
        &self,
        package: Package,
        owner: Option<String>,
    ) -> Result<Settled, SettleError> {
        let Package { name, text, resources } = package;
        let new = New { name, text, resources, owner };
        let decide = |before: Option<&Before>| {
            let was = before.map(|before| before.facts.clone());
            let was = was.unwrap_or_else(|| Facts::authored(None, Time::now()));
            Some(Facts {
                source: Provenance::Imported,
                source_id: None,
                source_version: None,
                digest: None,
                active_since: Time::now(),
                ..was
            })
        };
        self.settle(new, decide).await
    }

    /// All files of a skill beside its SKILL.md.
    pub async fn resources(&self, name: &str) -> Result<Vec<Resource>, StoreError> {
        let mut found = Vec::new();
        for entry in self.files().resources(name).await? {
            found.extend(self.files().resource(name, &entry.path, MOST_FILE_BYTES).await?);
        }
        Ok(found)
    }

    /// The paths of these files.
    pub async fn paths(&self, name: &str) -> Result<Vec<String>, StoreError> {
        let entries = self.files().resources(name).await?;
        Ok(entries.into_iter().map(|entry| entry.path).collect())
    }
}
