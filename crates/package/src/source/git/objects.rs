//! Reads objects of a repository: the paths of a commit, and the bytes of files.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use super::{Commit, Repository};
use crate::source::SourceError;

/// A path of a commit.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeEntry<'a> {
    pub(super) kind: ObjectKind,
    pub(super) digest: &'a str,
    pub(super) path: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectKind {
    File,
    Program,
    Link,
    Submodule,
}

impl TreeEntry<'_> {
    pub(super) fn is_file(&self) -> bool {
        matches!(self.kind, ObjectKind::File | ObjectKind::Program)
    }
}

/// The sorted paths of a commit. They are stored as ranges of git's output, because a repository
/// may have a million of them.
#[derive(Debug, Default)]
pub(super) struct TreeEntries {
    text: String,
    rows: Vec<EntryRow>,
}

#[derive(Clone, Debug)]
struct EntryRow {
    kind: ObjectKind,
    digest: Range<u32>,
    path: Range<u32>,
}

impl TreeEntries {
    pub(super) async fn of(
        repository: &Repository<'_>,
        commit: &Commit,
    ) -> Result<Self, SourceError> {
        let arguments = ["ls-tree", "-r", "-z", "--full-tree", commit.as_str()];
        Ok(Self::parse(repository.call(&arguments, &[]).await?))
    }

    fn parse(answer: Vec<u8>) -> Self {
        let text = String::from_utf8(answer)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        let mut rows = Vec::new();
        let mut start = 0;
        for line in text.split('\0') {
            rows.extend(row(line, start));
            start += line.len() + 1;
        }
        let mut entries = Self { text, rows: Vec::new() };
        // Git sorts entries, but a hand-made tree object need not be sorted.
        rows.sort_by(|a, b| entries.path(a).cmp(entries.path(b)));
        entries.rows = rows;
        entries
    }

    fn path(&self, row: &EntryRow) -> &str {
        &self.text[row.path.start as usize..row.path.end as usize]
    }

    fn entry(&self, row: &EntryRow) -> TreeEntry<'_> {
        let digest = &self.text[row.digest.start as usize..row.digest.end as usize];
        TreeEntry { kind: row.kind, digest, path: self.path(row) }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = TreeEntry<'_>> {
        self.rows.iter().map(|row| self.entry(row))
    }

    /// Returns the entry at a path, unless it is a folder.
    pub(super) fn get(&self, path: &str) -> Option<TreeEntry<'_>> {
        let at = self.rows.partition_point(|row| self.path(row) < path);
        let entry = self.entry(self.rows.get(at)?);
        (entry.path == path).then_some(entry)
    }

    /// Returns all entries below a folder.
    pub(super) fn below(&self, folder: &str) -> impl Iterator<Item = TreeEntry<'_>> {
        let start = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let from = self.rows.partition_point(|row| self.path(row) < start.as_str());
        let rest = &self.rows[from..];
        let end = rest.partition_point(|row| self.path(row).starts_with(&start));
        rest[..end].iter().map(|row| self.entry(row))
    }

    pub(super) fn is_folder(&self, path: &str) -> bool {
        self.below(path).next().is_some()
    }
}

/// Parses `mode type digest`, a tab, and the path.
fn row(line: &str, start: usize) -> Option<EntryRow> {
    let (head, path) = line.split_once('\t')?;
    let mut words = head.split(' ');
    let kind = match words.next()? {
        "120000" => ObjectKind::Link,
        "160000" => ObjectKind::Submodule,
        "100755" => ObjectKind::Program,
        _ => ObjectKind::File,
    };
    let digest = words.nth(1)?;
    let range = |end: usize, length: usize| -> Option<Range<u32>> {
        let end = start + end;
        Some(u32::try_from(end - length).ok()?..u32::try_from(end).ok()?)
    };
    let (digest, path) = (range(head.len(), digest.len())?, range(line.len(), path.len())?);
    Some(EntryRow { kind, digest, path })
}

/// Returns the sizes of files by digest, if the cache has them.
pub(super) async fn sizes<'a>(
    repository: &Repository<'_>,
    digests: &[&'a str],
) -> Result<HashMap<&'a str, u64>, SourceError> {
    if digests.is_empty() {
        return Ok(HashMap::new());
    }
    let arguments = ["cat-file", "--buffer", "--batch-check=%(objecttype) %(objectsize)"];
    let answer = repository.call(&arguments, &lines(digests)).await?;
    let answer = String::from_utf8_lossy(&answer);
    // There is one line per digest, in the same order.
    let size = |(digest, line): (&&'a str, &str)| {
        Some((*digest, line.strip_prefix("blob ")?.parse().ok()?))
    };
    Ok(digests.iter().zip(answer.lines()).filter_map(size).collect())
}

