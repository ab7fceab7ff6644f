//! Errors of registries.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use savoir_lint::words;
use semver::Version;
use serde_json::Value;
use thiserror::Error;

use super::{Name, NameError, wire::GoneLine};
use crate::{
    SummaryError, archive::ArchiveError, limits::MAX_SHOWN_BYTES, source::SourceError,
    trust::SignatureError,
};

/// One version of a skill in one registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Which skill.
    pub name: Name,
    /// Which version.
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

/// Why a registry gave no answer, or none that is taken; and the way out.
#[derive(Debug, Error)]
pub enum RegistryError {
    /// It cannot be reached, takes too long, sends too much, or must not be asked.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A name is none.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The address of a registry is none.
    #[error("`{}` is not the address of a registry: {why}; write it as https://host/registry", text.escape_debug())]
    Address {
        /// As it was written.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A token is none.
    #[error("this is not a token: it has letters, digits and signs, and nothing else")]
    Token,
    /// There is no registry to ask.
    #[error("no registry is set for `{0}`")]
    None(String),
    /// There are registries, and none of them is asked about a name.
    #[error(
        "no registry is asked about `{0}`: those that are set have other `namespaces`; add `{own}` \
         to those of its registry, set one without `namespaces`, or one with `fallback = true`, or \
         give --registry",
        own = .0.owner()
    )]
    NobodyAsked(Name),
    /// Nobody set a registry of that name.
    #[error("there is no registry `{}`; {}", name.escape_debug(), known_ones(known))]
    NoSuchRegistry {
        /// How it was called.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// Two registries own one namespace, so that nobody knows whose skills are meant.
    #[error(
        "the namespace `{namespace}` belongs to `{first}` and to `{second}`; it can belong to one \
         registry only: remove it from the other"
    )]
    TwoOwners {
        /// Which namespace.
        namespace: String,
        /// One registry.
        first: String,
        /// The other.
        second: String,
    },
    /// A skill is to come from a registry that its namespace does not belong to.
    #[error("`{name}` belongs to `{owner}` and is not taken from `{other}`; remove one of the two")]
    NotItsOwn {
        /// Which skill.
        name: Name,
        /// The registry of its namespace.
        owner: String,
        /// The one that was named.
        other: String,
    },
    /// What a skill needs is in its own registry, and would come from another.
    #[error(
        "`{needing}` of {home} needs `{name}`, which is there and at {other}, and nobody said whose is \
         meant; add `{own}` to the `namespaces` of one of them in `[registries]`",
        own = name.owner()
    )]
    TwoHomes {
        /// What is needed.
        name: Name,
        /// By which skill.
        needing: Name,
        /// The registry of that skill.
        home: String,
        /// The one that the name would come from.
        other: String,
    },
    /// Skills of a namespace came from several registries.
    #[error(
        "skills of `{0}` came from several registries, so that nobody knows which one is asked; write \
         `{0}` into the `namespaces` of one of them in `[registries]`, or give --registry"
    )]
    SplitNamespace(String),
    /// An address has no index.
    #[error(
        "`{address}` is not a registry: there is no {address}/index/v1/config.json; the address of a \
         Savoir registry ends with /registry"
    )]
    NotARegistry {
        /// What was asked.
        address: String,
        /// The address below it at which there is one.
        instead: Option<String>,
    },
    /// An index is of a kind that came later.
    #[error(
        "`{address}` has an index of version {version}; a newer version of this program reads it"
    )]
    Format {
        /// Which registry.
        address: String,
        /// Its version.
        version: u32,
    },
    /// An address has files only.
    #[error(
        "`{0}` is a copy that has files only, and can neither search nor publish; ask the registry \
         that it was made from"
    )]
    FilesOnly(String),
    /// A registry does not know a skill.
    #[error("`{registry}` has no skill `{name}`; check the name, or search for it")]
    Unknown {
        /// Which skill.
        name: Name,
        /// Which registry.
        registry: String,
    },
    /// No version of a skill is in a range.
    #[error("`{registry}` has no version of `{name}` that is {range}; choose another range")]
    NoFit {
        /// Which skill.
        name: Name,
        /// Which versions would do.
        range: String,
        /// Which registry.
        registry: String,
    },
    /// A registry does not know a namespace.
    #[error("`{registry}` has no namespace `{namespace}`; check the name")]
    NoNamespace {
        /// Which namespace.
        namespace: String,
        /// Which registry.
        registry: String,
    },
    /// A registry took a version down.
    #[error(
        "{of} was taken down{}; it can no longer be installed: choose another version, or do without it",
        because(reason.as_deref())
    )]
    TakenDown {
        /// What was taken down.
        of: Box<Release>,
        /// Why, if who did it said so.
        reason: Option<String>,
    },
    /// A registry gave no answer about some skills.
    #[error("{registry} was asked about {}: {error}", listed(names))]
    NoAnswer {
        /// Which registry.
        registry: String,
        /// What it was asked about.
        names: Vec<Name>,
        /// Why it gave none.
        error: Box<Self>,
    },
    /// A registry took too long, where nobody waits for it.
    #[error("it did not answer within {0} s")]
    Late(u64),
    /// A registry does not have a version.
    #[error("there is no {0}; choose another version")]
    NoVersion(Box<Release>),
    /// A registry sends to a storage that does not have what its index names.
    #[error(
        "the storage of the registry (`{place}`) lacks the archive of {of}, which its index names; \
         tell who runs the registry, or choose another version"
    )]
    Lost {
        /// What is missing.
        of: Box<Release>,
        /// The host that it was looked for at.
        place: String,
    },
    /// An answer cannot be read.
    #[error("`{address}` cannot be read: {why}; tell who runs the registry")]
    Malformed {
        /// What was asked.
        address: String,
        /// What is wrong with the answer.
        why: String,
    },
    /// Skills need more other skills than any real ones do.
    #[error("more than {0} skills need each other; ask for fewer at once")]
    TooMany(usize),
    /// A registry refused.
    #[error("{}", refusal(.address, *.status, .message.as_deref()))]
    Refused {
        /// What was asked.
        address: String,
        /// The status of HTTP.
        status: u16,
        /// Its word for programs.
        code: Option<String>,
        /// Its word for why, where one code has several.
        reason: Option<Box<str>>,
        /// Its sentence for people.
        message: Option<String>,
        /// What it found in a skill, as it says it.
        findings: Box<[Value]>,
    },
    /// Bytes are not those that the index promised.
    #[error(
        "{of} is not what the index says: {what} is {found} instead of {expected}; nothing was \
         installed: try again, and if it stays so tell who runs the registry"
    )]
    Bytes {
        /// What was fetched.
        of: Box<Release>,
        /// What was compared.
        what: &'static str,
        /// What the index says.
        expected: String,
        /// What came.
        found: String,
    },
    /// An archive is refused.
    #[error("{of} cannot be unpacked: {error}")]
    Archive {
        /// What was fetched.
        of: Box<Release>,
        /// Why.
        error: ArchiveError,
    },
    /// Its files are no skill.
    #[error("{of} cannot be used: {error}")]
    SkillSummary {
        /// What was fetched.
        of: Box<Release>,
        /// Why.
        error: Box<SummaryError>,
    },
    /// A signature that the registry has of it cannot be read.
    #[error("{of} is not taken: {error}; tell who runs the registry")]
    Signature {
        /// What was fetched.
        of: Box<Release>,
        /// Why.
        error: Box<SignatureError>,
    },
    /// The files say something else than the index.
    #[error(
        "{of} is not taken: the index says {expected}, its files say {found}; tell who runs the \
         registry"
    )]
    Content {
        /// What was fetched.
        of: Box<Release>,
        /// What the index says.
        expected: String,
        /// What the files say.
        found: String,
    },
    /// A published version is not what it was when it was locked.
    #[error(
        "{of} was changed after it was locked: its files are {found} instead of {locked}; published \
         versions never change: ask who runs the registry, or update to another version"
    )]
    Changed {
        /// What was locked.
        of: Box<Release>,
        /// What the lock says.
        locked: String,
        /// What the registry says now.
        found: String,
    },
    /// A published version is not what it was when it was copied.
    #[error(
        "{of} was changed after it was copied: its archive has the digest {found} instead of \
         {copied}; published versions never change: ask who runs the registry; the copy keeps what \
         it has"
    )]
    ChangedCopy {
        /// What was copied.
        of: Box<Release>,
        /// SHA-256 of its archive in the copy.
        copied: String,
        /// What the registry says now.
        found: String,
    },
    /// A version that was copied is not in the registry any more, which does not say why.
    #[error(
        "{of} is not there any more, and the registry does not say why: ask who runs it; the copy \
         keeps it for those who have it, and says that it is withdrawn"
    )]
    DroppedCopy {
        /// What was copied.
        of: Box<Release>,
    },
    /// A version that was taken down is in the registry again.
    #[error(
        "{of} was taken down, and the registry has it again: what was taken down never comes back; the \
         copy goes on saying so"
    )]
    ReturnedCopy {
        /// What was taken down.
        of: Box<Release>,
    },
    /// A locked skill is not from a registry.
    #[error("`{0}` is not locked from a registry")]
    NotFromARegistry(String),
    /// Somebody else copies into a folder.
    #[error("another program copies a registry into `{}`; wait until it is done", .0.display())]
    Busy(PathBuf),
    /// Nothing is known without a network.
    #[error("{0} was not fetched before, and nobody is asked; run it once without --offline")]
    Offline(String),
    /// The system refused.
    #[error("{}: {error}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl RegistryError {
    /// A stable word for programs: the registry's own, where it refused with one.
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

    /// What a server said when it refused, in any of the shapes that servers of Savoir have.
    pub(super) fn refused(address: String, status: u16, body: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let first = |pointers: &[&str]| {
            let mut found = pointers.iter().filter_map(|pointer| body.pointer(pointer));
            found.find_map(Value::as_str).map(plain)
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

    /// The word of a registry for why it refuses something, where it has one.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Refused { reason, .. } => reason.as_deref(),
            _ => None,
        }
    }

    /// What a registry found in a skill that it refuses.
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

    /// What is said of a version that was taken down.
    pub fn taken_down(gone: &GoneLine, registry: String) -> Self {
        let reason = gone.withdrawn_reason.as_deref().map(plain);
        Self::TakenDown { of: Box::new(Release::new(&gone.name, &gone.version, registry)), reason }
    }

    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Io { path, error }
    }
}

