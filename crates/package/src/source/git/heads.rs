//! Looks up the current commits of many skills with one request to the server.

use std::collections::{HashMap, HashSet};

use super::{Commit, GitUrl, References, Repository, skill::Listing};
use crate::source::{GitSource, PinnedGitSource, Reference, Settings, SourceError};

/// A query about one skill.
#[derive(Clone, Debug)]
pub(crate) struct HeadQuery {
    /// A tag, a branch or a commit; `None` for the default branch.
    pub(crate) reference: Option<String>,
    /// The folder of the skill; empty for the root.
    pub(crate) path: String,
    /// The commit in the lock.
    pub(crate) known: Option<Commit>,
}

/// The current state of a skill in a repository.
#[derive(Clone, Debug)]
pub(crate) struct SkillHead {
    /// The skill in the newest commit.
    pub(crate) place: PinnedGitSource,
    /// The git object id at the path in the newest commit; `None` if the path does not exist.
    pub(crate) object: Option<String>,
    /// The git object id in the known commit; `None` if the cache no longer has it.
    pub(crate) known: Option<String>,
}

/// Looks up many skills at once. An error of one skill does not affect the others.
pub(in crate::source) async fn look_up_skill_heads(
    settings: &Settings,
    url: &GitUrl,
    asked: &[HeadQuery],
) -> Result<Vec<Result<SkillHead, SourceError>>, SourceError> {
    let repository = Repository::open(settings, url).await?;
    let is_commit =
        |asked: &HeadQuery| asked.reference.as_deref().and_then(Commit::parse).is_some();
    let references = if asked.iter().all(is_commit) {
        References::default()
    } else {
        References::fetch(&repository).await?
    };
    let mut fetched = HashSet::new();
    let mut places = Vec::with_capacity(asked.len());
    for one in asked {
        let place = match place(url, &references, one) {
            Ok(place) if fetched.contains(&place.commit) => Ok(place),
            Ok(place) => repository.fetch_commit(&place.commit).await.map(|()| place),
            Err(error) => Err(error),
        };
        fetched.extend(place.as_ref().ok().map(|place| place.commit.clone()));
        places.push(place);
    }
    let names: Vec<Option<String>> = places.iter().zip(asked).flat_map(names).collect();
    let mut objects = objects(&repository, &names).await?.into_iter();
    let heads = places.into_iter().map(|place| {
        let (object, known) = (objects.next().flatten(), objects.next().flatten());
        place.map(|place| SkillHead { place, object, known })
    });
    let mut heads: Vec<_> = heads.collect();
    look_behind_links(&repository, asked, &mut heads).await;
    Ok(heads)
}

/// Compares the link targets of skills that look unchanged, because the object id of a folder does
/// not change when the target of a link in it does.
async fn look_behind_links(
    repository: &Repository<'_>,
    asked: &[HeadQuery],
    heads: &mut [Result<SkillHead, SourceError>],
) {
    let mut listings: HashMap<Commit, Option<Listing<'_>>> = HashMap::new();
    for (asked, head) in asked.iter().zip(heads) {
        let (Ok(head), Some(before)) = (head, &asked.known) else { continue };
        let is_same_folder = head.object.is_some() && head.object == head.known;
        if !is_same_folder || *before == head.place.commit {
            continue;
        }
        for commit in [before, &head.place.commit] {
            if !listings.contains_key(commit) {
                // A listing that cannot be read counts as unchanged, like a skill without links.
                let listing = Listing::read(repository, commit).await.ok();
                listings.insert(commit.clone(), listing);
            }
        }
        let linked = |commit: &Commit| listings.get(commit)?.as_ref()?.linked(&head.place.path);
        if linked(&head.place.commit) != linked(before) {
            // Without a known object, the caller compares the files.
            head.known = None;
        }
    }
}

fn place(
    url: &GitUrl,
    references: &References,
    asked: &HeadQuery,
) -> Result<PinnedGitSource, SourceError> {
    let (reference, path) = (asked.reference.clone(), asked.path.clone());
    if let Some(commit) = reference.as_deref().and_then(Commit::parse) {
        let reference = Some(Reference::Commit(commit.clone()));
        return Ok(PinnedGitSource { url: url.clone(), reference, commit, path });
    }
    let path = Some(path).filter(|path| !path.is_empty());
    let source = GitSource { url: url.clone(), reference, path };
    let (commit, reference, path) = references.resolve(&source)?;
    let path = path.unwrap_or_default();
    Ok(PinnedGitSource { url: url.clone(), reference, commit, path })
}

/// Returns the object names to look up for one skill: in the newest and in the known commit.
fn names(
    (place, asked): (&Result<PinnedGitSource, SourceError>, &HeadQuery),
) -> [Option<String>; 2] {
    let Ok(place) = place else { return [None, None] };
    let known = asked.known.as_ref().and_then(|known| name(known, &place.path));
    [name(&place.commit, &place.path), known]
}

/// Returns the git name of a path in a commit; `None` if the path cannot be passed on one line.
pub(super) fn name(commit: &Commit, path: &str) -> Option<String> {
    let plain = !path.contains(char::is_control);
    plain.then(|| {
        if path.is_empty() { format!("{commit}^{{tree}}") } else { format!("{commit}:{path}") }
    })
}

/// Returns the object ids of these names, if the cache has them.
pub(super) async fn objects(
    repository: &Repository<'_>,
    names: &[Option<String>],
) -> Result<Vec<Option<String>>, SourceError> {
    let lines: String = names.iter().flatten().flat_map(|name| [name, "\n"]).collect();
    if lines.is_empty() {
        return Ok(vec![None; names.len()]);
    }
    let answer = repository.call(&["cat-file", "--batch-check"], lines.as_bytes()).await?;
    let answer = String::from_utf8_lossy(&answer);
    let mut answers = answer.lines();
    let digest = |line: &str| {
        let mut words = line.split(' ');
        let (digest, kind) = (words.next()?, words.next()?);
        matches!(kind, "tree" | "blob").then(|| digest.to_owned())
    };
    let found = |name: &Option<String>| name.as_ref().and_then(|_| answers.next()).and_then(digest);
    Ok(names.iter().map(found).collect())
}