/// Returns the sizes of files by digest. Missing files are fetched first.
pub(super) async fn fetched_sizes<'a>(
    repository: &Repository<'_>,
    digests: &[&'a str],
) -> Result<HashMap<&'a str, u64>, SourceError> {
    let mut known = sizes(repository, digests).await?;
    let missing: Vec<&str> =
        digests.iter().copied().filter(|digest| !known.contains_key(*digest)).collect();
    if !missing.is_empty() {
        repository.fetch_files(&missing).await?;
        known.extend(sizes(repository, &missing).await?);
    }
    Ok(known)
}

/// The bytes of several files.
#[derive(Debug, Default)]
pub(super) struct Blobs {
    answer: Vec<u8>,
    places: HashMap<String, Range<usize>>,
}

impl Blobs {
    /// Reads cached files with this total size.
    pub(super) async fn read(
        repository: &Repository<'_>,
        digests: &[&str],
        bytes: u64,
    ) -> Result<Self, SourceError> {
        if digests.is_empty() {
            return Ok(Self::default());
        }
        // Each file has a header line and a line break after it.
        let limit = usize::try_from(bytes).unwrap_or(usize::MAX) + digests.len() * 128;
        let arguments = ["cat-file", "--buffer", "--batch"];
        let answer = repository.call_for(&arguments, &lines(digests), limit).await?;
        let mut places = HashMap::with_capacity(digests.len());
        let mut start = 0;
        while let Some((digest, content)) = next_file(&answer, start) {
            start = content.end + 1;
            places.insert(digest.to_owned(), content);
        }
        Ok(Self { answer, places })
    }

    pub(super) fn get(&self, digest: &str) -> Option<&[u8]> {
        self.answer.get(self.places.get(digest)?.clone())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.places.iter().map(|(digest, at)| (digest.as_str(), &self.answer[at.clone()]))
    }
}

/// Parses `digest type size`, a line feed, the bytes, and a line feed.
fn next_file(answer: &[u8], start: usize) -> Option<(&str, Range<usize>)> {
    let rest = answer.get(start..)?;
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let head = str::from_utf8(&rest[..end]).ok()?;
    let (digest, size) = head.split_once(" blob ")?;
    let from = start + end + 1;
    let to = from.checked_add(size.parse().ok()?)?;
    (to < answer.len()).then_some((digest, from..to))
}

/// Returns each digest once, in the order of first occurrence: neighboring files are also stored
/// together in git packs.
pub(super) fn distinct<'a>(digests: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = HashSet::new();
    digests.filter(|digest| seen.insert(*digest)).collect()
}

fn lines(digests: &[&str]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(digests.len() * 41);
    for digest in digests {
        lines.extend_from_slice(digest.as_bytes());
        lines.push(b'\n');
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(paths: &[&str]) -> TreeEntries {
        let line = |path: &&str| format!("100644 blob {}\t{path}\0", "a".repeat(40));
        TreeEntries::parse(paths.iter().map(line).collect::<String>().into_bytes())
    }

    #[test]
    fn entries_below_folder_are_found() {
        let entries = entries(&["a/b/c", "a.b", "a/b.md", "ab/c", "a-b/c", "a/b-c/d"]);
        let below = |folder: &str| -> Vec<_> { entries.below(folder).map(|e| e.path).collect() };
        assert_eq!(below("a"), ["a/b-c/d", "a/b.md", "a/b/c"]);
        assert_eq!(below("a/b"), ["a/b/c"]);
        assert_eq!(below("").len(), 6);
        assert_eq!(below("b"), [""; 0]);
        assert!(entries.is_folder("ab") && !entries.is_folder("a.b"));
        let found = entries.get("a/b.md").unwrap();
        assert_eq!((found.kind, found.digest.len()), (ObjectKind::File, 40));
        assert!(entries.get("a/b").is_none() && entries.get("z").is_none());
    }

    #[test]
    fn files_are_parsed_from_git_output() {
        let answer = b"aa blob 3\nx\ny\nbb missing\n".to_vec();
        assert_eq!(next_file(&answer, 0), Some(("aa", 10..13)));
        assert_eq!(next_file(&answer, 14), None);
        assert_eq!(next_file(b"aa blob 3\nx", 0), None);
    }
}
