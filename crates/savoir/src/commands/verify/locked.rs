//! Verifies the skills in savoir.lock, file by file.

use std::process::ExitCode;

use savoir_package::{
    install::{VerifyFault, VerifyProblem},
    lock::LockedSkill,
    trust::{Tier, evaluation::SignedEvaluation},
};
use serde_json::{Value, json};

use crate::{error::CommandError, evaluations, install_context::ScopeArgs, output};

/// Whether all of these skills are in the lock.
pub(super) fn are_locked(scope: &ScopeArgs, names: &[String]) -> Result<bool, CommandError> {
    if names.is_empty() {
        return Ok(true);
    }
    let locked = scope.open_read_only()?.skill_set.state()?.lock.skills;
    Ok(names.iter().all(|name| locked.contains_key(name)))
}

/// Verifies the skills of these names; without any, all skills in the lock.
pub(super) fn verify(
    scope: &ScopeArgs,
    names: &[String],
    as_json: bool,
) -> Result<ExitCode, CommandError> {
    let context = scope.open_read_only()?;
    let locked = context.skill_set.state()?.lock.skills;
    let is_meant = |name: &str| names.is_empty() || names.iter().any(|known| known == name);
    let skills = locked.keys().filter(|name| is_meant(name)).count();
    let mut problems = context.skill_set.verify(&context.trust)?;
    problems.retain(|problem| is_meant(&problem.skill));
    let mut uncovered = context.skill_set.uncovered()?;
    uncovered.retain(|path| {
        path.components().any(|part| part.as_os_str().to_str().is_some_and(is_meant))
    });
    let store = context.skill_set.store();
    let not_stored: Vec<&String> = locked
        .iter()
        .filter(|(name, skill)| is_meant(name) && !store.has(&skill.integrity))
        .map(|(name, _)| name)
        .collect();
    // For a skill with a problem, no signature is shown.
    let is_sound = |name: &str| problems.iter().all(|problem| problem.skill != name);
    let signatures: Vec<(&String, &LockedSkill)> =
        locked.iter().filter(|(name, _)| is_meant(name) && is_sound(name)).collect();
    let evaluated: Vec<(&String, Vec<SignedEvaluation>)> = signatures
        .iter()
        .map(|(name, skill)| (*name, evaluations::current(None, &skill.integrity, &context.trust)))
        .collect();
    if as_json {
        let signed: Vec<Value> =
            signatures.iter().map(|(name, skill)| signature(name, skill)).collect();
        output::json(&json!({
            "lock": context.skill_set.root().join(savoir_package::lock::FILE),
            "skills": skills,
            "ok": problems.is_empty(),
            "problems": problems.iter().map(problem).collect::<Vec<_>>(),
            "signatures": signed,
            "evaluations": evaluated.iter().flat_map(evaluations_as_json).collect::<Vec<_>>(),
            "not_covered": uncovered,
            "not_installed_here": not_stored,
        }))?;
    } else {
        let mut text = String::new();
        for problem in &problems {
            text.push_str(&output::sanitize(&context.short(&problem.to_string())));
            text.push('\n');
        }
        for path in &uncovered {
            let path = context.short(&path.display().to_string());
            // Running a skill can create such files, so they are listed but are not a problem.
            let line = format!("{path} is not in savoir.lock, and could be executed");
            text.push_str(&output::sanitize(&line));
            text.push('\n');
        }
        if !names.is_empty() {
            for (name, skill) in &signatures {
                text.push_str(&output::sanitize(&signature_line(name, skill)));
                text.push('\n');
            }
        }
        for (name, some) in &evaluated {
            for one in some.iter().filter(|one| !names.is_empty() || one.is_trusted(name)) {
                let line = format!("`{name}` is evaluated: {}", super::describe_current(one, name));
                text.push_str(&output::sanitize(&line));
                text.push('\n');
            }
        }
        let signed = signatures.iter().filter(|(_, skill)| is_attested(skill)).count();
        let end = match problems.len() {
            0 if skills == 0 => "nothing to verify".to_owned(),
            0 if signed > 0 => {
                format!("every file matches savoir.lock, {signed} signed with a key that you trust")
            }
            0 => "every file matches savoir.lock".to_owned(),
            count => output::plural(count, "problem"),
        };
        output::text(&format!("{text}{}: {end}\n", output::plural(skills, "skill")))?;
        for name in &not_stored {
            output::note(&format!(
                "`{}` was not installed on this machine; review it: savoir scan {0}",
                output::cell(name)
            ));
        }
        if !problems.is_empty() {
            output::note(
                "`savoir sync` installs missing skills; `savoir sync --force` also restores deleted and edited files",
            );
        }
    }
    Ok(ExitCode::from(problems.iter().map(severity).max().unwrap_or_default()))
}

/// Whether a key that the user trusts for the skill signed it.
fn is_attested(skill: &LockedSkill) -> bool {
    skill.signature.is_some() && skill.attested.is_some_and(|tier| tier > Tier::Experimental)
}

/// The signature of a skill, which was just compared with the lock.
fn signature_line(name: &str, skill: &LockedSkill) -> String {
    let tier = skill.tier;
    let Some(key) = &skill.signature else {
        return format!("`{name}` is unsigned, {tier}");
    };
    let by =
        skill.signer.as_deref().filter(|signer| !signer.is_empty()).unwrap_or("an unknown key");
    let trusted = if is_attested(skill) { "" } else { ", which you do not trust for it" };
    format!("`{name}` is signed by {by}, {key}{trusted}, {tier}")
}

fn signature(name: &str, skill: &LockedSkill) -> Value {
    json!({
        "skill": name,
        "signature": skill.signature,
        "signer": skill.signer,
        "attested_tier": skill.attested,
        "tier": skill.tier,
    })
}

fn evaluations_as_json(
    (name, evaluations): &(&String, Vec<SignedEvaluation>),
) -> impl Iterator<Item = Value> {
    evaluations.iter().map(move |one| {
        json!({
            "skill": name, "checked": one.signed.checked, "trusted": one.is_trusted(name),
            "key_id": one.signed.key_id, "evaluation": one.fields(),
        })
    })
}

fn severity(problem: &VerifyProblem) -> u8 {
    match problem.fault {
        VerifyFault::Signature(_) | VerifyFault::Tier { .. } | VerifyFault::Lock { .. } => 3,
        _ => 1,
    }
}

fn problem(problem: &VerifyProblem) -> Value {
    let file = match &problem.fault {
        VerifyFault::Changed(file) | VerifyFault::Gone(file) | VerifyFault::Additional(file) => {
            Some(file)
        }
        _ => None,
    };
    json!({
        "skill": problem.skill,
        "folder": problem.folder,
        "file": file,
        "code": problem.fault.code(),
        "text": problem.to_string(),
    })
}
