//! Tags and branches of a repository.

use std::{collections::BTreeMap, fs};

use strsim::jaro_winkler;

use super::{Commit, Repository};
use crate::source::{GitSource, Reference, SourceError};

/// Tags and branches, each with its commit.
#[derive(Debug, Default)]
pub(super) struct References {
    head: Option<Commit>,
    branches: BTreeMap<String, Commit>,
    tags: BTreeMap<String, Commit>,
}

/// A commit, what led to it, and the path that was left of the address.
type ResolvedReference = (Commit, Option<Reference>, Option<String>);

impl References {
    pub(super) async fn ask(repository: &Repository<'_>) -> Result<Self, SourceError> {
        let arguments = ["ls-remote", "--quiet", "origin", "HEAD", "refs/heads/*", "refs/tags/*"];
        if repository.is_offline()
            && let Ok(known) = fs::read_to_string(repository.known_references())
        {
            return Ok(Self::parse(&known));
        }
        let answer = repository.ask(&arguments, &[], "the list of references").await?;
        // Without it, only what has no network later is harder to please.
        let _ = fs::write(repository.known_references(), &answer);
        Ok(Self::parse(&String::from_utf8_lossy(&answer)))
    }

    fn parse(text: &str) -> Self {
        let mut references = Self::default();
        for line in text.lines() {
            let Some((commit, name)) = line.split_once('\t') else { continue };
            // Git shows references that it does not trust as leading to zero.
            let is_broken = commit.bytes().all(|digit| digit == b'0');
            let Some(commit) = Commit::parse(commit).filter(|_| !is_broken) else { continue };
            if name == "HEAD" {
                references.head = Some(commit);
            } else if let Some(branch) = name.strip_prefix("refs/heads/") {
                references.branches.insert(branch.to_owned(), commit);
            } else if let Some(tag) = name.strip_prefix("refs/tags/") {
                // A tag with a message is followed by the commit that it is for.
                let tag = tag.strip_suffix("^{}").unwrap_or(tag);
                references.tags.insert(tag.to_owned(), commit);
            }
        }
        references
    }

    pub(super) fn tag(&self, name: &str) -> Option<&Commit> {
        self.tags.get(name)
    }

    /// The commit that a source means. Names with slashes are told from paths by trying.
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
        let names = self.tags.keys().chain(self.branches.keys());
        let similar = similar(&reference, names);
        SourceError::NoReference { url: source.url.clone(), reference, similar }
    }
}

/// The three names that resemble one the most; if none does, the last three.
pub(super) fn similar<'a>(
    wanted: &str,
    names: impl Iterator<Item = &'a String> + Clone,
) -> Vec<String> {
    let scored = names.clone().map(|name| (jaro_winkler(wanted, name), name));
    let mut scored: Vec<_> = scored.filter(|(score, _)| *score > 0.7).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    if scored.is_empty() {
        let mut last: Vec<_> = names.cloned().collect();
        return last.split_off(last.len().saturating_sub(3));
    }
    scored.into_iter().take(3).map(|(_, name)| name.clone()).collect()
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
}
