//! Checks commands against denied patterns such as `disallowed-tools: Bash(git push:*)`.
//!
//! A command is split into plain commands at `;`, `&`, `|` and line ends. Other shell syntax is not
//! interpreted: a command that uses it is denied as well, with the reason.

use std::{borrow::Cow, iter::Peekable, mem, str::Chars};

use super::command::{self, not_plain_reason};

/// Programs and shell keywords that are followed by another command.
const RUNNERS: [&str; 36] = [
    "if", "then", "else", "elif", "while", "until", "do", "for", "case", "coproc", "command",
    "builtin", "exec", "env", "sudo", "doas", "nice", "nohup", "timeout", "time", "xargs", "find",
    "parallel", "setsid", "stdbuf", "ionice", "chrt", "taskset", "watch", "script", "busybox",
    "chroot", "unshare", "flock", "strace", "fakeroot",
];
/// Runners that append arguments to the command.
const ARGUMENT_APPENDERS: [&str; 2] = ["xargs", "parallel"];
/// Shell builtins that execute a text.
const TEXT_EVALUATORS: [&str; 3] = ["eval", "trap", "alias"];
/// Builtins that execute a file. They count only at the beginning of a command, because elsewhere a
/// dot is a folder.
const SOURCE_COMMANDS: [&str; 2] = [".", "source"];
/// Shell keywords after which a command begins.
const COMMAND_KEYWORDS: [&str; 10] =
    ["if", "then", "else", "elif", "while", "until", "do", "command", "builtin", "coproc"];
/// Options of runners that execute a text or insert other words into the command.
const TEXT_OPTIONS: [&str; 7] =
    ["-c", "-S", "--split-string", "-I", "-i", "--replace", "--command"];
/// Shells, which execute a script file or a text.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "fish"];
/// Prefixes of shell arguments that are not script files.
const NOT_A_SCRIPT_PREFIXES: [&str; 4] = ["-", "+", "/dev/", "/proc/"];

/// A word, and whether a shell may expand it to other words.
#[derive(Default)]
struct Word {
    text: String,
    has_glob: bool,
}

impl Word {
    fn is_one_of(&self, programs: &[&str]) -> bool {
        programs.contains(&program_name(&self.text))
    }
}

/// Parses a denied pattern into words. A pattern with options is an error, because options can be
/// written in many ways.
pub(super) fn read_pattern(pattern: &str) -> Result<(Vec<String>, bool), Cow<'static, str>> {
    let (pattern_words, has_wildcard) = command::read_pattern(pattern)?;
    if pattern_words.iter().any(|word| word.starts_with('-')) {
        return Err("the pattern is not understood: it has options".into());
    }
    Ok((pattern_words, has_wildcard))
}

