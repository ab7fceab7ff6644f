//! Tags and branches of a repository.

use std::{collections::BTreeMap, fs};

use savoir_lint::words::nearest_several;
use strsim::jaro_winkler;

use super::{Commit, Repository};
use crate::source::{GitSource, Reference, SourceError};

/// Maximum number of references that an error lists.
const MAX_SUGGESTIONS: usize = 5;

/// Similarity from which a folder is suggested, between 0 and 1.
const MIN_SIMILARITY: f64 = 0.8;

/// Tags and branches, each with its commit.
#[derive(Debug, Default)]
pub(super) struct References {
    head: Option<Commit>,
    branches: BTreeMap<String, Commit>,
    tags: BTreeMap<String, Commit>,
}

/// A commit, the reference to it, and the rest of the address, which is a path.
type ResolvedReference = (Commit, Option<Reference>, Option<String>);

impl References {
    pub(super) async fn fetch(repository: &Repository<'_>) -> Result<Self, SourceError> {
        let arguments = ["ls-remote", "--quiet", "origin", "HEAD", "refs/heads/*", "refs/tags/*"];
        if repository.is_offline()
            && let Ok(known) = fs::read_to_string(repository.known_references())
        {
            return Ok(Self::parse(&known));
        }
        let answer = repository.ask(&arguments, &[], "the list of references").await?;
        // If it cannot be cached, only later offline use suffers.
        let _ = fs::write(repository.known_references(), &answer);
        Ok(Self::parse(&String::from_utf8_lossy(&answer)))
    }

    fn parse(text: &str) -> Self {
        let mut references = Self::default();
        for line in text.lines() {
            let Some((commit, name)) = line.split_once('\t') else { continue };
            // Git lists broken references with an id of zeros.
            let is_broken = commit.bytes().all(|digit| digit == b'0');
            let Some(commit) = Commit::parse(commit).filter(|_| !is_broken) else { continue };
            if name == "HEAD" {
                references.head = Some(commit);
            } else if let Some(branch) = name.strip_prefix("refs/heads/") {
                references.branches.insert(branch.to_owned(), commit);
            } else if let Some(tag) = name.strip_prefix("refs/tags/") {
                // An annotated tag is followed by a line with the commit that it points to.
                let tag = tag.strip_suffix("^{}").unwrap_or(tag);
                references.tags.insert(tag.to_owned(), commit);
            }
        }
        references
    }

    pub(super) fn tag(&self, name: &str) -> Option<&Commit> {
        self.tags.get(name)
    }

    /// Returns the commit of a source. Because references may contain slashes, every split into
    /// reference and path is tried.
    pub(super) fn resolve(&self, source: &GitSource) -> Result<ResolvedReference, SourceError> {
        let Some(name) = source.reference.as_deref() else {
            let commit = self.head.clone().or_else(|| self.branches.values().next().cloned());
            let commit = commit.ok_or_else(|| SourceError::Empty(source.url.clone()))?;
            return Ok((commit, None, source.path.clone()));
        };
        let mut name = name.to_owned();
        let mut path = source.path.as_deref();
        loop {
            if let Some((commit, reference)) = self.find(&name) {
                return Ok((commit, Some(reference), path.map(str::to_owned)));
            }
            let Some(rest) = path else { break };
            let (part, rest) = rest.split_once('/').map_or((rest, None), |(a, b)| (a, Some(b)));
            name = format!("{name}/{part}");
            path = rest;
        }
        Err(self.unknown(source))
    }

    fn find(&self, name: &str) -> Option<(Commit, Reference)> {
        let tag = name.strip_prefix("refs/tags/").unwrap_or(name);
        let branch = name.strip_prefix("refs/heads/").unwrap_or(name);
        if let Some(commit) = self.tags.get(tag) {
            return Some((commit.clone(), Reference::Tag(tag.to_owned())));
        }
        if let Some(commit) = self.branches.get(branch) {
            return Some((commit.clone(), Reference::Branch(branch.to_owned())));
        }
        let is_digits = name.len() >= 7 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let name = name.to_ascii_lowercase();
        let known = || self.tags.values().chain(self.branches.values());
        let commit = known().find(|commit| is_digits && commit.as_str().starts_with(&name))?;
        Some((commit.clone(), Reference::Commit(commit.clone())))
    }

