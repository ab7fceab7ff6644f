//! Any bytes are read in every dialect without a panic, and every place lies inside the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use savoir_skill::{Dialect, Source, read, read_as};

fuzz_target!(|bytes: &[u8]| {
    let Ok(source) = Source::from_bytes(bytes.to_vec()) else { return };
    let length = source.text().len();
    let detected = read(source.clone(), None);
    for reading in
        Dialect::ALL.map(|dialect| read_as(source.clone(), dialect, None)).iter().chain([&detected])
    {
        assert_eq!(reading.document.text().as_bytes(), bytes);
        for found in &reading.diagnostics {
            assert!(found.span.start <= found.span.end && found.span.end <= length, "{found:?}");
        }
    }
});
