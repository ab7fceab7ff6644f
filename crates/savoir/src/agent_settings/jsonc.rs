//! Adds, changes and removes members of a JSON file and items of its lists. Comments, whitespace,
//! line ends and the order of everything else are preserved.

#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::HashMap, ops::Range};

use serde::Serialize as _;
use serde_json::Value;

/// Maximum nesting depth.
const MAX_DEPTH: usize = 128;
/// Default indentation, if the file has none.
const DEFAULT_INDENT: &str = "  ";
/// Maximum indentation that is copied from a file.
const MAX_INDENT_BYTES: usize = 8;

/// An error in a file, with its line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct JsoncError {
    pub(crate) line: usize,
    pub(crate) message: Cow<'static, str>,
}

#[derive(Debug)]
struct Member {
    key: String,
    /// From the quote of the key to the end of the value.
    whole: Range<usize>,
    value: Range<usize>,
    /// The comma after it.
    comma: Option<usize>,
    object: Option<Object>,
    list: Option<Object>,
}

/// An object or a list. The items of a list are members without a key.
#[derive(Debug)]
struct Object {
    /// From after the opening brace to the closing brace.
    inside: Range<usize>,
    members: Vec<Member>,
    is_list: bool,
}

/// Line ends and indentation of a file.
struct Style {
    line_end: &'static str,
    step: String,
}

/// The value of a member of a member.
pub(crate) fn get(text: &str, outer: &str, key: &str) -> Result<Option<Value>, JsoncError> {
    let root = read(text, outer, key)?;
    let found = root.member(outer).and_then(|outer| outer.object.as_ref()?.member(key));
    Ok(found.map(|found| found.read(text)))
}

/// Sets a member of a member, which is created if it is missing. In an existing member, only the
/// keys in `ours` change, and missing keys are added.
pub(crate) fn set(
    text: &str,
    outer: &str,
    key: &str,
    value: &Value,
    ours: &[&str],
) -> Result<String, JsoncError> {
    let mark = if text.starts_with('\u{feff}') { "\u{feff}" } else { "" };
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        return set(&format!("{mark}{{\n}}\n"), outer, key, value, ours);
    }
    let root = read(text, outer, key)?;
    let Some(found) = root.member(outer) else {
        return Ok(root.add(text, outer, &serde_json::json!({ key: value })));
    };
    let Some(object) = &found.object else {
        let line = line_of(text, found.value.start);
        return Err(JsoncError { line, message: "this is not an object".into() });
    };
    let Some(old) = object.member(key) else { return Ok(object.add(text, key, value)) };
    let (Some(entry), Value::Object(wanted)) = (&old.object, value) else {
        return Ok(old.with_value(text, value));
    };
    let changed = wanted.iter().find_map(|(name, value)| match entry.member(name) {
        Some(known) if !ours.contains(&name.as_str()) || known.read(text) == *value => None,
        Some(known) => Some(known.with_value(text, value)),
        None => Some(entry.add(text, name, value)),
    });
    match changed {
        // Apply one change at a time, because it moves the positions of the others.
        Some(changed) => set(&changed, outer, key, value, ours),
        None => Ok(text.to_owned()),
    }
}

/// The value at a path of keys.
pub(crate) fn get_at(text: &str, path: &[&str]) -> Result<Option<Value>, JsoncError> {
    if is_blank(text) {
        return Ok(None);
    }
    let root = parse(text)?;
    Ok(root.at(text, path)?.map(|found| found.read(text)))
}

/// Sets the value at a path of keys; missing objects on the path are added.
pub(crate) fn set_at(text: &str, path: &[&str], value: &Value) -> Result<String, JsoncError> {
    let text = &or_empty(text);
    let root = parse(text)?;
    if let Some(known) = root.at(text, path)? {
        return Ok(known.with_value(text, value));
    }
    root.add_at(text, path, value)
}

/// Adds a string to the list at a path of keys; a missing list and missing objects are added.
pub(crate) fn add_item(text: &str, path: &[&str], item: &str) -> Result<String, JsoncError> {
    let text = &or_empty(text);
    let root = parse(text)?;
    let Some(known) = root.at(text, path)? else {
        return root.add_at(text, path, &serde_json::json!([item]));
    };
    let Some(list) = &known.list else {
        return Err(JsoncError {
            line: line_of(text, known.value.start),
            message: "this is not a list".into(),
        });
    };
    if list.item(text, item).is_some() {
        return Ok(text.clone());
    }
    Ok(list.add(text, "", &Value::from(item)))
}

