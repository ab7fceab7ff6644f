//! A progress line on the terminal.

use std::{
    io::{self, IsTerminal as _, Write as _},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use savoir_package::source::{self, Watcher};

use crate::{output, progress::LogLines};

/// Shorter tasks show no progress.
const DISPLAY_DELAY: Duration = Duration::from_millis(300);

/// Minimum time between updates.
const REDRAW_INTERVAL: Duration = Duration::from_millis(80);

/// Maximum width, which every terminal has.
const MAX_WIDTH: usize = 78;

/// The progress line on a terminal, or a line from time to time elsewhere.
#[derive(Debug)]
pub(crate) struct Progress(Mutex<Line>);

#[derive(Debug)]
struct Line {
    terminal: bool,
    log: LogLines,
    /// Start of the task.
    since: Instant,
    /// Time of the last update; `None` if the line is empty.
    shown: Option<Instant>,
}

impl Default for Progress {
    fn default() -> Self {
        let terminal = io::stderr().is_terminal();
        let log = LogLines::new();
        Self(Mutex::new(Line { terminal, log, since: Instant::now(), shown: None }))
    }
}

impl Progress {
    pub(crate) fn show(&self, what: &str) {
        let mut line = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !line.terminal {
            return line.log.print(|| what.to_owned());
        }
        let recently = line.shown.is_some_and(|shown| shown.elapsed() < REDRAW_INTERVAL);
        if recently || line.since.elapsed() < DISPLAY_DELAY {
            return;
        }
        line.shown = Some(Instant::now());
        let what: String = output::cell(what).chars().take(MAX_WIDTH).collect();
        // A closed standard error is not a problem.
        let _ = write!(io::stderr(), "\r\x1b[2K{what}…");
        let _ = io::stderr().flush();
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        let mut line = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if line.shown.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[2K");
            let _ = io::stderr().flush();
        }
        line.since = Instant::now();
    }
}

/// Shows downloads, and prints what is skipped.
pub(super) fn watcher(progress: &Arc<Progress>) -> Watcher {
    let progress = Arc::clone(progress);
    Arc::new(move |event| match event {
        source::Progress::Asking { place } => progress.show(&format!("connecting to {place}")),
        source::Progress::Received { place, bytes, of } => {
            let of = of.map(|of| format!(" of {}", size(of))).unwrap_or_default();
            progress.show(&format!("downloading {place}: {}{of}", size(bytes)));
        }
        source::Progress::LeftOut { path } => {
            progress.clear();
            output::note(&format!(
                "skipped {path}: it configures tools and is not part of a skill"
            ));
        }
        source::Progress::Skipped { name, why } => {
            progress.clear();
            output::note(&format!("skipped `{name}`: {why}"));
        }
    })
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_240 => format!("{bytes} B"),
        10_240..10_485_760 => format!("{} KiB", bytes / 1024),
        _ => format!("{} MiB", bytes / 1024 / 1024),
    }
}