    fn unknown(&self, source: &GitSource) -> SourceError {
        let reference = source.reference.clone().unwrap_or_default();
        let names: Vec<&str> =
            self.tags.keys().chain(self.branches.keys()).map(String::as_str).collect();
        let mut similar = nearest_several(&reference, names.iter().copied(), MAX_SUGGESTIONS);
        if similar.is_empty() && names.len() <= MAX_SUGGESTIONS {
            similar = names;
        }
        let similar = similar.into_iter().map(str::to_owned).collect();
        SourceError::NoReference { url: source.url.clone(), reference, similar }
    }
}

/// Returns the folders whose path or name is similar to the wanted one, the most similar first.
pub(super) fn similar_folders<'a>(
    wanted: &str,
    folders: impl Iterator<Item = &'a String>,
) -> Vec<String> {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let score =
        |folder: &str| jaro_winkler(wanted, folder).max(jaro_winkler(&name(wanted), &name(folder)));
    let scored = folders.map(|folder| (score(folder), folder));
    let mut scored: Vec<_> = scored.filter(|(score, _)| *score > MIN_SIMILARITY).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(MAX_SUGGESTIONS).map(|(_, folder)| folder.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::GitUrl;

    fn references() -> References {
        let commit = |digit: &str| digit.repeat(40);
        References::parse(&format!(
            "{}\tHEAD\n{}\trefs/heads/main\n{}\trefs/heads/feature/x\n{}\trefs/tags/v1\n{}\trefs/tags/v1^{{}}\n",
            commit("1"),
            commit("1"),
            commit("2"),
            commit("3"),
            commit("4")
        ))
    }

    fn resolved(reference: Option<&str>, path: Option<&str>) -> Result<String, SourceError> {
        let source = GitSource {
            url: GitUrl::parse("https://host.example/o/r").unwrap(),
            reference: reference.map(str::to_owned),
            path: path.map(str::to_owned),
        };
        let (commit, reference, path) = references().resolve(&source)?;
        Ok(format!("{} {reference:?} {}", &commit.as_str()[..1], path.unwrap_or_default()))
    }

    #[test]
    fn references_resolve_to_commits() {
        assert_eq!(resolved(None, Some("a")).unwrap(), "1 None a");
        assert_eq!(resolved(Some("v1"), None).unwrap(), "4 Some(Tag(\"v1\")) ");
        assert_eq!(resolved(Some("refs/tags/v1"), None).unwrap(), "4 Some(Tag(\"v1\")) ");
        let branch = resolved(Some("feature"), Some("x/a/b")).unwrap();
        assert_eq!(branch, "2 Some(Branch(\"feature/x\")) a/b");
        assert!(resolved(Some("2222222"), None).unwrap().starts_with("2 Some(Commit"));
        let unknown = resolved(Some("v11"), Some("a/b")).unwrap_err().to_string();
        assert!(unknown.ends_with("commit `v11`; it has `v1`"), "{unknown}");
    }

    #[test]
    fn unknown_reference_lists_only_similar_ones() {
        let line = |name: String| format!("{}\trefs/tags/{name}\n", "1".repeat(40));
        let references =
            References::parse(&(0..20).map(|n| line(format!("v1.{n}.0"))).collect::<String>());
        let similar = |reference: &str| {
            let source = GitSource {
                url: GitUrl::parse("https://host.example/o/r").unwrap(),
                reference: Some(reference.to_owned()),
                path: None,
            };
            match references.resolve(&source) {
                Err(SourceError::NoReference { similar, .. }) => similar,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(similar("v1.19.1")[0], "v1.19.0");
        assert_eq!(similar("v1.19.1").len(), 5);
        assert!(similar("production").is_empty());
    }
}
