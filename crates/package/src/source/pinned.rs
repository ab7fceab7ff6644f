//! Defines the exact source of a skill, as a lock records it.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use url::Url;

use super::{Commit, Digest, GitSource, GitUrl, Source, SourceError};

/// The exact source of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PinnedSource {
    /// A folder, an archive or a Markdown file.
    Path {
        /// The folder, the archive or the Markdown file.
        path: PathBuf,
        /// The skill's folder in the archive; empty for the root.
        inside: String,
    },
    /// A downloaded file.
    Url {
        url: Url,
        /// The digest of the file.
        digest: Digest,
        /// The skill's folder in the archive; empty for the root.
        inside: String,
    },
    /// A commit of a repository.
    Git(PinnedGitSource),
    /// An entry in the list of a site.
    WellKnown {
        /// The address of the list.
        index: Url,
        /// The name of the entry.
        name: String,
        /// The digest of the file; lists of version 0.1 have none.
        digest: Option<Digest>,
    },
}

/// A skill in a commit of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedGitSource {
    pub url: GitUrl,
    /// The reference that led to the commit; `None` for the default branch.
    pub reference: Option<Reference>,
    pub commit: Commit,
    /// The skill's folder, or a Markdown file; empty for the root.
    pub path: String,
}

/// A reference to a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A branch, which may move.
    Branch(String),
    /// A tag, which should not move.
    Tag(String),
    /// The commit itself.
    Commit(Commit),
}

impl PinnedSource {
    /// Parses the text in a lock. Relative paths start at `base`.
    pub fn parse(text: &str, base: &Path) -> Result<Self, SourceError> {
        let wrong = |why: &str| SourceError::text(text, why);
        let (kind, rest) = text.split_once('+').ok_or_else(|| wrong("its kind is missing"))?;
        let (place, exact) = rest.split_once('#').unwrap_or((rest, ""));
        match kind {
            "path" => {
                let path = base.join(decode(place));
                Ok(Self::Path { path, inside: decode(exact) })
            }
            "url" => {
                let (digest, inside) = split_digest(exact);
                let digest = digest.parse().map_err(|error| wrong(&format!("{error}")))?;
                Ok(Self::Url { url: url(text, place)?, digest, inside: decode(inside) })
            }
            "git" => {
                let (url, query) = place.split_once('?').unwrap_or((place, ""));
                let (commit, path) = exact.split_once(':').unwrap_or((exact, ""));
                let commit = Commit::parse(commit).ok_or_else(|| wrong("it has no commit"))?;
                let reference = reference(query, &commit);
                let reference = reference.map_err(|()| wrong("its reference is not known"))?;
                let (url, path) = (GitUrl::parse(url)?, decode(path));
                Ok(Self::Git(PinnedGitSource { url, reference, commit, path }))
            }
            "well-known" => {
                let (name, digest) = exact.split_once(':').unwrap_or((exact, ""));
                let digest = Some(digest).filter(|digest| !digest.is_empty());
                let digest = digest.map(str::parse).transpose();
                let digest = digest.map_err(|error| wrong(&format!("{error}")))?;
                Ok(Self::WellKnown { index: url(text, place)?, name: decode(name), digest })
            }
            _ => Err(wrong("it begins with none of `path+`, `url+`, `git+`, `well-known+`")),
        }
    }

    /// Formats the source for a lock. Paths below `base` are relative, so that both can be moved.
    pub fn text(&self, base: &Path) -> String {
        match self {
            Self::Path { path, inside } => {
                let path = match path.strip_prefix(base) {
                    Ok(below) => format!("./{}", below.display()),
                    Err(_) => path.display().to_string(),
                };
                let inside =
                    if inside.is_empty() { String::new() } else { format!("#{}", encode(inside)) };
                format!("path+{}{inside}", encode(&path))
            }
            Self::Url { url, digest, inside } => {
                format!("url+{url}#{digest}{}", after_colon(inside))
            }
            Self::Git(place) => {
                let reference = match &place.reference {
                    None => String::new(),
                    Some(Reference::Branch(name)) => format!("?branch={}", encode(name)),
                    Some(Reference::Tag(name)) => format!("?tag={}", encode(name)),
                    Some(Reference::Commit(commit)) => format!("?rev={commit}"),
                };
                let path = after_colon(&place.path);
                format!("git+{}{reference}#{}{path}", place.url, place.commit)
            }
            Self::WellKnown { index, name, digest } => {
                let digest = digest.as_ref().map(|digest| format!(":{digest}"));
                let name = encode(name).replace(':', "%3A");
                format!("well-known+{index}#{name}{}", digest.unwrap_or_default())
            }
        }
    }

