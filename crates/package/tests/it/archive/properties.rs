//! Property tests: packed skills are unpacked unchanged.

use std::io::Read as _;

use proptest::prelude::*;
use savoir_package::{File, Tree, archive, limits::MAX_FILE_BYTES};
use savoir_skill::digest::sha256_hex;

use super::{file, skill};

fn any_file() -> impl Strategy<Value = File> {
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..2_000),
        (any::<u8>(), 0..1_500_000_usize).prop_map(|(byte, length)| vec![byte; length]),
        "\\PC{0,200}".prop_map(String::into_bytes),
    ];
    (bytes, any::<bool>()).prop_map(|(bytes, executable)| File { bytes, executable })
}

/// Files with random valid paths; invalid ones are left out.
fn any_tree() -> impl Strategy<Value = Tree> {
    let path = prop_oneof!["[a-zA-Z0-9 ._/-]{1,40}", "\\PC{1,12}(/\\PC{1,12}){0,3}"];
    prop::collection::vec((path, any_file()), 0..6).prop_map(|files| {
        let mut tree = Tree::default();
        tree.add("SKILL.md".to_owned(), file("---\nname: x\n---\n")).unwrap();
        for (path, file) in files {
            let last = path.rsplit('/').next().unwrap_or_default();
            if !last.starts_with("._") && last != ".DS_Store" {
                let _ = tree.add(path, file);
            }
        }
        tree
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn packed_tree_unpacks_unchanged(tree in any_tree()) {
        let bytes = archive::pack("demo", &tree).unwrap();
        prop_assert_eq!(&archive::pack("demo", &tree).unwrap(), &bytes);
        let whole = archive::unpack(&bytes).unwrap();
        // A path one folder deeper may belong to a nested skill.
        let nested = tree.files().any(|(path, _)| path.to_lowercase().ends_with("/skill.md"));
        if !nested {
            let skills = archive::skills(whole.clone()).unwrap();
            prop_assert_eq!(&skills[..], &[(Some("demo".to_owned()), tree.clone())]);
        }
        let (name, again) = archive::one_skill(whole).unwrap();
        prop_assert_eq!(name.as_deref(), Some("demo"));
        prop_assert_eq!(again, tree);
    }

    #[test]
    fn arbitrary_bytes_are_rejected(bytes in prop::collection::vec(any::<u8>(), 0..2_000), magic in 0..4_usize) {
        let magic = [&b""[..], b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b\x08\0\0\0\0\0\0\0"][magic];
        prop_assert!(archive::unpack(&[magic, &bytes].concat()).is_err());
    }
}

#[test]
fn unzip_reads_packed_archive() {
    let tree = skill();
    let bytes = archive::pack("demo", &tree).unwrap();
    let mut zip = ::zip::ZipArchive::new(std::io::Cursor::new(bytes)).unwrap();
    let mut again = Tree::default();
    for index in 0..zip.len() {
        let mut entry = zip.by_index(index).unwrap();
        let path = entry.name().unwrap().strip_prefix("demo/").unwrap().to_owned();
        let executable = entry.unix_mode().unwrap() & 0o111 != 0;
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        again.add(path, File { bytes, executable }).unwrap();
    }
    assert_eq!(again, tree);
}

#[test]
fn packing_is_deterministic() {
    let mut tree = Tree::default();
    tree.add("SKILL.md".into(), file("---\nname: x\n---\n")).unwrap();
    let bytes = archive::pack("x", &tree).unwrap();
    insta::assert_snapshot!(bytes.escape_ascii());
    // A change of the deflate implementation would change the digests of all packages.
    let digest = sha256_hex(&archive::pack("demo", &skill()).unwrap());
    insta::assert_snapshot!("digest_of_a_package", digest);
}

#[test]
fn invalid_trees_are_not_packed() {
    let code = |name: &str, tree: &Tree| archive::pack(name, tree).map_err(|error| error.code());
    let tree = skill();
    assert_eq!(code("a/b", &tree), Err("path_characters"));
    assert_eq!(code("..", &tree), Err("path_traversal"));
    assert_eq!(code("", &tree), Err("absolute_path"));
    assert_eq!(code(".git", &tree), Err("forbidden_path"));
    assert_eq!(code("__MACOSX", &tree), Err("path_characters"));
    let mut deep = Tree::default();
    deep.add(["a"; 16].join("/"), file("")).unwrap();
    assert_eq!(code("demo", &deep), Err("path_length"), "its folder makes it too deep");
    let mut large = Tree::default();
    let mut state = 1_u64;
    for n in 0..3 {
        let bytes = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        });
        let bytes = bytes.take(MAX_FILE_BYTES as usize).collect();
        large.add(format!("{n}"), File { bytes, executable: false }).unwrap();
    }
    assert_eq!(code("demo", &large), Err("too_large"));
}

#[test]
fn highly_compressible_tree_can_be_packed() {
    let mut tree = Tree::default();
    let zeros = File { bytes: vec![0; MAX_FILE_BYTES as usize], executable: false };
    tree.add("SKILL.md".into(), file("")).unwrap();
    tree.add("zeros".into(), zeros).unwrap();
    let bytes = archive::pack("demo", &tree).unwrap();
    let (_, again) = archive::unpack(&bytes).and_then(archive::one_skill).unwrap();
    assert_eq!(again, tree);
}
