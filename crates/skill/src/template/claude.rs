//! Renders the body of a Claude Code skill: replaces `$ARGUMENTS`, `$ARGUMENTS[N]`, `$N`, `$name`
//! and `${CLAUDE_…}`.
//!
//! Positions count from zero, and the arguments are split like words of a shell. A declared name
//! without an argument becomes empty. A position without an argument becomes empty if all lower
//! positions occur in the body; any other, such as `$5`, is probably an amount of money and stays
//! unchanged. A backslash before a placeholder keeps it literal. Placeholders in code blocks are
//! replaced as well. Commands (`` !`cmd` ``) stay unchanged: this module never executes anything.

use std::{borrow::Cow, collections::HashSet, ops::Range};

use crate::template::is_word;

/// The meaning of a placeholder.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// `$ARGUMENTS`: all arguments as typed by the user.
    All,
    /// `$ARGUMENTS[N]` or `$N`: the argument at this position.
    Position(usize),
    /// `$name`: the index of the name among the declared arguments.
    Name(usize),
    /// `${CLAUDE_…}`: the name of the variable.
    Variable(String),
    /// A placeholder after a backslash: replaced by its text without the backslash.
    Escaped,
}

/// A placeholder in a body.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    /// The byte range, including the backslash of an escaped placeholder.
    pub span: Range<usize>,
    /// The meaning of the placeholder.
    pub target: Target,
}

/// Finds all placeholders, from left to right. `names` are the names of the declared arguments.
pub fn scan<S: AsRef<str>>(body: &str, names: &[S]) -> Vec<Reference> {
    let mut found = Vec::new();
    let mut end = 0;
    for dollar in memchr::memchr_iter(b'$', body.as_bytes()) {
        let Some(rest) = body.get(dollar + 1..) else { continue };
        let Some((target, length)) = read(rest, names).filter(|_| dollar >= end) else { continue };
        let start = end;
        end = dollar + 1 + length;
        found.push(if is_escaped(body.get(start..dollar).unwrap_or_default()) {
            Reference { span: dollar - 1..end, target: Target::Escaped }
        } else {
            Reference { span: dollar..end, target }
        });
    }
    found
}

/// Whether the text ends with an odd number of backslashes. An even number escapes itself, not the
/// dollar sign.
fn is_escaped(before: &str) -> bool {
    before.bytes().rev().take_while(|&b| b == b'\\').count() % 2 == 1
}

/// Parses the text after a dollar sign; returns the target and its length.
fn read<S: AsRef<str>>(rest: &str, names: &[S]) -> Option<(Target, usize)> {
    read_variable(rest)
        .or_else(|| read_arguments(rest))
        .or_else(|| read_position(rest))
        .or_else(|| read_name(rest, names))
}

fn read_variable(rest: &str) -> Option<(Target, usize)> {
    let inside = rest.strip_prefix('{')?;
    let length = inside.bytes().take_while(|&b| b.is_ascii_alphanumeric() || b == b'_').count();
    let (name, after) = inside.split_at_checked(length)?;
    let known = name.starts_with("CLAUDE_") && after.starts_with('}');
    known.then(|| (Target::Variable(name.to_owned()), name.len() + 2))
}

fn read_arguments(rest: &str) -> Option<(Target, usize)> {
    const ARGUMENTS_NAME: &str = "ARGUMENTS";
    let after = rest.strip_prefix(ARGUMENTS_NAME)?;
    if let Some((position, length)) = read_index(after) {
        return Some((Target::Position(position), ARGUMENTS_NAME.len() + length));
    }
    (!after.starts_with(is_word)).then_some((Target::All, ARGUMENTS_NAME.len()))
}

/// Parses `[N]`; returns the number and the length.
fn read_index(text: &str) -> Option<(usize, usize)> {
    let (position, length) = read_number(text.strip_prefix('[')?)?;
    let closed = text.get(length + 1..)?.starts_with(']');
    closed.then_some((position, length + 2))
}

fn read_position(rest: &str) -> Option<(Target, usize)> {
    let (position, length) = read_number(rest)?;
    let ends = !rest.get(length..)?.starts_with(is_word);
    ends.then_some((Target::Position(position), length))
}

