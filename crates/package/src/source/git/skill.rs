//! Finds and reads skills in a commit.

use std::collections::HashMap;

use savoir_skill::{
    digest::sha256_hex, folder::is_skill_file, limits::MAX_FILE_BYTES as MAX_MANIFEST_BYTES,
};
use tokio::task::JoinHandle;

use super::{
    Commit, GitUrl, Repository,
    failure::is_missing_object,
    links::Links,
    objects::{self, Blobs, ObjectKind, TreeEntries, TreeEntry},
    references::similar_folders,
};
use crate::{
    File, Tree, TreeError,
    limits::{
        MAX_FILE_BYTES, MAX_FILES, MAX_LINKS, MAX_LINKS_IN_SKILL, MAX_READ_AT_ONCE, MAX_TREE_BYTES,
    },
    parallel,
    path::{self, PathProblem},
    source::{
        PluginExtra, Progress, SourceError,
        discover::{DiscoveredSkills, FolderListing, FolderView, LinkTarget, discover},
        layout::{below, is_markdown, join, last_part, skill_folders},
        plugin,
        summary::{DeclaredSummary, Summary, stem},
    },
    tree::is_ignored_name,
};

/// The start of a Git LFS pointer file.
const LFS_HEADER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Accepted names of SKILL.md, the usual one first.
const SKILL_FILES: [&str; 4] = ["SKILL.md", "skill.md", "Skill.md", "SKILL.MD"];

/// The size of the groups in which skills are fetched if fetching all at once fails.
const FETCH_GROUP_SIZE: usize = 32;

/// All paths of a commit.
pub(super) struct Listing<'a> {
    repository: &'a Repository<'a>,
    entries: TreeEntries,
    links: Links,
}

/// The files of a skill, by paths relative to its folder.
type Files<'l> = Vec<(String, TreeEntry<'l>)>;

impl<'a> Listing<'a> {
    pub(super) async fn read(
        repository: &'a Repository<'a>,
        commit: &Commit,
    ) -> Result<Self, SourceError> {
        let entries = TreeEntries::of(repository, commit).await?;
        let links = Links::read(repository, &entries).await?;
        Ok(Self { repository, entries, links })
    }

    /// Returns the skill folders below a path, or the path itself if it is a Markdown file.
    pub(super) fn skills(&self, path: &str) -> Result<DiscoveredSkills, SourceError> {
        let real = self.links.resolve(path).ok_or_else(|| self.nothing_at(path))?;
        if self.text_skill(&real).is_some() {
            return Ok(DiscoveredSkills { skills: vec![real], broken: Vec::new() });
        }
        let found = discover(&mut Paths(self), &real)?;
        if found.skills.is_empty() {
            return Err(self.nothing_at(path));
        }
        Ok(found)
    }

