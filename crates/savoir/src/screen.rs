//! Filters the output of programs for a terminal: text, colors and cursor moves within the
//! program's own output pass. Sequences that set titles or modes, query the terminal, or move above
//! that output are removed.

use std::{
    io::{self, IsTerminal as _, Write},
    sync::{Mutex, PoisonError},
};

/// Maximum bytes of a sequence.
const MAX_SEQUENCE_BYTES: usize = 64;

/// Resets colors and shows the cursor.
const RESET: &[u8] = b"\x1b[0m\x1b[?25h";

static SCREEN: Mutex<Screen> = Mutex::new(Screen::new());

/// Tracks the changes that a program made to the terminal.
#[derive(Debug)]
struct Screen {
    /// Standard output and standard error.
    streams: [Stream; 2],
    /// Lines between the first line of output and the cursor.
    row: usize,
    /// Maximum of `row`.
    deepest: usize,
    is_changed: bool,
}

/// An output stream; a chunk may end in the middle of a sequence.
#[derive(Debug)]
struct Stream {
    state: State,
    sequence: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Text,
    /// After the escape character.
    Escape,
    /// In a sequence with parameters, such as a color.
    Control,
    /// In a text for the terminal, such as a title, until its end.
    Message,
    /// In such a text, after the escape character.
    MessageEscape,
    /// In a letter of several bytes.
    Letter(u8),
}

/// Writes output of a program: filtered to a terminal, unchanged otherwise.
pub(crate) fn pass_on(to_stderr: bool, bytes: &[u8]) {
    if to_stderr {
        let err = io::stderr().lock();
        let is_terminal = err.is_terminal();
        write(err, 1, is_terminal, bytes);
    } else {
        let out = io::stdout().lock();
        let is_terminal = out.is_terminal();
        write(out, 0, is_terminal, bytes);
    }
}

fn write(mut out: impl Write, stream: usize, is_terminal: bool, bytes: &[u8]) {
    let written = if is_terminal {
        let mut screen = SCREEN.lock().unwrap_or_else(PoisonError::into_inner);
        out.write_all(&screen.sanitize(stream, bytes))
    } else {
        out.write_all(bytes)
    };
    // The program continues if the output is closed.
    let _ = written.and_then(|()| out.flush());
}

/// Resets the terminal after a program has ended.
pub(crate) fn reset() {
    let mut screen = SCREEN.lock().unwrap_or_else(PoisonError::into_inner);
    let end = screen.end();
    if !end.is_empty() {
        let mut err = io::stderr().lock();
        let _ = if err.is_terminal() { err.write_all(&end) } else { io::stdout().write_all(&end) };
    }
    *screen = Screen::new();
}

impl Screen {
    const fn new() -> Self {
        const STREAM: Stream = Stream { state: State::Text, sequence: Vec::new() };
        Self { streams: [STREAM; 2], row: 0, deepest: 0, is_changed: false }
    }

    /// The bytes that reset the terminal. The cursor moves below all output of the program, so that
    /// output cannot appear below a later question like an answer.
    fn end(&self) -> Vec<u8> {
        let mut end = if self.is_changed { RESET.to_owned() } else { Vec::new() };
        let below = self.deepest.saturating_sub(self.row);
        if below > 0 {
            end.extend(format!("\x1b[{below}B\r\n").bytes());
        }
        end
    }

    fn sanitize(&mut self, stream: usize, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for byte in bytes {
            self.step(stream, *byte, &mut out);
        }
        out
    }

    fn step(&mut self, stream: usize, byte: u8, out: &mut Vec<u8>) {
        let Stream { state, sequence } = &mut self.streams[stream];
        if matches!(state, State::Letter(_)) && !matches!(byte, 0x80..=0xbf) {
            // An incomplete letter must not swallow the next one.
            *state = State::Text;
        }
        *state = match (*state, byte) {
            // In the second case, a sequence that selects a character set: one more byte follows.
            (State::Text, 0x1b) | (State::Escape, 0x20..=0x2f) => State::Escape,
            // Titles cannot contain a line end, so an unterminated one must not swallow the rest.
            (State::Text | State::Message | State::MessageEscape, b'\n') => {
                self.row += 1;
                self.deepest = self.deepest.max(self.row);
                out.push(byte);
                State::Text
            }
            (State::Text, b'\r' | b'\t' | 0x08 | b' '..=b'~') => {
                out.push(byte);
                State::Text
            }
            (State::Text, 0xc2..=0xf4) => {
                *sequence = vec![byte];
                State::Letter(if byte < 0xe0 { 1 } else { 2 + u8::from(byte >= 0xf0) })
            }
            (State::Letter(left), 0x80..=0xbf) => {
                sequence.push(byte);
                match left {
                    0 | 1 => {
                        push_letter(sequence, out);
                        State::Text
                    }
                    left => State::Letter(left - 1),
                }
            }
            (State::Escape, b'[') => {
                sequence.clear();
                State::Control
            }
            // Titles, clipboard access, hyperlinks and queries.
            (State::Message, 0x1b) => State::MessageEscape,
            (State::Message, 0x07) | (State::MessageEscape, b'\\') => State::Text,
            (State::Escape, b']' | b'P' | b'X' | b'^' | b'_')
            | (State::Message | State::MessageEscape, _) => State::Message,
            (State::Control, 0x20..=0x3f) if sequence.len() < MAX_SEQUENCE_BYTES => {
                sequence.push(byte);
                State::Control
            }
            (State::Control, 0x40..=0x7e) => {
                let allowed = filter_sequence(&mut self.row, self.deepest, sequence, byte);
                self.is_changed |= !allowed.is_empty();
                // Everything below is erased.
                if byte == b'J' && !allowed.is_empty() {
                    self.deepest = self.row;
                }
                out.extend(allowed);
                State::Text
            }
            _ => State::Text,
        };
    }
}

