//! Tests that generated skills round-trip through every dialect.

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

/// Fields that mean something in one dialect or another.
const KNOWN: [&str; 22] = [
    "inputs:\n  - name: x\n    type: text\n    label: 'X: x'\n    required: yes\n",
    "inputs:\n- {name: x, type: json, default: {a: 1.10}, description: d}\n- {name: y-z, type: url}\n",
    "arguments: x y-z\n",
    "model: {temperature: 0.50, max_tokens: 100, top_p: 1}\n",
    "model: sonnet\n",
    "permissions: [network:read, env:read:HOME]\n",
    "permissions:\n  network: ['*', a.example]\n  filesystem: []\n",
    "dependencies: {tools: [git], skills: [a@^1.2]}\n",
    "requires: {bins: [git], env: [HOME]}\n",
    "metadata:\n  openclaw:\n    requires: {bins: [git]}\n    os: [linux]\n  author: [ada, bob]\n",
    "metadata:\n  gaia:\n    permissions: [network:read]\n    tools_required: [a]\n",
    "metadata: '{\"openclaw\": {\"always\": true}}'\n",
    "metadata:\n  savoir-from: prose\n  savoir-order: name\n  k: |+\n   v\n\n",
    "tools:\n  - name: f\n    parameters: {a: {type: integer, default: 010}}\n",
    "requirements: {model: '>=7B', skills: [{name: a, version: ^1}], python: 3.10}\n",
    "security_tier: verified\n",
    "modes: [Dev]\nread_only: false\ntimeout: 999\nnetwork: true\n",
    "authors: [ada, 'bob, jr.']\n",
    "author: 7\n",
    "when-to-use: On Sundays.\ncontext: fork\n",
    "allowed-tools: Read, Bash(git add:*)\ndisable-model-invocation: on\n",
    "version: 1.2.3-rc.1\noutputs: {type: json, schema: {type: object}}\n",
];

fn any_skill() -> impl Strategy<Value = String> {
    let known = prop::sample::select(&KNOWN[..]).prop_map(str::to_owned);
    let fields = prop::collection::vec(prop_oneof![any_field(), known], 0..6);
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

    /// Converting back restores every byte, or the conversion is rejected.
    #[test]
    fn generated_skills_round_trip(skill in any_skill(), from in 0..9_usize, target in 0..10_usize) {
        let (from, target) = (Dialect::ALL[from], Dialect::ALL[target]);
        let source = reading(&skill, from);
        if let Ok(there) = convert(&source, None, target) {
            let mended = source.document.problems().iter().any(Diagnostic::is_error);
            let there = reading(&there.files[0].text, target);
            let back = convert(&there, None, from).unwrap().files.swap_remove(0).text;
            if !mended {
                prop_assert_eq!(&back, &skill, "{} to {}:\n{}", from, target, there.document.text());
            }
        }
    }
}