fn read_number(text: &str) -> Option<(usize, usize)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text.get(..length)?.parse().ok()?, length))
}

/// Returns the longest declared name that ends at a word boundary.
fn read_name<S: AsRef<str>>(rest: &str, names: &[S]) -> Option<(Target, usize)> {
    let fits = |name: &str| {
        !name.is_empty() && rest.strip_prefix(name).is_some_and(|after| !after.starts_with(is_word))
    };
    names
        .iter()
        .map(AsRef::as_ref)
        .enumerate()
        .filter(|(_, name)| fits(name))
        .max_by_key(|(_, name)| name.len())
        .map(|(position, name)| (Target::Name(position), name.len()))
}

/// Renders a body. `variable` returns the values of `${CLAUDE_…}`; `None` leaves one unchanged.
///
/// Arguments that no placeholder used are appended as `ARGUMENTS: …`, so that they are not lost.
pub fn render<'a, S: AsRef<str>>(
    body: &str,
    arguments: &str,
    names: &[S],
    mut variable: impl FnMut(&str) -> Option<Cow<'a, str>>,
) -> String {
    let words = split_arguments(arguments);
    let references = scan(body, names);
    let positions = positions(&references);
    let mut result = String::with_capacity(body.len() + arguments.len());
    let mut copied = 0;
    let mut taken = false;
    for Reference { span, target } in references {
        let value = match &target {
            Target::All => Some(Cow::Borrowed(arguments)),
            Target::Position(n) => {
                let empty = (*n < positions).then_some("");
                words.get(*n).map(String::as_str).or(empty).map(Cow::Borrowed)
            }
            Target::Name(n) => Some(Cow::Borrowed(words.get(*n).map_or("", String::as_str))),
            Target::Variable(name) => variable(name),
            Target::Escaped => body.get(span.start + 1..span.end).map(Cow::Borrowed),
        };
        let Some(value) = value else { continue };
        taken |= !matches!(target, Target::Variable(_) | Target::Escaped);
        result.push_str(body.get(copied..span.start).unwrap_or_default());
        result.push_str(&value);
        copied = span.end;
    }
    result.push_str(body.get(copied..).unwrap_or_default());
    if !taken && !arguments.trim().is_empty() {
        result.push_str("\n\nARGUMENTS: ");
        result.push_str(arguments);
    }
    result
}

/// Returns how many positions occur in the body, counted from zero to the first gap.
fn positions(references: &[Reference]) -> usize {
    let there: HashSet<usize> = references
        .iter()
        .filter_map(|one| match one.target {
            Target::Position(n) => Some(n),
            _ => None,
        })
        .collect();
    (0..there.len()).take_while(|n| there.contains(n)).count()
}

/// Splits arguments like words of a shell, without expansion. If a quote is not closed, splits at
/// blanks only.
fn split_arguments(text: &str) -> Vec<String> {
    split_quoted(text).unwrap_or_else(|| text.split_whitespace().map(str::to_owned).collect())
}

