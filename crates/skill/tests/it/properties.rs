//! Tests arbitrary text: it is read without a panic, its fix can be read, and fixing is
//! idempotent.

use proptest::prelude::*;
use savoir_skill::{
    Dialect, Document, Safety, Source, State,
    check::{Options, check, fix},
    read, read_as,
};

/// Pieces of which broken and sound files are made.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("---\n".to_owned()),
        Just("--- \n".to_owned()),
        Just("name: demo\n".to_owned()),
        Just("description: Use for: this\n".to_owned()),
        Just("description: >  text\n  more\n".to_owned()),
        Just("tags: [a, b\n".to_owned()),
        Just("allowed-tools: Read, Grep\n".to_owned()),
        Just("metadata:\n  version: 1.0\n".to_owned()),
        Just("x: 'a'. b\n".to_owned()),
        Just("modes: [Dev]\n".to_owned()),
        Just("\n### tool\n\n#### Command\n\n```bash\nls {{x}} | wc\n```\n".to_owned()),
        Just("[a](b.md) {{x}} `code`\r\n".to_owned()),
        "[a-z]{1,4}: [\"'>|@&*!a-z: \\[\\]{}#-]{0,12}\n",
        "( |\t){0,3}[a-z:-]{0,6}\n",
        "\\PC{0,12}\n",
        any::<String>(),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(source) = Source::from_bytes(bytes.clone()) {
            let reading = read(source, None);
            prop_assert_eq!(reading.document.text().as_bytes(), &bytes[..]);
        }
    }

    #[test]
    fn every_place_lies_inside_the_file(text in text()) {
        let source = Source::from_bytes(text.clone().into_bytes()).expect("text");
        let found = check(source.clone(), None, &Options::default()).diagnostics;
        let dialects = Dialect::ALL;
        let all = dialects.iter().flat_map(|dialect| read_as(source.clone(), *dialect, None).diagnostics);
        for diagnostic in all.chain(found) {
            let span = diagnostic.span;
            prop_assert!(span.start <= span.end && span.end <= text.len(), "{:?}", diagnostic);
            prop_assert!(text.is_char_boundary(span.start) && text.is_char_boundary(span.end), "{:?}", diagnostic);
        }
    }

    #[test]
    fn fixing_twice_is_fixing_once(text in text()) {
        for most in [Safety::Safe, Safety::Unsafe] {
            let once = fix(&text, None, &Options::default(), most);
            let twice = fix(&once.text, None, &Options::default(), most);
            prop_assert_eq!(&twice.text, &once.text, "{:?}", most);
        }
    }

    #[test]
    fn a_fixed_text_still_reads(text in text()) {
        let state = |text: &str| Document::parse(Source::from_bytes(text.into()).expect("text")).state();
        if state(&text) != State::Unreadable {
            let fixed = fix(&text, None, &Options::default(), Safety::Safe);
            prop_assert_ne!(state(&fixed.text), State::Unreadable, "{:?}", fixed.text);
        }
    }
}
