use crate::{File, Tree};

use super::*;

mod corpus;
mod evasions;
mod examples;
mod flows;
mod labelled;
mod metamorphic;
mod shapes;

/// A skill with these files; SKILL.md is added unless it is among them.
fn tree(files: &[(&str, &[u8])]) -> Tree {
    let mut tree = Tree::default();
    if !files.iter().any(|(path, _)| *path == "SKILL.md") {
        let text = "---\nname: demo\ndescription: Shows a rule. Use when learning.\n---\n# Demo\n";
        tree.add("SKILL.md".into(), File { bytes: text.into(), executable: false }).unwrap();
    }
    for (path, bytes) in files {
        let file = File { bytes: bytes.to_vec(), executable: false };
        tree.add((*path).to_owned(), file).unwrap();
    }
    tree
}

fn scan_one(path: &str, text: &str) -> Report {
    scan(&tree(&[(path, text.as_bytes())]))
}

fn ids(report: &Report) -> Vec<&'static str> {
    report.findings.iter().map(|finding| finding.rule.id).collect()
}