fn split_quoted(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('"'), '\\') => {
                let word = word.get_or_insert_default();
                match chars.next()? {
                    escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                    other => word.extend(['\\', other]),
                }
            }
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '\\') => word.get_or_insert_default().push(chars.next().unwrap_or('\\')),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(body: &str, arguments: &str, names: &[&str]) -> String {
        render(body, arguments, names, |_| None)
    }

    #[test]
    fn positions_count_from_zero() {
        assert_eq!(plain("$0 then $1", "a b", &[]), "a then b");
        assert_eq!(plain("$ARGUMENTS[1]-$ARGUMENTS[0]", "a 'b c'", &[]), "b c-a");
        assert_eq!(plain("[$ARGUMENTS]", "a  'b c'", &[]), "[a  'b c']");
        assert_eq!(plain("$0 $2", "a", &[]), "a $2");
        assert_eq!(plain("$ARGUMENTS[9]$0", "a", &[]), "$ARGUMENTS[9]a");
        assert_eq!(plain("[$ARGUMENTS]", "", &[]), "[]");
    }

    #[test]
    fn a_position_that_is_not_given_is_empty() {
        assert_eq!(plain("$0, $1 and $2.", "a", &[]), "a,  and .");
        assert_eq!(plain("$ARGUMENTS[1] of $0", "a", &[]), " of a");
        assert_eq!(plain("From $0 to $1.", "", &[]), "From  to .");
        // Amounts and programs of others.
        assert_eq!(plain("$0 for $20, awk '{print $3}'", "a", &[]), "a for $20, awk '{print $3}'");
        assert_eq!(plain("awk '{print $1}'", "", &[]), "awk '{print $1}'");
    }

    #[test]
    fn similar_text_is_not_replaced() {
        for body in ["$HOME", "$200K", "$ARGUMENTSX", "${0}", "$(date)", "$", "$$", "!`git log $x`"]
        {
            assert_eq!(plain(body, "", &["y"]), body);
        }
        assert_eq!(plain("$1.5M for $B$0", "a b", &[]), "b.5M for $Ba");
        assert_eq!(plain("$ARGUMENTS[x]", "a", &[]), "a[x]");
        assert_eq!(plain("$99999999999999999999999", "", &[]), "$99999999999999999999999");
    }

    #[test]
    fn names_map_to_positions() {
        let names = ["issue", "issue-id", "branch"];
        assert_eq!(plain("$issue/$issue-id/$branch.", "1 2 3", &names), "1/2/3.");
        assert_eq!(plain("[$branch] $issues", "1", &names), "[] $issues");
    }

    #[test]
    fn backslash_keeps_a_placeholder() {
        assert_eq!(plain(r"\$0 \$ARGUMENTS $0", "a", &[]), "$0 $ARGUMENTS a");
        assert_eq!(plain(r"\$0", "", &[]), "$0");
        assert_eq!(plain(r"\$HOME", "", &[]), r"\$HOME");
        assert_eq!(plain(r"\\$0", "a", &[]), r"\\a");
    }

    #[test]
    fn variables_come_from_the_caller() {
        let variable = |name: &str| (name == "CLAUDE_SKILL_DIR").then_some(Cow::Borrowed("/s/$0"));
        let body = "${CLAUDE_SKILL_DIR} ${CLAUDE_SESSION_ID} ${HOME} $0";
        assert_eq!(render(body, "a", &[""; 0], variable), "/s/$0 ${CLAUDE_SESSION_ID} ${HOME} a");
    }

    #[test]
    fn unused_arguments_are_appended() {
        assert_eq!(plain("Do it.", "x y", &[]), "Do it.\n\nARGUMENTS: x y");
        assert_eq!(plain("Do $3.", "x", &[]), "Do $3.\n\nARGUMENTS: x");
        assert_eq!(plain(r"Do \$0.", "x", &[]), "Do $0.\n\nARGUMENTS: x");
        assert_eq!(plain("Do it.", "  ", &[]), "Do it.");
        assert_eq!(plain("Do $0.", "x y", &[]), "Do x.");
    }

    #[test]
    fn values_are_not_scanned_again() {
        assert_eq!(plain("$0 $1", "'$1' b", &[]), "$1 b");
        assert_eq!(plain("$ARGUMENTS", "$0 x", &[]), "$0 x");
    }

    #[test]
    fn words_are_split_like_a_shell_does() {
        assert_eq!(split_arguments(r#"a "b \"c\" \d" '' e\ f"#), ["a", r#"b "c" \d"#, "", "e f"]);
        assert_eq!(split_arguments("it's fine"), ["it's", "fine"]);
        assert_eq!(split_arguments("  "), [""; 0]);
        assert_eq!(split_arguments(r"a\"), [r"a\"]);
    }

    #[test]
    fn hostile_bodies_are_read_once() {
        let body = "${CLAUDE_$ARGUMENTS[1".repeat(50_000);
        assert_eq!(scan(&body, &[""; 0]).len(), 50_000);
    }

    #[test]
    fn spans_cover_the_source() {
        let body = r"x $0 \$1 ${CLAUDE_EFFORT}";
        let texts: Vec<_> =
            scan(body, &[""; 0]).into_iter().map(|found| &body[found.span]).collect();
        assert_eq!(texts, ["$0", r"\$1", "${CLAUDE_EFFORT}"]);
    }
}
