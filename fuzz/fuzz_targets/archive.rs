//! Any bytes are unpacked within limits or refused, and what was unpacked can be packed again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use savoir_package::{
    archive::{one_skill, pack, skills, unpack},
    limits::{MAX_FILE_BYTES, MAX_FILES, MAX_TREE_BYTES},
};

fuzz_target!(|bytes: &[u8]| {
    let tree = match unpack(bytes) {
        Ok(tree) => tree,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let lengths = || tree.files().map(|(_, file)| file.bytes.len() as u64);
    assert!(tree.files().len() <= MAX_FILES);
    assert!(lengths().all(|length| length <= MAX_FILE_BYTES));
    assert!(lengths().sum::<u64>() <= MAX_TREE_BYTES);
    let found = skills(tree.clone());
    if let Ok((_, skill)) = one_skill(tree) {
        assert!(found.is_ok());
        // Only a path that becomes too long below the folder cannot be packed.
        let Ok(packed) = pack("demo", &skill) else { return };
        let again = unpack(&packed).and_then(one_skill).expect("a package");
        assert_eq!(again, (Some("demo".to_owned()), skill));
    }
});
