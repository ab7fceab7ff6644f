//! The list from which a user picks skills: space selects, enter confirms, typing filters.

use std::{borrow::Cow, fmt};

use inquire::{InquireError, MultiSelect};
use savoir_package::source::OfferedSkill;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::truncate_description;
use crate::{error::CommandError, output};

/// Lines per page.
const LINES_PER_PAGE: usize = 15;

/// Columns of a terminal that does not report them.
const DEFAULT_WIDTH: usize = 80;

/// Columns of the cursor and the check box before each line, and one that stays free.
const MARK_WIDTH: usize = 7;

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
    let picked = MultiSelect::new(&title, lines)
        .with_page_size(LINES_PER_PAGE)
        .with_help_message("space selects, enter confirms, type to filter, right arrow selects all")
        .with_scorer(&|typed, line, _, _| line.score(typed))
        .with_formatter(&|picked| output::plural(picked.len(), "skill"))
        .prompt();
    match picked {
        Ok(picked) => Ok(picked.into_iter().map(|line| line.offer.clone()).collect()),
        Err(InquireError::OperationCanceled | InquireError::OperationInterrupted) => Ok(Vec::new()),
        Err(error) => Err(CommandError::input(format!("the list cannot be shown: {error}"))
            .hint("choose with --skill NAME, or take all with --all")),
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
