//! Converting there and back keeps name, description, body and unknown fields.
#![no_main]

use libfuzzer_sys::fuzz_target;
use savoir_skill::{Dialect, Source, convert::convert, read, read_as};

fuzz_target!(|text: &str| {
    let Ok(source) = Source::from_bytes(text.as_bytes().to_vec()) else { return };
    let from = read(source, None);
    let home = from.detection.dialect;
    for target in Dialect::ALL {
        let Ok(there) = convert(&from, None, target) else { continue };
        let Ok(source) = Source::from_bytes(there.files[0].text.clone().into_bytes()) else {
            continue;
        };
        let back = convert(&read_as(source, target, None), None, home).expect("the way back");
        let source = Source::from_bytes(back.files[0].text.clone().into_bytes()).expect("text");
        let again = read_as(source, home, None);
        assert_eq!(again.skill.name, from.skill.name);
        assert_eq!(again.skill.description, from.skill.description);
        assert_eq!(again.document.body(), from.document.body());
        assert_eq!(again.skill.extra, from.skill.extra);
    }
});