    /// Returns the Markdown file at a path.
    fn text_skill(&self, path: &str) -> Option<TreeEntry<'_>> {
        let at_path = || self.entries.get(path).filter(TreeEntry::is_file);
        is_markdown(path).then(at_path).flatten()
    }

    fn nothing_at(&self, path: &str) -> SourceError {
        let url = self.repository.url.clone();
        if path.is_empty() {
            return SourceError::NoSkill { place: url.to_string() };
        }
        let all = skill_folders(self.entries.iter().map(|entry| entry.path));
        let similar = similar_folders(path, all.iter());
        SourceError::NoPathInside { url, path: path.to_owned(), similar }
    }

    /// Reads the names and descriptions of skills. Fetches one file per skill.
    pub(super) async fn summaries(&self, skills: &[String]) -> Result<Vec<Summary>, SourceError> {
        let manifests: Vec<_> = skills.iter().map(|skill| self.manifest(skill)).collect();
        let digests = objects::distinct(manifests.iter().flatten().map(|entry| entry.digest));
        let stated = self.declared_summaries(&digests).await?;
        let summary = |(skill, manifest): (&String, Option<TreeEntry<'_>>)| {
            let stated = manifest.and_then(|entry| stated.get(entry.digest));
            stated.cloned().unwrap_or_default().at(&self.name(skill))
        };
        Ok(skills.iter().zip(manifests).map(summary).collect())
    }

    /// Parses SKILL.md files. They are read in batches, so that at most a few batches are in
    /// memory, and one batch is parsed while git reads the next one.
    async fn declared_summaries(
        &self,
        digests: &[&str],
    ) -> Result<HashMap<String, DeclaredSummary>, SourceError> {
        let mut sizes = objects::fetched_sizes(self.repository, digests).await?;
        sizes.retain(|_, size| *size <= MAX_MANIFEST_BYTES as u64);
        let mut stated = HashMap::with_capacity(sizes.len());
        let mut understood: Option<JoinHandle<Vec<(String, DeclaredSummary)>>> = None;
        for part in read_batches(digests, &sizes) {
            let blobs = Blobs::read(self.repository, &part.digests, part.bytes).await?;
            let next = tokio::task::spawn_blocking(move || parse_summaries(&blobs));
            if let Some(before) = understood.replace(next) {
                stated.extend(before.await.unwrap_or_default());
            }
        }
        if let Some(last) = understood {
            stated.extend(last.await.unwrap_or_default());
        }
        Ok(stated)
    }

    /// Returns the items of plugins below a path besides skills.
    pub(super) async fn extras(&self, path: &str) -> Result<Vec<PluginExtra>, SourceError> {
        let paths = || self.entries.below(path).filter(TreeEntry::is_file).map(|entry| entry.path);
        let wanted = plugin::files_to_read(paths());
        let digests: HashMap<&str, &str> = wanted
            .into_iter()
            .filter_map(|path| Some((path, self.entries.get(path)?.digest)))
            .collect();
        let distinct = objects::distinct(digests.values().copied());
        let mut sizes = objects::fetched_sizes(self.repository, &distinct).await?;
        sizes.retain(|_, size| *size <= MAX_MANIFEST_BYTES as u64);
        let small: Vec<&str> =
            distinct.into_iter().filter(|digest| sizes.contains_key(*digest)).collect();
        let blobs = Blobs::read(self.repository, &small, sizes.values().sum()).await?;
        Ok(plugin::extras(&PluginFiles { paths: paths().collect(), digests, blobs }))
    }

    /// Returns the name for a skill without a name of its own.
    fn name(&self, skill: &str) -> String {
        let url = self.repository.url.as_str();
        match skill {
            "" => stem(last_part(url.rsplit(':').next().unwrap_or(url))).to_owned(),
            skill if self.text_skill(skill).is_some() => stem(last_part(skill)).to_owned(),
            skill => last_part(skill).to_owned(),
        }
    }

    /// Returns the git object id of the SKILL.md of a skill.
    pub(super) fn object(&self, skill: &str) -> Option<String> {
        self.manifest(skill).map(|entry| entry.digest.to_owned())
    }

    fn manifest(&self, skill: &str) -> Option<TreeEntry<'_>> {
        let in_folder = |name: &&str| self.file(&join(skill, name));
        self.text_skill(skill).or_else(|| SKILL_FILES.iter().find_map(in_folder))
    }

    /// Returns a digest of a skill with links, which changes when a linked file does; `None` if it
    /// has no links.
    pub(super) fn linked(&self, skill: &str) -> Option<String> {
        self.links.below(&self.links.resolve(skill)?).next()?;
        let files = self.files_of(skill).ok()?;
        let lines = files.iter().map(|(path, entry)| format!("{path} {}\n", entry.digest));
        Some(sha256_hex(lines.collect::<String>().as_bytes()))
    }

    /// Returns a digest of the files of a skill: their paths, bytes and modes. Fetches nothing.
    pub(super) fn content(&self, skill: &str) -> Option<String> {
        let files = self.files_of(skill).ok()?;
        let line = |(path, entry): &(String, TreeEntry<'_>)| {
            let is_program = entry.kind == ObjectKind::Program;
            format!("{path}\0{} {is_program}\n", entry.digest)
        };
        Some(sha256_hex(files.iter().map(line).collect::<String>().as_bytes()))
    }

    /// Returns the file at a path, following links.
    fn file(&self, path: &str) -> Option<TreeEntry<'_>> {
        match self.entries.get(path)? {
            entry if entry.is_file() => Some(entry),
            entry if entry.kind == ObjectKind::Link => {
                self.entries.get(&self.links.resolve(path)?).filter(TreeEntry::is_file)
            }
            _ => None,
        }
    }

    /// Reads the files of many skills. An error of one skill, or in the rest of the repository,
    /// does not affect the others.
    pub(super) async fn trees(
        &self,
        skills: &[&str],
    ) -> Result<Vec<Result<Tree, SourceError>>, SourceError> {
        let plans: Vec<_> = skills.iter().map(|skill| self.files_of(skill)).collect();
        let mut sizes = self.fetch(&plans).await?;
        let mut trees: Vec<Option<Result<Tree, SourceError>>> = Vec::new();
        let mut waiting: Vec<(usize, &Files<'_>)> = Vec::new();
        let mut bytes = 0;
        trees.resize_with(plans.len(), || None);
        for (at, (plan, failed)) in plans.iter().zip(&mut sizes.failed).enumerate() {
            let checked = match (plan, failed.take()) {
                (Err(_), _) => continue,
                (Ok(_), Some(error)) => Err(error),
                (Ok(files), None) => {
                    self.check_sizes(files, &sizes.known).map(|size| (files, size))
                }
            };
            match checked {
                Err(error) => trees[at] = Some(Err(error)),
                Ok((files, size)) => {
                    waiting.push((at, files));
                    bytes += size;
                }
            }
            if bytes >= MAX_READ_AT_ONCE {
                self.build(&std::mem::take(&mut waiting), bytes, &mut trees).await?;
                bytes = 0;
            }
        }
        self.build(&waiting, bytes, &mut trees).await?;
        let built = plans.into_iter().zip(trees).zip(skills).map(|((plan, tree), skill)| {
            plan.and_then(|_| tree.unwrap_or_else(|| Err(self.nothing_at(skill))))
        });
        Ok(built.collect())
    }

    /// Builds trees from files that are in the cache.
    async fn build(
        &self,
        plans: &[(usize, &Files<'_>)],
        bytes: u64,
        trees: &mut [Option<Result<Tree, SourceError>>],
    ) -> Result<(), SourceError> {
        let digests = plans.iter().flat_map(|(_, files)| digests_of(files));
        let blobs = Blobs::read(self.repository, &objects::distinct(digests), bytes).await?;
        for (at, files) in plans {
            trees[*at] = Some(build(files, &blobs, self.repository.url));
        }
        Ok(())
    }

    /// Fetches the files of all skills at once. If that is too large or an object is missing,
    /// fetches smaller groups, and at last each skill alone, to find the skills that fail.
    async fn fetch<'p>(
        &self,
        plans: &'p [Result<Files<'_>, SourceError>],
    ) -> Result<FileSizes<'p>, SourceError> {
        let all = objects::distinct(plans.iter().flatten().flat_map(digests_of));
        let known = objects::sizes(self.repository, &all).await?;
        let mut sizes = FileSizes { known, failed: Vec::new() };
        sizes.failed.resize_with(plans.len(), || None);
        let missing = |plan: &'p Result<Files<'_>, SourceError>, sizes: &FileSizes<'_>| {
            let digests = plan.iter().flat_map(digests_of);
            digests.filter(|digest| !sizes.known.contains_key(digest)).collect::<Vec<_>>()
        };
        for group in [plans.len(), FETCH_GROUP_SIZE, 1] {
            let mut is_done = true;
            for (number, some) in plans.chunks(group.max(1)).enumerate() {
                let wanted = some.iter().flat_map(|plan| missing(plan, &sizes));
                let wanted = objects::distinct(wanted);
                if wanted.is_empty() {
                    continue;
                }
                let fetched = match group {
                    1 => self.repository.fetch_files_of_one(&wanted).await,
                    _ => self.repository.fetch_files(&wanted).await,
                };
                match fetched {
                    Ok(()) => {
                        sizes.known.extend(objects::sizes(self.repository, &wanted).await?);
                    }
                    Err(error) if !is_about_one_skill(&error) => return Err(error),
                    Err(error) if group == 1 => sizes.failed[number] = Some(error),
                    Err(_) => is_done = false,
                }
            }
            if is_done {
                break;
            }
        }
        Ok(sizes)
    }

    /// Returns the total size of a skill; fails if it is too large.
    fn check_sizes(
        &self,
        files: &Files<'_>,
        sizes: &HashMap<&str, u64>,
    ) -> Result<u64, SourceError> {
        let mut total = 0;
        for (_, entry) in files {
            let Some(size) = sizes.get(entry.digest) else {
                return Err(missing(self.repository.url, entry.path));
            };
            total += size;
            if *size > MAX_FILE_BYTES {
                let (place, limit) = (entry.path.to_owned(), MAX_FILE_BYTES);
                return Err(SourceError::TooLarge { place, limit });
            }
            if total > MAX_TREE_BYTES {
                let why = format!("its files have more than {MAX_TREE_BYTES} bytes together");
                return Err(TreeError::TooLarge(why).into());
            }
        }
        Ok(total)
    }

    /// Returns the files of a skill, sorted by paths relative to its folder. Follows links that
    /// stay in the repository.
    fn files_of(&self, skill: &str) -> Result<Files<'_>, SourceError> {
        if !skill.is_empty() {
            path::check_in_repository(skill)
                .map_err(|problem| TreeError::Path { path: skill.to_owned(), problem })?;
        }
        let real = self.links.resolve(skill);
        let real = real.ok_or_else(|| TreeError::Link(skill.to_owned()))?;
        if let Some(entry) = self.text_skill(&real) {
            return Ok(vec![("SKILL.md".to_owned(), entry)]);
        }
        let is_root = real.is_empty();
        let mut gathered = GatheredFiles { listing: self, is_root, files: Vec::new(), links: 0 };
        gathered.folder(&real, "", &mut vec![real.clone()])?;
        let mut files = gathered.files;
        files.sort_by(|(a, _), (b, _)| a.cmp(b));
        // A tree object that was not written by git can have the same name twice.
        if let Some(twice) = files.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let (path, problem) = (twice[0].0.clone(), PathProblem::Duplicate);
            return Err(TreeError::Path { path, problem }.into());
        }
        if !files.iter().any(|(path, _)| is_skill_file(path)) {
            return Err(self.nothing_at(skill));
        }
        Ok(files)
    }
}

