//! Checks commands against allowed patterns such as `Bash(git add:*)`.
//!
//! Shell syntax is never interpreted. If a list restricts commands, a command must consist of plain
//! or quoted words, without separators, redirections or expansions.

use std::borrow::Cow;

use super::{ConditionError, launchers};

/// Checks a command against a pattern. `git add:*` and `git add *` match the first words, `git
/// status` matches the whole command. A matching command that may run other programs is in doubt.
pub(super) fn check_command(pattern: &str, command: &str) -> Result<(), ConditionError> {
    let (pattern_words, has_wildcard) = read_pattern(pattern)?;
    let words = split_words(command)?;
    let has_prefix =
        words.len() >= pattern_words.len() && words.iter().zip(&pattern_words).all(|(a, b)| a == b);
    if has_prefix && (has_wildcard || words.len() == pattern_words.len()) {
        // A pattern without wildcard names the whole command, so there is no doubt.
        let doubt =
            has_wildcard.then(|| launchers::find_doubt(&words, pattern_words.len())).flatten();
        return doubt.map_or(Ok(()), |why| Err(ConditionError::InDoubt(why)));
    }
    let prefix = strip_wildcard(pattern).unwrap_or(pattern);
    let expected = if has_wildcard { "start with" } else { "be" };
    Err(ConditionError::NotMet(format!("the command must {expected} `{prefix}`").into()))
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

/// Splits a plain command into words.
fn split_words(command: &str) -> Result<Vec<String>, Cow<'static, str>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in command.chars() {
        if is_shell_syntax(quote, word.is_none(), c) {
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
