//! Manages the skills that users store for their agents: import, export, metadata, archiving.
//!
//! - [`SkillWriter`] writes a skill with all its files and its metadata. `lifecycle` archives
//!   skills that nobody uses.
//! - [`read`] parses a skill for an agent. [`Item`] describes a skill to its user.
//! - `import` chooses the name under which an imported skill is stored.
//! - [`from_bytes`] and [`from_tree`] read an imported skill. [`to_others`] exports one.
//! - `catalog` finds skills in repositories that administrators configure.
//! - [`project`] imports the skills of integrations.

pub(crate) mod catalog;
mod import;
mod integrations;
mod item;
mod lifecycle;
mod package;
mod reading;
mod skill_writer;

pub use import::ImportSource;
pub(crate) use import::ImportedSkill;
pub(crate) use integrations::project_until;
pub use integrations::{ProjectionReport, project};
pub use item::Item;
pub(crate) use item::digest;
pub(crate) use package::is_text;
pub use package::{
    Exported, Package, PackageError, ResourceSelection, from_bytes, from_manifest, from_tree,
    to_others,
};
pub use reading::read;
use skill_writer::Notes;
pub use skill_writer::{
    ConflictReason, ReplacedSkill, SkillToStore, SkillWriter, StoreSkillError, StoredSkill,
};
pub(crate) use skill_writer::{FileOwner, SavedSkill, TextChange};

pub(crate) use savoir_skill::dialect::agent_flow::RESERVED_NAMES;
use savoir_store::{Resource, StoreError};

/// Maximum bytes of one file of a skill that is read.
const MAX_FILE_BYTES_IN_STORE: u64 = savoir_package::limits::MAX_FILE_BYTES;

impl SkillWriter {
    /// All files of a skill except its SKILL.md.
    pub async fn resources(&self, key: &str) -> Result<Vec<Resource>, StoreError> {
        let mut found = Vec::new();
        for entry in self.files().resources(key).await? {
            found.extend(self.files().resource(key, &entry.path, MAX_FILE_BYTES_IN_STORE).await?);
        }
        Ok(found)
    }

    /// The paths of all files of a skill except its SKILL.md.
    pub async fn paths(&self, key: &str) -> Result<Vec<String>, StoreError> {
        let entries = self.files().resources(key).await?;
        Ok(entries.into_iter().map(|entry| entry.path).collect())
    }
}
