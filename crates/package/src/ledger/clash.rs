//! Skills of one name that one agent sees twice.

use super::{
    Entry,
    files::{self, Item},
};
use crate::{
    agents::{Agent, Precedence},
    tree::TreeError,
};

/// Skills of one name that the same agents see.
#[derive(Clone, Debug)]
pub struct Clash<'a> {
    /// The name.
    pub name: &'a str,
    /// The agents that see all of them in this order.
    pub agents: Vec<&'static Agent>,
    /// The skills, by the agents' precedence.
    pub entries: Vec<&'a Entry>,
    /// What the agents do with them.
    pub outcome: Outcome,
}

/// What agents do with skills of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// They use the first and hide the others.
    FirstWins,
    /// They show all of them.
    AllShown,
}

impl Clash<'_> {
    /// Whether the files of all of them are the same.
    pub fn is_identical(&self) -> Result<bool, TreeError> {
        let mut first: Option<Vec<Item>> = None;
        for entry in &self.entries {
            let mut items = files::read(entry.path())?;
            items.retain(|item| !item.is_left_behind());
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
pub(super) fn find(entries: &[Entry]) -> Vec<Clash<'_>> {
    let groups = entries.chunk_by(|a, b| a.name() == b.name());
    groups.filter(|group| group.len() > 1).flat_map(among).collect()
}

/// The clashes among skills of one name.
fn among(group: &[Entry]) -> Vec<Clash<'_>> {
    let mut clashes: Vec<Clash<'_>> = Vec::new();
    for (reader, agent) in Agent::ALL.iter().enumerate() {
        let entries = seen_by(reader, group);
        if entries.len() < 2 {
            continue;
        }
        let outcome = match agent.precedence {
            Precedence::Both => Outcome::AllShown,
            _ => Outcome::FirstWins,
        };
        let same = |clash: &&mut Clash<'_>| {
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
            clashes.push(Clash { name, agents: vec![agent], entries, outcome });
        }
    }
    clashes
}

/// What one agent sees, by its precedence.
fn seen_by(reader: usize, group: &[Entry]) -> Vec<&Entry> {
    let rank = |entry: &&Entry| {
        let readers = entry.places().iter().flat_map(|place| &place.folder.readers);
        readers.filter(|(known, _)| *known == reader).map(|(_, rank)| *rank).min()
    };
    let mut seen: Vec<(usize, &Entry)> =
        group.iter().filter_map(|entry| Some((rank(&entry)?, entry))).collect();
    seen.sort_by_key(|(rank, _)| *rank);
    seen.into_iter().map(|(_, entry)| entry).collect()
}
