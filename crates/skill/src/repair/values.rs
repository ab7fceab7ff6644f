//! Repairs single values: each function examines the line of the YAML error and proposes edits.

use savoir_lint::{Edit, Safety, Span};

use super::{
    Repair,
    lines::{Line, is_key, split},
};
use crate::{dialect::Dialect, yaml::YamlError};

/// Repairs worth trying for an error, the most specific first.
pub(super) fn repair_candidates(text: &str, error: &YamlError) -> Vec<Repair> {
    let lines = split(text);
    let Some(index) = line_of(&lines, error.at) else { return Vec::new() };
    let context = ErrorContext { text, lines: &lines, index, at: error.at };
    let mut repairs = Vec::new();
    repairs.extend(context.escape());
    repairs.extend(context.tabs());
    repairs.extend(html_spaces(text));
    repairs.extend(context.blank_after_colon());
    repairs.extend(context.misaligned_list());
    repairs.extend(context.reserved_character());
    repairs.extend(context.quoted_indentation());
    repairs.extend(context.block_indentation());
    for owner in context.owners() {
        repairs.extend(context.value_repairs(&owner));
    }
    repairs.extend(context.quote_opened_above());
    repairs
}

/// Returns the line of an offset; the last line with text if the offset is the end.
fn line_of(lines: &[Line], at: usize) -> Option<usize> {
    let found = lines.iter().position(|line| at < line.next);
    found.or_else(|| lines.iter().rposition(|line| !line.is_blank))
}

struct ErrorContext<'a> {
    text: &'a str,
    lines: &'a [Line],
    index: usize,
    at: usize,
}

/// A key or list item with a value on its own line, and all lines that belong to the value.
struct OwningValue {
    line: Line,
    is_key: bool,
    /// The value without surrounding blanks.
    value: Span,
    /// Indentation of the lines that continue the value, if there are any.
    continued: Option<usize>,
}

