//! A skill as it lies in the folder of an agent.

use savoir_skill::{
    Dialect, Skill, Source,
    convert::{Conversion, ConvertError, FieldReport, How, convert},
    folder::is_skill_file,
    read_as,
};

use crate::{Agent, Card, File, ShelfError, Tree, tree::SIGNATURE_FILES};

/// Dialects that read each other's files.
const FAMILY: [Dialect; 4] =
    [Dialect::AGENTSKILLS, Dialect::CLAUDE_CODE, Dialect::CODEX, Dialect::OPENCLAW];

/// A skill as it lies in the folder of an agent.
#[derive(Clone, Debug)]
pub struct Deployed {
    /// Its files.
    pub tree: Tree,
    /// What became of its fields; empty if nothing had to be converted.
    pub report: Vec<FieldReport>,
}

/// A skill as it lies in the folder of an agent. The same files always give the same result, so
/// that it need not be written down.
pub fn deployed(tree: &Tree, card: &Card, agent: &Agent) -> Result<Deployed, ShelfError> {
    let dialect = agent.dialect;
    if FAMILY.contains(&card.dialect) || card.dialect == dialect {
        return Ok(Deployed { tree: tree.clone(), report: Vec::new() });
    }
    let fail = |error: ConvertError| ShelfError::Convert {
        name: card.name.clone(),
        agent: agent.title,
        error,
    };
    let folder = tree.as_folder(Some(&card.name));
    let conversion = convert(&card.reading, Some(&folder), dialect).map_err(fail)?;
    if is_alike(card, &conversion, dialect) {
        return Ok(Deployed { tree: tree.clone(), report: Vec::new() });
    }
    let mut converted = Tree::default();
    for file in &conversion.files {
        let bytes = file.text.clone().into_bytes();
        converted.add(file.path.clone(), File { bytes, executable: false })?;
    }
    // Signatures are for the original; beside a converted file they would only look forged.
    let others =
        tree.files().filter(|(path, _)| !is_skill_file(path) && !SIGNATURE_FILES.contains(path));
    for (path, file) in others {
        if converted.get(path).is_none() {
            converted.add(path.to_owned(), file.clone())?;
        }
    }
    Ok(Deployed { tree: converted, report: conversion.report })
}

/// Whether the agent understands the original just as well: then it gets that, with its signature.
fn is_alike(card: &Card, conversion: &Conversion, dialect: Dialect) -> bool {
    let is_loss = |field: &FieldReport| matches!(field.how, How::Approximated | How::Dropped);
    let [file] = conversion.files.as_slice() else { return false };
    if conversion.report.iter().any(is_loss) {
        return false;
    }
    let read = |text: &str| {
        let source = Source::from_bytes(text.as_bytes().to_vec()).ok()?;
        let reading = read_as(source, dialect, None);
        reading.is_valid().then_some(reading.skill)
    };
    let original = read(card.reading.document.source().text());
    original.is_some_and(|one| read(&file.text).is_some_and(|other| says_the_same(&one, &other)))
}

/// Whether an agent is told the same.
fn says_the_same(one: &Skill, other: &Skill) -> bool {
    let told = |skill: &Skill| {
        let Skill { name, description, when_to_use, body, inputs, tools, policy, .. } = skill;
        serde_json::json!([name, description, when_to_use, body, inputs, tools, policy])
    };
    told(one) == told(other)
}
