//! Tests with damaged archives: each is rejected, or nothing relevant was damaged.

use savoir_package::{Tree, archive};

use super::{
    file, skill,
    tar::{gzipped, packed},
};

/// A deterministic random number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// A small skill, so that damage often hits relevant bytes.
fn small() -> Tree {
    let mut tree = Tree::default();
    tree.add("SKILL.md".into(), file("---\nname: demo\n---\n")).unwrap();
    tree.add("a.txt".into(), file(&"abc ".repeat(50))).unwrap();
    tree.add("b/ä.txt".into(), file("x")).unwrap();
    tree
}

/// Damages an archive in many ways. Each is rejected, or keeps all paths and bytes; permissions
/// have no checksum.
fn damage(good: &[u8], times: usize) {
    let expected = archive::unpack(good).unwrap().digests();
    let check = |bytes: &[u8], how: &str| match archive::unpack(bytes) {
        Ok(tree) => assert_eq!(tree.digests(), expected, "{how}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    };
    let mut random = Random(good.len() as u64);
    for n in 0..times {
        let mut bytes = good.to_vec();
        let flips = 1 + random.below(3);
        for _ in 0..flips {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        check(&bytes, &format!("flips {n}"));
        let mut bytes = good.to_vec();
        let at = random.below(bytes.len());
        match random.below(3) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..(at + 1 + random.below(40)).min(good.len()))),
            _ => bytes.insert(at, random.below(256) as u8),
        }
        check(&bytes, &format!("cut {n}"));
    }
}

#[test]
fn damaged_zips() {
    damage(&archive::pack("demo", &small()).unwrap(), 6_000);
    damage(&archive::pack("demo", &skill()).unwrap(), 400);
}

#[test]
fn damaged_tars() {
    damage(&gzipped(&packed(&small())), 6_000);
    damage(&gzipped(&packed(&skill())), 400);
}

#[test]
fn truncated_zips_are_rejected() {
    let good = archive::pack("demo", &small()).unwrap();
    for end in 0..good.len() {
        assert!(archive::unpack(&good[..end]).is_err(), "{end}");
    }
}

#[test]
fn truncated_tars_are_rejected() {
    let tar = packed(&small());
    let expected = archive::unpack(&tar).unwrap();
    let good = gzipped(&tar);
    for end in 0..good.len() {
        assert!(archive::unpack(&good[..end]).is_err(), "{end}");
    }
    for end in 0..tar.len() {
        if let Ok(tree) = archive::unpack(&tar[..end]) {
            assert_eq!(tree, expected, "{end}");
        }
    }
}
