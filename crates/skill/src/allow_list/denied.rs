//! Commands against `disallowed-tools: Bash(git push:*)`.
//!
//! A command is read as rows of plain words between `;`, `&`, `|` and line ends. What a shell would make
//! of the rest is not guessed: such a command is ruled out as well, with the reason.

use std::{borrow::Cow, iter::Peekable, mem, str::Chars};

use super::command::{self, not_plain};

/// Programs and words of a shell after which another command stands.
const RUNNERS: [&str; 36] = [
    "if", "then", "else", "elif", "while", "until", "do", "for", "case", "coproc", "command",
    "builtin", "exec", "env", "sudo", "doas", "nice", "nohup", "timeout", "time", "xargs", "find",
    "parallel", "setsid", "stdbuf", "ionice", "chrt", "taskset", "watch", "script", "busybox",
    "chroot", "unshare", "flock", "strace", "fakeroot",
];
/// Those that add words to the command.
const ADD_WORDS: [&str; 2] = ["xargs", "parallel"];
/// Words of a shell that run a text.
const EVALUATES: [&str; 3] = ["eval", "trap", "alias"];
/// Those that run a file, where a command begins: elsewhere a dot is a folder.
const SOURCES: [&str; 2] = [".", "source"];
/// Words after which a command begins, as a shell has it.
const KEYWORDS: [&str; 10] =
    ["if", "then", "else", "elif", "while", "until", "do", "command", "builtin", "coproc"];
/// Options of programs that run others: a text is run, or other words are put into the command.
const RUN_TEXT: [&str; 7] = ["-c", "-S", "--split-string", "-I", "-i", "--replace", "--command"];
/// Shells: they run a script that is named, or a text.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "fish"];
/// What a shell is given in place of a script.
const NO_SCRIPT: [&str; 4] = ["-", "+", "/dev/", "/proc/"];

/// A word, and whether a shell may put others in its place.
#[derive(Default)]
struct Word {
    text: String,
    is_wild: bool,
}

impl Word {
    fn is_one_of(&self, programs: &[&str]) -> bool {
        programs.contains(&program(&self.text))
    }
}

/// The words that a pattern rules out. Options can be written in many ways: with them it is not understood.
pub(super) fn read_pattern(pattern: &str) -> Result<(Vec<String>, bool), Cow<'static, str>> {
    let (wanted, more) = command::read_pattern(pattern)?;
    if wanted.iter().any(|word| word.starts_with('-')) {
        return Err("the pattern is not understood: it has options".into());
    }
    Ok((wanted, more))
}

