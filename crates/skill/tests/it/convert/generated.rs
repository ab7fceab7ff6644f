//! Generated skills, to some dialect and back.

use proptest::prelude::*;
use savoir_skill::{Diagnostic, Dialect, convert::convert};

use super::reading;

/// Lines of a frontmatter as people write them, and as they should not.
fn any_field() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        Just("license".to_owned()),
        Just("version".to_owned()),
        Just("tags".to_owned()),
        Just("model".to_owned()),
        Just("tools".to_owned()),
        Just("inputs".to_owned()),
        Just("permissions".to_owned()),
        Just("arguments".to_owned()),
        Just("allowed-tools".to_owned()),
        Just("context".to_owned()),
        Just("metadata".to_owned()),
        "[a-z][a-z_-]{0,6}",
    ];
    let value = prop_oneof![
        Just(String::new()),
        "[ -~]{0,16}".prop_map(|text| format!("'{}'", text.replace('\'', "''"))),
        "[a-zA-Z0-9.+_-]{1,8}",
        "[a-z]{1,4}".prop_map(|word| format!("[{word}, 1.10]")),
        "[a-z]{1,4}".prop_map(|word| format!("{{{word}: yes, version: 2.0}}")),
        "[a-z]{1,4}".prop_map(|word| format!("\n  {word}: 1.10\n  version: 2024-01-01")),
        "[a-z]{1,4}".prop_map(|word| format!("\n- {word}\n- name: {word}\n  type: string")),
        "[a-z #:-]{1,8}".prop_map(|line| format!("|\n  x{line}\n\n   more")),
    ];
    (prop::bool::ANY, key, value, prop::bool::ANY).prop_map(|(comment, key, value, blank)| {
        let before = if comment { "# a comment: here\n" } else { "" };
        let after = if blank { "\n" } else { "" };
        format!("{before}{key}: {value}\n{after}")
    })
}

fn any_skill() -> impl Strategy<Value = String> {
    let fields = prop::collection::vec(any_field(), 0..6);
    let body =
        prop_oneof![Just(String::new()), "[ -~\\n]{0,40}", Just("Do {{x}} $x.\n".to_owned())];
    (fields, body, 0..4).prop_map(|(fields, body, style)| {
        let text = format!("---\nname: demo\ndescription: A demo.\n{}---\n{body}", fields.concat());
        match style {
            0 => text.replace('\n', "\r\n"),
            1 => format!("\u{feff}{text}"),
            _ => text,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// A skill converts and comes back byte for byte, or is refused; it never comes back changed.
    #[test]
    fn any_skill_comes_back(skill in any_skill(), from in 0..9_usize, target in 0..10_usize) {
        let (from, target) = (Dialect::ALL[from], Dialect::ALL[target]);
        let source = reading(&skill, from);
        if let Ok(there) = convert(&source, None, target) {
            let mended = source.document.problems().iter().any(Diagnostic::is_error);
            let there = reading(&there.files[0].text, target);
            prop_assert_eq!(there.document.body().is_empty(), source.document.body().is_empty() && target != Dialect::PROSE);
            let back = convert(&there, None, from).unwrap().files.swap_remove(0).text;
            if !mended {
                prop_assert_eq!(&back, &skill, "{} to {}:\n{}", from, target, there.document.text());
            }
        }
    }
}
