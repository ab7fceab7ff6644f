//! Runs all trials of an evaluation.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt as _, stream};
use savoir_skill::{Folder, digest::sha256_hex};

use super::{
    budget::{Budget, Spending},
    cache::{self, Cache},
    grader::Graders,
    host::{Host, HostRun, TrialSetup},
    skill::{EvaluatedSkill, catalogue_digest},
    triggers,
    workspace::{TrialFolder, is_placed},
};
use crate::{
    analyze::{Prices, compare, conclude},
    gate::Gate,
    results::{
        CaseResult, EvalSetRecord, RESULTS_FORMAT, Results, SandboxRecord, Spent, TrialOutcome,
        TrialResult,
    },
    set::{Case, EvalSet},
    trace::{Arm, TRACE_FORMAT, TokenUsage, Trace, record_files},
};

/// Requests to the model in one trial. Real tasks take five to twenty.
pub(super) const MAX_STEPS: u32 = 32;

/// What to run.
#[derive(Debug)]
pub struct Study {
    pub set: EvalSet,
    /// The folder of the skill, with the files of the cases.
    pub folder: Folder,
    pub skill: EvaluatedSkill,
    /// Another version to compare with.
    pub previous: Option<EvaluatedSkill>,
    /// Other skills for the arm with decoys and for trigger queries.
    pub decoys: Vec<EvaluatedSkill>,
    pub host: Arc<dyn Host>,
    pub graders: Graders,
    pub cache: Option<Cache>,
    pub trials: u32,
    /// The longest time of one trial.
    pub trial_time: Duration,
    /// Trials at the same time.
    pub parallel: usize,
    pub budget: Budget,
    pub prices: Option<Prices>,
    pub gate: Option<Gate>,
}

/// A finished evaluation.
#[derive(Debug)]
pub struct Finished {
    pub results: Results,
    /// The records of all trials that ended.
    pub traces: Vec<Trace>,
}

/// One trial to run.
struct Job<'a> {
    case: &'a Case,
    arm: Arm,
    trial: u32,
}

/// A trial that ended.
pub(super) struct Done {
    pub(super) case: String,
    pub(super) arm: Arm,
    pub(super) result: TrialResult,
    pub(super) trace: Option<Trace>,
    pub(super) judged: TokenUsage,
}

impl Study {
    fn arms(&self) -> Vec<Arm> {
        let mut arms = vec![Arm::WithSkill, Arm::WithoutSkill];
        arms.extend(self.previous.is_some().then_some(Arm::Previous));
        arms.extend((!self.decoys.is_empty()).then_some(Arm::WithDecoys));
        arms
    }

    /// The skills of an arm.
    fn catalogue(&self, arm: Arm) -> Vec<EvaluatedSkill> {
        match arm {
            Arm::WithoutSkill => Vec::new(),
            Arm::WithSkill => vec![self.skill.clone()],
            Arm::Previous => self.previous.iter().cloned().collect(),
            Arm::WithDecoys => std::iter::once(&self.skill).chain(&self.decoys).cloned().collect(),
        }
    }

    async fn run_job(&self, job: &Job<'_>, spending: &Spending) -> Done {
        let Job { case, arm, trial } = *job;
        let done =
            |result, trace, judged| Done { case: case.id.clone(), arm, result, trace, judged };
        if !case.requires.is_empty() {
            let reason =
                format!("it needs {}, which a trial does not have", case.requires.join("; "));
            return done(invalid(trial, reason), None, TokenUsage::default());
        }
        let catalogue = self.catalogue(arm);
        let (trace, cached) = match self.trial(case, &catalogue, arm, trial, None, spending).await {
            Ok(found) => found,
            Err(reason) => return done(invalid(trial, reason), None, TokenUsage::default()),
        };
        let graded = self.graders.grade(case, &trace, None, spending).await;
        let mut result = graded_result(&trace, graded.grading, &self.skill.record.name);
        result.cached = cached;
        done(result, Some(trace), graded.usage)
    }

