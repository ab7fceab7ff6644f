//! Tests with hand-made tar archives.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use savoir_package::{
    Tree,
    archive::{ArchiveKind, kind, one_skill, unpack},
    limits::{MAX_FILES, MAX_TAR_RECORD_BYTES},
};
use tar::{Builder, EntryType, Header};

use super::{skill, verdict};

/// Packs the files of a skill below `demo` as a tar.
pub(super) fn packed(tree: &Tree) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (path, file) in tree.files() {
        let mut header = Header::new_gnu();
        header.set_mode(if file.executable { 0o755 } else { 0o644 });
        header.set_size(file.bytes.len() as u64);
        builder.append_data(&mut header, format!("demo/{path}"), &file.bytes[..]).unwrap();
    }
    builder.into_inner().unwrap()
}

pub(super) fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns one entry with a name that the tar library would reject.
fn entry(kind: EntryType, name: &[u8], content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_ustar();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(content.len() as u64);
    header.set_cksum();
    let mut bytes = [header.as_bytes(), content].concat();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// Returns a tar of a SKILL.md and these entries.
fn with(entries: &[Vec<u8>]) -> Vec<u8> {
    let skill = entry(EntryType::Regular, b"demo/SKILL.md", b"---\nname: demo\n---\n");
    [&skill[..], &entries.concat(), &[0; 1024]].concat()
}

fn pax(field: &str) -> Vec<u8> {
    let mut length = field.len() + 2;
    while format!("{length} {field}\n").len() != length {
        length += 1;
    }
    entry(EntryType::XHeader, b"pax", format!("{length} {field}\n").as_bytes())
}

#[test]
fn good_tars() {
    let tree = skill();
    let tar = packed(&tree);
    assert_eq!(kind(&tar), Some(ArchiveKind::Tar));
    let gz = gzipped(&tar);
    assert_eq!(kind(&gz), Some(ArchiveKind::TarGz));
    let members = [gzipped(&tar[..700]), gzipped(&tar[700..])].concat();
    for bytes in [&tar, &gz, &members] {
        let (name, again) = unpack(bytes).and_then(one_skill).unwrap();
        assert_eq!((name.as_deref(), &again), (Some("demo"), &tree));
    }
}

#[test]
fn entries_of_tars() {
    use EntryType as E;
    let file = |name: &[u8]| entry(E::Regular, name, b"x");
    let cases: Vec<(&str, Vec<Vec<u8>>)> = vec![
        ("ok", vec![file(b"demo/x")]),
        ("ok", vec![entry(E::Directory, b"demo/x/", b""), file(b"demo/x/y")]),
        ("ok", vec![entry(E::Directory, b"demo/x", b""), file(b"demo/x/y")]),
        ("ok", vec![entry(E::Regular, b"demo/old/", b"")]),
        ("ok", vec![entry(E::Directory, b"./", b""), file(b"./demo/x")]),
        ("ok", vec![file(b"._demo"), file(b"demo/._x"), file(b"__MACOSX/x"), file(b".DS_Store")]),
        ("ok", vec![entry(E::XGlobalHeader, b"pax_global_header", b"13 comment=1\n")]),
        ("ok", vec![pax("path=demo/long"), file(b"short")]),
        ("ok", vec![pax("mtime=1.5"), file(b"demo/x")]),
        ("ok", vec![pax("size=1"), file(b"demo/x")]),
        ("ok", vec![entry(E::GNULongName, b"././@LongLink", b"demo/long\0"), file(b"short")]),
        ("path_traversal", vec![file(b"../x")]),
        ("path_traversal", vec![file(b"demo/../../x")]),
        ("path_traversal", vec![entry(E::Directory, b"../x/", b"")]),
        ("path_traversal", vec![pax("path=../x"), file(b"demo/x")]),
        ("path_traversal", vec![entry(E::GNULongName, b"L", b"../x\0"), file(b"demo/x")]),
        ("absolute_path", vec![file(b"/etc/x")]),
        ("absolute_path", vec![file(b".//etc/x")]),
        ("path_characters", vec![file(b"demo/\xff")]),
        ("path_characters", vec![file(b"././demo/x")]),
        ("path_characters", vec![entry(E::GNULongName, b"L", b"demo/x\0y\0"), file(b"demo/x")]),
        ("forbidden_path", vec![file(b"demo/.git/config")]),
        ("duplicate_entry", vec![file(b"demo/x"), file(b"demo/x")]),
        ("path_collision", vec![file(b"demo/skill.md")]),
        ("path_conflict", vec![file(b"demo/x"), entry(E::Directory, b"demo/x/", b"")]),
        ("link", vec![entry(E::Symlink, b"demo/x", b"")]),
        ("link", vec![entry(E::Link, b"demo/x", b"")]),
        ("link", vec![entry(E::GNULongLink, b"demo/x", b"t")]),
        ("file_type", vec![entry(E::Fifo, b"demo/x", b"")]),
        ("file_type", vec![entry(E::Char, b"demo/x", b"")]),
        ("file_type", vec![entry(E::Block, b"demo/x", b"")]),
        ("file_type", vec![entry(E::GNUSparse, b"demo/x", b"")]),
        ("file_type", vec![entry(E::Continuous, b"demo/x", b"")]),
        ("tar_malformed", vec![entry(E::Directory, b"demo/x/", b"x")]),
        ("tar_malformed", vec![pax("GNU.sparse.major=1"), file(b"demo/x")]),
        ("tar_malformed", vec![pax("size=0"), file(b"demo/x")]),
        ("tar_malformed", vec![pax("path=demo/a"), pax("path=demo/b"), file(b"demo/x")]),
        ("tar_malformed", vec![pax("path=demo/a")]),
        ("tar_malformed", vec![entry(E::XGlobalHeader, b"g", b"9 path=x\n"), file(b"demo/x")]),
        ("tar_malformed", vec![vec![1; 512]]),
        ("tar_malformed", vec![vec![0; 512], file(b"demo/x")]),
        (
            "tar_malformed",
            vec![entry(E::XHeader, b"x", &vec![b'1'; MAX_TAR_RECORD_BYTES as usize + 1])],
        ),
    ];
    for (expected, entries) in cases {
        let tar = with(&entries);
        assert_eq!(verdict(&tar), expected, "{}", entries.concat().escape_ascii());
        assert_eq!(verdict(&gzipped(&tar)), expected);
    }
}

#[test]
fn endings_of_tars() {
    let tar = with(&[]);
    let gz = gzipped(&tar);
    for (bytes, expected) in [
        ([&tar[..], &[0; 9000]].concat(), "ok"),
        ([&tar[..], b"x"].concat(), "tar_malformed"),
        (tar[..1024].to_vec(), "tar_malformed"),
        ([&gz[..], b"x"].concat(), "tar_malformed"),
        ([&gz[..], &[0; 512]].concat(), "tar_malformed"),
        ([&gz[..], &gz].concat(), "tar_malformed"),
        (gz[..gz.len() - 4].to_vec(), "tar_malformed"),
        (gzipped(b"not a tar"), "tar_malformed"),
        (b"not a tar".to_vec(), "not_an_archive"),
        (Vec::new(), "not_an_archive"),
    ] {
        assert_eq!(verdict(&bytes), expected, "{}", bytes.escape_ascii());
    }
}

#[test]
fn large_tars() {
    let file = |n: usize| entry(EntryType::Regular, format!("demo/{n}").as_bytes(), b"");
    let many: Vec<_> = (0..MAX_FILES).map(file).collect();
    assert_eq!(verdict(&with(&many[1..])), "ok");
    assert_eq!(verdict(&with(&many)), "too_many_files");
    let folder = entry(EntryType::Directory, b"demo/x/", b"");
    assert_eq!(verdict(&with(&vec![folder; 2 * MAX_FILES])), "too_many_files");
    let zeros = vec![0; 6 * 1024 * 1024];
    let large = with(&[entry(EntryType::Regular, b"demo/x", &zeros)]);
    assert_eq!(verdict(&large), "too_large", "by its size");
    let large = with(&[entry(EntryType::Regular, b"demo/x", &zeros[..4_000_000])]);
    assert_eq!(verdict(&large), "ok");
    assert_eq!(verdict(&gzipped(&large)), "too_large", "by its ratio");
    // Zeros after the end or in a skipped entry are a bomb, too.
    let bomb = with(&[entry(EntryType::Regular, b"__MACOSX/x", &vec![0; 40_000_000])]);
    assert_eq!(verdict(&gzipped(&bomb)), "too_large");
    let bomb = [with(&[]), vec![0; 40_000_000]].concat();
    assert_eq!(verdict(&gzipped(&bomb)), "too_large");
}
