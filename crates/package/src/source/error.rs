use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use thiserror::Error;

use super::{Commit, Digest, GitUrl};
use crate::{TreeError, archive::ArchiveError, limits::MAX_WALKED};

/// An error while reading a source. Most messages include a suggestion.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The typed text is not a source.
    #[error("`{}` is not a source: {why}", text.escape_debug())]
    Text { text: String, why: String },
    /// A pasted command of another installer has an unknown option or argument.
    #[error("`{}` is not understood: {why}", line.escape_debug())]
    Pasted { line: String, why: String, hint: &'static str },
    /// The typed text is ambiguous.
    #[error("`{text}` can mean two things; write `{first}` or `{second}`")]
    Ambiguous { text: String, first: String, second: String },
    /// The file or folder does not exist.
    #[error("there is no `{}`; check the path", .0.display())]
    NoPath(PathBuf),
    /// The source is a skill of a registry, which this module cannot fetch.
    #[error("`{0}` is a skill of a registry, and no registry is set")]
    Registry(String),
    /// The source has no skill.
    #[error("`{place}` has no SKILL.md; name a folder that has one, or a Markdown file")]
    NoSkill { place: String },
    /// The file is a text that is not a skill.
    #[error("`{place}` is not a skill: it is neither Markdown nor an archive")]
    NoSkillFile { place: String },
    /// A folder has too many files to search.
    #[error(
        "`{}` has more than {MAX_WALKED} files and folders; name a folder further inside",
        .0.display()
    )]
    TooManyFiles(PathBuf),
    /// The server sent an HTML page instead of a file.
    #[error(
        "`{place}` is a page for a browser, neither an archive nor Markdown; \
         give the address of the file itself"
    )]
    Page { place: String },
    /// A file or a repository is too large.
    #[error("`{place}` has more than {limit} bytes, which is too much for skills")]
    TooLarge {
        place: String,
        /// The maximum number of bytes.
        limit: u64,
    },
    /// An archive was rejected.
    #[error("`{place}` cannot be read: {error}")]
    Archive { place: String, error: ArchiveError },
    /// The files cannot be those of a skill.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A file has another digest than expected.
    #[error(
        "`{place}` is not what was expected: its digest is {found} instead of {expected}; \
         if you trust the change, take the new digest, otherwise ask who offers it"
    )]
    Digest { place: String, expected: Digest, found: Digest },
    /// A host cannot be reached.
    #[error("`{host}` cannot be reached: {why}; check the name, the network and the proxy")]
    Unreachable { host: String, why: String },
    /// A request timed out.
    #[error("`{place}` did not answer within {} seconds; try again later", .waited.as_secs())]
    TimedOut { place: String, waited: Duration },
    /// A download is too slow.
    #[error(
        "`{place}` sends too slowly: {bytes} bytes came in {} seconds, and less than {least} in a \
         second are not waited for; try again later, or over another line", .waited.as_secs()
    )]
    TooSlow {
        place: String,
        /// The number of bytes in the last interval.
        bytes: u64,
        waited: Duration,
        /// The minimum number of bytes per second.
        least: u64,
    },
    /// An address must not be contacted.
    #[error("`{address}` is not asked: {why}")]
    Address { address: String, why: &'static str },
    /// A server returned an error status.
    #[error("`{address}` answers {status}{}", status_hint(*status))]
    Status { address: String, status: u16 },
    /// A site has no list of skills.
    #[error(
        "`{0}` lists no skills in /.well-known/agent-skills/index.json; for a repository write \
         `git+{0}`, for a file `url+{0}`"
    )]
    NoIndex(String),
    /// A list of skills is invalid.
    #[error("the list of skills `{address}` cannot be read: {why}; tell who runs the site")]
    Index { address: String, why: String },
    /// A list of skills has a schema that this version does not know.
    #[error(
        "the list of skills `{address}` has the schema `{}`, which is not known; \
         a newer version of this program may read it", schema.escape_debug()
    )]
    Schema { address: String, schema: String },
    /// A list of skills no longer has this skill.
    #[error("`{address}` no longer has a skill `{name}`; list its skills and choose another")]
    NotListed { address: String, name: String },
    /// The program git was not found.
    #[error("`{0}` was not found, which repositories need; install git")]
    NoGit(String),
    /// A repository does not exist, or needs a login.
    #[error(
        "`{0}` is not a repository, or one that needs a login; check the address, or log in with \
         git's credential helper or an SSH key and try `git ls-remote {0}`"
    )]
    NoRepository(GitUrl),
    /// SSH does not know the host key of a repository's host.
    #[error("SSH does not know the host of `{0}`; connect once with ssh and check its key")]
    HostKey(GitUrl),
    /// A repository has no such tag, branch or commit.
    #[error("`{url}` has no tag, branch or commit `{}`{}", reference.escape_debug(), similar_ones(similar))]
    NoReference { url: GitUrl, reference: String, similar: Vec<String> },
    /// The repository has no commits.
    #[error("`{0}` has no commits yet")]
    Empty(GitUrl),
    /// The repository no longer has a commit.
    #[error(
        "`{url}` no longer has the commit {commit}; its history was rewritten: look at what \
         changed and update the skill"
    )]
    NoCommit { url: GitUrl, commit: Commit },
    /// A commit has no such path.
    #[error("`{url}` has no `{}`{}", path.escape_debug(), similar_folders(similar))]
    NoPathInside { url: GitUrl, path: String, similar: Vec<String> },
    /// A tag was moved after the skill was locked.
    #[error(
        "the tag `{tag}` of `{url}` was moved from {locked} to {location}; look at what changed and \
         update the skill, or pin the commit {locked}"
    )]
    TagMoved {
        url: GitUrl,
        tag: String,
        locked: Commit,
        /// The current commit of the tag, if the tag still exists.
        location: TagLocation,
    },
    /// A part of a skill is a submodule, which is not fetched.
    #[error("`{}` is a submodule, another repository, which is not fetched", .0.escape_debug())]
    Submodule(String),
    /// A file of a skill is stored in Git LFS, which is not supported.
    #[error("`{}` is kept in Git LFS, which is not fetched; ask for the file itself", .0.escape_debug())]
    Lfs(String),
    /// Another error of git.
    #[error("git failed for `{url}`: {message}")]
    Git { url: GitUrl, message: String },
    /// The operating system returned an error.
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    /// The data is not in the cache, and there is no network.
    #[error("{0} is not in the cache, and no server is asked")]
    Offline(String),
    /// An error that concerns several skills.
    #[error(transparent)]
    Shared(Arc<Self>),
    /// The HTTP client cannot be created.
    #[error(
        "no address can be asked: {0}; are the certificates of the system installed \
         (package `ca-certificates`)?"
    )]
    Client(String),
}

