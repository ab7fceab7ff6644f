//! Finds the source of a skill that another tool installed.

use std::path::{Path, PathBuf};

use crate::{
    Agent, Tree,
    install::{
        InstallFailure, git_heads, git_heads::RepositoryQuery, lock_mismatch::adopted_git,
        locked_source, requirement_for,
    },
    ledger::{Adoption, Drift, Source as Recorded, Traces},
    lock::LockedSource,
    manifest::{Revision, SkillRequirement},
    source::{
        Commit, Fetcher, GitUrl, HeadQuery, OfferedSkill, PinnedGitSource, PinnedSource, SkillHead,
        Source,
    },
};

/// A skill in the folder of an agent.
pub(super) struct ExistingSkill {
    pub(super) adoption: Adoption,
    /// The path of its folder without links.
    pub(super) path: PathBuf,
    pub(super) agents: Vec<&'static Agent>,
    pub(super) tree: Tree,
    pub(super) traces: Traces,
}

/// What was found out about the origin of a skill.
#[derive(Default)]
pub(super) struct TracedSource {
    /// The exact source.
    place: Option<PinnedSource>,
    /// The original files, if they differ from the current ones.
    pub(super) original: Option<Tree>,
    /// Why the origin could not be determined.
    pub(super) untraced: Option<String>,
}

/// Traces the origins of skills; asks each repository only once.
pub(super) async fn find_origins(
    root: &Path,
    existing_skills: &[&ExistingSkill],
    fetcher: Option<&Fetcher>,
) -> Vec<TracedSource> {
    let questions: Vec<Option<RepositoryQuery>> =
        existing_skills.iter().map(|existing| repository_query(existing)).collect();
    let known: Vec<bool> = questions.iter().map(Option::is_some).collect();
    let asked: Vec<RepositoryQuery> = questions.into_iter().flatten().collect();
    let mut heads = match fetcher {
        Some(fetcher) => git_heads::look_up_heads(fetcher, &asked).await,
        None => Vec::new(),
    }
    .into_iter();
    let heads: Vec<_> =
        known.into_iter().map(|known| if known { heads.next() } else { None }).collect();
    let traced = existing_skills
        .iter()
        .zip(heads)
        .map(|(existing, head)| (address(existing), (*existing, head)));
    git_heads::run_grouped(traced, |(existing, head)| find_origin(root, existing, head, fetcher))
        .await
}

/// Returns a key of the source. Skills with the same key are processed one after the other.
fn address(existing: &ExistingSkill) -> String {
    match &existing.adoption.source {
        Recorded::Git { url, .. } | Recorded::Web(url) => url.clone(),
        _ => String::new(),
    }
}

fn repository_query(existing: &ExistingSkill) -> Option<RepositoryQuery> {
    let Recorded::Git { url, reference, path, .. } = &existing.adoption.source else { return None };
    let (reference, path) = (reference.clone(), path.clone());
    Some(RepositoryQuery {
        url: GitUrl::parse(url).ok()?,
        asked: HeadQuery { reference, path, known: None },
    })
}

async fn find_origin(
    root: &Path,
    existing: &ExistingSkill,
    head: Option<Result<SkillHead, String>>,
    fetcher: Option<&Fetcher>,
) -> TracedSource {
    let found = match (&existing.adoption.source, head, fetcher) {
        (Recorded::Git { .. }, Some(Ok(head)), Some(fetcher)) => {
            find_in_repository(fetcher, existing, head).await
        }
        (Recorded::Git { .. }, Some(Err(why)), _) => Err(why),
        (Recorded::Git { url, .. }, None, Some(_)) => Err(format!("`{url}` is not a repository")),
        (Recorded::Web(address), _, Some(fetcher)) => {
            find_on_web(fetcher, root, existing, address).await
        }
        (Recorded::Folder(folder), ..) if *folder != existing.path => {
            find_in_folder(existing, folder)
        }
        _ => return TracedSource::default(),
    };
    match found {
        Ok((place, tree)) => {
            let original = Some(tree).filter(|tree| *tree != existing.tree);
            TracedSource { place: Some(place), original, untraced: None }
        }
        Err(why) => TracedSource { untraced: Some(why), ..TracedSource::default() },
    }
}

