//! Placeholders lie inside the text, one after the other, and a value is put in as it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use savoir_skill::template::{Grammar, claude, scan, substitute};

fuzz_target!(|text: &str| {
    for grammar in [Grammar::AgentFlow, Grammar::AgentFlowCheck, Grammar::Skillrt] {
        let mut end = 0;
        for found in scan(text, grammar) {
            assert!(found.span.start >= end && text.get(found.span.clone()).is_some());
            end = found.span.end;
        }
        assert_eq!(substitute(text, grammar, |_| None), text);
    }
    let (body, arguments) = text.split_once('\n').unwrap_or((text, ""));
    let names = ["file", "mode"];
    for found in claude::scan(body, &names) {
        assert!(body.get(found.span).is_some());
    }
    claude::render(body, arguments, &names, |_| None);
});
