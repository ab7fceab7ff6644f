//! Tests with the malicious zips of the shared test data.

use std::{fs, process::Command, time::Instant};

use super::verdict;
use crate::shared::shared;

const EXPECTED: [(&str, &str); 25] = [
    ("01_slip_dotdot.zip", "path_traversal"),
    ("02_slip_absolute.zip", "absolute_path"),
    ("03_slip_backslash.zip", "path_characters"),
    ("04_symlink_abs.zip", "link"),
    ("05_symlink_rel.zip", "link"),
    ("06_bomb_ratio.zip", "too_large"),
    ("07_bomb_overlap.zip", "zip_malformed"),
    // A nested archive is an ordinary file.
    ("08_nested_zip.zip", "ok"),
    ("09_many_entries.zip", "too_many_files"),
    ("10_dup_names.zip", "duplicate_entry"),
    ("11_case_collision.zip", "path_collision"),
    // Decomposed Unicode is rejected even without a collision.
    ("12_unicode_collision.zip", "path_characters"),
    ("13_local_central_mismatch.zip", "zip_confusion"),
    ("14_two_eocd.zip", "zip_confusion"),
    ("15_prefix_junk.zip", "zip_confusion"),
    ("16_comment_eocd.zip", "zip_confusion"),
    ("17_encrypted.zip", "encrypted"),
    ("18_setuid_device.zip", "file_type"),
    ("19_win_reserved.zip", "path_characters"),
    ("20_ctrl_bidi_names.zip", "path_characters"),
    ("21_long_path.zip", "path_length"),
    ("22_no_skillmd.zip", "layout"),
    ("23_file_as_dir.zip", "path_conflict"),
    ("24_git_hooks.zip", "forbidden_path"),
    ("25_truncated.zip", "zip_malformed"),
];

#[test]
fn hostile_zips_are_refused() {
    let Some(folder) = shared("badinputs") else { return };
    let place = tempfile::tempdir().unwrap();
    let made =
        Command::new("python3").arg(folder.join("gen.py")).current_dir(place.path()).output();
    let Ok(made) = made else {
        eprintln!("note: python3 is not here, so this test checks nothing");
        return;
    };
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for (name, expected) in EXPECTED {
        let bytes = fs::read(place.path().join("in").join(name)).unwrap();
        let before = Instant::now();
        assert_eq!(verdict(&bytes), expected, "{name}");
        let took = before.elapsed();
        assert!(took.as_secs_f32() < 1.0, "{name} took {took:?}");
    }
}
