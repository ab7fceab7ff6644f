//! What code does, in words that do not depend on its language.

use savoir_skill::Span;

/// What a value is made of, as far as it matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a thing of its own that a value can be")]
pub(super) struct Taint {
    /// Out of a place where credentials are kept.
    pub(super) credential: Option<&'static str>,
    /// The whole environment.
    pub(super) environment: bool,
    /// Names of variables that hold secrets.
    pub(super) tokens: Vec<String>,
    /// Files of the user.
    pub(super) files: bool,
    /// What the user copies, types, sees or is logged in with.
    pub(super) private: Option<&'static str>,
    /// Came from the network, from there.
    pub(super) fetched: Option<String>,
    /// Was encoded before.
    pub(super) decoded: bool,
    /// Out of a file that holds data, not code.
    pub(super) data: bool,
    /// Out of any file.
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

    /// Takes in what another value is made of.
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

    /// Whether it holds anything that should not leave the machine unasked.
    pub(super) fn is_secret(&self) -> bool {
        self.credential.is_some()
            || self.environment
            || !self.tokens.is_empty()
            || self.files
            || self.private.is_some()
    }
}

/// What an agent asks before it acts.
pub(super) const AGENT_QUESTIONS: &str = "the questions of the agent";

/// What is switched off in a cloud account.
pub(super) const CLOUD_RECORDS: &str = "the record of what is done in a cloud account";
pub(super) const CLOUD_GUARDS: &str = "what watches over a cloud account";
pub(super) const CLOUD_BACKUPS: &str = "the backups of a cloud account";
pub(super) const CLOUD_KEYS: &str = "keys without which the data of a cloud account are lost";

/// Where code comes from that is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// From the network.
    Fetched(String),
    /// Out of an encoded text.
    Decoded,
    /// Put together while running.
    Computed,
}

/// One thing that code does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Talks to a host, with what it sends, and with the names of the secrets by which it logs in.
    Network { to: String, sends: Taint, log_in: Vec<String> },
    /// Executes code that is not in the file.
    Executes(Code),
    /// Reads a place where credentials are kept.
    Secret(&'static str),
    /// Names such a place, whatever it does with it.
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
    /// Takes packages from another index.
    Index(String),
    /// Makes something start again later.
    Persists(&'static str),
    /// Switches off a protection of the system.
    Unprotects(&'static str),
    /// Unpacks an archive with a password.
    Unlocks,
    /// Digs for coins.
    Mines,
    /// Hides what is called.
    Obscures(&'static str),
    /// Lets somebody in from outside.
    Opens(&'static str),
}

/// An act at its place in a piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) act: Act,
    pub(super) span: Span,
}

/// Code in a string, to be read as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Inner {
    pub(super) text: String,
    /// What it was hidden in, if it was.
    pub(super) cloak: Option<&'static str>,
    /// The language, where the way it is started says so.
    pub(super) language: Option<super::piece::Language>,
    pub(super) span: Span,
}

/// What reading a piece of code gave.
#[derive(Clone, Debug, Default)]
pub(super) struct Acts {
    pub(super) seen: Vec<Seen>,
    pub(super) inner: Vec<Inner>,
    /// Whether there was more than is followed.
    pub(super) is_cut: bool,
}

impl Acts {
    pub(super) fn push(&mut self, act: Act, span: Span) {
        let seen = Seen { act, span };
        // The same is found again within a few steps, or never.
        if !self.seen.iter().rev().take(64).any(|known| *known == seen) {
            self.seen.push(seen);
        }
    }

    pub(super) fn inner(
        &mut self,
        text: String,
        cloak: Option<&'static str>,
        language: Option<super::piece::Language>,
        span: Span,
    ) {
        let inner = Inner { text, cloak, language, span };
        if inner.text.len() > 3 && !self.inner.iter().rev().take(64).any(|known| *known == inner) {
            self.inner.push(inner);
        }
    }
}