/// Adapts a commit to the interface of [`discover`].
struct Paths<'l, 'a>(&'l Listing<'a>);

impl FolderView for Paths<'_, '_> {
    fn list(&mut self, folder: &str) -> Result<FolderListing, SourceError> {
        let entries = self.0.entries.below(folder);
        // A name with control characters cannot be displayed or chosen.
        let skill_files = entries.filter(|entry| {
            is_skill_file(last_part(entry.path))
                && entry.kind != ObjectKind::Submodule
                && !entry.path.contains(char::is_control)
        });
        let inside = |path: &str| below(path, folder).map(str::to_owned);
        Ok(FolderListing {
            skill_files: skill_files.filter_map(|entry| inside(entry.path)).collect(),
            links: self.0.links.below(folder).filter_map(inside).collect(),
        })
    }

    fn target(&self, link: &str) -> LinkTarget {
        match self.0.links.resolve(link) {
            Some(path) if self.0.entries.is_folder(&path) => LinkTarget::Folder(path),
            Some(path) if self.0.entries.get(&path).is_some() => LinkTarget::File,
            _ => LinkTarget::Nowhere,
        }
    }
}

/// The files that describe plugins.
struct PluginFiles<'l> {
    paths: Vec<&'l str>,
    digests: HashMap<&'l str, &'l str>,
    blobs: Blobs,
}

