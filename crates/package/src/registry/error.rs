//! Errors of registries.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use savoir_lint::words;
use semver::Version;
use serde_json::Value;
use thiserror::Error;

use super::{Name, NameError, wire::TakenDownLine};
use crate::{
    SummaryError, archive::ArchiveError, limits::MAX_SHOWN_BYTES, source::SourceError,
    trust::SignatureError,
};

/// One version of a skill in one registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    pub name: Name,
    pub version: Version,
    /// The address of the registry.
    pub registry: String,
}

impl Release {
    pub(super) fn new(name: &Name, version: &Version, registry: String) -> Self {
        Self { name: name.clone(), version: version.clone(), registry }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {} in `{}`", self.name, self.version, self.registry)
    }
}

/// An error of a registry, or of the client. Most messages include a suggestion.
#[derive(Debug, Error)]
pub enum RegistryError {
    /// The registry cannot be reached, times out, sends too much, or must not be contacted.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A name is not valid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The address of a registry is not valid.
    #[error("`{}` is not the address of a registry: {why}; write it as https://host/registry", text.escape_debug())]
    Address { text: String, why: &'static str },
    /// A token has invalid characters.
    #[error("this is not a token: it has letters, digits and signs, and nothing else")]
    Token,
    /// No registry is configured.
    #[error("no registry is set for `{0}`")]
    None(String),
    /// Registries are configured, but none of them may be asked about this name.
    #[error(
        "no registry is asked about `{0}`: those that are set have other `namespaces`; add `{own}` \
         to those of its registry, set one without `namespaces`, or one with `fallback = true`, or \
         give --registry",
        own = .0.owner()
    )]
    NobodyAsked(Name),
    /// No registry of that name is configured.
    #[error("there is no registry `{}`; {}", name.escape_debug(), known_names(known))]
    NoSuchRegistry { name: String, known: Vec<String> },
    /// Two registries own the same namespace, so that its skills are ambiguous.
    #[error(
        "the namespace `{namespace}` belongs to `{first}` and to `{second}`; it can belong to one \
         registry only: remove it from the other"
    )]
    TwoOwners { namespace: String, first: String, second: String },
    /// A skill is requested from a registry to which its namespace does not belong.
    #[error("`{name}` belongs to `{owner}` and is not taken from `{other}`; remove one of the two")]
    NotItsOwn { name: Name, owner: String, other: String },
    /// A dependency exists in the registry of the dependent skill, but would come from another one.
    #[error(
        "`{needing}` of {home} needs `{name}`, which is there and at {other}, and nobody said whose is \
         meant; add `{own}` to the `namespaces` of one of them in `[registries]`",
        own = name.owner()
    )]
    TwoHomes { name: Name, needing: Name, home: String, other: String },
    /// Skills of a namespace came from several registries.
    #[error(
        "skills of `{0}` came from several registries, so that nobody knows which one is asked; write \
         `{0}` into the `namespaces` of one of them in `[registries]`, or give --registry"
    )]
    SplitNamespace(String),
    /// There is no registry at an address.
    #[error(
        "`{address}` is not a registry: there is no {address}/index/v1/config.json; the address of a \
         Savoir registry ends with /registry"
    )]
    NotARegistry { address: String, instead: Option<String> },
    /// The index format is newer than this version knows.
    #[error(
        "`{address}` has an index of version {version}; a newer version of this program reads it"
    )]
    Format { address: String, version: u32 },
    /// The registry is a mirror of files without an API.
    #[error(
        "`{0}` is a copy that has files only, and can neither search nor publish; ask the registry \
         that it was made from"
    )]
    FilesOnly(String),
    /// The registry does not have a skill.
    #[error("`{registry}` has no skill `{name}`; check the name, or search for it")]
    Unknown { name: Name, registry: String },
    /// No version of a skill is in the range.
    #[error("`{registry}` has no version of `{name}` that is {range}; choose another range")]
    NoFit { name: Name, range: String, registry: String },
    /// The registry does not have a namespace.
    #[error("`{registry}` has no namespace `{namespace}`; check the name")]
    NoNamespace { namespace: String, registry: String },
    /// The registry took a version down.
    #[error(
        "{of} was taken down{}; it can no longer be installed: choose another version, or do without it",
        reason_suffix(reason.as_deref())
    )]
    TakenDown {
        of: Box<Release>,
        /// The reason, if the registry stated one.
        reason: Option<String>,
    },
    /// A registry that only a lock names did not answer about some skills.
    #[error("{registry} was asked about {}: {error}", quoted_names(names))]
    NoAnswer { registry: String, names: Vec<Name>, error: Box<Self> },
    /// A registry whose answer is not needed did not answer in time.
    #[error("it did not answer within {0} s")]
    Late(u64),
    /// The registry does not have a version.
    #[error("there is no {0}; choose another version")]
    NoVersion(Box<Release>),
    /// The storage of the registry does not have an archive that its index names.
    #[error(
        "the storage of the registry (`{place}`) lacks the archive of {of}, which its index names; \
         tell who runs the registry, or choose another version"
    )]
    Lost { of: Box<Release>, place: String },
    /// An answer is malformed.
    #[error("`{address}` cannot be read: {why}; tell who runs the registry")]
    Malformed { address: String, why: String },
    /// There are more dependencies than any real skill has.
    #[error("more than {0} skills need each other; ask for fewer at once")]
    TooMany(usize),
    /// The registry refused a request.
    #[error("{}", refusal_message(.address, *.status, .message.as_deref()))]
    Refused {
        address: String,
        status: u16,
        code: Option<String>,
        /// The reason code of the registry, if one error code has several reasons.
        reason: Option<Box<str>>,
        message: Option<String>,
        findings: Box<[Value]>,
    },
    /// A downloaded file differs from the index.
    #[error(
        "{of} is not what the index says: {what} is {found} instead of {expected}; nothing was \
         installed: try again, and if it stays so tell who runs the registry"
    )]
    Bytes { of: Box<Release>, what: &'static str, expected: String, found: String },
    /// An archive was rejected.
    #[error("{of} cannot be unpacked: {error}")]
    Archive { of: Box<Release>, error: ArchiveError },
    /// The files are not a valid skill.
    #[error("{of} cannot be used: {error}")]
    SkillSummary { of: Box<Release>, error: Box<SummaryError> },
    /// A signature from the registry cannot be read.
    #[error("{of} is not taken: {error}; tell who runs the registry")]
    Signature { of: Box<Release>, error: Box<SignatureError> },
    /// The files have other metadata than the index.
    #[error(
        "{of} is not taken: the index says {expected}, its files say {found}; tell who runs the \
         registry"
    )]
    Content { of: Box<Release>, expected: String, found: String },
    /// A published version changed after it was locked.
    #[error(
        "{of} was changed after it was locked: its files are {found} instead of {locked}; published \
         versions never change: ask who runs the registry, or update to another version"
    )]
    Changed { of: Box<Release>, locked: String, found: String },
    /// A published version changed after it was mirrored.
    #[error(
        "{of} was changed after it was copied: its archive has the digest {found} instead of \
         {copied}; published versions never change: ask who runs the registry; the copy keeps what \
         it has"
    )]
    ChangedCopy { of: Box<Release>, copied: String, found: String },
    /// A mirrored version is no longer in the registry, which does not state why.
    #[error(
        "{of} is not there any more, and the registry does not say why: ask who runs it; the copy \
         keeps it for those who have it, and says that it is withdrawn"
    )]
    DroppedCopy { of: Box<Release> },
    /// A version that was taken down is in the registry again.
    #[error(
        "{of} was taken down, and the registry has it again: what was taken down never comes back; the \
         copy goes on saying so"
    )]
    ReturnedCopy { of: Box<Release> },
    /// A locked skill is not from a registry.
    #[error("`{0}` is not locked from a registry")]
    NotFromARegistry(String),
    /// Another program is copying into the folder.
    #[error("another program copies a registry into `{}`; wait until it is done", .0.display())]
    Busy(PathBuf),
    /// The data is not in the cache, and there is no network.
    #[error("{0} was not fetched before, and nobody is asked; run it once without --offline")]
    Offline(String),
    /// The operating system returned an error.
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

