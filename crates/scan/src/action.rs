//! Defines actions: the actions that the scanner finds in code, in one form for all languages.
//!
//! The readers for shell, Python, JavaScript and PowerShell fill [`Actions`], and the rules match on
//! [`Action`]. A [`Taint`] records which sensitive data a value contains and where the value came
//! from, so that a rule can see, for example, that a request sends the contents of a credential
//! file.

use savoir_skill::Span;

/// The sensitive data that a value contains, and the origin of the value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a thing of its own that a value can be")]
pub(super) struct Taint {
    /// The kind of credential file that the value was read from.
    pub(super) credential: Option<&'static str>,
    /// The value contains all environment variables.
    pub(super) environment: bool,
    /// Names of environment variables with secrets whose values are included.
    pub(super) tokens: Vec<String>,
    /// The value contains files or file listings of the user.
    pub(super) files: bool,
    /// Kind of private data: clipboard, keyboard, screen, cookies, mails or requests of the user.
    pub(super) private: Option<&'static str>,
    /// The address that the value was downloaded from.
    pub(super) fetched: Option<String>,
    /// The value was decoded from another text, such as Base64.
    pub(super) decoded: bool,
    /// The value was read from a data file, such as `.txt` or `.png`.
    pub(super) data: bool,
    /// The value was read from any file.
    pub(super) read: bool,
    /// The value is a path, or the content of a file, that a search through folders found.
    pub(super) walked: bool,
    /// A limit dropped a part of the value.
    pub(super) is_cut: bool,
}

/// Maximum number of secrets of one value that are told apart by name.
const MAX_TOKENS: usize = 32;

impl Taint {
    pub(super) fn credential(what: &'static str) -> Self {
        Self { credential: Some(what), ..Self::default() }
    }

    pub(super) fn private(what: &'static str) -> Self {
        Self { private: Some(what), ..Self::default() }
    }

    pub(super) fn fetched(from: &str) -> Self {
        Self { fetched: Some(from.to_owned()), ..Self::default() }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.credential = self.credential.or(other.credential);
        self.environment |= other.environment;
        self.private = self.private.or(other.private);
        self.files |= other.files;
        self.decoded |= other.decoded;
        self.data |= other.data;
        self.read |= other.read;
        self.walked |= other.walked;
        self.is_cut |= other.is_cut;
        for token in &other.tokens {
            if self.tokens.contains(token) {
                continue;
            }
            // Nobody needs that many secrets, so the rest counts as everything.
            if self.tokens.len() < MAX_TOKENS {
                self.tokens.push(token.clone());
            } else {
                self.environment = true;
            }
        }
        if self.fetched.is_none() {
            self.fetched.clone_from(&other.fetched);
        }
    }

    /// Whether the value contains data that must not leave the machine without consent.
    pub(super) fn is_secret(&self) -> bool {
        self.credential.is_some()
            || self.environment
            || !self.tokens.is_empty()
            || self.files
            || self.private.is_some()
    }
}

pub(super) const AGENT_PROMPTS: &str = "the agent's permission prompts";

/// A tunnel that shows one port of this machine to others, for [`Action::OpensRemoteAccess`].
pub(super) const DEVELOPMENT_TUNNEL: &str = "a port of this machine to a remote host";

/// Names of the cloud account protections that an [`Action::DisablesProtection`] can switch off.
pub(super) const CLOUD_AUDIT_LOG: &str = "the audit log of a cloud account";
pub(super) const CLOUD_MONITORING: &str = "the monitoring of a cloud account";
pub(super) const CLOUD_BACKUPS: &str = "the backups of a cloud account";
pub(super) const CLOUD_KEYS: &str = "encryption keys of a cloud account";

/// The origin of code that is executed but not written in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CodeOrigin {
    /// Downloaded from this address.
    Fetched(String),
    /// Decoded from a text or read from a data file.
    Decoded,
    /// Computed at run time, so that its text is unknown.
    Computed,
}

