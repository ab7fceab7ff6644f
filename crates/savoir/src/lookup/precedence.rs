//! The precedence of skills of the same name, as far as it is known without reading them.

use std::{env, path::Path};

use savoir_package::{
    agents,
    ledger::{LedgerEntry, Origin, SkillLocation},
};

use super::Scope;
use crate::installed::Installed;

/// The skills in order of precedence: the project before the user, skills in a lockfile of Savoir
/// before others, near folders before those above, agents in use before others.
pub(crate) fn sort_by_precedence<'a>(
    mut entries: Vec<&'a LedgerEntry>,
    installed: &Installed,
) -> Vec<&'a LedgerEntry> {
    let here = env::current_dir().unwrap_or_default();
    entries.sort_by_cached_key(|entry| {
        let is_locked = matches!(entry.recorded(), Some(Origin::Savoir { .. }));
        let near = entry.places().iter().map(|place| distance(place.folder(), &here)).min();
        let in_use = entry.agents().iter().any(|agent| installed.in_use.contains(agent));
        (scope(entry), !is_locked, near, !in_use, entry.path().to_owned())
    });
    entries
}

/// How many levels the nearest common parent of both folders is above `here`.
fn distance(folder: &Path, here: &Path) -> usize {
    let above = here.ancestors().position(|above| folder.starts_with(above));
    above.unwrap_or(usize::MAX)
}

/// The nearest scope in which an agent sees a skill.
pub(super) fn scope(entry: &LedgerEntry) -> Scope {
    let scopes = entry.places().iter().map(SkillLocation::scope);
    match scopes.min() {
        Some(agents::Scope::Project) => Scope::Project,
        Some(agents::Scope::User) => Scope::User,
        Some(agents::Scope::System) => Scope::System,
        None => Scope::Path,
    }
}
