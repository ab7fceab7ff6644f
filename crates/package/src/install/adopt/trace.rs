//! Where a skill came from that another tool installed, and what it was then.

use std::path::{Path, PathBuf};

use crate::{
    Agent, Tree,
    install::{InstallFailure, heads, heads::Question, locked_source, stale::adopted_git, wanted},
    ledger::{Adoption, Drift, Source as Recorded, Traces},
    lock::LockedSource,
    manifest::{Revision, Wanted},
    source::{Asked, Commit, Fetcher, GitPlace, GitUrl, Head, Offer, Place, Source},
};

/// A skill as it lies there.
pub(super) struct Sight {
    pub(super) adoption: Adoption,
    /// Its folder, without links.
    pub(super) path: PathBuf,
    pub(super) agents: Vec<&'static Agent>,
    pub(super) tree: Tree,
    pub(super) traces: Traces,
}

/// Where a skill came from, as far as it could be told.
#[derive(Default)]
pub(super) struct Origin {
    /// The exact place.
    place: Option<Place>,
    /// What it was, if that is not what lies there.
    pub(super) original: Option<Tree>,
    /// Why nobody could tell.
    pub(super) untraced: Option<String>,
}

/// The origins of skills, each repository being asked once.
pub(super) async fn origins(
    root: &Path,
    sights: &[&Sight],
    fetcher: Option<&Fetcher>,
) -> Vec<Origin> {
    let questions: Vec<Option<Question>> = sights.iter().map(|sight| question(sight)).collect();
    let known: Vec<bool> = questions.iter().map(Option::is_some).collect();
    let asked: Vec<Question> = questions.into_iter().flatten().collect();
    let mut heads = match fetcher {
        Some(fetcher) => heads::ask(fetcher, &asked).await,
        None => Vec::new(),
    }
    .into_iter();
    let heads: Vec<_> =
        known.into_iter().map(|known| if known { heads.next() } else { None }).collect();
    let traced = sights.iter().zip(heads).map(|(sight, head)| (address(sight), (*sight, head)));
    heads::grouped(traced, |(sight, head)| origin(root, sight, head, fetcher)).await
}

/// What is asked one after the other.
fn address(sight: &Sight) -> String {
    match &sight.adoption.source {
        Recorded::Git { url, .. } | Recorded::Web(url) => url.clone(),
        _ => String::new(),
    }
}

fn question(sight: &Sight) -> Option<Question> {
    let Recorded::Git { url, reference, path, .. } = &sight.adoption.source else { return None };
    let (reference, path) = (reference.clone(), path.clone());
    Some(Question { url: GitUrl::parse(url).ok()?, asked: Asked { reference, path, known: None } })
}

async fn origin(
    root: &Path,
    sight: &Sight,
    head: Option<Result<Head, String>>,
    fetcher: Option<&Fetcher>,
) -> Origin {
    let found = match (&sight.adoption.source, head, fetcher) {
        (Recorded::Git { .. }, Some(Ok(head)), Some(fetcher)) => {
            in_repository(fetcher, sight, head).await
        }
        (Recorded::Git { .. }, Some(Err(why)), _) => Err(why),
        (Recorded::Git { url, .. }, None, Some(_)) => Err(format!("`{url}` is not a repository")),
        (Recorded::Web(address), _, Some(fetcher)) => on_web(fetcher, root, sight, address).await,
        (Recorded::Folder(folder), ..) if *folder != sight.path => in_folder(sight, folder),
        _ => return Origin::default(),
    };
    match found {
        Ok((place, tree)) => {
            let original = Some(tree).filter(|tree| *tree != sight.tree);
            Origin { place: Some(place), original, untraced: None }
        }
        Err(why) => Origin { untraced: Some(why), ..Origin::default() },
    }
}

type Traced = Result<(Place, Tree), String>;

/// The commit in which the folder was what the tool took.
async fn in_repository(fetcher: &Fetcher, sight: &Sight, head: Head) -> Traced {
    let said = |error: crate::source::SourceError| error.to_string();
    let objects = &sight.traces.objects;
    let is_newest = head.object.as_ref().is_some_and(|object| objects.contains(object));
    let commit = if is_newest {
        Some(head.place.commit.clone())
    } else {
        fetcher.past(&head.place, objects).await.map_err(said)?
    };
    if let Some(commit) = commit {
        let place = at(&head.place, commit);
        let tree = fetcher.fetch(&offer(sight, place.clone())).await.map_err(said)?;
        return Ok((place, tree));
    }
    let place = Place::Git(head.place.clone());
    let lost = format!("`{}` no longer has these files", head.place.url);
    let Ok(tree) = fetcher.fetch(&offer(sight, place.clone())).await else { return Err(lost) };
    if is_original(sight, &tree) { Ok((place, tree)) } else { Err(lost) }
}

