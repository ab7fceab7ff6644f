//! Skills in a commit.

use std::collections::{BTreeSet, HashMap};

use savoir_skill::{folder::is_skill_file, limits::MAX_FILE_BYTES as MAX_MANIFEST_BYTES};

use super::{
    Commit, Repository,
    objects::{self, Entry, Kind},
    references::similar,
};
use crate::{
    File, Tree, TreeError,
    limits::{MAX_FILE_BYTES, MAX_FILES, MAX_OFFERS, MAX_TREE_BYTES},
    path::{self, PathProblem},
    source::{
        Progress, SourceError, artifact,
        layout::{below, is_markdown, join, last_part, skill_folders},
        summary::{Summary, stem},
    },
    tree::is_left_behind,
};

/// How many links may lead to a file.
const MAX_LINKS: usize = 8;

/// How a file begins that stands for one that is kept in Git LFS.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The paths of a commit.
pub(super) struct Listing<'a> {
    repository: &'a Repository<'a>,
    entries: Vec<Entry>,
}

impl<'a> Listing<'a> {
    pub(super) async fn read(
        repository: &'a Repository<'a>,
        commit: &Commit,
    ) -> Result<Self, SourceError> {
        Ok(Self { repository, entries: objects::entries(repository, commit).await? })
    }

    /// Folders of skills below a path, or the path itself if it is a Markdown file.
    pub(super) fn skills(&self, path: &str) -> Result<Vec<String>, SourceError> {
        if self.prose(path).is_some() {
            return Ok(vec![path.to_owned()]);
        }
        let named = self.entries.iter().filter(|entry| !entry.path.contains(char::is_control));
        let inside = named.filter_map(|entry| below(&entry.path, path));
        let found = skill_folders(inside);
        if found.is_empty() {
            return Err(self.nothing_at(path));
        }
        Ok(found.iter().take(MAX_OFFERS).map(|folder| join(path, folder)).collect())
    }

    /// A Markdown file at a path.
    fn prose(&self, path: &str) -> Option<&Entry> {
        let is_file = |entry: &&Entry| matches!(entry.kind, Kind::File | Kind::Program);
        let at_path = self.entries.iter().find(|entry| entry.path == path && is_markdown(path));
        at_path.filter(is_file)
    }

    fn nothing_at(&self, path: &str) -> SourceError {
        let url = self.repository.url.clone();
        if path.is_empty() {
            return SourceError::NoSkill { place: url.to_string() };
        }
        let all = skill_folders(self.entries.iter().map(|entry| entry.path.as_str()));
        SourceError::NoPathInside { url, path: path.to_owned(), similar: similar(path, all.iter()) }
    }

    /// What skills say about themselves. Of each, one file is fetched.
    pub(super) async fn summaries(&self, skills: &[String]) -> Result<Vec<Summary>, SourceError> {
        let manifests: Vec<_> = skills.iter().map(|skill| self.manifest(skill)).collect();
        let digests = manifests.iter().flatten().map(|entry| entry.digest.as_str()).collect();
        let sizes = objects::sizes(self.repository, &digests).await?;
        let mut left = MAX_TREE_BYTES;
        let mut is_small = |digest: &&str| {
            let size = sizes.get(*digest).copied().unwrap_or(u64::MAX);
            let fits = size <= MAX_MANIFEST_BYTES as u64 && size <= left;
            left -= if fits { size } else { 0 };
            fits
        };
        let wanted = digests.iter().copied().filter(|digest| is_small(digest)).collect();
        let files = objects::read(self.repository, &wanted).await?;
        let summary = |(skill, manifest): (&String, Option<&Entry>)| {
            let name = self.name(skill);
            match manifest.and_then(|entry| files.get(&entry.digest)) {
                Some(bytes) => Summary::read(bytes, &name),
                None => Summary::named(&name),
            }
        };
        Ok(skills.iter().zip(manifests).map(summary).collect())
    }

    /// What a skill is called that has no name.
    fn name(&self, skill: &str) -> String {
        let url = self.repository.url.as_str();
        match skill {
            "" => stem(last_part(url.rsplit(':').next().unwrap_or(url))).to_owned(),
            skill if self.prose(skill).is_some() => stem(last_part(skill)).to_owned(),
            skill => last_part(skill).to_owned(),
        }
    }

    /// The object that the SKILL.md of a skill is.
    pub(super) fn object(&self, skill: &str) -> Option<String> {
        self.manifest(skill).map(|entry| entry.digest.clone())
    }

    fn manifest(&self, skill: &str) -> Option<&Entry> {
        self.prose(skill).or_else(|| {
            let is_manifest = |entry: &&Entry| {
                entry.kind != Kind::Link && below(&entry.path, skill).is_some_and(is_skill_file)
            };
            self.entries.iter().find(is_manifest)
        })
    }

    /// Fetches the files of many skills at once, so that none of them has to be fetched alone.
    pub(super) async fn fetch(
        &self,
        skills: impl Iterator<Item = &str>,
    ) -> Result<(), SourceError> {
        let skills: BTreeSet<&str> = skills.collect();
        let is_above = |path: &str| {
            let above = path.match_indices('/').map(|(end, _)| &path[..end]);
            skills.contains("")
                || skills.contains(path)
                || above.into_iter().any(|folder| skills.contains(folder))
        };
        let files = self.entries.iter().filter(|entry| entry.kind != Kind::Submodule);
        let digests =
            files.filter(|entry| is_above(&entry.path)).map(|entry| entry.digest.as_str());
        objects::sizes(self.repository, &digests.collect()).await.map(drop)
    }

