//! Reads skills from git repositories with the program `git`, without a checkout.
//!
//! Only the trees of one commit are fetched, then the files of the wanted skill. No code from the
//! repository is executed: no hooks, no filters, no submodules. No reference or address is ever passed
//! where git expects an option. References are looked up in the list that git prints; only commits
//! and objects are requested, by their ids.

mod address;
mod failure;
mod heads;
mod history;
mod links;
mod objects;
mod program;
mod references;
mod repository;
mod skill;

use std::{collections::HashMap, fmt};

pub use address::GitUrl;
pub(crate) use heads::{HeadQuery, SkillHead};
pub(super) use {
    heads::look_up_skill_heads, history::find_commit_with_object, program::tracked_files,
};

use self::{references::References, repository::Repository, skill::Listing};
use super::{
    GitSource, OfferedSkill, PinnedGitSource, PinnedSource, PluginExtra, Reference, Settings,
    SourceError, TagLocation, fetcher::same_named, summary::Summary,
};
use crate::Tree;

/// The id of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Commit(String);

impl Commit {
    /// Parses a complete commit id. An abbreviated one could become ambiguous later.
    pub fn parse(text: &str) -> Option<Self> {
        let whole = matches!(text.len(), 40 | 64);
        let digits = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        (whole && digits).then(|| Self(text.to_ascii_lowercase()))
    }

    /// The hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The skills and other items of a repository, or of a folder in it.
pub(super) struct RepositoryCatalog {
    /// The skills, each with the git object id of its SKILL.md.
    pub(super) skills: Vec<(OfferedSkill, Option<String>)>,
    /// Broken links beside the skills.
    pub(super) broken_links: Vec<String>,
    /// The items of plugins besides skills, if requested.
    pub(super) extras: Vec<PluginExtra>,
}

/// Whether to list the items of plugins besides skills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExtrasMode {
    Skip,
    List,
}

/// Lists the skills of a repository, or of a folder in it.
pub(super) async fn catalog(
    settings: &Settings,
    source: &GitSource,
    extras: ExtrasMode,
) -> Result<RepositoryCatalog, SourceError> {
    let repository = Repository::open(settings, &source.url).await?;
    let pinned = source.reference.as_deref().and_then(Commit::parse);
    let (commit, reference, path) = match pinned {
        Some(commit) => (commit.clone(), Some(Reference::Commit(commit)), source.path.clone()),
        None => References::fetch(&repository).await?.resolve(source)?,
    };
    repository.fetch_commit(&commit).await?;
    let listing = Listing::read(&repository, &commit).await?;
    let path = path.unwrap_or_default();
    let found = listing.skills(&path)?;
    let summaries = listing.summaries(&found.skills).await?;
    let extras = match extras {
        ExtrasMode::Skip => Vec::new(),
        ExtrasMode::List => listing.extras(&path).await?,
    };
    let offer = |(path, summary): (String, Summary)| {
        let object = listing.object(&path);
        let (url, commit) = (source.url.clone(), commit.clone());
        let source =
            PinnedSource::Git(PinnedGitSource { url, reference: reference.clone(), commit, path });
        let Summary { name, description } = summary;
        (OfferedSkill { name, description, source, content: None }, object)
    };
    let mut skills: Vec<_> = found.skills.into_iter().zip(summaries).map(offer).collect();
    for at in same_named(skills.iter().map(|(offer, _)| offer)) {
        if let (OfferedSkill { source: PinnedSource::Git(source), content, .. }, _) =
            &mut skills[at]
        {
            *content = listing.content(&source.path);
        }
    }
    Ok(RepositoryCatalog { skills, broken_links: found.broken, extras })
}

/// Reads the files of a skill in a commit.
pub(super) async fn tree(
    settings: &Settings,
    source: &PinnedGitSource,
) -> Result<Tree, SourceError> {
    let repository = Repository::open(settings, &source.url).await?;
    read_tree(&repository, source).await
}

/// Reads the files of many skills of one repository, fetched at once. An error of one skill does
/// not affect the others.
pub(super) async fn trees(
    settings: &Settings,
    url: &GitUrl,
    sources: &[PinnedGitSource],
) -> Result<Vec<Result<Tree, SourceError>>, SourceError> {
    let repository = Repository::open(settings, url).await?;
    let mut by_commit: HashMap<&Commit, Vec<usize>> = HashMap::new();
    for (at, source) in sources.iter().enumerate() {
        by_commit.entry(&source.commit).or_default().push(at);
    }
    let mut trees: Vec<Option<Result<Tree, SourceError>>> = Vec::new();
    trees.resize_with(sources.len(), || None);
    for (commit, positions) in by_commit {
        repository.fetch_commit(commit).await?;
        let listing = Listing::read(&repository, commit).await?;
        let paths: Vec<&str> = positions.iter().map(|at| sources[*at].path.as_str()).collect();
        for (at, tree) in positions.into_iter().zip(listing.trees(&paths).await?) {
            trees[at] = Some(tree);
        }
    }
    Ok(trees.into_iter().flatten().collect())
}

/// Like [`tree`], for a source in a lock: fails if the tag was moved. Without a network, the cached
/// commit is used.
pub(super) async fn locked_tree(
    settings: &Settings,
    source: &PinnedGitSource,
) -> Result<Tree, SourceError> {
    let repository = Repository::open(settings, &source.url).await?;
    if let Some(Reference::Tag(tag)) = &source.reference {
        match References::fetch(&repository).await {
            Ok(references) => check_tag(&references, tag, source)?,
            Err(
                SourceError::Unreachable { .. }
                | SourceError::TimedOut { .. }
                | SourceError::Offline(_),
            ) if repository.has(&source.commit).await? => {}
            Err(error) => return Err(error),
        }
    }
    read_tree(&repository, source).await
}

fn check_tag(
    references: &References,
    tag: &str,
    source: &PinnedGitSource,
) -> Result<(), SourceError> {
    let location = match references.tag(tag) {
        Some(commit) if *commit == source.commit => return Ok(()),
        Some(commit) => TagLocation::At(commit.clone()),
        None => TagLocation::Deleted,
    };
    let (url, tag, locked) = (source.url.clone(), tag.to_owned(), source.commit.clone());
    Err(SourceError::TagMoved { url, tag, locked, location })
}

async fn read_tree(
    repository: &Repository<'_>,
    source: &PinnedGitSource,
) -> Result<Tree, SourceError> {
    repository.fetch_commit(&source.commit).await?;
    let listing = Listing::read(repository, &source.commit).await?;
    let mut trees = listing.trees(&[source.path.as_str()]).await?;
    trees.pop().unwrap_or_else(|| Err(SourceError::NoSkill { place: source.url.to_string() }))
}
