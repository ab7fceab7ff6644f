//! Checks whether newer versions of installed skills are available.
//!
//! [`check_sources`] asks every source except registries once, many at a time, and returns an
//! answer for each skill: a host that is down does not affect the other answers. [`save_updates`]
//! caches the answers, so that [`load_cached_updates`] can return them without the network.
//! [`find_latest`] finds the newest skill for a requirement of `savoir.toml`.

mod cache;
mod latest;

use std::{collections::BTreeMap, path::Path};

use futures::{StreamExt as _, future, stream};
use semver::Version;

use super::{
    State,
    git_heads::{self, RepositoryQuery},
};
use crate::{
    SkillSummary, Tree,
    limits::MAX_ASKED_AT_ONCE,
    lock::{LockedSkill, LockedSource},
    manifest::SkillRequirement,
    registry::PublishedStatus,
    source::{
        Commit, Fetcher, GitSource, HeadQuery, PinnedGitSource, PinnedSource, SkillHead, Source,
        SourceError,
    },
};

pub use cache::{CachedUpdates, load_cached_updates, save_some_updates, save_updates};
pub use latest::{LatestError, find_latest};

/// Whether there is a newer version of an installed skill.
#[derive(Clone, Debug, PartialEq)]
pub enum Availability {
    /// The installed version is the newest.
    Current,
    /// A newer version is available.
    Newer {
        /// The version, if the skill has one.
        version: Option<Version>,
        /// The exact source.
        place: PinnedSource,
    },
    /// The registry reports a status, such as a newer version or a yank.
    Published(PublishedStatus),
    /// It cannot be determined, for this reason.
    Unknown(String),
}

/// Looks for newer versions of every locked skill that is not from a registry;
/// [`crate::registry::check_registries`] does so for the others. `root` is the folder of
/// `savoir.toml`.
pub async fn check_sources(
    fetcher: &Fetcher,
    root: &Path,
    state: &State,
) -> BTreeMap<String, Availability> {
    let (mut subjects, mut questions) = (Vec::new(), Vec::new());
    let mut lists: BTreeMap<String, (Source, Vec<InstalledSkill<'_>>)> = BTreeMap::new();
    let mut answers = BTreeMap::new();
    for (name, locked) in &state.lock.skills {
        if matches!(locked.source, LockedSource::Registry(_)) {
            continue;
        }
        let subject = InstalledSkill { name, locked, root };
        match subject.look_up_heads(state.manifest.skills.get(name)) {
            UpdateQuery::Answered(answer) => drop(answers.insert(name.clone(), answer)),
            UpdateQuery::Repository(question) => {
                subjects.push(subject);
                questions.push(question);
            }
            UpdateQuery::List(source) => {
                let list = lists.entry(format!("{source:?}")).or_insert((source, Vec::new()));
                list.1.push(subject);
            }
        }
    }
    let in_repositories = check_repositories(fetcher, subjects, &questions);
    let lists =
        lists.into_values().map(|(source, subjects)| check_listed(fetcher, source, subjects));
    let in_lists = stream::iter(lists).buffer_unordered(MAX_ASKED_AT_ONCE).collect::<Vec<_>>();
    let (in_repositories, in_lists) = future::join(in_repositories, in_lists).await;
    answers.extend(in_repositories);
    answers.extend(in_lists.into_iter().flatten());
    answers
}

/// An installed skill to check.
struct InstalledSkill<'a> {
    name: &'a str,
    locked: &'a LockedSkill,
    root: &'a Path,
}

/// The way to find the answer about a skill.
enum UpdateQuery {
    /// The answer is already known.
    Answered(Availability),
    /// Ask a repository, together with other skills from it.
    Repository(RepositoryQuery),
    /// List the skills of a source.
    List(Source),
}

/// The conclusion from the current commit of a repository.
enum HeadJudgement {
    /// The answer is known.
    Done(Availability),
    /// The skill may have changed: compare its files.
    CompareFiles(PinnedGitSource),
}

type NamedAvailability = (String, Availability);

