//! Parses shell text into commands: words, pipes, redirections, substitutions, here-documents.

use std::{collections::HashMap, rc::Rc};

use savoir_skill::Span;

use super::{
    expansion::KnownVariable,
    groups::{GroupEdge, GroupKind},
};
use crate::action::Cut;

/// A word without quotes, with known variables expanded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    /// The texts inside `$(…)`, `` `…` `` and `<(…)`.
    pub(crate) substitutions: Vec<String>,
    /// The commands inside `>(…)`, which read the output of the command.
    pub(crate) sinks: Vec<String>,
    /// Names of the variables in the word.
    pub(crate) variables: Vec<String>,
    /// Default values of variables: `${name:-this}`.
    pub(crate) otherwise: Vec<String>,
    /// Offsets where the word was joined from pieces: at quotes, backslashes and variables.
    pub(crate) seams: Vec<usize>,
    pub(crate) span: Span,
}

/// Enough for the name of a program, which is shorter.
const MAX_SEAMS: usize = 64;

impl Word {
    /// Records that another piece begins here.
    pub(super) fn add_seam(&mut self) {
        let at = self.text.len();
        if at > 0 && self.seams.len() < MAX_SEAMS && self.seams.last() != Some(&at) {
            self.seams.push(at);
        }
    }

    /// Whether the program name was assembled from pieces: `c'ur'l`, `$a$b`.
    pub(super) fn is_assembled(&self) -> bool {
        let end = self.text.find(char::is_whitespace).unwrap_or(self.text.len());
        let start = self.text[..end].rfind('/').map_or(0, |slash| slash + 1);
        self.seams.iter().any(|add_seam| *add_seam > start && *add_seam < end)
    }
}

/// One redirection: `> file`, `< file`, `<<< text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) writes: bool,
    pub(crate) target: Word,
}

/// A simple command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) words: Vec<Word>,
    pub(crate) redirects: Vec<Redirect>,
    pub(crate) assignments: Vec<(String, Word)>,
    /// The text of the here-document or here-string.
    pub(crate) input: Option<String>,
    /// The word of a here-string, with its variables and substitutions.
    pub(crate) here: Option<Word>,
    /// The function whose body contains the command.
    pub(crate) function: Option<Rc<str>>,
    /// Groups that begin or end before the command.
    pub(crate) edges: Vec<GroupEdge>,
    /// The command has no words; it represents the group that ended before it.
    pub(crate) is_group: bool,
    pub(crate) span: Span,
}

/// Commands that are connected by pipes.
pub(crate) type Pipeline = Vec<Command>;

/// Maximum number of commands of one text that are read.
const MAX_COMMANDS: usize = 20_000;

/// A parsed script.
pub(crate) struct Script {
    pub(crate) pipelines: Vec<Pipeline>,
    /// Variables with a literal value.
    pub(super) known: HashMap<String, KnownVariable>,
    /// The limits that were reached, so that part of the text was not read.
    pub(crate) cuts: Vec<Cut>,
}

/// Parses a text as shell commands. Never fails: invalid syntax becomes words.
#[cfg(test)]
pub(crate) fn parse(text: &str) -> Script {
    parse_with(text, &HashMap::new())
}

/// Parses a text as shell commands, with variables that were set elsewhere. Never fails: invalid
/// syntax becomes words.
pub(super) fn parse_with(text: &str, outer: &HashMap<String, KnownVariable>) -> Script {
    parse_in(text, outer, None)
}

