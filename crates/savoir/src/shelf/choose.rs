//! Which of the skills that a source has are meant.

use std::{borrow::Cow, collections::BTreeSet, fmt::Write as _, path::Path};

use savoir_package::source::Offer;
use serde_json::{Value, json};

use crate::{ask, error::CommandError, output};

/// How many skills are named in an error.
const NAMED: usize = 20;

/// How much of a description is shown.
const SHOWN: usize = 60;

/// Which of the skills of a source.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Choice {
    /// Of a source with several skills, take this one; may be repeated
    #[arg(long, short, value_name = "NAME", value_delimiter = ',', conflicts_with = "all")]
    skill: Vec<String>,
    /// Take all skills of the sources
    #[arg(long)]
    all: bool,
}

/// A source as it was typed, and what it has.
pub(crate) struct Stall {
    pub(crate) typed: String,
    pub(crate) offers: Vec<Offer>,
    /// Whether somebody said what it must be.
    pub(crate) pinned: bool,
}

impl Choice {
    /// The skills that are meant.
    pub(crate) fn of(&self, stalls: &[Stall]) -> Result<Vec<Offer>, CommandError> {
        if !self.skill.is_empty() {
            return self.named(stalls);
        }
        let mut chosen = Vec::new();
        for stall in stalls {
            match stall.offers.as_slice() {
                offers if self.all || offers.len() == 1 => chosen.extend(offers.iter().cloned()),
                offers if ask::can_ask() => chosen.extend(ask_for(stall, offers)?),
                offers => return Err(several(stall, offers)),
            }
        }
        if chosen.is_empty() {
            return Err(CommandError::refused("no skill was chosen").named("nothing_chosen"));
        }
        Ok(chosen)
    }

    fn named(&self, stalls: &[Stall]) -> Result<Vec<Offer>, CommandError> {
        let offers: Vec<&Offer> = stalls.iter().flat_map(|stall| &stall.offers).collect();
        let mut chosen: Vec<Offer> = Vec::new();
        for name in &self.skill {
            let found = offers.iter().filter(|offer| offer.name == *name || offer.called() == name);
            let before = chosen.len();
            chosen.extend(found.map(|offer| (*offer).clone()));
            if chosen.len() == before {
                return Err(CommandError::input(format!("there is no skill `{name}` there"))
                    .named("no_such_skill")
                    .hint(format!("there are {}", names(&offers))));
            }
        }
        Ok(chosen)
    }
}

/// Prints what sources have.
pub(crate) fn list(stalls: &[Stall], root: &Path, as_json: bool) -> Result<(), CommandError> {
    if as_json { output::json(&json(stalls, root)) } else { output::text(&table(stalls)) }
}

fn table(stalls: &[Stall]) -> String {
    let offers = stalls.iter().flat_map(|stall| &stall.offers);
    let rows: Vec<[Cow<'_, str>; 2]> = offers
        .map(|offer| [output::cell(&offer.name), shortened(offer.description.as_deref())])
        .collect();
    output::table(["NAME", "DESCRIPTION"], &rows)
}

fn json(stalls: &[Stall], root: &Path) -> Value {
    let offer = |offer: &Offer| {
        json!({
            "name": offer.name,
            "description": offer.description,
            "source": offer.place.text(root),
        })
    };
    let stall = |stall: &Stall| {
        json!({
            "source": stall.typed,
            "skills": stall.offers.iter().map(offer).collect::<Vec<_>>(),
        })
    };
    json!({ "sources": stalls.iter().map(stall).collect::<Vec<_>>() })
}

fn several(stall: &Stall, offers: &[Offer]) -> CommandError {
    let count = offers.len();
    let all: Vec<&Offer> = offers.iter().collect();
    CommandError::input(format!("{} has {count} skills: {}", stall.typed, names(&all)))
        .named("several_skills")
        .hint("choose with --skill NAME, or take all with --all")
}

fn names(offers: &[&Offer]) -> String {
    let mut shown: Vec<&str> = offers.iter().take(NAMED).map(|offer| offer.name.as_str()).collect();
    let more = format!("and {} more: see --list", offers.len().saturating_sub(NAMED));
    if offers.len() > NAMED {
        shown.push(&more);
    }
    shown.join(", ")
}

fn shortened(text: Option<&str>) -> Cow<'_, str> {
    let text = text.unwrap_or_default();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => Cow::Owned(format!("{}…", output::cell(text[..end].trim_end()))),
        None => output::cell(text),
    }
}

fn ask_for(stall: &Stall, offers: &[Offer]) -> Result<Vec<Offer>, CommandError> {
    let mut page = format!("{} has {} skills:\n", output::cell(&stall.typed), offers.len());
    let width = offers.len().to_string().len();
    for (at, offer) in offers.iter().enumerate() {
        let description = shortened(offer.description.as_deref());
        // Writing to a string cannot fail.
        let _ = writeln!(page, "  {:width$}  {}  {description}", at + 1, output::cell(&offer.name));
    }
    page.push_str("Which ones? Numbers or names, `all`, or nothing to stop: ");
    let meant = |line: &str| picked(line, offers);
    let chosen = ask::line(&page, &meant)?.unwrap_or_default();
    Ok(chosen.into_iter().map(|at| offers[at].clone()).collect())
}

/// What a line picks; nothing if a word of it means nothing.
fn picked(line: &str, offers: &[Offer]) -> Option<BTreeSet<usize>> {
    if line.trim().eq_ignore_ascii_case("all") {
        return Some((0..offers.len()).collect());
    }
    let words = line.split([' ', ',', '\t']).map(str::trim).filter(|word| !word.is_empty());
    words.map(|word| pick(word, offers)).try_fold(BTreeSet::new(), |mut all, picked| {
        all.extend(picked?);
        Some(all)
    })
}

/// A name, a number, or `2-5`.
fn pick(word: &str, offers: &[Offer]) -> Option<Vec<usize>> {
    if let Some(at) = offers.iter().position(|offer| offer.name == word) {
        return Some(vec![at]);
    }
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
    let is_there = 1 <= first && first <= last && last <= offers.len();
    is_there.then(|| (first - 1..last).collect())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use savoir_package::source::Place;

    use super::*;

    #[test]
    fn lines_pick_skills() {
        let offer = |name: &str| Offer {
            name: name.to_owned(),
            description: None,
            place: Place::Path { path: PathBuf::from(name), inside: String::new() },
        };
        let offers = ["pdf", "2", "a-b", "notes"].map(offer);
        for (line, expected) in [
            ("", Some(vec![])),
            ("all\n", Some(vec![0, 1, 2, 3])),
            ("1", Some(vec![0])),
            ("2", Some(vec![1])),
            ("4 pdf", Some(vec![0, 3])),
            ("1-3,a-b", Some(vec![0, 1, 2])),
            ("notes, 3", Some(vec![2, 3])),
            ("0", None),
            ("5", None),
            ("3-1", None),
            ("pdf xyz", None),
        ] {
            let picked = picked(line, &offers).map(|all| all.into_iter().collect::<Vec<_>>());
            assert_eq!(picked, expected, "{line:?}");
        }
    }
}
