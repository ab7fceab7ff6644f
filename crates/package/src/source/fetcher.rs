//! Lists the skills of a source and fetches their files.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tempfile::NamedTempFile;
use url::Url;

use super::{
    Commit, Digest, GitSource, GitUrl, HeadQuery, OfferedSkill, PinnedGitSource, PinnedSource,
    PluginExtra, SkillHead, Source, SourceError, artifact,
    git::{self, ExtrasMode},
    http::{Http, LoadedFile, Reach, shown},
    layout::last_part,
    local,
    summary::{Summary, stem},
    well_known,
};
use crate::{
    Tree,
    limits::{MAX_ARCHIVE_BYTES, MAX_REPOSITORY_BYTES},
    registry::concurrency::blocking,
};

/// The skills and other items that a source has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceOffers {
    /// The skills, at least one.
    pub skills: Vec<OfferedSkill>,
    /// Items that look like skills but cannot be used.
    pub skipped: Vec<Skipped>,
    /// Items of plugins besides skills, which are not installed.
    pub not_installed: Vec<PluginExtra>,
}

/// An item that looks like a skill but cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The path in the source.
    pub path: String,
    pub why: String,
}

impl SourceOffers {
    fn of(skills: Vec<OfferedSkill>) -> Self {
        Self { skills, ..Self::default() }
    }
}

fn skipped_links(links: Vec<String>) -> Vec<Skipped> {
    let why = "it is a link that does not lead to a folder of the same repository";
    links.into_iter().map(|path| Skipped { path, why: why.to_owned() }).collect()
}

/// A callback that receives [`Progress`] events.
pub type Watcher = Arc<dyn Fn(Progress) + Send + Sync>;

/// A progress event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A request to a server starts.
    Asking { place: String },
    /// A part of a file was downloaded.
    Received {
        place: String,
        /// The number of bytes so far.
        bytes: u64,
        /// The total number of bytes, if the server states it.
        of: Option<u64>,
    },
    /// A file is left out of a skill, because it configures tools of the surrounding repository.
    LeftOut { path: String },
    /// An entry is skipped because it cannot be offered, for example in the index of a site.
    Skipped { name: String, why: String },
}

/// Whether servers may be contacted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// Contact servers.
    #[default]
    Online,
    /// Use only the cache.
    Offline,
}

/// The settings of a [`Fetcher`].
#[derive(Clone)]
pub struct Settings {
    /// The cache folder. It can be removed at any time while nothing is fetched.
    pub cache: PathBuf,
    /// The path of the program `git`.
    pub git: PathBuf,
    /// Time limit of one call of git.
    pub git_timeout: Duration,
    /// Time limit of one download.
    pub http_timeout: Duration,
    /// Whether git follows redirects of a server.
    pub git_redirects: bool,
    /// Maximum size of a repository in the cache.
    pub max_repository_bytes: u64,
    pub network: Network,
    /// The receiver of progress events.
    pub watcher: Option<Watcher>,
}

impl Settings {
    /// The default settings with this cache folder.
    pub fn new(cache: PathBuf) -> Self {
        Self {
            cache,
            git: "git".into(),
            git_timeout: Duration::from_mins(5),
            http_timeout: Duration::from_mins(2),
            git_redirects: true,
            max_repository_bytes: MAX_REPOSITORY_BYTES,
            network: Network::default(),
            watcher: None,
        }
    }

    pub(super) fn report_progress(&self, progress: Progress) {
        if let Some(watcher) = &self.watcher {
            watcher(progress);
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("cache", &self.cache).finish_non_exhaustive()
    }
}

/// Lists the skills of sources and fetches their files.
#[derive(Debug)]
pub struct Fetcher {
    settings: Settings,
    http: Http,
}

impl Fetcher {
    pub fn new(mut settings: Settings) -> Self {
        // Git runs in another working directory, so the path must be absolute.
        if let Ok(cache) = std::path::absolute(&settings.cache) {
            settings.cache = cache;
        }
        Self { settings, http: Http::default() }
    }

    /// Sets whether servers may be contacted.
    #[must_use]
    pub fn with_network(mut self, network: Network) -> Self {
        self.settings.network = network;
        self
    }

    /// Lists the skills of a source, at least one. Downloads files only if they cannot be listed
    /// otherwise.
    pub async fn offers(&self, source: &Source) -> Result<Vec<OfferedSkill>, SourceError> {
        Ok(self.offers_and(source, ExtrasMode::Skip).await?.skills)
    }

