//! Chooses skills of a source.

mod picker;

use std::{
    borrow::Cow,
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use savoir_lint::words::{nearest, shorten};
use savoir_package::source::{self, OfferedSkill, PinnedSource, PluginExtra};
use serde_json::{Value, json};

use super::skipped::path_length;
use crate::{
    ask,
    copies::{Identity, group_copies},
    error::CommandError,
    output,
};

/// Skills that an error names.
const MAX_LISTED_SKILLS: usize = 20;

/// Characters of a description that are shown.
const MAX_DESCRIPTION_CHARS: usize = 60;

/// Options that choose skills of a source.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Choice {
    /// Install this skill of a source with several; may be repeated
    #[arg(long, short, value_name = "NAME", value_delimiter = ',', conflicts_with = "all")]
    pub(crate) skill: Vec<String>,
    /// Install all skills of the sources
    #[arg(long)]
    pub(crate) all: bool,
    /// Install only skills at or below this path of the source; may be repeated
    #[arg(long, value_name = "PATH")]
    path: Vec<String>,
}

/// A source as typed, and its contents.
pub(crate) struct SourceListing {
    pub(crate) typed: String,
    pub(crate) offers: Vec<OfferedSkill>,
    /// Folders that look like skills and are not valid.
    pub(crate) skipped: Vec<source::Skipped>,
    /// Parts of the plugins in the source that are not skills.
    pub(crate) not_installed: Vec<PluginExtra>,
    /// Whether the source is pinned.
    pub(crate) pinned: bool,
}

/// The chosen skills.
#[derive(Default)]
pub(crate) struct Chosen {
    pub(crate) offers: Vec<OfferedSkill>,
    /// Whether the user named every one of them.
    pub(crate) by_name: bool,
}

impl Choice {
    /// The skills that the options or the user choose.
    pub(crate) fn of(&self, listings: &[SourceListing]) -> Result<Chosen, CommandError> {
        if !self.skill.is_empty() {
            return Ok(Chosen { offers: self.named(listings)?, by_name: true });
        }
        let mut chosen = Chosen { offers: Vec::new(), by_name: !self.all };
        for listing in listings {
            let offers = self.below_paths(listing)?;
            match offers.as_slice() {
                [_] => chosen.offers.extend(offers),
                _ if self.all || !self.path.is_empty() => {
                    chosen.by_name = false;
                    chosen.offers.extend(offers);
                }
                _ if ask::is_interactive() => {
                    chosen.offers.extend(picker::pick(&listing.typed, &offers)?);
                }
                _ => return Err(several(listing, &offers)),
            }
        }
        if chosen.offers.is_empty() {
            return Err(CommandError::refused("no skill was chosen").with_code("nothing_chosen"));
        }
        Ok(chosen)
    }

    fn named(&self, listings: &[SourceListing]) -> Result<Vec<OfferedSkill>, CommandError> {
        let mut offers: Vec<OfferedSkill> = Vec::new();
        for listing in listings {
            offers.extend(self.below_paths(listing)?);
        }
        let mut chosen: Vec<OfferedSkill> = Vec::new();
        for name in &self.skill {
            let found = offers.iter().filter(|offer| offer.name == *name || offer.called() == name);
            let before = chosen.len();
            chosen.extend(found.cloned());
            if chosen.len() == before {
                return Err(no_such_skill(name, listings, &offers));
            }
        }
        Ok(chosen)
    }

    /// Keeps only the skills below --path, and one of identical copies.
    pub(crate) fn narrow(&self, listings: &mut [SourceListing]) -> Result<(), CommandError> {
        for listing in listings {
            listing.offers = self.below_paths(listing)?;
        }
        Ok(())
    }

    /// The options as typed.
    pub(crate) fn options(&self) -> String {
        let mut words = Vec::new();
        if !self.skill.is_empty() {
            words.push(format!("--skill {}", self.skill.join(",")));
        }
        if self.all {
            words.push("--all".to_owned());
        }
        words.extend(self.path.iter().map(|path| format!("--path {path}")));
        words.join(" ")
    }

    /// The skills of a source below --path, or all of them. Identical copies count once.
    fn below_paths(&self, listing: &SourceListing) -> Result<Vec<OfferedSkill>, CommandError> {
        if self.path.is_empty() {
            return Ok(without_copies(&listing.offers));
        }
        let root = Path::new(&listing.typed).canonicalize().unwrap_or_default();
        let is_below =
            |offer: &&OfferedSkill| self.path.iter().any(|path| is_at_or_below(offer, path, &root));
        let found: Vec<OfferedSkill> = listing.offers.iter().filter(is_below).cloned().collect();
        if found.is_empty() {
            let paths = self.path.join(", ");
            let message = format!("{} has no skill at {paths}", listing.typed);
            return Err(CommandError::input(message)
                .with_code("no_such_path")
                .hint("`--list --json` shows where the skills are"));
        }
        Ok(without_copies(&found))
    }
}

