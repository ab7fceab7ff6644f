//! Connects the user's terminal to the terminal of a sandboxed program. Keys are passed on as they
//! are pressed, and the program decides what they mean, so it can ask for a password, draw and use
//! colors.

use std::{
    fs::File,
    io,
    time::{Duration, Instant},
};

use rustix::{
    process::{Signal, getpgrp, getpid, kill_process},
    termios::{
        OptionalActions, Termios, Winsize, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
        tcsetwinsize,
    },
};
use savoir_sandbox::TerminalSize;

/// The byte that Ctrl-C sends.
const CTRL_C: u8 = 3;
/// A program that still runs after so many presses of Ctrl-C, within this time, is stopped.
const MAX_INTERRUPTS: usize = 3;
const INTERRUPT_WINDOW: Duration = Duration::from_secs(10);

/// Raw mode of the user's terminal; dropping the value restores the previous mode.
pub(super) struct RawMode {
    before: Termios,
}

impl RawMode {
    pub(super) fn enter() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Whether this process is in the foreground. A background process that reads keys is stopped by
/// the system.
pub(super) fn is_ahead() -> bool {
    tcgetpgrp(io::stdin()).map_or(true, |group| group == getpgrp())
}

/// The size of the user's terminal.
pub(super) fn size() -> TerminalSize {
    match tcgetwinsize(io::stdin()) {
        Ok(Winsize { ws_row: rows @ 1.., ws_col: columns @ 1.., .. }) => {
            TerminalSize { rows, columns }
        }
        _ => TerminalSize { rows: 24, columns: 80 },
    }
}

/// The terminal of a program: follows size changes, and counts presses of Ctrl-C.
pub(super) struct ProgramTerminal {
    terminal: File,
    size: TerminalSize,
    presses: Vec<Instant>,
}

impl ProgramTerminal {
    pub(super) fn new(terminal: File) -> Self {
        Self { terminal, size: size(), presses: Vec::new() }
    }

    /// Handles typed keys. Must also be called regularly with an empty slice, to follow size
    /// changes.
    pub(super) fn watch_keys(&mut self, keys: &[u8]) {
        let size = size();
        if size != self.size {
            self.size = size;
            let TerminalSize { rows: ws_row, columns: ws_col } = size;
            let size = Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
            let _ = tcsetwinsize(&self.terminal, size);
        }
        self.presses.extend(keys.iter().filter(|key| **key == CTRL_C).map(|_| Instant::now()));
        self.presses.retain(|pressed| pressed.elapsed() < INTERRUPT_WINDOW);
        if self.presses.len() >= MAX_INTERRUPTS {
            self.presses.clear();
            // Sends the signal that Ctrl-C would have sent to this process.
            let _ = kill_process(getpid(), Signal::INT);
        }
    }
}

/// Converts `\r\n` to `\n` in output that arrives in pieces.
#[derive(Default)]
pub(super) struct LineEnds {
    /// Whether the last piece ended with `\r`.
    has_return: bool,
}

impl LineEnds {
    pub(super) fn plain(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut plain = Vec::with_capacity(bytes.len() + 1);
        for &byte in bytes {
            if self.has_return && byte != b'\n' {
                plain.push(b'\r');
            }
            self.has_return = byte == b'\r';
            if !self.has_return {
                plain.push(byte);
            }
        }
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_are_normalized() {
        let mut lines = LineEnds::default();
        let plain: Vec<u8> = [&b"a\r"[..], b"\nb\r\n", b"50%\r100%\r", b"\r\n"]
            .iter()
            .flat_map(|bytes| lines.plain(bytes))
            .collect();
        assert_eq!(plain, b"a\nb\n50%\r100%\r\n");
    }
}