    /// Lists the skills of a source, and items that are not installed: broken links beside skills,
    /// and the hooks, commands, agents and servers of its plugins.
    ///
    /// Skills with the same name are compared, so that identical copies can be told from different
    /// skills.
    pub async fn look(&self, source: &Source) -> Result<SourceOffers, SourceError> {
        let mut offers = self.offers_and(source, ExtrasMode::List).await?;
        self.compare_copies(&mut offers.skills).await;
        Ok(offers)
    }

    /// Computes digests of skills with the same name. A skill that cannot be read gets none.
    async fn compare_copies(&self, offers: &mut [OfferedSkill]) {
        // Skills of a repository are compared by their git objects without fetching; names on a
        // site are distinct.
        let is_open = |offer: &OfferedSkill| {
            matches!(offer.source, PinnedSource::Path { .. } | PinnedSource::Url { .. })
        };
        let mut positions = same_named(offers.iter());
        positions.retain(|at| is_open(&offers[*at]));
        let same: Vec<OfferedSkill> = positions.iter().map(|at| offers[*at].clone()).collect();
        for (at, tree) in positions.into_iter().zip(self.fetch_all(&same).await) {
            offers[at].content = tree.ok().map(|tree| tree.integrity());
        }
    }

    async fn offers_and(
        &self,
        source: &Source,
        extras: ExtrasMode,
    ) -> Result<SourceOffers, SourceError> {
        let offers = match source {
            Source::Folder(path) => {
                let (skills, broken) = read_from_disk(path, local::folder).await?;
                let not_installed = match extras {
                    ExtrasMode::List => read_from_disk(path, local::extras).await?,
                    ExtrasMode::Skip => Vec::new(),
                };
                SourceOffers { skills, skipped: skipped_links(broken), not_installed }
            }
            Source::File(path) => SourceOffers::of(read_from_disk(path, local::file).await?),
            Source::Url { url, digest } => {
                SourceOffers::of(self.offers_at(url, digest.as_ref()).await?)
            }
            Source::Git(source) => {
                let found = git::catalog(&self.settings, source, extras).await?;
                let skills = found.skills.into_iter().map(|(offer, _)| offer).collect();
                let skipped = skipped_links(found.broken_links);
                SourceOffers { skills, skipped, not_installed: found.extras }
            }
            Source::WellKnown(url) => SourceOffers::of(well_known::offers(self, url).await?),
            Source::Registry { namespace, name, range } => {
                let namespace = namespace.as_ref().map(|name| format!("{name}/"));
                let text = format!("{}{name}@{range}", namespace.unwrap_or_default());
                return Err(SourceError::Registry(text));
            }
        };
        for Skipped { path, why } in &offers.skipped {
            self.skipped(path, why.clone());
        }
        Ok(offers)
    }

    /// Lists the skills of a repository, each with the git object id of its SKILL.md, which changes
    /// when the file does.
    pub async fn catalog(
        &self,
        source: &GitSource,
    ) -> Result<Vec<(OfferedSkill, Option<String>)>, SourceError> {
        Ok(git::catalog(&self.settings, source, ExtrasMode::Skip).await?.skills)
    }

    /// Fetches the files of a skill.
    pub async fn fetch(&self, offer: &OfferedSkill) -> Result<Tree, SourceError> {
        match &offer.source {
            PinnedSource::Git(place) => git::tree(&self.settings, place).await,
            place => self.fetch_place(place).await,
        }
    }

    /// Fetches the files of many skills; returns them in the order of the offers. Skills of one
    /// repository are fetched together; local skills are read on all processors. An error of one
    /// skill does not affect the others.
    pub async fn fetch_all(&self, offers: &[OfferedSkill]) -> Vec<Result<Tree, SourceError>> {
        let mut trees: Vec<Option<Result<Tree, SourceError>>> = Vec::new();
        trees.resize_with(offers.len(), || None);
        let local: Vec<_> = group_sources(offers, |place| match place {
            PinnedSource::Path { path, inside } => Some((path.clone(), inside.clone())),
            _ => None,
        });
        let (positions, local): (Vec<usize>, Vec<_>) = local.into_iter().unzip();
        let read = tokio::task::spawn_blocking(move || local::trees(&local)).await;
        for (at, tree) in positions.into_iter().zip(read.unwrap_or_default()) {
            trees[at] = Some(tree);
        }
        let mut repositories: HashMap<GitUrl, Vec<(usize, PinnedGitSource)>> = HashMap::new();
        for (at, place) in group_sources(offers, |place| match place {
            PinnedSource::Git(place) => Some(place.clone()),
            _ => None,
        }) {
            repositories.entry(place.url.clone()).or_default().push((at, place));
        }
        for (url, places) in repositories {
            let (positions, places): (Vec<usize>, Vec<_>) = places.into_iter().unzip();
            let fetched = match self.trees(&url, &places).await {
                Ok(fetched) => fetched,
                Err(error) => SourceError::for_each(error, places.len()),
            };
            for (at, tree) in positions.into_iter().zip(fetched) {
                trees[at] = Some(tree);
            }
        }
        let mut fetched = Vec::with_capacity(offers.len());
        for (offer, tree) in offers.iter().zip(trees) {
            fetched.push(match tree {
                Some(tree) => tree,
                None => self.fetch(offer).await,
            });
        }
        fetched
    }

