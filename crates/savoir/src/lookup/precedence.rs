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
    let mut folders = FolderRanks { here: &here, installed, known: Vec::new() };
    entries.sort_by_cached_key(|entry| {
        let is_locked = matches!(entry.recorded(), Some(Origin::Savoir { .. }));
        let ranks: Vec<_> = entry.places().iter().map(|place| folders.rank(place)).collect();
        let near = ranks.iter().map(|rank| rank.0).min();
        let in_use = ranks.iter().any(|rank| rank.1);
        (scope(entry), !is_locked, near, !in_use, entry.path().as_os_str())
    });
    entries
}

/// How near the folders of agents are, and whether an agent in use reads them: ten thousand skills
/// are in few folders.
struct FolderRanks<'a> {
    here: &'a Path,
    installed: &'a Installed,
    known: Vec<(&'a Path, (usize, bool))>,
}

impl<'a> FolderRanks<'a> {
    fn rank(&mut self, place: &'a SkillLocation) -> (usize, bool) {
        let folder = place.folder();
        if let Some((_, rank)) = self.known.iter().find(|(known, _)| std::ptr::eq(*known, folder)) {
            return *rank;
        }
        let in_use = place.agents().any(|agent| self.installed.in_use.contains(&agent));
        let rank = (distance(folder, self.here), in_use);
        self.known.push((folder, rank));
        rank
    }
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