/// Removes a string from the list at a path of keys, and containers that become empty.
pub(crate) fn remove_item(text: &str, path: &[&str], item: &str) -> Result<String, JsoncError> {
    if is_blank(text) {
        return Ok(text.to_owned());
    }
    let root = parse(text)?;
    let Some(list) = root.at(text, path)?.and_then(|known| known.list.as_ref()) else {
        return Ok(text.to_owned());
    };
    match list.item(text, item) {
        None => Ok(text.to_owned()),
        Some(_) if list.members.len() == 1 => remove_at(text, path),
        Some(place) => Ok(list.without_member(text, place)),
    }
}

/// Removes the member at a path of keys, and objects that become empty.
pub(crate) fn remove_at(text: &str, path: &[&str]) -> Result<String, JsoncError> {
    let Some((key, above)) = path.split_last().filter(|_| !is_blank(text)) else {
        return Ok(text.to_owned());
    };
    let root = parse(text)?;
    let object = match above {
        [] => Some(&root),
        above => root.at(text, above)?.and_then(|member| member.object.as_ref()),
    };
    let place = object.and_then(|object| {
        object.members.iter().position(|member| member.key == *key).map(|place| (object, place))
    });
    match place {
        None => Ok(text.to_owned()),
        Some((object, _)) if object.members.len() == 1 && !above.is_empty() => {
            remove_at(text, above)
        }
        Some((object, place)) => Ok(object.without_member(text, place)),
    }
}

fn is_blank(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim().is_empty()
}

/// The text, or an empty object if the text is blank.
fn or_empty(text: &str) -> String {
    let mark = if text.starts_with('\u{feff}') { "\u{feff}" } else { "" };
    if is_blank(text) { format!("{mark}{{\n}}\n") } else { text.to_owned() }
}

/// Removes a member of a member. Comments stay, also those after it.
pub(crate) fn remove(text: &str, outer: &str, key: &str) -> Result<String, JsoncError> {
    let root = read(text, outer, key)?;
    let object = root.member(outer).and_then(|outer| outer.object.as_ref());
    let place = object.and_then(|object| {
        object.members.iter().position(|member| member.key == key).map(|place| (object, place))
    });
    let Some((object, place)) = place else { return Ok(text.to_owned()) };
    Ok(object.without_member(text, place))
}

/// The range of a member, with its indentation and its line if nothing else is on that line.
fn lines_of(text: &str, from: usize, whole: &Range<usize>, end: usize) -> Range<usize> {
    let blank = [' ', '\t'];
    let start = text[..whole.start].trim_end_matches(blank).len();
    let rest = text[end..].trim_start_matches(blank);
    if let Some(above) = text[..start].strip_suffix('\n') {
        let above = above.strip_suffix('\r').unwrap_or(above).len();
        // Text joined to a line comment would become part of it, and a comment after the member
        // gets its own line.
        let is_last = rest.is_empty() || rest.starts_with(['\n', '\r']);
        let may_join = !rest.starts_with('/') && !ends_with_line_comment(text, from, above);
        return if is_last || may_join { above..whole.end } else { whole.clone() };
    }
    start..whole.end
}

