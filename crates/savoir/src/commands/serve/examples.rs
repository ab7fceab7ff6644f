//! The example skills of a new server.

use savoir_store::{Database, Storage, WriteError};

use crate::error::CommandError;

/// The setting that says that the examples were created, so that removed ones stay removed.
const MARKER: &str = "examples";

const EXAMPLES: [(&str, &str); 4] = [
    ("article-summary", include_str!("../../../../../examples/article-summary/SKILL.md")),
    ("meeting-minutes", include_str!("../../../../../examples/meeting-minutes/SKILL.md")),
    ("plain-words", include_str!("../../../../../examples/plain-words/SKILL.md")),
    ("reply-draft", include_str!("../../../../../examples/reply-draft/SKILL.md")),
];

/// Creates the examples if there was never a skill. They have no owner, so everyone can run them.
pub(super) async fn install_examples(
    database: &Database,
    storage: &Storage,
) -> Result<(), CommandError> {
    if database.settings().get(MARKER).await?.is_some() {
        return Ok(());
    }
    let skills = storage.skills();
    if skills.names().await?.is_empty() {
        for (name, text) in EXAMPLES {
            match skills.create(name, text).await {
                // Another server created it at the same time.
                Ok(_) | Err(WriteError::Exists { .. }) => {}
                Err(error) => {
                    return Err(CommandError::findings(format!(
                        "cannot create the example skill {name}: {error}"
                    )));
                }
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
