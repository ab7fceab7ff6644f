//! Chooses skills of a source.

mod picker;

use std::{
    borrow::Cow,
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use savoir_lint::words::nearest;
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
const NAMED: usize = 20;

/// Characters of a description that are shown.
const SHOWN: usize = 60;

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
    /// Parts of its plugins that are not skills.
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
    pub(crate) fn of(&self, stalls: &[SourceListing]) -> Result<Chosen, CommandError> {
        if !self.skill.is_empty() {
            return Ok(Chosen { offers: self.named(stalls)?, by_name: true });
        }
        let mut chosen = Chosen { offers: Vec::new(), by_name: !self.all };
        for stall in stalls {
            let offers = self.below_paths(stall)?;
            match offers.as_slice() {
                [_] => chosen.offers.extend(offers),
                _ if self.all || !self.path.is_empty() => {
                    chosen.by_name = false;
                    chosen.offers.extend(offers);
                }
                _ if ask::is_interactive() => {
                    chosen.offers.extend(picker::pick(&stall.typed, &offers)?);
                }
                _ => return Err(several(stall, &offers)),
            }
        }
        if chosen.offers.is_empty() {
            return Err(CommandError::refused("no skill was chosen").named("nothing_chosen"));
        }
        Ok(chosen)
    }

    fn named(&self, stalls: &[SourceListing]) -> Result<Vec<OfferedSkill>, CommandError> {
        let mut offers: Vec<OfferedSkill> = Vec::new();
        for stall in stalls {
            offers.extend(self.below_paths(stall)?);
        }
        let mut chosen: Vec<OfferedSkill> = Vec::new();
        for name in &self.skill {
            let found = offers.iter().filter(|offer| offer.name == *name || offer.called() == name);
            let before = chosen.len();
            chosen.extend(found.cloned());
            if chosen.len() == before {
                return Err(no_such_skill(name, stalls, &offers));
            }
        }
        Ok(chosen)
    }

    /// Keeps only the skills below --path, and one of identical copies.
    pub(crate) fn narrow(&self, stalls: &mut [SourceListing]) -> Result<(), CommandError> {
        for stall in stalls {
            stall.offers = self.below_paths(stall)?;
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
    fn below_paths(&self, stall: &SourceListing) -> Result<Vec<OfferedSkill>, CommandError> {
        if self.path.is_empty() {
            return Ok(without_copies(&stall.offers));
        }
        let root = Path::new(&stall.typed).canonicalize().unwrap_or_default();
        let is_below =
            |offer: &&OfferedSkill| self.path.iter().any(|path| lies_below(offer, path, &root));
        let found: Vec<OfferedSkill> = stall.offers.iter().filter(is_below).cloned().collect();
        if found.is_empty() {
            let paths = self.path.join(", ");
            let message = format!("{} has no skill at {paths}", stall.typed);
            return Err(CommandError::input(message)
                .named("no_such_path")
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
    let mut kept: Vec<usize> = groups.iter().filter_map(|group| group.first().copied()).collect();
    kept.sort_unstable();
    kept.into_iter().map(|at| offers[at].clone()).collect()
}

fn no_such_skill(name: &str, stalls: &[SourceListing], offers: &[OfferedSkill]) -> CommandError {
    let sources: Vec<&str> = stalls.iter().map(|stall| stall.typed.as_str()).collect();
    let message = format!("{} has no skill `{name}`", sources.join(", "));
    let error = CommandError::input(message).named("no_such_skill");
    let error = match nearest(name, offers.iter().map(|offer| offer.name.as_str())) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error,
    };
    error.hint(format!("available skills: {}", names(offers)))
}

/// Whether a skill is at or below a path of its source. For a local folder the path may also be
/// relative to the current folder.
fn lies_below(offer: &OfferedSkill, path: &str, root: &Path) -> bool {
    let path = path.trim_end_matches('/').trim_start_matches("./");
    let inside = match &offer.place {
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
    stalls: &[SourceListing],
    root: &Path,
    as_json: bool,
) -> Result<(), CommandError> {
    if as_json { output::json(&json(stalls, root)) } else { output::text(&table(stalls)) }
}

fn table(stalls: &[SourceListing]) -> String {
    let offers = stalls.iter().flat_map(|stall| &stall.offers);
    let mut names = BTreeSet::new();
    // Skills of the same name are shown with their paths.
    if !offers.clone().all(|offer| names.insert(&offer.name)) {
        let rows: Vec<[Cow<'_, str>; 3]> = offers
            .map(|offer| {
                let path = output::cell(&offer.location()).into_owned();
                let description = shortened(offer.description.as_deref());
                [output::cell(&offer.name), path.into(), description]
            })
            .collect();
        return output::table(["NAME", "PATH", "DESCRIPTION"], &rows);
    }
    let rows: Vec<[Cow<'_, str>; 2]> = offers
        .map(|offer| [output::cell(&offer.name), shortened(offer.description.as_deref())])
        .collect();
    output::table(["NAME", "DESCRIPTION"], &rows)
}

fn json(stalls: &[SourceListing], root: &Path) -> Value {
    let offer = |offer: &OfferedSkill| {
        json!({
            "name": offer.name,
            "description": offer.description,
            "source": offer.place.text(root),
        })
    };
    let stall = |stall: &SourceListing| {
        json!({
            "source": stall.typed,
            "skills": stall.offers.iter().map(offer).collect::<Vec<_>>(),
        })
    };
    json!({ "sources": stalls.iter().map(stall).collect::<Vec<_>>() })
}

fn several(stall: &SourceListing, offers: &[OfferedSkill]) -> CommandError {
    let count = offers.len();
    CommandError::input(format!("{} has {count} skills: {}", stall.typed, names(offers)))
        .named("several_skills")
        .hint("choose with --skill NAME, or take all with --all")
}

fn names(offers: &[OfferedSkill]) -> String {
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