/// Whether the text ends with a line comment.
fn ends_with_line_comment(text: &str, from: usize, to: usize) -> bool {
    let mut reader = Reader { text: &text[..to], at: from };
    while reader.at < to {
        let rest = &reader.text[reader.at..];
        if rest.starts_with("//") && !rest.contains('\n') {
            return true;
        }
        let at = reader.at;
        let is_comment = rest.starts_with("//") || rest.starts_with("/*");
        if !is_comment || reader.comment().is_err() || reader.at == at {
            reader.at = at + rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    false
}

impl Member {
    fn read(&self, text: &str) -> Value {
        let plain = without_comments(&text[self.value.clone()]);
        serde_json::from_str(&plain).unwrap_or(Value::Null)
    }

    fn with_value(&self, text: &str, value: &Value) -> String {
        let new = if text[self.value.clone()].contains('\n') {
            Style::of(text).lines(value, &indent_of(text, self.whole.start))
        } else {
            value.to_string()
        };
        replace_range(text, self.value.clone(), &new)
    }
}

impl Object {
    /// The member at a path of keys. Duplicate keys are an error: they cannot be changed safely.
    fn at(&self, text: &str, path: &[&str]) -> Result<Option<&Member>, JsoncError> {
        let Some((first, rest)) = path.split_first() else { return Ok(None) };
        self.check_unique(text, |name| name == *first)?;
        let Some(member) = self.member(first) else { return Ok(None) };
        match (rest, &member.object) {
            ([], _) => Ok(Some(member)),
            (rest, Some(object)) => object.at(text, rest),
            (_, None) => {
                let line = line_of(text, member.value.start);
                Err(JsoncError { line, message: "this is not an object".into() })
            }
        }
    }

    /// Adds a value at a path that does not exist.
    fn add_at(&self, text: &str, path: &[&str], value: &Value) -> Result<String, JsoncError> {
        let Some((first, rest)) = path.split_first() else { return Ok(text.to_owned()) };
        let inner = self.member(first).and_then(|member| member.object.as_ref());
        if let (Some(inner), false) = (inner, rest.is_empty()) {
            return inner.add_at(text, rest, value);
        }
        let wrap = |value: Value, key: &&str| serde_json::json!({ *key: value });
        let value = rest.iter().rev().fold(value.clone(), wrap);
        Ok(self.add(text, first, &value))
    }

    /// The index of a string in a list.
    fn item(&self, text: &str, item: &str) -> Option<usize> {
        self.members.iter().position(|member| member.read(text).as_str() == Some(item))
    }

    /// Removes one of the members from the text.
    fn without_member(&self, text: &str, place: usize) -> String {
        let Member { whole, comma, .. } = &self.members[place];
        let before = place.checked_sub(1).map(|before| &self.members[before]);
        // Remove the comma after it, or before it if it is the last member.
        let comma = comma.or(before.and_then(|before| before.comma));
        let end = comma.map_or(whole.end, |comma| whole.end.max(comma + 1));
        let from = before.map_or(self.inside.start, |before| before.whole.end);
        let mut cuts = vec![lines_of(text, from, whole, end)];
        cuts.extend(comma.map(|comma| comma..comma + 1));
        cuts.sort_by_key(|cut| cut.start);
        cuts.into_iter().rev().fold(text.to_owned(), |text, cut| replace_range(&text, cut, ""))
    }

    fn member(&self, key: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.key == key)
    }

    /// Rejects duplicate keys among those that `counts` selects.
    fn check_unique(&self, text: &str, counts: impl Fn(&str) -> bool) -> Result<(), JsoncError> {
        let mut seen = HashMap::new();
        for Member { key, whole, .. } in self.members.iter().filter(|one| counts(&one.key)) {
            let line = line_of(text, whole.start);
            if let Some(first) = seen.insert(key, line) {
                let message =
                    format!("{} is defined twice, first in line {first}", Value::from(&**key));
                return Err(JsoncError { line, message: message.into() });
            }
        }
        Ok(())
    }

    /// Adds a member at the end, so that [`remove`] restores the same text.
    fn add(&self, text: &str, key: &str, value: &Value) -> String {
        let style = Style::of(text);
        let inside = &text[self.inside.clone()];
        let name = if self.is_list { String::new() } else { format!("{}: ", Value::from(key)) };
        let is_one_line = !inside.contains('\n');
        let member = |indent: &str| {
            if is_one_line {
                return format!("{name}{value}");
            }
            format!("{}{indent}{name}{}", style.line_end, style.lines(value, indent))
        };
        let Some(last) = self.members.last() else {
            let filled = inside.trim_end().len();
            let gap = if is_one_line && filled > 0 { " " } else { "" };
            let indent = indent_of(text, self.inside.start) + &style.step;
            let at = self.inside.start + filled;
            return replace_range(text, at..at, &format!("{gap}{}", member(&indent)));
        };
        let gap = if is_one_line { " " } else { "" };
        let new = format!("{gap}{}", member(&indent_of(text, last.whole.start)));
        if let Some(comma) = last.comma {
            let at = end_after_comments(text, comma + 1);
            return replace_range(text, at..at, &format!("{new},"));
        }
        let at = end_after_comments(text, last.whole.end);
        let with = replace_range(text, at..at, &new);
        replace_range(&with, last.whole.end..last.whole.end, ",")
    }
}

/// The end of the comments that follow on the same line.
fn end_after_comments(text: &str, at: usize) -> usize {
    let (mut reader, mut end) = (Reader { text, at }, at);
    loop {
        let rest = &text[reader.at..];
        reader.at += rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let rest = &text[reader.at..];
        let is_line = rest.starts_with("//");
        if !is_line && !rest.starts_with("/*") || reader.comment().is_err() {
            return end;
        }
        end = reader.at;
        if is_line {
            return end - usize::from(text[..end].ends_with('\r'));
        }
    }
}

impl Style {
    fn of(text: &str) -> Self {
        let is_windows = text.find('\n').is_some_and(|at| text[..at].ends_with('\r'));
        let blanks = |line: &str| indent_of(line, line.len());
        let step = text.lines().map(blanks).find(|step| !step.is_empty());
        let step = match step {
            Some(step) if step.starts_with('\t') => "\t".to_owned(),
            Some(step) if step.len() <= MAX_INDENT_BYTES => step,
            _ => DEFAULT_INDENT.to_owned(),
        };
        Self { line_end: if is_windows { "\r\n" } else { "\n" }, step }
    }

    /// A value on several lines; all but the first are indented.
    fn lines(&self, value: &Value, indent: &str) -> String {
        let mut bytes = Vec::new();
        let form = serde_json::ser::PrettyFormatter::with_indent(self.step.as_bytes());
        let mut writer = serde_json::Serializer::with_formatter(&mut bytes, form);
        // Writing a value into memory cannot fail.
        let _ = value.serialize(&mut writer);
        let text = String::from_utf8(bytes).unwrap_or_default();
        text.replace('\n', &format!("{}{indent}", self.line_end))
    }
}

fn replace_range(text: &str, range: Range<usize>, by: &str) -> String {
    let mut new = text.to_owned();
    new.replace_range(range, by);
    new
}

/// The indentation of the line.
fn indent_of(text: &str, at: usize) -> String {
    let line = text[..at].rfind('\n').map_or(0, |line| line + 1);
    text[line..at].chars().take_while(|letter| matches!(letter, ' ' | '\t')).collect()
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].split(|byte| *byte == b'\n').count()
}