impl ErrorContext<'_> {
    fn line(&self) -> Line {
        self.lines[self.index]
    }

    /// Returns the values that can contain the error: its own line first, then the lines it
    /// continues.
    fn owners(&self) -> Vec<OwningValue> {
        let mut owners: Vec<OwningValue> = Vec::new();
        let mut limit = usize::MAX;
        for index in (0..=self.index).rev() {
            let line = self.lines[index];
            if line.is_blank || line.indent >= limit {
                continue;
            }
            if let Some(owner) = self.owner(index) {
                owners.push(owner);
                limit = line.indent;
            }
            if line.indent == 0 && line.key_value(self.text).is_some() || owners.len() == 4 {
                break;
            }
        }
        owners
    }

    fn owner(&self, index: usize) -> Option<OwningValue> {
        let line = self.lines[index];
        let start = match line.key_value(self.text) {
            Some(pair) if !pair.value.is_empty() => pair.value.start,
            None if line.is_item(self.text) => {
                let value = line.content(self.text)[1..].trim_start();
                line.span.end - value.len()
            }
            _ => return None,
        };
        let after = &self.lines[index + 1..];
        // After `- key:` the other keys of the item are at the column of the first one.
        let column =
            line.key_value(self.text).map_or(line.indent, |pair| pair.key.start - line.span.start);
        let continued: Vec<&Line> =
            after.iter().take_while(|next| next.is_blank || next.indent > column).collect();
        let end = continued
            .iter()
            .rev()
            .find(|next| !next.is_blank)
            .map_or(line.span, |next| next.span)
            .end;
        let value =
            Span::new(start, start + Span::new(start, end).slice(self.text).trim_end().len());
        let continued = continued.iter().find(|next| !next.is_blank).map(|next| next.indent);
        Some(OwningValue { line, is_key: line.key_value(self.text).is_some(), value, continued })
    }

    fn value_repairs(&self, owner: &OwningValue) -> Vec<Repair> {
        let value = owner.value.slice(self.text);
        let one = match value.as_bytes().first() {
            Some(b'>' | b'|') => self.block_scalar_text(owner),
            Some(b'"' | b'\'') => self.quotes(owner),
            Some(b'-') if owner.is_key && value.starts_with("- ") => self.list_on_key_line(owner),
            Some(b'[' | b'{') => return self.brackets(owner),
            Some(_) => Some(self.quote_whole(owner)),
            None => None,
        };
        one.into_iter().collect()
    }

    /// Quotes the whole value of `description: Use for: this`.
    fn quote_whole(&self, owner: &OwningValue) -> Repair {
        let value = owner.value.slice(self.text);
        let colon = value.find(": ").or_else(|| value.ends_with(':').then(|| value.len() - 1));
        let (code, message, span) = match (colon, value.chars().next()) {
            (_, Some(first)) if RESERVED.contains(first) || "[{".contains(first) => (
                "unquoted-special",
                format!("a value that begins with `{first}` needs quotes"),
                Span::new(owner.value.start, owner.value.start + first.len_utf8()),
            ),
            (Some(colon), _) => (
                "unquoted-colon",
                "a value that contains a colon and a blank needs quotes".to_owned(),
                Span::new(owner.value.start + colon, owner.value.start + colon + 1),
            ),
            _ => (
                "unquoted-special",
                "this value needs quotes".to_owned(),
                Span::new(self.at.min(owner.value.end), self.at.min(owner.value.end)),
            ),
        };
        let edits = if is_in_backticks(value) {
            replace_ends(owner.value)
        } else {
            wrap_in_quotes(self.text, owner.value)
        };
        let mut repair = repair(code, message, "put the whole value in quotes", span, edits);
        if self.swallows_field(owner) {
            repair.safety = Safety::Unsafe;
        }
        repair
    }

    /// Whether the value would absorb an indented `key: value`. Then the indentation may be the
    /// mistake, not the missing quotes. After a sentence only a field that some system defines is
    /// suspicious.
    fn swallows_field(&self, owner: &OwningValue) -> bool {
        let first = Span::new(owner.value.start, owner.line.span.end).slice(self.text);
        let word = !first.trim().contains(char::is_whitespace);
        let rest = self.lines.iter().skip_while(|line| line.span.start <= owner.line.span.start);
        let inside = rest.take_while(|line| line.span.start < owner.value.end);
        inside
            .filter_map(|line| line.key_value(self.text))
            .any(|pair| word || is_known_field(pair.key.slice(self.text)))
    }

    /// Moves the text of `>  text` to the next line.
    fn block_scalar_text(&self, owner: &OwningValue) -> Option<Repair> {
        let value = owner.value.slice(self.text);
        let header = value.len() - value.trim_start_matches(['>', '|', '+', '-']).len();
        let first_line = owner.line.span.end.min(owner.value.end) - owner.value.start;
        let rest = value.get(header..first_line)?;
        let blanks = rest.len() - rest.trim_start().len();
        if rest.trim().is_empty() || rest.trim_start().starts_with('#') {
            return None;
        }
        let indent = owner.continued.unwrap_or(owner.line.indent + 2);
        let gap = owner.value.start + header;
        let mut gap = Span::new(gap, gap + blanks);
        let quote = rest.trim_start().chars().next().filter(|first| matches!(first, '"' | '\''));
        let mut edits = Vec::new();
        let text = &value[header + blanks..];
        if let Some(quote) = quote.filter(|quote| !is_quotation(text, *quote)) {
            // In a block scalar a quote is text, but here it was opened before the `>`.
            gap.end += 1;
            if text.len() > 1 && text.ends_with(quote) {
                edits.push(Edit::delete(Span::new(owner.value.end - 1, owner.value.end)));
            }
        }
        edits.insert(0, Edit::replace(gap, format!("{}{}", self.newline(), " ".repeat(indent))));
        Some(repair(
            "block-scalar-text",
            "there is text on the same line as the block character",
            "start the text on the next line, indented",
            Span::new(gap.end, owner.value.start + first_line),
            edits,
        ))
    }

    /// Repairs values whose quotes end too early: `'text'. More`, `"a "b" c"`, `"Quick" text`.
    fn quotes(&self, owner: &OwningValue) -> Option<Repair> {
        let value = owner.value.slice(self.text);
        let quote = value.chars().next()?;
        let start = owner.value.start;
        let Some(close) = closing_quote(value, quote) else {
            let edits = vec![Edit::insert(owner.value.end, quote.to_string())];
            let span = Span::new(start, start + 1);
            let help = "add the closing quote";
            return Some(repair("unclosed-quote", "this quote is never closed", help, span, edits));
        };
        let rest = &value[close + 1..];
        if rest.trim().is_empty() || rest.trim_start().starts_with('#') && rest.starts_with(' ') {
            return None;
        }
        let span = Span::new(start + close, start + close + 1);
        let ends = value.ends_with(quote);
        let mut safety = Safety::Safe;
        let edits = if rest.trim() == "," {
            // A trailing comma, as in JSON.
            let comma = owner.value.end - 1;
            vec![Edit::delete(Span::new(comma, comma + 1))]
        } else if opens_quotation(value, close) && (!ends || is_odd(value, quote)) {
            // The quotes around the value are not closed.
            close_after_inner(self.text, owner.value, quote)
        } else if ends && opens_inside(value, close) {
            escape_inner(self.text, owner.value, quote)
        } else if !ends && quote == '\'' && is_apostrophe(value, close) {
            close_after_inner(self.text, owner.value, quote)
        } else if is_whole_sentence(&value[1..close], rest) {
            // If a second quotation follows, the first may have been a quotation, too.
            if ends {
                safety = Safety::Unsafe;
            }
            extend_quotes(value, owner.value, close, quote)
        } else {
            if rest.starts_with(char::is_alphanumeric) {
                safety = Safety::Unsafe;
            }
            wrap_in_quotes(self.text, owner.value)
        };
        let help = "put the whole value in quotes";
        let message = "text follows the closing quote";
        Some(Repair { safety, ..repair("text-after-quote", message, help, span, edits) })
    }

    /// Closes a quote that an earlier field opens, which makes this line the reported one.
    fn quote_opened_above(&self) -> Option<Repair> {
        let above = (0..self.index).rev().find(|index| {
            let line = self.lines[*index];
            line.key_value(self.text)
                .is_some_and(|pair| pair.value.slice(self.text).starts_with(['"', '\'']))
        })?;
        let owner = self.owner(above)?;
        let value = owner.value.slice(self.text);
        let quote = value.chars().next()?;
        if closing_quote(value, quote).is_some() {
            return None;
        }
        self.quotes(&owner)
    }

    /// Moves the list of `key: - item` to the next lines.
    fn list_on_key_line(&self, owner: &OwningValue) -> Option<Repair> {
        let pair = owner.line.key_value(self.text)?;
        let gap = Span::new(pair.key.end + 1, owner.value.start);
        let indent = owner.continued.unwrap_or(owner.line.indent + 2);
        let edits = vec![Edit::replace(gap, format!("{}{}", self.newline(), " ".repeat(indent)))];
        let span = Span::new(owner.value.start, owner.value.start + 1);
        let help = "begin the list on the next line";
        let message = "a list cannot begin on the line of its key".to_owned();
        Some(repair("list-on-key-line", message, help, span, edits))
    }

    /// Repairs brackets: `[a] [b]` is text; `[a, b` lacks its end; `{{x}}` is an unrendered
    /// template.
    fn brackets(&self, owner: &OwningValue) -> Vec<Repair> {
        let value = owner.value.slice(self.text);
        let mut repairs = Vec::new();
        let open = unclosed_brackets(value);
        if !open.is_empty() && owner.continued.is_none() {
            let edits = vec![Edit::insert(owner.value.end, open)];
            let span = Span::new(owner.value.start, owner.value.start + 1);
            let message = "this bracket is never closed".to_owned();
            let mut repair =
                repair("unclosed-bracket", message, "add the closing bracket", span, edits);
            repair.safety = Safety::Unsafe;
            repairs.push(repair);
        }
        let template = value.starts_with("{{");
        if value.starts_with('[') || template {
            let mut repair = self.quote_whole(owner);
            if template || value.contains('\n') {
                repair.safety = Safety::Unsafe;
            }
            repairs.push(repair);
        }
        repairs
    }

    /// Quotes a word such as `@name`, because a plain value cannot begin with this character.
    fn reserved_character(&self) -> Option<Repair> {
        let line = self.line();
        let rest = Span::new(self.at, line.span.end).slice(self.text);
        let first = rest.chars().next().filter(|first| "@`%".contains(*first))?;
        let before = Span::new(line.span.start, self.at).slice(self.text);
        let flow = before.contains(['[', '{']) && before.trim_end().ends_with([',', '[', '{', ':']);
        let word = if flow {
            rest.split([',', ']', '}']).next()?.trim_end()
        } else {
            let key = rest.split(':').next()?;
            let is_pair = before.trim().trim_start_matches('-').is_empty() && is_key(key);
            if is_pair && rest.len() > key.len() { key } else { return None }
        };
        let span = Span::new(self.at, self.at + word.len());
        let edits = wrap_in_quotes(self.text, span);
        let message = format!("`{first}` cannot begin a plain value");
        Some(repair("unquoted-special", message, "put it in quotes", span, edits))
    }

    /// Aligns list items that are at another column than those before them.
    fn misaligned_list(&self) -> Option<Repair> {
        let line = self.line();
        if !line.is_item(self.text) {
            return None;
        }
        let before = self.lines[..self.index].iter().rev().find(|line| !line.is_blank)?;
        if !before.is_item(self.text) || before.indent == line.indent {
            return None;
        }
        let slipped = self.lines[self.index..]
            .iter()
            .take_while(|next| next.is_item(self.text) && next.indent == line.indent);
        let margin = |line: &Line| Span::new(line.span.start, line.span.start + line.indent);
        let blanks = " ".repeat(before.indent);
        let edits = slipped.map(|line| Edit::replace(margin(line), blanks.clone())).collect();
        let help = "give every item of a list the same indentation";
        let message = "this item is not aligned with the items before it".to_owned();
        Some(repair("misaligned-list", message, help, margin(&line), edits))
    }

    /// Inserts the blank in `name:value`, which is one word in YAML.
    fn blank_after_colon(&self) -> Option<Repair> {
        let candidates = [Some(self.index), self.index.checked_sub(1)];
        let line =
            candidates.into_iter().flatten().map(|index| self.lines[index]).find(|line| {
                let content = line.content(self.text);
                !line.is_blank
                    && line.key_value(self.text).is_none()
                    && content.find(':').is_some_and(|colon| {
                        let rest = &content[colon + 1..];
                        is_key(&content[..colon]) && !rest.is_empty() && !rest.starts_with("//")
                    })
            })?;
        let colon = line.span.start + line.indent + line.content(self.text).find(':')?;
        let edits = vec![Edit::insert(colon + 1, " ")];
        let span = Span::new(colon, colon + 1);
        let message = "a key needs a space after its colon".to_owned();
        Some(repair("missing-blank", message, "write `key: value`", span, edits))
    }

    /// Replaces tabs, which cannot indent YAML.
    fn tabs(&self) -> Option<Repair> {
        let mut edits = Vec::new();
        for line in self.lines {
            let margin = Span::new(line.span.start, line.span.start + line.indent);
            if !line.is_blank && margin.slice(self.text).contains('\t') {
                edits.push(Edit::replace(margin, margin.slice(self.text).replace('\t', "  ")));
            }
        }
        let span = edits.first()?.span;
        let message = "a tab cannot indent YAML".to_owned();
        Some(repair("tab-indentation", message, "indent with spaces", span, edits))
    }

    /// Doubles the backslashes of a value with an invalid escape such as `"\d"`.
    fn escape(&self) -> Option<Repair> {
        let line = self.line().span.slice(self.text);
        let quote = line.find('"')?;
        let mut edits = Vec::new();
        let mut bad = None;
        let mut ambiguous = false;
        let mut rest = line[quote..].char_indices();
        while let Some((at, found)) = rest.next() {
            if found != '\\' {
                continue;
            }
            let (_, escaped) = rest.next()?;
            if matches!(escaped, '"' | '\\') {
                continue;
            }
            let slash = self.line().span.start + quote + at;
            edits.push(Edit::insert(slash, "\\"));
            if "0abt\tnvfre /N_LPxuU".contains(escaped) {
                ambiguous = true;
            } else {
                bad.get_or_insert((slash, escaped));
            }
        }
        let (slash, escaped) = bad?;
        let span = Span::new(slash, slash + 1 + escaped.len_utf8());
        let message = format!("`\\{escaped}` is not an escape in double quotes");
        let mut repair = repair("invalid-escape", message, "double the backslashes", span, edits);
        if ambiguous {
            repair.safety = Safety::Unsafe;
        }
        Some(repair)
    }

    /// Lines inside quotes that are not indented more than their key.
    fn quoted_indentation(&self) -> Option<Repair> {
        let start = self.lines[..self.index].iter().rposition(|line| {
            line.key_value(self.text)
                .is_some_and(|pair| pair.value.slice(self.text).starts_with(['"', '\'']))
        })?;
        let line = self.lines[start];
        let value = line.key_value(self.text)?.value;
        let rest = &self.text[value.start..];
        let close = value.start + closing_quote(rest, rest.chars().next()?)?;
        // Only a complete value is merely badly indented.
        let after = self.text[close + 1..].lines().next().unwrap_or_default();
        let swallowed = self.lines[start + 1..].iter().take_while(|next| next.span.start <= close);
        let takes_field = swallowed
            .filter(|next| next.indent <= line.indent)
            .any(|next| next.key_value(self.text).is_some());
        if !after.trim().is_empty() || takes_field {
            return None;
        }
        let blanks = " ".repeat(line.indent + 2);
        let edits: Vec<Edit> = self.lines[start + 1..]
            .iter()
            .take_while(|next| next.span.start <= close)
            .filter(|next| !next.is_blank && next.indent <= line.indent)
            .map(|next| Edit::insert(next.span.start, blanks.clone()))
            .collect();
        let span = Span::at(edits.first()?.span.start);
        let message = "a line inside quotes is not indented".to_owned();
        Some(repair("quoted-indentation", message, "indent the lines of the value", span, edits))
    }

    /// Lines of the text below `>` or `|` that are not indented, or less than its first line.
    fn block_indentation(&self) -> Option<Repair> {
        let start = self.lines[..self.index].iter().rposition(|line| {
            line.key_value(self.text).is_some_and(|pair| is_block_mark(pair.value.slice(self.text)))
        })?;
        let key = self.lines[start];
        let ends = |line: &&Line| {
            line.indent <= key.indent && line.key_value(self.text).is_some()
                || line.content(self.text).starts_with(['#', '-'])
        };
        let lines: Vec<&Line> =
            self.lines[start + 1..].iter().take_while(|line| !ends(line)).collect();
        let first = lines.iter().find(|line| !line.is_blank)?;
        let wanted = if first.indent > key.indent { first.indent } else { key.indent + 2 };
        let edits: Vec<Edit> = lines
            .iter()
            .filter(|line| !line.is_blank && line.indent < wanted)
            .map(|line| Edit::insert(line.span.start, " ".repeat(wanted - line.indent)))
            .collect();
        let span = Span::at(edits.first()?.span.start);
        let message = "a line of the text below `>` or `|` is not indented enough";
        Some(repair("block-scalar-text", message, "indent the lines of the text", span, edits))
    }

    fn newline(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }
}