    /// The record of a trial: from the cache, or run now.
    pub(super) async fn trial(
        &self,
        case: &Case,
        catalogue: &[EvaluatedSkill],
        arm: Arm,
        trial: u32,
        until_used: Option<&str>,
        spending: &Spending,
    ) -> Result<(Trace, bool), String> {
        let key = self.key(case, catalogue, trial, until_used)?;
        if let Some(cache) = &self.cache
            && let Some(mut trace) = cache.trial(&key)?
        {
            // Two cases with the same task share their trials.
            (trace.case, trace.arm) = (case.id.clone(), arm);
            return Ok((trace, true));
        }
        if let Some(reason) = spending.exhausted() {
            return Err(reason);
        }
        let prepared = TrialFolder::new().map_err(|error| format!("no folder: {error}"));
        let folder = prepared?;
        folder.add_files(&case.files, &self.folder)?;
        let skills_folder = self.host.skills_folder();
        folder.add_skills(skills_folder, catalogue)?;
        let names: Vec<String> = catalogue.iter().map(|one| one.record.name.clone()).collect();
        let limit = self.trial_time;
        let (workspace, scratch) = (folder.workspace(), folder.scratch());
        let setup = TrialSetup {
            prompt: &case.prompt,
            workspace: &workspace,
            scratch: &scratch,
            skills: &names,
            max_steps: MAX_STEPS,
            time: spending.remaining_time().map_or(limit, |left| left.min(limit)),
            until_used,
        };
        let began = Instant::now();
        let run = self.host.run(setup).await?;
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        spending.add(run.usage);
        let recorded = record_files(&workspace, &|path| is_placed(path, skills_folder));
        let (files, files_left_out) =
            recorded.map_err(|error| format!("the workspace cannot be read: {error}"))?;
        let HostRun { answer, messages, calls, skills_used, usage, requests, limit } = run;
        let mut tools = self.host.tools();
        if !tools.is_empty() {
            tools.extend(self.skill.tools.iter().cloned());
        }
        let trace = Trace {
            format: TRACE_FORMAT,
            key,
            machine: self
                .cache
                .as_ref()
                .map(|cache| cache.machine().to_owned())
                .unwrap_or_default(),
            case: case.id.clone(),
            arm,
            trial,
            host: self.host.record(),
            prompt: case.prompt.clone(),
            answer,
            messages,
            calls,
            tools,
            skills_used,
            files,
            files_left_out,
            usage,
            requests,
            duration_ms,
            limit,
        };
        if let Some(cache) = &self.cache {
            cache.store_trial(&trace);
        }
        Ok((trace, false))
    }

    /// The digest of everything that a trial depends on. Assertions are not among it, so that a
    /// changed assertion needs no new trial.
    fn key(
        &self,
        case: &Case,
        catalogue: &[EvaluatedSkill],
        trial: u32,
        until_used: Option<&str>,
    ) -> Result<String, String> {
        let mut facts = vec![cache::harness()];
        let host = self.host.record();
        facts.extend([host.name, host.version, host.model, catalogue_digest(catalogue)]);
        facts.extend([case.prompt.clone(), MAX_STEPS.to_string(), trial.to_string()]);
        let SandboxRecord { platform, network, writable } = sandbox_record(&*self.host);
        facts.extend([platform, network, writable, self.trial_time.as_secs().to_string()]);
        facts.push(until_used.unwrap_or_default().to_owned());
        for file in &case.files {
            let bytes = self.folder.read_up_to(&file.source, crate::limits::MAX_CASE_FILE_BYTES);
            let bytes =
                bytes.map_err(|error| format!("the file `{}` is missing: {error}", file.path))?;
            facts.extend([file.path.clone(), sha256_hex(&bytes)]);
        }
        let facts: Vec<&str> = facts.iter().map(String::as_str).collect();
        Ok(cache::key(&facts))
    }
}

/// A trial that does not count.
pub(super) fn invalid(trial: u32, reason: String) -> TrialResult {
    TrialResult {
        trial,
        outcome: TrialOutcome::Invalid,
        score: None,
        reason: Some(reason),
        grading: crate::grade::Grading::default(),
        usage: TokenUsage::default(),
        duration_ms: 0,
        steps: 0,
        used_skill: false,
        cached: false,
    }
}

/// The result of a trial that was graded.
pub(super) fn graded_result(
    trace: &Trace,
    grading: crate::grade::Grading,
    skill: &str,
) -> TrialResult {
    let score = grading.score();
    let outcome = match score {
        None => TrialOutcome::Invalid,
        Some(_) if grading.passed() => TrialOutcome::Passed,
        Some(_) => TrialOutcome::Failed,
    };
    TrialResult {
        trial: trace.trial,
        outcome,
        score,
        reason: grading.invalid(),
        grading,
        usage: trace.usage,
        duration_ms: trace.duration_ms,
        steps: trace.requests,
        used_skill: trace.used(skill),
        cached: false,
    }
}

