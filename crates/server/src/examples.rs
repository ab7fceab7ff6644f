//! The example skills of a new server.
//!
//! They have no owner, so everyone can run them. A user who creates a skill with the name of an
//! example replaces it for themselves, so examples reserve no names.

use savoir_store::{Database, Storage, StoreError, WriteError};

/// The setting that records that the examples were created, so that deleted ones are not created
/// again.
const MARKER: &str = "examples";

const EXAMPLES: [(&str, &str); 4] = [
    ("article-summary", include_str!("../../../examples/article-summary/SKILL.md")),
    ("meeting-minutes", include_str!("../../../examples/meeting-minutes/SKILL.md")),
    ("plain-words", include_str!("../../../examples/plain-words/SKILL.md")),
    ("reply-draft", include_str!("../../../examples/reply-draft/SKILL.md")),
];

/// Creates the examples if there was never a skill. They have no owner, so everyone can run them.
pub async fn install_examples(database: &Database, storage: &Storage) -> Result<(), StoreError> {
    if database.settings().get(MARKER).await?.is_some() {
        return Ok(());
    }
    let skills = storage.skills();
    if skills.keys().await?.is_empty() {
        for (name, text) in EXAMPLES {
            match skills.create(name, text).await {
                // Another server created it at the same time.
                Ok(_) | Err(WriteError::Exists { .. }) => {}
                Err(WriteError::Store(error)) => return Err(error),
                Err(error) => return Err(StoreError::Setting(error.to_string())),
            }
        }
    }
    database.settings().put(MARKER, env!("CARGO_PKG_VERSION")).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use savoir_skill::dialect::agent_flow::{Purpose, StoredSkillFile};

    use super::*;

    #[test]
    fn a_server_can_run_every_example() {
        for (name, text) in EXAMPLES {
            let stored = StoredSkillFile::read(name, text, Purpose::Create).unwrap();
            assert_eq!((stored.skill.name.as_str(), stored.owner), (name, None));
        }
    }
}