/// Whether a part of a command matches a denied pattern; an error if this cannot be determined.
pub(super) fn matches_command(pattern: &str, command: &str) -> Result<bool, Cow<'static, str>> {
    let (pattern_words, has_wildcard) = read_pattern(pattern)?;
    for part in split_commands(command)? {
        let Some(first) = part.first() else { continue };
        let is_runner = first.has_glob || first.is_one_of(&RUNNERS) || first.is_one_of(&SHELLS);
        let appends_arguments =
            is_runner && part.iter().any(|word| word.is_one_of(&ARGUMENT_APPENDERS));
        if is_runner && runs_hidden_command(&part) {
            let why = format!(
                "`{}` runs a command that is not inspected; send that command itself",
                first.text
            );
            return Err(why.into());
        }
        for start in 0..if is_runner { part.len() } else { 1 } {
            let words = &part[start..];
            let begins_here = start == 0 || part[start - 1].is_one_of(&COMMAND_KEYWORDS);
            let sourced =
                words.first().filter(|word| begins_here && word.is_one_of(&SOURCE_COMMANDS));
            if let Some(name) =
                find_text_evaluator(words).or(sourced.map(|word| word.text.as_str()))
            {
                let why =
                    format!("`{name}` runs a text that is not inspected; send the command itself");
                return Err(why.into());
            }
            if starts_with_pattern(words, &pattern_words, has_wildcard, appends_arguments) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether a runner executes a text, or words that are not visible in the command.
fn runs_hidden_command(words: &[Word]) -> bool {
    let is_text = |word: &Word| {
        word.text.contains(char::is_whitespace)
            || TEXT_OPTIONS.iter().any(|option| word.text.starts_with(option))
    };
    let runners = words.iter().filter(|word| word.is_one_of(&RUNNERS) || word.is_one_of(&SHELLS));
    let adds = words.iter().any(|word| word.is_one_of(&ARGUMENT_APPENDERS));
    words[1..].iter().any(is_text) || (adds && runners.count() > 1)
}

/// Returns the program that executes a text, if there is one.
fn find_text_evaluator(words: &[Word]) -> Option<&str> {
    let first = words.first()?;
    let is_script = |next: &Word| {
        !next.has_glob && !NOT_A_SCRIPT_PREFIXES.iter().any(|it| next.text.starts_with(it))
    };
    let runs_text = first.is_one_of(&TEXT_EVALUATORS)
        || (first.is_one_of(&SHELLS) && !words.get(1).is_some_and(is_script));
    runs_text.then(|| program_name(&first.text))
}

/// Whether words start with the pattern, or equal it if there is no wildcard. Options, and one
/// value of each, may occur in between. A word that a shell may expand can match all missing words.
fn starts_with_pattern(
    words: &[Word],
    pattern_words: &[String],
    has_wildcard: bool,
    appends_arguments: bool,
) -> bool {
    // reached[i]: the first i pattern words are matched, after a plain word and after an option.
    let mut reached = vec![[false; 2]; pattern_words.len() + 1];
    reached[0][0] = true;
    let some = |reached: &[[bool; 2]]| reached.iter().any(|it| it[0] || it[1]);
    for (place, word) in words.iter().enumerate() {
        if word.has_glob {
            return some(&reached[..pattern_words.len()]);
        }
        let mut next = vec![[false; 2]; pattern_words.len() + 1];
        for (found, pattern_words) in pattern_words.iter().enumerate() {
            let [plain, after_option] = reached[found];
            if !plain && !after_option {
                continue;
            }
            let is_option = word.text.starts_with('-');
            next[found + 1][0] |= match place {
                0 => program_name(&word.text) == program_name(pattern_words),
                _ => word.text == *pattern_words,
            };
            next[found][1] |= place > 0 && is_option;
            next[found][0] |= !is_option && after_option;
        }
        reached = next;
        if reached[pattern_words.len()][0] && (has_wildcard || place + 1 == words.len()) {
            return true;
        }
    }
    appends_arguments && some(&reached[1..])
}

/// The file name of a program.
fn program_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Splits a command into plain commands.
fn split_commands(command: &str) -> Result<Vec<Vec<Word>>, Cow<'static, str>> {
    let mut reader = CommandReader::default();
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
            // Shells differ here: some run the command before `&>` in the background.
            '&' if rest.next_if_eq(&'>').is_some() => return Err(not_plain_reason(c)),
            ';' | '&' | '|' | '\n' => reader.end_part(),
            '<' | '>' => {
                reader.end_descriptor();
                // `<<` reads further lines.
                if rest.next_if_eq(&c).is_some() && c == '<' {
                    return Err(not_plain_reason(c));
                }
                reader.redirect(&mut rest)?;
            }
            '*' | '?' | '[' => {
                reader.push(c);
                reader.word.get_or_insert_default().has_glob = true;
            }
            '#' | '~' if reader.word.is_none() => return Err(not_plain_reason(c)),
            c if "(){}$`\\!".contains(c) || c.is_whitespace() || c.is_control() => {
                return Err(not_plain_reason(c));
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
struct CommandReader {
    parts: Vec<Vec<Word>>,
    part: Vec<Word>,
    word: Option<Word>,
    quote: Option<char>,
    /// Whether the next word is the file of a redirection and not part of the command.
    is_redirected: bool,
}

impl CommandReader {
    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().text.push(c);
    }

    fn push_quoted(&mut self, open: char, c: char) -> Result<(), Cow<'static, str>> {
        match c {
            c if c == open => self.quote = None,
            '\r' | '\0' => return Err(not_plain_reason(c)),
            '$' | '`' | '\\' | '!' if open == '"' => return Err(not_plain_reason(c)),
            c => self.push(c),
        }
        Ok(())
    }

    fn end_word(&mut self) {
        let Some(mut word) = self.word.take() else { return };
        // `[` alone is a command, not a glob.
        word.has_glob &= word.text.contains(['*', '?', ']']);
        if !mem::take(&mut self.is_redirected) {
            self.part.push(word);
        }
    }

    fn end_part(&mut self) {
        self.end_word();
        self.is_redirected = false;
        self.parts.push(mem::take(&mut self.part));
    }

    /// Removes a number right before `>`, which is a file descriptor.
    fn end_descriptor(&mut self) {
        let is_number = |word: &Word| word.text.bytes().all(|byte| byte.is_ascii_digit());
        if !self.is_redirected && self.word.as_ref().is_some_and(is_number) {
            self.word = None;
        }
        self.end_word();
    }

    fn redirect(&mut self, rest: &mut Peekable<Chars<'_>>) -> Result<(), Cow<'static, str>> {
        if self.is_redirected {
            return Err(not_plain_reason('>'));
        }
        let _ = rest.next_if(|c| matches!(c, '>' | '&' | '|'));
        self.is_redirected = true;
        Ok(())
    }
}
