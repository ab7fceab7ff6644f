//! Finds the commit from which a skill was installed by the git tree id of its folder.

use std::collections::BTreeSet;

use super::{
    Commit, Repository,
    heads::{name, objects},
    repository::FETCH_ARGUMENTS,
};
use crate::{
    limits::MAX_PAST_COMMITS,
    source::{PinnedGitSource, Settings, SourceError},
};

/// Returns the newest commit, starting at that of the place and going back, in which the path was
/// one of these objects.
pub(in crate::source) async fn find_commit_with_object(
    settings: &Settings,
    place: &PinnedGitSource,
    wanted: &BTreeSet<String>,
) -> Result<Option<Commit>, SourceError> {
    let repository = Repository::open(settings, &place.url).await?;
    let (depth, most) = (format!("--depth={MAX_PAST_COMMITS}"), format!("-{MAX_PAST_COMMITS}"));
    let commit = place.commit.as_str();
    let mut arguments = FETCH_ARGUMENTS.to_vec();
    arguments.extend([depth.as_str(), "origin", commit]);
    repository.ask(&arguments, &[], "the history").await?;
    let answer = repository.call(&["rev-list", &most, commit], &[]).await?;
    let answer = String::from_utf8_lossy(&answer);
    let commits: Vec<Commit> = answer.lines().filter_map(Commit::parse).collect();
    let names: Vec<Option<String>> =
        commits.iter().map(|commit| name(commit, &place.path)).collect();
    let objects = objects(&repository, &names).await?;
    let is_wanted =
        |object: &Option<String>| object.as_ref().is_some_and(|object| wanted.contains(object));
    Ok(commits
        .into_iter()
        .zip(objects)
        .find(|(_, object)| is_wanted(object))
        .map(|(commit, _)| commit))
}