/// Whether a value is only the mark of a text on the lines below, such as `>` or `|-`.
fn is_block_mark(value: &str) -> bool {
    value.starts_with(['>', '|']) && value[1..].chars().all(|c| matches!(c, '+' | '-'))
}

/// `&nbsp;` comes from text pasted out of a web page.
pub(super) fn html_spaces(text: &str) -> Option<Repair> {
    let edits: Vec<Edit> = memchr::memmem::find_iter(text.as_bytes(), b"&nbsp;")
        .map(|at| Edit::replace(Span::new(at, at + "&nbsp;".len()), " "))
        .collect();
    let span = edits.first()?.span;
    let message = "`&nbsp;` is a space of a web page, not of YAML";
    Some(repair("html-space", message, "write a blank", span, edits))
}

/// Whether the quote at the start encloses only the first words, as in `"hello" to all`.
fn is_quotation(text: &str, quote: char) -> bool {
    let rest = &text[1..];
    rest.match_indices(quote).any(|(at, _)| {
        let after = &rest[at + 1..];
        // A doubled quote is an escaped apostrophe.
        let is_inside = after.starts_with(|c: char| c.is_alphanumeric() || c == quote);
        !is_inside && after.trim().chars().nth(1).is_some()
    })
}

/// Characters that cannot begin a plain value.
const RESERVED: &str = "@`%&*!";

