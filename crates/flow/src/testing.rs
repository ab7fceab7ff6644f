//! Shared helpers for unit tests.

use savoir_skill::{Dialect, Skill, Source, read_as};

/// Parses a skill.
pub(crate) fn skill(text: &str, dialect: Dialect) -> Skill {
    let source = Source::from_bytes(text.as_bytes().to_vec()).expect("a source");
    read_as(source, dialect, None).skill
}
