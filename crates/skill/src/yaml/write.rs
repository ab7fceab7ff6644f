//! Writes values as block-style YAML that YAML 1.1 and YAML 1.2 readers understand alike.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

use super::resolve::{YamlVersion, needs_quotes};

/// Readers give up on a key when its colon is more than 1024 characters away.
const MAX_IMPLICIT_KEY: usize = 512;

/// Characters that mean something at the start of a plain scalar.
const FIRST_INDICATORS: [char; 18] =
    ['?', ':', ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`'];

/// A string on one line: plain if no reader can misunderstand it, else in single quotes, or in
/// double quotes if it has characters that need an escape.
///
/// The rules of both versions count, so that a file can change hands. In YAML 1.1 even `y` and
/// `n` are quoted, which PyYAML reads as text and other readers as truth values.
pub fn write_scalar(text: &str, version: YamlVersion) -> String {
    if text.chars().any(needs_escape) {
        double_quoted(text)
    } else if is_plain(text, version) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

/// A value as whole lines, indented by `indent` blanks; the last line ends too.
pub fn write_value(value: &Value, indent: usize) -> String {
    match value {
        Value::Object(map) if !map.is_empty() => map_lines(map, indent),
        Value::Array(items) if !items.is_empty() => {
            items.iter().map(|item| item_lines(item, indent)).collect()
        }
        _ => format!("{:indent$}{}\n", "", inline(value, indent)),
    }
}

/// One entry of a mapping as whole lines, indented by `indent` blanks; the last line ends too.
pub fn write_entry(key: &str, value: &Value, indent: usize) -> String {
    let mut head = format!("{:indent$}{}:", "", quoted_as_needed(key));
    if head.chars().count() - indent > MAX_IMPLICIT_KEY {
        head = format!("{:indent$}? {}\n{:indent$}:", "", quoted_as_needed(key), "");
    }
    if is_nested(value) {
        format!("{head}\n{}", write_value(value, indent + 2))
    } else {
        format!("{head} {}\n", inline(value, indent))
    }
}

fn map_lines(map: &Map<String, Value>, indent: usize) -> String {
    map.iter().map(|(key, value)| write_entry(key, value, indent)).collect()
}

/// A nested value starts on the line of its dash, as people write it.
fn item_lines(item: &Value, indent: usize) -> String {
    if is_nested(item) {
        let nested = write_value(item, indent + 2);
        format!("{:indent$}- {}", "", nested.trim_start_matches(' '))
    } else {
        format!("{:indent$}- {}\n", "", inline(item, indent))
    }
}

fn is_nested(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

/// A value that starts on the line of its key; only a literal block has further lines.
fn inline(value: &Value, indent: usize) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => write_number(number),
        Value::String(text) if is_literal(text) => literal(text, indent + 2),
        Value::String(text) => quoted_as_needed(text),
        Value::Array(_) => "[]".to_owned(),
        Value::Object(_) => "{}".to_owned(),
    }
}

/// A value may end up in a file of any dialect, so the stricter rules apply.
fn quoted_as_needed(text: &str) -> String {
    write_scalar(text, YamlVersion::V1_1)
}

/// YAML 1.1 requires a point in every float and a sign in every exponent.
fn write_number(number: &Number) -> String {
    let text = number.to_string();
    let Some((mantissa, exponent)) = text.split_once(['e', 'E']) else { return text };
    let point = if mantissa.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with(['-', '+']) { "" } else { "+" };
    format!("{mantissa}{point}e{sign}{exponent}")
}

fn is_plain(text: &str, version: YamlVersion) -> bool {
    let other_truth = version == YamlVersion::V1_1 && matches!(text, "y" | "Y" | "n" | "N");
    let marker = text == "-" || text.starts_with("- ") || text.starts_with("---");
    let ends_document = text.starts_with("...");
    !text.is_empty()
        && text.trim() == text
        && !marker
        && !ends_document
        && !text.starts_with(FIRST_INDICATORS)
        && !text.contains(": ")
        && !text.ends_with(':')
        && !text.contains(" #")
        && !other_truth
        && !needs_quotes(text, YamlVersion::V1_1)
        && !needs_quotes(text, YamlVersion::V1_2)
}

/// Control characters, line breaks of either YAML version, and what looks like a byte order mark.
fn needs_escape(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

fn double_quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 8);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if needs_escape(c) => push_escape(&mut quoted, u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn push_escape(quoted: &mut String, code: u32) {
    // Writing to a string cannot fail.
    let _ = if code < 0x100 {
        write!(quoted, "\\x{code:02X}")
    } else {
        write!(quoted, "\\u{code:04X}")
    };
}

/// Whether a literal block gives back exactly this text: several lines, nothing to escape, and a
/// first line that shows the indentation.
fn is_literal(text: &str) -> bool {
    let blank = |line: &str| line.chars().all(char::is_whitespace);
    let first = text.lines().next().unwrap_or_default();
    text.contains('\n')
        && !text.chars().any(|c| c != '\n' && c != '\t' && needs_escape(c))
        && !first.is_empty()
        && !first.starts_with([' ', '\t', '#'])
        && text.split('\n').all(|line| line.is_empty() || !blank(line))
        && !text.split('\n').any(|line| line.starts_with('\t'))
}

fn literal(text: &str, indent: usize) -> String {
    let kept = text.trim_end_matches('\n');
    let chomping = match text.len() - kept.len() {
        0 => "-",
        1 => "",
        _ => "+",
    };
    let mut block = format!("|{chomping}");
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        let width = if line.is_empty() { 0 } else { indent };
        // Writing to a string cannot fail.
        let _ = write!(block, "\n{:width$}{line}", "");
    }
    block
}

#[cfg(test)]
mod tests {
    use granit_parser::{Event, Parser, ScalarStyle};
    use proptest::prelude::*;
    use serde_json::json;

    use super::{super::resolve::resolve_plain, *};

    /// Reads the first node of the events back as a value.
    fn read(events: &mut dyn Iterator<Item = Event<'_>>, version: YamlVersion) -> Option<Value> {
        loop {
            return match events.next()? {
                Event::Scalar(text, ScalarStyle::Plain, ..) => Some(resolve_plain(&text, version)),
                Event::Scalar(text, ..) => Some(Value::String(text.into_owned())),
                Event::SequenceStart(..) => {
                    Some(Value::Array(std::iter::from_fn(|| read(events, version)).collect()))
                }
                Event::MappingStart(..) => {
                    let mut map = Map::new();
                    while let Some(key) = read(events, version) {
                        let key = key.as_str().expect("keys are strings").to_owned();
                        map.insert(key, read(events, version).expect("a key has a value"));
                    }
                    Some(Value::Object(map))
                }
                Event::SequenceEnd | Event::MappingEnd => None,
                _ => continue,
            };
        }
    }

    fn assert_round_trip(value: &Value) {
        let text = write_value(value, 0);
        for version in [YamlVersion::V1_1, YamlVersion::V1_2] {
            let events = Parser::new_from_str(&text).map(|event| match event {
                Ok((event, _)) => event,
                Err(error) => panic!("{error} in {text:?}"),
            });
            let read = read(&mut events.collect::<Vec<_>>().into_iter(), version);
            assert_eq!(read.as_ref(), Some(value), "{version:?}: {text}");
        }
    }

    #[test]
    fn scalars_are_plain_when_safe() {
        for text in
            ["word", "two words", "a:b", "http://x/y#z", "it's", "-x", "--flag", "1.2.3", "^1"]
        {
            assert_eq!(write_scalar(text, YamlVersion::V1_1), text);
        }
        for text in [
            "", " a", "a ", "a: b", "a:", "a #b", "- a", "-", "---", "...", "? a", "[a", "{{x}}",
            "*.md", "&a", "!a", "|", ">", "%a", "@a", "`a`", "'a", "\"a", "#a", "yes", "No",
            "null", "~", "12", "1.5", "1e3", "0o7", "1:30", "1_000", "2001-12-14", ".inf", "=",
            "<<", "y", "N", ",a", ": a",
        ] {
            assert!(write_scalar(text, YamlVersion::V1_1).starts_with('\''), "{text:?}");
        }
        assert_eq!(write_scalar("'a", YamlVersion::V1_1), "'''a'");
        assert_eq!(write_scalar("a\tb\n\"\\", YamlVersion::V1_1), r#""a\tb\n\"\\""#);
        assert_eq!(
            write_scalar("\u{1}\u{85}\u{2028}\u{feff}", YamlVersion::V1_1),
            r#""\x01\x85\u2028\uFEFF""#
        );
    }

    #[test]
    fn y_is_a_word_in_1_2() {
        assert_eq!(write_scalar("y", YamlVersion::V1_2), "y");
        assert_eq!(write_scalar("yes", YamlVersion::V1_2), "'yes'");
        assert_eq!(write_scalar("0o7", YamlVersion::V1_1), "'0o7'");
    }

    #[test]
    fn block_style() {
        let value = json!({
            "name": "x", "tags": ["a", "b: c"], "empty": [], "none": {}, "nothing": null,
            "inputs": [{"name": "a", "required": true}, ["x", ["z"]], 1.0e30],
            "text": "one\n two\n", "map": {"on": 1}
        });
        let expected = "\
name: x
tags:
  - a
  - 'b: c'
empty: []
none: {}
nothing: null
inputs:
  - name: a
    required: true
  - - x
    - - z
  - 1.0e+30
text: |
  one
   two
map:
  'on': 1
";
        assert_eq!(write_value(&value, 0), expected);
        assert_round_trip(&value);
        assert_eq!(write_entry("a", &json!({"b": [1]}), 2), "  a:\n    b:\n      - 1\n");
        assert_eq!(write_entry("user_id", &json!("7"), 0), "user_id: '7'\n");
    }

    #[test]
    fn literal_blocks_keep_their_end() {
        assert_eq!(write_entry("t", &json!("a\nb"), 0), "t: |-\n  a\n  b\n");
        assert_eq!(write_entry("t", &json!("a\n\nb\n"), 0), "t: |\n  a\n\n  b\n");
        assert_eq!(write_entry("t", &json!("a\n\n"), 0), "t: |+\n  a\n\n");
        for text in ["\na", " a\nb", "a\n  \nb", "\n", "a\r\nb", "a\n\tb", "a\u{85}\nb"] {
            assert!(write_entry("t", &json!(text), 0).starts_with("t: \""), "{text:?}");
        }
    }

    #[test]
    fn awkward_values_round_trip() {
        for value in [
            json!(null),
            json!(""),
            json!("a\nb"),
            json!("a\n\n\n"),
            json!(["a\n\n", "b", ["c\n\n"], {"d": "e\n\n\n", "f": "g"}]),
            json!({"a": {"b": "x\n---\ny\n"}, "": [[[]]], "k\n": {"<<": "="}}),
            json!({"x".repeat(2000): {"y".repeat(1100): ["z"]}, "s": "w".repeat(3000)}),
            json!([1e300, -2.5e-9, 0.1, -0.0, u64::MAX, i64::MIN, 5e-324, 1e21, 123_456_789.0]),
            json!(["# a\nb", "a # b", "a\n# b", "%x\ny", "--- a\nb", "a\n...\nb"]),
        ] {
            assert_round_trip(&value);
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            any::<String>(),
            "[-a-z0-9 :#'\"\\n\\t\\\\{}\\[\\]|>&*!%@`,?.=_+<~]{0,12}",
            "[-+0-9._:eExob]{1,8}",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((text.clone(), inner), 0..5)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_round_trips(value in any_json()) {
            assert_round_trip(&value);
        }
    }
}
