//! What code does, independent of its language.

use savoir_skill::Span;

/// Sensitive data that a value contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a thing of its own that a value can be")]
pub(super) struct Taint {
    /// From a credential file.
    pub(super) credential: Option<&'static str>,
    /// The whole environment.
    pub(super) environment: bool,
    /// Names of variables that contain secrets.
    pub(super) tokens: Vec<String>,
    /// Files of the user.
    pub(super) files: bool,
    /// What the user copies, types, sees or is logged in with.
    pub(super) private: Option<&'static str>,
    /// Downloaded from this address.
    pub(super) fetched: Option<String>,
    /// Decoded from another text.
    pub(super) decoded: bool,
    /// From a data file.
    pub(super) data: bool,
    /// From any file.
    pub(super) read: bool,
}

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
        for token in &other.tokens {
            if !self.tokens.contains(token) && self.tokens.len() < 8 {
                self.tokens.push(token.clone());
            }
        }
        if self.fetched.is_none() {
            self.fetched.clone_from(&other.fetched);
        }
    }

    /// Whether it contains data that should not leave the machine without consent.
    pub(super) fn is_secret(&self) -> bool {
        self.credential.is_some()
            || self.environment
            || !self.tokens.is_empty()
            || self.files
            || self.private.is_some()
    }
}

pub(super) const AGENT_PROMPTS: &str = "the questions of the agent";

/// Protections that can be switched off in a cloud account.
pub(super) const CLOUD_AUDIT_LOG: &str = "the record of what is done in a cloud account";
pub(super) const CLOUD_MONITORING: &str = "what watches over a cloud account";
pub(super) const CLOUD_BACKUPS: &str = "the backups of a cloud account";
pub(super) const CLOUD_KEYS: &str = "keys without which the data of a cloud account are lost";

/// Origin of code that is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CodeOrigin {
    /// From the network.
    Fetched(String),
    /// Decoded from a text.
    Decoded,
    /// Computed at run time.
    Computed,
}

/// One thing that code does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Talks to a host, with what it sends, and with the names of the secrets by which it logs in.
    Network { to: String, sends: Taint, log_in: Vec<String> },
    /// Executes code that is not in the file.
    Executes(CodeOrigin),
    /// Reads a credential file.
    Secret(&'static str),
    /// Mentions a credential file.
    Names(&'static str),
    /// Asks a person for a secret.
    Asks(&'static str),
    /// Starts a program.
    Program(String),
    /// Writes a file, with what is known of the text.
    Writes { path: String, text: String },
    /// Reads a file.
    Reads(String),
    /// Deletes everything below a path.
    Deletes(String),
    /// Hands a shell to a remote host.
    ReverseShell,
    /// Installs packages.
    Installs { manager: &'static str, package: String },
    /// Uses another package index.
    Index(String),
    /// Makes something start again later.
    Persists(&'static str),
    /// Switches off a protection of the system.
    Unprotects(&'static str),
    /// Unpacks an archive with a password.
    Unlocks,
    /// Mines cryptocurrency.
    Mines,
    /// Hides which function is called.
    Obscures(&'static str),
    /// Opens access from outside.
    Opens(&'static str),
}

/// An act and its position in a fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LocatedAct {
    pub(super) act: Act,
    pub(super) span: Span,
}

/// Code in a string, which is read as a fragment of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EmbeddedCode {
    pub(super) text: String,
    /// The encoding that it was hidden in.
    pub(super) hidden_in: Option<&'static str>,
    /// The language, where the way it is started says so.
    pub(super) language: Option<super::fragment::Language>,
    pub(super) span: Span,
}

/// Acts and embedded code of a fragment.
#[derive(Clone, Debug, Default)]
pub(super) struct Acts {
    pub(super) located: Vec<LocatedAct>,
    pub(super) embedded: Vec<EmbeddedCode>,
    /// Whether a limit was reached.
    pub(super) is_cut: bool,
}

impl Acts {
    pub(super) fn push(&mut self, act: Act, span: Span) {
        let seen = LocatedAct { act, span };
        // Duplicates are close to each other.
        if !self.located.iter().rev().take(64).any(|known| *known == seen) {
            self.located.push(seen);
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
