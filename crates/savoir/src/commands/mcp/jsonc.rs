//! One member of a member of a JSON file is put in, replaced or taken out, and not a letter besides:
//! comments, blanks and the order of everything else stay.

use std::ops::Range;

use serde_json::Value;

/// Deepest nesting that is read.
const MOST_DEPTH: usize = 128;
/// The step to the right where the file shows none.
const STEP: &str = "  ";

/// What is wrong with a file, and in which line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) line: usize,
    pub(super) message: &'static str,
}

#[derive(Debug)]
struct Member {
    key: String,
    /// From the quote of the key to the end of the value.
    whole: Range<usize>,
    value: Range<usize>,
    object: Option<Object>,
}

#[derive(Debug)]
struct Object {
    /// Behind the opening brace, and at the closing one.
    inside: Range<usize>,
    members: Vec<Member>,
    /// Whether a comma follows the last member.
    comma: bool,
}

/// The value of a member of a member.
pub(super) fn get(text: &str, outer: &str, key: &str) -> Result<Option<Value>, Wrong> {
    let root = parse(text)?;
    let found = root.member(outer).and_then(|outer| outer.object.as_ref()?.member(key));
    let Some(found) = found else { return Ok(None) };
    let value = serde_json::from_str(&without_comments(&text[found.value.clone()]));
    Ok(Some(value.unwrap_or(Value::Null)))
}

/// Puts a member into a member, which is made if it is not there.
pub(super) fn set(text: &str, outer: &str, key: &str, value: &Value) -> Result<String, Wrong> {
    let blank = text.trim_start_matches('\u{feff}').trim().is_empty();
    let text = if blank { "{}\n" } else { text };
    let root = parse(text)?;
    match root.member(outer) {
        None => {
            let nested = serde_json::json!({ key: value });
            Ok(root.add(text, outer, &nested, ""))
        }
        Some(found) => {
            let Some(object) = &found.object else {
                let line = line_of(text, found.value.start);
                return Err(Wrong { line, message: "this is not an object" });
            };
            let indent = indent_of(text, found.whole.start);
            Ok(match object.member(key) {
                None => object.add(text, key, value, &indent),
                Some(old) => {
                    let inner = indent_of(text, old.whole.start);
                    replaced(text, old.value.clone(), &pretty(value, &inner))
                }
            })
        }
    }
}

/// Takes a member out of a member.
pub(super) fn remove(text: &str, outer: &str, key: &str) -> Result<String, Wrong> {
    let root = parse(text)?;
    let object = root.member(outer).and_then(|outer| outer.object.as_ref());
    let place = object.and_then(|object| {
        object.members.iter().position(|member| member.key == key).map(|place| (object, place))
    });
    let Some((object, place)) = place else { return Ok(text.to_owned()) };
    let whole = object.members[place].whole.clone();
    let range = match (place.checked_sub(1), object.members.get(place + 1)) {
        // Up to the next one, which moves to its place.
        (_, Some(next)) => whole.start..next.whole.start,
        // From the end of the one before, whose comma goes; one at the very end stays.
        (Some(before), None) => object.members[before].whole.end..whole.end,
        (None, None) => object.inside.clone(),
    };
    Ok(replaced(text, range, ""))
}

impl Object {
    fn member(&self, key: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.key == key)
    }

    /// Adds a member at the end.
    fn add(&self, text: &str, key: &str, value: &Value, outer_indent: &str) -> String {
        let (at, indent, before) = match self.members.last() {
            Some(last) => {
                let indent = indent_of(text, last.whole.start);
                let comma = if self.comma { "" } else { "," };
                (last.whole.end, indent, comma)
            }
            None => (self.inside.start, format!("{outer_indent}{STEP}"), ""),
        };
        let member = format!("{}: {}", Value::from(key), pretty(value, &indent));
        if self.members.is_empty() {
            // Comments in an object without members stay.
            let rest = text[self.inside.clone()].trim_end();
            let new = format!("{rest}\n{indent}{member}\n{outer_indent}");
            return replaced(text, self.inside.clone(), &new);
        }
        if self.comma {
            let comma = text[at..].find(',').map_or(at, |comma| at + comma + 1);
            return replaced(text, comma..comma, &format!("\n{indent}{member},"));
        }
        replaced(text, at..at, &format!("{before}\n{indent}{member}"))
    }
}