fn repair(
    code: &'static str,
    message: impl Into<String>,
    help: &'static str,
    span: Span,
    edits: Vec<Edit>,
) -> Repair {
    Repair { code, message: message.into(), help, span, edits, safety: Safety::Safe }
}

/// Whether backticks were meant as quotes.
fn is_in_backticks(value: &str) -> bool {
    let inner = value.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
    inner.is_some_and(|inner| !inner.contains(['`', '"', '\\']))
}

fn replace_ends(value: Span) -> Vec<Edit> {
    let quote = |at: usize| Edit::replace(Span::new(at, at + 1), "\"");
    vec![quote(value.start), quote(value.end - 1)]
}

/// Puts quotes around a value, whichever need fewer escapes.
fn wrap_in_quotes(text: &str, value: Span) -> Vec<Edit> {
    let content = value.slice(text);
    let double = !content.contains(['"', '\\']);
    let quote = if double || content.contains('\'') { '"' } else { '\'' };
    let mut edits = vec![Edit::insert(value.start, quote.to_string())];
    edits.extend(escapes(content, value.start, quote));
    edits.push(Edit::insert(value.end, quote.to_string()));
    edits
}

fn escapes(content: &str, offset: usize, quote: char) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (at, found) in content.char_indices() {
        match (quote, found) {
            ('"', '"' | '\\') => edits.push(Edit::insert(offset + at, "\\")),
            ('\'', '\'') => edits.push(Edit::insert(offset + at, "'")),
            _ => {}
        }
    }
    edits
}

