//! Whoever is asked before a tool runs.

use std::{fmt, path::PathBuf};

use futures::future::BoxFuture;
use savoir_skill::check::render::visible;

use crate::approval::{Line, Request, Role, why, words};

/// Somebody who can be asked, or nobody.
pub trait Asker: fmt::Debug + Send + Sync {
    /// Shows a question and waits for the answer.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Consent>;

    /// The same for a tool of the host. Who does not say otherwise is not there for such questions.
    fn ask_host<'a>(&'a self, _: &'a HostQuestion) -> BoxFuture<'a, Consent> {
        Box::pin(async { Consent::Nobody })
    }
}

/// What somebody is asked about a tool of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostQuestion {
    /// What is to be done.
    pub deed: Deed,
    /// The folder in which it would happen.
    pub workspace: PathBuf,
}

/// What a tool of the host does that a person may not want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Runs a command in the sandbox.
    Run {
        /// For a shell.
        command: String,
    },
    /// Writes or changes a file.
    Write {
        /// Its path in the workspace.
        path: String,
        /// How many bytes it will have.
        bytes: usize,
    },
    /// Asks a server.
    Fetch {
        /// The address.
        url: String,
    },
}

impl Deed {
    /// What a lasting yes is for: the same command, every file of the workspace, the same host.
    pub fn scope(&self) -> String {
        match self {
            Self::Run { command } => format!("run {command}"),
            Self::Write { .. } => "write".to_owned(),
            Self::Fetch { url } => {
                let url = url::Url::parse(url).ok();
                let host = url.as_ref().and_then(url::Url::host_str).unwrap_or_default();
                format!("fetch {host}")
            }
        }
    }
}

impl HostQuestion {
    /// The question in lines, of which none can be mistaken for another.
    pub fn lines(&self) -> Vec<Line> {
        let fact = |label, text: &str| Line { role: Role::Fact, label, text: visible(text).into() };
        let place = fact("in", &self.workspace.display().to_string());
        let grave = |label, text: &str| Line { role: Role::Grave, ..fact(label, text) };
        match &self.deed {
            Deed::Run { command } => vec![
                grave("command", command),
                place,
                fact("held by", "the sandbox: no network, no other files of yours"),
            ],
            Deed::Write { path, bytes } => {
                vec![grave("write", path), fact("size", &format!("{bytes} bytes")), place]
            }
            Deed::Fetch { url } => vec![grave("fetch", url)],
        }
    }
}

/// What somebody is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// Everything that the run would get.
    pub request: Request,
    /// Why the question comes.
    pub reasons: Vec<String>,
    /// What to shout.
    pub warnings: Vec<String>,
}

impl Question {
    /// The question in lines, of which none can be mistaken for another.
    pub fn lines(&self) -> Vec<Line> {
        words(&self.request).into_iter().chain(why(&self.reasons, &self.warnings)).collect()
    }
}

/// What was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// Yes, this time.
    Once,
    /// Yes, until the skill changes.
    Always,
    /// No.
    Declined,
    /// Neither yes nor no: the question was put away, as agents do that run without a person.
    Unanswered,
    /// There is nobody to ask.
    Nobody,
}

/// Nobody is there: only what needs no question runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Asker for Nobody {
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Consent> {
        Box::pin(async { Consent::Nobody })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lasting_yes_is_for_the_same_thing() {
        let fetch = |url: &str| Deed::Fetch { url: url.to_owned() }.scope();
        assert_eq!(fetch("https://a.org/x"), fetch("https://a.org/y"));
        assert_ne!(fetch("https://a.org/x"), fetch("https://a.org.evil.org/x"));
        let run = |command: &str| Deed::Run { command: command.to_owned() }.scope();
        assert_ne!(run("ls"), run("ls "));
        assert_ne!(run("write"), Deed::Write { path: "a".to_owned(), bytes: 1 }.scope());
    }

    #[test]
    fn a_command_cannot_make_a_line_of_its_own() {
        let deed = Deed::Run { command: "ls\nin  /safe\u{1b}[2J".to_owned() };
        let lines = HostQuestion { deed, workspace: PathBuf::from("/w") }.lines();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| !line.text.contains(char::is_control)), "{lines:?}");
    }
}