impl RegistryError {
    /// A stable error code for programs: the registry's own code, if it sent one.
    pub fn code(&self) -> &str {
        match self {
            Self::Source(error) => error.code(),
            Self::Name(error) => error.code(),
            Self::Address { .. } => "invalid_registry",
            Self::Token => "invalid_token",
            Self::None(_) | Self::NobodyAsked(_) => "no_registry",
            Self::NoSuchRegistry { .. } => "unknown_registry",
            Self::TwoOwners { .. } => "namespace_conflict",
            Self::NotItsOwn { .. } => "wrong_registry",
            Self::NotARegistry { .. } => "not_a_registry",
            Self::Format { .. } => "index_version",
            Self::FilesOnly(_) => "files_only",
            Self::Unknown { .. } => "unknown_skill",
            Self::TwoHomes { .. } | Self::SplitNamespace(_) => "two_registries",
            Self::NoNamespace { .. } => "unknown_namespace",
            Self::NoVersion(_) | Self::NoFit { .. } => "unknown_version",
            Self::TakenDown { .. } => "taken_down",
            Self::Lost { .. } => "archive_lost",
            Self::Late(_) => "unreachable",
            Self::NoAnswer { error, .. } => error.code(),
            Self::Malformed { .. } => "answer_malformed",
            Self::TooMany(_) => "too_large",
            Self::Refused { code: Some(code), .. } => code,
            Self::Refused { .. } => "http_status",
            Self::Bytes { .. } => "digest_mismatch",
            Self::Archive { error, .. } => error.code(),
            Self::SkillSummary { error, .. } => error.code(),
            Self::Signature { error, .. } => error.code(),
            Self::Content { .. } => "content_mismatch",
            Self::Changed { .. } | Self::ChangedCopy { .. } => "version_changed",
            Self::DroppedCopy { .. } => "version_dropped",
            Self::ReturnedCopy { .. } => "version_returned",
            Self::NotFromARegistry(_) => "not_from_a_registry",
            Self::Busy(_) => "busy",
            Self::Offline(_) => "offline",
            Self::Io { .. } => "io",
        }
    }