type TracedOrigin = Result<(PinnedSource, Tree), String>;

/// Finds the commit in which the folder has the files that the tool installed.
async fn find_in_repository(
    fetcher: &Fetcher,
    existing: &ExistingSkill,
    head: SkillHead,
) -> TracedOrigin {
    let said = |error: crate::source::SourceError| error.to_string();
    let objects = &existing.traces.objects;
    let is_newest = head.object.as_ref().is_some_and(|object| objects.contains(object));
    let commit = if is_newest {
        Some(head.place.commit.clone())
    } else {
        fetcher.past(&head.place, objects).await.map_err(said)?
    };
    if let Some(commit) = commit {
        let place = pinned_at_commit(&head.place, commit);
        let tree = fetcher.fetch(&offered_skill(existing, place.clone())).await.map_err(said)?;
        return Ok((place, tree));
    }
    let place = PinnedSource::Git(head.place.clone());
    let lost = format!("`{}` no longer has these files", head.place.url);
    let Ok(tree) = fetcher.fetch(&offered_skill(existing, place.clone())).await else {
        return Err(lost);
    };
    if is_original(existing, &tree) { Ok((place, tree)) } else { Err(lost) }
}

fn pinned_at_commit(place: &PinnedGitSource, commit: Commit) -> PinnedSource {
    PinnedSource::Git(PinnedGitSource { commit, ..place.clone() })
}

fn offered_skill(existing: &ExistingSkill, source: PinnedSource) -> OfferedSkill {
    OfferedSkill { name: existing.adoption.name.clone(), description: None, source, content: None }
}

fn is_original(existing: &ExistingSkill, tree: &Tree) -> bool {
    tree.integrity() == existing.adoption.integrity || existing.traces.is_original(tree)
}

async fn find_on_web(
    fetcher: &Fetcher,
    root: &Path,
    existing: &ExistingSkill,
    address: &str,
) -> TracedOrigin {
    let said = |error: crate::source::SourceError| error.to_string();
    let source = Source::parse(address, root).map_err(said)?;
    let offers = fetcher.offers(&source).await.map_err(said)?;
    let offer = offers.into_iter().find(|offer| offer.name == existing.adoption.name);
    let offer = offer.ok_or_else(|| format!("`{address}` no longer has it"))?;
    let tree = fetcher.fetch(&offer).await.map_err(said)?;
    if is_original(existing, &tree) {
        return Ok((offer.source, tree));
    }
    Err(format!("`{address}` no longer has these files"))
}

/// Checks a local source folder. Only an unmodified copy can be updated from it.
fn find_in_folder(existing: &ExistingSkill, folder: &Path) -> TracedOrigin {
    let lost = || format!("{} no longer has these files", folder.display());
    let tree = Tree::read(folder).map_err(|_| lost())?;
    let place = PinnedSource::Path { path: folder.to_owned(), inside: String::new() };
    if existing.traces.is_original_folder(folder) || is_original(existing, &tree) {
        return Ok((place, tree));
    }
    let untouched = existing.adoption.drift == Drift::Unmodified;
    if untouched { Ok((place, existing.tree.clone())) } else { Err(lost()) }
}

impl TracedSource {
    /// Returns the sources for the lock and for `savoir.toml`.
    pub(super) fn sources(
        &self,
        root: &Path,
        existing: &ExistingSkill,
    ) -> Result<(LockedSource, SkillRequirement), InstallFailure> {
        if let Some(place) = &self.place {
            return Ok((locked_source(place, root)?, requirement_for(place, root)));
        }
        let own = PinnedSource::Path { path: existing.path.clone(), inside: String::new() };
        let path = match locked_source(&own, root)? {
            LockedSource::Path(path) => path,
            other => other.to_string(),
        };
        let from = recorded_address(&existing.adoption.source, &existing.path, root);
        // An update may replace the files only if they are known to be the original.
        if existing.adoption.drift == Drift::Unmodified
            && let Recorded::Git { url, reference, path: inside, .. } = &existing.adoption.source
            && GitUrl::parse(url).is_ok()
        {
            let inside = Some(inside.clone()).filter(|inside| !inside.is_empty());
            let at = revision(reference.as_deref());
            let wanted = SkillRequirement::Git { url: url.clone(), at, path: inside };
            return Ok((LockedSource::Adopted { path, from }, wanted));
        }
        Ok((LockedSource::Adopted { path, from }, requirement_for(&own, root)))
    }
}