/// Offset of the quote that closes the one at the start.
fn closing_quote(value: &str, quote: char) -> Option<usize> {
    let mut chars = value.char_indices().skip(1).peekable();
    while let Some((at, found)) = chars.next() {
        if found == '\\' && quote == '"' {
            chars.next();
        } else if found == quote {
            match chars.peek() {
                Some((_, next)) if quote == '\'' && *next == '\'' => {
                    chars.next();
                }
                _ => return Some(at),
            }
        }
    }
    None
}

/// Whether quotes enclosed a description to which something was added later, as in
/// `"Reads a file." Use it often.`, and are not a quotation, as in `"yes" in the answer`.
fn is_whole_sentence(quoted: &str, rest: &str) -> bool {
    let ends = quoted.trim_end().ends_with(['.', '!', '?', '。', '！', '？']);
    let words = quoted.split_whitespace().count();
    let next = rest.trim_start().chars().next();
    let begins = next.is_some_and(|next| !next.is_lowercase() && !",;:".contains(next));
    // A quote on a separate line, or before a full stop, also ends a text.
    let stops = quoted.ends_with(['\n', ' ']) || rest.starts_with(['.', '。']);
    words >= 2 && (ends && begins || stops || rest.starts_with(char::is_alphanumeric))
}

/// Whether the quote at `at` is between two letters, as in `don't`.
fn is_apostrophe(value: &str, at: usize) -> bool {
    let before = value[..at].chars().next_back();
    let after = value[at + 1..].chars().next();
    before.is_some_and(char::is_alphanumeric) && after.is_some_and(char::is_alphanumeric)
}

