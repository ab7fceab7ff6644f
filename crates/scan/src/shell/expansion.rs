//! Expands `$name`, `${name…}`, `$(…)` and lists in shell words.

use std::rc::Rc;

use super::{
    functions::is_argument,
    tokens::{Parser, Word, is_name},
};
use crate::decode;

/// Maximum length of a value, and maximum length and nesting of `${…}`, that are expanded. Reaching a
/// limit is recorded.
const MAX_VALUE_BYTES: usize = 64 * 1024;
const MAX_BRACES_BYTES: usize = 4096;
const MAX_NESTED_EXPANSIONS: usize = 16;

/// What there is too much of if one of these limits is reached.
const TOO_LONG: &str = "longer values of variables than are expanded";

/// Maximum length of an expanded word, and of all expanded values of a text. Reaching a limit is
/// recorded.
pub(super) const MAX_WORD_BYTES: usize = 64 * 1024;
const MAX_EXPANDED_BYTES: usize = 1024 * 1024;

/// A variable with a literal value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownVariable {
    pub(super) text: String,
    seams: Vec<usize>,
    /// Variables in the value that have a fixed meaning, such as `HOME`.
    variables: Vec<String>,
}

/// Whether a variable has the same meaning everywhere, so that a path with it counts as known.
fn is_fixed(name: &str) -> bool {
    matches!(name, "HOME" | "USER" | "LOGNAME" | "XDG_CONFIG_HOME" | "TMPDIR")
}