    /// Fetches the files of a skill from the exact source in a lock. A tag that was moved since, or
    /// a file with another digest, is an error.
    pub async fn fetch_locked(&self, place: &PinnedSource) -> Result<Tree, SourceError> {
        match place {
            PinnedSource::Git(place) => git::locked_tree(&self.settings, place).await,
            place => self.fetch_place(place).await,
        }
    }

    /// Looks up the current commits of references for many skills with one request to the server.
    pub(crate) async fn heads(
        &self,
        url: &GitUrl,
        asked: &[HeadQuery],
    ) -> Result<Vec<Result<SkillHead, SourceError>>, SourceError> {
        git::look_up_skill_heads(&self.settings, url, asked).await
    }

    /// Fetches the files of many skills of one repository at once.
    pub(crate) async fn trees(
        &self,
        url: &GitUrl,
        places: &[PinnedGitSource],
    ) -> Result<Vec<Result<Tree, SourceError>>, SourceError> {
        git::trees(&self.settings, url, places).await
    }

    /// Finds the newest commit, starting at that of `place` and going back, in which its path was
    /// one of these git objects.
    pub(crate) async fn past(
        &self,
        place: &PinnedGitSource,
        objects: &BTreeSet<String>,
    ) -> Result<Option<Commit>, SourceError> {
        git::find_commit_with_object(&self.settings, place, objects).await
    }

    async fn fetch_place(&self, place: &PinnedSource) -> Result<Tree, SourceError> {
        match place {
            PinnedSource::Path { path, inside } => {
                let inside = inside.clone();
                read_from_disk(path, move |path| local::tree(path, &inside)).await
            }
            PinnedSource::Url { url, digest, inside } => {
                let bytes = self.load_exactly(url, Reach::Anywhere, digest).await?;
                artifact::tree(bytes, &name_of(url), inside)
            }
            PinnedSource::Git(place) => git::tree(&self.settings, place).await,
            PinnedSource::WellKnown { index, name, digest } => {
                well_known::tree(self, index, name, digest.as_ref()).await
            }
        }
    }

    async fn offers_at(
        &self,
        url: &Url,
        expected: Option<&Digest>,
    ) -> Result<Vec<OfferedSkill>, SourceError> {
        let loaded = self.load(url, Reach::Anywhere, MAX_ARCHIVE_BYTES).await?;
        let digest = Digest::of(&loaded.bytes);
        if let Some(expected) = expected {
            compare(url, expected, &digest)?;
        }
        let found = artifact::list(loaded.bytes, url.path(), &name_of(url))?;
        let offer = |(inside, summary): (String, Summary)| OfferedSkill {
            name: summary.name,
            description: summary.description,
            source: PinnedSource::Url { url: url.clone(), digest: digest.clone(), inside },
            content: None,
        };
        Ok(found.into_iter().map(offer).collect())
    }

    pub(super) async fn load(
        &self,
        url: &Url,
        reach: Reach,
        limit: u64,
    ) -> Result<LoadedFile, SourceError> {
        if self.settings.network == Network::Offline {
            let known = self.read_cached(url, limit);
            return known.ok_or_else(|| SourceError::Offline(shown(url)));
        }
        let loaded = self.http.get(&self.settings, url, reach, limit).await?;
        let digest = Digest::of(&loaded.bytes);
        self.store_content(&digest, &loaded.bytes)?;
        self.cache_address(url, &loaded, &digest)?;
        Ok(loaded)
    }