/// Whether a part of a command fits a pattern; an error if that cannot be told.
pub(super) fn fits(pattern: &str, command: &str) -> Result<bool, Cow<'static, str>> {
    let (wanted, more) = read_pattern(pattern)?;
    for part in parts(command)? {
        let Some(first) = part.first() else { continue };
        let is_runner = first.is_wild || first.is_one_of(&RUNNERS) || first.is_one_of(&SHELLS);
        let grows = is_runner && part.iter().any(|word| word.is_one_of(&ADD_WORDS));
        if is_runner && runs_what_is_not_read(&part) {
            let why = format!("`{}` runs what is not looked into; send the command", first.text);
            return Err(why.into());
        }
        for start in 0..if is_runner { part.len() } else { 1 } {
            let words = &part[start..];
            let begins_here = start == 0 || part[start - 1].is_one_of(&KEYWORDS);
            let sourced = words.first().filter(|word| begins_here && word.is_one_of(&SOURCES));
            if let Some(name) = evaluated(words).or(sourced.map(|word| word.text.as_str())) {
                let why = format!("`{name}` runs a text that is not looked into; send the command");
                return Err(why.into());
            }
            if begins(words, &wanted, more, grows) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether a program that runs others is given a text, or words that nobody sees here.
fn runs_what_is_not_read(words: &[Word]) -> bool {
    let is_text = |word: &Word| {
        word.text.contains(char::is_whitespace)
            || RUN_TEXT.iter().any(|option| word.text.starts_with(option))
    };
    let runners = words.iter().filter(|word| word.is_one_of(&RUNNERS) || word.is_one_of(&SHELLS));
    let adds = words.iter().any(|word| word.is_one_of(&ADD_WORDS));
    words[1..].iter().any(is_text) || (adds && runners.count() > 1)
}

/// The name of what runs a text here.
fn evaluated(words: &[Word]) -> Option<&str> {
    let first = words.first()?;
    let is_script =
        |next: &Word| !next.is_wild && !NO_SCRIPT.iter().any(|it| next.text.starts_with(it));
    let runs_text = first.is_one_of(&EVALUATES)
        || (first.is_one_of(&SHELLS) && !words.get(1).is_some_and(is_script));
    runs_text.then(|| program(&first.text))
}

/// Whether words begin with those that are wanted, or are these where no more may follow. Options, and
/// one value of each, may stand between them. What may be several words may be all that are missing.
fn begins(words: &[Word], wanted: &[String], more: bool, grows: bool) -> bool {
    // reached[i]: the first i are found, after a plain word and after an option.
    let mut reached = vec![[false; 2]; wanted.len() + 1];
    reached[0][0] = true;
    let some = |reached: &[[bool; 2]]| reached.iter().any(|it| it[0] || it[1]);
    for (place, word) in words.iter().enumerate() {
        if word.is_wild {
            return some(&reached[..wanted.len()]);
        }
        let mut next = vec![[false; 2]; wanted.len() + 1];
        for (found, wanted) in wanted.iter().enumerate() {
            let [plain, after_option] = reached[found];
            if !plain && !after_option {
                continue;
            }
            let is_option = word.text.starts_with('-');
            next[found + 1][0] |= match place {
                0 => program(&word.text) == program(wanted),
                _ => word.text == *wanted,
            };
            next[found][1] |= place > 0 && is_option;
            next[found][0] |= !is_option && after_option;
        }
        reached = next;
        if reached[wanted.len()][0] && (more || place + 1 == words.len()) {
            return true;
        }
    }
    grows && some(&reached[1..])
}

/// A program without the folder in which it lies.
fn program(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// The plain commands of a command.
fn parts(command: &str) -> Result<Vec<Vec<Word>>, Cow<'static, str>> {
    let mut reader = Reader::default();
    let mut rest = command.chars().peekable();
    while let Some(c) = rest.next() {
        if let Some(open) = reader.quote {
            reader.push_quoted(open, c)?;
            continue;
        }
        match c {
            '\'' | '"' => {
                reader.quote = Some(c);
                reader.word.get_or_insert_default();
            }
            ' ' | '\t' => reader.end_word(),
            // Shells differ: some run what stands before it apart.
            '&' if rest.next_if_eq(&'>').is_some() => return Err(not_plain(c)),
            ';' | '&' | '|' | '\n' => reader.end_part(),
            '<' | '>' => {
                reader.end_descriptor();
                // `<<` takes more lines.
                if rest.next_if_eq(&c).is_some() && c == '<' {
                    return Err(not_plain(c));
                }
                reader.redirect(&mut rest)?;
            }
            '*' | '?' | '[' => {
                reader.push(c);
                reader.word.get_or_insert_default().is_wild = true;
            }
            '#' | '~' if reader.word.is_none() => return Err(not_plain(c)),
            c if "(){}$`\\!".contains(c) || c.is_whitespace() || c.is_control() => {
                return Err(not_plain(c));
            }
            c => reader.push(c),
        }
    }
    if reader.quote.is_some() {
        return Err("a quote is not closed".into());
    }
    reader.end_part();
    let sets_variable = |part: &Vec<Word>| part.first().is_some_and(|it| it.text.contains('='));
    if reader.parts.iter().any(sets_variable) {
        return Err("a variable is set before the command".into());
    }
    Ok(reader.parts)
}

#[derive(Default)]
struct Reader {
    parts: Vec<Vec<Word>>,
    part: Vec<Word>,
    word: Option<Word>,
    quote: Option<char>,
    /// Whether the next word is a file for input or output, and no part of the command.
    is_redirected: bool,
}

impl Reader {
    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().text.push(c);
    }

    fn push_quoted(&mut self, open: char, c: char) -> Result<(), Cow<'static, str>> {
        match c {
            c if c == open => self.quote = None,
            '\r' | '\0' => return Err(not_plain(c)),
            '$' | '`' | '\\' | '!' if open == '"' => return Err(not_plain(c)),
            c => self.push(c),
        }
        Ok(())
    }

    fn end_word(&mut self) {
        let Some(mut word) = self.word.take() else { return };
        // `[` alone is a command.
        word.is_wild &= word.text.contains(['*', '?', ']']);
        if !mem::take(&mut self.is_redirected) {
            self.part.push(word);
        }
    }

    fn end_part(&mut self) {
        self.end_word();
        self.is_redirected = false;
        self.parts.push(mem::take(&mut self.part));
    }

    /// A number right before `>` belongs to it.
    fn end_descriptor(&mut self) {
        let is_number = |word: &Word| word.text.bytes().all(|byte| byte.is_ascii_digit());
        if !self.is_redirected && self.word.as_ref().is_some_and(is_number) {
            self.word = None;
        }
        self.end_word();
    }

    fn redirect(&mut self, rest: &mut Peekable<Chars<'_>>) -> Result<(), Cow<'static, str>> {
        if self.is_redirected {
            return Err(not_plain('>'));
        }
        let _ = rest.next_if(|c| matches!(c, '>' | '&' | '|'));
        self.is_redirected = true;
        Ok(())
    }
}