/// The current location of a moved tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagLocation {
    /// At another commit.
    At(Commit),
    /// The tag no longer exists.
    Deleted,
}

impl std::fmt::Display for TagLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::At(commit) => commit.fmt(f),
            Self::Deleted => f.write_str("nowhere"),
        }
    }
}

impl SourceError {
    /// A stable error code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Text { .. } => "source_text",
            Self::Pasted { .. } => "pasted_line",
            Self::Ambiguous { .. } => "source_ambiguous",
            Self::NoPath(_) => "no_path",
            Self::Registry(_) => "no_registry",
            Self::NoSkill { .. } => "no_skill",
            Self::NoSkillFile { .. } => "no_skill_file",
            Self::TooManyFiles(_) => "too_many_files",
            Self::Page { .. } => "not_a_file",
            Self::TooLarge { .. } => "too_large",
            Self::Archive { error, .. } => error.code(),
            Self::Tree(error) => error.code(),
            Self::Digest { .. } => "digest_mismatch",
            Self::Unreachable { .. } => "unreachable",
            Self::TimedOut { .. } => "timed_out",
            Self::TooSlow { .. } => "too_slow",
            Self::Address { .. } => "address_refused",
            Self::Status { .. } => "http_status",
            Self::NoIndex(_) => "no_index",
            Self::Index { .. } => "index_malformed",
            Self::Schema { .. } => "index_schema",
            Self::NotListed { .. } => "not_listed",
            Self::NoGit(_) => "no_git",
            Self::NoRepository(_) => "no_repository",
            Self::HostKey(_) => "host_key",
            Self::NoReference { .. } => "no_reference",
            Self::Empty(_) => "empty_repository",
            Self::NoCommit { .. } => "no_commit",
            Self::NoPathInside { .. } => "no_path_inside",
            Self::TagMoved { .. } => "tag_moved",
            Self::Submodule(_) => "submodule",
            Self::Lfs(_) => "git_lfs",
            Self::Git { .. } => "git_failed",
            Self::Io { .. } => "io",
            Self::Offline(_) => "offline",
            Self::Shared(error) => error.code(),
            Self::Client(_) => "no_client",
        }
    }

    /// A suggestion to solve the error, if the message has none.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Pasted { hint, .. } => Some(hint),
            Self::NoSkillFile { .. } => Some(
                "name the folder of a skill, a SKILL.md or another .md file, or an archive; a file \
                 of another name must start with frontmatter",
            ),
            Self::Offline(_) => Some("run it once without --offline and SAVOIR_OFFLINE"),
            Self::Shared(error) => error.hint(),
            Self::Git { message, .. } if message.contains("dubious ownership") => Some(
                "if you trust the repository of another user: git config --global --add \
                 safe.directory PATH",
            ),
            Self::Tree(TreeError::Link(_)) => {
                Some("links may lead to files and folders of the same repository only")
            }
            Self::Tree(TreeError::Untracked(_)) => Some(
                "copy the file into the skill folder, or, if it may be shared, add it to the \
                 repository with git add",
            ),
            _ => None,
        }
    }

    /// Returns the same error for several skills.
    pub(super) fn for_each<T>(error: Self, count: usize) -> Vec<Result<T, Self>> {
        let error = Arc::new(error);
        (0..count).map(|_| Err(Self::Shared(Arc::clone(&error)))).collect()
    }

    pub(super) fn text(text: &str, why: impl Into<String>) -> Self {
        Self::Text { text: text.to_owned(), why: why.into() }
    }

    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| match error.kind() {
            io::ErrorKind::NotFound => Self::NoPath(path),
            _ => Self::Io { path, error },
        }
    }
}

fn similar_ones(similar: &[String]) -> String {
    if similar.is_empty() {
        return "; check the spelling".to_owned();
    }
    let names: Vec<_> = similar.iter().map(|name| format!("`{}`", name.escape_debug())).collect();
    format!("; it has {}", names.join(", "))
}

fn similar_folders(similar: &[String]) -> String {
    if similar.is_empty() {
        return "; `savoir install REPOSITORY --list` lists its skills".to_owned();
    }
    let names: Vec<_> = similar.iter().map(|name| format!("`{}`", name.escape_debug())).collect();
    format!("; did you mean {}?", names.join(" or "))
}

fn status_hint(status: u16) -> &'static str {
    match status {
        401 | 403 | 407 => ": it needs a login; load the file yourself and give its path",
        404 | 410 => ": there is nothing; check the address",
        429 => ": too many requests; try again later",
        500.. => ": the server has a problem; try again later",
        _ => "",
    }
}
