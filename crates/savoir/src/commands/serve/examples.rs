//! The first skills on a new shelf.

use savoir_store::{Database, Storage, WriteError};

use crate::error::CommandError;

/// Says in the database that the examples were put there once: who removes them is not given them
/// again.
const MARKER: &str = "examples";

const EXAMPLES: [(&str, &str); 4] = [
    ("article-summary", include_str!("../../../../../examples/article-summary/SKILL.md")),
    ("meeting-minutes", include_str!("../../../../../examples/meeting-minutes/SKILL.md")),
    ("plain-words", include_str!("../../../../../examples/plain-words/SKILL.md")),
    ("reply-draft", include_str!("../../../../../examples/reply-draft/SKILL.md")),
];

/// Puts the examples on a shelf that never had a skill. They have no owner, so everyone can run them.
pub(super) async fn shelve(database: &Database, storage: &Storage) -> Result<(), CommandError> {
    if database.settings().get(MARKER).await?.is_some() {
        return Ok(());
    }
    let skills = storage.skills();
    if skills.names().await?.is_empty() {
        for (name, text) in EXAMPLES {
            match skills.create(name, text).await {
                // Another process starts for the first time, too.
                Ok(_) | Err(WriteError::Exists { .. }) => {}
                Err(error) => {
                    return Err(CommandError::findings(format!(
                        "the example {name} cannot be put on the shelf: {error}"
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
    use savoir_skill::dialect::agent_flow::{Purpose, Stored};

    use super::*;

    #[test]
    fn a_server_can_run_every_example() {
        for (name, text) in EXAMPLES {
            let stored = Stored::read(name, text, Purpose::Create).unwrap();
            assert_eq!((stored.skill.name.as_str(), stored.owner), (name, None));
        }
    }
}
