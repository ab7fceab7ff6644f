//! One line on a terminal that tells what takes a while.

use std::{
    io::{self, IsTerminal as _, Write as _},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use savoir_package::source::{self, Watcher};

use crate::output;

/// What takes less is not worth a line.
const PATIENCE: Duration = Duration::from_millis(300);

/// How often the line changes at most.
const PAUSE: Duration = Duration::from_millis(80);

/// Columns that every terminal has.
const WIDTH: usize = 78;

/// The line. Without a terminal there is none.
#[derive(Debug)]
pub(crate) struct Progress(Mutex<Line>);

#[derive(Debug)]
struct Line {
    terminal: bool,
    /// When the work began.
    since: Instant,
    /// When something was shown last; nothing if the line is empty.
    shown: Option<Instant>,
}

impl Default for Progress {
    fn default() -> Self {
        let terminal = io::stderr().is_terminal();
        Self(Mutex::new(Line { terminal, since: Instant::now(), shown: None }))
    }
}

impl Progress {
    /// Shows what is going on.
    pub(crate) fn show(&self, what: &str) {
        let mut line = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recently = line.shown.is_some_and(|shown| shown.elapsed() < PAUSE);
        if !line.terminal || recently || line.since.elapsed() < PATIENCE {
            return;
        }
        line.shown = Some(Instant::now());
        let what: String = output::cell(what).chars().take(WIDTH).collect();
        // Nobody is left to tell when standard error is closed.
        let _ = write!(io::stderr(), "\r\x1b[2K{what}…");
        let _ = io::stderr().flush();
    }

    /// Makes room for lines that stay.
    pub(crate) fn clear(&self) {
        let mut line = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if line.shown.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[2K");
            let _ = io::stderr().flush();
        }
        line.since = Instant::now();
    }
}

/// Shows what is fetched, and tells what is left out.
pub(super) fn watcher(progress: &Arc<Progress>) -> Watcher {
    let progress = Arc::clone(progress);
    Arc::new(move |event| match event {
        source::Progress::Asking { place } => progress.show(&format!("asking {place}")),
        source::Progress::Received { place, bytes, of } => {
            let of = of.map(|of| format!(" of {}", size(of))).unwrap_or_default();
            progress.show(&format!("loading {place}: {}{of}", size(bytes)));
        }
        source::Progress::LeftOut { path } => {
            progress.clear();
            output::note(&format!(
                "{path} is left out: it configures tools, and does not belong to a skill"
            ));
        }
        source::Progress::Skipped { name, why } => {
            progress.clear();
            output::note(&format!("`{name}` is left out: {why}"));
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
