//! Objects of a repository: which paths a commit has, and the bytes of files.

use std::collections::{BTreeSet, HashMap};

use super::{Commit, Repository};
use crate::{limits::MAX_TREE_BYTES, source::SourceError};

/// A path of a commit.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) digest: String,
    pub(super) path: String,
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Program,
    Link,
    Submodule,
}

/// The paths of a commit. Those that are no text belong to no skill that can be named.
pub(super) async fn entries(
    repository: &Repository<'_>,
    commit: &Commit,
) -> Result<Vec<Entry>, SourceError> {
    let arguments = ["ls-tree", "-r", "-z", "--full-tree", commit.as_str()];
    let answer = repository.call(&arguments, &[]).await?;
    Ok(answer.split(|byte| *byte == 0).filter_map(entry).collect())
}

/// `mode type digest`, a tab, and the path.
fn entry(line: &[u8]) -> Option<Entry> {
    let (head, path) = String::from_utf8_lossy(line)
        .split_once('\t')
        .map(|(head, path)| (head.to_owned(), path.to_owned()))?;
    let mut words = head.split(' ');
    let kind = match words.next()? {
        "120000" => Kind::Link,
        "160000" => Kind::Submodule,
        "100755" => Kind::Program,
        _ => Kind::File,
    };
    Some(Entry { kind, digest: words.nth(1)?.to_owned(), path })
}

/// The sizes of files by their digests. Those that are not in the cache are fetched first.
pub(super) async fn sizes(
    repository: &Repository<'_>,
    digests: &BTreeSet<&str>,
) -> Result<HashMap<String, u64>, SourceError> {
    let known = known_sizes(repository, digests).await?;
    let missing: Vec<&str> =
        digests.iter().copied().filter(|digest| !known.contains_key(*digest)).collect();
    if missing.is_empty() {
        return Ok(known);
    }
    repository.fetch_files(&missing).await?;
    known_sizes(repository, digests).await
}

async fn known_sizes(
    repository: &Repository<'_>,
    digests: &BTreeSet<&str>,
) -> Result<HashMap<String, u64>, SourceError> {
    let answer = repository.call(&["cat-file", "--batch-check"], &lines(digests)).await?;
    let answer = String::from_utf8_lossy(&answer);
    let sizes = answer.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (digest, kind, size) = (words.next()?, words.next()?, words.next()?);
        (kind == "blob").then(|| Some((digest.to_owned(), size.parse().ok()?)))?
    });
    Ok(sizes.collect())
}

/// The bytes of files that are in the cache, by their digests.
pub(super) async fn read(
    repository: &Repository<'_>,
    digests: &BTreeSet<&str>,
) -> Result<HashMap<String, Vec<u8>>, SourceError> {
    if digests.is_empty() {
        return Ok(HashMap::new());
    }
    // Each file has a line before it and one behind.
    let limit = MAX_TREE_BYTES as usize + digests.len() * 128;
    let answer = repository.call_for(&["cat-file", "--batch"], &lines(digests), limit).await?;
    let mut files = HashMap::new();
    let mut rest = answer.as_slice();
    while let Some((digest, bytes, after)) = next_file(rest) {
        files.insert(digest, bytes.to_vec());
        rest = after;
    }
    Ok(files)
}

/// `digest type size`, a line feed, the bytes, and a line feed.
fn next_file(bytes: &[u8]) -> Option<(String, &[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let head = str::from_utf8(&bytes[..end]).ok()?;
    let (digest, rest) = head.split_once(" blob ")?;
    let (start, size) = (end + 1, rest.parse::<usize>().ok()?);
    let content = bytes.get(start..start.checked_add(size)?)?;
    Some((digest.to_owned(), content, bytes.get(start + size + 1..)?))
}

fn lines(digests: &BTreeSet<&str>) -> Vec<u8> {
    digests.iter().flat_map(|digest| [digest.as_bytes(), b"\n"].concat()).collect()
}