/// Parses commands inside the body of a function.
pub(super) fn parse_in(
    text: &str,
    outer: &HashMap<String, KnownVariable>,
    scope: Option<Rc<str>>,
) -> Script {
    let mut parser = Parser::new(text, outer);
    parser.scope = scope;
    parser.run();
    if !parser.rest().trim().is_empty() {
        parser.cut("more commands than are read");
    }
    Script { pipelines: parser.pipelines, known: parser.known, cuts: parser.cuts }
}

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    /// Variables with a literal value.
    pub(super) known: HashMap<String, KnownVariable>,
    /// Known variables of the enclosing text and of sourced files.
    pub(super) outer: &'a HashMap<String, KnownVariable>,
    /// Known variables of the text that contains a here-document.
    pub(super) around: Option<&'a HashMap<String, KnownVariable>>,
    /// Assignments by `${name:=value}` in the current word.
    pub(super) assigned: Vec<(String, Word)>,
    /// Nesting depth of `${…}`.
    pub(super) nesting: usize,
    /// End marks of here-documents that begin on the next line, and whether the mark is quoted.
    waiting: Vec<(String, bool)>,
    pub(super) pipelines: Vec<Pipeline>,
    /// Functions whose bodies are open, with the number of braces open before each.
    pub(super) functions: Vec<(Rc<str>, usize)>,
    braces: usize,
    /// The function whose body contains the text.
    pub(super) scope: Option<Rc<str>>,
    /// Bytes of expanded values so far.
    pub(super) put: usize,
    /// The limits that were reached.
    pub(super) cuts: Vec<Cut>,
    /// Open groups, and group edges that are not attached to a command yet.
    pub(super) opened: Vec<(GroupKind, usize)>,
    pub(super) edges: Vec<GroupEdge>,
    /// The first pipeline of the group that was closed last.
    pub(super) closed: Option<usize>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, outer: &'a HashMap<String, KnownVariable>) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            known: HashMap::new(),
            outer,
            around: None,
            assigned: Vec::new(),
            nesting: 0,
            waiting: Vec::new(),
            pipelines: Vec::new(),
            functions: Vec::new(),
            braces: 0,
            scope: None,
            put: 0,
            cuts: Vec::new(),
            opened: Vec::new(),
            edges: Vec::new(),
            closed: None,
        }
    }

    /// Records that a limit was reached. Only the first place of each limit is kept.
    pub(super) fn cut(&mut self, what: &'static str) {
        if !self.cuts.iter().any(|cut| cut.what == what) {
            self.cuts.push(Cut { what, span: Span::at(self.at) });
        }
    }

    fn run(&mut self) {
        let mut pipeline = Pipeline::new();
        let mut command = Command::default();
        while self.at < self.bytes.len() && self.pipelines.len() < MAX_COMMANDS {
            match self.bytes[self.at] {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'$' if self.ifs_length() > 0 => self.at += self.ifs_length(),
                b'\\' if self.rest().starts_with("\\\n") => self.at += 2,
                b'\\' if self.rest().starts_with("\\\r\n") => self.at += 3,
                b'#' => self.skip_line(),
                b'|' if self.rest().starts_with("||") => {
                    self.at += 2;
                    self.end_command(&mut pipeline, &mut command);
                }
                b'|' => {
                    self.at += if self.rest().starts_with("|&") { 2 } else { 1 };
                    self.finish_command(&mut pipeline, &mut command);
                }
                b'\n' => {
                    self.at += 1;
                    self.read_here_documents(&mut command);
                    // A pipeline continues after a pipe at the end of a line.
                    if !command.words.is_empty()
                        || pipeline.is_empty()
                        || !command.assignments.is_empty()
                    {
                        self.end_command(&mut pipeline, &mut command);
                    }
                }
                b'&' if self.rest().starts_with("&>") => {
                    self.at += 1;
                    self.read_redirect(&mut command);
                }
                b'(' if self.rest().starts_with("()") && names_function(&command) => {
                    self.at += 2;
                    self.start_function(&mut command);
                }
                b'(' => {
                    self.at += 1;
                    // The input of the pipe goes into the group.
                    if !command.words.is_empty() || !command.assignments.is_empty() {
                        self.end_command(&mut pipeline, &mut command);
                    }
                    self.open_group(GroupKind::Bracket);
                }
                b')' => {
                    self.at += 1;
                    self.end_command(&mut pipeline, &mut command);
                    if self.is_open(GroupKind::Body) {
                        self.read_brace(false);
                    }
                    self.close_group(&[GroupKind::Bracket, GroupKind::Body], &mut command);
                }
                b';' | b'&' => {
                    self.at += 1;
                    self.end_command(&mut pipeline, &mut command);
                }
                b'<' | b'>' if self.bytes.get(self.at + 1) == Some(&b'(') => {
                    self.read_word_into(&mut command);
                }
                b'<' | b'>' => self.read_redirect(&mut command),
                b'0'..=b'9' if is_number_redirect(self.rest()) => {
                    self.at += 1;
                    self.read_redirect(&mut command);
                }
                _ => self.read_word_into(&mut command),
            }
        }
        self.end_command(&mut pipeline, &mut command);
    }

    pub(super) fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn skip_line(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    }

    /// Handles `name()`: the braces that follow contain the body.
    fn start_function(&mut self, command: &mut Command) {
        let name = command.words.pop().map(|word| word.text).unwrap_or_default();
        *command = Command::default();
        self.functions.push((name.into(), self.braces));
        // The body can also be in brackets: `name() ( … )`.
        let space = self.rest().len() - self.rest().trim_start().len();
        if self.bytes.get(self.at + space) == Some(&b'(') {
            self.at += space + 1;
            self.read_brace(true);
            self.open_group(GroupKind::Body);
        }
    }

    fn read_brace(&mut self, opens: bool) {
        if opens {
            self.braces += 1;
            return;
        }
        self.braces = self.braces.saturating_sub(1);
        if self.functions.last().is_some_and(|(_, before)| *before >= self.braces) {
            self.functions.pop();
        }
    }

    fn end_command(&mut self, pipeline: &mut Pipeline, command: &mut Command) {
        self.finish_command(pipeline, command);
        for command in pipeline.iter_mut() {
            command.function = self.functions.last().map(|(name, _)| Rc::clone(name));
        }
        for command in pipeline.iter() {
            for (name, word) in &command.assignments {
                self.store_variable(name, word);
            }
            let declares = command.words.first().is_some_and(|word| is_declaration(&word.text));
            for word in command.words.iter().skip(1).filter(|_| declares) {
                if let Some((name, value)) = assignment(word) {
                    self.store_variable(&name, &value);
                }
            }
        }
        self.pass_input_to_group(pipeline);
        if !pipeline.is_empty() {
            self.pipelines.push(std::mem::take(pipeline));
        }
    }

    /// Ends the current command, if it is not empty.
    fn finish_command(&mut self, pipeline: &mut Pipeline, command: &mut Command) {
        let mut done = std::mem::take(command);
        if done.words.is_empty()
            && done.assignments.is_empty()
            && done.redirects.is_empty()
            && !done.is_group
        {
            return;
        }
        if done.is_group && done.span == Span::default() {
            done.span = Span::at(self.at.saturating_sub(1));
        }
        done.edges = std::mem::take(&mut self.edges);
        let start = done.words.first().map_or(done.span.start, |word| word.span.start);
        let last = done.words.last().map_or(start, |word| word.span.end);
        done.span = Span::new(start, last.max(done.span.end));
        pipeline.push(done);
    }

    fn read_word_into(&mut self, command: &mut Command) {
        let before = self.at;
        let word = self.read_word();
        // Always advance, so that the loop ends.
        self.at = self.at.max(before + 1);
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
        command.span.end = word.span.end;
        command.assignments.append(&mut self.assigned);
        let declared = command.words.first().is_some_and(|word| is_declaration(&word.text));
        if (command.words.is_empty() || declared)
            && self.bytes.get(self.at) == Some(&b'(')
            && let Some((name, value)) = assignment(&word).filter(|(_, v)| v.text.is_empty())
        {
            let list = self.list(&name, value);
            command.assignments.push((name, list));
            return;
        }
        if command.words.is_empty() {
            if let Some((name, value)) = assignment(&word) {
                let adds = word.text[name.len()..].starts_with("+=");
                let value = if adds { self.append_to_variable(&name, value) } else { value };
                command.assignments.push((name, value));
                return;
            }
            // An unquoted variable becomes several words: `get='curl -O'; $get URL`.
            if self.bytes[before] == b'$'
                && word.text.contains(' ')
                && word.substitutions.is_empty()
                && word.variables.is_empty()
            {
                let parts = word.text.split_whitespace();
                let span = word.span;
                command.words.extend(parts.map(|part| Word {
                    text: part.into(),
                    span,
                    ..Word::default()
                }));
                return;
            }
            if matches!(word.text.as_str(), "{" | "}") {
                self.read_brace(word.text == "{");
            }
            self.read_group_keyword(&word.text, command);
            let skipped = [
                "if", "then", "do", "else", "elif", "while", "until", "!", "{", "}", "$", "time",
                "fi", "done", ">", "PS>", "%",
            ];
            if skipped.contains(&word.text.as_str()) {
                return;
            }
        }
        if word.text == "{" && command.words.len() == 2 && command.words[0].text == "function" {
            self.start_function(command);
            self.open_group(GroupKind::Brace);
            return self.read_brace(true);
        }
        command.words.push(word);
    }

    fn read_redirect(&mut self, command: &mut Command) {
        let rest = self.rest();
        let operator = ["<<<", "<<-", "<<", "<>", "<&", ">>", ">&", ">|", "<", ">"]
            .into_iter()
            .find(|operator| rest.starts_with(operator))
            .unwrap_or(">");
        self.at += operator.len();
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        let target = if self.rest().starts_with("<(")
            || self.rest().starts_with(">(")
            || !self.rest().starts_with(['\n', ';', '|', '>'])
        {
            self.read_word()
        } else {
            Word { span: Span::at(self.at), ..Word::default() }
        };
        command.span.end = target.span.end;
        match operator {
            "<<" | "<<-" => {
                let quoted = !target.seams.is_empty();
                self.waiting.push((target.text, quoted));
            }
            "<<<" => {
                command.input = Some(target.text.clone());
                command.here = Some(target);
            }
            _ => command.redirects.push(Redirect { writes: operator.starts_with('>'), target }),
        }
    }

    fn read_here_documents(&mut self, command: &mut Command) {
        for (mark, quoted) in std::mem::take(&mut self.waiting) {
            let start = self.at;
            let mut end = start;
            while self.at < self.bytes.len() {
                let line_start = self.at;
                self.skip_line();
                let line = &self.text[line_start..self.at];
                self.at = (self.at + 1).min(self.bytes.len());
                if line.trim() == mark {
                    break;
                }
                end = self.at;
            }
            if !quoted && self.text[start..end].contains(['$', '`']) {
                command.here = Some(self.expand_here_document(start, end));
            }
            command.input = Some(self.text[start..end].to_owned());
        }
    }

    pub(super) fn read_word(&mut self) -> Word {
        let start = self.at;
        let mut word = Word::default();
        while let Some(byte) = self.bytes.get(self.at).copied() {
            match byte {
                b'<' | b'>' if self.bytes.get(self.at + 1) == Some(&b'(') => {
                    let inside = self.read_bracketed(2);
                    let into = if byte == b'>' { &mut word.sinks } else { &mut word.substitutions };
                    into.push(inside);
                }
                b' ' | b'\t' | b'\r' | b'\n' | b'|' | b';' | b')' | b'&' | b'<' | b'>' => break,
                b'(' if word.text.is_empty()
                    || self.rest().starts_with("()")
                    || word.text.ends_with('=') =>
                {
                    break;
                }
                b'$' if self.ifs_length() > 0 && self.end_word_at_ifs(&mut word) => break,
                b'\'' => self.read_quote(&mut word),
                b'"' => {
                    word.add_seam();
                    self.read_double_quoted(&mut word);
                    word.add_seam();
                }
                b'\\' => {
                    word.add_seam();
                    self.at += 1;
                    match self.rest().chars().next() {
                        Some('\n') | None => {}
                        Some(c) => word.text.push(c),
                    }
                    self.at += self.rest().chars().next().map_or(0, char::len_utf8);
                }
                b'$' | b'`' => self.expand_dollar(&mut word),
                _ => {
                    let c = self.rest().chars().next().unwrap_or(' ');
                    word.text.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
        word.span = Span::new(start, self.at);
        word
    }

    /// Reads a single-quoted text.
    pub(super) fn read_quote(&mut self, word: &mut Word) {
        word.add_seam();
        let inside = self.read_single_quoted();
        word.text.push_str(&inside);
        word.add_seam();
    }

    pub(super) fn read_single_quoted(&mut self) -> String {
        let start = self.at + 1;
        let end =
            memchr::memchr(b'\'', &self.bytes[start..]).map_or(self.bytes.len(), |end| start + end);
        self.at = (end + 1).min(self.bytes.len());
        self.text[start..end].to_owned()
    }

    pub(super) fn read_double_quoted(&mut self, word: &mut Word) {
        self.at += 1;
        while let Some(byte) = self.bytes.get(self.at).copied() {
            match byte {
                b'"' => {
                    self.at += 1;
                    return;
                }
                b'\\' => {
                    self.at += 1;
                    let c = self.rest().chars().next();
                    match c {
                        Some('"' | '$' | '`' | '\\') => word.text.extend(c),
                        Some('\n') | None => {}
                        Some(c) => word.text.extend(['\\', c]),
                    }
                    self.at += c.map_or(0, char::len_utf8);
                }
                b'$' | b'`' => self.expand_dollar(word),
                _ => {
                    let c = self.rest().chars().next().unwrap_or(' ');
                    word.text.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
    }

    /// Returns the text between matching brackets; the opening is `skip` bytes long.
    pub(super) fn read_bracketed(&mut self, skip: usize) -> String {
        let start = self.at + skip;
        let (mut depth, mut at) = (1_usize, start);
        let mut quote = None;
        while at < self.bytes.len() {
            match (quote, self.bytes[at]) {
                (Some(mark), byte) if byte == mark => quote = None,
                (None, mark @ (b'"' | b'\'')) => quote = Some(mark),
                (None, b'(') => depth += 1,
                (None, b')') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            at += 1;
        }
        self.at = (at + 1).min(self.bytes.len());
        self.text.get(start..at).unwrap_or_default().to_owned()
    }
}

/// Whether the command so far is `name` or `function name`, before `()`.
fn names_function(command: &Command) -> bool {
    match command.words.as_slice() {
        [_] => true,
        [first, _] => first.text == "function",
        _ => false,
    }
}

/// Whether a command only sets variables.
fn is_declaration(name: &str) -> bool {
    matches!(name, "local" | "export" | "declare" | "readonly" | "typeset")
}

pub(super) fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_number_redirect(rest: &str) -> bool {
    rest.as_bytes().get(1).is_some_and(|byte| matches!(byte, b'<' | b'>'))
}

/// Splits `NAME=value` before a command.
fn assignment(word: &Word) -> Option<(String, Word)> {
    let (name, value) = word.text.split_once('=')?;
    let name = name.trim_end_matches('+');
    let good = !name.is_empty()
        && name.chars().all(is_name)
        && !name.starts_with(|c: char| c.is_ascii_digit());
    let cut = word.text.len() - value.len();
    let seams = word.seams.iter().filter_map(|add_seam| add_seam.checked_sub(cut));
    good.then(|| {
        let seams = seams.filter(|add_seam| *add_seam > 0).collect();
        (name.to_owned(), Word { text: value.to_owned(), seams, ..word.clone() })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse_all(text: &str) -> Vec<Pipeline> {
        parse(text).pipelines
    }

    fn texts(text: &str) -> Vec<Vec<Vec<String>>> {
        let words =
            |command: &Command| command.words.iter().map(|word| word.text.clone()).collect();
        parse(text).pipelines.iter().map(|pipeline| pipeline.iter().map(words).collect()).collect()
    }

    #[test]
    fn words_and_pipes() {
        assert_eq!(
            texts("a 'b c' \"d\" | e\\ f && g"),
            [vec![vec!["a", "b c", "d"], vec!["e f"]], vec![vec!["g"]]]
        );
        assert_eq!(texts("curl x \\\n  | sh # no"), [vec![vec!["curl", "x"], vec!["sh"]]]);
        assert_eq!(texts("curl x |\n sh"), [vec![vec!["curl", "x"], vec!["sh"]]]);
        assert_eq!(texts("c'ur'l"), [vec![vec!["curl"]]]);
        assert_eq!(texts("A=cu; B=rl; $A${B} x")[2], [vec!["curl", "x"]]);
        assert_eq!(texts("$'\\x63url' x"), [vec![vec!["curl", "x"]]]);
    }

    #[test]
    fn substitutions_redirects_and_documents() {
        let found = parse_all("bash -c \"$(curl -s x | cat)\" <(wget y) > out 2>&1");
        let command = &found[0][0];
        assert_eq!(command.words[2].substitutions, ["curl -s x | cat"]);
        assert_eq!(command.words[3].substitutions, ["wget y"]);
        assert_eq!(command.redirects[0].target.text, "out");
        let found = parse_all("python3 - <<'EOF'\nimport os\nEOF\nls");
        assert_eq!(found[0][0].input.as_deref(), Some("import os\n"));
        assert_eq!(found[1][0].words[0].text, "ls");
    }

    proptest! {
        #[test]
        fn parsing_arbitrary_text_terminates(text in "[a-c$(){}<>|;&'\"`\\\\ \n#=é]{0,60}") {
            parse(&text);
        }
    }
}