    /// Returns the last cached answer of an address.
    fn read_cached(&self, url: &Url, limit: u64) -> Option<LoadedFile> {
        let text = std::fs::read_to_string(self.address_path(url)).ok()?;
        let mut lines = text.lines();
        let digest: Digest = lines.next()?.parse().ok()?;
        let url = Url::parse(lines.next()?).ok()?;
        let bytes = std::fs::read(self.content_path(&digest)).ok()?;
        let is_same = bytes.len() as u64 <= limit && Digest::of(&bytes) == digest;
        // Offline: no request follows from this answer, so the strictest reach is sufficient.
        is_same.then_some(LoadedFile { bytes, url, reach: Reach::Public })
    }

    /// Caches the answer of an address for offline use.
    fn cache_address(
        &self,
        url: &Url,
        loaded: &LoadedFile,
        digest: &Digest,
    ) -> Result<(), SourceError> {
        let text = format!("{digest}\n{}\n", loaded.url);
        self.write(&self.address_path(url), text.as_bytes())
    }

    fn address_path(&self, url: &Url) -> PathBuf {
        let name = Digest::of(url.as_str().as_bytes());
        self.settings.cache.join("addresses").join(name.hex())
    }

    /// Downloads a file with a known digest, unless the cache has it.
    pub(super) async fn load_exactly(
        &self,
        url: &Url,
        reach: Reach,
        digest: &Digest,
    ) -> Result<Vec<u8>, SourceError> {
        if let Ok(bytes) = std::fs::read(self.content_path(digest))
            && Digest::of(&bytes) == *digest
        {
            return Ok(bytes);
        }
        let loaded = self.load(url, reach, MAX_ARCHIVE_BYTES).await?;
        compare(url, digest, &Digest::of(&loaded.bytes))?;
        Ok(loaded.bytes)
    }

    pub(super) fn skipped(&self, name: &str, why: String) {
        self.settings.report_progress(Progress::Skipped { name: name.to_owned(), why });
    }

    fn content_path(&self, digest: &Digest) -> PathBuf {
        self.settings.cache.join("files").join(digest.hex())
    }

    /// Caches a file by its digest, so that it is not downloaded again after the user chose a
    /// skill.
    fn store_content(&self, digest: &Digest, bytes: &[u8]) -> Result<(), SourceError> {
        self.write(&self.content_path(digest), bytes)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), SourceError> {
        let write = || {
            let folder = path.parent().unwrap_or(&self.settings.cache);
            std::fs::create_dir_all(folder)?;
            let mut file = NamedTempFile::new_in(folder)?;
            std::io::Write::write_all(&mut file, bytes)?;
            file.persist(path).map_err(|error| error.error)
        };
        write().map(drop).map_err(SourceError::io(path))
    }
}

fn compare(url: &Url, expected: &Digest, found: &Digest) -> Result<(), SourceError> {
    if found == expected {
        return Ok(());
    }
    let (expected, found) = (expected.clone(), found.clone());
    Err(SourceError::Digest { place: shown(url), expected, found })
}

/// Returns the name of a skill in a file without a name: the name of the file, or of the folder of
/// a SKILL.md.
fn name_of(url: &Url) -> String {
    let path = super::pinned::decode(url.path().trim_matches('/'));
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let is_manifest = savoir_skill::folder::is_skill_file(name) && !folder.is_empty();
    if is_manifest { last_part(folder).to_owned() } else { stem(name).to_owned() }
}

/// Returns the positions of offers with the same name. Case is ignored, because on some systems
/// names that differ only in case are the same folder.
pub(super) fn same_named<'a>(offers: impl Iterator<Item = &'a OfferedSkill>) -> Vec<usize> {
    let names: Vec<String> = offers.map(|offer| offer.name.to_lowercase()).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for name in &names {
        *counts.entry(name).or_default() += 1;
    }
    (0..names.len()).filter(|at| counts[names[*at].as_str()] > 1).collect()
}

/// Returns the sources of one kind, each with its position in the offers.
fn group_sources<T>(
    offers: &[OfferedSkill],
    of_kind: impl Fn(&PinnedSource) -> Option<T>,
) -> Vec<(usize, T)> {
    let places = offers.iter().enumerate();
    places.filter_map(|(at, offer)| Some((at, of_kind(&offer.source)?))).collect()
}

/// Reads from the disk on a blocking thread.
async fn read_from_disk<T: Send + 'static>(
    path: &Path,
    read: impl FnOnce(&Path) -> Result<T, SourceError> + Send + 'static,
) -> Result<T, SourceError> {
    let owned = path.to_owned();
    blocking(move || read(&owned)).await
}
