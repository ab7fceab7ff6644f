//! Tests with hand-made and damaged zips.

use std::io::{Cursor, Write as _};

use savoir_package::{
    Tree,
    archive::{ArchiveKind, kind, pack, unpack},
    limits::{MAX_ARCHIVE_BYTES, MAX_FILES},
};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use super::{file, verdict};

const LOCAL: &[u8] = b"PK\x03\x04";
const CENTRAL: &[u8] = b"PK\x01\x02";
const END: &[u8] = b"PK\x05\x06";

/// Returns a valid zip with one deflated file.
fn good() -> Vec<u8> {
    let mut tree = Tree::default();
    tree.add("SKILL.md".into(), file(&"text ".repeat(100))).unwrap();
    pack("demo", &tree).unwrap()
}

fn place(bytes: &[u8], signature: &[u8]) -> usize {
    bytes.windows(4).position(|window| window == signature).unwrap()
}

/// Returns a zip with changed bytes, each at an offset from the signature of a record.
fn damaged(changes: &[(&[u8], usize, &[u8])]) -> Vec<u8> {
    let mut bytes = good();
    for (signature, offset, value) in changes {
        let at = place(&bytes, signature) + offset;
        bytes[at..at + value.len()].copy_from_slice(value);
    }
    bytes
}

/// Inserts bytes before a record or at the end, and adjusts the directory position in the end
/// record.
fn inserted(mut bytes: Vec<u8>, at: usize, value: &[u8], longer: u8, later: u8) -> Vec<u8> {
    let end = place(&bytes, END);
    bytes[end + 12] += longer;
    bytes[end + 16] += later;
    bytes.splice(at..at, value.iter().copied());
    bytes
}

fn made(make: impl FnOnce(&mut ZipWriter<Cursor<Vec<u8>>>)) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("demo/SKILL.md", SimpleFileOptions::default()).unwrap();
    zip.write_all(b"---\nname: demo\n---\n").unwrap();
    make(&mut zip);
    zip.finish().unwrap().into_inner()
}

#[test]
fn damaged_zip_records_are_rejected() {
    assert_eq!(kind(&good()), Some(ArchiveKind::Zip));
    assert_eq!(verdict(&good()), "ok");
    let both = |offset: usize, value: &'static [u8]| {
        damaged(&[(LOCAL, offset, value), (CENTRAL, offset + 2, value)])
    };
    for (bytes, expected, what) in [
        (both(6, &[1, 0]), "encrypted", "a flag"),
        (both(6, &[1 << 5, 0]), "zip_malformed", "patched data"),
        (both(6, &[8, 8]), "zip_confusion", "a descriptor that is not there"),
        (both(8, &[12]), "zip_malformed", "another method"),
        (both(8, &[0]), "zip_malformed", "stored with two sizes"),
        (both(14, &[1, 2, 3, 4]), "zip_malformed", "a wrong sum"),
        (both(22, &[10, 0]), "zip_malformed", "more bytes than promised"),
        (both(22, &[0, 3]), "zip_malformed", "fewer bytes than promised"),
        (both(22, &[0, 0, 0, 1]), "too_large", "a great promise"),
        (both(22, &[255; 4]), "too_large", "a promise without a number"),
        (damaged(&[(LOCAL, 8, &[0])]), "zip_confusion", "two methods"),
        (damaged(&[(LOCAL, 6, &[0, 0])]), "zip_confusion", "two encodings"),
        (damaged(&[(LOCAL, 14, &[0; 12])]), "zip_confusion", "sizes that nothing tells later"),
        (damaged(&[(LOCAL, 30, b"d")]), "ok", "the same"),
        (damaged(&[(LOCAL, 30, b"D")]), "zip_confusion", "two names"),
        (damaged(&[(LOCAL, 0, b"PK\x03\x05")]), "zip_malformed", "no first header"),
        (damaged(&[(CENTRAL, 34, &[1])]), "zip_malformed", "another disk"),
        (damaged(&[(CENTRAL, 42, &[1])]), "zip_confusion", "a later beginning"),
        (damaged(&[(END, 4, &[1])]), "zip_malformed", "another disk"),
        (damaged(&[(END, 8, &[2])]), "zip_malformed", "two counts"),
        (damaged(&[(END, 8, &[2, 0, 2, 0])]), "zip_malformed", "a count too many"),
        (damaged(&[(END, 8, &[0, 0, 0, 0])]), "zip_malformed", "a count too few"),
        (damaged(&[(END, 20, &[1])]), "zip_confusion", "a comment that is not there"),
        (damaged(&[(END, 16, &[255; 4])]), "zip_confusion", "a large zip without its record"),
    ] {
        assert_eq!(verdict(&bytes), expected, "{what}");
    }
}

