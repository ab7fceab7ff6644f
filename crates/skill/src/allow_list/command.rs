//! Checks commands against allowed patterns such as `Bash(git add:*)`.
//!
//! Shell syntax is never interpreted. If a list restricts commands, a command must consist of plain
//! or quoted words, without separators, redirections or expansions.

use std::borrow::Cow;

use super::{ConditionError, launchers, path};

/// Checks a command against a pattern. `git add:*` and `git add *` match the first words, `git
/// status` matches the whole command, `cat docs/*` matches files below `docs`. A matching command
/// that may run other programs is in doubt.
pub(super) fn check_command(pattern: &str, command: &str) -> Result<(), ConditionError> {
    let pattern_words = CommandPattern::read(pattern)?;
    let words = pattern_words.split_command(command)?;
    if pattern_words.matches(&words) {
        // A pattern without wildcard names the whole command, so there is no doubt.
        let named = pattern_words.count_fixed_words();
        let is_whole = !pattern_words.has_more && named == pattern_words.words.len();
        let doubt = if is_whole { None } else { launchers::find_doubt(&words, named) };
        return doubt.map_or(Ok(()), |why| Err(ConditionError::InDoubt(why)));
    }
    let prefix = strip_wildcard(pattern).unwrap_or(pattern);
    let expected = if pattern_words.has_more { "start with" } else { "be" };
    Err(ConditionError::NotMet(format!("the command must {expected} `{prefix}`").into()))
}

/// The words of an allowed command. A word after the program may contain `*`, and is then a path
/// pattern.
struct CommandPattern {
    words: Vec<String>,
    /// Whether any other words may follow.
    has_more: bool,
}

impl CommandPattern {
    fn read(pattern: &str) -> Result<Self, Cow<'static, str>> {
        let prefix = strip_wildcard(pattern);
        let words = split_words_with(prefix.unwrap_or(pattern), Globs::Kept)
            .map_err(|_| "the pattern is not understood")?;
        let is_understood = |(place, word): (usize, &String)| {
            !word.contains('*') || (place > 0 && is_path_pattern(word))
        };
        if words.is_empty() || !words.iter().enumerate().all(is_understood) {
            return Err("the pattern is not understood".into());
        }
        Ok(Self { words, has_more: prefix.is_some() })
    }

    /// Splits a command into words. The shell may expand `docs/*` itself if the pattern has exactly
    /// this word, because every file that it finds fits. It may not expand `*.md`, because a file
    /// may be named like an option.
    fn split_command(&self, command: &str) -> Result<Vec<String>, Cow<'static, str>> {
        let words = split_words_with(command, Globs::Kept)?;
        let plain = split_words(command);
        if plain.is_err() && words.iter().all(|word| !word.contains('*') || self.has_glob(word)) {
            return Ok(words);
        }
        plain
    }

    fn has_glob(&self, word: &str) -> bool {
        !word.starts_with('*') && self.words.iter().any(|known| known == word)
    }

    /// The number of words before the first path pattern.
    fn count_fixed_words(&self) -> usize {
        self.words.iter().take_while(|word| !word.contains('*')).count()
    }

    fn matches(&self, words: &[String]) -> bool {
        let Some(last) = self.words.last().filter(|_| words.len() >= self.words.len()) else {
            return false;
        };
        let (first, others) = words.split_at(self.words.len());
        let all_match = first.iter().zip(&self.words).all(|(word, known)| fits_word(known, word));
        // `cat docs/*` covers several files.
        let others_match = || last.contains('*') && others.iter().all(|word| fits_word(last, word));
        all_match && (self.has_more || others.is_empty() || others_match())
    }
}

/// Whether a word is a pattern for paths. A star alone may stand for anything, also a subcommand.
fn is_path_pattern(word: &str) -> bool {
    word.contains(['/', '.']) && path::read_pattern(word).is_ok()
}

/// Whether a word of a command is the word of a pattern, or a path that fits it.
fn fits_word(known: &str, word: &str) -> bool {
    let is_option = word.starts_with('-') && !known.starts_with('-');
    known == word || (known.contains('*') && !is_option && path::is_below(known, word))
}

/// Parses a pattern into words, and whether more words may follow.
pub(super) fn read_pattern(pattern: &str) -> Result<(Vec<String>, bool), Cow<'static, str>> {
    let prefix = strip_wildcard(pattern);
    let pattern_words =
        split_words(prefix.unwrap_or(pattern)).map_err(|_| "the pattern is not understood")?;
    if pattern_words.is_empty() || pattern_words.iter().any(|word| word.contains('*')) {
        return Err("the pattern is not understood".into());
    }
    Ok((pattern_words, prefix.is_some()))
}

fn strip_wildcard(pattern: &str) -> Option<&str> {
    pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *"))
}

/// Whether an unquoted `*` is shell syntax or part of a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Globs {
    Refused,
    Kept,
}

/// Splits a plain command into words.
fn split_words(command: &str) -> Result<Vec<String>, Cow<'static, str>> {
    split_words_with(command, Globs::Refused)
}

fn split_words_with(command: &str, globs: Globs) -> Result<Vec<String>, Cow<'static, str>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in command.chars() {
        let is_kept = c == '*' && globs == Globs::Kept;
        if !is_kept && is_shell_syntax(quote, word.is_none(), c) {
            return Err(not_plain_reason(c));
        }
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ' | '\t') => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".into());
    }
    words.extend(word);
    // A variable before the program changes what the command does.
    if words.first().is_some_and(|first| first.contains('=')) {
        return Err("a variable is set before the command".into());
    }
    Ok(words)
}

/// Whether a shell gives a character a special meaning at this position.
fn is_shell_syntax(quote: Option<char>, starts_word: bool, c: char) -> bool {
    match (quote, c) {
        (_, '\n' | '\r' | '\0') | (Some('"'), '$' | '`' | '\\' | '!') => true,
        (Some(_), _) | (None, ' ' | '\t') => false,
        (None, '#' | '~') => starts_word,
        (None, c) => ";&|<>(){}$`\\!*?[".contains(c) || c.is_whitespace() || c.is_control(),
    }
}

pub(super) fn not_plain_reason(c: char) -> Cow<'static, str> {
    format!("it has `{}`; send one plain command at a time", c.escape_debug()).into()
}
