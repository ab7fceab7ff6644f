//! Parses JSON into a tree in which every value knows its position.

use savoir_lint::Span;
use serde_json::{Map, Number};

use crate::limits::MAX_JSON_DEPTH;

/// A value and its position.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: Value,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Object(Vec<Member>),
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) value: Node,
}

/// Why a text is not JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JsonError {
    pub(crate) at: usize,
    pub(crate) message: String,
}

impl Node {
    /// Parses a whole text.
    pub(crate) fn parse(text: &str) -> Result<Self, JsonError> {
        let mut parser = Parser { text, at: 0 };
        if text.starts_with('\u{feff}') {
            parser.at = '\u{feff}'.len_utf8();
        }
        let node = parser.value(0)?;
        parser.space();
        match parser.peek() {
            None => Ok(node),
            Some(_) => Err(parser.error("there is text after the end of the JSON value")),
        }
    }

    pub(crate) fn members(&self) -> &[Member] {
        match &self.value {
            Value::Object(members) => members,
            _ => &[],
        }
    }

    pub(crate) fn items(&self) -> Option<&[Self]> {
        match &self.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.members().iter().find(|member| member.key == key).map(|member| &member.value)
    }

    /// What the value is, in words for a message.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Object(_) => "an object",
        }
    }

    /// The value without positions.
    pub(crate) fn to_value(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(is) => (*is).into(),
            Value::Number(number) => number.clone().into(),
            Value::Text(text) => text.clone().into(),
            Value::List(items) => items.iter().map(Self::to_value).collect(),
            Value::Object(members) => {
                let members = members.iter();
                let map: Map<_, _> =
                    members.map(|member| (member.key.clone(), member.value.to_value())).collect();
                map.into()
            }
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn error(&self, message: impl Into<String>) -> JsonError {
        JsonError { at: self.at, message: message.into() }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8, what: &str) -> Result<(), JsonError> {
        self.space();
        if self.peek() != Some(byte) {
            return Err(self.error(format!("expected {what}")));
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Node, JsonError> {
        if depth > MAX_JSON_DEPTH {
            return Err(self.error(format!("values are nested deeper than {MAX_JSON_DEPTH}")));
        }
        self.space();
        let start = self.at;
        let value = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Value::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(byte) if byte.is_ascii_alphabetic() => self.word()?,
            Some(_) => return Err(self.error("expected a JSON value")),
            None => return Err(self.error("the text ends where a JSON value is expected")),
        };
        Ok(Node { span: Span::new(start, self.at), value })
    }

    fn object(&mut self, depth: usize) -> Result<Value, JsonError> {
        self.at += 1;
        let mut members: Vec<Member> = Vec::new();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(members));
        }
        loop {
            self.space();
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.error("expected a key in double quotes"));
            }
            let key = self.string()?;
            let key_span = Span::new(start, self.at);
            if members.iter().any(|member| member.key == key) {
                self.at = start;
                return Err(self.error(format!("the key `{}` is there twice", key.escape_debug())));
            }
            self.expect(b':', "`:` after the key")?;
            let value = self.value(depth + 1)?;
            members.push(Member { key, key_span, value });
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Value::Object(members));
                }
                _ => return Err(self.error("expected `,` or `}` after a member of an object")),
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, JsonError> {
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::List(items));
                }
                _ => return Err(self.error("expected `,` or `]` after an item of a list")),
            }
        }
    }

    /// A string. Its escapes are decoded by `serde_json`.
    fn string(&mut self) -> Result<String, JsonError> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut end = start + 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(0..=0x1f) => {
                    self.at = end;
                    return Err(
                        self.error("a line break or control character in a string; write \\n")
                    );
                }
                Some(_) => end += 1,
                None => return Err(self.error("the string has no closing quote")),
            }
        }
        self.at = end + 1;
        serde_json::from_str(&self.text[start..self.at]).map_err(|_| JsonError {
            at: start,
            message: "the string has an escape that JSON does not know".to_owned(),
        })
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')) {
            self.at += 1;
        }
        serde_json::from_str(&self.text[start..self.at])
            .map(Value::Number)
            .map_err(|_| JsonError { at: start, message: "it is not a JSON number".to_owned() })
    }

    fn word(&mut self) -> Result<Value, JsonError> {
        for (word, value) in
            [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)]
        {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.error("expected a JSON value; strings need double quotes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_positions() {
        let text = "{\n\t\"a\": [1, \"x\\u00e9\\ud83d\\ude00\", null]}";
        let node = Node::parse(text).unwrap();
        let list = node.get("a").unwrap();
        let item = &list.items().unwrap()[1];
        assert_eq!(item.text(), Some("xé😀"));
        assert_eq!(item.span.slice(text), "\"x\\u00e9\\ud83d\\ude00\"");
        assert_eq!(node.to_value().to_string(), "{\"a\":[1,\"xé😀\",null]}");
    }

    #[test]
    fn malformed_text_is_rejected_at_its_position() {
        for (text, at, word) in [
            ("{\"a\": 1,}", 8, "key"),
            ("[1 2]", 3, "`,`"),
            ("{\"a\": 1, \"a\": 2}", 9, "twice"),
            ("\"abc", 0, "closing"),
            ("{a: 1}", 1, "double quotes"),
            ("[1] x", 4, "after the end"),
            ("", 0, "ends"),
            ("\"a\nb\"", 2, "line break"),
            ("[tru]", 1, "double quotes"),
            ("\"\\", 0, "closing"),
        ] {
            let error = Node::parse(text).unwrap_err();
            assert!(error.at == at && error.message.contains(word), "{text:?}: {error:?}");
        }
        let deep = "[".repeat(200);
        assert!(Node::parse(&deep).unwrap_err().message.contains("nested"));
    }
}
