//! Splits a command line into words as a shell does, and finds syntax that only a shell
//! understands.

use std::ops::Range;

use super::CommandError;

/// How a piece of a token was quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quoting {
    /// Not quoted.
    Bare,
    /// In double quotes, where a shell would still expand variables.
    Double,
    /// In single quotes or after a backslash: a shell would not change it.
    Literal,
}

/// One word of a command line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    pieces: Vec<(Quoting, String)>,
    range: Range<usize>,
}

impl Token {
    /// The word without quotes and escapes.
    pub fn text(&self) -> String {
        self.pieces.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// The byte range of the word in the command, including quotes.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The name of the variable that the word sets if it precedes the program: `NAME=value`.
    pub fn assigned_name(&self) -> Option<&str> {
        let (Quoting::Bare, text) = self.pieces.first()? else { return None };
        let (name, _) = text.split_once('=')?;
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_name = name.chars().all(is_word) && !name.starts_with(|c: char| c.is_ascii_digit());
        (is_name && !name.is_empty()).then_some(name)
    }

    /// The pieces of the word that have one of these quotings.
    fn pieces(&self, quoting: &[Quoting]) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter(|(q, _)| quoting.contains(q)).map(|(_, text)| text.as_str())
    }

    fn push(&mut self, quoting: Quoting, c: char) {
        match self.pieces.last_mut() {
            Some((last, text)) if *last == quoting => text.push(c),
            _ => self.pieces.push((quoting, c.to_string())),
        }
    }
}

/// Splits one command into its words.
///
/// Follows the rules of a POSIX shell: blanks and line ends separate words; single quotes are
/// literal; outside quotes a backslash makes the next character literal; in double quotes only
/// before `$`, a backtick, `"` and `\`. A backslash before a line end joins the lines.
pub fn tokenize(command: &str) -> Result<Vec<Token>, CommandError> {
    Lexer::new(command).run(Extent::Command)
}

/// The kind of text that the lexer reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// One command, in which a line end is a blank.
    Command,
    /// A code block, in which each line is a command and a line that starts with `#` is a comment.
    Block,
}

pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Offset where the current character, escape or quote begins.
    begin: usize,
    tokens: Vec<Token>,
    open: Option<Token>,
    /// A line with words has ended, so another word is an error.
    ended: bool,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, begin: 0, tokens: Vec::new(), open: None, ended: false }
    }

    pub(super) fn run(mut self, extent: Extent) -> Result<Vec<Token>, CommandError> {
        let mut line_start = true;
        while let Some(c) = self.next() {
            self.begin = self.at - c.len_utf8();
            if c == '#' && line_start && extent == Extent::Block {
                self.skip_line();
                continue;
            }
            line_start = c == '\n' || (line_start && c.is_whitespace());
            match c {
                '\n' if extent == Extent::Block => self.end_line(),
                c if c.is_whitespace() => self.end_token(self.begin),
                '\'' | '"' => self.quoted(c)?,
                '\\' => self.escape(Quoting::Bare)?,
                c => self.token()?.push(Quoting::Bare, c),
            }
        }
        self.end_token(self.text.len());
        Ok(self.tokens)
    }

    fn next(&mut self) -> Option<char> {
        let c = self.text.get(self.at..)?.chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|c| c != '\n') {}
    }

    /// Returns the current word, or starts a new one.
    fn token(&mut self) -> Result<&mut Token, CommandError> {
        if self.ended {
            return Err(CommandError::SeveralCommands);
        }
        let range = self.begin..self.begin;
        Ok(self.open.get_or_insert_with(|| Token { pieces: Vec::new(), range }))
    }

    fn end_token(&mut self, end: usize) {
        if let Some(mut token) = self.open.take() {
            token.range.end = end;
            self.tokens.push(token);
        }
    }

    fn end_line(&mut self) {
        self.end_token(self.begin);
        self.ended = !self.tokens.is_empty();
    }

    fn quoted(&mut self, quote: char) -> Result<(), CommandError> {
        let quoting = if quote == '"' { Quoting::Double } else { Quoting::Literal };
        self.token()?.pieces.push((quoting, String::new()));
        loop {
            match self.next() {
                None => return Err(CommandError::UnterminatedQuote(quote)),
                Some(c) if c == quote => return Ok(()),
                Some('\\') if quote == '"' => self.escape(Quoting::Double)?,
                Some(c) => self.token()?.push(quoting, c),
            }
        }
    }

    fn escape(&mut self, within: Quoting) -> Result<(), CommandError> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        if let Some(ending) = ["\n", "\r\n"].into_iter().find(|ending| rest.starts_with(ending)) {
            self.at += ending.len();
            return Ok(());
        }
        match self.next() {
            Some(c) if within == Quoting::Double && !matches!(c, '$' | '`' | '"' | '\\') => {
                let token = self.token()?;
                token.push(Quoting::Literal, '\\');
                token.push(Quoting::Literal, c);
            }
            Some(c) => self.token()?.push(Quoting::Literal, c),
            None if within == Quoting::Double => return Err(CommandError::UnterminatedQuote('"')),
            None => return Err(CommandError::TrailingBackslash),
        }
        Ok(())
    }
}

