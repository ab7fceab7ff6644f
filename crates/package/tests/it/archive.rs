//! Tests of archives: malicious, real, packed and damaged ones.

use savoir_package::{File, Tree, archive};

mod hostile;
mod mutations;
mod properties;
mod real;
mod tar;
mod zip;

fn file(text: &str) -> File {
    File { bytes: text.into(), executable: false }
}

/// A skill with several kinds of files.
fn skill() -> Tree {
    let mut tree = Tree::default();
    let noise: Vec<u8> =
        (0..5_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let program = File { bytes: b"#!/bin/sh\necho hi\n".into(), executable: true };
    let long = format!("references/{}/{}.md", "folder".repeat(12), "name".repeat(20));
    for (path, file) in [
        ("SKILL.md", file("---\nname: demo\ndescription: Use it for tests.\n---\n# Demo\n")),
        ("assets/noise.bin", File { bytes: noise, executable: false }),
        ("assets/empty.txt", file("")),
        ("assets/table.csv", file(&"a,b,c\n1,2,3\n".repeat(20_000))),
        ("references/größe.md", file("ä\n")),
        (&long, file("long\n")),
        ("scripts/run.sh", program),
    ] {
        tree.add(path.to_owned(), file).unwrap();
    }
    tree
}

/// Returns the error code of an archive of one skill, or `ok`.
fn verdict(bytes: &[u8]) -> &'static str {
    let tree = archive::unpack(bytes).and_then(archive::one_skill);
    tree.map_or_else(|error| error.code(), |_| "ok")
}
