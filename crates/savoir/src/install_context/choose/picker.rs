//! The list from which a user picks skills: space selects, enter confirms, typing filters.

use std::fmt;

use inquire::{InquireError, MultiSelect};
use savoir_package::source::OfferedSkill;

use super::truncate_description;
use crate::{error::CommandError, output};

/// Lines per page.
const LINES_PER_PAGE: usize = 15;

/// One line of the list.
struct Line<'a> {
    offer: &'a OfferedSkill,
    /// Width of the name column.
    width: usize,
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
        write!(f, "{name:width$}  {description}", width = self.width)
    }
}

/// The skills that the user picks; none if the user cancels.
pub(super) fn pick(
    typed: &str,
    offers: &[OfferedSkill],
) -> Result<Vec<OfferedSkill>, CommandError> {
    let width = offers.iter().map(|offer| offer.name.chars().count()).max().unwrap_or_default();
    let lines = offers.iter().map(|offer| Line { offer, width }).collect();
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