/// The text as plain JSON, without comments and trailing commas.
fn without_comments(text: &str) -> String {
    let mut reader = Reader { text, at: 0 };
    let mut plain = String::new();
    while reader.at < text.len() {
        let from = reader.at;
        match text.as_bytes()[from] {
            b'"' => {
                let _ = reader.string();
            }
            _ if reader.skip_blanks().is_ok() && reader.at > from => {
                plain.push(' ');
                continue;
            }
            b',' => {
                reader.at += 1;
                let _ = reader.skip_blanks();
                // Plain JSON has no trailing commas.
                if !matches!(text.as_bytes().get(reader.at), Some(b'}' | b']')) {
                    plain.push(',');
                }
                continue;
            }
            _ => reader.at += text[from..].chars().next().map_or(1, char::len_utf8),
        }
        plain.push_str(&text[from..reader.at]);
    }
    plain
}

/// Parses a file to access a member of a member. Duplicate keys are an error, because programs
/// differ in which one they use.
fn read(text: &str, outer: &str, key: &str) -> Result<Object, JsoncError> {
    let root = parse(text)?;
    root.check_unique(text, |name| name == outer)?;
    let inner = root.member(outer).and_then(|outer| outer.object.as_ref());
    if let Some(inner) = inner {
        inner.check_unique(text, |name| name == key)?;
        if let Some(entry) = inner.member(key).and_then(|entry| entry.object.as_ref()) {
            entry.check_unique(text, |_| true)?;
        }
    }
    Ok(root)
}