    /// The files of a skill. Whatever else the repository has does not matter.
    pub(super) async fn tree(&self, skill: &str) -> Result<Tree, SourceError> {
        if let Some(entry) = self.prose(skill) {
            let mut files = self.contents(std::slice::from_ref(&entry)).await?;
            return artifact::prose(files.remove(&entry.digest).unwrap_or_default());
        }
        let entries = self.entries_of(skill)?;
        let files = self.contents(&entries.values().copied().collect::<Vec<_>>()).await?;
        let mut tree = Tree::default();
        for (path, entry) in sorted(&entries) {
            let target = follow(path, entry, &entries, &files)?;
            let bytes = files.get(&target.digest).cloned().unwrap_or_default();
            if bytes.starts_with(LFS) {
                return Err(SourceError::Lfs(path.to_owned()));
            }
            let executable = target.kind == Kind::Program;
            tree.add(path.to_owned(), File { bytes, executable })?;
        }
        if tree.files().any(|(path, _)| is_skill_file(path)) {
            Ok(tree)
        } else {
            Err(self.nothing_at(skill))
        }
    }

    /// What belongs to a skill, by paths from its folder. What steers tools of a repository whose
    /// root is a skill is no part of that; anywhere else it is refused.
    fn entries_of(&self, skill: &str) -> Result<HashMap<&str, &Entry>, SourceError> {
        let mut found = HashMap::new();
        for entry in &self.entries {
            let Some(inside) = below(&entry.path, skill) else { continue };
            if inside.split('/').any(is_left_behind) {
                continue;
            }
            if skill.is_empty() && matches!(path::check(inside), Err(PathProblem::Forbidden(_))) {
                self.repository.settings.tell(Progress::LeftOut { path: inside.to_owned() });
                continue;
            }
            if entry.kind == Kind::Submodule {
                return Err(SourceError::Submodule(inside.to_owned()));
            }
            // A tree that was made by hand can have one name twice.
            if found.insert(inside, entry).is_some() {
                let problem = PathProblem::Duplicate;
                return Err(TreeError::Path { path: inside.to_owned(), problem }.into());
            }
        }
        if found.len() > MAX_FILES {
            let why = format!("it has more than {MAX_FILES} files");
            return Err(TreeError::TooLarge(why).into());
        }
        Ok(found)
    }

    /// The bytes of all files, fetched at once and only if they are not too many.
    async fn contents(&self, entries: &[&Entry]) -> Result<HashMap<String, Vec<u8>>, SourceError> {
        let digests = entries.iter().map(|entry| entry.digest.as_str()).collect::<BTreeSet<_>>();
        let sizes = objects::sizes(self.repository, &digests).await?;
        let mut total = 0;
        for entry in entries {
            let Some(size) = sizes.get(&entry.digest) else {
                let message = format!("`{}` is missing in what was fetched", entry.path);
                return Err(SourceError::Git { url: self.repository.url.clone(), message });
            };
            total += size;
            if *size > MAX_FILE_BYTES || total > MAX_TREE_BYTES {
                let limit = if *size > MAX_FILE_BYTES { MAX_FILE_BYTES } else { MAX_TREE_BYTES };
                return Err(SourceError::TooLarge { place: entry.path.clone(), limit });
            }
        }
        objects::read(self.repository, &digests).await
    }
}

fn sorted<'a>(entries: &HashMap<&'a str, &'a Entry>) -> Vec<(&'a str, &'a Entry)> {
    let mut sorted: Vec<_> = entries.iter().map(|(path, entry)| (*path, *entry)).collect();
    sorted.sort_by_key(|(path, _)| *path);
    sorted
}

/// The file at a path. Links may lead to other files of the skill, and nowhere else.
fn follow<'a>(
    path: &str,
    entry: &'a Entry,
    entries: &HashMap<&'a str, &'a Entry>,
    files: &HashMap<String, Vec<u8>>,
) -> Result<&'a Entry, SourceError> {
    let (mut place, mut entry) = (path.to_owned(), entry);
    for _ in 0..MAX_LINKS {
        if entry.kind != Kind::Link {
            return Ok(entry);
        }
        let target = files.get(&entry.digest).and_then(|bytes| str::from_utf8(bytes).ok());
        let target = target.and_then(|target| linked(&place, target));
        let next = target.and_then(|target| Some((entries.get(target.as_str()).copied()?, target)));
        let Some((next, target)) = next else { break };
        (place, entry) = (target, next);
    }
    Err(TreeError::Link(path.to_owned()).into())
}

/// Where a link leads, unless that is outside.
fn linked(link: &str, target: &str) -> Option<String> {
    if target.starts_with('/') {
        return None;
    }
    let folder = link.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_links_lead() {
        assert_eq!(linked("a/b", "c").as_deref(), Some("a/c"));
        assert_eq!(linked("a/b", "../c/./d").as_deref(), Some("c/d"));
        assert_eq!(linked("a", "../c"), None);
        assert_eq!(linked("a", "b/../../x/a"), None);
        assert_eq!(linked("a", "/etc/passwd"), None);
    }
}