fn known_ones(known: &[String]) -> String {
    if known.is_empty() {
        return "none is set".to_owned();
    }
    let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    format!("there are {}", words::and(&known))
}

fn because(reason: Option<&str>) -> String {
    reason.map(|reason| format!(": {}", reason.trim_end_matches('.'))).unwrap_or_default()
}

/// A few names, and how many more there are.
fn listed(names: &[Name]) -> String {
    let mut few: Vec<String> = names.iter().take(3).map(|name| format!("`{name}`")).collect();
    if names.len() > few.len() {
        few.push(format!("{} more", names.len() - few.len()));
    }
    words::and(&few)
}

fn refusal(address: &str, status: u16, message: Option<&str>) -> String {
    let way_out = match status {
        401 => "; log in with `savoir login`",
        429 => "; wait a little and try again",
        500.. => "; the registry has a problem: try again later",
        _ => "",
    };
    let message = message.map(|message| message.trim_end_matches('.').to_owned());
    let message = message.unwrap_or_else(|| format!("it answers {status}"));
    format!("`{address}` refuses: {message}{way_out}")
}

/// Findings of one refusal that are kept.
const MAX_FINDINGS: usize = 200;

/// A stranger's text on one line, without anything that a terminal obeys, and not too long.
pub(super) fn plain(text: &str) -> String {
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
    fn servers_refuse_in_several_shapes() {
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
    fn texts_of_strangers_are_short() {
        let long = plain(&"ä".repeat(MAX_SHOWN_BYTES));
        assert!(long.len() <= MAX_SHOWN_BYTES + 3 && long.ends_with('…'));
    }
}
