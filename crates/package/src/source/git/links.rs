//! Resolves symlinks inside a commit.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Repository,
    objects::{self, Blobs, ObjectKind, TreeEntries},
};
use crate::{
    limits::{MAX_LINKS, MAX_PATH_BYTES},
    source::{SourceError, layout::join},
};

/// Maximum links in one path.
const MAX_HOPS: usize = 16;

/// The links of a commit with their targets.
#[derive(Debug, Default)]
pub(super) struct Links {
    targets: BTreeMap<String, String>,
    /// Links beyond the limit, whose targets were not read. They count as broken.
    unread: BTreeSet<String>,
}

impl Links {
    /// Reads the targets of all links. Unreadable ones count as broken.
    pub(super) async fn read(
        repository: &Repository<'_>,
        entries: &TreeEntries,
    ) -> Result<Self, SourceError> {
        let links = entries.iter().filter(|entry| entry.kind == ObjectKind::Link);
        let mut links: Vec<_> = links.collect();
        let rest = links.split_off(links.len().min(MAX_LINKS));
        let unread = rest.into_iter().map(|link| link.path.to_owned()).collect();
        if links.is_empty() {
            return Ok(Self::default());
        }
        let digests = objects::distinct(links.iter().map(|link| link.digest));
        let mut sizes = objects::fetched_sizes(repository, &digests).await?;
        sizes.retain(|_, size| *size <= MAX_PATH_BYTES as u64);
        let small: Vec<&str> =
            digests.into_iter().filter(|digest| sizes.contains_key(*digest)).collect();
        let targets = Blobs::read(repository, &small, sizes.values().sum()).await?;
        let target = |digest: &str| {
            let target = targets.get(digest).and_then(|bytes| str::from_utf8(bytes).ok());
            // A target that is not a valid path is treated as outside of the repository.
            target.unwrap_or("/").to_owned()
        };
        let targets = links.iter().map(|link| (link.path.to_owned(), target(link.digest)));
        Ok(Self { targets: targets.collect(), unread })
    }

    /// Returns the links below a folder.
    pub(super) fn below(&self, folder: &str) -> impl Iterator<Item = &str> {
        let start = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let rest = self.targets.range(start.clone()..);
        rest.map(|(link, _)| link.as_str()).take_while(move |link| link.starts_with(&start))
    }

    /// Whether the target was not read because there are too many links.
    pub(super) fn is_unread(&self, link: &str) -> bool {
        self.unread.contains(link)
    }

    /// Resolves all links in a path. Returns `None` if it leads out of the repository or in a
    /// cycle. Does not check whether the result exists.
    pub(super) fn resolve(&self, path: &str) -> Option<String> {
        if self.targets.is_empty() {
            return Some(path.to_owned());
        }
        let mut hops = 0;
        let mut real = String::new();
        let mut rest: Vec<&str> = path.split('/').rev().collect();
        while let Some(part) = rest.pop() {
            match part {
                "" | "." => {}
                ".." if real.is_empty() => return None,
                ".." => real.truncate(real.rfind('/').unwrap_or(0)),
                part => {
                    let next = join(&real, part);
                    if self.unread.contains(&next) {
                        return None;
                    }
                    let Some(target) = self.targets.get(&next) else {
                        real = next;
                        continue;
                    };
                    hops += 1;
                    if hops > MAX_HOPS || target.starts_with('/') {
                        return None;
                    }
                    rest.extend(target.split('/').rev());
                }
            }
        }
        Some(real)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(links: &[(&str, &str)]) -> Links {
        let owned = |(link, target): &(&str, &str)| ((*link).to_owned(), (*target).to_owned());
        Links { targets: links.iter().map(owned).collect(), unread: BTreeSet::new() }
    }

    #[test]
    fn links_in_a_commit_are_resolved() {
        let links = links(&[
            (".claude/skills", "../skills"),
            ("skills/x", "../shared/./x"),
            ("skills/self", "."),
            ("skills/loop", "../skills/loop"),
            ("skills/out", "../../etc"),
            ("skills/absolute", "/etc/passwd"),
            ("skills/again", "x"),
        ]);
        let resolve = |path: &str| links.resolve(path);
        assert_eq!(resolve("skills/a").as_deref(), Some("skills/a"));
        assert_eq!(resolve(".claude/skills/a").as_deref(), Some("skills/a"));
        assert_eq!(resolve(".claude/skills/x/b").as_deref(), Some("shared/x/b"));
        assert_eq!(resolve("skills/again/b").as_deref(), Some("shared/x/b"));
        assert_eq!(resolve("skills/self/self/a").as_deref(), Some("skills/a"));
        for path in ["skills/loop", "skills/loop/a", "skills/out", "skills/absolute", "../a"] {
            assert_eq!(resolve(path), None, "{path}");
        }
        let below: Vec<_> = links.below(".claude").collect();
        assert_eq!(below, [".claude/skills"]);
        assert_eq!(links.below("skills").count(), 6);
        assert_eq!(links.below("").count(), 7);
    }

    #[test]
    fn unread_link_counts_as_broken() {
        let mut links = links(&[("skills/x", "../shared")]);
        links.unread.insert("skills/y".to_owned());
        assert_eq!(links.resolve("skills/x/a").as_deref(), Some("shared/a"));
        assert!(links.is_unread("skills/y") && !links.is_unread("skills/x"));
        assert_eq!(links.resolve("skills/y"), None);
        assert_eq!(links.resolve("skills/y/a"), None);
    }
}
