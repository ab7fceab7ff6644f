use proptest::prelude::*;
use serde_json::json;

use super::*;

const OURS: &[&str] = &["command", "args"];

#[test]
fn only_the_edited_member_changes() {
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
        let with = set(text, "servers", "savoir", &ours, OURS).unwrap();
        assert_eq!(get(&with, "servers", "savoir").unwrap().as_ref(), Some(&ours), "{with}");
        for piece in ["// note", "// mine", "/* end */", "\"y\": [1, 2,]", "\"\\\"//\""] {
            assert_eq!(with.contains(piece), text.contains(piece), "{with}");
        }
        // Setting it again changes nothing, and removing it restores the other members.
        assert_eq!(set(&with, "servers", "savoir", &ours, OURS).unwrap(), with);
        let without = remove(&with, "servers", "savoir").unwrap();
        assert_eq!(get(&without, "servers", "savoir").unwrap(), None, "{without}");
        assert_eq!(
            get(&without, "servers", "x"),
            get(if text.is_empty() { "{}" } else { text }, "servers", "x")
        );
    }
}

#[test]
fn existing_member_is_replaced_in_place() {
    let text = "{\n  \"m\": {\n    \"s\": {\"command\": \"old\"}, // why\n    \"t\": 1\n  }\n}\n";
    let new = set(text, "m", "s", &json!("new"), OURS).unwrap();
    assert_eq!(new, "{\n  \"m\": {\n    \"s\": \"new\", // why\n    \"t\": 1\n  }\n}\n");
}

#[test]
fn errors_name_the_line() {
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
        let wrong = set(text, "servers", "savoir", &json!(1), OURS).unwrap_err();
        assert_eq!(wrong.line, line, "{text}: {wrong:?}");
    }
}

#[test]
fn duplicate_keys_are_errors_with_both_lines() {
    for (text, line, first) in [
        ("{\n\"m\": {},\n\"m\": {}\n}", 3, 2),
        ("{\"m\": {\n\"s\": 1,\n\n\"s\": 2}}", 4, 2),
        ("{\"m\": {\"s\": {\"command\": 1,\n\"\\u0063ommand\": 2}}}", 2, 1),
    ] {
        let wrong = set(text, "m", "s", &json!({"command": "x"}), OURS).unwrap_err();
        assert_eq!(wrong.line, line, "{text}: {wrong:?}");
        assert!(wrong.message.contains(&format!("line {first}")), "{wrong:?}");
        assert!(get(text, "m", "s").is_err() && remove(text, "m", "s").is_err());
    }
    // Duplicate keys of other settings are ignored.
    let text = "{\"a\": {\"b\": 1, \"b\": 2}, \"m\": {\"t\": {\"x\": 1, \"x\": 2}}}";
    set(text, "m", "s", &json!(1), OURS).unwrap();
}

#[test]
fn values_added_by_the_user_are_kept() {
    let text = "{\n  \"m\": {\n    \"s\": {\n      // mine\n      \"command\": \"old\", // why\n      \
                \"args\": [\"mcp\", \"--pin\", \"x\"],\n      \"env\": {\"A\": \"b\"},\n      \
                \"type\": \"other\"\n    }\n  }\n}\n";
    let wanted = json!({"command": "new", "args": ["mcp", "--pin", "x"], "type": "stdio"});
    let new = set(text, "m", "s", &wanted, OURS).unwrap();
    assert_eq!(new, text.replace("\"old\"", "\"new\""));
    // Missing keys are added.
    let new = set("{\"m\": {\"s\": {\"env\": {}}}}", "m", "s", &json!({"command": "x"}), OURS);
    assert_eq!(new.unwrap(), "{\"m\": {\"s\": {\"env\": {}, \"command\": \"x\"}}}");
}