    /// Creates the error from the response of a server, in any of the formats that Savoir servers
    /// use.
    pub(super) fn refused(address: String, status: u16, body: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let first = |pointers: &[&str]| {
            let mut found = pointers.iter().filter_map(|pointer| body.pointer(pointer));
            found.find_map(Value::as_str).map(printable)
        };
        let is_word = |code: &String| {
            !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        };
        let code = first(&["/error/code"]).filter(is_word);
        let reason = first(&["/error/reason"]).filter(is_word).map(Into::into);
        let places = ["/error/message", "/error", "/detail/message", "/detail", "/detail/0/msg"];
        let message = first(&places);
        let findings = body.pointer("/error/findings").and_then(Value::as_array);
        let findings = findings.into_iter().flatten().take(MAX_FINDINGS).cloned().collect();
        Self::Refused { address, status, code, reason, message, findings }
    }

    /// The reason code of the registry, if it sent one.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Refused { reason, .. } => reason.as_deref(),
            _ => None,
        }
    }

    /// The findings of the registry in a rejected skill.
    pub fn findings(&self) -> &[Value] {
        match self {
            Self::Refused { findings, .. } => findings,
            Self::NoAnswer { error, .. } => error.findings(),
            _ => &[],
        }
    }

    pub(super) fn no_version(name: &Name, version: &Version, registry: String) -> Self {
        Self::NoVersion(Box::new(Release::new(name, version, registry)))
    }

    /// Creates the error for a version that was taken down.
    pub fn taken_down(gone: &TakenDownLine, registry: String) -> Self {
        let reason = gone.withdrawn_reason.as_deref().map(printable);
        Self::TakenDown { of: Box::new(Release::new(&gone.name, &gone.version, registry)), reason }
    }

    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Io { path, error }
    }
}