/// One action of the code, such as a network request or a file write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Connects to the host `to`; `sends` is the data sent, `log_in` names the secrets that only
    /// authenticate the sender.
    Connects { to: String, sends: Taint, log_in: Vec<String> },
    /// Executes code that is not in the file.
    ExecutesCode(CodeOrigin),
    /// Reads credentials of this kind.
    ReadsCredentials(&'static str),
    /// Mentions credentials of this kind without reading them.
    MentionsCredentials(&'static str),
    /// Asks a person for a secret.
    AsksForSecret(&'static str),
    /// Starts a program.
    StartsProgram(String),
    /// Writes a file; `text` is the part of the content that is known.
    WritesFile { path: String, text: String },
    /// Reads a file.
    ReadsFile(String),
    /// Destroys data: everything below this path, or the data that this text describes.
    DestroysData(String),
    /// Gives a remote host a shell on this machine.
    ReverseShell,
    /// Installs a package with a package manager.
    InstallsPackage { manager: &'static str, package: String },
    /// Uses a package index other than the default one.
    UsesPackageIndex(String),
    /// Arranges for code to start again later, for example with cron.
    Persists(&'static str),
    /// Switches off a protection of the system or of a cloud account.
    DisablesProtection(&'static str),
    /// Unpacks an archive that has a password.
    UnpacksLockedArchive,
    /// Mines cryptocurrency.
    MinesCryptocurrency,
    /// Hides its behavior, for example which function it calls.
    Obfuscates(&'static str),
    /// Pays to an account in the code in place of the given one, depending on something else.
    RedirectsPayment,
    /// Allows access to the machine from outside, for example with a new account.
    OpensRemoteAccess(&'static str),
}

/// An action and its position in a fragment (one piece of code or text that the scanner reads).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LocatedAction {
    pub(super) action: Action,
    pub(super) span: Span,
}

/// Code inside a string; the scanner reads it as a separate fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EmbeddedCode {
    pub(super) text: String,
    /// The encoding that the code was decoded from, if any.
    pub(super) hidden_in: Option<&'static str>,
    /// The language, if the call that executes the code determines it.
    pub(super) language: Option<super::fragment::Language>,
    pub(super) span: Span,
}

/// All actions and all embedded code of one fragment.
#[derive(Clone, Debug, Default)]
pub(super) struct Actions {
    pub(super) located: Vec<LocatedAction>,
    pub(super) embedded: Vec<EmbeddedCode>,
    /// The limits that were reached, so that part of the code was not read.
    pub(super) cuts: Vec<Cut>,
}

/// A part of the code that was not read because of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// What there is too much of, such as "more commands than are read".
    pub(super) what: &'static str,
    pub(super) span: Span,
}

impl Actions {
    /// Records that a limit was reached. Only the first place of each limit is kept.
    pub(super) fn cut(&mut self, what: &'static str, span: Span) {
        if !self.cuts.iter().any(|cut| cut.what == what) {
            self.cuts.push(Cut { what, span });
        }
    }

    pub(super) fn push(&mut self, action: Action, span: Span) {
        let seen = LocatedAction { action, span };
        // Duplicates are close to each other, so comparing with the last 64 actions is enough.
        if !self.located.iter().rev().take(64).any(|known| *known == seen) {
            self.located.push(seen);
        }
    }

    /// Adds the actions of another reading of the same text.
    pub(super) fn add_all(&mut self, other: Self) {
        for seen in other.located {
            self.push(seen.action, seen.span);
        }
        for inner in other.embedded {
            self.push_embedded(inner.text, inner.hidden_in, inner.language, inner.span);
        }
        for cut in other.cuts {
            self.cut(cut.what, cut.span);
        }
    }

    pub(super) fn push_embedded(
        &mut self,
        text: String,
        hidden_in: Option<&'static str>,
        language: Option<super::fragment::Language>,
        span: Span,
    ) {
        let inner = EmbeddedCode { text, hidden_in, language, span };
        if inner.text.len() > 3 && !self.embedded.iter().rev().take(64).any(|known| *known == inner)
        {
            self.embedded.push(inner);
        }
    }
}
