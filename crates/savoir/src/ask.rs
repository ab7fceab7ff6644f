//! Asks the user whether something may run.
//!
//! The question is printed on standard error and answered on standard input, if both are a
//! terminal. If standard input is a pipe or a file, the answer is read from the controlling
//! terminal instead, so that piped data cannot approve anything.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, IsTerminal as _, Write},
    os::{fd::AsFd as _, unix::fs::FileTypeExt as _},
    sync::atomic::{AtomicBool, Ordering},
};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use savoir_engine::approval::{self, LineRole, Request};

use crate::error::CommandError;

/// Width of the text in columns; narrower terminals wrap it.
const TEXT_WIDTH: usize = 80;

/// How often a question is repeated after an invalid answer.
const MAX_ATTEMPTS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Yes, for this run.
    Once,
    /// Yes, and the answer is stored.
    Always,
    /// No, or an invalid answer.
    No,
}

/// The answers that a question offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choices {
    /// Yes for one run, always, or no.
    OnceOrAlways,
    /// Yes for one run, or no.
    OnlyOnce,
    /// Yes, which is stored, or no.
    UntilChanged,
}

impl Choices {
    pub(crate) fn question(self) -> &'static str {
        match self {
            Self::OnceOrAlways => "Run it? [y]es once, [a]lways, [N]o: ",
            Self::OnlyOnce => "Run it once with all of this? [y]es, [N]o: ",
            Self::UntilChanged => "Approve it until it changes? [y]es, [N]o: ",
        }
    }

    /// Parses an answer; `None` if it is invalid.
    pub(crate) fn answer(self, line: &str) -> Option<Answer> {
        match (line.trim().to_ascii_lowercase().as_str(), self) {
            ("y" | "yes", Self::OnceOrAlways | Self::OnlyOnce) => Some(Answer::Once),
            ("a" | "always", Self::OnceOrAlways) | ("y" | "yes", Self::UntilChanged) => {
                Some(Answer::Always)
            }
            ("" | "n" | "no", _) => Some(Answer::No),
            _ => None,
        }
    }
}

/// Set if a program reads the output.
static CANNOT_ASK: AtomicBool = AtomicBool::new(false);

/// Disables all questions.
pub(crate) fn disable_questions() {
    CANNOT_ASK.store(true, Ordering::Relaxed);
}

/// Whether a question can be asked.
pub(crate) fn can_ask() -> bool {
    is_interactive() || terminal().is_some()
}

/// Whether standard input is a terminal, so that optional questions can be asked.
pub(crate) fn is_interactive() -> bool {
    can_show() && io::stdin().is_terminal()
}

fn can_show() -> bool {
    !CANNOT_ASK.load(Ordering::Relaxed) && io::stderr().is_terminal()
}

/// The controlling terminal, if standard input is a pipe or a file.
fn terminal() -> Option<File> {
    let input = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
    let kind = input.metadata().ok()?.file_type();
    let is_data = kind.is_fifo() || kind.is_file();
    (is_data && can_show()).then(|| File::open("/dev/tty").ok()).flatten()
}

/// The next line that the user types; `None` at the end of input, or if it is not UTF-8.
fn typed_line() -> Option<String> {
    let mut line = String::new();
    let read = match terminal() {
        Some(terminal) => BufReader::new(terminal).read_line(&mut line),
        // Without a terminal, piped data would be the answer.
        None if !is_interactive() => return None,
        None => io::stdin().lock().read_line(&mut line),
    };
    read.is_ok_and(|length| length > 0).then_some(line)
}

/// The text before a question.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page<'a> {
    pub(crate) request: &'a Request,
    pub(crate) reasons: &'a [String],
    pub(crate) warnings: &'a [String],
    pub(crate) length: Length,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Length {
    /// A question that fits on a screen.
    #[default]
    Question,
    /// Every permission on its own line.
    Details,
}

/// Shows the request and waits for an answer; fails without a terminal.
pub(crate) fn ask(page: Page<'_>, choices: Choices) -> Result<Answer, CommandError> {
    if !can_ask() {
        return Err(CommandError::refused("there is no terminal to ask on"));
    }
    let mut err = AutoStream::new(io::stderr().lock(), ColorChoice::Auto);
    show(&mut err, page)?;
    for _ in 0..MAX_ATTEMPTS {
        write!(err, "{}", choices.question())?;
        err.flush()?;
        // The end of input and invalid UTF-8 mean no.
        let Some(line) = typed_line() else {
            writeln!(err)?;
            return Ok(Answer::No);
        };
        if let Some(answer) = choices.answer(&line) {
            return Ok(answer);
        }
    }
    Ok(Answer::No)
}

/// Asks a question and reads the answer; `None` at the end of input, or after too many invalid
/// answers.
pub(crate) fn line<T>(
    question: &str,
    meant: &dyn Fn(&str) -> Option<T>,
) -> Result<Option<T>, CommandError> {
    if !can_ask() {
        return Err(CommandError::refused("there is no terminal to ask on"));
    }
    let mut err = AutoStream::new(io::stderr().lock(), ColorChoice::Auto);
    write!(err, "{question}")?;
    for _ in 0..MAX_ATTEMPTS {
        err.flush()?;
        let Some(line) = typed_line() else {
            writeln!(err)?;
            return Ok(None);
        };
        match meant(&line) {
            Some(answer) => return Ok(Some(answer)),
            None => write!(err, "Invalid answer, try again: ")?,
        }
    }
    Ok(None)
}

/// Parses yes or no; an empty line is no.
pub(crate) fn yes_or_no(line: &str) -> Option<bool> {
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(true),
        "" | "n" | "no" => Some(false),
        _ => None,
    }
}

/// Writes the text before a question.
pub(crate) fn show(out: &mut dyn Write, page: Page<'_>) -> io::Result<()> {
    let why = approval::reason_lines(page.reasons, page.warnings);
    let words = match page.length {
        Length::Question => approval::question_lines(page.request),
        Length::Details => approval::full_question_lines(page.request),
    };
    show_lines(out, why.into_iter().chain(words))
}

/// Writes lines of a question, styled by their role.
pub(crate) fn show_lines(
    out: &mut dyn Write,
    lines: impl IntoIterator<Item = approval::QuestionLine>,
) -> io::Result<()> {
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    let yellow = Style::new().fg_color(Some(AnsiColor::Yellow.into()));
    for line in lines {
        let style = match line.role {
            LineRole::Warning => red,
            LineRole::Grave => yellow,
            LineRole::Reason => Style::new().bold(),
            LineRole::Fact => Style::new(),
        };
        let text = approval::to_plain_text(&[line], TEXT_WIDTH);
        writeln!(out, "{style}{}{style:#}", text.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        for (line, run, approve) in [
            ("y\n", Some(Answer::Once), Some(Answer::Always)),
            (" YES \r\n", Some(Answer::Once), Some(Answer::Always)),
            ("a\n", Some(Answer::Always), None),
            ("always", Some(Answer::Always), None),
            ("n\n", Some(Answer::No), Some(Answer::No)),
            ("\n", Some(Answer::No), Some(Answer::No)),
            ("yy\n", None, None),
            ("sure\n", None, None),
            ("y\u{200b}\n", None, None),
        ] {
            assert_eq!(Choices::OnceOrAlways.answer(line), run, "{line:?}");
            assert_eq!(Choices::UntilChanged.answer(line), approve, "{line:?}");
        }
    }
}
