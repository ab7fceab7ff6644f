//! Links of a commit: where they lead inside the repository.

use std::collections::BTreeMap;

use super::{
    Repository,
    objects::{self, Blobs, Entries, Kind},
};
use crate::{
    limits::{MAX_LINKS, MAX_PATH_BYTES},
    source::{SourceError, layout::join},
};

/// How many links one path may lead through.
const MAX_HOPS: usize = 16;

/// The links of a commit with their targets.
#[derive(Debug, Default)]
pub(super) struct Links(BTreeMap<String, String>);

impl Links {
    /// Reads the targets of all links. Those that cannot be read lead nowhere.
    pub(super) async fn read(
        repository: &Repository<'_>,
        entries: &Entries,
    ) -> Result<Self, SourceError> {
        let links = entries.iter().filter(|entry| entry.kind == Kind::Link);
        let links: Vec<_> = links.take(MAX_LINKS).collect();
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
            // A target that no path can be is one outside.
            target.unwrap_or("/").to_owned()
        };
        Ok(Self(links.iter().map(|link| (link.path.to_owned(), target(link.digest))).collect()))
    }

    /// The links below a folder.
    pub(super) fn below(&self, folder: &str) -> impl Iterator<Item = &str> {
        let start = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let rest = self.0.range(start.clone()..);
        rest.map(|(link, _)| link.as_str()).take_while(move |link| link.starts_with(&start))
    }

    /// The path itself, with every link on the way followed. Nothing if it leads out of the
    /// repository or in a circle. Whether something is there is not looked at.
    pub(super) fn resolve(&self, path: &str) -> Option<String> {
        if self.0.is_empty() {
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
                    let Some(target) = self.0.get(&next) else {
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
        Links(links.iter().map(owned).collect())
    }

    #[test]
    fn links_lead_to_paths_inside() {
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
}