fn known_names(known: &[String]) -> String {
    if known.is_empty() {
        return "none is set".to_owned();
    }
    let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    format!("there are {}", words::and(&known))
}

fn reason_suffix(reason: Option<&str>) -> String {
    reason.map(|reason| format!(": {}", reason.trim_end_matches('.'))).unwrap_or_default()
}

/// Lists up to three names, and the number of further ones.
fn quoted_names(names: &[Name]) -> String {
    let mut few: Vec<String> = names.iter().take(3).map(|name| format!("`{name}`")).collect();
    if names.len() > few.len() {
        few.push(format!("{} more", names.len() - few.len()));
    }
    words::and(&few)
}

fn refusal_message(address: &str, status: u16, message: Option<&str>) -> String {
    let hint = match status {
        401 => "; log in with `savoir login`",
        429 => "; wait a little and try again",
        500.. => "; the registry has a problem: try again later",
        _ => "",
    };
    let message = message.map(|message| message.trim_end_matches('.').to_owned());
    let message = message.unwrap_or_else(|| format!("it answers {status}"));
    format!("`{address}` refuses: {message}{hint}")
}

/// Maximum number of findings of one refusal.
const MAX_FINDINGS: usize = 200;

/// Makes untrusted text safe to print: one line, without control characters, and shortened.
pub(super) fn printable(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let text: String = text.chars().map(|c| if hidden(c) { ' ' } else { c }).collect();
    let end = text.floor_char_boundary(MAX_SHOWN_BYTES);
    if end < text.len() { format!("{}…", text[..end].trim()) } else { text.trim().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_bodies_of_all_shapes_are_read() {
        let refused = |status, body: &str| {
            let error =
                RegistryError::refused("https://x.example/a".into(), status, body.as_bytes());
            (error.code().to_owned(), error.to_string())
        };
        let (code, said) =
            refused(409, r#"{"error":{"code":"version_exists","message":"1.0.0 is there."}}"#);
        assert_eq!(code, "version_exists");
        assert_eq!(said, "`https://x.example/a` refuses: 1.0.0 is there");
        let (code, said) = refused(401, r#"{"detail":"Invalid email or password"}"#);
        assert_eq!(code, "http_status");
        assert!(said.ends_with("refuses: Invalid email or password; log in with `savoir login`"));
        let (_, said) = refused(422, r#"{"detail":[{"type":"enum","msg":"One of 'a', 'b'."}]}"#);
        assert!(said.ends_with("refuses: One of 'a', 'b'"), "{said}");
        let (_, said) = refused(429, r#"{"error":"Rate limit exceeded"}"#);
        assert!(said.contains("Rate limit exceeded; wait"), "{said}");
        let (_, said) = refused(503, "<html>");
        assert!(said.contains("it answers 503; the registry has a problem"), "{said}");
        let (code, said) =
            refused(400, r#"{"error":{"code":"Bad Code!","message":"a\u001b[31m\nb\u202ec"}}"#);
        assert_eq!((code.as_str(), said.ends_with("a [31m b c")), ("http_status", true), "{said}");
    }

    #[test]
    fn remote_texts_are_shortened() {
        let long = printable(&"ä".repeat(MAX_SHOWN_BYTES));
        assert!(long.len() <= MAX_SHOWN_BYTES + 3 && long.ends_with('…'));
    }
}
