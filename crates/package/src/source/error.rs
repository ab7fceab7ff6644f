use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use thiserror::Error;

use super::{Commit, Digest, GitUrl};
use crate::{TreeError, archive::ArchiveError, limits::MAX_WALKED};

/// Why a source gives no skill, and the way out.
#[derive(Debug, Error)]
pub enum SourceError {
    /// What was typed is no source.
    #[error("`{}` is not a source: {why}", text.escape_debug())]
    Text {
        /// What was typed.
        text: String,
        /// What is wrong.
        why: String,
    },
    /// A line of another installer asks for what is not known.
    #[error("`{}` is not understood: {why}", line.escape_debug())]
    Pasted {
        /// The line.
        line: String,
        /// What is wrong.
        why: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// What was typed could mean two things.
    #[error("`{text}` can mean two things; write `{first}` or `{second}`")]
    Ambiguous {
        /// What was typed.
        text: String,
        /// One way to write it.
        first: String,
        /// The other.
        second: String,
    },
    /// There is no such file or folder.
    #[error("there is no `{}`; check the path", .0.display())]
    NoPath(PathBuf),
    /// A registry has it, which is asked elsewhere.
    #[error("`{0}` is a skill of a registry, and no registry is set")]
    Registry(String),
    /// There is no skill there.
    #[error("`{place}` has no SKILL.md; name a folder that has one, or a Markdown file")]
    NoSkill {
        /// Where.
        place: String,
    },
    /// It has too many files to look through.
    #[error(
        "`{}` has more than {MAX_WALKED} files and folders; name a folder further inside",
        .0.display()
    )]
    TooManyFiles(PathBuf),
    /// A page for people came instead of a file.
    #[error(
        "`{place}` is a page for a browser, neither an archive nor Markdown; \
         give the address of the file itself"
    )]
    Page {
        /// What was loaded.
        place: String,
    },
    /// There is too much of it.
    #[error("`{place}` has more than {limit} bytes, which is too much for skills")]
    TooLarge {
        /// What.
        place: String,
        /// How many bytes are read.
        limit: u64,
    },
    /// An archive is refused.
    #[error("`{place}` cannot be read: {error}")]
    Archive {
        /// Which.
        place: String,
        /// Why.
        error: ArchiveError,
    },
    /// Its files cannot be a skill's.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// Bytes are not those that were expected.
    #[error(
        "`{place}` is not what was expected: its digest is {found} instead of {expected}; \
         if you trust the change, take the new digest, otherwise ask who offers it"
    )]
    Digest {
        /// What was loaded.
        place: String,
        /// What it should be.
        expected: Digest,
        /// What it is.
        found: Digest,
    },
    /// A host does not answer.
    #[error("`{host}` cannot be reached: {why}; check the name, the network and the proxy")]
    Unreachable {
        /// Which.
        host: String,
        /// What the network said.
        why: String,
    },
    /// Something took too long.
    #[error("`{place}` did not answer within {} seconds; try again later", .waited.as_secs())]
    TimedOut {
        /// What was asked.
        place: String,
        /// How long.
        waited: Duration,
    },
    /// Something comes, and too little of it.
    #[error(
        "`{place}` sends too slowly: {bytes} bytes came in {} seconds, and less than {least} in a \
         second are not waited for; try again later, or over another line", .waited.as_secs()
    )]
    TooSlow {
        /// What was asked.
        place: String,
        /// How many bytes came lately.
        bytes: u64,
        /// In how long.
        waited: Duration,
        /// How many bytes of a second are enough.
        least: u64,
    },
    /// An address must not be asked.
    #[error("`{address}` is not asked: {why}")]
    Address {
        /// Which.
        address: String,
        /// Why.
        why: &'static str,
    },
    /// A server refused.
    #[error("`{address}` answers {status}{}", way_out(*status))]
    Status {
        /// What was asked.
        address: String,
        /// The status of HTTP.
        status: u16,
    },
    /// A site lists no skills.
    #[error(
        "`{0}` lists no skills in /.well-known/agent-skills/index.json; for a repository write \
         `git+{0}`, for a file `url+{0}`"
    )]
    NoIndex(String),
    /// A list of skills cannot be read.
    #[error("the list of skills `{address}` cannot be read: {why}; tell who runs the site")]
    Index {
        /// Where.
        address: String,
        /// What is wrong.
        why: String,
    },
    /// A list of skills is of a kind that came later.
    #[error(
        "the list of skills `{address}` has the schema `{}`, which is not known; \
         a newer version of this program may read it", schema.escape_debug()
    )]
    Schema {
        /// Where.
        address: String,
        /// What it calls itself.
        schema: String,
    },
    /// A list of skills does not have one.
    #[error("`{address}` no longer has a skill `{name}`; list its skills and choose another")]
    NotListed {
        /// Where.
        address: String,
        /// Which.
        name: String,
    },
    /// There is no git.
    #[error("`{0}` was not found, which repositories need; install git")]
    NoGit(String),
    /// A repository is not there, or not for everyone.
    #[error(
        "`{0}` is not a repository, or one that needs a login; check the address, or log in with \
         git's credential helper or an SSH key and try `git ls-remote {0}`"
    )]
    NoRepository(GitUrl),
    /// A host of a repository is not known to SSH.
    #[error("SSH does not know the host of `{0}`; connect once with ssh and check its key")]
    HostKey(GitUrl),
    /// A repository has no such tag, branch or commit.
    #[error("`{url}` has no tag, branch or commit `{}`{}", reference.escape_debug(), similar_ones(similar))]
    NoReference {
        /// Which repository.
        url: GitUrl,
        /// What was asked for.
        reference: String,
        /// What resembles it.
        similar: Vec<String>,
    },
    /// A repository has nothing yet.
    #[error("`{0}` has no commits yet")]
    Empty(GitUrl),
    /// A commit is gone.
    #[error(
        "`{url}` no longer has the commit {commit}; its history was rewritten: look at what \
         changed and update the skill"
    )]
    NoCommit {
        /// Which repository.
        url: GitUrl,
        /// Which commit.
        commit: Commit,
    },
    /// A commit has no such path.
    #[error("`{url}` has no `{}`{}", path.escape_debug(), similar_ones(similar))]
    NoPathInside {
        /// Which repository.
        url: GitUrl,
        /// What was asked for.
        path: String,
        /// Skills that resemble it.
        similar: Vec<String>,
    },
    /// A tag is not where it was.
    #[error(
        "the tag `{tag}` of `{url}` was moved from {locked} to {now}; look at what changed and \
         update the skill, or pin the commit {locked}"
    )]
    TagMoved {
        /// Which repository.
        url: GitUrl,
        /// Which tag.
        tag: String,
        /// The commit that the lock has.
        locked: Commit,
        /// The commit that it is at, if it is still there.
        now: TagLocation,
    },
    /// A part of a skill is another repository.
    #[error("`{}` is a submodule, another repository, which is not fetched", .0.escape_debug())]
    Submodule(String),
    /// A file of a skill is kept elsewhere.
    #[error("`{}` is kept in Git LFS, which is not fetched; ask for the file itself", .0.escape_debug())]
    Lfs(String),
    /// Git failed in another way.
    #[error("git failed for `{url}`: {message}")]
    Git {
        /// Which repository.
        url: GitUrl,
        /// What it said, in short.
        message: String,
    },
    /// The system refused.
    #[error("{}: {error}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is not in the cache, and nobody is asked.
    #[error("{0} is not in the cache, and no server is asked")]
    Offline(String),
    /// One error that is that of many skills.
    #[error(transparent)]
    Shared(Arc<Self>),
    /// No client for HTTP can be made.
    #[error(
        "no address can be asked: {0}; are the certificates of the system installed \
         (package `ca-certificates`)?"
    )]
    Client(String),
}

/// Where a tag is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagLocation {
    /// At another commit.
    At(Commit),
    /// Nowhere.
    Gone,
}

impl std::fmt::Display for TagLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::At(commit) => commit.fmt(f),
            Self::Gone => f.write_str("nowhere"),
        }
    }
}

impl SourceError {
    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Text { .. } => "source_text",
            Self::Pasted { .. } => "pasted_line",
            Self::Ambiguous { .. } => "source_ambiguous",
            Self::NoPath(_) => "no_path",
            Self::Registry(_) => "no_registry",
            Self::NoSkill { .. } => "no_skill",
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

    /// What to do about it, where the message does not say so.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Pasted { hint, .. } => Some(hint),
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

    /// The same error for many skills.
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

fn way_out(status: u16) -> &'static str {
    match status {
        401 | 403 | 407 => ": it needs a login; load the file yourself and give its path",
        404 | 410 => ": there is nothing; check the address",
        429 => ": too many requests; try again later",
        500.. => ": the server has a problem; try again later",
        _ => "",
    }
}