impl InstalledSkill<'_> {
    fn look_up_heads(&self, wanted: Option<&SkillRequirement>) -> UpdateQuery {
        let unknown = |why: String| UpdateQuery::Answered(Availability::Unknown(why));
        match (wanted, &self.locked.source) {
            (Some(SkillRequirement::Version { .. }), _) => unknown(
                "`savoir.toml` wants it from a registry now; savoir sync gets it".to_owned(),
            ),
            (Some(SkillRequirement::Path(_)) | None, LockedSource::Adopted { .. })
                if let Some(from) = self.locked.source.adopted_from() =>
            {
                unknown(if self.locked.source.is_out_of_reach() {
                    format!("adopted from {from}; savoir cannot fetch updates from there yet")
                } else {
                    format!(
                        "adopted from {from} as found here; name that in savoir.toml to update it"
                    )
                })
            }
            (None, LockedSource::Adopted { .. }) => {
                unknown("it was adopted, and `savoir.toml` no longer names it".to_owned())
            }
            (Some(wanted), locked) => match latest::source_of(self.root, wanted, Some(locked)) {
                Ok(source) => self.ask_source(source),
                Err(error) => unknown(error.to_string()),
            },
            (None, locked) => match PinnedSource::parse(&locked.to_string(), self.root) {
                Ok(place) => self.ask_source(place.source()),
                Err(error) => unknown(error.to_string()),
            },
        }
    }

    fn ask_source(&self, source: Source) -> UpdateQuery {
        let Source::Git(GitSource { url, reference, path }) = source else {
            return UpdateQuery::List(source);
        };
        let locked = self.place();
        let known = match &locked {
            Some(PinnedSource::Git(place)) if place.url == url => Some(place),
            _ => None,
        };
        let path = path.or_else(|| known.map(|place| place.path.clone())).unwrap_or_default();
        let known: Option<Commit> =
            known.filter(|place| place.path == path).map(|place| place.commit.clone());
        UpdateQuery::Repository(RepositoryQuery {
            url,
            asked: HeadQuery { reference, path, known },
        })
    }

    /// The exact source in the lock.
    fn place(&self) -> Option<PinnedSource> {
        PinnedSource::parse(&self.locked.source.to_string(), self.root).ok()
    }

    /// Decides from the current commit of a repository whether there is a newer version, unless the
    /// files must be compared.
    fn judge(&self, head: Result<SkillHead, String>) -> HeadJudgement {
        let SkillHead { place, object, known } = match head {
            Ok(head) => head,
            Err(why) => return HeadJudgement::Done(Availability::Unknown(why)),
        };
        let same_commit = matches!(self.place(), Some(PinnedSource::Git(locked))
            if (&locked.url, &locked.path, &locked.commit) == (&place.url, &place.path, &place.commit));
        // The commit may differ because other skills of the repository changed.
        if same_commit || (object.is_some() && object == known) {
            return HeadJudgement::Done(Availability::Current);
        }
        if object.is_none() {
            let (url, path) = (&place.url, &place.path);
            let why = format!(
                "`{url}` no longer has `{path}`; `savoir update` looks for it in other folders"
            );
            return HeadJudgement::Done(Availability::Unknown(why));
        }
        HeadJudgement::CompareFiles(place)
    }

    /// Compares the files of a source with the locked ones.
    fn compare(&self, tree: Result<Tree, SourceError>, place: PinnedSource) -> NamedAvailability {
        let tree = match tree {
            Ok(tree) => tree,
            Err(error) => return self.availability(Availability::Unknown(error.to_string())),
        };
        if tree.integrity() == self.locked.integrity {
            return self.availability(Availability::Current);
        }
        let summary = SkillSummary::read(&tree, self.name).ok();
        let summary = summary.filter(|summary| !summary.written_version().is_empty());
        let version = summary.map(|summary| summary.version);
        self.availability(Availability::Newer { version, place })
    }

    fn availability(&self, answer: Availability) -> NamedAvailability {
        (self.name.to_owned(), answer)
    }
}

/// Checks skills from repositories: each repository is asked once, and all changed skills of one
/// repository are fetched together.
async fn check_repositories(
    fetcher: &Fetcher,
    subjects: Vec<InstalledSkill<'_>>,
    questions: &[RepositoryQuery],
) -> Vec<NamedAvailability> {
    let heads = git_heads::look_up_heads(fetcher, questions).await;
    let mut answers = Vec::new();
    let mut changed: BTreeMap<String, Vec<(InstalledSkill<'_>, PinnedGitSource)>> = BTreeMap::new();
    for (subject, head) in subjects.into_iter().zip(heads) {
        match subject.judge(head) {
            HeadJudgement::CompareFiles(place) => {
                changed.entry(place.url.to_string()).or_default().push((subject, place));
            }
            HeadJudgement::Done(answer) => answers.push(subject.availability(answer)),
        }
    }
    let changed = changed.into_values().map(|changed| check_repository(fetcher, changed));
    let changed = stream::iter(changed).buffer_unordered(MAX_ASKED_AT_ONCE);
    answers.extend(changed.collect::<Vec<_>>().await.into_iter().flatten());
    answers
}

async fn check_repository(
    fetcher: &Fetcher,
    changed: Vec<(InstalledSkill<'_>, PinnedGitSource)>,
) -> Vec<NamedAvailability> {
    let (subjects, places): (Vec<_>, Vec<_>) = changed.into_iter().unzip();
    let Some(url) = places.first().map(|place| place.url.clone()) else { return Vec::new() };
    let trees = fetcher.trees(&url, &places).await;
    let answers = subjects.iter().zip(places);
    match trees {
        Ok(trees) => {
            let answers = answers.zip(trees);
            answers
                .map(|((subject, place), tree)| subject.compare(tree, PinnedSource::Git(place)))
                .collect()
        }
        Err(error) => {
            let why = error.to_string();
            answers
                .map(|(subject, _)| subject.availability(Availability::Unknown(why.clone())))
                .collect()
        }
    }
}

/// Checks skills from a source that lists its skills, with one request for all of them.
async fn check_listed(
    fetcher: &Fetcher,
    source: Source,
    subjects: Vec<InstalledSkill<'_>>,
) -> Vec<NamedAvailability> {
    let offers = match latest::list_offers(fetcher, &source).await {
        Ok(offers) => offers,
        Err(error) => {
            let why = error.to_string();
            let unknown = |subject: &InstalledSkill<'_>| {
                subject.availability(Availability::Unknown(why.clone()))
            };
            return subjects.iter().map(unknown).collect();
        }
    };
    let mut answers = Vec::new();
    for subject in &subjects {
        let answer = match latest::pick_offer(subject.name, &source, offers.clone()) {
            Err(error) => subject.availability(Availability::Unknown(error.to_string())),
            Ok(offer)
                if is_exact(&offer.source) && subject.place().as_ref() == Some(&offer.source) =>
            {
                subject.availability(Availability::Current)
            }
            Ok(offer) => subject.compare(fetcher.fetch(&offer).await, offer.source),
        };
        answers.push(answer);
    }
    answers
}

/// Whether a source pins its content by a digest or a commit.
fn is_exact(place: &PinnedSource) -> bool {
    match place {
        PinnedSource::Url { .. } | PinnedSource::Git(_) => true,
        PinnedSource::WellKnown { digest, .. } => digest.is_some(),
        PinnedSource::Path { .. } => false,
    }
}