impl plugin::Files for PluginFiles<'_> {
    fn paths(&self) -> Vec<&str> {
        self.paths.clone()
    }

    fn json(&self, path: &str) -> Option<serde_json::Value> {
        serde_json::from_slice(self.blobs.get(self.digests.get(path)?)?).ok()
    }
}

/// Collects the files of a skill.
struct GatheredFiles<'l, 'a> {
    listing: &'l Listing<'a>,
    /// Whether the skill is the whole repository.
    is_root: bool,
    files: Files<'l>,
    /// The number of links followed so far.
    links: usize,
}

impl<'l> GatheredFiles<'l, '_> {
    /// Adds the files of a folder with a prefix. `above` are the folders that led to it.
    fn folder(
        &mut self,
        folder: &str,
        prefix: &str,
        above: &mut Vec<String>,
    ) -> Result<(), SourceError> {
        let listing = self.listing;
        for entry in listing.entries.below(folder) {
            let Some(inside) = below(entry.path, folder) else { continue };
            if inside.split('/').any(is_ignored_name) {
                continue;
            }
            let path = format!("{prefix}{inside}");
            // Files that configure repository tools are left out if the skill is the whole
            // repository; in any other skill they are an error.
            if self.is_root && matches!(path::check(&path), Err(PathProblem::Forbidden(_))) {
                listing.repository.settings.report_progress(Progress::LeftOut { path });
                continue;
            }
            match entry.kind {
                ObjectKind::File | ObjectKind::Program => self.file(path, entry)?,
                ObjectKind::Submodule => return Err(SourceError::Submodule(path)),
                ObjectKind::Link => self.link(path, entry, above)?,
            }
        }
        Ok(())
    }

    fn link(
        &mut self,
        path: String,
        link: TreeEntry<'_>,
        above: &mut Vec<String>,
    ) -> Result<(), SourceError> {
        let listing = self.listing;
        self.links += 1;
        if listing.links.is_unread(link.path) {
            let why =
                format!("`{path}` is a link, and its repository has more than {MAX_LINKS} links");
            return Err(TreeError::TooLarge(why).into());
        }
        let target = listing.links.resolve(link.path);
        let Some(target) = target.filter(|_| self.links <= MAX_LINKS_IN_SKILL) else {
            return Err(TreeError::Link(path).into());
        };
        if let Some(entry) = listing.entries.get(&target) {
            return match entry.kind {
                ObjectKind::Submodule => Err(SourceError::Submodule(path)),
                _ => self.file(path, entry),
            };
        }
        // A link to a folder above itself is a cycle.
        let is_circle = below(link.path, &target).is_some() || above.contains(&target);
        if is_circle || !listing.entries.is_folder(&target) {
            return Err(TreeError::Link(path).into());
        }
        above.push(target.clone());
        self.folder(&target, &format!("{path}/"), above)?;
        above.pop();
        Ok(())
    }

    fn file(&mut self, path: String, entry: TreeEntry<'l>) -> Result<(), SourceError> {
        if self.files.len() >= MAX_FILES {
            let why = format!("it has more than {MAX_FILES} files");
            return Err(TreeError::TooLarge(why).into());
        }
        self.files.push((path, entry));
        Ok(())
    }
}

