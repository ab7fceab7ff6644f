//! A fixed text still reads, and fixing it again changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use savoir_skill::{
    Safety,
    check::{Options, fix},
};

fuzz_target!(|text: &str| {
    for most in [Safety::Safe, Safety::Unsafe] {
        let once = fix(text, None, &Options::default(), most);
        let twice = fix(&once.text, None, &Options::default(), most);
        assert_eq!(once.text, twice.text);
    }
});
