//! Runs trigger queries with catalogs of several sizes.

use futures::{StreamExt as _, stream};
use savoir_agent::{
    library::prepare_skill,
    preamble::{
        Candidate, Preamble,
        hosts::{HostRules, SkillFiles},
    },
    turn::TurnLimits,
};
use savoir_skill::{Folder, Source, folder::is_skill_file, read};

use super::{budget::Spending, host::Disclosure, skill::EvaluatedSkill, study::Study};
use crate::{
    set::{Case, Trigger},
    trace::Arm,
    trigger::{CATALOGUE_SIZES, QueryResult, ShownSkill, TriggerResult, decoys},
};

/// The context of current models of other agents. It decides how much of the catalog they show.
const CONTEXT_TOKENS: usize = 200_000;

/// The number of trials of all queries.
pub(super) fn count(study: &Study) -> usize {
    study.set.triggers.len() * CATALOGUE_SIZES.len() * study.trials as usize
}

pub(super) async fn run(
    study: &Study,
    spending: &Spending,
    progress: &(dyn Fn(usize) + Sync),
) -> Vec<TriggerResult> {
    if study.set.triggers.is_empty() {
        return Vec::new();
    }
    let mut results = Vec::new();
    let mut finished = 0;
    for size in CATALOGUE_SIZES {
        let catalogue = catalogue(study, size);
        let mut jobs = Vec::new();
        for (index, trigger) in study.set.triggers.iter().enumerate() {
            jobs.extend((0..study.trials).map(|trial| (index, trigger, trial)));
        }
        let catalogue_of_jobs = catalogue.as_slice();
        let name = study.skill.record.name.as_str();
        let running = jobs.into_iter().map(|(index, trigger, trial)| async move {
            let (case, arm) = (as_case(trigger, index), Arm::WithDecoys);
            let found =
                study.trial(&case, catalogue_of_jobs, arm, trial, Some(name), spending).await;
            (index, found.map(|(trace, _)| trace.used(name)))
        });
        let mut running = stream::iter(running).buffer_unordered(study.parallel.max(1));
        let mut queries: Vec<QueryResult> = study.set.triggers.iter().map(unanswered).collect();
        while let Some((index, found)) = running.next().await {
            finished += 1;
            progress(finished);
            let Some(query) = queries.get_mut(index) else { continue };
            match found {
                Ok(used) => {
                    query.trials += 1;
                    query.used += u32::from(used);
                }
                Err(reason) => {
                    query.invalid += 1;
                    query.reason = Some(reason);
                }
            }
        }
        let shown = shown(study, &catalogue);
        results.push(TriggerResult::new(catalogue.len(), shown, queries));
    }
    results
}

fn unanswered(trigger: &Trigger) -> QueryResult {
    QueryResult {
        query: trigger.query.clone(),
        should_trigger: trigger.should_trigger,
        used: 0,
        trials: 0,
        invalid: 0,
        reason: None,
    }
}

/// The skill, then the decoys of the user, then made-up ones.
fn catalogue(study: &Study, size: usize) -> Vec<EvaluatedSkill> {
    let name = &study.skill.record.name;
    let mut skills = vec![study.skill.clone()];
    let others = study.decoys.iter().filter(|one| one.record.name != *name);
    skills.extend(others.take(size - 1).cloned());
    let missing = size.saturating_sub(skills.len());
    let known: Vec<String> = skills.iter().map(|one| one.record.name.clone()).collect();
    let made_up = decoys(usize::MAX, name).into_iter().filter(|one| !known.contains(&one.name));
    skills.extend(made_up.take(missing).filter_map(|one| EvaluatedSkill::decoy(&one).ok()));
    skills
}

/// A query as a case without assertions.
fn as_case(trigger: &Trigger, index: usize) -> Case {
    Case {
        id: format!("trigger-{index}"),
        prompt: trigger.query.clone(),
        expected: None,
        files: Vec::new(),
        assertions: Vec::new(),
        requires: Vec::new(),
        location: trigger.location.clone(),
    }
}

/// How the host shows a skill to its model.
fn shown(study: &Study, catalogue: &[EvaluatedSkill]) -> ShownSkill {
    let name = study.skill.record.name.as_str();
    match study.host.disclosure() {
        Disclosure::Savoir => shown_by_savoir(catalogue, name),
        Disclosure::Rules(rules) => {
            shown_by_rules(rules, catalogue, name, study.host.skills_folder())
        }
        Disclosure::Unknown => ShownSkill::Unknown,
    }
}

/// The SKILL.md of a skill.
fn skill_file(folder: &Folder) -> Option<(String, Source)> {
    let file = folder.files().iter().find(|file| is_skill_file(&file.path))?;
    Some((file.path.clone(), Source::from_bytes(folder.read(&file.path).ok()?).ok()?))
}

fn shown_by_savoir(catalogue: &[EvaluatedSkill], name: &str) -> ShownSkill {
    let candidates = catalogue.iter().filter_map(|skill| {
        let folder: Folder = skill.as_folder();
        let (_, source) = skill_file(&folder)?;
        let reading = read(source, Some(&folder));
        let prepared = prepare_skill(&skill.record.name, &reading, Some(&folder)).ok()?;
        Some(Candidate::new(&prepared.skill))
    });
    let preamble = Preamble::new(candidates.collect(), Some(TurnLimits::default().preamble));
    match preamble.shown.iter().find(|line| line.name == name) {
        Some(line) if line.truncated => ShownSkill::Cut,
        Some(_) => ShownSkill::Whole,
        None => ShownSkill::Hidden,
    }
}

/// Simulates the catalog of another agent, as `savoir context simulate` does.
fn shown_by_rules(
    rules: &HostRules,
    catalogue: &[EvaluatedSkill],
    name: &str,
    skills_folder: &str,
) -> ShownSkill {
    let root = format!("/workspace/{skills_folder}");
    let path_of = |skill: &str, file: &str| format!("{root}/{skill}/{file}");
    let installed = catalogue.iter().filter_map(|skill| {
        let (file, source) = skill_file(&skill.as_folder())?;
        Some(rules.read(&SkillFiles {
            folder: &skill.record.name,
            path: &path_of(&skill.record.name, &file),
            root: &root,
            text: source.text(),
            ..SkillFiles::default()
        }))
    });
    let simulation = rules.simulate(installed.collect(), CONTEXT_TOKENS);
    let own = path_of(name, "");
    match simulation.skills.iter().find(|skill| skill.path.starts_with(&own)) {
        Some(skill) if !skill.visible => ShownSkill::Hidden,
        Some(skill) if skill.is_shortened() => ShownSkill::Cut,
        Some(_) => ShownSkill::Whole,
        None => ShownSkill::Hidden,
    }
}
