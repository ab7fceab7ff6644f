//! The list from which a user picks skills: space selects, enter confirms, typing filters.

use std::{
    borrow::Cow,
    fmt, io, process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use inquire::{InquireError, MultiSelect};
use savoir_package::source::OfferedSkill;
use tokio::signal::unix::{SignalKind, signal};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::truncate_description;
use crate::{error::CommandError, output, runtime};

/// Lines per page.
const LINES_PER_PAGE: usize = 15;

/// Columns of a terminal that does not report them.
const DEFAULT_WIDTH: usize = 80;

/// Columns of the cursor and the check box before each line, and one that stays free.
const MARK_WIDTH: usize = 7;

/// Exit code of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// One line of the list.
struct Line<'a> {
    offer: &'a OfferedSkill,
    /// Width of the name column.
    width: usize,
    /// Columns of the terminal for the line.
    max_width: usize,
}

impl Line<'_> {
    /// How well a line matches the typed text: matches in names come first, `None` hides the line.
    fn score(&self, typed: &str) -> Option<i64> {
        let has = |text: &str| text.to_lowercase().contains(&typed.to_lowercase());
        if has(&self.offer.name) {
            Some(1)
        } else {
            self.offer.description.as_deref().is_some_and(has).then_some(0)
        }
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = output::cell(&self.offer.name);
        let description = truncate_description(self.offer.description.as_deref());
        let line = format!("{name:width$}  {description}", width = self.width);
        f.write_str(&shorten(&line, self.max_width))
    }
}

/// Cuts a line that is wider than the terminal. Wide letters have two columns.
fn shorten(line: &str, max_width: usize) -> Cow<'_, str> {
    if line.width() <= max_width {
        return Cow::Borrowed(line);
    }
    let mut width = 1;
    let fits = |letter: &char| {
        width += letter.width().unwrap_or_default();
        width <= max_width
    };
    let cut: String = line.chars().take_while(fits).collect();
    Cow::Owned(format!("{}…", cut.trim_end()))
}

/// The skills that the user picks; none if the user cancels.
pub(super) fn pick(
    typed: &str,
    offers: &[OfferedSkill],
) -> Result<Vec<OfferedSkill>, CommandError> {
    let width = offers.iter().map(|offer| offer.name.chars().count()).max().unwrap_or_default();
    let max_width = output::width().unwrap_or(DEFAULT_WIDTH).saturating_sub(MARK_WIDTH);
    let lines = offers.iter().map(|offer| Line { offer, width, max_width }).collect();
    let title = format!("{} has {} skills", output::cell(typed), offers.len());
    let interrupt = InterruptWatch::start()?;
    let picked = MultiSelect::new(&title, lines)
        .with_page_size(LINES_PER_PAGE)
        .with_help_message("space selects, enter confirms, type to filter, right arrow selects all")
        .with_scorer(&|typed, line, _, _| line.score(typed))
        .with_formatter(&|picked| output::plural(picked.len(), "skill"))
        .prompt();
    let is_interrupted = matches!(&picked, Err(InquireError::OperationInterrupted))
        || matches!(&picked, Err(InquireError::IO(error)) if is_interrupt(error));
    if !is_interrupted {
        interrupt.stop();
    }
    match picked {
        Ok(picked) => Ok(picked.into_iter().map(|line| line.offer.clone()).collect()),
        Err(InquireError::OperationCanceled) => Ok(Vec::new()),
        Err(InquireError::OperationInterrupted) => Err(interrupted_error()),
        Err(InquireError::IO(error)) if is_interrupt(&error) => Err(interrupted_error()),
        Err(error) => Err(CommandError::input(format!("the list cannot be shown: {error}"))
            .hint("choose with --skill NAME, or take all with --all")),
    }
}

fn is_interrupt(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted
}

fn interrupted_error() -> CommandError {
    CommandError::exited(INTERRUPTED, "canceled").with_code("canceled")
}

/// Keeps Ctrl-C from ending the program while the list is shown, since the cursor would stay in the
/// list. Afterwards, Ctrl-C ends the program again.
struct InterruptWatch {
    is_shown: Arc<AtomicBool>,
}

impl InterruptWatch {
    fn start() -> Result<Self, CommandError> {
        let is_shown = Arc::new(AtomicBool::new(true));
        let runtime = runtime::new()?;
        let mut signals = {
            let _context = runtime.enter();
            signal(SignalKind::interrupt())?
        };
        let flag = Arc::clone(&is_shown);
        thread::spawn(move || {
            runtime.block_on(async {
                while signals.recv().await.is_some() {
                    if !flag.load(Ordering::SeqCst) {
                        process::exit(i32::from(INTERRUPTED));
                    }
                }
            });
        });
        Ok(Self { is_shown })
    }

    fn stop(self) {
        self.is_shown.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_the_terminal() {
        assert_eq!(shorten("pdf  Reads files", 16), "pdf  Reads files");
        assert_eq!(shorten("pdf  Reads files", 12), "pdf  Reads…");
        assert_eq!(shorten("读取文件", 6), "读取…");
    }
}
