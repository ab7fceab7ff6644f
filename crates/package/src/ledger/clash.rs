//! Finds skills with the same name that one agent sees.

use super::{
    LedgerEntry,
    files::{self, Item},
};
use crate::{
    agents::{Agent, Precedence},
    tree::TreeError,
};

/// Skills of one name that the same agents see.
#[derive(Clone, Debug)]
pub struct NameClash<'a> {
    pub name: &'a str,
    /// The agents that see all of them in this order.
    pub agents: Vec<&'static Agent>,
    /// The skills, by the agents' precedence.
    pub entries: Vec<&'a LedgerEntry>,
    /// What the agents do with them.
    pub outcome: ClashOutcome,
}

/// What agents do with skills of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClashOutcome {
    /// They use the first and hide the others.
    FirstWins,
    /// They show all of them.
    AllShown,
}

impl NameClash<'_> {
    /// Whether the files of all of them are the same.
    pub fn is_identical(&self) -> Result<bool, TreeError> {
        let mut first: Option<Vec<Item>> = None;
        for entry in &self.entries {
            let mut items = files::read(entry.path())?;
            items.retain(|item| !item.is_ignored_name());
            match &first {
                None => first = Some(items),
                Some(first) if *first != items => return Ok(false),
                Some(_) => (),
            }
        }
        Ok(true)
    }
}

/// Every clash among skills that are sorted by name.
pub(super) fn find(entries: &[LedgerEntry]) -> Vec<NameClash<'_>> {
    let groups = entries.chunk_by(|a, b| a.name() == b.name());
    groups.filter(|group| group.len() > 1).flat_map(clashes_in_group).collect()
}

/// The clashes among skills of one name.
fn clashes_in_group(group: &[LedgerEntry]) -> Vec<NameClash<'_>> {
    let mut clashes: Vec<NameClash<'_>> = Vec::new();
    for (reader, agent) in Agent::ALL.iter().enumerate() {
        let entries = entries_seen_by(reader, group);
        if entries.len() < 2 {
            continue;
        }
        let outcome = match agent.precedence {
            Precedence::Both => ClashOutcome::AllShown,
            _ => ClashOutcome::FirstWins,
        };
        let same = |clash: &&mut NameClash<'_>| {
            clash.outcome == outcome
                && clash
                    .entries
                    .iter()
                    .map(|entry| entry.path())
                    .eq(entries.iter().map(|entry| entry.path()))
        };
        if let Some(clash) = clashes.iter_mut().find(same) {
            clash.agents.push(agent);
        } else {
            let name = entries[0].name();
            clashes.push(NameClash { name, agents: vec![agent], entries, outcome });
        }
    }
    clashes
}

/// What one agent sees, by its precedence.
fn entries_seen_by(reader: usize, group: &[LedgerEntry]) -> Vec<&LedgerEntry> {
    let rank = |entry: &&LedgerEntry| {
        let readers = entry.places().iter().flat_map(|place| &place.folder.readers);
        readers.filter(|(known, _)| *known == reader).map(|(_, rank)| *rank).min()
    };
    let mut seen: Vec<(usize, &LedgerEntry)> =
        group.iter().filter_map(|entry| Some((rank(&entry)?, entry))).collect();
    seen.sort_by_key(|(rank, _)| *rank);
    seen.into_iter().map(|(_, entry)| entry).collect()
}