/// The sizes of files, and the errors of the skills that could not be fetched.
struct FileSizes<'p> {
    known: HashMap<&'p str, u64>,
    failed: Vec<Option<SourceError>>,
}

/// Whether an error may concern only one of several skills.
fn is_about_one_skill(error: &SourceError) -> bool {
    match error {
        SourceError::TooLarge { .. } | SourceError::Offline(_) => true,
        SourceError::Git { message, .. } => is_missing_object(message),
        _ => false,
    }
}

fn digests_of<'p>(files: &'p Files<'_>) -> impl Iterator<Item = &'p str> {
    files.iter().map(|(_, entry)| entry.digest)
}

fn missing(url: &GitUrl, path: &str) -> SourceError {
    let message = format!("`{path}` is missing in what was fetched");
    SourceError::Git { url: url.clone(), message }
}

fn build(files: &Files<'_>, blobs: &Blobs, url: &GitUrl) -> Result<Tree, SourceError> {
    let mut tree = Tree::default();
    for (path, entry) in files {
        let bytes = blobs.get(entry.digest).ok_or_else(|| missing(url, entry.path))?;
        if bytes.starts_with(LFS_HEADER) {
            return Err(SourceError::Lfs(path.clone()));
        }
        let executable = entry.kind == ObjectKind::Program;
        tree.add(path.clone(), File { bytes: bytes.to_vec(), executable })?;
    }
    Ok(tree)
}

/// Files that are read together.
#[derive(Debug, Default)]
struct ReadBatch<'d> {
    digests: Vec<&'d str>,
    bytes: u64,
}

/// Splits files into batches of limited size. Files of unknown size are left out.
fn read_batches<'d>(digests: &[&'d str], sizes: &HashMap<&str, u64>) -> Vec<ReadBatch<'d>> {
    let mut parts = vec![ReadBatch::default()];
    for digest in digests {
        let Some(size) = sizes.get(digest) else { continue };
        if parts.last().is_some_and(|part| part.bytes >= MAX_READ_AT_ONCE) {
            parts.push(ReadBatch::default());
        }
        if let Some(part) = parts.last_mut() {
            part.digests.push(digest);
            part.bytes += size;
        }
    }
    parts
}

/// Parses SKILL.md files on all processors.
fn parse_summaries(blobs: &Blobs) -> Vec<(String, DeclaredSummary)> {
    let files: Vec<(&str, &[u8])> = blobs.iter().collect();
    parallel::map(files, |(digest, bytes)| (digest.to_owned(), DeclaredSummary::read(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_object_in_git_output_is_an_error() {
        let url = GitUrl::parse("https://example.com/skills.git").unwrap();
        let entry = TreeEntry { path: "pdf/SKILL.md", digest: "0123", kind: ObjectKind::File };
        let built = build(&vec![("SKILL.md".to_owned(), entry)], &Blobs::default(), &url);
        assert!(built.unwrap_err().to_string().contains("`pdf/SKILL.md` is missing"));
    }
}