/// Whether the quote at `close` opens a quotation inside the value, is an apostrophe, or is one of
/// an odd number.
fn opens_inside(value: &str, close: usize) -> bool {
    let quote = value.as_bytes()[0];
    let before = value[..close].chars().next_back();
    let after = value[close + 1..].chars().next();
    let spaced = before.is_some_and(|c| c.is_whitespace() || c == '(')
        && after.is_some_and(|c| !c.is_whitespace());
    // Scripts without blanks between words have none before a quotation either.
    let unspaced = after.is_some_and(char::is_alphanumeric)
        && [before, after].into_iter().flatten().any(|c| !c.is_ascii() && c.is_alphabetic());
    let opens = spaced || unspaced;
    opens || is_odd(value, char::from(quote)) || quote == b'\'' && is_apostrophe(value, close)
}

/// Whether the quote at `at` opens a quotation, as in `says "hello"`.
fn opens_quotation(value: &str, at: usize) -> bool {
    let before = value[..at].chars().next_back();
    let after = value[at + 1..].chars().next();
    before.is_some_and(|c| c.is_whitespace() || c == '(')
        && after.is_some_and(char::is_alphanumeric)
}

fn is_odd(value: &str, quote: char) -> bool {
    value.matches(quote).count() % 2 == 1
}

/// Escapes all quotes after the first and closes the value.
fn close_after_inner(text: &str, value: Span, quote: char) -> Vec<Edit> {
    let inner = Span::new(value.start + 1, value.end);
    let mut edits = escapes(inner.slice(text), inner.start, quote);
    // Backslashes of a double-quoted value are escapes already.
    edits.retain(|edit| text[edit.span.start..].starts_with(quote));
    edits.push(Edit::insert(value.end, quote.to_string()));
    edits
}

/// Escapes the quotes between the first and the last.
fn escape_inner(text: &str, value: Span, quote: char) -> Vec<Edit> {
    let inner = Span::new(value.start + 1, value.end - 1);
    let mut edits = escapes(inner.slice(text), inner.start, quote);
    // Backslashes of a double-quoted value are escapes already.
    edits.retain(|edit| text[edit.span.start..].starts_with(quote));
    edits
}

/// Moves the closing quote behind the rest. A blank takes its place where two sentences meet.
fn extend_quotes(value: &str, context: Span, close: usize, quote: char) -> Vec<Edit> {
    let at = context.start + close;
    let rest = &value[close + 1..];
    let sentence_ends = value[..close].trim_end().ends_with(['.', '!', '?']);
    let meets = sentence_ends && !rest.starts_with(char::is_whitespace);
    let mut edits = vec![Edit::replace(Span::new(at, at + 1), if meets { " " } else { "" })];
    edits.extend(escapes(rest, at + 1, quote));
    edits.push(Edit::insert(context.end, quote.to_string()));
    edits
}

