//! Skills as people have them for their agents: where they came from, whether they are offered, and
//! how they come, go and grow old.
//!
//! - [`SkillWriter`] writes a skill with all its files and what is known of it, and lays aside what nobody
//!   uses.
//! - [`read`] is how an agent reads a skill, [`Item`] what its person is told.
//! - `arrival` finds the name of what comes from elsewhere.
//! - [`from_bytes`] and [`from_tree`] read what comes from elsewhere, [`to_others`] writes what goes
//!   there.
//! - `catalog` finds skills in repositories that administrators list.
//! - [`project`] keeps the skills of integrations.

pub(crate) mod catalog;
mod import;
mod integrations;
mod item;
mod lifecycle;
mod package;
mod reading;
mod skill_writer;

pub(crate) use import::Arrival;
pub use import::By;
pub(crate) use integrations::project_until;
pub use integrations::{Projected, project};
pub use item::Item;
pub(crate) use item::digest;
pub use package::{Exported, Keep, Package, PackageError, from_bytes, from_tree, to_others};
pub use reading::read;
use skill_writer::Notes;
pub use skill_writer::{Before, ConflictReason, New, SkillWriter, StoreSkillError, StoredSkill};

use savoir_store::{Resource, StoreError};

/// Names that routes have.
pub(crate) const RESERVED_NAMES: &[&str] = &["import", "catalog"];

/// Bytes of all files of a skill that are read at once.
const MAX_FILE_BYTES_IN_STORE: u64 = savoir_package::limits::MAX_FILE_BYTES;

impl SkillWriter {
    /// All files of a skill beside its SKILL.md.
    pub async fn resources(&self, name: &str) -> Result<Vec<Resource>, StoreError> {
        let mut found = Vec::new();
        for entry in self.files().resources(name).await? {
            found.extend(self.files().resource(name, &entry.path, MAX_FILE_BYTES_IN_STORE).await?);
        }
        Ok(found)
    }

    /// The paths of these files.
    pub async fn paths(&self, name: &str) -> Result<Vec<String>, StoreError> {
        let entries = self.files().resources(name).await?;
        Ok(entries.into_iter().map(|entry| entry.path).collect())
    }
}