/// Syntax that needs a shell. Commands run without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShellFeature {
    /// `|`
    Pipe,
    /// `&&`, `||`, `;` or `&`
    Chain,
    /// `>`, `>>`, `<`, `2>&1` and the like.
    Redirect,
    /// `$VAR` or `${VAR}`
    Variable,
    /// `$(…)` or backticks.
    Substitution,
    /// `*`, `?` or `[…]` outside quotes.
    Glob,
}

impl ShellFeature {
    fn noun(self) -> &'static str {
        match self {
            Self::Pipe => "a pipe",
            Self::Chain => "several commands in one",
            Self::Redirect => "a redirection",
            Self::Variable => "a variable",
            Self::Substitution => "a command in a command",
            Self::Glob => "a pattern of files",
        }
    }

    /// Whether the feature connects commands or files. Then the command never does what its author
    /// meant, whatever the values are.
    pub fn joins_commands(self) -> bool {
        matches!(self, Self::Pipe | Self::Chain | Self::Redirect)
    }
}

/// A token with shell syntax, which has no effect because no shell reads the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShellOperator<'a> {
    /// The token that contains the syntax.
    pub token: &'a Token,
    /// The shell feature that the token would need.
    pub feature: ShellFeature,
}

impl ShellOperator<'_> {
    /// The error message.
    pub fn problem(&self) -> String {
        let (word, noun) = (self.token.text(), self.feature.noun());
        format!("`{word}` is {noun}, which needs a shell; there is none")
    }
}

/// Returns the tokens that need a shell, in order. Quoted text and placeholders do not count.
pub fn shell_operators(tokens: &[Token]) -> impl Iterator<Item = ShellOperator<'_>> {
    tokens
        .iter()
        .filter_map(|token| shell_feature(token).map(|feature| ShellOperator { token, feature }))
}

fn shell_feature(token: &Token) -> Option<ShellFeature> {
    let bare: String = without_placeholders(token.pieces(&[Quoting::Bare]));
    let expanded: String = without_placeholders(token.pieces(&[Quoting::Bare, Quoting::Double]));
    operator(&bare).or_else(|| expansion(&expanded)).or_else(|| {
        // A question mark in a URL is not meant as a glob.
        let glob = !bare.contains("://") && bare.contains(['*', '?', '[']);
        glob.then_some(ShellFeature::Glob)
    })
}

/// Returns the operator at the start of a token; only `;` is also recognized at the end.
fn operator(bare: &str) -> Option<ShellFeature> {
    let unnumbered = bare.trim_start_matches(|c: char| c.is_ascii_digit());
    if unnumbered.starts_with(['<', '>']) || bare.starts_with("&>") {
        Some(ShellFeature::Redirect)
    } else if bare.starts_with(['&', ';']) || bare.starts_with("||") || bare.ends_with(';') {
        Some(ShellFeature::Chain)
    } else if bare.starts_with('|') {
        Some(ShellFeature::Pipe)
    } else {
        None
    }
}

fn expansion(text: &str) -> Option<ShellFeature> {
    if text.contains("$(") || text.contains('`') {
        return Some(ShellFeature::Substitution);
    }
    let starts_name = |rest: &str| {
        rest.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '{' | '@' | '?'))
    };
    text.split('$').skip(1).any(starts_name).then_some(ShellFeature::Variable)
}