#[test]
fn comments_are_preserved() {
    for (text, left) in [
        (
            "{\"m\": {\n  \"a\": 1, // one\n  \"s\": 2,\n  // about b\n  \"b\": 3\n}}",
            "{\"m\": {\n  \"a\": 1, // one\n  // about b\n  \"b\": 3\n}}",
        ),
        (
            "{\"m\": {\n  // about s\n  \"s\": 2, // why\n  \"b\": 3\n}}",
            "{\"m\": {\n  // about s\n   // why\n  \"b\": 3\n}}",
        ),
        ("{\"m\": {\"s\": 2, \"b\": 3}}", "{\"m\": { \"b\": 3}}"),
        ("{\"m\": {\"a\": 1, \"s\": 2, \"b\": 3}}", "{\"m\": {\"a\": 1, \"b\": 3}}"),
        ("{\"m\": {\"a\": 1 /* , */, /* x */ \"s\": 2}}", "{\"m\": {\"a\": 1 /* , */ /* x */}}"),
        (
            "{\"m\": {\n  \"a\": 1, // one\n  \"s\": 2, \"b\": 3}}",
            "{\"m\": {\n  \"a\": 1, // one\n   \"b\": 3}}",
        ),
    ] {
        assert_eq!(remove(text, "m", "s").unwrap(), left, "{text}");
    }
}

#[test]
fn comma_in_a_comment_is_ignored() {
    let text = "{\n  \"m\": {\n    \"a\": 1 /* x, y */ , // z, \"\n  }\n}\n";
    let with = set(text, "m", "s", &json!(2), OURS).unwrap();
    assert_eq!(with, "{\n  \"m\": {\n    \"a\": 1 /* x, y */ , // z, \"\n    \"s\": 2,\n  }\n}\n");
    assert_eq!(remove(&with, "m", "s").unwrap(), text);
}

/// Whitespace and comments between two tokens.
fn gap() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just(" "),
        Just("\t"),
        Just("\n"),
        Just("\n    "),
        Just("// a, \"b\" } \n"),
        Just("//\n"),
        Just("/* c, { */"),
        Just("/* d\n , } */"),
    ];
    prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

/// An object with whitespace and comments between its members.
fn object(value: impl Strategy<Value = String> + Clone) -> impl Strategy<Value = String> {
    let member = (gap(), 0..1000u32, gap(), gap(), value, gap());
    (prop::collection::vec(member, 0..4), any::<bool>(), gap()).prop_map(|(members, comma, end)| {
        let count = members.len();
        let text = members.into_iter().enumerate().map(|(place, member)| {
            let (a, key, b, c, value, d) = member;
            let comma = if place + 1 < count || comma { "," } else { "" };
            format!("{a}\"k{place}-{key}\"{b}:{c}{value}{d}{comma}")
        });
        format!("{{{}{end}}}", text.collect::<String>())
    })
}

fn value() -> impl Strategy<Value = String> {
    let plain = prop_oneof![
        Just("1".to_owned()),
        Just("\"// no } comment, \\\"\"".to_owned()),
        Just("[1, /* x, */ \"]\",]".to_owned()),
        Just("null".to_owned()),
    ];
    plain.prop_recursive(2, 8, 3, |inner| object(inner).boxed())
}

/// A file with servers, in any layout.
fn file() -> impl Strategy<Value = String> {
    let around = (gap(), gap(), gap(), gap(), gap());
    let marks = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (around, object(value().boxed()), value(), marks).prop_map(|(gaps, servers, other, marks)| {
        let ((start, before, after, middle, end), (is_marked, is_windows, is_first, comma)) =
            (gaps, marks);
        let (own, other) =
            (format!("\"servers\"{before}:{after}{servers}"), format!("\"o\":{other}"));
        let (first, second) = if is_first { (own, other) } else { (other, own) };
        let comma = if comma { "," } else { "" };
        let text = format!("{{{start}{first}{middle},{second}{end}{comma}}}\n");
        let text = if is_windows { text.replace('\n', "\r\n") } else { text };
        format!("{}{text}", if is_marked { "\u{feff}" } else { "" })
    })
}

proptest! {
    #[test]
    fn removing_restores_the_original_bytes(text in file()) {
        let ours = json!({"command": "savoir", "args": ["mcp"]});
        let with = set(&text, "servers", "savoir", &ours, OURS).unwrap();
        prop_assert_eq!(get(&with, "servers", "savoir").unwrap(), Some(ours.clone()), "{}", with);
        prop_assert_eq!(set(&with, "servers", "savoir", &ours, OURS).unwrap(), with.clone());
        let whole = |text: &str| {
            let plain = without_comments(text.trim_start_matches('\u{feff}'));
            serde_json::from_str::<Value>(&plain).unwrap()
        };
        let (mut after, before) = (whole(&with), whole(&text));
        after["servers"].as_object_mut().unwrap().remove("savoir");
        prop_assert_eq!(after, before);
        prop_assert_eq!(remove(&with, "servers", "savoir").unwrap(), text);
    }
}
