//! The question whether something may run: shown on standard error and answered on standard input, if
//! both are a terminal. Beside a pipe or a file, which are input of the program, it is answered on the
//! terminal of this process: no pipe can say yes.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, IsTerminal as _, Write},
    os::{fd::AsFd as _, unix::fs::FileTypeExt as _},
    sync::atomic::{AtomicBool, Ordering},
};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use savoir_engine::approval::{self, Request, Role};

use crate::error::CommandError;

/// Columns of the text; narrower terminals wrap by themselves.
const WIDTH: usize = 80;

/// How often an answer that means nothing is asked for again.
const TRIES: usize = 3;

/// What was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Yes, this time.
    Once,
    /// Yes, and the answer is kept.
    Always,
    /// No, or nothing that is a yes.
    No,
}

/// What can be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choices {
    /// Yes for one run, always, or no.
    OnceOrAlways,
    /// Yes for one run, or no.
    OnlyOnce,
    /// Yes, which is kept, or no.
    Kept,
}

impl Choices {
    pub(crate) fn question(self) -> &'static str {
        match self {
            Self::OnceOrAlways => "Run it? [y]es once, [a]lways, [N]o: ",
            Self::OnlyOnce => "Run it once with all of this? [y]es, [N]o: ",
            Self::Kept => "Approve it until it changes? [y]es, [N]o: ",
        }
    }

    /// What a line means; `None` if it means nothing.
    pub(crate) fn answer(self, line: &str) -> Option<Answer> {
        match (line.trim().to_ascii_lowercase().as_str(), self) {
            ("y" | "yes", Self::OnceOrAlways | Self::OnlyOnce) => Some(Answer::Once),
            ("a" | "always", Self::OnceOrAlways) | ("y" | "yes", Self::Kept) => {
                Some(Answer::Always)
            }
            ("" | "n" | "no", _) => Some(Answer::No),
            _ => None,
        }
    }
}

/// Whether a program reads the answer, so that there is nobody to ask.
static NOBODY: AtomicBool = AtomicBool::new(false);

/// From now on nobody is asked.
pub(crate) fn nobody() {
    NOBODY.store(true, Ordering::Relaxed);
}

/// Whether there is somebody to ask.
pub(crate) fn can_ask() -> bool {
    is_interactive() || terminal().is_some()
}

/// Whether a person types the standard input, so that it can be asked for what could also be left out.
pub(crate) fn is_interactive() -> bool {
    can_show() && io::stdin().is_terminal()
}

fn can_show() -> bool {
    !NOBODY.load(Ordering::Relaxed) && io::stderr().is_terminal()
}

/// The terminal of this process, if the standard input is a pipe or a file.
fn terminal() -> Option<File> {
    let input = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
    let kind = input.metadata().ok()?.file_type();
    let is_data = kind.is_fifo() || kind.is_file();
    (is_data && can_show()).then(|| File::open("/dev/tty").ok()).flatten()
}

/// The next line that a person types; nothing at the end, or if it is no text.
fn typed_line() -> Option<String> {
    let mut line = String::new();
    let read = match terminal() {
        Some(terminal) => BufReader::new(terminal).read_line(&mut line),
        // Without a terminal, a pipe would answer.
        None if !is_interactive() => return None,
        None => io::stdin().lock().read_line(&mut line),
    };
    read.is_ok_and(|length| length > 0).then_some(line)
}

/// What is shown before a question.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page<'a> {
    pub(crate) request: &'a Request,
    pub(crate) reasons: &'a [String],
    pub(crate) warnings: &'a [String],
    pub(crate) length: Length,
}

/// How much of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Length {
    /// What fits on a screen.
    #[default]
    Question,
    /// Every right on a line of its own.
    Details,
}

/// Shows the request and waits for an answer; refuses where nobody can answer.
pub(crate) fn ask(page: Page<'_>, choices: Choices) -> Result<Answer, CommandError> {
    if !can_ask() {
        return Err(CommandError::refused("nobody can be asked without a terminal"));
    }
    let mut err = AutoStream::new(io::stderr().lock(), ColorChoice::Auto);
    show(&mut err, page)?;
    for _ in 0..TRIES {
        write!(err, "{}", choices.question())?;
        err.flush()?;
        // The end of the input, or bytes that are no text, are no yes.
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

/// Shows a question and reads what is answered; nothing if it is the end, or means nothing thrice.
pub(crate) fn line<T>(
    question: &str,
    meant: &dyn Fn(&str) -> Option<T>,
) -> Result<Option<T>, CommandError> {
    if !can_ask() {
        return Err(CommandError::refused("nobody can be asked without a terminal"));
    }
    let mut err = AutoStream::new(io::stderr().lock(), ColorChoice::Auto);
    write!(err, "{question}")?;
    for _ in 0..TRIES {
        err.flush()?;
        let Some(line) = typed_line() else {
            writeln!(err)?;
            return Ok(None);
        };
        match meant(&line) {
            Some(answer) => return Ok(Some(answer)),
            None => write!(err, "That is no answer. Again: ")?,
        }
    }
    Ok(None)
}

/// What a line means where only yes and no are answers.
pub(crate) fn yes_or_no(line: &str) -> Option<bool> {
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(true),
        "" | "n" | "no" => Some(false),
        _ => None,
    }
}

/// Writes everything that a person must know.
pub(crate) fn show(out: &mut dyn Write, page: Page<'_>) -> io::Result<()> {
    let why = approval::why(page.reasons, page.warnings);
    let words = match page.length {
        Length::Question => approval::words(page.request),
        Length::Details => approval::details(page.request),
    };
    show_lines(out, why.into_iter().chain(words))
}

/// Writes lines of a question, each as it is meant.
pub(crate) fn show_lines(
    out: &mut dyn Write,
    lines: impl IntoIterator<Item = approval::Line>,
) -> io::Result<()> {
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    let yellow = Style::new().fg_color(Some(AnsiColor::Yellow.into()));
    for line in lines {
        let style = match line.role {
            Role::Warning => red,
            Role::Grave => yellow,
            Role::Reason => Style::new().bold(),
            Role::Fact => Style::new(),
        };
        let text = approval::plain(&[line], WIDTH);
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
            assert_eq!(Choices::Kept.answer(line), approve, "{line:?}");
        }
    }
}
