use super::*;

mod disguises;
mod downloads;
mod evaluation;
mod evasions;
mod examples;
mod flows;
mod flows_of_files;
mod honest_skills;
mod indirect;
mod labelled;
mod limits;
mod metamorphic;
mod own_service;
mod quoted_attacks;
mod shapes;
mod unspoken;

/// A skill with these files; SKILL.md is added unless it is among them.
fn tree<'a>(files: &[(&'a str, &'a [u8])]) -> Files<'a> {
    let mut files = files.to_vec();
    if !files.iter().any(|(path, _)| *path == "SKILL.md") {
        let text = "---\nname: demo\ndescription: Shows a rule. Use when learning.\n---\n# Demo\n";
        files.push(("SKILL.md", text.as_bytes()));
    }
    files.sort_unstable();
    files.into_iter().collect()
}

fn scan_one(path: &str, text: &str) -> Report {
    scan(&tree(&[(path, text.as_bytes())]))
}

fn ids(report: &Report) -> Vec<&'static str> {
    report.findings.iter().map(|finding| finding.rule.id).collect()
}