impl Parser<'_> {
    /// Stores the value of an assignment, or marks the variable as unknown.
    pub(super) fn store_variable(&mut self, name: &str, word: &Word) {
        // A value made from `$1` is known only within the function.
        let own = word.variables.iter().any(|name| is_argument(name));
        let scoped = self.scoped_name(name);
        let plain = word.substitutions.is_empty()
            && word.variables.len() < 3
            && word.variables.iter().all(|name| is_fixed(name) || is_argument(name));
        let fits = word.text.len() < MAX_VALUE_BYTES;
        if plain && !fits {
            self.cut(TOO_LONG);
        }
        if plain && fits && (!own || scoped.is_some()) {
            let known = KnownVariable {
                text: word.text.clone(),
                // 16 seams are enough for the name of a program.
                seams: word.seams.iter().copied().take(16).collect(),
                variables: word.variables.clone(),
            };
            match scoped {
                Some(scoped) if own => {
                    self.known.insert(scoped, known);
                }
                scoped => {
                    scoped.map(|scoped| self.known.remove(&scoped));
                    self.known.insert(name.to_owned(), known);
                }
            }
        } else {
            scoped.map(|scoped| self.known.remove(&scoped));
            self.known.remove(name);
        }
    }

    /// Returns the internal name of a variable that is known only within the current function.
    fn scoped_name(&self, name: &str) -> Option<String> {
        let open = self.functions.last().map(|(function, _)| function);
        open.or(self.scope.as_ref()).map(|function| format!("{function}()\n{name}"))
    }

    fn value(&self, name: &str) -> Option<&KnownVariable> {
        let around = |name: &str| self.around.and_then(|around| around.get(name));
        let find = |name: &str| {
            self.known.get(name).or_else(|| around(name)).or_else(|| self.outer.get(name))
        };
        self.scoped_name(name).and_then(|name| find(&name)).or_else(|| find(name))
    }

    /// Evaluates `name+=value`.
    pub(super) fn append_to_variable(&mut self, name: &str, value: Word) -> Word {
        let mut word = Word { span: value.span, ..Word::default() };
        self.append_variable(name, &mut word);
        // An unknown value stays unknown.
        word.add_seam();
        let before = word.text.len();
        word.text.push_str(&value.text);
        word.seams.extend(value.seams.iter().map(|add_seam| add_seam + before));
        word.substitutions.extend(value.substitutions);
        word.variables.extend(value.variables);
        word
    }

    /// Evaluates `name=(one two)`: stores each item by its index, and all items as one text.
    pub(super) fn list(&mut self, name: &str, mut all: Word) -> Word {
        self.at += 1;
        let mut count = 0;
        loop {
            match self.bytes.get(self.at) {
                None => break,
                Some(b')') => {
                    self.at += 1;
                    break;
                }
                Some(b'#') => self.skip_line(),
                Some(b' ' | b'\t' | b'\r' | b'\n' | b'&' | b'|' | b';') => self.at += 1,
                Some(_) => {
                    let before = self.at;
                    let item = self.read_word();
                    self.at = self.at.max(before + 1);
                    while !self.text.is_char_boundary(self.at) {
                        self.at += 1;
                    }
                    self.store_variable(&format!("{name}[{count}]"), &item);
                    count += 1;
                    if !all.text.is_empty() {
                        all.text.push(' ');
                    }
                    all.text.push_str(&item.text);
                    all.substitutions.extend(item.substitutions);
                    all.variables.extend(item.variables);
                    all.span.end = item.span.end;
                }
            }
        }
        all
    }

    /// Returns the length of a `$IFS` at the current position, which is another way to write a
    /// blank.
    pub(super) fn ifs_length(&self) -> usize {
        let rest = self.rest();
        if rest.starts_with("${IFS}") {
            6
        } else if rest.starts_with("$IFS")
            && !rest[4..].starts_with(|c: char| is_name(c) || c == ':')
        {
            4
        } else {
            0
        }
    }

    /// Ends a word at a `$IFS`, unless the word is an assignment.
    pub(super) fn end_word_at_ifs(&mut self, word: &mut Word) -> bool {
        let value = word.text.split_once('=').is_some_and(|(name, _)| name.chars().all(is_name));
        if word.text.is_empty() || value {
            return false;
        }
        self.at += self.ifs_length();
        true
    }

    /// Expands `$name`, `${name}`, `$(…)`, `` `…` `` and `$'…'`.
    pub(super) fn expand_dollar(&mut self, word: &mut Word) {
        if self.bytes[self.at] == b'`' {
            let start = self.at + 1;
            let end = memchr::memchr(b'`', &self.bytes[start..])
                .map_or(self.bytes.len(), |end| start + end);
            self.at = (end + 1).min(self.bytes.len());
            word.substitutions.push(self.text[start..end].to_owned());
            return;
        }
        match self.bytes.get(self.at + 1) {
            Some(b'(') => {
                let inside = self.read_bracketed(2);
                // make writes variables as `$(HOME)`.
                if is_fixed(&inside) {
                    self.append_variable(&inside, word);
                } else if let Some(text) = printed_escapes(&inside) {
                    word.seams.push(word.text.len() + 1);
                    word.text.push_str(&text);
                } else {
                    word.substitutions.push(inside);
                }
            }
            Some(b'\'') => {
                self.at += 1;
                let inside = self.read_single_quoted();
                let text = decode::decode_escapes(&inside);
                if text != inside {
                    // Characters written as numbers count as pieces of an assembled word.
                    word.seams.push(word.text.len() + 1);
                }
                word.text.push_str(&text);
            }
            Some(b'{') => self.expand_braces(word),
            Some(b'@' | b'*') => {
                word.text.push_str("$@");
                word.variables.push("@".into());
                self.at += 2;
            }
            Some(byte) if is_name(char::from(*byte)) => {
                self.at += 1;
                let rest = self.rest();
                // PowerShell writes variables as `$env:NAME`.
                let skip = if rest.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("env:"))
                {
                    4
                } else {
                    0
                };
                let name: String = rest[skip..].chars().take_while(|c| is_name(*c)).collect();
                self.at += skip + name.len();
                self.append_variable(&name, word);
            }
            _ => {
                word.text.push('$');
                self.at += 1;
            }
        }
    }

    /// Appends the value of a variable to a word, or its name if the value is unknown.
    fn append_variable(&mut self, name: &str, word: &mut Word) {
        // The shell sets it to itself.
        if name == "SHELL" && self.value(name).is_none() {
            word.text.push_str("sh");
            return;
        }
        let length = self.value(name).map_or(0, |known| known.text.len());
        let fits = self.fits_limit(length, word);
        if let Some(known) = self.value(name).filter(|_| fits) {
            word.add_seam();
            let before = word.text.len();
            word.text.push_str(&known.text);
            word.variables.extend(known.variables.iter().cloned());
            word.seams.extend(known.seams.iter().map(|add_seam| add_seam + before));
            word.add_seam();
        } else {
            word.text.push('$');
            word.text.push_str(name);
            word.variables.push(name.to_owned());
        }
    }

    /// Whether a value of this length still fits into a word; if not, the limit is recorded.
    fn fits_limit(&mut self, length: usize, word: &Word) -> bool {
        let full =
            word.text.len() + length > MAX_WORD_BYTES || self.put + length > MAX_EXPANDED_BYTES;
        if full && length > 0 {
            self.cut(TOO_LONG);
        }
        self.put += length;
        !full
    }

    /// Expands `${name}`, including operators such as `${name:-word}` and `${name/a/b}`.
    fn expand_braces(&mut self, word: &mut Word) {
        let start = self.at + 2;
        let end = self.brace_end(start).unwrap_or_else(|| {
            memchr::memchr(b'}', &self.bytes[start..]).map_or(self.bytes.len(), |end| start + end)
        });
        let after = (end + 1).min(self.bytes.len());
        let text = self.text;
        let inside = text.get(start..end).unwrap_or_default();
        let plain = inside.trim_start_matches('!');
        let length = plain.find(|c| !is_name(c)).unwrap_or(plain.len());
        let (mut name, mut rest) = (plain[..length].to_owned(), &plain[length..]);
        if let Some((index, behind)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        {
            let item = format!("{name}[{index}]");
            if self.value(&item).is_some() {
                name = item;
            }
            rest = behind;
        }
        let other = rest.trim_start_matches(':');
        let fallback = other.starts_with(['-', '=', '+']) && !rest.starts_with("::");
        let known = self.value(&name).filter(|_| !fallback && !rest.is_empty());
        let length = known.map_or(0, |known| known.text.len());
        let changed = if self.put > MAX_EXPANDED_BYTES {
            None
        } else {
            known.and_then(|known| apply_operator(&known.text, rest))
        };
        // An operator also reads the part of the value that it does not return.
        let length = changed.as_ref().map_or(length, |text| text.len().max(length));
        let fits = length == 0 || self.fits_limit(length, word);
        if let Some(text) = changed.filter(|_| fits) {
            word.add_seam();
            word.seams.push(word.text.len() + 1);
            word.text.push_str(&text);
            word.add_seam();
            self.at = after;
            return;
        }
        self.append_variable(&name, word);
        let fits = self.nesting < MAX_NESTED_EXPANSIONS && end - start < MAX_BRACES_BYTES;
        if fallback && !fits {
            self.cut(TOO_LONG);
        }
        if fallback && fits {
            let at = end - other.len() + 1;
            let value = self.read_fallback_word(at, end);
            if other.starts_with('=') {
                self.assigned.push((name, value.clone()));
            }
            word.substitutions.extend(value.substitutions);
            word.variables.extend(value.variables);
            word.otherwise.extend(value.otherwise);
            word.otherwise.push(value.text);
        }
        self.at = after;
    }

    /// Expands a here-document. A separate parser reads it, so quotes and brackets end with it.
    pub(super) fn expand_here_document(&mut self, start: usize, end: usize) -> Word {
        let mut inner = Parser::new(&self.text[start..end], self.outer);
        inner.around = Some(&self.known);
        inner.scope = self.functions.last().map(|(name, _)| Rc::clone(name)).or(self.scope.clone());
        let mut word = inner.read_fallback_word(0, end - start);
        let is_cut = !inner.cuts.is_empty();
        if is_cut {
            self.cut(TOO_LONG);
        }
        word.text.clear();
        word.seams.clear();
        word
    }

    /// Reads the word after `:-`, `:=` or `:+`.
    fn read_fallback_word(&mut self, start: usize, end: usize) -> Word {
        self.at = start;
        self.nesting += 1;
        let mut word = Word::default();
        while self.at < end {
            match self.bytes[self.at] {
                b'"' => self.read_double_quoted(&mut word),
                b'\'' => self.read_quote(&mut word),
                b'$' | b'`' => self.expand_dollar(&mut word),
                _ => {
                    let c = self.rest().chars().next().unwrap_or(' ');
                    word.text.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
        self.nesting -= 1;
        word
    }

    /// Returns the position of the brace that closes a `${`, skipping quotes and nested brackets.
    fn brace_end(&self, start: usize) -> Option<usize> {
        let bytes = self.bytes.get(start..)?;
        let (mut depth, mut quote) = (0_usize, None);
        let mut at = 0;
        while let Some(byte) = bytes.get(at).filter(|_| at < MAX_BRACES_BYTES) {
            match (quote, *byte) {
                (_, b'\\') => at += 1,
                (Some(mark), byte) if byte == mark => quote = None,
                (None, mark @ (b'\'' | b'"')) => quote = Some(mark),
                (None, b'{' | b'(') => depth += 1,
                (None, b')') => depth = depth.saturating_sub(1),
                (None, b'}') if depth == 0 => return Some(start + at),
                (None, b'}') => depth -= 1,
                (None, b'\n') if depth == 0 => return None,
                _ => {}
            }
            at += 1;
        }
        None
    }
}

/// Returns the text of `$(printf '\142\141')`, whose characters are written as numbers.
fn printed_escapes(command: &str) -> Option<String> {
    let command = command.trim();
    let starts = ["printf ", "echo -ne ", "echo -en ", "echo -e "];
    let text = starts.iter().find_map(|start| command.strip_prefix(start))?.trim();
    let text = text.strip_prefix("-- ").or_else(|| text.strip_prefix("%b ")).unwrap_or(text);
    let mark = text.chars().next().filter(|mark| matches!(mark, '\'' | '"'))?;
    let inside = text.strip_prefix(mark)?.strip_suffix(mark)?;
    let is_plain = inside.len() < MAX_BRACES_BYTES && !inside.contains(['\'', '"', '$', '`', '%']);
    let decoded = is_plain.then(|| decode::decode_escapes(inside))?;
    (decoded != inside).then_some(decoded)
}

/// Applies an operator of `${…}` to a value: replacement, removal or change of case.
fn apply_operator(value: &str, how: &str) -> Option<String> {
    let bare = |text: &str| -> Option<String> {
        let text = match text.as_bytes() {
            [b'\'', .., b'\''] | [b'"', .., b'"'] => &text[1..text.len() - 1],
            _ if text.contains(['*', '?', '[', '$']) => return None,
            _ => text,
        };
        Some(text.replace("\\/", "/"))
    };
    if let Some(rest) = how.strip_prefix('/') {
        let (every, rest) = rest.strip_prefix('/').map_or((false, rest), |rest| (true, rest));
        let (from, to) = rest.split_once('/').unwrap_or((rest, ""));
        let (from, to) = (bare(from).filter(|from| !from.is_empty())?, bare(to)?);
        // A text that is too long is recorded by the caller.
        let count = if every { value.matches(&from).count() } else { 1 };
        let count = count.min(MAX_WORD_BYTES / to.len().max(1) + 1);
        return Some(value.replacen(&from, &to, count));
    }
    if let Some(cut) = how.strip_prefix('#') {
        let cut = bare(cut.trim_start_matches('#'))?;
        return Some(value.strip_prefix(cut.as_str()).unwrap_or(value).to_owned());
    }
    if let Some(cut) = how.strip_prefix('%') {
        let cut = bare(cut.trim_start_matches('%'))?;
        return Some(value.strip_suffix(cut.as_str()).unwrap_or(value).to_owned());
    }
    if how.starts_with(',') {
        return Some(value.to_lowercase());
    }
    if how.starts_with('^') {
        return Some(value.to_uppercase());
    }
    let (from, length) = how.strip_prefix(':')?.split_once(':').unwrap_or((&how[1..], ""));
    let from: usize = from.trim().parse().ok()?;
    let length: usize = if length.is_empty() { usize::MAX } else { length.trim().parse().ok()? };
    Some(value.chars().skip(from).take(length).collect())
}