fn without_placeholders<'a>(pieces: impl Iterator<Item = &'a str>) -> String {
    let text: String = pieces.collect();
    let fragments = super::fragments(&text);
    fragments
        .into_iter()
        .map(|fragment| match fragment {
            super::Fragment::Literal(text) => text,
            super::Fragment::Variable { .. } => String::new(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(command: &str) -> Vec<String> {
        tokenize(command).unwrap().iter().map(Token::text).collect()
    }

    #[test]
    fn words() {
        assert_eq!(texts("git  log\t-n 5 "), ["git", "log", "-n", "5"]);
        assert_eq!(texts(r#"a "b c" 'd "e\' f\ g"#), ["a", "b c", r#"d "e\"#, "f g"]);
        assert_eq!(texts(r#"x"y z"'w'"#), ["xy zw"]);
        assert_eq!(texts(r#"a "" ''"#), ["a", "", ""]);
        assert_eq!(texts(r#""say \"hi\" \\ \x \(.a)" \x"#), [r#"say "hi" \ \x \(.a)"#, "x"]);
        assert_eq!(texts(r#""a\$b\`c" 'a\b'"#), ["a$b`c", r"a\b"]);
        assert_eq!(texts("ls | wc>x&&y"), ["ls", "|", "wc>x&&y"]);
        assert_eq!(texts("größe 'ä ö'"), ["größe", "ä ö"]);
        assert_eq!(texts(""), [""; 0]);
    }

    #[test]
    fn lines_are_joined_by_a_backslash_only() {
        assert_eq!(texts("a \\\n  b \\\r\n c"), ["a", "b", "c"]);
        assert_eq!(texts("ab\\\ncd \"e\\\nf\""), ["abcd", "ef"]);
        assert_eq!(texts("\n a 'b\nc'\n\n"), ["a", "b\nc"]);
        assert_eq!(texts("a\r\n"), ["a"]);
        assert_eq!(texts("a\nb\r\n\n'c'"), ["a", "b", "c"]);
        let block = |text| Lexer::new(text).run(Extent::Block);
        assert_eq!(block("a\nb"), Err(CommandError::SeveralCommands));
        assert_eq!(block("a\n\n'b'"), Err(CommandError::SeveralCommands));
    }

    #[test]
    fn comments_are_words_of_a_line_and_remarks_in_a_block() {
        assert_eq!(texts("#a b"), ["#a", "b"]);
        let skip = |text| Lexer::new(text).run(Extent::Block).unwrap();
        let words: Vec<_> =
            skip("# one\n  #two\nls '\n#x' #y\n# z\n").iter().map(Token::text).collect();
        assert_eq!(words, ["ls", "\n#x", "#y"]);
    }

    #[test]
    fn unterminated_quotes_are_errors() {
        assert_eq!(tokenize("a 'b"), Err(CommandError::UnterminatedQuote('\'')));
        assert_eq!(tokenize("a \"b'"), Err(CommandError::UnterminatedQuote('"')));
        assert_eq!(tokenize("a \"b\\"), Err(CommandError::UnterminatedQuote('"')));
        assert_eq!(tokenize("a \\"), Err(CommandError::TrailingBackslash));
    }

    #[test]
    fn ranges_cover_the_source() {
        let command = "é 'a b'c \\d \"\" x\n";
        let tokens = tokenize(command).unwrap();
        let sources: Vec<_> = tokens.iter().map(|token| &command[token.range()]).collect();
        assert_eq!(sources, ["é", "'a b'c", "\\d", "\"\"", "x"]);
    }

    #[test]
    fn shell_features() {
        use ShellFeature::{Chain, Glob, Pipe, Redirect, Substitution, Variable};
        let command =
            "a | b && c || d ; e; f & > x 2>&1 >>y <z $HOME \"$A\" $(x) `y` *.c a?b $? {{q:*}}";
        let tokens = tokenize(command).unwrap();
        let found: Vec<_> = shell_operators(&tokens).map(|found| found.feature).collect();
        let expected = [
            Pipe, Chain, Chain, Chain, Chain, Chain, Redirect, Redirect, Redirect, Redirect,
            Variable, Variable, Substitution, Substitution, Glob, Glob, Variable,
        ];
        assert_eq!(found, expected);
        let quiet = "a '|' \"&&\" \\* '$X' {{a:--x}} https://x/?q=1&n={{n}} 5$ a-b {{x}}";
        assert_eq!(shell_operators(&tokenize(quiet).unwrap()).count(), 0);
    }
}