/// Whether some dialect has a field of this name.
fn is_known_field(key: &str) -> bool {
    Dialect::ALL
        .iter()
        .any(|dialect| dialect.language().fields(None).iter().any(|field| field.key == key))
}

/// The brackets that are still missing at the end of a value.
fn unclosed_brackets(value: &str) -> String {
    let mut open = Vec::new();
    for found in value.chars() {
        match found {
            '[' => open.push(']'),
            '{' => open.push('}'),
            ']' | '}' if open.last() == Some(&found) => {
                open.pop();
            }
            _ => {}
        }
    }
    open.into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::super::repair_yaml;
    use crate::yaml::{Tree, YamlVersion};
    use savoir_lint::Safety;
    use serde_json::{Value, json};

    fn repaired(text: &str) -> (Vec<&'static str>, Value) {
        let error = Tree::parse(text).expect_err("this text should be broken");
        let repaired =
            repair_yaml(text, &error).unwrap_or_else(|| panic!("not mended: {text:?} {error}"));
        let codes = repaired.repairs.iter().map(|repair| repair.code).collect();
        (codes, repaired.tree.root.unwrap().to_value(YamlVersion::V1_2))
    }

    #[test]
    fn quotes_values_with_a_colon() {
        let (codes, value) = repaired("name: a\ndescription: Use for: this \"and\" that\nx: 1\n");
        assert_eq!(codes, ["unquoted-colon"]);
        assert_eq!(
            value,
            json!({"name": "a", "description": "Use for: this \"and\" that", "x": 1})
        );
    }

    #[test]
    fn quotes_values_of_several_lines() {
        let (_, value) = repaired("d: First line.\n\n  Keywords: a, b\n  c\ne: 1\n");
        assert_eq!(value, json!({"d": "First line.\nKeywords: a, b c", "e": 1}));
    }

    #[test]
    fn repairs_several_errors_of_one_file() {
        let (codes, value) = repaired("a: x: y\nb: [p] [q]\nc: - i\n  - j\n");
        assert_eq!(codes, ["unquoted-colon", "unquoted-special", "list-on-key-line"]);
        assert_eq!(value, json!({"a": "x: y", "b": "[p] [q]", "c": ["i", "j"]}));
    }

    #[test]
    fn quotes_that_end_too_early() {
        let one = |text: &str| repaired(text).1["d"].clone();
        assert_eq!(one("d: 'One sentence.'. Use it.\n"), json!("One sentence. . Use it."));
        assert_eq!(
            one("d: 'One sentence\n\n  '. Use it.\ne: 1\n"),
            json!("One sentence\n. Use it.")
        );
        assert_eq!(
            one("d: 'A skill for when you don't know\n"),
            json!("A skill for when you don't know")
        );
        assert_eq!(one("d: 'it's a dog's life'\n"), json!("it's a dog's life"));
        assert_eq!(one("d: \"Foo\", bar and more\n"), json!("\"Foo\", bar and more"));
        assert_eq!(one("d: \"say \"hi\" now\"\n"), json!("say \"hi\" now"));
        assert_eq!(one("d: \"„Huhn\" ist\"\n"), json!("„Huhn\" ist"));
        assert_eq!(one("d: \"Quick\" review of things\n"), json!("\"Quick\" review of things"));
        assert_eq!(one("d: \"open\n"), json!("open"));
        assert_eq!(
            one("d: \"当用户要求\"提示\"、\"审计\"时使用\"\n"),
            json!("当用户要求\"提示\"、\"审计\"时使用")
        );
        assert_eq!(one("d: \"问\"X 如何\"时使用\"\n"), json!("问\"X 如何\"时使用"));
        assert_eq!(one("d: \"https://example.com\",\n"), json!("https://example.com"));
        // Quotations stay quotations, however long they are.
        assert_eq!(
            one("d: \"please deploy this now\" in message\n"),
            json!("\"please deploy this now\" in message")
        );
        // Quotes around a description are not text of the description.
        assert_eq!(
            one("d: \"Reads a file.\" Use it when someone asks about the content of a file.\n"),
            json!("Reads a file. Use it when someone asks about the content of a file.")
        );
    }

    fn safety(text: &str) -> Vec<Safety> {
        let error = Tree::parse(text).expect_err("this text should be broken");
        repair_yaml(text, &error).map_or_else(Vec::new, |repaired| {
            repaired.repairs.iter().map(|repair| repair.safety).collect()
        })
    }

    #[test]
    fn a_repair_that_takes_in_a_field_is_not_safe() {
        let (_, value) = repaired("d: \"abc\nallowed-tools: \"Read\"\nx: true\n");
        assert_eq!(value, json!({"d": "abc", "allowed-tools": "Read", "x": true}));
        assert_eq!(
            safety("d: First sentence: good\n  allowed-tools: Bash(rm:*)\n  context: fork\n"),
            [Safety::Unsafe]
        );
        assert_eq!(safety("d: \"C:\\data\\new\"\n"), [Safety::Unsafe]);
        assert_eq!(safety("d: \"C:\\data\\dir\"\n"), [Safety::Safe]);
    }

    #[test]
    fn safe_repairs_keep_every_inner_quote() {
        let words = ["Says", "\"hello\"", "to", "(\"b\")", "it: x", "\"two words\"", "end."];
        let pairs = words.iter().flat_map(|a| words.iter().map(move |b| [*a, *b]));
        let texts: Vec<String> = pairs
            .clone()
            .flat_map(|one| pairs.clone().map(move |two| [one, two].concat().join(" ")))
            .collect();
        for text in texts.iter().filter(|text| text.contains('"') && text.starts_with('S')) {
            for written in
                [text.clone(), format!("\"{text}\""), format!("\"{text}"), format!("> {text}")]
            {
                let yaml = format!("d: {written}\ne: 1\n");
                if Tree::parse(&yaml).is_err() && safety(&yaml) == [Safety::Safe] {
                    let value = repaired(&yaml).1["d"].as_str().map(|d| d.trim_end().to_owned());
                    assert_eq!(value.as_deref(), Some(text.as_str()), "{written}");
                }
            }
        }
        assert_eq!(repaired("d: > \"hello\" to: all\n").1, json!({"d": "\"hello\" to: all\n"}));
    }

    #[test]
    fn a_quoted_value_that_goes_on_at_the_margin_is_whole() {
        let (codes, value) = repaired("d: \"Some Temp\nlates plugin: list, read.\"\nl: MIT\n");
        assert_eq!(codes, ["quoted-indentation"]);
        assert_eq!(value, json!({"d": "Some Temp lates plugin: list, read.", "l": "MIT"}));
    }

    #[test]
    fn the_first_key_of_a_list_item() {
        let (_, value) = repaired("h:\n  - m: Bash tool: x\n    run: echo hi\n");
        assert_eq!(value, json!({"h": [{"m": "Bash tool: x", "run": "echo hi"}]}));
    }

    #[test]
    fn text_on_the_line_of_the_block_mark() {
        let (codes, value) = repaired("d: >  Some text,\n  more.\ne: 1\n");
        assert_eq!(codes, ["block-scalar-text"]);
        assert_eq!(value, json!({"d": "Some text, more.\n", "e": 1}));
        assert_eq!(repaired("d: > 'Some: text'\n").1, json!({"d": "Some: text\n"}));
    }

    #[test]
    fn text_below_the_block_mark_that_is_not_indented() {
        for (broken, text) in [
            ("d: >\nOne line.\nTwo.\ne: 1\n", "One line. Two.\n"),
            ("d: |-\n  One line.\nTwo.\ne: 1\n", "One line.\nTwo."),
            ("d: >\n    One line.\n  Two.\ne: 1\n", "One line. Two.\n"),
        ] {
            let (codes, value) = repaired(broken);
            assert_eq!(codes, ["block-scalar-text"], "{broken}");
            assert_eq!(value, json!({"d": text, "e": 1}), "{broken}");
        }
    }

    #[test]
    fn small_errors_are_repaired() {
        assert_eq!(repaired("a:\n\tb: 1\n").1, json!({"a": {"b": 1}}));
        assert_eq!(repaired("a: 1\nname:x\n").1, json!({"a": 1, "name": "x"}));
        assert_eq!(repaired("k: [a, @if]\n").1, json!({"k": ["a", "@if"]}));
        assert_eq!(repaired("v:\n  @x/y: 1\n").1, json!({"v": {"@x/y": 1}}));
        assert_eq!(repaired("r: \"\\d+\"\n").1, json!({"r": "\\d+"}));
        assert_eq!(repaired("m:\n  k:\n    - a\n  - b\n").1, json!({"m": {"k": ["a", "b"]}}));
        assert_eq!(repaired("d: \"a\nb\"\ne: 1\n").1, json!({"d": "a b", "e": 1}));
    }
}