/// Returns the revision for `savoir.toml`. A reference that names neither a branch nor a tag is
/// kept as it is.
fn revision(reference: Option<&str>) -> Revision {
    let Some(reference) = reference else { return Revision::Default };
    let kinds = [
        reference.strip_prefix("refs/heads/").map(|name| Revision::Branch(name.to_owned())),
        reference.strip_prefix("refs/tags/").map(|name| Revision::Tag(name.to_owned())),
    ];
    kinds.into_iter().flatten().next().unwrap_or_else(|| Revision::Rev(reference.to_owned()))
}

/// Returns the recorded origin as a lock writes it.
fn recorded_address(source: &Recorded, own: &Path, root: &Path) -> Option<String> {
    let text = match source {
        // Addresses with a password must not be written into a lock.
        Recorded::Git { url, .. } if GitUrl::parse(url).is_err() => return None,
        Recorded::Web(address) if has_secret(address) => return None,
        Recorded::Git { url, path, .. } => {
            adopted_git(url, Some(path.as_str()).filter(|path| !path.is_empty()))
        }
        Recorded::Registry { slug, version, .. } => {
            let version = version.as_ref().map(|version| format!("@{version}"));
            format!("clawhub:{slug}{}", version.unwrap_or_default())
        }
        Recorded::Web(address) => address.clone(),
        Recorded::Npm(package) => format!("npm:{package}"),
        Recorded::Folder(folder) if folder == own => return None,
        Recorded::Folder(folder) => {
            let place = PinnedSource::Path { path: folder.clone(), inside: String::new() };
            locked_source(&place, root).ok()?.to_string()
        }
    };
    // The record of another tool may contain anything.
    Some(text).filter(|text| !text.contains(|c: char| c.is_control() || c == '\\'))
}

fn has_secret(address: &str) -> bool {
    url::Url::parse(address).is_ok_and(|url| !url.username().is_empty() || url.password().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_sources_are_parsed() {
        let (own, root) = (Path::new("/p/skills/pdf"), Path::new("/p"));
        let said = |source: Recorded| recorded_address(&source, own, root);
        let git = |url: &str, path: &str| Recorded::Git {
            url: url.to_owned(),
            reference: None,
            path: path.to_owned(),
            tree_sha: None,
        };
        let text = said(git("https://host.example/o/r", "pdf"));
        assert_eq!(text.as_deref(), Some("git+https://host.example/o/r#pdf"));
        assert_eq!(said(git("https://me:secret@host.example/o/r", "pdf")), None);
        assert_eq!(said(Recorded::Web("https://me:secret@host.example/".into())), None);
        assert_eq!(said(Recorded::Folder(own.to_owned())), None);
        let registry = |version: Option<&str>| Recorded::Registry {
            url: None,
            owner: None,
            slug: "pdf".into(),
            version: version.map(str::to_owned),
        };
        assert_eq!(said(registry(Some("1.2.0"))).as_deref(), Some("clawhub:pdf@1.2.0"));
        assert_eq!(said(registry(None)).as_deref(), Some("clawhub:pdf"));
        assert_eq!(said(Recorded::Npm("a\nb".into())), None);
    }

    #[test]
    fn references_are_parsed() {
        assert_eq!(revision(None), Revision::Default);
        assert_eq!(revision(Some("refs/heads/a/b")), Revision::Branch("a/b".into()));
        assert_eq!(revision(Some("refs/tags/v1")), Revision::Tag("v1".into()));
        assert_eq!(revision(Some("v1")), Revision::Rev("v1".into()), "git finds out what it is");
    }
}
