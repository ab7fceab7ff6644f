//! Shows a progress line on the terminal for work that takes longer than a moment.

use std::{
    io::{self, IsTerminal as _},
    time::{Duration, Instant},
};

use anstream::eprint;

use crate::output;

/// Prints progress if standard error is a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    terminal: bool,
    next: Instant,
    widest: usize,
}

impl Progress {
    const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

    pub(crate) fn new() -> Self {
        let terminal = io::stderr().is_terminal() && !output::is_quiet();
        Self { terminal, next: Instant::now() + Self::REDRAW_INTERVAL, widest: 0 }
    }

    /// Updates the line, but not too often.
    pub(crate) fn update(&mut self, text: impl FnOnce() -> String) {
        if !self.terminal || Instant::now() < self.next {
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