fn at(place: &GitPlace, commit: Commit) -> Place {
    Place::Git(GitPlace { commit, ..place.clone() })
}

fn offer(sight: &Sight, place: Place) -> Offer {
    Offer { name: sight.adoption.name.clone(), description: None, place, content: None }
}

fn is_original(sight: &Sight, tree: &Tree) -> bool {
    tree.integrity() == sight.adoption.integrity || sight.traces.is_original(tree)
}

async fn on_web(fetcher: &Fetcher, root: &Path, sight: &Sight, address: &str) -> Traced {
    let said = |error: crate::source::SourceError| error.to_string();
    let source = Source::parse(address, root).map_err(said)?;
    let offers = fetcher.offers(&source).await.map_err(said)?;
    let offer = offers.into_iter().find(|offer| offer.name == sight.adoption.name);
    let offer = offer.ok_or_else(|| format!("`{address}` no longer has it"))?;
    let tree = fetcher.fetch(&offer).await.map_err(said)?;
    if is_original(sight, &tree) {
        return Ok((offer.place, tree));
    }
    Err(format!("`{address}` no longer has these files"))
}

/// A folder elsewhere on this machine. What was taken from it unchanged can be updated from it.
fn in_folder(sight: &Sight, folder: &Path) -> Traced {
    let lost = || format!("{} no longer has these files", folder.display());
    let tree = Tree::read(folder).map_err(|_| lost())?;
    let place = Place::Path { path: folder.to_owned(), inside: String::new() };
    if sight.traces.is_original_folder(folder) || is_original(sight, &tree) {
        return Ok((place, tree));
    }
    let untouched = sight.adoption.drift == Drift::Unmodified;
    if untouched { Ok((place, sight.tree.clone())) } else { Err(lost()) }
}

impl Origin {
    /// What the lock and `savoir.toml` say.
    pub(super) fn sources(
        &self,
        root: &Path,
        sight: &Sight,
    ) -> Result<(LockedSource, Wanted), InstallFailure> {
        if let Some(place) = &self.place {
            return Ok((locked_source(place, root)?, wanted(place, root)));
        }
        let own = Place::Path { path: sight.path.clone(), inside: String::new() };
        let path = match locked_source(&own, root)? {
            LockedSource::Path(path) => path,
            other => other.to_string(),
        };
        let from = recorded(&sight.adoption.source, &sight.path, root);
        // Only what is known to be the original may be replaced by something newer.
        if sight.adoption.drift == Drift::Unmodified
            && let Recorded::Git { url, reference, path: inside, .. } = &sight.adoption.source
            && GitUrl::parse(url).is_ok()
        {
            let inside = Some(inside.clone()).filter(|inside| !inside.is_empty());
            let at = revision(reference.as_deref());
            let wanted = Wanted::Git { url: url.clone(), at, path: inside };
            return Ok((LockedSource::Adopted { path, from }, wanted));
        }
        Ok((LockedSource::Adopted { path, from }, wanted(&own, root)))
    }
}

/// What `savoir.toml` says for a reference of which nobody can tell what it is.
fn revision(reference: Option<&str>) -> Revision {
    let Some(reference) = reference else { return Revision::Default };
    let kinds = [
        reference.strip_prefix("refs/heads/").map(|name| Revision::Branch(name.to_owned())),
        reference.strip_prefix("refs/tags/").map(|name| Revision::Tag(name.to_owned())),
    ];
    kinds.into_iter().flatten().next().unwrap_or_else(|| Revision::Rev(reference.to_owned()))
}

/// What a lock says about where another tool had a skill from.
fn recorded(source: &Recorded, own: &Path, root: &Path) -> Option<String> {
    let text = match source {
        // A password that somebody put into an address does not belong into a lock.
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
            let place = Place::Path { path: folder.clone(), inside: String::new() };
            locked_source(&place, root).ok()?.to_string()
        }
    };
    // What others wrote down may hold anything.
    Some(text).filter(|text| !text.contains(|c: char| c.is_control() || c == '\\'))
}

fn has_secret(address: &str) -> bool {
    url::Url::parse(address).is_ok_and(|url| !url.username().is_empty() || url.password().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_lock_says_of_other_tools() {
        let (own, root) = (Path::new("/p/skills/pdf"), Path::new("/p"));
        let said = |source: Recorded| recorded(&source, own, root);
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
    fn references_as_they_are_written() {
        assert_eq!(revision(None), Revision::Default);
        assert_eq!(revision(Some("refs/heads/a/b")), Revision::Branch("a/b".into()));
        assert_eq!(revision(Some("refs/tags/v1")), Revision::Tag("v1".into()));
        assert_eq!(revision(Some("v1")), Revision::Rev("v1".into()), "git finds out what it is");
    }
}