/// Runs a study. Trials of the same number run together, so that a budget that ends the run early
/// leaves pairs. `progress` is called with the number of finished trials and of all.
pub async fn run(study: &Study, progress: &(dyn Fn(usize, usize) + Send + Sync)) -> Finished {
    let spending = Spending::new(study.budget);
    let arms = study.arms();
    let cases: Vec<&Case> =
        study.set.cases.iter().filter(|case| !case.graded().is_empty()).collect();
    let mut jobs = Vec::new();
    for trial in 0..study.trials {
        for case in &cases {
            jobs.extend(arms.iter().map(|arm| Job { case, arm: *arm, trial }));
        }
    }
    let all = jobs.len() + triggers::count(study);
    let mut finished = 0;
    let running = jobs.iter().map(|job| study.run_job(job, &spending));
    let mut running = stream::iter(running).buffer_unordered(study.parallel.max(1));
    let mut done = Vec::with_capacity(jobs.len());
    while let Some(one) = running.next().await {
        finished += 1;
        progress(finished, all);
        done.push(one);
    }
    drop(running);
    let mut judged = TokenUsage::default();
    let mut traces = Vec::new();
    for one in &mut done {
        judged += one.judged;
        traces.extend(one.trace.take());
    }
    traces.sort_by(|a, b| (&a.case, a.arm, a.trial).cmp(&(&b.case, b.arm, b.trial)));
    let case_results = collect(&cases, &arms, done);
    let trigger_results =
        triggers::run(study, &spending, &|more| progress(finished + more, all)).await;
    let comparisons = compare(&case_results, &arms, study.prices);
    let main = comparisons.first();
    let conclusion = conclude(&case_results, main, &trigger_results, study.gate);
    let mut trial_usage = TokenUsage::default();
    for trial in case_results.iter().flat_map(|case| case.arms.values().flatten()) {
        trial_usage += trial.usage;
    }
    let paid = spending.usage();
    let results = Results {
        format: RESULTS_FORMAT,
        harness: format!("savoir {}", env!("CARGO_PKG_VERSION")),
        finished: now(),
        skill: study.skill.record.clone(),
        previous: study.previous.as_ref().map(|skill| skill.record.clone()),
        decoys: study.decoys.iter().map(|skill| skill.record.name.clone()).collect(),
        eval_set: eval_set_record(study),
        host: study.host.record(),
        judge: study.graders.judge.as_ref().map(super::grader::Judge::record),
        sandbox: sandbox_record(&*study.host),
        trials: study.trials,
        cases: case_results,
        comparisons,
        conclusion,
        triggers: trigger_results,
        spent: Spent {
            trials: trial_usage,
            judge: judged,
            paid,
            cost: study.prices.map(|prices| prices.cost(paid)),
            seconds: spending.elapsed().as_secs_f64(),
        },
    };
    Finished { results, traces }
}

/// Sorts finished trials into their cases.
pub(super) fn collect(cases: &[&Case], arms: &[Arm], done: Vec<Done>) -> Vec<CaseResult> {
    let mut sorted: BTreeMap<(String, Arm), Vec<TrialResult>> = BTreeMap::new();
    for one in done {
        sorted.entry((one.case, one.arm)).or_default().push(one.result);
    }
    let of_case = |case: &&Case| {
        let trials = |arm: &Arm| {
            let mut trials = sorted.get(&(case.id.clone(), *arm)).cloned().unwrap_or_default();
            trials.sort_by_key(|trial| trial.trial);
            (*arm, trials)
        };
        CaseResult {
            id: case.id.clone(),
            prompt: case.prompt.clone(),
            expected: case.expected.clone(),
            arms: arms.iter().map(trials).collect(),
        }
    };
    cases.iter().map(of_case).collect()
}

/// The digest of the cases, with the content of their files, and of the trigger queries.
fn eval_set_record(study: &Study) -> EvalSetRecord {
    let mut facts = Vec::new();
    for case in &study.set.cases {
        facts.push(format!("{} {} {:?}", case.id, case.prompt, case.expected));
        for assertion in &case.assertions {
            let grader = serde_json::to_string(&assertion.grader).unwrap_or_default();
            facts.push(format!("{} {} {grader}", assertion.text, assertion.weight));
        }
        for file in &case.files {
            let bytes = study.folder.read_up_to(&file.source, crate::limits::MAX_CASE_FILE_BYTES);
            facts.push(format!("{} {}", file.path, sha256_hex(&bytes.unwrap_or_default())));
        }
    }
    facts.extend(
        study.set.triggers.iter().map(|one| format!("{} {}", one.query, one.should_trigger)),
    );
    let facts: Vec<&str> = facts.iter().map(String::as_str).collect();
    EvalSetRecord {
        digest: cache::key(&facts),
        cases: study.set.cases.len(),
        triggers: study.set.triggers.len(),
    }
}

fn sandbox_record(host: &dyn Host) -> SandboxRecord {
    SandboxRecord {
        platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        network: host.network(),
        writable: "the workspace of the trial".to_owned(),
    }
}

/// The time in UTC, to the second.
pub(super) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
