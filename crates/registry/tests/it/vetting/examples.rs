//! Tests that harmless skills are not blocked.

use std::{
    fs,
    path::{Path, PathBuf},
};

use savoir_package::Tree;
use savoir_scan::Verdict;
use savoir_skill::{Dialect, Source, read};

use super::{can_detonate, detonated, vet};

/// How many skills of the collection are vetted; all of them would take too long.
const SAMPLE: usize = 40;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn skills(folder: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.join("SKILL.md").is_file() {
            into.push(path);
        } else if path.is_dir() && !path.is_symlink() {
            skills(&path, into);
        }
    }
}

#[test]
fn example_skills_are_allowed() {
    if !can_detonate() {
        return;
    }
    let mut found = Vec::new();
    skills(&root().join("examples"), &mut found);
    assert!(found.len() > 10, "{found:?}");
    for folder in found {
        let vetted = vet(&Tree::read(&folder).unwrap());
        let messages: Vec<_> = detonated(&vetted).iter().map(|one| one.message.clone()).collect();
        eprintln!("{}: {} {messages:?}", folder.display(), vetted.summary());
        assert!(vetted.verdict < Verdict::Block, "{vetted:#?}");
        assert!(messages.is_empty(), "{vetted:#?}");
    }
}

#[test]
fn real_skills_with_tools_are_not_blocked() {
    let corpus = root().join("../shared/corpus");
    if !can_detonate() || !corpus.is_dir() {
        eprintln!("=== SKIPPED: no collection of skills beside the repository, or no sandbox ===");
        return;
    }
    let mut found = Vec::new();
    skills(&corpus, &mut found);
    let mut tried = 0;
    for folder in found {
        let bytes = fs::read(folder.join("SKILL.md")).unwrap_or_default();
        let Ok(source) = Source::from_bytes(bytes) else { continue };
        let skill = read(source, None).skill;
        if tried == SAMPLE || skill.tools.is_empty() && skill.dialect != Dialect::SKILLRT {
            continue;
        }
        let Ok(tree) = Tree::read(&folder) else { continue };
        tried += 1;
        let vetted = vet(&tree);
        let blocking: Vec<_> = detonated(&vetted).into_iter().filter(|one| one.blocks).collect();
        eprintln!("{}: {}", folder.display(), vetted.summary());
        assert!(blocking.is_empty(), "{}: {blocking:#?}", folder.display());
    }
    eprintln!("{tried} skills with tools were tried");
}