/// Appends a letter, unless it is a control character or changes the text direction.
fn push_letter(bytes: &[u8], out: &mut Vec<u8>) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let is_hidden = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(is_hidden) {
        out.extend_from_slice(bytes);
    }
}

/// The sequence to write; empty if it is removed.
fn filter_sequence(row: &mut usize, deepest: usize, parameters: &[u8], last: u8) -> Vec<u8> {
    let whole = |parameters: &[u8]| [b"\x1b[", parameters, &[last]].concat();
    let number = || std::str::from_utf8(parameters).ok()?.parse::<usize>().ok();
    let is_plain = parameters.iter().all(|byte| matches!(byte, b'0'..=b'9' | b';' | b':'));
    match last {
        b'm' | b'K' | b'C' | b'D' | b'G' if is_plain => whole(parameters),
        b'J' if matches!(parameters, b"" | b"0") => whole(parameters),
        b'h' | b'l' if parameters == b"?25" => whole(parameters),
        // The cursor must not move above the program's own output.
        b'A' | b'F' if is_plain => {
            let lines = number().unwrap_or(1).max(1).min(*row);
            *row -= lines;
            if lines == 0 { Vec::new() } else { whole(lines.to_string().as_bytes()) }
        }
        b'B' | b'E' if is_plain => {
            let lines = number().unwrap_or(1).max(1).min(deepest - *row);
            *row += lines;
            if lines == 0 { Vec::new() } else { whole(lines.to_string().as_bytes()) }
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8]) -> String {
        let whole = Screen::new().sanitize(0, bytes);
        let mut screen = Screen::new();
        let parts: Vec<u8> = bytes.iter().flat_map(|byte| screen.sanitize(0, &[*byte])).collect();
        assert_eq!(whole, parts, "it does not matter how the bytes come");
        String::from_utf8(whole).expect("text")
    }

    #[test]
    fn text_and_colors_pass() {
        for text in [
            "plain\ttext\r\n", "10 %\r20 %\r", "\u{1b}[1;31mred\u{1b}[0m", "\u{1b}[2Kline",
            "üñ 漢字 🎉\n", "a\nb\n\u{1b}[2A\u{1b}[J", "\u{1b}[?25l",
        ] {
            assert_eq!(shown(text.as_bytes()), text);
        }
    }

    #[test]
    fn later_output_starts_below_earlier_output() {
        let end = |bytes: &[u8]| {
            let mut screen = Screen::new();
            screen.sanitize(0, bytes);
            String::from_utf8(screen.end()).expect("text")
        };
        assert_eq!(end(b"a\nb\n"), "");
        assert!(end(b"a\nb\nc\n\x1b[3A").ends_with("\x1b[3B\r\n"));
        assert!(
            !end(b"a\nb\n\x1b[2A\x1b[J").contains('B'),
            "a program that cleans up leaves no gap"
        );
    }

    #[test]
    fn terminal_commands_are_removed() {
        for (bytes, text) in [
            (&b"\x1b]0;title\x07x"[..], "x"),
            (b"\x1b]52;c;ZXZpbA==\x1b\\x", "x"),
            (b"\x1bPq\x1b[31m\x1b\\x", "x"),
            (b"\x1b[2J\x1b[1;1Hx", "x"),
            (b"\x1b[6nx\x1b[cx", "xx"),
            (b"\x1b[?1049hx", "x"),
            (b"\x1bcx\x1b7x", "xx"),
            (b"\xc2\x9b31mx", "31mx"),
            (b"\x07\x00x\x7f", "x"),
            ("\u{202e}x".as_bytes(), "x"),
            (b"\xff\xfex\xc3y", "xy"),
            // The cursor can move up only as far as the program has printed.
            (b"\x1b[5Aa\n\x1b[9Ab", "a\n\x1b[1Ab"),
            (b"a\n\x1b[1000B\x1b[50Ab", "a\n\x1b[1Ab"),
            (b"\x1b(Bx\x1b]0;never\ny", "x\ny"),
        ] {
            assert_eq!(shown(bytes), text, "{:?}", String::from_utf8_lossy(bytes));
        }
    }
}
