//! Fixing a text again changes nothing, and a text that reads still reads when it is fixed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use savoir_skill::{
    Document, Safety, Source, State,
    check::{Options, fix},
};

fn reads(text: &str) -> bool {
    Source::from_bytes(text.into())
        .is_ok_and(|source| Document::parse(source).state() != State::Unreadable)
}

fuzz_target!(|text: &str| {
    for most in [Safety::Safe, Safety::Unsafe] {
        let once = fix(text, None, &Options::default(), most);
        let twice = fix(&once.text, None, &Options::default(), most);
        assert_eq!(once.text, twice.text);
        assert!(!reads(text) || reads(&once.text), "{most:?} fixes make it unreadable");
    }
});