/// Of identical copies, the one with the shortest path.
fn without_copies(offers: &[OfferedSkill]) -> Vec<OfferedSkill> {
    let mut positions: Vec<usize> = (0..offers.len()).collect();
    positions.sort_by_cached_key(|at| path_length(&offers[*at].location()));
    let identity = |at: &usize| {
        let OfferedSkill { name, content, .. } = &offers[*at];
        let files = content.as_ref().map(|content| format!("{} {content}", name.to_lowercase()));
        Identity { files, locked: None }
    };
    let groups = group_copies(positions, identity);
    let mut chosen_copies: Vec<usize> =
        groups.iter().filter_map(|group| group.first().copied()).collect();
    chosen_copies.sort_unstable();
    chosen_copies.into_iter().map(|at| offers[at].clone()).collect()
}

fn no_such_skill(name: &str, listings: &[SourceListing], offers: &[OfferedSkill]) -> CommandError {
    let sources: Vec<&str> = listings.iter().map(|listing| listing.typed.as_str()).collect();
    let message = format!("{} has no skill `{name}`", sources.join(", "));
    let error = CommandError::input(message).with_code("no_such_skill");
    let error = match nearest(name, offers.iter().map(|offer| offer.name.as_str())) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error,
    };
    error.hint(format!("available skills: {}", names(offers)))
}

/// Whether a skill is at or below a path of its source. For a local folder the path may also be
/// relative to the current folder.
fn is_at_or_below(offer: &OfferedSkill, path: &str, root: &Path) -> bool {
    let path = path.trim_end_matches('/').trim_start_matches("./");
    let inside = match &offer.source {
        PinnedSource::Git(git) => &git.path,
        PinnedSource::Path { path: folder, inside } if inside.is_empty() => {
            let Ok(folder) = folder.canonicalize() else { return false };
            let named = [root.join(path), PathBuf::from(path)];
            return named
                .iter()
                .filter_map(|path| path.canonicalize().ok())
                .any(|path| folder.starts_with(&path) && path.starts_with(root));
        }
        PinnedSource::Path { inside, .. } | PinnedSource::Url { inside, .. } => inside,
        PinnedSource::WellKnown { name, .. } => name,
    };
    inside.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Lists the skills of sources.
pub(crate) fn list(
    listings: &[SourceListing],
    root: &Path,
    as_json: bool,
) -> Result<(), CommandError> {
    if as_json { output::json(&json(listings, root)) } else { output::text(&table(listings)) }
}

fn table(listings: &[SourceListing]) -> String {
    let offers = listings.iter().flat_map(|listing| &listing.offers);
    let mut names = BTreeSet::new();
    // Skills of the same name are shown with their paths.
    if !offers.clone().all(|offer| names.insert(&offer.name)) {
        let rows: Vec<[Cow<'_, str>; 3]> = offers
            .map(|offer| {
                let path = output::cell(&offer.location()).into_owned();
                let description = truncate_description(offer.description.as_deref());
                [output::cell(&offer.name), path.into(), description]
            })
            .collect();
        return output::table(["NAME", "PATH", "DESCRIPTION"], &rows);
    }
    let rows: Vec<[Cow<'_, str>; 2]> = offers
        .map(|offer| {
            [output::cell(&offer.name), truncate_description(offer.description.as_deref())]
        })
        .collect();
    output::table(["NAME", "DESCRIPTION"], &rows)
}

fn json(listings: &[SourceListing], root: &Path) -> Value {
    let offer = |offer: &OfferedSkill| {
        json!({
            "name": offer.name,
            "description": offer.description,
            "source": offer.source.text(root),
        })
    };
    let listing = |listing: &SourceListing| {
        json!({
            "source": listing.typed,
            "skills": listing.offers.iter().map(offer).collect::<Vec<_>>(),
        })
    };
    json!({ "sources": listings.iter().map(listing).collect::<Vec<_>>() })
}

fn several(listing: &SourceListing, offers: &[OfferedSkill]) -> CommandError {
    let count = offers.len();
    CommandError::input(format!("{} has {count} skills: {}", listing.typed, names(offers)))
        .with_code("several_skills")
        .hint("choose with --skill NAME, or take all with --all")
}

fn names(offers: &[OfferedSkill]) -> String {
    let mut shown: Vec<&str> =
        offers.iter().take(MAX_LISTED_SKILLS).map(|offer| offer.name.as_str()).collect();
    let more = format!("and {} more: see --list", offers.len().saturating_sub(MAX_LISTED_SKILLS));
    if offers.len() > MAX_LISTED_SKILLS {
        shown.push(&more);
    }
    shown.join(", ")
}

fn truncate_description(text: Option<&str>) -> Cow<'_, str> {
    Cow::Owned(output::cell(&shorten(text.unwrap_or_default(), MAX_DESCRIPTION_CHARS)).into_owned())
}