fn parse(text: &str) -> Result<Object, JsoncError> {
    let mut reader = Reader { text, at: if text.starts_with('\u{feff}') { 3 } else { 0 } };
    reader.skip_blanks()?;
    if reader.peek() != Some(b'{') {
        return reader.error_at("the file does not start with {");
    }
    let root = reader.object(0)?;
    reader.skip_blanks()?;
    if reader.at < text.len() {
        return reader.error_at("there is text after the last }");
    }
    Ok(root)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn error_at<T>(&self, message: &'static str) -> Result<T, JsoncError> {
        Err(JsoncError { line: line_of(self.text, self.at), message: message.into() })
    }

    /// Skips whitespace and comments.
    fn skip_blanks(&mut self) -> Result<(), JsoncError> {
        loop {
            let rest = &self.text[self.at..];
            if rest.starts_with("//") || rest.starts_with("/*") {
                self.comment()?;
            } else if rest.starts_with([' ', '\t', '\r', '\n']) {
                self.at += 1;
            } else {
                return Ok(());
            }
        }
    }

    /// Skips a comment, without the end of its line.
    fn comment(&mut self) -> Result<(), JsoncError> {
        let rest = &self.text[self.at..];
        if rest.starts_with("//") {
            self.at += rest.find('\n').unwrap_or(rest.len());
            return Ok(());
        }
        match rest.get(2..).and_then(|inside| inside.find("*/")) {
            Some(end) => self.at += end + 4,
            None => return self.error_at("a comment is not closed"),
        }
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Option<Object>, JsoncError> {
        if depth > MAX_DEPTH {
            return self.error_at("the nesting is too deep");
        }
        match self.peek() {
            Some(b'{') => return self.object(depth).map(Some),
            Some(b'[') => return self.array(depth).map(Some),
            Some(b'"') => drop(self.string()?),
            _ => {
                let rest = &self.text[self.at..];
                let end = |letter: char| !letter.is_ascii_alphanumeric() && !"+-.".contains(letter);
                let word = &rest[..rest.find(end).unwrap_or(rest.len())];
                if serde_json::from_str::<Value>(word).is_err() {
                    return self.error_at("a value is missing or is not valid JSON");
                }
                self.at += word.len();
            }
        }
        Ok(None)
    }

    fn string(&mut self) -> Result<String, JsoncError> {
        let from = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'\\') => self.at += 2,
                Some(b'"') => break,
                Some(b'\n') | None => return self.error_at("a string is not closed"),
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        let text = self.text.get(from..self.at).unwrap_or_default();
        serde_json::from_str(text).or_else(|_| self.error_at("a string is not valid JSON"))
    }

    fn array(&mut self, depth: usize) -> Result<Object, JsoncError> {
        self.at += 1;
        let start = self.at;
        let mut members = Vec::<Member>::new();
        loop {
            self.skip_blanks()?;
            if self.peek() == Some(b']') {
                break;
            }
            let from = self.at;
            self.value(depth + 1)?;
            let whole = from..self.at;
            self.skip_blanks()?;
            let comma = match self.peek() {
                Some(b',') => Some(self.at),
                Some(b']') => None,
                _ => return self.error_at("a , or ] is missing"),
            };
            self.at += usize::from(comma.is_some());
            let (key, value) = (String::new(), whole.clone());
            members.push(Member { key, whole, value, comma, object: None, list: None });
        }
        let inside = start..self.at;
        self.at += 1;
        Ok(Object { inside, members, is_list: true })
    }

    fn object(&mut self, depth: usize) -> Result<Object, JsoncError> {
        self.at += 1;
        let start = self.at;
        let (mut members, mut comma) = (Vec::<Member>::new(), None);
        loop {
            self.skip_blanks()?;
            match self.peek() {
                Some(b'}') => break,
                Some(b'"') if members.is_empty() || comma.is_some() => {}
                Some(b'"') => return self.error_at("a , is missing"),
                _ => return self.error_at("a name in quotes or a } is missing"),
            }
            let from = self.at;
            let key = self.string()?;
            self.skip_blanks()?;
            if self.peek() != Some(b':') {
                return self.error_at("a : is missing");
            }
            self.at += 1;
            self.skip_blanks()?;
            let value = self.at;
            let inner = self.value(depth + 1)?;
            let (object, list) = match inner {
                Some(inner) if inner.is_list => (None, Some(inner)),
                inner => (inner, None),
            };
            let (whole, value) = (from..self.at, value..self.at);
            self.skip_blanks()?;
            comma = (self.peek() == Some(b',')).then_some(self.at);
            self.at += usize::from(comma.is_some());
            members.push(Member { key, whole, value, comma, object, list });
        }
        let inside = start..self.at;
        self.at += 1;
        Ok(Object { inside, members, is_list: false })
    }
}