fn replaced(text: &str, range: Range<usize>, by: &str) -> String {
    let mut new = text.to_owned();
    new.replace_range(range, by);
    new
}

fn pretty(value: &Value, indent: &str) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.replace('\n', &format!("\n{indent}"))
}

/// The blanks before what stands first in a line.
fn indent_of(text: &str, at: usize) -> String {
    let line = text[..at].rfind('\n').map_or(0, |line| line + 1);
    let before = &text[line..at];
    before.chars().take_while(|letter| letter.is_whitespace()).collect()
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].split(|byte| *byte == b'\n').count()
}

/// The same value as plain JSON.
fn without_comments(text: &str) -> String {
    let mut reader = Reader { text, at: 0 };
    let mut plain = String::new();
    while reader.at < text.len() {
        let from = reader.at;
        match text.as_bytes()[from] {
            b'"' => {
                let _ = reader.string();
            }
            _ if reader.blanks().is_ok() && reader.at > from => {
                plain.push(' ');
                continue;
            }
            b',' => {
                reader.at += 1;
                let _ = reader.blanks();
                // A comma before the end is no plain JSON.
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

fn parse(text: &str) -> Result<Object, Wrong> {
    let mut reader = Reader { text, at: if text.starts_with('\u{feff}') { 3 } else { 0 } };
    reader.blanks()?;
    if reader.peek() != Some(b'{') {
        return reader.wrong("the file does not begin with {");
    }
    let root = reader.object(0)?;
    reader.blanks()?;
    if reader.at < text.len() {
        return reader.wrong("something follows the last }");
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

    fn wrong<T>(&self, message: &'static str) -> Result<T, Wrong> {
        Err(Wrong { line: line_of(self.text, self.at), message })
    }

    /// Blanks and comments.
    fn blanks(&mut self) -> Result<(), Wrong> {
        loop {
            let rest = &self.text[self.at..];
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                match rest.find("*/") {
                    Some(end) => self.at += end + 2,
                    None => return self.wrong("a comment has no end"),
                }
            } else if rest.starts_with([' ', '\t', '\r', '\n']) {
                self.at += 1;
            } else {
                return Ok(());
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Option<Object>, Wrong> {
        if depth > MOST_DEPTH {
            return self.wrong("it is nested too deeply");
        }
        match self.peek() {
            Some(b'{') => return self.object(depth).map(Some),
            Some(b'[') => self.array(depth)?,
            Some(b'"') => drop(self.string()?),
            _ => {
                let rest = &self.text[self.at..];
                let end = |letter: char| !letter.is_ascii_alphanumeric() && !"+-.".contains(letter);
                let word = &rest[..rest.find(end).unwrap_or(rest.len())];
                if serde_json::from_str::<Value>(word).is_err() {
                    return self.wrong("a value is missing, or is none of JSON");
                }
                self.at += word.len();
            }
        }
        Ok(None)
    }

    fn string(&mut self) -> Result<String, Wrong> {
        let from = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'\\') => self.at += 2,
                Some(b'"') => break,
                Some(b'\n') | None => return self.wrong("a text has no end"),
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        let text = self.text.get(from..self.at).unwrap_or_default();
        serde_json::from_str(text).or_else(|_| self.wrong("a text is none of JSON"))
    }

    fn array(&mut self, depth: usize) -> Result<(), Wrong> {
        self.at += 1;
        loop {
            self.blanks()?;
            if self.peek() == Some(b']') {
                break;
            }
            self.value(depth + 1)?;
            self.blanks()?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return self.wrong("a , or a ] is missing"),
            }
        }
        self.at += 1;
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<Object, Wrong> {
        self.at += 1;
        let start = self.at;
        let (mut members, mut comma) = (Vec::new(), false);
        loop {
            self.blanks()?;
            match self.peek() {
                Some(b'}') => break,
                Some(b'"') if members.is_empty() || comma => {}
                Some(b'"') => return self.wrong("a , is missing"),
                _ => return self.wrong("a name in quotes, or a } is missing"),
            }
            let from = self.at;
            let key = self.string()?;
            self.blanks()?;
            if self.peek() != Some(b':') {
                return self.wrong("a : is missing");
            }
            self.at += 1;
            self.blanks()?;
            let value = self.at;
            let object = self.value(depth + 1)?;
            members.push(Member { key, whole: from..self.at, value: value..self.at, object });
            self.blanks()?;
            comma = self.peek() == Some(b',');
            self.at += usize::from(comma);
        }
        let inside = start..self.at;
        self.at += 1;
        Ok(Object { inside, members, comma })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_else_changes() {
        let ours = json!({"command": "savoir", "args": ["mcp"]});
        for text in [
            "",
            "{}",
            "{ }\n",
            "{\n  \"a\": 1\n}\n",
            "{\n  // note\n}\n",
            "{\"servers\": {}}",
            "{\n\t\"servers\": {\n\t\t\"x\": {\"command\": \"y\"} // mine\n\t}\n}\n",
            "{\n  \"servers\": {\n    \"x\": 1,\n    \"y\": [1, 2,],\n  },\n}\n",
            "\u{feff}{\"a\": \"}{\", \"servers\": {\"x\": \"\\\"//\"}} /* end */\n",
        ] {
            let with = set(text, "servers", "savoir", &ours).unwrap();
            assert_eq!(get(&with, "servers", "savoir").unwrap().as_ref(), Some(&ours), "{with}");
            for piece in ["// note", "// mine", "/* end */", "\"y\": [1, 2,]", "\"\\\"//\""] {
                assert_eq!(with.contains(piece), text.contains(piece), "{with}");
            }
            // Once more changes nothing, and without it the members are those from before.
            assert_eq!(set(&with, "servers", "savoir", &ours).unwrap(), with);
            let without = remove(&with, "servers", "savoir").unwrap();
            assert_eq!(get(&without, "servers", "savoir").unwrap(), None, "{without}");
            assert_eq!(
                get(&without, "servers", "x"),
                get(if text.is_empty() { "{}" } else { text }, "servers", "x")
            );
        }
    }

    #[test]
    fn one_that_is_there_is_replaced_where_it_is() {
        let text =
            "{\n  \"m\": {\n    \"s\": {\"command\": \"old\"}, // why\n    \"t\": 1\n  }\n}\n";
        let new = set(text, "m", "s", &json!("new")).unwrap();
        assert_eq!(new, "{\n  \"m\": {\n    \"s\": \"new\", // why\n    \"t\": 1\n  }\n}\n");
    }

    #[test]
    fn broken_files_are_told_with_their_line() {
        let deep = format!("{{\"a\": {}", "[".repeat(500));
        for (text, line) in [
            ("{\n\"a\" 1}", 2),
            ("{\n\"a\": 1\n\"b\": 2}", 3),
            ("[]", 1),
            ("{} {}", 1),
            ("{\n\n\"a\": nope}", 3),
            ("{\"a\": \"x\n}", 1),
            ("{ /* ", 1),
            ("{\"servers\": []}", 1),
            (&deep, 1),
        ] {
            let wrong = set(text, "servers", "savoir", &json!(1)).unwrap_err();
            assert_eq!(wrong.line, line, "{text}: {wrong:?}");
        }
    }
}