#[test]
fn unclaimed_bytes_in_zip_are_rejected() {
    let good = good();
    let (central, end) = (place(&good, CENTRAL), place(&good, END));
    for (bytes, what) in [
        ([&b"x"[..], &good].concat(), "before everything"),
        ([&good[..], b"x"].concat(), "behind everything"),
        (inserted(good.clone(), central, b"x", 0, 1), "before the directory"),
        (inserted(good.clone(), end, b"x", 0, 0), "behind the directory"),
        ([&good[..good.len() - 2], b"\x03\0abc"].concat(), "a comment"),
        ([&good[..], &good].concat(), "two zips"),
    ] {
        assert_eq!(verdict(&bytes), "zip_confusion", "{what}");
    }
    let counted = inserted(good.clone(), end, b"x", 1, 0);
    assert_eq!(verdict(&counted), "zip_malformed", "in the directory");
    let counted = inserted(good.clone(), 0, b"x", 0, 1);
    assert_eq!(verdict(&counted), "zip_malformed", "before its first header");
    let commit = [&good[..good.len() - 2], b"\x28\0", &[b'a'; 40]].concat();
    assert_eq!(verdict(&commit), "ok", "as git writes it");
}

#[test]
fn extra_fields_that_change_an_entry() {
    let with = |field: &[u8]| {
        let mut bytes = good();
        let central = place(&bytes, CENTRAL);
        bytes[central + 30] = field.len() as u8;
        let end = place(&bytes, END);
        inserted(bytes, end, field, field.len() as u8, 0)
    };
    assert_eq!(verdict(&with(b"UT\x05\0\x01abcd")), "ok");
    assert_eq!(verdict(&with(b"UT\x06\0\x01abcd")), "zip_malformed");
    assert_eq!(verdict(&with(b"UT")), "zip_malformed");
    assert_eq!(verdict(&with(b"\x01\0\x08\0abcdefgh")), "zip_confusion");
    assert_eq!(verdict(&with(b"up\x06\0\x01abcdx")), "zip_confusion");
    assert_eq!(verdict(&with(b"\x01\x99\x07\0abcdefg")), "encrypted");
}

#[test]
fn entries_of_zips() {
    let plain = SimpleFileOptions::default();
    let with = |name: &str, options: SimpleFileOptions| {
        made(|zip| {
            zip.start_file(name, options).unwrap();
            zip.write_all(b"x").unwrap();
        })
    };
    assert_eq!(verdict(&with("demo/x", plain)), "ok");
    assert_eq!(verdict(&with("demo/x", plain.large_file(true))), "ok");
    assert_eq!(verdict(&with("demo/x", plain.compression_method(CompressionMethod::Stored))), "ok");
    assert_eq!(verdict(&with("__MACOSX/demo/._x", plain)), "ok");
    assert_eq!(verdict(&with("demo/.DS_Store", plain)), "ok");
    assert_eq!(verdict(&with("demo/a\\b", plain)), "path_characters");
    assert_eq!(verdict(&with("other/x", plain)), "layout");
    assert_eq!(verdict(&with("demo/folder/", plain)), "file_type");
    let folder = |name: &str| made(|zip| zip.add_directory(name, plain).unwrap());
    assert_eq!(verdict(&folder("demo/x")), "ok");
    assert_eq!(verdict(&folder("demo/SKILL.md")), "path_conflict");
    assert_eq!(verdict(&folder("demo/.git")), "forbidden_path");
    let link = made(|zip| zip.add_symlink("demo/x", "/etc/passwd", plain).unwrap());
    assert_eq!(verdict(&link), "link");
    let comment = made(|zip| zip.set_comment("hello").unwrap());
    assert_eq!(verdict(&comment), "zip_confusion");
    let many = |count: usize| {
        made(|zip| {
            (0..count).for_each(|n| zip.start_file(format!("demo/{n}"), plain).unwrap());
        })
    };
    assert_eq!(verdict(&many(MAX_FILES - 1)), "ok");
    assert_eq!(verdict(&many(MAX_FILES)), "too_many_files");
}

#[test]
fn only_permissions_to_run_are_kept() {
    let options = |mode| SimpleFileOptions::default().unix_permissions(mode);
    let bytes = made(|zip| {
        zip.start_file("demo/a", options(0o4755)).unwrap();
        zip.start_file("demo/b", options(0o600)).unwrap();
    });
    let tree = unpack(&bytes).unwrap();
    assert!(tree.get("demo/a").unwrap().executable);
    assert!(!tree.get("demo/b").unwrap().executable);
}

#[test]
fn too_large_archive_is_rejected_unread() {
    assert_eq!(verdict(&vec![0; MAX_ARCHIVE_BYTES as usize + 1]), "too_large");
    assert_eq!(verdict(&vec![0; 1000]), "not_an_archive");
}

#[test]
fn archive_errors_name_entry_and_hint() {
    let name = "demo/\u{202e}\u{1b}[2J";
    let plain = SimpleFileOptions::default();
    let hidden = made(|zip| zip.start_file(name, plain).unwrap());
    let link = made(|zip| zip.add_symlink("demo/x", "/etc/passwd", plain).unwrap());
    let renamed = damaged(&[(LOCAL, 30, b"D")]);
    let promise: &[u8] = &[0, 0, 0, 1];
    let bomb = damaged(&[(LOCAL, 22, promise), (CENTRAL, 24, promise)]);
    let cut = good()[..50].to_vec();
    let messages = [hidden, link, renamed, bomb, cut, b"hello".to_vec()]
        .map(|bytes| unpack(&bytes).unwrap_err().to_string());
    insta::assert_snapshot!(messages.join("\n"));
}