    /// Returns the source in which to look for a newer version.
    pub fn source(&self) -> Source {
        match self {
            Self::Path { path, .. } if path.is_dir() => Source::Folder(path.clone()),
            Self::Path { path, .. } => Source::File(path.clone()),
            Self::Url { url, .. } => Source::Url { url: url.clone(), digest: None },
            Self::Git(place) => Source::Git(GitSource {
                url: place.url.clone(),
                reference: place.reference.as_ref().map(|reference| match reference {
                    Reference::Branch(name) => format!("refs/heads/{name}"),
                    Reference::Tag(name) => format!("refs/tags/{name}"),
                    Reference::Commit(commit) => commit.to_string(),
                }),
                path: Some(place.path.clone()).filter(|path| !path.is_empty()),
            }),
            Self::WellKnown { index, .. } => Source::WellKnown(index.clone()),
        }
    }
}

fn url(text: &str, url: &str) -> Result<Url, SourceError> {
    Url::parse(url).map_err(|error| SourceError::text(text, error.to_string()))
}

/// Splits `sha256:…` from the text after the next colon.
fn split_digest(text: &str) -> (&str, &str) {
    match text.match_indices(':').nth(1) {
        Some((end, _)) => (&text[..end], &text[end + 1..]),
        None => (text, ""),
    }
}

fn reference(query: &str, commit: &Commit) -> Result<Option<Reference>, ()> {
    match query.split_once('=') {
        None if query.is_empty() => Ok(None),
        Some(("branch", name)) => Ok(Some(Reference::Branch(decode(name)))),
        Some(("tag", name)) => Ok(Some(Reference::Tag(decode(name)))),
        Some(("rev", text)) if text == commit.as_str() => {
            Ok(Some(Reference::Commit(commit.clone())))
        }
        _ => Err(()),
    }
}

fn after_colon(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(":{}", encode(text)) }
}

/// Escapes separators and control characters.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '%' | '#' | '?') || c.is_control() {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                // Writing to a string cannot fail.
                let _ = write!(encoded, "%{byte:02X}");
            }
        } else {
            encoded.push(c);
        }
    }
    encoded
}

/// Decodes `%` and two hexadecimal digits; other text stays.
pub(crate) fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = after.get(..2).filter(|_| first == b'%').and_then(byte);
        bytes.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

fn byte(digits: &[u8]) -> Option<u8> {
    let digits = str::from_utf8(digits).ok()?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_sources_round_trip() {
        let base = Path::new("/work/project");
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let digest = format!("sha256:{}", "ab".repeat(32));
        for text in [
            "path+./skills/pdf".to_owned(),
            "path+/elsewhere/a%23b.zip#x/y".to_owned(),
            format!("url+https://host.example/a.zip?x=1#{digest}"),
            format!("url+https://host.example/a.zip#{digest}:skills/a b"),
            format!("git+https://host.example/o/r#{commit}"),
            format!("git+https://host.example/o/r?tag=v1#{commit}:skills/a%3Fb:c"),
            format!("git+git@host.example:o/r.git?branch=a/b%23c#{commit}:x"),
            format!("git+ssh://git@host.example/o/r?rev={commit}#{commit}"),
            "well-known+https://host.example/.well-known/skills/index.json#pdf".to_owned(),
            format!("well-known+https://host.example/.well-known/skills/index.json#pdf:{digest}"),
        ] {
            let place = PinnedSource::parse(&text, base).unwrap();
            assert_eq!(place.text(base), text);
        }
    }

    #[test]
    fn invalid_pinned_sources_are_rejected() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        for text in [
            "pdf".to_owned(),
            "ftp+https://host.example/x".to_owned(),
            "url+https://host.example/a.zip".to_owned(),
            "git+https://host.example/o/r#main".to_owned(),
            "git+https://host.example/o/r".to_owned(),
            format!("git+https://host.example/o/r?x=y#{commit}"),
            format!("git+--upload-pack=x#{commit}"),
            format!("git+ext::sh -c x#{commit}"),
        ] {
            let refused = PinnedSource::parse(&text, Path::new("/"));
            assert_eq!(refused.unwrap_err().code(), "source_text", "{text}");
        }
    }

    #[test]
    fn escapes() {
        assert_eq!(encode("a%b#c\n"), "a%25b%23c%0A");
        assert_eq!(decode("a%25b%23c%0A"), "a%b#c\n");
        assert_eq!(decode("100%, %zz, %ff"), "100%, %zz, %ff");
    }

    proptest::proptest! {
        #[test]
        fn any_pinned_source_round_trips(path in ".{0,20}", tag in ".{1,20}", name in ".{1,20}") {
            let commit = Commit::parse(&"0a".repeat(20)).unwrap();
            let url = GitUrl::parse("https://host.example/o/r").unwrap();
            let reference = Some(Reference::Tag(tag));
            let git = PinnedSource::Git(PinnedGitSource { url, reference, commit, path: path.clone() });
            let digest = Digest::of(b"");
            let url = Url::parse("https://host.example/a.zip").unwrap();
            let file = PinnedSource::Url { url: url.clone(), digest: digest.clone(), inside: path };
            let site = PinnedSource::WellKnown { index: url, name, digest: Some(digest) };
            for place in [git, file, site] {
                let text = place.text(Path::new("/base"));
                proptest::prop_assert_eq!(PinnedSource::parse(&text, Path::new("/base")).unwrap(), place);
            }
        }
    }
}
