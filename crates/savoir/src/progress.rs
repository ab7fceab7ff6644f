//! Shows a progress line on the terminal for work that takes longer than a moment. Elsewhere, such as
//! in the log of a CI job, a line is printed from time to time.

use std::{
    io::{self, IsTerminal as _},
    time::{Duration, Instant},
};

use anstream::eprint;

use crate::output;

/// Lines of progress in a log.
#[derive(Debug)]
pub(crate) struct LogLines {
    next: Instant,
}

impl LogLines {
    const INTERVAL: Duration = Duration::from_secs(10);

    pub(crate) fn new() -> Self {
        Self { next: Instant::now() + Self::INTERVAL }
    }

    /// Prints a line if none was printed for a while.
    pub(crate) fn print(&mut self, text: impl FnOnce() -> String) {
        if output::shows_progress() && self.is_due(Instant::now()) {
            output::note(&text());
        }
    }

    fn is_due(&mut self, now: Instant) -> bool {
        let is_due = now >= self.next;
        if is_due {
            self.next = now + Self::INTERVAL;
        }
        is_due
    }
}

/// Prints progress on standard error.
#[derive(Debug)]
pub(crate) struct Progress {
    terminal: bool,
    log: LogLines,
    next: Instant,
    widest: usize,
}

impl Progress {
    const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

    pub(crate) fn new() -> Self {
        let terminal = io::stderr().is_terminal();
        let next = Instant::now() + Self::REDRAW_INTERVAL;
        Self { terminal, log: LogLines::new(), next, widest: 0 }
    }

    /// Updates the line, but not too often.
    pub(crate) fn update(&mut self, text: impl FnOnce() -> String) {
        if !self.terminal {
            return self.log.print(text);
        }
        if output::is_quiet() || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + Self::REDRAW_INTERVAL;
        let text = text();
        self.widest = self.widest.max(text.chars().count());
        eprint!("\r{text:width$}", width = self.widest);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.widest > 0 {
            eprint!("\r{:width$}\r", "", width = self.widest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_gets_a_line_per_interval() {
        let mut log = LogLines::new();
        let start = Instant::now();
        let seconds = (0..=35).filter(|&second| log.is_due(start + Duration::from_secs(second)));
        assert_eq!(seconds.collect::<Vec<_>>(), [10, 20, 30]);
    }
}
