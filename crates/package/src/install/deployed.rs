//! Converts a skill for the agent that it is installed for.

use savoir_skill::{
    Dialect, Skill, Source,
    convert::{Conversion, ConvertError, FieldOutcome, FieldReport, convert},
    folder::is_skill_file,
    read_as,
};

use crate::{Agent, File, InstallFailure, SkillSummary, Tree, tree::SIGNATURE_FILES};

/// The file name by which every agent finds a skill.
const SKILL_FILE: &str = "SKILL.md";

/// Dialects whose agents can read each other's files.
const SKILL_MD_DIALECTS: [Dialect; 4] =
    [Dialect::AGENTSKILLS, Dialect::CLAUDE_CODE, Dialect::CODEX, Dialect::OPENCLAW];

/// The files of a skill as installed for one agent.
#[derive(Clone, Debug)]
pub struct DeployedSkill {
    pub tree: Tree,
    /// What happened to each field of the frontmatter; empty if the files are unchanged.
    pub report: Vec<FieldReport>,
}

/// Returns the files of a skill as installed for an agent: unchanged, unless the agent cannot read
/// them. The result is deterministic, so it is not stored.
pub fn deploy_for_agent(
    tree: &Tree,
    summary: &SkillSummary,
    agent: &Agent,
) -> Result<DeployedSkill, InstallFailure> {
    if agent_reads(summary, agent) {
        return renamed(tree);
    }
    let dialect = agent.dialect;
    let fail = |error: ConvertError| InstallFailure::Convert {
        name: summary.name.clone(),
        agent: agent.title,
        error,
    };
    let folder = tree.as_folder(Some(&summary.name));
    let conversion = convert(&summary.reading, Some(&folder), dialect).map_err(fail)?;
    if is_lossless(summary, &conversion, dialect) {
        return renamed(tree);
    }
    let mut converted = Tree::default();
    for file in &conversion.files {
        let bytes = file.text.clone().into_bytes();
        converted.add(file.path.clone(), File { bytes, executable: false })?;
    }
    // Signatures cover the original; beside a converted file they would look forged.
    let others =
        tree.files().filter(|(path, _)| !is_skill_file(path) && !SIGNATURE_FILES.contains(path));
    for (path, file) in others {
        if converted.get(path).is_none() {
            converted.add(path.to_owned(), file.clone())?;
        }
    }
    Ok(DeployedSkill { tree: converted, report: conversion.report })
}

/// Whether an agent can read the original file. Agents ignore unknown fields, but need a
/// description.
fn agent_reads(summary: &SkillSummary, agent: &Agent) -> bool {
    if summary.dialect == agent.dialect || SKILL_MD_DIALECTS.contains(&summary.dialect) {
        return true;
    }
    // Some dialects derive a description, but the agent only sees the written one.
    let written = summary.reading.document.field("description").and_then(|node| node.text());
    SKILL_MD_DIALECTS.contains(&agent.dialect)
        && written.is_some_and(|text| !text.trim().is_empty())
}

/// Returns the same files, with `skill.md` renamed to `SKILL.md`, since agents only look for that
/// name.
fn renamed(tree: &Tree) -> Result<DeployedSkill, InstallFailure> {
    let name = tree.files().map(|(path, _)| path).find(|path| is_skill_file(path));
    let Some(name) = name.filter(|name| *name != SKILL_FILE) else {
        return Ok(DeployedSkill { tree: tree.clone(), report: Vec::new() });
    };
    let mut renamed = Tree::default();
    for (path, file) in tree.files().filter(|(path, _)| !SIGNATURE_FILES.contains(path)) {
        let path = if path == name { SKILL_FILE } else { path };
        renamed.add(path.to_owned(), file.clone())?;
    }
    let report = FieldReport {
        field: name.to_owned(),
        from: Some(name.to_owned()),
        to: Some(SKILL_FILE.to_owned()),
        how: FieldOutcome::Moved,
        why: "agents look for a file of this name only".to_owned(),
    };
    Ok(DeployedSkill { tree: renamed, report: vec![report] })
}

/// Whether the agent understands the original as well as the converted file: then it gets the
/// original, with its signature.
fn is_lossless(summary: &SkillSummary, conversion: &Conversion, dialect: Dialect) -> bool {
    let is_loss = |field: &FieldReport| {
        matches!(field.how, FieldOutcome::Approximated | FieldOutcome::Dropped)
    };
    let [file] = conversion.files.as_slice() else { return false };
    if conversion.report.iter().any(is_loss) {
        return false;
    }
    let folder = Tree::default().as_folder(Some(&summary.name));
    let read = |text: &str| {
        let source = Source::from_bytes(text.as_bytes().to_vec()).ok()?;
        // Agents use the name of the folder if the file has none.
        let reading = read_as(source, dialect, Some(&folder));
        reading.is_valid().then_some(reading.skill)
    };
    let original = read(summary.reading.document.source().text());
    original.is_some_and(|one| read(&file.text).is_some_and(|other| says_the_same(&one, &other)))
}

/// Whether two skills give an agent the same information.
fn says_the_same(one: &Skill, other: &Skill) -> bool {
    let information = |skill: &Skill| {
        let Skill { name, description, when_to_use, body, inputs, tools, policy, .. } = skill;
        serde_json::json!([name, description, when_to_use, body, inputs, tools, policy])
    };
    information(one) == information(other)
}
